#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Training: four deterministic curves to 1e-8, Adam, schedules and clipping beside NumPy's, runs cut anywhere and
resumed to the same bits, fresh draws, early ends, and how the two optimal manifolds of LDA attract.
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
from sattn_learn import ADAM, COSINE, DROPS, LOGISTIC, Learn, Task, Train  # noqa: E402

I2 = np.eye(2)
STEPS = [0, 1, 10, 100, 1000, 3000]


def denoising(mean, variance, noise, heads, trained):
    c = len(mean)
    task = Task.denoising(np.full(c, -np.log(c)), mean, variance * np.stack([I2] * c), noise)
    z, weight = task.quadrature(48)
    return Learn(np.full(c, -np.log(c)), mean, np.full((c, 2), variance + noise), z, task.bayes(z)[0], weight,
                 heads=heads, trained=trained)


def labelled(share, mean, label, loss, order=48):
    """In-context classification: tokens (x, y) with cov x = I, queries x"""
    c = len(mean)
    task = Task(np.log(share), mean, np.stack([I2] * c), np.array(label, float)[:, None])
    z, weight = task.quadrature(order)
    predicted = task.bayes(z)[0]
    if loss == LOGISTIC:
        predicted = (1 + predicted) / 2
    prompt = np.column_stack([mean, label])
    return Learn(np.log(share), prompt, np.tile([1., 1, 0], (c, 1)), z, predicted, weight, loss=loss, trained="UV")


def curves():
    square = 4. * np.array([[1, 0], [0, 1], [-1, 0], [0, -1]])
    xor = 1.5 * np.array([[1, 1], [-1, -1], [1, -1], [-1, 1]])
    d1 = denoising(square, .25, 1, 1, "UVK")
    d2 = labelled([.25] * 4, xor, [1, 1, -1, -1], 0)
    d3 = labelled([.6, .4], I2, [1, -1], LOGISTIC)
    d4 = denoising(np.array([[3., 0], [0, 3]]), 1, 4, 2, "UV")
    p = d3.arrays["target"][:, 0]
    least = -d3.arrays["weight"] @ (p * np.log(p) + (1 - p) * np.log1p(-p))
    flat = np.zeros((3, 2))
    for name, learn, start, rate, clip, floor, want in (
            ("D1", d1, d1.join(U=.1 * I2, V=.5 * I2), .003, 0, 0,
             [6.056061783e0, 2.797043745e0, 2.507810784e-1, 1.355108675e-1, 1.820843902e-2, 3.650180608e-3]),
            ("D2", d2, d2.join(U=[[.1, 0], [0, .1], [0, 0]], V=[0, 0, 1]), .1, 0, 0,
             [5.549238561e-1, 4.140192184e-1, 2.631672324e-2, 3.108320169e-3, 2.865659971e-7, 3.105127e-15]),
            ("D3", d3, d3.join(U=flat, V=[1, 1, 0]), .1, 0, least,
             [2.345654117e-1, 2.120807185e-1, 9.934347979e-2, 1.185779984e-2, 4.326874331e-5, 1.387931121e-5]),
            ("D4", d4, d4.join(U=.1 * I2, V=[.5 * np.diag([1, 0]), .5 * np.diag([0, 1])]), .002, 10, 0,
             [6.000908020e-1, 3.913819279e-1, 1.915515512e-1, 4.665294290e-2, 3.248985500e-3, 6.131042316e-4])):
        run = Train(learn, start, 3001, rate=rate, clip=clip).run()
        off = np.abs((run.trace[STEPS] - floor) / want - 1)
        print(name, "differs by", off)
        assert off[:-1].max() < 1e-8, (name, off)
        assert off[-1] < 1e-6, (name, off)


def optimisers():
    learn = denoising(np.array([[3., 0], [0, 3]]), 1, 4, 1, "UVKk")
    start = .2 * sattn.normal(1, 0, 0, learn.count)
    for options in (dict(optimiser=ADAM, rate=.02), dict(optimiser=ADAM, schedule=COSINE, rate=.05, clip=.5),
                    dict(schedule=DROPS, rate=.01, drop=.5, drop_at=(3, 20)), dict(rate=.02, clip=.3)):
        run = Train(learn, start, 40, **options).run()
        at, m, v = start.copy(), 0, 0
        for step in range(40):
            risk, g = learn.risk(at)
            assert risk == run.trace[step] or abs(risk / run.trace[step] - 1) < 1e-12
            rate = options["rate"]
            if options.get("schedule") == COSINE:
                rate *= (1 + np.cos(np.pi * step / 40)) / 2
            elif options.get("schedule") == DROPS:
                rate *= .5 ** sum(step >= x for x in (3, 20))
            g = g * min(1, options.get("clip", np.inf) / np.linalg.norm(g))
            if "optimiser" in options:
                m, v = .9 * m + .1 * g, .999 * v + .001 * g * g
                g = m / (1 - .9 ** (step + 1)) / (np.sqrt(v / (1 - .999 ** (step + 1))) + 1e-8)
            at -= rate * g
        assert np.abs(at - run.parameter).max() < 1e-10, options
        # a checkpoint: all of the state goes to another training
        first = Train(learn, start, 40, **options).run(17)
        second = Train(learn, first.parameter, 40, **options)
        second.moment[...], second.step = first.moment, first.step
        second.run()
        assert second.step == 40 and np.array_equal(second.parameter, run.parameter), options
        assert np.array_equal(second.trace[17:], run.trace[17:]) and np.isnan(second.trace[:17]).all()


def callbacks():
    task = Task.denoising(np.log([.5, .5]), np.array([[3., 0], [0, 3]]), np.stack([I2] * 2), 4.)
    z = np.zeros((64, 2))
    learn = Learn(np.log([.5, .5]), [[3., 0], [0, 3]], np.full((2, 2), 5.), z, z, heads=2, trained="UV")

    def draw(step):
        learn.arrays["input"][...] = task.draw(1, 0, 64 * step, 64)[0]
        learn.arrays["target"][...] = task.bayes(learn.arrays["input"])[0]
    start = learn.join(U=.1 * I2, V=.5 * I2)
    run = Train(learn, start, 300, draw=draw, rate=.002, clip=10).run()
    assert run.trace[-50:].mean() < .6 * run.trace[:5].mean()
    seen = []

    def progress(step, risk):
        seen.append(risk)
        return step == 100
    again = Train(learn, start, 300, draw=draw, progress=progress, rate=.002, clip=10).run()
    assert again.step == 100 and len(seen) == 101 and seen == list(run.trace[:101])
    seen.clear()
    again.descriptor.progress = type(again.descriptor.progress)()
    assert np.array_equal(again.run().parameter, run.parameter) and again.step == 300


def manifolds():
    """The paper's Fig. 1: towards E1, where the gate does nothing, the distance falls on; towards E2 the excess risk
    vanishes while the distance stays."""
    learn = labelled([.6, .4], I2, [1, -1], LOGISTIC, 24)
    b, w, difference = np.log(1.5), np.array([1., -1]), np.array([1., -1])
    p = learn.arrays["target"][:, 0]
    least = -learn.arrays["weight"] @ (p * np.log(p) + (1 - p) * np.log1p(-p))

    def effective(parameter):
        parts = learn.split(parameter)
        u11, u12, v21, v22 = parts["U"][0, :2].T, parts["U"][0, 2], parts["V"][0, 0, :2], parts["V"][0, 0, 2]
        return u11 @ v21, v21[1] - v22, v21 @ difference + 2 * v22, 2 * u12 + u11 @ difference

    def distance(parameter):
        at, offset, gate, slope = effective(parameter)
        one = np.sqrt(((at - w) ** 2).sum() + (offset - b) ** 2 + gate ** 2)
        # (offset, gate) to the line offset = b - sigma(s0) gate with sigma(s0) = 0.6
        two = np.sqrt(((at - w) ** 2).sum() + (offset + .6 * gate - b) ** 2 / (1 + .36) + (slope ** 2).sum())
        return one, two
    noise = .01 * sattn.normal(3, 0, 0, learn.count)
    starts = (learn.join(U=np.vstack([np.array([[1, -1], [0, 0]]) / (2 * b), (1, 1)]), V=[2 * b, 0, -b]),
              learn.join(U=np.vstack([I2, (-.5, .5)]), V=[1, -1, (-1 - b + 1.2) / (1 - 1.2)]))
    rest = []
    for i, start in enumerate(starts):
        assert distance(start)[i] < 1e-12
        run = Train(learn, start + noise * (learn.join(U=1, V=1) != 0), 8000, rate=.05)
        before = distance(run.parameter)[i]
        run.run()
        rest.append(distance(run.parameter)[i] / before)
        excess = learn.risk(run.parameter)[0] - least
        assert excess < 1e-8, excess
        print(f"E{i + 1}: distance {before:.1e} -> {distance(run.parameter)[i]:.1e}, excess risk {excess:.1e}")
    assert rest[0] < .1 < rest[1] and rest[1] > 3 * rest[0], rest


for check in (curves, optimisers, callbacks, manifolds):
    check()
    print(check.__name__, "holds")
