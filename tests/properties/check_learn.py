#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Tasks and risks: published and exact numbers of Gabet, Boursier, Boyer (arXiv 2610.11798); constructions that are
exactly optimal; predictions, risks and gradients beside NumPy's on random problems (derivatives by complex steps);
Hessians and the dimension of their kernels. SATTN_LIBRARY names the library; 77 = skipped: no NumPy."""
import math
import pathlib
import sys

try:
    import numpy as np
except ImportError:
    print("skipped: this Python has no NumPy")
    sys.exit(77)

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "ffi" / "python"))
import sattn  # noqa: E402
from sattn_learn import CATEGORICAL, LINEAR, LOGISTIC, SQUARED, Learn, Task  # noqa: E402

I2 = np.eye(2)
TRAPEZOID = sattn.trapezoid(451, 9)


def near(got, want, tolerance=1e-9):
    assert np.max(np.abs(np.asarray(got) - want)) <= tolerance, (got, want, np.max(np.abs(np.asarray(got) - want)))


def denoising(weight, mean, variance, noise):
    """Bayes by the paper's formula for a shared covariance `variance` I, written apart from the library's"""
    mean, s = np.asarray(mean, float), variance + noise
    task = Task.denoising(np.log(weight), mean, variance * np.stack([np.eye(mean.shape[1])] * len(mean)), noise)

    def bayes(z):
        logit = np.log(weight) + (z @ mean.T - (mean ** 2).sum(1) / 2) / s
        beta = np.exp(logit - logit.max(1, keepdims=True))
        return variance / s * z + noise / s * (beta / beta.sum(1, keepdims=True)) @ mean
    return task, bayes


def risks():
    square = 4 * np.array([[1, 0], [0, 1], [-1, 0], [0, -1]])
    for mean, variance, noise, rule, want in (
            ([[3, 0], [0, 3]], 1, 4, 48, (2.990055219850, 4.631578947368, 3.115789473684)),
            (square, .25, 1, TRAPEZOID, (0.578424991524, 1.783783783784, 1.783783783784))):
        task, bayes = denoising(np.full(len(mean), 1 / len(mean)), mean, variance, noise)
        z, weight = task.quadrature(rule)
        predicted, left = task.bayes(z)
        near(predicted, bayes(z), 1e-13)
        near((weight @ left, task.affine(False)[2], task.affine()[2]), want)
        matrix, offset, risk = task.affine()
        near(weight @ (((z @ matrix.T + offset - predicted) ** 2).sum(1) + left), risk)


def lda(share=.6, mean=((1, 0), (0, 1)), rule=64):
    """The classes 1 and 0, Gamma = I -> task, points, weights, labels of the points' classes"""
    mean = np.array(mean, float)
    task = Task(np.log([share, 1 - share]), mean, np.stack([np.eye(mean.shape[1])] * 2), [[1.], [0.]])
    z, weight = task.quadrature(rule)
    return task, z, weight, np.repeat([[1.], [0.]], len(z) // 2, 0)


def entropy(task, z, weight):
    p = np.clip(task.bayes(z)[0][:, 0], 1e-300, 1 - 1e-16)
    return -weight @ (p * np.log(p) + (1 - p) * np.log1p(-p))


def normal_below(x):
    return math.erfc(-x / math.sqrt(2)) / 2


def prompt(means, covariance):
    """Tokens (x, y) with label y of +-1: mixtures of width D + 1"""
    d = len(covariance)
    s = np.zeros((2, d + 1, d + 1))
    s[:, :d, :d] = covariance
    return np.column_stack([means, [1, -1]]), s


def classification():
    task, z, weight, label = lda()
    near(entropy(task, z, weight), 0.478696275812)
    b = math.log(.6 / .4)
    root = math.sqrt(2)
    error = sum(p * math.erfc(((2 / 2 + sign * b) / root) / root) / 2 for p, sign in ((.6, 1), (.4, -1)))
    near(error, 0.230932746)
    linear = Learn([0.], np.zeros((1, 2)), None, z, label, weight, heads=0, loss=LOGISTIC, trained="K")
    k = np.zeros(linear.count)
    for _ in range(20):
        k[:2] -= np.linalg.solve(linear.hessian(k)[:2, :2], linear.risk(k)[1][:2])
    near(k[:2], (1.13482543, -0.86516563), 3e-8)
    near(linear.risk(k)[0], 0.487439892846)
    length = np.hypot(*k[:2])
    near(.6 * normal_below(-k[0] / length) + .4 * normal_below(k[1] / length), .236806, 5e-7)
    # Proposition 3.4: towards infinity along (w* - s'(s0) c, b* - s(s0) R, R, c / R), c = (1, 1), the excess is O(R^-2)
    for reach, want in ((10, 1.687e-5), (100, 1.187e-7), (1000, 1.139e-9)):
        gate = reach / (1 + np.exp(-b - z.sum(1) / reach))
        f = z @ (np.array([1, -1]) - .24 * np.ones(2)) + b - .6 * reach + gate
        target = task.bayes(z)[0][:, 0]
        excess = weight @ (np.logaddexp(0, f) - target * f) - entropy(task, z, weight)
        assert abs(excess / want - 1) < 1e-3, (reach, excess)
    task, z, weight, label = lda(.5, ((1,), (-1,)), 96)  # what matters of the 20 dimensions
    near(entropy(task, z, weight), 0.356316360213)
    near(normal_below(-1), 0.158655254, 5e-10)
    linear = Learn([0.], np.zeros((1, 1)), None, z, label, weight, heads=0, loss=LOGISTIC, trained="K")
    near(linear.risk(linear.join(K=2))[0], 0.356316360213)
    near(linear.risk(linear.join(K=2))[1][0], 0, 1e-10)
    xor = Task(np.log([.25] * 4), 1.5 * np.array([[1, 1], [-1, -1], [1, -1], [-1, 1]]), np.stack([I2] * 4),
               [[1.], [1.], [-1.], [-1.]])
    z, weight = xor.quadrature(TRAPEZOID)
    near(weight @ xor.bayes(z)[1], 0.355580399725)
    near(weight @ (1 - np.abs(xor.bayes(z)[0][:, 0])) / 2, 0.124687998255, 5e-5)  # a kink at the boundary
    near(2 * normal_below(1.5) * normal_below(-1.5), 0.124687998255, 1e-12)
    near(xor.affine()[0], 0, 1e-15)


def constructions():
    exact = []
    # Theorem 4.1: two heads, equal norms, and opposite means
    for share, gamma in ((.5, 1.), (.8, 1.), (.5, 3.)):
        m, noise = np.array([[3., 0], [0, 3]]), 4.
        s, difference = gamma + noise, np.array([3., -3])
        task, bayes = denoising(np.array([share, 1 - share]), m, gamma, noise)
        cross = [np.outer(m[1 - i], difference) / (m[1 - i] @ difference) for i in range(2)]
        u = np.stack([gamma / (noise * s) * I2 + (noise - gamma) / (noise * s) * c for c in cross])
        v = np.stack([noise / s * np.outer(m[i], m[i]) / 9 for i in range(2)])
        exact.append((share, m, s, u, v, bayes))
    m, gamma, noise = np.array([[3., 0], [-3, 0]]), 1., 4.
    s, e, n = gamma + noise, np.array([1., 0]), np.array([0., 1])
    p = np.outer(e, e)
    u = np.stack([(I2 + sign * np.outer(n, e)) / s for sign in (1, -1)])
    v = np.stack([noise / (2 * s) * p + gamma / (2 * s) * (I2 - p) + sign * (gamma - noise) / (2 * s) * np.outer(e, n)
                  for sign in (1, -1)])
    exact.append((.5, m, s, u, v, denoising(np.array([.5, .5]), m, gamma, noise)[1]))
    # Proposition C.3: clusters of one point, tokens with the noise alone
    m, difference = np.array([[3., 0], [0, 3]]), np.array([3., -3])
    u = np.stack([np.outer(m[1 - i], difference) / (m[1 - i] @ difference) / noise for i in range(2)])
    exact.append((.5, m, noise, u, np.stack([np.outer(m[i], m[i]) / 9 for i in range(2)]),
                  denoising(np.array([.5, .5]), m, 0, noise)[1]))
    m = np.array([[3., 0], [-3, 0]])
    exact.append((.5, m, noise, np.outer(m[0] + n, m[0])[None] / (noise * 9),
                  np.outer(m[0], m[0] / 9 - n)[None], denoising(np.array([.5, .5]), m, 0, noise)[1]))
    # one head where the noise is as large as the clusters; two in R^5, where V also acts beside the means' plane
    m = np.array([[3., 0], [0, 3]])
    exact.append((.3, m, 4., I2[None] / 4, I2[None] / 2, denoising(np.array([.3, .7]), m, 2, 2)[1]))
    m, gamma, noise = np.random.default_rng(2).normal(size=(2, 5)), 1., 4.
    m *= 3 / np.linalg.norm(m, axis=1, keepdims=True)
    s, difference, dual = gamma + noise, m[0] - m[1], np.linalg.pinv(m)  # dual[:, i].m_j = 1 if i = j, else 0
    beside = np.eye(5) - dual @ m
    u = np.stack([gamma / (noise * s) * np.eye(5) + (noise - gamma) / (noise * s) *
                  np.outer(m[1 - i], difference) / (m[1 - i] @ difference) for i in range(2)])
    v = np.stack([noise / s * np.outer(m[i], dual[:, i]) + noise / (2 * s) * beside for i in range(2)])
    exact.append((.5, m, s, u, v, denoising(np.array([.5, .5]), m, gamma, noise)[1]))
    for share, m, s, u, v, bayes in exact:
        d = m.shape[1]
        z = np.random.default_rng(1).normal(size=(500, d)) * 4
        learn = Learn(np.log([share, 1 - share]), m, s * np.stack([np.eye(d)] * 2), z, bayes(z), heads=len(u))
        near(learn.predict(learn.join(U=u, V=v)), bayes(z), 1e-12)
    # Proposition 4.4: a residual head, in context, for any number of clusters of one norm and any weights
    for d, clusters in ((2, 3), (8, 9)):
        rng = np.random.default_rng(clusters)
        m = rng.normal(size=(clusters, d))
        m *= 3 / np.linalg.norm(m, axis=1, keepdims=True)
        share, gamma, noise = rng.dirichlet(np.ones(clusters)), .5, 2.
        task, bayes = denoising(share, m, gamma, noise)
        points, _ = task.draw(7, 0, 0, 300)
        s = gamma + noise
        learn = Learn(np.log(share), m, np.full((clusters, d), s), points, bayes(points))
        near(learn.predict(learn.join(U=np.eye(d) / s, V=noise / s * np.eye(d), K=(1 - 2 * noise / s) * np.eye(d))),
             bayes(points), 1e-12)
    # the same for any norms, by a bias of the tilt: c is as far from all of up to d + 1 means
    d, clusters, noise, gamma = 8, 9, 2., .5
    rng = np.random.default_rng(5)
    m, share, s = 2 * rng.normal(size=(clusters, d)), rng.dirichlet(np.ones(clusters)), gamma + noise
    c = np.linalg.solve(2 * (m[1:] - m[0]), (m[1:] ** 2).sum(1) - (m[0] ** 2).sum())
    task, bayes = denoising(share, m, gamma, noise)
    points, _ = task.draw(7, 0, 0, 300)
    learn = Learn(np.log(share), m, np.full((clusters, d), s), points, bayes(points))
    near(learn.predict(learn.join(U=np.eye(d) / s, u=-c / s, V=noise / s * np.eye(d),
                                  K=(1 - 2 * noise / s) * np.eye(d), k=noise / s * c)), bayes(points), 2e-12)
    # Proposition 4.3: the iterated map has the fixed points +- |m| u with u = tanh(lambda^2 u)
    m = np.array([[0., 3], [0, -3]])
    for xi, want in ((2, 0.975495825740), (4, 0)):
        task, bayes = denoising(np.array([.5, .5]), m, 0, xi ** 2)
        point = np.array([[.3, .7], [.3, -.7]])
        for _ in range(400):
            point = task.bayes(point)[0]
        near(point, [[0, 3 * want], [0, -3 * want]], 1e-9)
        # by the head of Proposition C.3, n = (1, 0)
        n = np.array([1., 0])
        learn = Learn(np.log([.5, .5]), m, xi ** 2 * np.stack([I2] * 2), [[.3, .7], [.3, -.7]], np.zeros((2, 2)))
        head = learn.join(U=np.outer(m[0] + n, m[0]) / (xi ** 2 * 9), V=np.outer(m[0], m[0] / 9 - n))
        point, moved = learn.iterate(head, 400)
        near(point, [[0, 3 * want], [0, -3 * want]], 1e-9)
        near(moved, 0, 1e-12)
        near(learn.iterate(head, 1)[0], learn.predict(head), 0)
        near(learn.iterate(head, 0)[0], learn.arrays["input"], 0)


def lda_exact():
    """Lemma B.3 on random problems, and the Hessian's kernel at points of both manifolds."""
    rng = np.random.default_rng(3)
    for balanced in (False, True):
        d = 3
        a = rng.normal(size=(d, d))
        gamma = a @ a.T / d + np.eye(d)
        mean = rng.normal(size=(2, d))
        share = .5 if balanced else .7
        inverse = np.linalg.inv(gamma)
        difference, log_odds = mean[0] - mean[1], math.log(share / (1 - share))
        w = inverse @ difference
        b = -(mean[0] @ inverse @ mean[0] - mean[1] @ inverse @ mean[1]) / 2 + log_odds
        if balanced:
            middle = mean.mean(0)
            v21 = b * middle / (middle @ middle)
            v22, image = 0, gamma @ v21
            u11 = np.outer(w, image) / (image @ image)
            u12 = -u11 @ difference / 2
        else:
            u11, u12, v21 = np.eye(d), -difference / 2, inverse @ w
            v22 = (b - v21 @ (share * mean[0] + (1 - share) * mean[1])) / (2 * share - 1)
        task = Task(np.log([share, 1 - share]), mean, np.stack([gamma] * 2), [[1.], [0.]])
        z, _ = task.draw(5, 0, 0, 400)
        keys, covariance = prompt(mean, gamma)
        learn = Learn(np.log([share, 1 - share]), keys, covariance, z, np.zeros((400, 1)), loss=LOGISTIC)
        parameter = learn.join(U=np.vstack([u11.T, u12]), V=np.append(v21, v22))
        near(learn.predict(parameter)[:, 0], z @ w + b, 1e-12)
    task, z, weight, _ = lda(rule=48)
    keys, covariance = prompt(np.eye(2), I2)
    learn = Learn(np.log([.6, .4]), keys, covariance, z, task.bayes(z)[0], weight, loss=LOGISTIC, trained="UV")
    b = math.log(1.5)
    kernel = []
    for u, v in (([[1, -1], [0, 0]], (2 * b, 0, -b)), (np.eye(2), (1, -1, (-1 - b + 1.2) / (1 - 1.2)))):
        u = np.array(u) / (2 * b if v[1] == 0 else 1)
        gate = (10, 10) if v[1] == 0 else (-.5, .5)
        parameter = learn.join(U=np.vstack([u, gate]), V=v)
        near(learn.risk(parameter)[0], 0.478696275812, 1e-9)
        near(learn.risk(parameter)[1], 0, 1e-9)
        trained = np.flatnonzero(learn.join(U=1, V=1))
        values = np.linalg.eigvalsh(learn.hessian(parameter)[np.ix_(trained, trained)])
        got = learn.spectrum(parameter)[0]
        near(got, values[::-1], 1e-14 * values.max())
        kernel.append(int((np.abs(got) < 1e-9 * got[0]).sum()))
    assert kernel == [5, 6], kernel


def oracle(parts, log_weight, mean, covariance, z, linear):
    """f at queries [M, N] of one task, for real or complex parameters"""
    f = z @ parts["K"].T + parts["k"]
    for u, bias, v in zip(parts["U"], parts["u"], parts["V"]):
        tilt = z @ u.T + bias
        spread = np.einsum("cij,mj->mci", covariance, tilt)
        if linear:
            pi = np.exp(log_weight)
            moment = np.einsum("c,ci,cj->ij", pi, mean, mean) + np.einsum("c,cij->ij", pi, covariance)
            y = tilt @ (moment / pi.sum())
        else:
            logit = log_weight + tilt @ mean.T + np.einsum("mci,mi->mc", spread, tilt) / 2
            weight = np.exp(logit - logit.real.max(1, keepdims=True))
            y = np.einsum("mc,mci->mi", weight / weight.sum(1, keepdims=True), mean + spread)
        f = f + y @ v.T
    return f


def random_problems():
    rng = np.random.default_rng(11)
    worst = np.zeros(3)
    for trial in range(60):
        b, m, h, c, d, n, e = (int(x) for x in rng.integers(1, [4, 500, 4, 6, 5, 5, 4]))
        kind, shared, linear, loss = rng.integers(3), rng.random() < .5, rng.random() < .3, trial % 3
        e = 1 if loss == LOGISTIC else max(e, 2) if loss == CATEGORICAL else e
        prompts = () if shared else (b,)
        log_weight = rng.normal(size=prompts + (c,))
        if c > 1:
            log_weight[..., 0] = -np.inf
        mean = rng.normal(size=prompts + (c, d))
        a = rng.normal(size=prompts + (c, d, d)) / np.sqrt(d)
        full = a @ np.swapaxes(a, -1, -2) * (np.eye(d) if kind == 1 else 1) * (kind > 0)
        covariance = (None, np.einsum("...ii->...i", full), full)[kind]
        z = rng.normal(size=(b, m, n))
        target = rng.random(size=(b, m, e))
        weight = rng.random(size=(b, m)) if rng.random() < .7 else None
        trained = "".join(x for x in "UuVKk" if rng.random() < .8)
        learn = Learn(log_weight, mean, covariance, z, target, weight, heads=h, attention=int(linear),
                      loss=loss, trained=trained)
        parameter = rng.normal(size=learn.count) / 2

        def each(x):
            return lambda task: x if shared else x[task]

        def risk(at):
            f = np.stack([oracle(learn.split(at), each(log_weight)(i), each(mean)(i), each(full)(i), z[i], linear)
                          for i in range(b)])
            mass = 1 / (b * m) if weight is None else weight[..., None]
            each_loss = {SQUARED: lambda: (f - target) ** 2, LOGISTIC: lambda: np.log1p(np.exp(f)) - target * f,
                         CATEGORICAL: lambda: target * (np.log(np.exp(f).sum(-1, keepdims=True)) - f)}[loss]()
            return f, (mass * each_loss).sum()
        f, value = risk(parameter)
        got, gradient = learn.risk(parameter)
        direction = rng.normal(size=learn.count)
        off = np.concatenate([np.full(np.prod(shape), name not in trained) for name, shape in learn.parts.items()])
        direction[off] = 0
        assert not gradient[off].any()
        slope = risk(parameter + 1e-30j * direction)[1].imag / 1e-30
        worst = np.maximum(worst, (np.abs(learn.predict(parameter) - f).max() / max(1, np.abs(f).max()),
                                   abs(got - value) / value,
                                   abs(gradient @ direction - slope) / max(np.linalg.norm(gradient), 1e-9)))
        h = 1e-4
        ends = [learn.risk(parameter + x * h * direction)[1] for x in (-2, -1, 1, 2)]
        bend = (ends[0] - 8 * ends[1] + 8 * ends[2] - ends[3]) / (12 * h)
        product = learn.hessian(parameter, direction)
        if trial % 10 == 0:
            whole, (value, vector) = learn.hessian(parameter), learn.spectrum(parameter)
            kept = np.flatnonzero(~off)
            near(value, np.linalg.eigvalsh(whole[np.ix_(kept, kept)])[::-1], 1e-13 * np.abs(whole).max() * len(kept))
            near(vector @ vector.T, np.eye(len(kept)), 1e-13)
            near(vector.T @ (value[:, None] * vector), whole, 1e-13 * np.abs(whole).max() * len(kept))
        assert np.abs(product - bend).max() < 1e-8 * max(1, np.abs(bend).max(), np.abs(ends).max()), trial
        near(learn.losses(parameter)[1].shape, (b, m))
        share = {SQUARED: np.ones((b, m, 1)), LOGISTIC: np.concatenate([target, 1 - target], -1),
                 CATEGORICAL: target}[loss]
        total = share.sum(-1, keepdims=True)
        floor = -(share * np.log(share / (1 if loss == LOGISTIC else total))).sum(-1) * (loss != SQUARED)
        near(learn.least()[1], floor, 1e-14)
        all_least = ((1 / (b * m) if weight is None else weight) * floor).sum()
        near(learn.least()[0], all_least, 1e-12 * max(1, all_least))
    assert (worst < (1e-13, 1e-12, 1e-12)).all(), worst
    print("largest differences: predictions %.1e, risk %.1e, gradient %.1e" % tuple(worst))


def draws():
    task, bayes = denoising(np.array([.2, .8]), [[3, 0], [0, 3]], 1, 4)
    z, component = task.draw(1, 2, 0, 100000)
    assert np.array_equal(task.draw(1, 2, 500, 10)[0], z[500:510])
    near(component.mean(), .8, 5 * .4 / math.sqrt(1e5))
    near(z.mean(0), (.6, 2.4), 5 * math.sqrt((5 + 9 * .16) / 1e5))
    near(np.cov(z[component == 1].T), 5 * I2, .15)
    left = task.bayes(z)[1]
    points, weight = task.quadrature(48)
    exact = weight @ task.bayes(points)[1]
    near(left.mean(), exact, 5 * left.std() / math.sqrt(1e5))
    risk, error = task.risk(1, 2, 0, 100000)
    near((risk, error), (left.mean(), left.std(ddof=1) / math.sqrt(1e5)), 1e-12)
    # where no tensor rule reaches, d = 20, a task that is the same along all but two directions
    m = np.zeros((2, 20))
    m[:, :2] = [[3, 0], [0, 3]]
    wide = Task.denoising(np.log([.2, .8]), m, np.stack([np.eye(20)] * 2), 4.)
    risk, error = wide.risk(3, 0, 0, 200000)
    near(risk, exact + 18 * .8, 5 * error)
    assert 0 < error < .01


def in_context():
    """One set of weights for all tasks: a head whose tokens are (x, y) and whose queries are x"""
    rng = np.random.default_rng(4)
    d, clusters = 4, 5
    a = rng.normal(size=(d, d))
    gamma = a @ a.T / d + np.eye(d)
    inverse, tall = np.linalg.inv(gamma), np.stack([gamma] * clusters)
    for trial in range(4):
        # clusters of one norm in the metric of gamma; more than two classes in half of the trials
        m = rng.normal(size=(clusters, d))
        m *= 2 / np.sqrt(np.einsum("ci,ij,cj->c", m, inverse, m))[:, None]
        log_weight = np.log(rng.dirichlet(np.ones(clusters)))
        label = rng.choice([-1., 1], clusters) if trial % 2 else np.eye(3)[rng.integers(3, size=clusters)]
        slope = rng.normal(size=(clusters, 2, d))
        slope -= np.einsum("cei,ci,cj->cej", slope, m, m) / (m ** 2).sum(1)[:, None, None]  # slope m = 0
        for task, noise in ((Task.classification(log_weight, m, tall, label), 0),
                            (Task.regressions(log_weight, m, tall, slope, .3), .3)):
            e = task.value_width
            z, _ = task.draw(1, trial, 0, 300)
            target, left = task.bayes(z)
            learn = Learn(*task.joint(), z, target)
            head = learn.join(U=np.vstack([inverse, np.zeros((e, d))]), V=np.hstack([np.zeros((e, d)), np.eye(e)]))
            near(learn.predict(head), target, 1e-12)
            logit = log_weight + z @ inverse @ m.T
            beta = np.exp(logit - logit.max(1, keepdims=True))
            beta /= beta.sum(1, keepdims=True)
            each = np.einsum("cei,qi->qce", slope, z) if noise else task.arrays["value_mean"][None]
            near(target, np.einsum("qc,qce->qe", beta, each + 0 * beta[..., None]), 1e-12)
            near(left, (beta * ((each - target[:, None]) ** 2).sum(2)).sum(1) + noise * e, 1e-12)
            token, component = task.prompt(3, trial, 0, 100000)
            weights, mean, covariance = task.joint()
            c = int(np.argmax(weights))
            mine = token[component == c]
            near(mine.mean(0), mean[c], 5 * np.sqrt(np.trace(covariance[c]) / len(mine)))
            near(np.cov(mine.T), covariance[c], .05 * np.trace(covariance[c]))


for check in (risks, in_context, classification, constructions, lda_exact, random_problems, draws):
    check()
    print(check.__name__, "holds")
