#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Linear attention from Python: against NumPy, a sequence in two parts, gradients by differences.
SATTN_LIBRARY names the library; 77 = skipped: no NumPy."""
import itertools
import pathlib
import sys

try:
    import numpy as np
except ImportError:
    print("skipped: this Python has no NumPy")
    sys.exit(77)

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "ffi" / "python"))
import sattn  # noqa: E402

rng = np.random.default_rng(4)
MAPS = {"identity": lambda x: x, "elu": lambda x: np.where(x > 0, x + 1, np.exp(x)),
        "relu": lambda x: np.maximum(x, 0), "exp": np.exp}
q, k = (rng.normal(size=(2, 3, 110, 4)) for _ in range(2))
v, dout = (rng.normal(size=(2, 3, 110, 5)) for _ in range(2))
FORMS = [dict(feature=f, causal=c, **form) for f, c, form in itertools.product(
    MAPS, (False, True), ({}, {"mean": True, "scale": 0.3}, {"normalised": True}))]


def reference(feature, causal, mean=False, scale=1.0, normalised=False):
    a = MAPS[feature](q) @ MAPS[feature](k).swapaxes(-1, -2)
    a = np.tril(a) if causal else a
    if normalised:
        with np.errstate(invalid="ignore"):
            w = a / a.sum(-1, keepdims=True)
        return w @ v, np.abs(w) @ np.abs(v)
    seen = np.arange(1, 111)[:, None] if causal else 110
    return scale * a @ v / (seen if mean else 1), np.abs(a) @ np.abs(v)


def agrees_with_numpy():
    for form in FORMS:
        if form["feature"] == "identity" and form.get("normalised"):
            continue  # a divisor near 0
        want, size = reference(**form)
        got = sattn.LinearAttention(**form).forward(q, k, v).out
        with np.errstate(invalid="ignore"):
            good = np.abs(got - want) <= 1e-13 * size
        assert (good | (np.isnan(want) & (got == 0))).all(), form  # 0 / 0 is 0 here


def streams():
    for form in FORMS:
        if not form["causal"] or (form["feature"] == "identity" and form.get("normalised")):
            continue
        attend = sattn.LinearAttention(**form)
        whole = attend.forward(q, k, v)
        first = attend.forward(q[:, :, :61], k[:, :, :61], v[:, :, :61])
        second = attend.forward(q[:, :, 61:], k[:, :, 61:], v[:, :, 61:], state=first.state)
        joined = np.concatenate([first.out, second.out], 2)
        assert np.allclose(joined, whole.out, rtol=1e-12, atol=1e-12), form
        assert second.state.seen == 110 and np.allclose(second.state.sum, whole.state.sum)


def gradients():
    h = 1e-6
    for form in FORMS:
        if form["feature"] == "relu" or (form["feature"] == "identity" and form.get("normalised")):
            continue
        attend = sattn.LinearAttention(**form)
        state = attend.forward(k, q, v).state
        inputs = {"q": q, "k": k, "v": v}
        g = attend.backward(q, k, v, attend.forward(q, k, v, state=state), dout=dout, state=state)
        for name, x in inputs.items():
            step = rng.normal(size=x.shape)
            slope = sum(s * (attend.forward(**{**inputs, name: x + s * h * step}, state=state).out * dout).sum()
                        for s in (1, -1)) / (2 * h)
            assert abs(slope - (g[name] * step).sum()) < 1e-5 * max(1, abs(slope)), (form, name)


for check in (agrees_with_numpy, streams, gradients):
    check()
    print(check.__name__, "holds")
