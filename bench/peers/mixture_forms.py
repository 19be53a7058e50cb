# SPDX-License-Identifier: BSD-2-Clause
"""The forward pass of the mixture as one writes it with torch and NumPy: functions of tilt u
[M][D], log weights [C], means m [C][D] and covariances s that return out [M][D] and the CGF [M]."""

import numpy as np
import torch


def finish(logit, value):
    """out and CGF from logits [M][C] and value(weights)"""
    cgf = torch.logsumexp(logit, 1)
    return value(torch.exp(logit - cgf[:, None])), cgf


def full_einsum(u, log_weight, m, s):
    su = torch.einsum("cij,mj->mci", s, u)
    logit = log_weight + u @ m.T + 0.5 * torch.einsum("mi,mci->mc", u, su)
    return finish(logit, lambda w: torch.einsum("mc,mci->mi", w, m + su))


def full_bmm(u, log_weight, m, s):
    """One matrix product per component"""
    su = torch.matmul(u, s)
    logit = log_weight + u @ m.T + 0.5 * (su * u).sum(2).T
    return finish(logit, lambda w: w @ m + (w.T[:, :, None] * su).sum(0))


def full_gemm(u, log_weight, m, s):
    """One matrix product for all components"""
    c, d = m.shape
    su = (u @ s.reshape(c * d, d).T).view(-1, c, d)
    logit = log_weight + u @ m.T + 0.5 * (su * u[:, None]).sum(2)
    return finish(logit, lambda w: w @ m + torch.bmm(w[:, None], su)[:, 0])


def full_features(u, log_weight, m, s):
    """Products with all u_i u_j and with the mean covariance: twice the flops, no M x C x D"""
    c, d = m.shape
    logit = (
        log_weight
        + u @ m.T
        + 0.5 * (u[:, :, None] * u[:, None]).view(-1, d * d) @ s.view(c, d * d).T
    )
    return finish(
        logit,
        lambda w: w @ m + torch.bmm((w @ s.view(c, d * d)).view(-1, d, d), u[:, :, None])[:, :, 0],
    )


def diag_broadcast(u, log_weight, m, s):
    su = s * u[:, None]
    logit = log_weight + u @ m.T + 0.5 * (su * u[:, None]).sum(2)
    return finish(logit, lambda w: (w[:, :, None] * (m + su)).sum(1))


def diag_matmul(u, log_weight, m, s):
    logit = log_weight + u @ m.T + 0.5 * (u * u) @ s.T
    return finish(logit, lambda w: w @ m + (w @ s) * u)


def zero_matmul(u, log_weight, m, _):
    return finish(log_weight + u @ m.T, lambda w: w @ m)


FORMS = {
    "full": {"einsum": full_einsum, "bmm": full_bmm, "gemm": full_gemm, "features": full_features},
    "diag": {"broadcast": diag_broadcast, "matmul": diag_matmul},
    "zero": {"matmul": zero_matmul},
}


def numpy_einsum(u, log_weight, m, s):
    """As most write it, full covariances"""
    su = np.einsum("cij,mj->mci", s, u)
    logit = log_weight + u @ m.T + 0.5 * np.einsum("mi,mci->mc", u, su)
    w = np.exp(logit - logit.max(1, keepdims=True))
    return np.einsum("mc,mci->mi", w / w.sum(1, keepdims=True), m + su)
