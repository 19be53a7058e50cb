#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Attention from Python: against NumPy, views and shared heads without a copy, gradients by differences,
16-bit keys, and parts merged. SATTN_LIBRARY names the library; 77 = skipped: no NumPy."""
import pathlib
import sys

try:
    import numpy as np
except ImportError:
    print("skipped: this Python has no NumPy")
    sys.exit(77)

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "ffi" / "python"))
import sattn  # noqa: E402

rng = np.random.default_rng(3)


def reference(q, k, v, live=True, bias=0, scale=None):
    scale = q.shape[-1] ** -0.5 if scale is None else scale
    groups = q.shape[1] // k.shape[1]
    k, v = np.repeat(k, groups, 1), np.repeat(v, groups, 1)
    s = np.where(live, scale * q @ k.swapaxes(-1, -2) + bias, -np.inf)
    w = np.exp(s - s.max(-1, keepdims=True))
    return w / w.sum(-1, keepdims=True) @ v, np.log(np.exp(s).sum(-1))


def problem(b=2, h=4, hk=2, m=9, n=70, d=5, e=3):
    return rng.normal(size=(b, h, m, d)), rng.normal(size=(b, hk, n, d)), rng.normal(size=(b, hk, n, e))


def agrees_with_numpy():
    q, k, v = problem()
    r = sattn.Attention().forward(q, k, v)
    out, lse = reference(q, k, v)
    assert np.allclose(r.out, out, rtol=0, atol=1e-14) and np.allclose(r.lse, lse, atol=1e-13)
    assert np.allclose(r.stats.sum(-1), lse, atol=1e-13)
    live = np.arange(70) <= np.arange(9)[:, None] + 61
    out, _ = reference(q, k, v, live)
    for attend, arrays in ((sattn.Attention(causal=True, diagonal=sattn.BOTTOM_RIGHT), {}),
                           (sattn.Attention(), {"mask": live})):
        assert np.allclose(attend.forward(q, k, v, **arrays).out, out, rtol=0, atol=1e-14)
    single = sattn.Attention().forward(*(x.astype(np.float32) for x in (q, k, v)))
    assert single.out.dtype == np.float32
    assert np.allclose(single.out, reference(q, k, v)[0], rtol=0, atol=1e-5)


def views():
    q, k, v = problem()
    want = sattn.Attention().forward(q, k, v).out
    packed = np.concatenate([q.swapaxes(1, 2)] * 2, -1)[..., 5:].swapaxes(1, 2)
    assert not packed.flags.c_contiguous
    assert np.array_equal(sattn.Attention().forward(packed, k[..., ::-1][..., ::-1], v).out, want)
    one = sattn.Attention().forward(q[0, 0], k[0, 0], v[0, 0])
    assert one.out.shape == (9, 3) and np.array_equal(one.out, want[0, 0]) and one.lse.shape == (9,)


def gradients():
    q, k, v = problem()
    dout, dlse = rng.normal(size=(2, 4, 9, 3)), rng.normal(size=(2, 4, 9))
    arrays = dict(bias=rng.normal(size=(4, 1, 70)), sink=rng.normal(size=4))
    attend = sattn.Attention(softcap=3, left=50, right=30)

    def loss(q, k, v, **changed):
        r = attend.forward(q, k, v, **{**arrays, **changed})
        return (r.out * dout).sum() + (r.lse * dlse).sum()

    r = attend.forward(q, k, v, **arrays)
    g = attend.backward(q, k, v, r, dout=dout, dlse=dlse, **arrays)
    inputs, h = {"q": q, "k": k, "v": v, **arrays}, 1e-6
    for name, x in inputs.items():
        step = rng.normal(size=x.shape)
        slope = (loss(**{**inputs, name: x + h * step}) - loss(**{**inputs, name: x - h * step})) / (2 * h)
        assert g[name].shape == x.shape
        assert abs(slope - (g[name] * step).sum()) < 1e-6 * max(1, abs(slope)), name


def sixteen_bits():
    q, k, v = (x.astype(np.float32) for x in problem())
    short = [x.astype(np.float16) for x in (k, v)]
    want = sattn.Attention().forward(q, *(x.astype(np.float32) for x in short)).out
    assert np.array_equal(sattn.Attention().forward(q, *short).out, want)


def merged():
    q, k, v = problem()
    attend = sattn.Attention()
    whole = attend.forward(q, k, v)
    parts = [attend.forward(q, k[:, :, a:b], v[:, :, a:b]) for a, b in ((0, 20), (20, 21), (21, 70))]
    both = sattn.merge(parts)
    assert np.allclose(both.out, whole.out, rtol=0, atol=1e-14) and np.allclose(both.lse, whole.lse, atol=1e-13)


def conversions():
    q, k, v = problem()
    want = sattn.Attention().forward(q, k, v)
    lists = sattn.Attention().forward(q.tolist(), k.tolist(), v.tolist())
    assert np.array_equal(lists.out, want.out)
    live = np.random.default_rng(5).random((9, 70)) < 0.5
    masked = [sattn.Attention().forward(q, k, v, mask=live.astype(t) * x).out
              for t, x in ((bool, True), (np.int64, 256), (float, 0.5))]
    assert all(np.array_equal(out, masked[0]) for out in masked) and not np.array_equal(masked[0], want.out)


def hybrid():
    """Exact tokens beside a mixture: with one atom a token, it is attention over all, gradients too; with
    Gaussians fitted to many tokens, it is nearer than the exact tokens alone."""
    q, k, v = (x[0, 0] for x in problem(m=6, n=90, d=5, e=3))
    attend, scale, cut = sattn.Attention(scale=0.4), 0.4, 30
    whole, dout, dlse = attend.forward(q, k, v), rng.normal(size=(6, 3)), rng.normal(size=6)
    want = attend.backward(q, k, v, whole, dout=dout, dlse=dlse)
    atoms = sattn.Mixture(np.zeros(90 - cut), k[cut:], value_mean=v[cut:])
    exact, rest = attend.forward(q, k[:cut], v[:cut]), atoms.forward(scale * q)
    parts = [exact, sattn.as_part(rest)]
    both = sattn.merge(parts)
    assert np.allclose(both.out, whole.out, rtol=0, atol=1e-14) and np.allclose(both.lse, whole.lse, atol=1e-13)
    (g1, h1), (g2, h2) = sattn.merge_backward(parts, both, dout=dout, dlse=dlse)
    a = attend.backward(q, k[:cut], v[:cut], exact, dout=g1, dlse=h1)
    b = atoms.backward(scale * q, rest, dout=g2, dcgf=h2)
    assert np.allclose(a["q"] + scale * b["tilt"], want["q"], rtol=0, atol=1e-13)
    assert np.allclose(np.concatenate([a["k"], b["mean"]]), want["k"], rtol=0, atol=1e-13)
    assert np.allclose(np.concatenate([a["v"], b["value_mean"]]), want["v"], rtol=0, atol=1e-13)

    centres = 3 * rng.normal(size=(4, 2))
    k = np.concatenate([c + rng.normal(size=(500, 2)) / 3 for c in centres])
    q, cut = rng.normal(size=(50, 2)) / 2, 1900
    exact = sattn.Attention(scale=1).forward(q, k[cut:], k[cut:])
    fitted = sattn.fit(k[:cut], 4, seed=1)
    fitted.parameters["log_weight"] += np.log(cut)
    both = sattn.merge([exact, sattn.as_part(fitted.forward(q))])
    whole = sattn.Attention(scale=1).forward(q, k, k)
    assert np.abs(both.out - whole.out).max() < 0.05 < np.abs(exact.out - whole.out).max()
    assert np.abs(both.lse - whole.lse).max() < 0.02


def refusals():
    q, k, v = problem()
    for call in (lambda: sattn.Attention().forward(q, k[:, :1].repeat(3, 1), v[:, :1].repeat(3, 1)),
                 lambda: sattn.Attention().forward(q, k[..., :2], v),
                 lambda: sattn.Attention().forward(q, k, v[:, :, :8]),
                 lambda: sattn.Attention().forward(q, k, v, bias=np.zeros((2, 70))),
                 lambda: sattn.Attention(scale=np.nan).forward(q, k, v),
                 lambda: sattn.Attention().forward(q, k.astype(np.float32), v)):
        try:
            call()
        except ValueError:
            continue
        raise AssertionError("no error")


for check in (agrees_with_numpy, views, gradients, sixteen_bits, merged, hybrid, conversions, refusals):
    check()
    print(check.__name__, "holds")
