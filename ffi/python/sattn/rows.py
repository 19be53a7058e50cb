# SPDX-License-Identifier: BSD-2-Clause
"""Softmax, log-softmax and log-sum-exp over any axis, with bias, mask, lengths, sink and gradients.

    s = sattn.Softmax(axis=1, scale=0.5, mask=live)
    r = s.forward(x)                                   # -> r.y, r.lse
    gradient = s.backward(x, r, dy=g)                  # -> gradient["x"], ["scale"], ...
"""
import ctypes
from types import SimpleNamespace

import numpy as np

from sattn import _I64, _Descriptor, _check, _fields, _integers, _pointer, _typed, library


class SoftmaxDescriptor(_Descriptor):
    """struct sattn_softmax of sattn/softmax.h"""
    _fields_ = _fields(
        "i:size batch rows width;j:form x_storage y_storage flags threads reserved;d:scale;"
        "p:x;i:x_batch x_row x_col;p:bias;i:bias_batch bias_row bias_col;"
        "p:mask;i:mask_batch mask_row mask_col;p:length;i:length_batch length_row;"
        "p:sink;i:sink_batch sink_row;p:y;i:y_batch y_row y_col;p:stats;i:stats_batch;"
        "p:lse;i:lse_batch;p:dy;i:dy_batch dy_row dy_col;p:dlse;i:dlse_batch;"
        "p:dx;i:dx_batch dx_row dx_col;p:dbias dsink dscale work;i:work_bytes")


class _Spread:
    """An array that is broadcast to `full`, as a block of `shape` with strides of 0, and its gradient."""

    def __init__(self, array, dtype, full, shape):
        array = _integers("lengths", array) if dtype is np.int64 else array
        self.array, self.full = np.ascontiguousarray(array, dtype), full
        self.block = np.broadcast_to(self.array, full).reshape(shape)
        self.shared = self.array.size == 0 or np.shares_memory(self.array, self.block)
        self.gradient = np.empty_like(self.array if self.shared else self.block)
        self.strides = [s // self.block.itemsize for s in self.block.strides]

    def summed(self):
        if self.shared:
            return self.gradient
        g, shape = self.gradient.reshape(self.full), self.array.shape
        g = g.sum(tuple(range(g.ndim - len(shape))))
        return g.sum(tuple(i for i, n in enumerate(shape) if n == 1), keepdims=True)


class Softmax:
    """Softmax, or with `log` log-softmax, of scale x + bias over an axis of x. x may be float32,
    float64, float16, or uint16 holding bf16, which both compute in float32; y has its type. bias and
    mask (False = dead) are broadcast to x, length (live elements) and sink (a logit that takes weight
    and gives no output) to x without the axis."""

    _STORAGE = {"float32": (0, np.float32), "float64": (0, np.float64), "uint16": (1, np.float32),
                "float16": (2, np.float32)}

    def __init__(self, axis=-1, log=False, scale=1.0, bias=None, mask=None, length=None, sink=None,
                 threads=0):
        self.axis, self.log, self.scale, self.threads = axis, log, scale, threads
        self.given = dict(bias=bias, mask=mask, length=length, sink=sink)

    def _call(self, x):
        axis = range(x.ndim)[self.axis]
        rest = x.shape[:axis] + x.shape[axis + 1:]
        n, outer, inner = x.shape[axis], int(np.prod(x.shape[:axis])), int(np.prod(x.shape[axis + 1:]))
        if not x.dtype.isnative or x.dtype.name not in self._STORAGE:
            raise TypeError(f"softmax of an array of {x.dtype!r}")
        storage, dtype = self._STORAGE[x.dtype.name]
        p = SoftmaxDescriptor()
        _check(library.sattn_softmax_init(ctypes.byref(p), _I64(ctypes.sizeof(p)), _I64(outer),
                                          _I64(inner), _I64(n)))
        p.form, p.scale, p.threads = int(self.log), self.scale, self.threads
        p.x_storage = p.y_storage = storage
        for name in ("x", "y", "dy", "dx"):
            for side, stride in zip(("batch", "row", "col"), (n * inner, 1, inner)):
                setattr(p, f"{name}_{side}", stride)
        spread = {}
        for name, a in self.given.items():
            if a is None:
                continue
            wide, kind = name in ("bias", "mask"), {"mask": np.bool_, "length": np.int64}.get(name, dtype)
            s = _Spread(a, kind, x.shape if wide else rest,
                        (outer, n, inner) if wide else (outer, inner))
            setattr(p, name, _pointer(s.block))
            order = (s.strides[0], s.strides[-1]) + ((s.strides[1],) if wide else ())
            for side, stride in zip(("batch", "row", "col"), order):
                setattr(p, f"{name}_{side}", stride)
            spread[name] = s
        return p, rest, dtype, spread

    def forward(self, x):
        """-> y like x; lse and stats [.., 2] of x without the axis"""
        x = np.ascontiguousarray(x)
        p, rest, dtype, spread = self._call(x)
        r = SimpleNamespace(y=np.empty_like(x), lse=np.empty(rest, dtype), stats=np.empty(rest + (2,), dtype))
        for name, a in dict(vars(r), x=x).items():
            setattr(p, name, _pointer(a))
        _check(_typed("sattn_softmax_forward", dtype)(ctypes.byref(p)))
        return r

    def backward(self, x, result, dy=None, dlse=None):
        """Gradients of <dy, y> + <dlse, lse> by name: "x", "scale", and "bias", "sink" if there are."""
        x = np.ascontiguousarray(x)
        p, rest, dtype, spread = self._call(x)
        given = dict(x=x, y=result.y, stats=result.stats, dy=dy, dlse=dlse)
        types = dict(x=x.dtype, y=x.dtype, dy=x.dtype, stats=dtype, dlse=dtype)
        shapes = dict(x=x.shape, y=x.shape, dy=x.shape, stats=rest + (2,), dlse=rest)
        if x.dtype == np.uint16 and dy is not None and np.asarray(dy).dtype != x.dtype:
            raise TypeError(f"dy is {np.asarray(dy).dtype}, x holds bf16 in uint16")
        given = {n: None if a is None else np.ascontiguousarray(a, types[n]) for n, a in given.items()}
        for name, a in given.items():
            if a is not None and a.shape != shapes[name]:
                raise ValueError(f"{name} has shape {a.shape}, not {shapes[name]}")
            setattr(p, name, _pointer(a))
        dx, dscale = np.empty_like(x), np.empty((), dtype)
        p.dx, p.dscale = _pointer(dx), _pointer(dscale)
        for name in ("bias", "sink"):
            if name in spread:
                setattr(p, "d" + name, _pointer(spread[name].gradient))
        _check(_typed("sattn_softmax_backward", dtype)(ctypes.byref(p)))
        return dict({n: spread[n].summed() for n in ("bias", "sink") if n in spread}, x=dx, scale=dscale[()])


def softmax(x, axis=-1, **options):
    """y alone; the options of Softmax"""
    return Softmax(axis, **options).forward(x).y


def log_softmax(x, axis=-1, **options):
    return Softmax(axis, log=True, **options).forward(x).y


def log_sum_exp(x, axis=-1, **options):
    return Softmax(axis, **options).forward(x).lse
