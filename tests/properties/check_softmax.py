#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Softmax from Python: every axis against NumPy, 16-bit storage, gradients by differences of broadcast
arrays. SATTN_LIBRARY names the library; 77 = skipped: no NumPy."""
import pathlib
import sys

try:
    import numpy as np
except ImportError:
    print("skipped: this Python has no NumPy")
    sys.exit(77)

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "ffi" / "python"))
import sattn  # noqa: E402


def raises(error, call):
    try:
        call()
    except error:
        return
    raise AssertionError(f"no {error.__name__}")


def axes():
    rng = np.random.default_rng(5)
    x = rng.normal(size=(3, 5, 4))
    for axis in (0, 1, 2, -1):
        e = np.exp(x - x.max(axis, keepdims=True))
        assert np.allclose(sattn.softmax(x, axis), e / e.sum(axis, keepdims=True), rtol=1e-13)
        lse = np.log(np.exp(x).sum(axis))
        assert np.allclose(sattn.log_sum_exp(x, axis), lse, rtol=1e-13)
        assert np.allclose(sattn.log_softmax(x, axis), x - np.expand_dims(lse, axis), rtol=1e-13)
    half = x.astype(np.float16)
    assert np.array_equal(sattn.softmax(half), sattn.softmax(half.astype(np.float32)).astype(np.float16))
    brain = (x.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
    exact = (brain.astype(np.uint32) << 16).view(np.float32)
    wide = (sattn.softmax(brain).astype(np.uint32) << 16).view(np.float32)
    assert np.allclose(wide, sattn.softmax(exact), rtol=2.0 ** -8)


def gradients():
    rng = np.random.default_rng(6)
    x, dy = rng.normal(size=(3, 5, 4)), rng.normal(size=(3, 5, 4))
    for axis, shape in ((1, (5, 1)), (2, (3, 1, 4)), (0, (4,)), (2, (3, 5, 4)), (1, (1, 5, 4))):
        rest = tuple(np.delete(x.shape, axis))
        dlse, mask = rng.normal(size=rest), rng.random((3, 5, 4)) < 0.8
        given = dict(x=x, bias=rng.normal(size=shape), scale=0.7, sink=rng.normal(size=rest[-1:]))
        for log in (False, True):
            def run(x, **changed):
                s = sattn.Softmax(axis, log, mask=mask, **changed)
                return s, s.forward(x)

            def loss(**changed):
                r = run(**{**given, **changed})[1]
                return (np.where(mask, r.y, 0) * dy).sum() + (r.lse * dlse).sum()

            s, r = run(**given)
            g = s.backward(x, r, dy=dy, dlse=dlse)
            for name, value in given.items():
                step, h = rng.normal(size=np.shape(value)), 1e-6
                slope = (loss(**{name: value + h * step}) - loss(**{name: value - h * step})) / (2 * h)
                assert g[name].shape == np.shape(value)
                assert abs(slope - (g[name] * step).sum()) < 1e-6 * max(1, abs(slope)), (name, axis, log)
    raises(ValueError, lambda: sattn.Softmax().backward(x, sattn.Softmax().forward(x), dy=dy[0]))
    raises(ValueError, lambda: sattn.softmax(x, mask=np.ones(3, bool)))


for check in (axes, gradients):
    check()
    print(check.__name__, "holds")
