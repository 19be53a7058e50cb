# SPDX-License-Identifier: BSD-2-Clause
"""Fitting mixtures to tokens.

    mixture = sattn.fit(tokens, 8, kind=sattn.DIAG)            # tokens [N, D] -> sattn.Mixture
    mixture.label, mixture.trace                               # [N], log-likelihood of each iteration
"""
import ctypes

import numpy as np

from sattn import (_F64, _I32, _I64, _PTR, CHOLESKY, DIAG, FULL, ISOTROPIC, LOW_RANK, SHARED_COVARIANCE, ZERO, Mixture,
                   _check, _Descriptor, _fields, _pointer, _typed, library)

_PROGRESS = ctypes.CFUNCTYPE(ctypes.c_int32, _PTR, ctypes.c_int64, _F64)


class FitDescriptor(_Descriptor):
    """struct sattn_fit of sattn/fit.h"""
    _fields_ = _fields(
        "i:size tokens components width;j:covariance_kind flags threads rank;"
        "i:lloyd_iterations em_iterations;d:tolerance floor;u:seed;p:token;i:token_row;"
        "p:log_weight mean covariance trace;i:trace_length;p:iterations label") + [
            ("progress", _PROGRESS), ("progress_context", _PTR)]


_OPTIONS = "lloyd_iterations", "em_iterations", "tolerance", "floor", "seed", "threads"


def _report(p, progress, failure):
    """Sets the callback; an exception cannot pass through C: it stops the fit and is kept in `failure`."""
    def report(context, iteration, value):
        try:
            return int(bool(progress(iteration, value)))
        except BaseException as e:  # noqa: B902
            failure.append(e)
            return 1

    if progress:
        p.progress = _PROGRESS(report)


def _layout(kind, d, rank):
    """The shape of one covariance"""
    return {ZERO: (), DIAG: (d,), FULL: (d, d), ISOTROPIC: (1,), CHOLESKY: (d, d), LOW_RANK: (d * (1 + rank),)}[kind]


def fit(token, components, kind=FULL, rank=0, shared=False, progress=None, **options):
    """Fits a mixture of `components` Gaussians to token [N, D]: -> Mixture with `trace` and `label`.
    kind: any of mixture's, LOW_RANK with its rank; shared: one covariance for all components.
    Options: lloyd_iterations, em_iterations, tolerance, floor, seed, threads. `progress(iteration,
    log_likelihood)` may return True to stop, which raises SattnError."""
    token = np.ascontiguousarray(token)
    if token.ndim != 2:
        raise ValueError(f"token has shape {token.shape}, not [N, D]")
    (n, d), p = token.shape, FitDescriptor()
    _check(library.sattn_fit_init(ctypes.byref(p), _I64(ctypes.sizeof(p)), _I64(n), _I64(components),
                                  _I64(d), _I32(kind)))
    for name, value in options.items():
        if name not in _OPTIONS:  # ctypes takes any name
            raise TypeError(f"fit has no option {name}")
        setattr(p, name, value)
    p.rank, p.flags = rank, SHARED_COVARIANCE if shared else 0
    kept = dict(token=token, log_weight=np.empty(components, token.dtype), mean=np.empty((components, d), token.dtype),
                covariance=None, label=np.empty(n, np.int32), trace=np.empty(max(1, p.em_iterations)))
    if kind != ZERO:
        kept["covariance"] = np.empty((() if shared else (components,)) + _layout(kind, d, rank), token.dtype)
    for name, a in kept.items():
        setattr(p, name, _pointer(a))
    done, failure = _I64(), []
    p.trace_length, p.iterations = kept["trace"].size, ctypes.cast(ctypes.byref(done), _PTR)
    _report(p, progress, failure)
    status = _typed("sattn_fit", token.dtype)(ctypes.byref(p))
    if failure:
        raise failure[0]
    _check(status)
    mixture = Mixture(kept["log_weight"], kept["mean"], kept["covariance"], kind=kind, shared=shared)
    mixture.trace, mixture.label = kept["trace"][:done.value], kept["label"]
    return mixture
