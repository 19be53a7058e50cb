# SPDX-License-Identifier: BSD-2-Clause
"""libsattn from Python, by ctypes and NumPy: exp, softmax, random numbers, mixture attention, fitting.

Arrays of float32 or float64 choose the function; everything is computed in that type. The library is found
by the environment's SATTN_LIBRARY, or as libsattn.so.0 by the loader. Errors raise SattnError.

    mixture = sattn.Mixture(log_weight, mean, covariance)       # [C], [C, D], [C, D] or [C, D, D]
    result = mixture.forward(u)                                 # u [M, D] -> result.out, result.cgf
    gradient = mixture.backward(u, result, dout=g)              # -> gradient["tilt"], ["mean"], ...
"""
import ctypes
import operator
import os
from types import SimpleNamespace

import numpy as np

library = ctypes.CDLL(os.environ.get("SATTN_LIBRARY", "libsattn.so.0"))
library.sattn_status_string.restype = ctypes.c_char_p
library.sattn_version_string.restype = ctypes.c_char_p
library.sattn_build_info.restype = ctypes.c_char_p
library.sattn_isa_name.restype = ctypes.c_char_p
_F64, _PTR = ctypes.c_double, ctypes.c_void_p

ZERO, DIAG, FULL, ISOTROPIC, CHOLESKY, LOW_RANK = range(6)
ACCUMULATE, SHARED_COVARIANCE = 1, 2


class SattnError(ValueError):
    def __init__(self, status):
        super().__init__(library.sattn_status_string(_I32(status)).decode())
        self.status = status


def _whole(value, kind, name="argument"):
    """A number of a C type of integers: ctypes itself would wrap one that is too large."""
    value = operator.index(value)
    if kind(value).value != value:
        raise OverflowError(f"{name} is {value}")
    return value


def _I64(value=0):
    return ctypes.c_int64(_whole(value, ctypes.c_int64))


def _I32(value=0):
    return ctypes.c_int32(_whole(value, ctypes.c_int32))


def _U64(value=0):
    return ctypes.c_uint64(_whole(value, ctypes.c_uint64))


def _integers(name, array):
    """An array of whole numbers as int64"""
    array = np.asarray(array)
    if array.dtype.kind not in "iu" or (array.dtype.kind == "u" and array.size and array.max() > 2**63 - 1):
        raise TypeError(f"{name} are no integers of 64 bits: {array.dtype!r}")
    return array.astype(np.int64)


class _Descriptor(ctypes.Structure):
    """A structure whose members of integers are never cut or wrapped"""

    def __init_subclass__(cls):
        cls._integer = {name: kind for name, kind in cls._fields_
                        if kind in (ctypes.c_int64, ctypes.c_int32, ctypes.c_uint64)}

    def __setattr__(self, name, value):
        if name in self._integer:
            value = _whole(value, self._integer[name], name)
        super().__setattr__(name, value)


def _check(status):
    if status != 0:
        raise SattnError(status)


def _typed(name, dtype):
    dtype = np.dtype(dtype)
    suffix = {np.dtype(np.float32): "_f32", np.dtype(np.float64): "_f64"}.get(dtype)
    if suffix is None:  # the other byte order too
        raise TypeError(f"{name}: arrays of {dtype!r}, not of native float32 or float64")
    return getattr(library, name + suffix)


def _pointer(array):
    return None if array is None else array.ctypes.data_as(_PTR)


def version():
    return library.sattn_version_string().decode()


def build_info():
    return library.sattn_build_info().decode()


def isa():
    return library.sattn_isa_name(_I32(library.sattn_isa())).decode()


def isas():
    """Names of the instruction sets that this processor and build can run"""
    return [library.sattn_isa_name(_I32(i)).decode() for i in range(16) if library.sattn_isa_available(_I32(i))]


def set_isa(name):
    """Chooses one of isas() for the process; the results are the same bits."""
    found = [i for i in range(16) if library.sattn_isa_available(_I32(i)) and
             library.sattn_isa_name(_I32(i)).decode() == name]
    if not found:
        raise ValueError(f"no instruction set {name}; there are {isas()}")
    _check(library.sattn_isa_set(_I32(found[0])))


def get_threads():
    return library.sattn_get_num_threads()


def set_threads(count):
    """For the process: what calls use that do not say; 0 = the default"""
    _check(library.sattn_set_num_threads(_I32(count)))


def exp(x, threads=0):
    x = np.asarray(x, order="C")
    y = np.empty_like(x)
    _check(_typed("sattn_exp", x.dtype)(_I64(x.size), _pointer(x), _I64(1), _pointer(y), _I64(1),
                                        _I32(threads)))
    return y[()]


def normal(seed, stream, first, n, dtype=np.float64):
    x = np.empty(n, dtype)
    _check(_typed("sattn_random_normal", dtype)(_U64(seed), _U64(stream),
                                                _I64(first), _I64(n), _pointer(x)))
    return x


def words(seed, stream, first, n):
    """Words of the generator, uint32"""
    x = np.empty(max(n, 0), np.uint32)
    _check(library.sattn_random_words(_U64(seed), _U64(stream), _I64(first), _I64(n),
                                      _pointer(x)))
    return x


def uniform(seed, stream, first, n):
    """Uniform numbers in (0, 1]"""
    x = np.empty(max(n, 0))
    _check(library.sattn_random_uniform_f64(_U64(seed), _U64(stream), _I64(first), _I64(n),
                                            _pointer(x)))
    return x


def categorical(seed, stream, first, n, log_weight):
    """Classes drawn with weights exp(log_weight), int32"""
    log_weight, x = np.ascontiguousarray(log_weight, np.float64), np.empty(max(n, 0), np.int32)
    _check(library.sattn_random_categorical(_U64(seed), _U64(stream), _I64(first), _I64(n),
                                            _I64(log_weight.size), _pointer(log_weight), _pointer(x)))
    return x


def sphere(seed, stream, first, n, width, radius=1.):
    """Uniform points of the sphere of a radius in R^width -> [n, width]"""
    x = np.empty((max(n, 0), max(width, 0)))
    _check(library.sattn_random_sphere_f64(_U64(seed), _U64(stream), _I64(first), _I64(n),
                                           _I64(width), _F64(radius), _pointer(x)))
    return x


def _rule(call, n, *more):
    node, weight = np.empty(max(n, 0)), np.empty(max(n, 0))
    _check(call(_I64(n), *more, _pointer(node), _pointer(weight)))
    return node, weight


def hermite(order):
    """Nodes and weights of Gauss and Hermite for expectations over a standard normal"""
    return _rule(library.sattn_quadrature_hermite, order)


def trapezoid(n, reach):
    """The same by the trapezoid rule on [-reach, reach]"""
    return _rule(library.sattn_quadrature_trapezoid, n, _F64(reach))


def _fields(text):
    kinds = {"i": ctypes.c_int64, "j": ctypes.c_int32, "p": _PTR, "d": _F64, "u": ctypes.c_uint64}
    return [(name, kinds[kind]) for kind, names in (part.split(":") for part in text.split(";"))
            for name in names.split()]


class MixtureDescriptor(_Descriptor):
    """struct sattn_mixture of sattn/mixture.h"""
    _fields_ = _fields(
        "i:size batch queries components width value_width;j:covariance_kind flags threads rank;"
        "p:tilt;i:tilt_batch tilt_row;p:log_weight;i:log_weight_batch;p:mean;i:mean_batch;"
        "p:covariance;i:covariance_batch;p:value_mean;i:value_mean_batch;p:cross;i:cross_batch;"
        "p:out;i:out_batch out_row;p:stats;i:stats_batch;p:cgf;i:cgf_batch;"
        "p:weight;i:weight_batch weight_row;p:dout;i:dout_batch dout_row;p:dcgf;i:dcgf_batch;"
        "p:dtilt;i:dtilt_batch dtilt_row;p:dlog_weight dmean dcovariance dvalue_mean dcross work;"
        "i:work_bytes")


def _shaped(name, array, shape):
    """Pointers carry no shape: one that does not fit would be read past its end."""
    if array.shape[-len(shape):] != shape or array.ndim > len(shape) + 1:
        raise ValueError(f"{name} has shape {array.shape}, not {shape} with at most a batch before it")


def low_rank(variance, factor):
    """variance [.., D] and factor [.., D, rank] as one array [.., D (1 + rank)] of kind LOW_RANK"""
    factor = np.asarray(factor)
    return np.concatenate([variance, factor.reshape(factor.shape[:-2] + (-1,))], axis=-1)


class Mixture:
    """A Gaussian mixture as an infinite prompt. Arrays may have a leading batch axis B; one that has none
    is shared by the batch, and its gradient is the sum over it.

    log_weight [C], mean [C, D], covariance None, [C, D] (diagonal) or [C, D, D] (symmetric);
    with `kind`: ISOTROPIC [C, 1], CHOLESKY [C, D, D] (its lower triangle), LOW_RANK as low_rank() packs it;
    with `shared`, one covariance for all components, the axis C is left out (and `kind` is needed);
    for joint blocks value_mean [C, E] and cross None or [C, E, D]."""

    def __init__(self, log_weight, mean, covariance=None, value_mean=None, cross=None, kind=None, shared=False):
        self.parameters = {
            name: None if a is None else np.ascontiguousarray(a, np.asarray(mean).dtype)
            for name, a in (("log_weight", log_weight), ("mean", mean), ("covariance", covariance),
                            ("value_mean", value_mean), ("cross", cross))}
        given = {n: a for n, a in self.parameters.items() if a is not None}
        self.dtype = given["mean"].dtype
        if given["mean"].ndim < 2:
            raise ValueError(f"mean has shape {given['mean'].shape}, not [C, D]")
        c, d = given["mean"].shape[-2:]
        e = given["value_mean"].shape[-1] if "value_mean" in given else 0
        if cross is not None and value_mean is None:
            raise ValueError("cross needs value_mean")
        s = self.parameters["covariance"]
        if shared and kind is None:
            raise ValueError("a shared covariance needs its kind")
        if s is None and kind not in (None, ZERO):
            raise ValueError("this kind needs a covariance")
        self.kind = ZERO if s is None else self._kind(s, c, d) if kind is None else kind
        self.flags = SHARED_COVARIANCE if shared else 0
        self.rank = s.shape[-1] // d - 1 if self.kind == LOW_RANK and d else 0
        layout = {ZERO: (), DIAG: (d,), FULL: (d, d), ISOTROPIC: (1,), CHOLESKY: (d, d),
                  LOW_RANK: (d * (1 + self.rank),)}[self.kind]
        shapes = {"log_weight": (c,), "mean": (c, d), "value_mean": (c, e), "cross": (c, e, d),
                  "covariance": layout if shared else (c,) + layout}
        for name, a in given.items():
            _shaped(name, a, shapes[name])
        self.batched = {n: n in given and given[n].ndim > len(shape) for n, shape in shapes.items()}
        batches = {given[n].shape[0] for n in given if self.batched[n]}
        if len(batches) > 1:
            raise ValueError(f"parameters have batches of {sorted(batches)}")
        self.batch = batches.pop() if batches else None

    @staticmethod
    def _kind(covariance, c, d):
        """[B, C, D] with B = C and C = D looks like [C, D, D]: it is taken as full."""
        return FULL if covariance.ndim == 4 or covariance.shape == (c, d, d) else DIAG

    def _call(self, tilt, threads):
        p = MixtureDescriptor()
        c, d = self.parameters["mean"].shape[-2:]
        if tilt.ndim not in (2, 3) or tilt.shape[-1] != d:
            raise ValueError(f"tilt has shape {tilt.shape}, not [.., M, {d}]")
        if self.batch is not None and (tilt.ndim < 3 or tilt.shape[0] != self.batch):
            raise ValueError(f"tilt has shape {tilt.shape}, not [{self.batch}, M, {d}]")
        value = self.parameters["value_mean"]
        e = 0 if value is None else value.shape[-1]
        batch, queries = (1,) * (3 - tilt.ndim) + tilt.shape[:-1]
        _check(library.sattn_mixture_init(
            ctypes.byref(p), _I64(ctypes.sizeof(p)), _I64(batch), _I64(queries), _I64(c), _I64(d),
            _I64(e), _I32(self.kind)))
        p.tilt, p.threads, p.flags, p.rank = _pointer(tilt), threads, self.flags, self.rank
        for name, a in self.parameters.items():
            setattr(p, name, _pointer(a))
            setattr(p, name + "_batch", int(np.prod(a.shape[1:])) if self.batched[name] else 0)
        return p, tilt.shape[:-1], e or d

    def forward(self, tilt, weights=False, threads=0):
        """-> out [.., M, E], cgf [.., M], stats [.., M, 2], weight [.., M, C] or None"""
        tilt = np.ascontiguousarray(tilt, self.dtype)
        p, shape, e = self._call(tilt, threads)
        r = SimpleNamespace(out=np.empty(shape + (e,), self.dtype), cgf=np.empty(shape, self.dtype),
                            stats=np.empty(shape + (2,), self.dtype), weight=None)
        if weights:
            r.weight = np.empty(shape + (p.components,), self.dtype)
        for name, a in vars(r).items():
            setattr(p, name, _pointer(a))
        _check(_typed("sattn_mixture_forward", self.dtype)(ctypes.byref(p)))
        return r

    def backward(self, tilt, result, dout=None, dcgf=None, threads=0):
        """Gradients of <dout, out> + <dcgf, cgf> by name: "tilt", "log_weight", "mean", ..."""
        tilt = np.ascontiguousarray(tilt, self.dtype)
        p, shape, e = self._call(tilt, threads)
        p, kept = self._cotangents(p, shape, e, result, dout, dcgf)
        return self._differentiate("sattn_mixture_backward", p, tilt)

    def _differentiate(self, name, p, tilt):
        gradient = {"tilt": np.empty_like(tilt)}
        gradient.update((n, np.empty_like(a)) for n, a in self.parameters.items() if a is not None)
        for member, a in gradient.items():
            setattr(p, "d" + member, _pointer(a))
        _check(_typed(name, self.dtype)(ctypes.byref(p)))
        return gradient

    def _cotangents(self, p, shape, e, result, dout, dcgf):
        """Sets what backward reads; -> p and the arrays that must live as long"""
        given = dict(out=result.out, stats=result.stats, dout=dout, dcgf=dcgf)
        given = {n: None if a is None else np.ascontiguousarray(a, self.dtype) for n, a in given.items()}
        shapes = dict(out=shape + (e,), stats=shape + (2,), dout=shape + (e,), dcgf=shape)
        for name, a in given.items():
            if a is not None and a.shape != shapes[name]:
                raise ValueError(f"{name} has shape {a.shape}, not {shapes[name]}")
        for name, a in given.items():
            setattr(p, name, _pointer(a))
        return p, given

    def linear(self, tilt, threads=0):
        """out [.., M, E] of linear attention's limit: sum pi_c (S_c + m_c m_c') u"""
        tilt = np.ascontiguousarray(tilt, self.dtype)
        p, shape, e = self._call(tilt, threads)
        out = np.empty(shape + (e,), self.dtype)
        p.out = _pointer(out)
        _check(_typed("sattn_mixture_linear_forward", self.dtype)(ctypes.byref(p)))
        return out

    def linear_backward(self, tilt, dout, threads=0):
        """Gradients of <dout, out> by name, as of backward"""
        tilt = np.ascontiguousarray(tilt, self.dtype)
        dout = np.ascontiguousarray(dout, self.dtype)
        p, shape, e = self._call(tilt, threads)
        if dout.shape != shape + (e,):
            raise ValueError(f"dout has shape {dout.shape}, not {shape + (e,)}")
        p.dout = _pointer(dout)
        return self._differentiate("sattn_mixture_linear_backward", p, tilt)

    def second(self, tilt, result, direction, dout=None, dcgf=None, threads=0):
        """-> (jvp, hvp) along direction [.., M, D]: of out, and of the gradient of <dout, out> + <dcgf, cgf> in u"""
        tilt = np.ascontiguousarray(tilt, self.dtype)
        p, shape, e = self._call(tilt, threads)
        p, kept = self._cotangents(p, shape, e, result, dout, dcgf)
        direction = np.ascontiguousarray(direction, self.dtype)
        if direction.shape != tilt.shape:
            raise ValueError(f"direction has shape {direction.shape}, not {tilt.shape}")
        jvp, hvp = np.empty(shape + (e,), self.dtype), np.empty_like(tilt)
        _check(_typed("sattn_mixture_second", self.dtype)(
            ctypes.byref(p), _pointer(direction), _pointer(jvp), _pointer(hvp)))
        return jvp, hvp


def quadratic(mixture, p):
    """The mixture that stands for scores u.y - y'p y / 2, p [D, D]; of one without batch, of kind FULL"""
    l, m, s = (mixture.parameters[n] for n in ("log_weight", "mean", "covariance"))
    if mixture.kind != FULL or mixture.flags or mixture.batch is not None or mixture.parameters["value_mean"] is not None:
        raise ValueError("quadratic wants full covariances of each component, values = keys, no batch")
    p = np.ascontiguousarray(p, mixture.dtype)
    _shaped("p", p, m.shape[1:] * 2)
    to = [np.empty_like(a) for a in (l, m, s)]
    _check(_typed("sattn_quadratic", mixture.dtype)(_I64(m.shape[0]), _I64(m.shape[1]), *map(_pointer, [l, m, s, p] + to)))
    return Mixture(*to)


def prompt_error(mixture, tilt, value_map=None, threads=0):
    """L times mean squared error, bias and log-sum-exp's variance of softmax attention to L tokens of the mixture:
    mse [.., M], bias [.., M, E], lse_variance [.., M]; value_map [E, D]"""
    tilt = np.ascontiguousarray(tilt, mixture.dtype)
    p, shape, e = mixture._call(tilt, threads)
    if value_map is not None:
        value_map = np.ascontiguousarray(value_map, mixture.dtype)
        _shaped("value_map", value_map, (value_map.shape[0], tilt.shape[-1]))
        e = len(value_map)
    r = SimpleNamespace(mse=np.empty(shape, tilt.dtype), bias=np.empty(shape + (e,), tilt.dtype),
                        lse_variance=np.empty(shape, tilt.dtype))
    _check(_typed("sattn_prompt_error", mixture.dtype)(
        ctypes.byref(p), _pointer(value_map), _I64(e), *map(_pointer, (r.mse, r.bias, r.lse_variance))))
    return r


class TiltDescriptor(_Descriptor):
    """struct sattn_tilt of sattn/tilt.h"""
    _fields_ = _fields(
        "i:size batch queries query_width width;j:flags threads;d:scale;p:query;i:query_batch query_row;"
        "p:map;i:map_batch;p:offset;i:offset_batch;p:tilt;i:tilt_batch tilt_row;p:dtilt;"
        "i:dtilt_batch dtilt_row;p:dquery;i:dquery_batch dquery_row;p:dmap doffset dscale")


def _tilt(query, map, offset, scale, transposed, threads):
    query = np.ascontiguousarray(query)
    map = np.ascontiguousarray(map, query.dtype)
    n, d = map.shape[-2:][::-1] if transposed else map.shape[-2:]
    batch, m = (1,) * (3 - query.ndim) + query.shape[:-1]
    _shaped("query", query, (m, n))
    _shaped("map", map, map.shape[-2:])
    p = TiltDescriptor()
    _check(library.sattn_tilt_init(ctypes.byref(p), _I64(ctypes.sizeof(p)), _I64(batch), _I64(m), _I64(n), _I64(d)))
    if offset is not None:
        offset = np.ascontiguousarray(offset, query.dtype)
        _shaped("offset", offset, (d,))
    for name, a, axes in (("map", map, 2), ("offset", offset, 1)):
        if a is None or a.ndim == axes:
            setattr(p, name + "_batch", 0)
        elif len(a) != batch:
            raise ValueError(f"{name} has a batch of {len(a)}, not {batch}")
    p.query, p.map, p.offset, p.scale, p.threads = _pointer(query), _pointer(map), _pointer(offset), scale, threads
    p.flags = 4 if transposed else 0
    return p, query, map, offset, query.shape[:-1] + (d,)


def tilt(query, map, offset=None, scale=1.0, transposed=False, threads=0):
    """scale query @ map + offset: query [.., M, Dq], map [Dq, D] or [B, Dq, D] (`transposed`: [D, Dq], the
    value map), offset [D] or [B, D]"""
    p, query, map, offset, shape = _tilt(query, map, offset, scale, transposed, threads)
    u = np.empty(shape, query.dtype)
    p.tilt = _pointer(u)
    _check(_typed("sattn_tilt_forward", u.dtype)(ctypes.byref(p)))
    return u


def tilt_backward(query, map, dtilt, offset=None, scale=1.0, transposed=False, threads=0):
    """Gradients by name: "query", "map", "scale", and "offset" if there is one"""
    p, query, map, offset, shape = _tilt(query, map, offset, scale, transposed, threads)
    dtilt = np.ascontiguousarray(dtilt, query.dtype)
    if dtilt.shape != shape:
        raise ValueError(f"dtilt has shape {dtilt.shape}, not {shape}")
    g = {"query": np.empty_like(query), "map": np.empty_like(map), "scale": np.empty(1, query.dtype)}
    if offset is not None:
        g["offset"] = np.empty_like(offset)
    p.dtilt = _pointer(dtilt)
    for name, a in g.items():
        setattr(p, "d" + name, _pointer(a))
    _check(_typed("sattn_tilt_backward", dtilt.dtype)(ctypes.byref(p)))
    return g


from sattn.attention import (  # noqa: E402, F401
    BOTTOM_RIGHT, TOP_LEFT, Attention, as_part, merge, merge_backward)
from sattn.rows import Softmax, log_softmax, log_sum_exp, softmax  # noqa: E402, F401
from sattn.linear import LinearAttention  # noqa: E402, F401
from sattn.hybrid import hybrid, hybrid_backward  # noqa: E402, F401
from sattn.fitting import FitDescriptor, fit  # noqa: E402, F401
