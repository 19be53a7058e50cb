# SPDX-License-Identifier: BSD-2-Clause
"""Softmax attention over a finite prompt, and the union of partial results.

    attend = sattn.Attention(causal=True)
    result = attend.forward(q, k, v)                  # [B, H, M, D], [B, Hk, N, D], [B, Hk, N, E]
    gradient = attend.backward(q, k, v, result, dout=g)    # -> gradient["q"], ["k"], ["v"], ...

Leading axes may be left out: [M, D] is one head, [H, M, D] one batch entry. Arrays are used where they lie,
whatever their strides; k and v may be float16, or uint16 for bfloat16."""
import ctypes
from types import SimpleNamespace

import numpy as np

from sattn import _I64, _PTR, _Descriptor, _check, _fields, _integers, _typed, library

TOP_LEFT, BOTTOM_RIGHT = 0, 1
OWN, BF16, F16 = 0, 1, 2


class _Array(_Descriptor):
    """struct sattn_input and sattn_output of sattn/attention.h"""
    _fields_ = _fields("p:data;i:batch head row col")


class AttentionDescriptor(_Descriptor):
    """struct sattn_attention of sattn/attention.h"""
    _fields_ = (_fields("i:size batch heads key_heads queries keys width value_width;d:scale softcap;"
                        "i:left right;j:diagonal storage flags threads;"
                        "p:key_length query_offset key_offset page;i:page_batch page_size")
                + [(name, _Array) for name in
                   "q k v bias mask slope sink out stats lse dout dlse dq dk dv dbias dsink".split()]
                + _fields("p:dscale work;i:work_bytes"))


class MergeDescriptor(_Descriptor):
    """struct sattn_merge of sattn/merge.h"""
    _fields_ = _fields(
        "i:size parts rows width;j:flags threads;p:part_out;i:part_out_row;p:part_stats;i:part_stats_row;"
        "p:out;i:out_row;p:stats;i:stats_row;p:dout;i:dout_row;p:dlse part_dout;i:part_dout_row;p:part_dlse")


def _view(name, array, shape):
    """An array as [B][H][rows][columns] of this shape; axes of length 1 are repeated."""
    try:
        array = np.broadcast_to(array, shape)
    except ValueError:
        raise ValueError(f"{name} has shape {array.shape}, not {shape}") from None
    if any(step % array.itemsize for step in array.strides):
        raise ValueError(f"the strides of {name} are not whole elements")
    strides = [step // array.itemsize for step in array.strides]
    return _Array(array.ctypes.data_as(_PTR), *strides)


def _rows(name, array, rows, width):
    """[.., rows, width] exactly: these axes are not repeated."""
    if array.shape[2:] != (rows, width):
        raise ValueError(f"{name} has rows and columns {array.shape[2:]}, not {(rows, width)}")


def _gradient_of(array, gradient):
    """A gradient [B][H][rows][columns] summed over the axes that `array` was repeated along, in its shape"""
    shape = np.shape(array)
    four = (1,) * (4 - len(shape)) + shape
    axes = tuple(i for i in range(4) if four[i] == 1 and gradient.shape[i] != 1)
    return gradient.sum(axes, keepdims=True).reshape(shape) if axes else gradient.reshape(shape)


def _four(array):
    return array.reshape((1,) * (4 - array.ndim) + array.shape) if array.ndim < 4 else array


class Attention:
    """scale None is 1 / sqrt(D); left and right count the keys that a query sees before and after the
    one that stands opposite, None = all; causal is right = 0; diagonal TOP_LEFT or BOTTOM_RIGHT."""

    def __init__(self, scale=None, softcap=0, left=None, right=None, causal=False, diagonal=TOP_LEFT,
                 threads=0):
        self.scale, self.softcap, self.diagonal, self.threads = scale, softcap, diagonal, threads
        self.left, self.right = left, 0 if causal else right

    def _call(self, q, k, v, bias=None, mask=None, slope=None, sink=None, key_length=None):
        p = AttentionDescriptor()
        keep = q, k, v = [_four(np.asarray(x)) for x in (q, k, v)]  # what the pointers point to
        if any(x.ndim != 4 for x in (q, k, v)):
            raise ValueError(f"q, k, v have shapes {q.shape}, {k.shape}, {v.shape}, not [B, H, rows, columns]")
        (b, h, m, d), (_, hk, n, _), e = q.shape, k.shape, v.shape[-1]
        _check(library.sattn_attention_init(ctypes.byref(p), _I64(ctypes.sizeof(p)),
                                            *map(_I64, (b, h, hk, m, n, d, e))))
        if self.scale is not None:
            p.scale = self.scale
        p.softcap, p.diagonal, p.threads = self.softcap, self.diagonal, self.threads
        p.left = -1 if self.left is None else self.left
        p.right = -1 if self.right is None else self.right
        p.storage = {np.dtype(np.uint16): BF16, np.dtype(np.float16): F16}.get(k.dtype, OWN)
        if v.dtype != k.dtype or (p.storage == OWN and k.dtype != q.dtype):
            raise ValueError(f"q, k, v are {q.dtype}, {k.dtype}, {v.dtype}")
        _rows("k", k, n, d)
        _rows("v", v, n, e)
        p.q, p.k = _view("q", q, q.shape), _view("k", k, (b, hk, n, d))
        p.v = _view("v", v, (b, hk, n, e))
        for name, x, shape, dtype in (("bias", bias, (b, h, m, n), q.dtype),
                                      ("mask", mask, (b, h, m, n), np.uint8)):
            if x is not None:
                x = np.asarray(x)
                if name == "mask":
                    x = x if x.dtype in (bool, np.uint8) else x != 0  # 0.5 and 256 are not 0
                    x = x.view(np.uint8)
                x = np.asarray(x, dtype)
                keep.append(x)
                setattr(p, name, _view(name, x, shape))
        for name, x in (("slope", slope), ("sink", sink)):
            if x is not None:
                x = np.asarray(x, q.dtype)
                keep.append(x)
                setattr(p, name, _view(name, x[..., None, None], (b, h, 1, 1)))
        if key_length is not None:
            lengths = np.ascontiguousarray(np.broadcast_to(_integers("key_length", key_length), (b,)))
            keep.append(lengths)
            p.key_length = lengths.ctypes.data_as(_PTR)
        return p, q.dtype, (b, h, m, n, d, e, hk), keep

    def forward(self, q, k, v, **arrays):
        """-> out [B, H, M, E], stats [B, H, M, 2], lse [B, H, M], without the axes that q left out.
        Arrays: bias, mask (bool) [B, H, M, N]; slope, sink [B, H]; key_length [B]."""
        p, dtype, (b, h, m, _, _, e, _), keep = self._call(q, k, v, **arrays)
        r = SimpleNamespace(out=np.empty((b, h, m, e), dtype), stats=np.empty((b, h, m, 2), dtype),
                            lse=np.empty((b, h, m, 1), dtype))
        for name, x in vars(r).items():
            setattr(p, name, _view(name, x, x.shape))
        _check(_typed("sattn_attention_forward", dtype)(ctypes.byref(p)))
        lead = np.asarray(q).shape[:-1]
        r.out, r.stats, r.lse = r.out.reshape(lead + (e,)), r.stats.reshape(lead + (2,)), r.lse.reshape(lead)
        del keep
        return r

    def backward(self, q, k, v, result, dout=None, dlse=None, **arrays):
        """Gradients of <dout, out> + <dlse, lse> by name: "q", "k", "v", "scale", and "bias" and "sink" if
        they are given: of the shape given, summed over what it repeats."""
        p, dtype, (b, h, m, n, d, e, hk), keep = self._call(q, k, v, **arrays)
        given = {"out": (result.out, e), "stats": (result.stats, 2), "dout": (dout, e)}
        for name, (x, width) in given.items():
            if x is not None:
                x = _four(np.asarray(x, dtype))
                keep.append(x)
                setattr(p, name, _view(name, x, (b, h, m, width)))
        if dlse is not None:
            x = np.asarray(dlse, dtype)
            keep.append(x)
            p.dlse = _view("dlse", _four(x[..., None]), (b, h, m, 1))
        g = {"q": np.empty((b, h, m, d), dtype), "k": np.empty((b, hk, n, d), dtype),
             "v": np.empty((b, hk, n, e), dtype), "scale": np.empty((), dtype)}
        for name in "qkv":
            setattr(p, "d" + name, _view(name, g[name], g[name].shape))
        p.dscale = g["scale"].ctypes.data_as(_PTR)
        for name, shape in (("bias", (b, h, m, n)), ("sink", (b, h, 1, 1))):
            if arrays.get(name) is not None:
                g[name] = np.empty(np.shape(arrays[name]), dtype)
                x = g[name] if name == "bias" else g[name][..., None, None]
                setattr(p, "d" + name, _view(name, x, shape))
        _check(_typed("sattn_attention_backward", dtype)(ctypes.byref(p)))
        for name, x in (("q", q), ("k", k), ("v", v)):
            g[name] = _gradient_of(x, g[name])
        return g


def _merge_call(parts):
    outs = [np.ascontiguousarray(part.out) for part in parts]
    if not outs:
        raise ValueError("no parts")
    dtype, shape = outs[0].dtype, outs[0].shape
    stats = [np.ascontiguousarray(part.stats, dtype) for part in parts]
    for out, pair in zip(outs, stats):
        if out.shape != shape or out.dtype != dtype or pair.shape != shape[:-1] + (2,):
            raise ValueError(f"parts of shapes {out.shape} and {pair.shape}")
    p, rows = MergeDescriptor(), int(np.prod(shape[:-1]))
    _check(library.sattn_merge_init(ctypes.byref(p), _I64(ctypes.sizeof(p)),
                                    *map(_I64, (len(outs), rows, shape[-1]))))
    keep = [outs, stats]
    p.part_out, p.part_stats = _pointers(outs, keep), _pointers(stats, keep)
    return p, dtype, shape, keep


def _pointers(arrays, keep):
    table = (_PTR * len(arrays))(*(x.ctypes.data for x in arrays))
    keep.append(table)
    return ctypes.cast(table, _PTR)


def merge(parts):
    """The union of partial results over disjoint keys, each with out [.., E] and stats [.., 2]: -> one
    with out, stats, lse. A mixture's result joins as `as_part` makes it."""
    p, dtype, shape, keep = _merge_call(parts)
    r = SimpleNamespace(out=np.empty(shape, dtype), stats=np.empty(shape[:-1] + (2,), dtype))
    p.out, p.stats = r.out.ctypes.data_as(_PTR), r.stats.ctypes.data_as(_PTR)
    _check(_typed("sattn_merge_forward", dtype)(ctypes.byref(p)))
    r.lse = r.stats.sum(-1)
    del keep
    return r


def merge_backward(parts, result, dout=None, dlse=None):
    """-> for each part the cotangents (dout, dlse) that its own backward pass takes (a mixture: dcgf)"""
    p, dtype, shape, keep = _merge_call(parts)
    given = {"out": result.out, "stats": result.stats, "dout": dout, "dlse": dlse}
    shapes = {"out": shape, "stats": shape[:-1] + (2,), "dout": shape, "dlse": shape[:-1]}
    for name, x in given.items():
        if x is not None:
            x = np.ascontiguousarray(x, dtype)
            if x.shape != shapes[name]:
                raise ValueError(f"{name} has shape {x.shape}, not {shapes[name]}")
            keep.append(x)
            setattr(p, name, x.ctypes.data_as(_PTR))
    douts, dlses = ([np.empty(shapes[n], dtype) for _ in parts] for n in ("dout", "dlse"))
    p.part_dout, p.part_dlse = _pointers(douts, keep), _pointers(dlses, keep)
    _check(_typed("sattn_merge_backward", dtype)(ctypes.byref(p)))
    return list(zip(douts, dlses))


def as_part(result):
    """A result of mixture attention as a part of a union: exact tokens beside a summary of the rest. The
    mixture's log weights must count tokens (log of their number), its tilt be scale q."""
    return SimpleNamespace(out=result.out, stats=np.stack([result.cgf, np.zeros_like(result.cgf)], -1))
