# SPDX-License-Identifier: BSD-2-Clause
"""Hybrid attention: some tokens exactly, a Gaussian mixture for the rest, with an error a query.

    result = sattn.hybrid(q, k, v, mixture, causal=True)        # -> out, stats, lse, error, guarded
    gradient, of_mixture = sattn.hybrid_backward(q, k, v, mixture, result, dout=g, causal=True)

The mixture's log weights are logarithms of counts. It has no batch axis (one for all heads) or one of B Hk."""
import ctypes
from types import SimpleNamespace

import numpy as np

from sattn import _I64, _PTR, _Descriptor, _check, _fields, _pointer, _typed, library
from sattn.attention import Attention, _Array, _four, _gradient_of, _view

_ARRAYS = ("bias", "mask", "slope", "sink", "key_length")


class HybridDescriptor(_Descriptor):
    """struct sattn_hybrid of sattn/hybrid.h"""
    _fields_ = (_fields("i:size;p:attention mixture;d:guard;p:limit;i:limit_batch")
                + [("error", _Array), ("guarded", _Array)])


def _call(q, k, v, mixture, guard, limit, options):
    arrays = {name: options.pop(name) for name in _ARRAYS if name in options}
    a, dtype, (b, h, m, n, d, e, hk), keep = Attention(**options)._call(q, k, v, **arrays)
    if mixture.dtype != dtype:
        raise ValueError(f"q is {dtype}, the mixture {mixture.dtype}")
    c, _ = mixture.parameters["mean"].shape[-2:]
    rest, _, _ = mixture._call(np.empty((b * hk, 0, d), dtype), 0)
    p = HybridDescriptor()
    _check(library.sattn_hybrid_init(ctypes.byref(p), _I64(ctypes.sizeof(p)), ctypes.byref(a),
                                     ctypes.byref(rest)))
    p.guard = -1 if guard is None else guard
    if limit is not None:
        limit = np.ascontiguousarray(np.broadcast_to(np.asarray(limit, dtype), (b * hk, c)))
        keep.append(limit)
        p.limit = _pointer(limit)
    keep += [a, rest]
    return p, a, rest, dtype, (b, h, m, n, d, e, hk), keep


def hybrid(q, k, v, mixture, guard=0, limit=None, **options):
    """-> out [.., M, E], stats [.., M, 2], lse, error, guarded [.., M]. guard: a component's limit on u'Su is
    guard log n (0 = 2, None = no limit); limit [C] or [B Hk, C] in its place (0: the mean answers). Options:
    those of Attention and, as arrays, of its forward, for the exact tokens."""
    p, a, rest, dtype, (b, h, m, _, _, e, _), keep = _call(q, k, v, mixture, guard, limit, options)
    r = SimpleNamespace(out=np.empty((b, h, m, e), dtype), stats=np.empty((b, h, m, 2), dtype))
    for name in ("lse", "error", "guarded"):
        setattr(r, name, np.empty((b, h, m, 1), dtype))
    for name, x in vars(r).items():
        setattr(p if name in ("error", "guarded") else a, name, _view(name, x, x.shape))
    _check(_typed("sattn_hybrid_forward", dtype)(ctypes.byref(p)))
    lead = np.asarray(q).shape[:-1]
    r.out, r.stats = r.out.reshape(lead + (e,)), r.stats.reshape(lead + (2,))
    for name in ("lse", "error", "guarded"):
        setattr(r, name, getattr(r, name).reshape(lead))
    del keep
    return r


def hybrid_backward(q, k, v, mixture, result, dout=None, dlse=None, guard=0, limit=None, **options):
    """Gradients of <dout, out> + <dlse, lse>: by name "q", "k", "v", "scale"; and those of the mixture."""
    p, a, rest, dtype, (b, h, m, n, d, e, hk), keep = _call(q, k, v, mixture, guard, limit, options)
    given = {"out": (result.out, e), "stats": (result.stats, 2), "dout": (dout, e),
             "dlse": (None if dlse is None else np.asarray(dlse)[..., None], 1)}
    for name, (x, width) in given.items():
        if x is not None:
            x = _four(np.asarray(x, dtype))
            keep.append(x)
            setattr(a, name, _view(name, x, (b, h, m, width)))
    g = {"q": np.empty((b, h, m, d), dtype), "k": np.empty((b, hk, n, d), dtype),
         "v": np.empty((b, hk, n, e), dtype), "scale": np.empty((), dtype)}
    for name in "qkv":
        setattr(a, "d" + name, _view(name, g[name], g[name].shape))
    a.dscale = g["scale"].ctypes.data_as(_PTR)
    of_mixture = {name: np.empty_like(x) for name, x in mixture.parameters.items() if x is not None}
    for name, x in of_mixture.items():
        setattr(rest, "d" + name, _pointer(x))
    _check(_typed("sattn_hybrid_backward", dtype)(ctypes.byref(p)))
    for name, x in (("q", q), ("k", k), ("v", v)):
        g[name] = _gradient_of(x, g[name])
    return g, of_mixture
