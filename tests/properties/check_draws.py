#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Random numbers and draws beside NumPy's, from the generator's words on: the same integers, uniforms and
categories, normals within an ULP but for what their angle's rounding explains, and tokens of tasks with their laws.
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
from sattn_learn import Task  # noqa: E402

MASK = np.uint64(0xffffffff)
SEED, STREAM = 0x0123456789abcdef, 0xfedcba9876543210 >> 2


def words(seed, stream, first, n):
    """Philox4x32-10 of Salmon et al. 2011 on arrays of blocks"""
    block = np.arange(first // 4, (first + n + 3) // 4, dtype=np.uint64)
    shift = np.uint64(32)
    w = [block & MASK, block >> shift, np.full_like(block, stream & 0xffffffff), np.full_like(block, stream >> 32)]
    k = [seed & 0xffffffff, seed >> 32]
    for turn in range(10):
        key = [np.uint64((k[0] + turn * 0x9e3779b9) & 0xffffffff), np.uint64((k[1] + turn * 0xbb67ae85) & 0xffffffff)]
        a, b = np.uint64(0xd2511f53) * w[0], np.uint64(0xcd9e8d57) * w[2]
        w = [(b >> shift) ^ w[1] ^ key[0], b & MASK, (a >> shift) ^ w[3] ^ key[1], a & MASK]
    return np.stack(w, 1).ravel()[first % 4:][:n]


def uniform(seed, stream, first, n):
    pair = words(seed, stream, 2 * first, 2 * n).reshape(-1, 2)
    return ((pair[:, 1] << np.uint64(32) | pair[:, 0]) >> np.uint64(11)).astype(float) * 2. ** -53 + 2. ** -54


def normal(seed, stream, first, n):
    start = first // 2 * 2
    u = uniform(seed, stream, start, n + 2 + n % 2).reshape(-1, 2)
    radius, angle = np.sqrt(-2 * np.log(u[:, 0])), 2 * np.pi * u[:, 1]
    return np.stack([radius * np.cos(angle), radius * np.sin(angle)], 1).ravel()[first - start:][:n]


def numbers():
    n = 200000
    assert np.array_equal(sattn.words(SEED, STREAM, 12345, n), words(SEED, STREAM, 12345, n))
    assert np.array_equal(sattn.uniform(SEED, STREAM, 777, n), uniform(SEED, STREAM, 777, n))
    got, want = sattn.normal(SEED, STREAM, 777, n), normal(SEED, STREAM, 777, n)
    off = np.abs(got - want) / np.spacing(np.abs(want))
    # roundings of logarithm, root, cosine and product, on both sides
    print(f"normals: the same bits {np.mean(off == 0):.1%}, within an ULP {np.mean(off <= 1):.2%}, at most {off.max():.0f} ULP")
    assert off.max() <= 8 and np.mean(off <= 2) > .99
    log_weight = np.log([.1, .5, .25, .15]) + 3
    share = np.exp(log_weight - log_weight.max())
    below = np.cumsum(share / share.sum())
    got = sattn.categorical(SEED, 5, 99, n, np.insert(log_weight, [0, 2, 4], -np.inf))
    want = np.array([1, 2, 4, 5])[np.minimum(np.searchsorted(below, uniform(SEED, 5, 99, n)), 3)]
    assert np.array_equal(got, want)
    assert np.abs(np.bincount(got, minlength=7)[[1, 2, 4, 5]] / n - [.1, .5, .25, .15]).max() < 5 * .5 / np.sqrt(n)
    x = sattn.sphere(SEED, 6, 10, 20000, 5, 3.)
    z = normal(SEED, 6, 50, 100000).reshape(-1, 5)
    assert np.abs(x - 3 * z / np.linalg.norm(z, axis=1, keepdims=True)).max() < 1e-14
    assert np.abs(np.linalg.norm(x, axis=1) - 3).max() < 1e-14
    assert np.abs(x.mean(0)).max() < 5 * 3 / np.sqrt(5 * 20000) and np.abs(x.T @ x / 20000 - 9 / 5 * np.eye(5)).max() < .1
    assert np.array_equal(sattn.sphere(SEED, 6, 12, 5, 5, 3.), x[2:7])


def law(task, tokens, component, c, n):
    """Means and covariances of the tokens of component c beside the task's, in standard errors"""
    a = {name: x[c] for name, x in task.arrays.items()}
    z, y = tokens[component == c, :n], tokens[component == c, n:]
    count, e = len(z), y.shape[1]
    cross = a.get("cross", np.zeros((e, n)))
    residue = (a.get("value_variance", 0) - np.trace(cross @ np.linalg.pinv(a["covariance"]) @ cross.T)) / e
    spread = cross @ np.linalg.pinv(a["covariance"]) @ cross.T + residue * np.eye(e)
    mean, covariance = np.append(a["mean"], a["value_mean"]), np.block([[a["covariance"], cross.T], [cross, spread]])
    all_of = np.hstack([z, y])
    size = np.sqrt(np.diag(covariance)) + 1e-9
    assert np.abs((all_of.mean(0) - mean) / size).max() < 5 / np.sqrt(count)
    assert np.abs((np.cov(all_of.T) - covariance) / np.outer(size, size)).max() < 5 * np.sqrt(2 / count)


def tokens():
    rng = np.random.default_rng(2)
    c, n, e = 3, 3, 2
    a = rng.normal(size=(c, n, n))
    mean, share, covariance = rng.normal(size=(c, n)), np.array([.2, .5, .3]), a @ a.transpose(0, 2, 1)
    value, slope = rng.normal(size=(c, e)), rng.normal(size=(c, e, n))
    cross = slope @ covariance
    known = np.einsum("cij,cij->c", cross, slope)
    regression = Task(np.log(share), mean, covariance, value, cross, known + np.array([.5, 0, 2]))
    classes = Task(np.log(share), mean, covariance, np.eye(3))
    singular = np.zeros((c, n, n))
    singular[1] = np.ones((n, n))
    atoms = Task(np.log(share), mean, singular, value, slope[:, :, :1] * np.ones((e, n)) * (singular.sum((1, 2)) > 0)[:, None, None],
                 (slope[:, :, 0] ** 2).sum(1) * 1.5)
    for task in (regression, classes, atoms):
        token, component = task.prompt(SEED, STREAM, 0, 60000)
        z, same = task.draw(SEED, STREAM, 0, 60000)
        assert np.array_equal(token[:, :n], z) and np.array_equal(component, same)
        for part in (slice(17, 19), slice(30000, 30040)):
            again, _ = task.prompt(SEED, STREAM, part.start, part.stop - part.start)
            assert np.array_equal(again, token[part])
        for k in range(c):
            law(task, token, component, k, n)
    assert np.array_equal(classes.prompt(1, 2, 0, 500)[0][:, n:], np.eye(3)[classes.prompt(1, 2, 0, 500)[1]])
    token, component = atoms.prompt(1, 2, 0, 500)
    assert np.array_equal(token[component == 0, :n], mean[component[component == 0]])
    token, component = regression.prompt(SEED, STREAM, 7, 1000)  # the stream's own numbers
    rest = normal(SEED, (1 << 63) + STREAM, 7 * e, 1000 * e).reshape(-1, e)
    y = value[component] + np.einsum("ien,in->ie", slope[component], token[:, :n] - mean[component])
    y += np.sqrt(np.array([.5, 0, 2]) / e)[component][:, None] * rest
    assert np.abs(token[:, n:] - y).max() < 1e-13
    pick = np.searchsorted(np.cumsum(share), uniform(SEED, 2 * STREAM, 7, 1000))
    assert np.array_equal(component, pick)
    z = mean[pick] + np.einsum("inm,im->in", np.linalg.cholesky(covariance)[pick],
                               normal(SEED, 2 * STREAM + 1, 7 * n, 1000 * n).reshape(-1, n))
    assert np.abs(token[:, :n] - z).max() < 1e-13


for check in (numbers, tokens):
    check()
    print(check.__name__, "holds")
