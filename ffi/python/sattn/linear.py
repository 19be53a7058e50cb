# SPDX-License-Identifier: BSD-2-Clause
"""Linear attention: plain or normalised, over all keys or causal, with a state that runs through a sequence.

    attend = sattn.LinearAttention("elu", causal=True, normalised=True)
    first = attend.forward(q1, k1, v1)                      # [.., M, D], [.., N, D], [.., N, E]
    second = attend.forward(q2, k2, v2, state=first.state)  # goes on where the first ended
    gradient = attend.backward(q1, k1, v1, first, dout=g)   # -> gradient["q"], ["k"], ["v"]"""
import ctypes
from types import SimpleNamespace

import numpy as np

from sattn import _I64, _Descriptor, _check, _fields, _typed, library
from sattn.attention import _Array, _four, _gradient_of, _rows, _view

FEATURES = {"identity": 0, "elu": 1, "relu": 2, "exp": 3}
_CAUSAL, _NORMALISED, _MEAN = 2, 4, 8


class LinearDescriptor(_Descriptor):
    """struct sattn_linear of sattn/linear.h"""
    _fields_ = (_fields("i:size batch heads queries keys width value_width;d:scale eps;i:seen;"
                        "j:feature flags threads reserved")
                + [(name, _Array) for name in
                   ("q k v sum key_sum out den sum_out key_sum_out dout dsum_out dkey_sum_out "
                    "dq dk dv dsum dkey_sum").split()]
                + _fields("p:work;i:work_bytes"))


class LinearAttention:
    """feature: "identity", "elu" (+ 1), "relu" or "exp"; mean divides the plain form by the number of keys
    that a query sees; scale is a factor of the plain form, eps is added to the normalised form's divisor."""

    def __init__(self, feature="identity", causal=False, normalised=False, mean=False, scale=1.0, eps=0.0,
                 threads=0):
        self.feature, self.scale, self.eps, self.threads = FEATURES[feature], scale, eps, threads
        self.flags = _CAUSAL * causal | _NORMALISED * normalised | _MEAN * mean

    def _call(self, q, k, v, state):
        q, k, v = (_four(np.asarray(x)) for x in (q, k, v))
        if not q.dtype == k.dtype == v.dtype:
            raise TypeError(f"q, k, v are {q.dtype}, {k.dtype}, {v.dtype}")
        (b, h, m, d), n, e = q.shape, k.shape[2], v.shape[-1]
        _rows("k", k, n, d)
        _rows("v", v, n, e)
        p = LinearDescriptor()
        _check(library.sattn_linear_init(ctypes.byref(p), _I64(ctypes.sizeof(p)),
                                         *map(_I64, (b, h, m, n, d, e))))
        p.feature, p.flags, p.threads = self.feature, self.flags, self.threads
        p.scale, p.eps = self.scale, self.eps
        keep = [q, k, v]
        for name, x, shape in (("q", q, q.shape), ("k", k, (b, h, n, d)), ("v", v, (b, h, n, e))):
            setattr(p, name, _view(name, x, shape))
        if state is not None:
            p.seen = state.seen
            self._set_state(p, ("sum", "key_sum"), state, q.dtype, keep)
        return p, q.dtype, (b, h, m, n, d, e), keep

    def _set_state(self, p, members, state, dtype, keep):
        """`sum` [B, H, D, E] and, normalised, `key_sum` [B, H, D, 1] of a state or of its cotangents"""
        shapes = (p.batch, p.heads, p.width, p.value_width), (p.batch, p.heads, p.width, 1)
        for name, member, shape in zip(("sum", "key_sum"), members, shapes):
            x = getattr(state, name, None)
            if x is None or (name == "key_sum" and not self.flags & _NORMALISED):
                continue
            x = np.asarray(x)
            if x.dtype != dtype:
                raise TypeError(f"the state is {x.dtype}, q is {dtype}")
            keep.append(x)
            setattr(p, member, _view(member, x, shape))

    def forward(self, q, k, v, state=None):
        """-> out like q with E columns, den (normalised), and the state after all keys"""
        p, dtype, (b, h, m, n, d, e), keep = self._call(q, k, v, state)
        out, total = np.empty((b, h, m, e), dtype), np.empty((b, h, d, e), dtype)
        den, keys = (np.empty((b, h, rows, 1), dtype) for rows in (m, d))
        p.out, p.sum_out = _view("out", out, out.shape), _view("sum", total, total.shape)
        if self.flags & _NORMALISED:
            p.den, p.key_sum_out = _view("den", den, den.shape), _view("key_sum", keys, keys.shape)
        _check(_typed("sattn_linear_forward", dtype)(ctypes.byref(p)))
        del keep
        after = SimpleNamespace(sum=total, key_sum=keys, seen=n + (state.seen if state else 0))
        return SimpleNamespace(out=out.reshape(np.shape(q)[:-1] + (e,)), den=den, state=after)

    def backward(self, q, k, v, result, dout=None, state=None, dstate=None):
        """Gradients of <dout, out> + <dstate.sum, state.sum> (+ the same of key_sum; the state after all keys)
        by name: "q", "k", "v", and "sum" (and "key_sum") of the state in"""
        p, dtype, (b, h, m, n, d, e), keep = self._call(q, k, v, state)
        given = {"out": (result.out, e), "dout": (dout, e)}
        if self.flags & _NORMALISED:
            given["den"] = (result.den, 1)
        for name, (x, width) in given.items():
            if x is not None:
                x = _four(np.asarray(x, dtype))
                keep.append(x)
                setattr(p, name, _view(name, x, (b, h, m, width)))
        if dstate is not None:
            self._set_state(p, ("dsum_out", "dkey_sum_out"), dstate, dtype, keep)
        g = {"q": np.empty((b, h, m, d), dtype), "k": np.empty((b, h, n, d), dtype),
             "v": np.empty((b, h, n, e), dtype), "sum": np.empty((b, h, d, e), dtype)}
        if self.flags & _NORMALISED:
            g["key_sum"] = np.empty((b, h, d, 1), dtype)
        for name, x in g.items():
            setattr(p, "d" + name, _view(name, x, x.shape))
        _check(_typed("sattn_linear_backward", dtype)(ctypes.byref(p)))
        for name, x in (("q", q), ("k", k), ("v", v)):
            g[name] = _gradient_of(x, g[name])
        return g
