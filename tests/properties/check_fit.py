#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Fitting beside expectation-maximisation written here in NumPy, for every kind of covariance.
SATTN_LIBRARY names the library; 77 = skipped: no NumPy."""
import pathlib
import sys

try:
    import numpy as np
except ImportError:
    print("skipped: this Python has no NumPy")
    sys.exit(77)

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "ffi" / "python"))
import sattn  # noqa: E402

FLOOR, RANK = 1e-3, 2
FORMS = [(kind, shared) for kind in (sattn.ISOTROPIC, sattn.DIAG, sattn.FULL, sattn.CHOLESKY, sattn.LOW_RANK)
         for shared in (False, True)]


def covariances(mixture):
    """As matrices [C, D, D]"""
    p = mixture.parameters
    c, d = p["mean"].shape
    s = p["covariance"]
    s = s[None] if mixture.flags else s
    if mixture.kind in (sattn.ISOTROPIC, sattn.DIAG):
        s = s[:, :, None] * np.eye(d)
    elif mixture.kind == sattn.CHOLESKY:
        assert np.all(np.triu(s, 1) == 0)
        s = s @ s.transpose(0, 2, 1)
    elif mixture.kind == sattn.LOW_RANK:
        f = s[:, d:].reshape(len(s), d, -1)
        s = s[:, :d, None] * np.eye(d) + f @ f.transpose(0, 2, 1)
    return np.broadcast_to(s, (c, d, d))


def densities(x, mixture):
    """log pi_c + log N(x_n; m_c, S_c) [N, C]"""
    p = mixture.parameters
    y = x[:, None] - p["mean"]
    s = covariances(mixture)
    form = np.einsum("nci,cij,ncj->nc", y, np.linalg.inv(s), y)
    return p["log_weight"] - form / 2 - np.linalg.slogdet(2 * np.pi * s)[1] / 2


def expect(x, mixture):
    """-> responsibilities [N, C], log-likelihoods [N]"""
    l = densities(x, mixture)
    top = l.max(1, keepdims=True)
    r = np.exp(l - top)
    return r / r.sum(1, keepdims=True), top[:, 0] + np.log(r.sum(1))


def of_kind(a, kind, floor=FLOOR, rank=RANK):
    """The likeliest covariance of a kind to the scatter a, as a matrix"""
    d = len(a)
    if kind == sattn.ISOTROPIC:
        a = np.eye(d) * np.trace(a) / d
    elif kind == sattn.DIAG:
        a = np.diag(np.diag(a))
    elif kind == sattn.LOW_RANK:
        value, vector = np.linalg.eigh(a)
        value[:d - rank] = value[:d - rank].mean()
        a = (vector * value) @ vector.T
    return a + floor * np.eye(d)


def maximise(x, r, kind, shared):
    """-> log weights, means, covariances [C, D, D]"""
    held = r.sum(0)
    mean = r.T @ x / held[:, None]
    y = x[:, None] - mean
    scatter = np.einsum("nc,nci,ncj->cij", r, y, y) / held[:, None, None]
    if shared:
        scatter = np.broadcast_to(np.average(scatter, 0, held), scatter.shape)
    return np.log(held / held.sum()), mean, np.stack([of_kind(a, kind) for a in scatter])


def tokens(n=700, d=4, seed=1):
    rng = np.random.default_rng(seed)
    centre = np.array([[3., 0, 0, 0], [-3, 1, 0, 2], [0, -3, 3, 0]])[:, :d]
    spread = rng.normal(size=(3, d, d)) * np.array([.2, .6, 1.])[:, None, None]
    which = rng.choice(3, n, p=[.2, .3, .5])
    return centre[which] + np.einsum("nij,nj->ni", spread[which], rng.normal(size=(n, d))) + 50, which


def close(a, b, tolerance=1e-9):
    assert np.max(np.abs(np.subtract(a, b)), initial=0) <= tolerance * max(1, np.max(np.abs(b), initial=0)), (a, b)


def steps_are_those_of_em():
    x, _ = tokens()
    for kind, shared in FORMS:
        given = dict(kind=kind, shared=shared, rank=RANK if kind == sattn.LOW_RANK else 0, floor=FLOOR, tolerance=0)
        for done in (0, 1, 6):
            before = sattn.fit(x, 4, em_iterations=done, **given)
            after = sattn.fit(x, 4, em_iterations=done + 1, **given)
            r, likelihood = expect(x, before)
            log_weight, mean, s = maximise(x, r, kind, shared)
            close(after.trace[-1], likelihood.mean())
            close(after.parameters["log_weight"], log_weight)
            close(after.parameters["mean"], mean)
            close(covariances(after), s)
            assert np.array_equal(before.label, densities(x, before).argmax(1))


def likelihood_rises():
    x, _ = tokens()
    for kind, shared in FORMS:
        m = sattn.fit(x, 6, kind=kind, shared=shared, rank=RANK if kind == sattn.LOW_RANK else 0, floor=1e-9,
                      tolerance=0, em_iterations=80)
        assert len(m.trace) > 2 and np.all(np.diff(m.trace) >= -1e-8), (kind, shared)


def ranks_and_widths():
    """Ranks from 0 (isotropic) to beyond the width (full); columns beyond it are 0."""
    for d in (1, 2, 4, 33):
        rng = np.random.default_rng(d)
        x = rng.normal(size=(300, d)) @ rng.normal(size=(d, d))
        full = sattn.fit(x, 1, floor=FLOOR)
        a = np.cov(x.T, bias=True).reshape(d, d)
        close(covariances(full)[0], a + FLOOR * np.eye(d))
        for rank in {0, 1, d - 1, d, d + 2}:
            m = sattn.fit(x, 1, sattn.LOW_RANK, rank=rank, floor=FLOOR)
            close(covariances(m)[0], of_kind(a, sattn.LOW_RANK, FLOOR, rank) if rank < d else a + FLOOR * np.eye(d))
            f = m.parameters["covariance"][0, d:].reshape(d, rank)
            assert np.all(f[:, d:] == 0) and (rank >= d or np.all(np.diff((f * f).sum(0)) <= 1e-12 * np.trace(a)))
        iso = sattn.fit(x, 1, sattn.ISOTROPIC, floor=FLOOR)
        close(iso.parameters["covariance"], [[np.trace(a) / d + FLOOR]])


def eigenvalues_keep_the_floor():
    """Tokens on a line, one token, equal tokens, a constant coordinate"""
    rng = np.random.default_rng(3)
    line = rng.normal(size=(50, 1)) * np.ones(4)
    constant = rng.normal(size=(50, 4)) * [1, 1, 0, 1]
    for x in (line, constant, np.ones((20, 4)), np.ones((1, 4)), np.repeat(rng.normal(size=(2, 4)), 5, 0)):
        for kind, shared in FORMS:
            for components in (1, 3, 30):
                m = sattn.fit(x, components, kind, rank=RANK if kind == sattn.LOW_RANK else 0, shared=shared, floor=.01)
                p = m.parameters
                value = np.linalg.eigvalsh(covariances(m))
                assert value.min() >= .01 * (1 - 1e-12) and np.isfinite(p["mean"]).all() and np.isfinite(value).all()
                live = p["log_weight"] > -np.inf
                assert live.any() and np.isclose(np.exp(p["log_weight"]).sum(), 1)
                assert live.sum() <= len(np.unique(x, axis=0)) and live[m.label].all()


def parameters_are_recovered():
    x, which = tokens(60000)
    m = sattn.fit(x, 3, seed=2, tolerance=1e-9)
    order = np.argsort([np.bincount(which[m.label == k], minlength=3).argmax() for k in range(3)])
    assert np.mean(order[which] == m.label) > .98
    for k in range(3):
        mine = x[which == k]
        assert abs(np.exp(m.parameters["log_weight"][order[k]]) - len(mine) / len(x)) < .01
        assert np.abs(m.parameters["mean"][order[k]] - mine.mean(0)).max() < .05
        assert np.abs(covariances(m)[order[k]] - np.cov(mine.T)).max() < .08


for check in (steps_are_those_of_em, likelihood_rises, ranks_and_widths, eigenvalues_keep_the_floor,
              parameters_are_recovered):
    check()
    print(check.__name__, "holds")
