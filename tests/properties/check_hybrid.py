# SPDX-License-Identifier: BSD-2-Clause
"""Hybrid attention against the formulas of sattn/hybrid.h in NumPy, its gradients against central differences,
its error against tokens drawn; rows, threads and neighbours by bits."""
import itertools
import os
import sys

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../ffi/python"))
import sattn  # noqa: E402

rng = np.random.default_rng(5)
B, H, HK, M, N, C, D, E = 2, 4, 2, 53, 9, 5, 4, 3


def draw(kind, joint, shared=False, dtype=np.float64):
    batch = B * HK
    w = np.log(rng.uniform(3, 60, (batch, C)))
    w[:, 1] = -np.inf
    mean, f = rng.normal(size=(batch, C, D)), rng.normal(size=(batch, C, D, D)) * .5
    if shared:
        f = f[:, 0]
    square = np.einsum("...ij,...kj->...ik", f, f)
    s = {sattn.ZERO: None, sattn.ISOTROPIC: f[..., :1, 0]**2, sattn.DIAG: f[..., 0]**2, sattn.FULL: square,
         sattn.CHOLESKY: np.tril(f),
         sattn.LOW_RANK: np.concatenate([f[..., 0]**2, f[..., :2].reshape(f.shape[:-2] + (-1,))], -1)}[kind]
    value = rng.normal(size=(batch, C, E)) if joint else None
    cross = rng.normal(size=(batch, C, E, D)) * .3 if joint else None
    if not shared and s is not None:
        s[:, 1] = np.nan  # of weight 0: never read
    mean[:, 1] = np.nan
    return dict(log_weight=w, mean=mean, covariance=s, value_mean=value, cross=cross)


def matrices(p, kind, shared):
    s = p["covariance"]
    if kind == sattn.ZERO:
        return np.zeros((B * HK, C, D, D))
    s = s[:, None] if shared else s
    if kind == sattn.ISOTROPIC:
        s = s[..., None] * np.eye(D)
    elif kind == sattn.DIAG:
        s = s[..., None] * np.eye(D)
    elif kind == sattn.CHOLESKY:
        s = np.tril(s) @ np.swapaxes(np.tril(s), -1, -2)
    elif kind == sattn.LOW_RANK:
        f = s[..., D:].reshape(s.shape[:-1] + (D, 2))
        s = s[..., :D, None] * np.eye(D) + f @ np.swapaxes(f, -1, -2)
    return np.broadcast_to(s, (B * HK, C, D, D))


def oracle(q, k, v, p, kind, shared, limit, scale):
    """out, lse, error, guarded by one query at a time"""
    s, e = matrices(p, kind, shared), v.shape[-1]
    out, rest = np.zeros((B, H, M, e)), np.zeros((3, B, H, M))
    for b, h, m in itertools.product(range(B), range(H), range(M)):
        hk = h // (H // HK)
        i, u = b * HK + hk, scale * q[b, h, m]
        l, y, a, w = list(k[b, hk] @ u), list(v[b, hk]), [], []
        live = [c for c in range(C) if p["log_weight"][i, c] > -np.inf]
        for c in live:
            x = s[i, c] @ u
            ac, lim = u @ x, limit[i, c]
            t = min(1, np.sqrt(lim / ac)) if ac > 0 else 1
            g = ac / 2 if ac <= lim else np.sqrt(ac * lim) - lim / 2
            l.append(p["log_weight"][i, c] + u @ p["mean"][i, c] + g)
            joint = p["value_mean"] is not None
            y.append(p["value_mean"][i, c] + t * (p["cross"][i, c] @ u) if joint else p["mean"][i, c] + t * x)
            a.append(ac)
        top = max(l)
        lse = top + np.log(np.sum(np.exp(np.array(l) - top)))
        w = np.exp(np.array(l) - lse)
        out[b, h, m] = w @ np.array(y)
        n, a, w = np.exp(p["log_weight"][i, live]), np.array(a), w[N:]
        rest[:, b, h, m] = (lse, np.sqrt(np.sum(w**2 * np.minimum(1, np.expm1(a) / n))),
                            w[a > limit[i, live]].sum())
    return out, *rest


def problem(kind, joint, shared, dtype=np.float64):
    p, e = draw(kind, joint, shared), E if joint else D
    q, k, v = rng.normal(size=(B, H, M, D)), rng.normal(size=(B, HK, N, D)), rng.normal(size=(B, HK, N, e))
    p = {n: None if x is None else x.astype(dtype) for n, x in p.items()}
    mixture = sattn.Mixture(*(p[n] for n in ("log_weight", "mean", "covariance", "value_mean", "cross")),
                            kind=kind, shared=shared)
    return q.astype(dtype), k.astype(dtype), v.astype(dtype), p, mixture


def close(x, y, bound, what):
    error = np.max(np.abs(x - y) / (1 + np.abs(y)))
    assert error < bound, f"{what}: {error}"


kinds = [(kind, joint, shared) for kind in range(6) for joint in (0, 1) for shared in (0, 1)
         if not (shared and kind == sattn.ZERO)]
for kind, joint, shared in kinds:
    for dtype, bound in ((np.float64, 1e-12), (np.float32, 2e-5)):
        q, k, v, p, mixture = problem(kind, joint, shared, dtype)
        for guard in (0, .5, None):
            log_n = np.maximum(p["log_weight"].astype(float), 0)
            limit = np.full((B * HK, C), np.inf) if guard is None else (guard or 2) * log_n
            r = sattn.hybrid(q, k, v, mixture, scale=.9, guard=guard)
            wide = [x.astype(float) for x in (q, k, v)]
            want = oracle(*wide, {n: None if x is None else x.astype(float) for n, x in p.items()},
                          kind, shared, limit, .9)
            for name, y in zip(("out", "lse", "error"), want):
                close(getattr(r, name), y, bound, (name, kind, joint, shared, guard))
            if dtype == np.float64:
                close(r.guarded, want[3], bound, ("guarded", kind, joint, shared, guard))
            assert guard is not None or not r.guarded.any()
            assert guard != .5 or kind == sattn.ZERO or r.guarded.any()

# gradients: central differences in a random direction of each argument, with the limits held
for kind, joint, shared in kinds:
    q, k, v, p, mixture = problem(kind, joint, shared)
    limit = rng.uniform(0, 1.5, (B * HK, C))
    limit[:, 2], limit[:, 3] = 0, np.inf
    r = sattn.hybrid(q, k, v, mixture, scale=.9, limit=limit)
    dout, dlse = rng.normal(size=r.out.shape), rng.normal(size=r.lse.shape)
    of_call, of_mixture = sattn.hybrid_backward(q, k, v, mixture, r, dout, dlse, scale=.9, limit=limit)

    def loss(arguments, scale):
        x, y, z, rest = arguments
        names = ("log_weight", "mean", "covariance", "value_mean", "cross")
        m = sattn.Mixture(*(rest[n] for n in names), kind=kind, shared=shared)
        s = sattn.hybrid(x, y, z, m, scale=scale, limit=limit)
        return np.sum(dout * s.out) + np.sum(dlse * s.lse)

    def check(name, gradient, array, put):
        d = rng.normal(size=array.shape)
        if kind == sattn.FULL and name == "covariance":
            d = d + np.swapaxes(d, -1, -2)
        d[~np.isfinite(array)] = 0
        h = 1e-6
        slope = (put(array + h * d) - put(array - h * d)) / (2 * h)
        close(np.sum(gradient * d), slope, 3e-6 * (1 + np.abs(gradient).sum()**.5), (name, kind, joint, shared))

    check("q", of_call["q"], q, lambda x: loss((x, k, v, p), .9))
    check("k", of_call["k"], k, lambda x: loss((q, x, v, p), .9))
    check("v", of_call["v"], v, lambda x: loss((q, k, x, p), .9))
    check("scale", of_call["scale"], np.array(.9), lambda x: loss((q, k, v, p), float(x)))
    for name, gradient in of_mixture.items():
        check(name, gradient, p[name], lambda x, name=name: loss((q, k, v, {**p, name: x}), .9))
        assert name == "covariance" and shared or not gradient[:, 1].any()

# rows, threads, one query alone: the same bits
q, k, v, p, mixture = problem(sattn.FULL, 1, 0, np.float32)
dout, first = rng.normal(size=(B, H, M, E)).astype(np.float32), None
for isa in sattn.isas():
    for threads in (1, 3):
        sattn.set_isa(isa)
        r = sattn.hybrid(q, k, v, mixture, guard=.5, threads=threads)
        g, of_mixture = sattn.hybrid_backward(q, k, v, mixture, r, dout, guard=.5, threads=threads)
        bits = [x.tobytes() for x in [*vars(r).values(), *g.values(), *of_mixture.values()]]
        first = first or bits
        assert bits == first, (isa, threads)
alone = sattn.hybrid(q[:, :, 50:51], k, v, mixture, guard=.5)
assert alone.out.tobytes() == r.out[:, :, 50:51].tobytes()

# no mixture: attention; no tokens: the mixture; neither: nothing
absent = sattn.Mixture(np.full(C, -np.inf), np.full((C, D), np.nan), value_mean=np.full((C, E), np.nan))
q, k, v, p, mixture = problem(sattn.FULL, 1, 0)
close(sattn.hybrid(q, k, v, absent).out, sattn.Attention().forward(q, k, v).out, 1e-14, "no mixture")
r = sattn.hybrid(q, k[:, :, :0], v[:, :, :0], mixture, scale=1, guard=None)
u = q.reshape(B * HK, -1, D)
close(r.out.reshape(B * HK, -1, E), mixture.forward(u).out, 1e-12, "no tokens")
r = sattn.hybrid(q, k[:, :, :0], v[:, :, :0], absent)
assert not r.out.any() and (r.lse == -np.inf).all() and not r.error.any()
q[0, 0, 3] = np.nan
r = sattn.hybrid(q, k, v, mixture)
assert np.isnan(r.out[0, 0, 3]).all() and np.isnan(r.out).sum() == E

# the error is the standard error of lse over draws of the tokens
counts, runs = np.array([400, 900]), 600
mean, s = rng.normal(size=(2, 1, 2))[:, 0], np.array([[.5, .3], [.2, .9]])
mixture = sattn.Mixture(np.log(counts), mean, s)
q, k, v = np.array([[.4, -.3], [1.1, .5]]), rng.normal(size=(3, 2)), rng.normal(size=(3, 2))
r, off = sattn.hybrid(q, k, v, mixture, scale=1), []
for _ in range(runs):
    tokens = np.concatenate([m + rng.normal(size=(n, 2)) * np.sqrt(c) for m, n, c in zip(mean, counts, s)] + [k])
    off.append(sattn.Attention(scale=1).forward(q, tokens, tokens).lse - r.lse)
measured = np.sqrt(np.mean(np.square(off), 0))
assert (np.abs(measured / r.error - 1) < .15).all(), (measured, r.error)  # 5 sigma of 600 runs

# bad input, and nothing written
for change in (dict(limit=-1.), dict(limit=np.nan), dict(guard=np.inf), dict(softcap=2.), dict(threads=-1)):
    try:
        sattn.hybrid(q, k, v, mixture, **change)
    except sattn.SattnError:
        continue
    raise AssertionError(change)
print("hybrid: ok")
