# SPDX-License-Identifier: BSD-2-Clause
"""Mixture attention in NumPy f64, written from the formulas alone: forward and backward of one batch entry.

  l_c = log pi_c + u.m_c + u'S_c u / 2,  CGF = log sum_c exp l_c,  w_c = exp(l_c - CGF),
  value_c = m_c + S_c u, or v_c + X_c u with joint blocks,  out = sum_c w_c value_c.

Shapes: tilt [M,D], log_weight [C], mean [C,D], covariance [C,D,D] (expand a diagonal with `dense`),
value_mean [C,E] and cross [C,E,D] or None."""
import numpy as np


def dense(kind, covariance, components, width):
    """Covariances of any kind as matrices [C,D,D]."""
    if kind == "zero":
        return np.zeros((components, width, width))
    if kind == "diag":
        return covariance[:, :, None] * np.eye(width)
    return covariance


def forward(tilt, log_weight, mean, covariance, value_mean=None, cross=None):
    """A dict of out [M,D or E], cgf [M], weight [M,C], and the keys and values [M,C,.] they came from."""
    live = log_weight > -np.inf
    mean = np.where(live[:, None], mean, 0)
    covariance = np.where(live[:, None, None], covariance, 0)
    moved = np.einsum("cij,mj->mci", covariance, tilt)
    logit = log_weight + tilt @ mean.T + np.einsum("mi,mci->mc", tilt, moved) / 2
    largest = logit.max(axis=1, initial=-np.inf)
    shift = np.where(np.isfinite(largest), largest, 0)
    total = np.exp(logit - shift[:, None]).sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        cgf = shift + np.log(total)
        weight = np.where(live & (total[:, None] > 0), np.exp(logit - cgf[:, None]), 0)
    key = mean + moved
    value = key
    if value_mean is not None:
        value = np.broadcast_to(np.where(live[:, None], value_mean, 0), key.shape[:2] + value_mean.shape[1:])
        if cross is not None:
            value = value + np.einsum("cij,mj->mci", np.where(live[:, None, None], cross, 0), tilt)
    return dict(out=np.einsum("mc,mci->mi", weight, value), cgf=cgf, weight=weight, key=key, value=value)


def backward(tilt, log_weight, mean, covariance, dout, dcgf, value_mean=None, cross=None):
    """Gradients of <dout, out> + <dcgf, cgf>; that of the covariances is symmetric."""
    f = forward(tilt, log_weight, mean, covariance, value_mean, cross)
    live = (log_weight > -np.inf)[:, None, None]
    w = f["weight"]
    s = np.einsum("mi,mci->mc", dout, f["value"])
    b = w * (s - (w * s).sum(axis=1, keepdims=True) + dcgf[:, None])
    dtilt = np.einsum("mc,mci->mi", b, f["key"])
    dmean = b.T @ tilt
    outer = np.einsum("mc,mi,mj->cij", b, tilt, tilt) / 2
    gradients = dict(dlog_weight=b.sum(axis=0))
    if value_mean is None:
        dmean += w.T @ dout
        half = np.einsum("mc,mi,mj->cij", w, dout, tilt) / 2
        outer += half + half.transpose(0, 2, 1)
        dtilt += np.einsum("mc,cij,mj->mi", w, np.where(live, covariance, 0), dout)
    else:
        gradients["dvalue_mean"] = w.T @ dout
        gradients["dcross"] = np.einsum("mc,mi,mj->cij", w, dout, tilt)
        if cross is not None:
            dtilt += np.einsum("mc,cij,mi->mj", w, np.where(live, cross, 0), dout)
    return dict(gradients, dtilt=dtilt, dmean=dmean, dcovariance=outer)
