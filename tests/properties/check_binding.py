#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The Python binding: the README's example, batches, joint blocks, gradients by differences, fitting,
and errors instead of reads past an array. SATTN_LIBRARY names the library; 77 = skipped: no NumPy."""
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
    except error as e:
        return e
    raise AssertionError(f"no {error.__name__}")


def elementary():
    x = np.linspace(-5, 5, 24).reshape(2, 3, 4)
    assert np.allclose(sattn.exp(x), np.exp(x), rtol=1e-15)
    y = sattn.softmax(x.astype(np.float32))
    assert y.dtype == np.float32 and y.shape == x.shape and np.allclose(y.sum(-1), 1, atol=1e-6)
    z = sattn.normal(1, 2, 3, 1000)
    assert np.array_equal(z[10:20], sattn.normal(1, 2, 13, 10)) and abs(z.mean()) < 0.2


def refusals():
    """What pointers and C integers would take silently is an exception."""
    q, k, v = np.ones((2, 3, 4)), np.ones((2, 5, 4)), np.ones((2, 5, 6))
    raises(OverflowError, lambda: sattn.Attention(threads=2**32 + 1).forward(q, k, v))
    raises(OverflowError, lambda: sattn.Attention(left=2**64).forward(q, k, v))
    raises(OverflowError, lambda: sattn.exp(q, threads=2**32 + 1))
    raises(TypeError, lambda: sattn.Attention(threads=1.5).forward(q, k, v))
    raises(OverflowError, lambda: sattn.normal(-1, 0, 0, 3))
    raises(ValueError, lambda: sattn.Attention().forward(q, k[..., :1], v))
    raises(ValueError, lambda: sattn.Attention().forward(q, k, v[:, :1]))
    raises(ValueError, lambda: sattn.LinearAttention().forward(q, k, v[:, :1]))
    raises(TypeError, lambda: sattn.Attention().forward(q, k, v, key_length=[2.7]))
    raises(TypeError, lambda: sattn.softmax(np.ones(3), length=2.7))
    state = sattn.LinearAttention().forward(q, k, v).state
    raises(TypeError, lambda: sattn.LinearAttention().forward(*(x.astype(np.float32) for x in (q, k, v)), state=state))
    x = np.zeros((2, 3), np.uint16)
    s = sattn.Softmax()
    raises(TypeError, lambda: s.backward(x, s.forward(x), dy=np.ones((2, 3), np.float32)))


def corners():
    """Sizes of 0 and numbers instead of arrays; what is repeated has the sum of its gradients."""
    assert sattn.exp(np.float64(0)) == 1 and np.shape(sattn.exp(np.float64(0))) == ()
    empty = sattn.Mixture(np.zeros(2), np.zeros((0, 2, 3)))
    assert empty.forward(np.zeros((0, 4, 3))).out.shape == (0, 4, 3)
    flat = sattn.Mixture(np.zeros(2), np.zeros((2, 0)), np.zeros((2, 0)), kind=sattn.LOW_RANK)
    assert np.allclose(flat.forward(np.zeros((4, 0))).cgf, np.log(2))
    rng = np.random.default_rng(8)
    q, k, v = rng.normal(size=(3, 2, 4, 5)), rng.normal(size=(1, 1, 6, 5)), rng.normal(size=(1, 1, 6, 2))
    dout = rng.normal(size=(3, 2, 4, 2))
    for attend in (sattn.Attention(), sattn.LinearAttention("elu", normalised=True)):
        if isinstance(attend, sattn.LinearAttention):
            whole = [np.broadcast_to(x, (3, 2) + x.shape[2:]) for x in (k, v)]
        else:
            whole = [np.broadcast_to(x, (3,) + x.shape[1:]) for x in (k, v)]
        g = attend.backward(q, k, v, attend.forward(q, k, v), dout=dout)
        want = attend.backward(q, *whole, attend.forward(q, *whole), dout=dout)
        for name, x in (("k", k), ("v", v)):
            total = want[name].sum((0, 1), keepdims=True)
            assert g[name].shape == x.shape and np.allclose(g[name], total, atol=1e-13), name


def settings():
    assert sattn.isa() in sattn.isas() and "scalar" in sattn.isas()
    x, name = np.linspace(-3, 3, 100), sattn.isa()
    for other in sattn.isas():
        sattn.set_isa(other)
        assert sattn.isa() == other and np.array_equal(sattn.softmax(x), _softmax_here(x))
    sattn.set_isa(name)
    raises(ValueError, lambda: sattn.set_isa("abacus"))
    before = sattn.get_threads()
    sattn.set_threads(1)
    assert sattn.get_threads() == 1
    sattn.set_threads(0)
    assert sattn.get_threads() == before
    raises(sattn.SattnError, lambda: sattn.set_threads(-1))


def _softmax_here(x, kept={}):
    return kept.setdefault("y", sattn.softmax(x))


def state_cotangents():
    """Two pieces of a sequence with the cotangent of the state between them = the whole"""
    rng = np.random.default_rng(9)
    q, k, v, dout = (rng.normal(size=(8, n)) for n in (3, 3, 2, 2))
    for attend in (sattn.LinearAttention(causal=True), sattn.LinearAttention("elu", causal=True, normalised=True)):
        whole = attend.backward(q, k, v, attend.forward(q, k, v), dout=dout)
        a, b = slice(0, 5), slice(5, 8)
        first = attend.forward(q[a], k[a], v[a])
        second = attend.forward(q[b], k[b], v[b], state=first.state)
        g2 = attend.backward(q[b], k[b], v[b], second, dout=dout[b], state=first.state)
        dstate = sattn.SimpleNamespace(sum=g2["sum"], key_sum=g2.get("key_sum"))
        g1 = attend.backward(q[a], k[a], v[a], first, dout=dout[a], dstate=dstate)
        for name in "qkv":
            assert np.allclose(np.concatenate([g1[name], g2[name]]), whole[name], atol=1e-13), name


def example():
    mixture = sattn.Mixture([-0.7, -0.7], np.array([[3., 0.], [0., 3.]]), np.ones((2, 2)))
    u = np.array([[0.5, 0.2]])
    r = mixture.forward(u)
    g = mixture.backward(u, r, dout=np.array([[1., 0.]]))
    readme = (pathlib.Path(__file__).resolve().parents[2] / "README.md").read_text()
    said = f"`out {r.out[0, 0]:.6f} {r.out[0, 1]:.6f}`, `cgf {r.cgf[0]:.6f}` and `dmean {g['mean'][0, 0]:.6f}`"
    assert said in readme, said


def kinds():
    """Every kind, per component and shared, is the full covariance it stands for; gradients by differences."""
    rng = np.random.default_rng(4)
    c, d = 3, 4
    u, dout, mean = rng.normal(size=(5, d)) / 2, rng.normal(size=(5, d)), rng.normal(size=(c, d))
    for shared in (False, True):
        head = () if shared else (c,)
        s, f, l = rng.random(head + (d,)), rng.normal(size=head + (d, 2)) / 2, rng.normal(size=head + (d, d)) / 3
        full = np.tril(l) @ np.tril(l).swapaxes(-1, -2)
        for kind, given, same in (
                (sattn.ISOTROPIC, s[..., :1], s[..., :1, None] * np.eye(d)),
                (sattn.DIAG, s, s[..., None] * np.eye(d)),
                (sattn.FULL, full, full),
                (sattn.CHOLESKY, l, full),
                (sattn.LOW_RANK, sattn.low_rank(s, f), s[..., None] * np.eye(d) + f @ f.swapaxes(-1, -2))):
            mixture = sattn.Mixture(np.zeros(c), mean, given, kind=kind, shared=shared)
            r = mixture.forward(u)
            want = sattn.Mixture(np.zeros(c), mean, np.broadcast_to(same, (c, d, d))).forward(u)
            assert np.allclose(r.out, want.out, atol=1e-13) and np.allclose(r.cgf, want.cgf, atol=1e-13)
            g = mixture.backward(u, r, dout=dout)["covariance"]
            step = rng.normal(size=given.shape)
            if kind == sattn.FULL:
                step += step.swapaxes(-1, -2)
            loss = [(sattn.Mixture(np.zeros(c), mean, given + t * step, kind=kind, shared=shared)
                     .forward(u).out * dout).sum() for t in (1e-5, -1e-5)]
            assert abs((loss[0] - loss[1]) / 2e-5 - (g * step).sum()) < 1e-8, (kind, shared)
    # a factor that is kept, in groups of components that do not divide them; rank 0 is diagonal
    c, d = 13, 64
    u, dout, mean = rng.normal(size=(50, d)) / 4, rng.normal(size=(50, d)), rng.normal(size=(c, d)) / 4
    for rank in (0, 1, 20, 31):
        s, f = rng.random((c, d)), rng.normal(size=(c, d, rank)) / 8
        low = sattn.Mixture(np.zeros(c), mean, sattn.low_rank(s, f), kind=sattn.LOW_RANK)
        full = sattn.Mixture(np.zeros(c), mean, s[..., None] * np.eye(d) + f @ f.swapaxes(-1, -2))
        r, want = low.forward(u), full.forward(u)
        assert np.allclose(r.out, want.out, atol=1e-12) and np.allclose(r.cgf, want.cgf, atol=1e-12)
        g, gs = low.backward(u, r, dout=dout), full.backward(u, want, dout=dout)
        assert np.allclose(g["tilt"], gs["tilt"], atol=1e-11) and np.allclose(g["mean"], gs["mean"], atol=1e-11)
        ds = gs["covariance"]
        assert np.allclose(g["covariance"][:, :d], np.einsum("cii->ci", ds), atol=1e-11)
        assert np.allclose(g["covariance"][:, d:].reshape(c, d, rank), 2 * ds @ f, atol=1e-11)
    raises(ValueError, lambda: sattn.Mixture(np.zeros(c), mean, s, shared=True))
    raises(ValueError, lambda: sattn.Mixture(np.zeros(c), mean, np.zeros((c, d + 1)), kind=sattn.LOW_RANK))


def gradients():
    rng = np.random.default_rng(1)
    b, m, c, d, e = 2, 5, 3, 4, 2
    a = rng.normal(size=(c, d, d))
    given = dict(log_weight=rng.normal(size=(b, c)), mean=rng.normal(size=(c, d)),
                 covariance=a @ a.transpose(0, 2, 1), value_mean=rng.normal(size=(b, c, e)),
                 cross=rng.normal(size=(c, e, d)))
    u, dout, dcgf = rng.normal(size=(b, m, d)) / 2, rng.normal(size=(b, m, e)), rng.normal(size=(b, m))

    def loss(**changed):
        r = sattn.Mixture(**{**given, **changed}).forward(u)
        return (r.out * dout).sum() + (r.cgf * dcgf).sum()

    mixture = sattn.Mixture(**given)
    r = mixture.forward(u, weights=True)
    assert np.allclose(r.weight.sum(-1), 1) and r.out.shape == (b, m, e)
    g = mixture.backward(u, r, dout=dout, dcgf=dcgf)
    for name, x in given.items():
        step = rng.normal(size=x.shape)
        if name == "covariance":
            step = step + step.transpose(0, 2, 1)
        h = 1e-6
        slope = (loss(**{name: x + h * step}) - loss(**{name: x - h * step})) / (2 * h)
        assert abs(slope - (g[name] * step).sum()) < 1e-6 * max(1, abs(slope)), name


def second_derivatives():
    rng = np.random.default_rng(5)
    u, p, dout, dcgf = (rng.normal(size=s) for s in ((4, 3), (4, 3), (4, 2), (4,)))
    mixture = sattn.Mixture(np.zeros(5), rng.normal(size=(5, 3)), rng.random((5, 3)), rng.normal(size=(5, 2)),
                            rng.normal(size=(5, 2, 3)))

    def at(t):
        r = mixture.forward(u + t * p)
        return r.out, mixture.backward(u + t * p, r, dout=dout, dcgf=dcgf)["tilt"]

    jvp, hvp = mixture.second(u, mixture.forward(u), p, dout=dout, dcgf=dcgf)
    for got, one, two in zip((jvp, hvp), at(1e-5), at(-1e-5)):
        assert np.allclose(got, (one - two) / 2e-5, atol=1e-6)
    raises(ValueError, lambda: mixture.second(u, mixture.forward(u), p[:2]))
    v, x, m = (mixture.parameters[n] for n in ("value_mean", "cross", "mean"))
    moment = (x + v[:, :, None] * m[:, None, :]).sum(0)
    assert np.allclose(mixture.linear(u), u @ moment.T)
    g = mixture.linear_backward(u, dout)
    assert np.allclose(g["tilt"], dout @ moment) and np.allclose(g["cross"][0], dout.T @ u)


def prompts():
    """The quadratic tilt against sums over tokens, the predicted error against many small prompts."""
    rng = np.random.default_rng(6)
    mean, s, u = np.array([[1., 0], [-1, .5]]), np.array([[[.3, .1], [.1, .2]], [[.2, 0], [0, .4]]]), np.array([[.3, -.2]])
    mixture = sattn.Mixture(np.log([.4, .6]), mean, s)
    which = rng.random(1 << 20) < .4
    token = np.where(which[:, None], *(m + rng.normal(size=(1 << 20, 2)) @ np.linalg.cholesky(c).T for m, c in zip(mean, s)))
    p = np.array([[.5, .1], [.1, .3]])
    score = np.exp(token @ u[0] - np.einsum("ni,ij,nj->n", token, p, token) / 2)
    r = sattn.quadratic(mixture, p).forward(u)
    assert np.allclose(r.out, score @ token / score.sum(), atol=5e-3) and np.isclose(r.cgf[0], np.log(score.mean()), atol=5e-3)
    error, out = sattn.prompt_error(mixture, u), mixture.forward(u).out
    weight = np.exp(token @ u[0]).reshape(-1, 256)
    drawn = (weight[..., None] * token.reshape(-1, 256, 2)).sum(1) / weight.sum(1, keepdims=True) - out
    assert np.isclose(256 * (drawn ** 2).sum(1).mean(), error.mse[0], rtol=0.1)
    assert np.isclose(256 * np.log(weight.mean(1)).var(), error.lse_variance[0], rtol=0.1)
    doubled = sattn.prompt_error(mixture, u, 2 * np.eye(2))
    assert np.allclose(doubled.bias, 2 * error.bias) and np.allclose(doubled.mse, 4 * error.mse)
    raises(ValueError, lambda: sattn.quadratic(sattn.Mixture(np.zeros(2), mean), p))


def tilts():
    rng = np.random.default_rng(3)
    q, a, u0, du = (rng.normal(size=s) for s in ((2, 7, 3), (3, 4), (2, 4), (2, 7, 4)))
    for transposed in (False, True):
        given = a.T.copy() if transposed else a
        assert np.allclose(sattn.tilt(q, given, u0, 0.5, transposed), 0.5 * q @ a + u0[:, None])
        g = sattn.tilt_backward(q, given, du, u0, 0.5, transposed)
        dmap = 0.5 * np.einsum("bmi,bmj->ij", q, du)
        assert np.allclose(g["map"], dmap.T if transposed else dmap) and np.allclose(g["query"], 0.5 * du @ a.T)
        assert np.allclose(g["offset"], du.sum(1)) and np.isclose(g["scale"][0], (q @ a * du).sum())
    raises(ValueError, lambda: sattn.tilt(q, a.T))
    raises(ValueError, lambda: sattn.tilt(q, np.zeros((3, 3, 4))))


def fitting():
    rng = np.random.default_rng(2)
    x = np.concatenate([rng.normal(size=(200, 2)) - 4, rng.normal(size=(100, 2)) + 4])
    seen = []
    mixture = sattn.fit(x, 2, seed=1, progress=lambda i, value: seen.append(value))
    weights = np.sort(np.exp(mixture.parameters["log_weight"]))
    assert np.allclose(weights, [1 / 3, 2 / 3], atol=0.02) and seen and len(mixture.label) == 300
    stopped = raises(sattn.SattnError, lambda: sattn.fit(x, 2, progress=lambda i, value: True))
    assert stopped.status == -10 and "cancel" in str(stopped)
    raises(ZeroDivisionError, lambda: sattn.fit(x, 2, progress=lambda i, value: 1 / 0))
    raises(ValueError, lambda: sattn.fit(x[0], 2))
    for option in ("sed", "tokens", "token_row"):  # neither ignored nor a size of another array
        raises(TypeError, lambda: sattn.fit(x, 2, **{option: 1}))


def shapes():
    mean, u = np.zeros((3, 4)), np.zeros((5, 4))
    for bad in (dict(log_weight=np.zeros(2)), dict(covariance=np.zeros((3, 3))),
                dict(covariance=np.zeros((2, 4, 4))), dict(value_mean=np.zeros((2, 2))),
                dict(cross=np.zeros((3, 2, 4))), dict(log_weight=np.zeros((2, 3)), mean=np.zeros((3, 3, 4)))):
        raises(ValueError, lambda: sattn.Mixture(**{**dict(log_weight=np.zeros(3), mean=mean), **bad}))
    mixture = sattn.Mixture(np.zeros(3), mean)
    r = mixture.forward(u)
    raises(ValueError, lambda: mixture.forward(np.zeros((5, 3))))
    raises(ValueError, lambda: mixture.forward(np.zeros(4)))
    raises(ValueError, lambda: mixture.backward(u, r, dout=np.zeros((5, 3))))
    raises(ValueError, lambda: mixture.backward(u[:4], r))
    raises(ValueError, lambda: sattn.Mixture(np.zeros((2, 3)), mean).forward(u))
    raises(sattn.SattnError, lambda: sattn.Mixture(np.array([0, np.nan, 0]), mean).forward(u))


def types():
    x, mean = np.ones(3), np.ones((3, 4))
    for bad in (">f8" if sys.byteorder == "little" else "<f8", np.int64, np.float16):
        raises(TypeError, lambda: sattn.exp(x.astype(bad)))
        if bad is not np.float16:
            raises(TypeError, lambda: sattn.softmax(x.astype(bad)))
        raises(TypeError, lambda: sattn.fit(mean.astype(bad), 1))
        raises(TypeError, lambda: sattn.Mixture(x, mean.astype(bad)).forward(mean))
        raises(TypeError, lambda: sattn.normal(1, 2, 3, 4, dtype=bad))


for check in (elementary, refusals, corners, settings, state_cotangents, example, kinds, gradients, fitting, shapes, types, tilts, second_derivatives, prompts):
    check()
    print(check.__name__, "holds")
