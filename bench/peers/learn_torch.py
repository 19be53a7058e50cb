#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""learn_torch.py LIBRARY OUT.json: the population gradient of in-context denoising (64 tasks of 8 clusters in R^8, 32 queries a
task; f = K z + one head) by the library and as one writes it with torch's autograd, in one process, interleaved, f64 and, for
torch, f32 as well. Forms of torch: batched matrix products, and torch.compile of the same where it works."""
import argparse
import json
import os
import statistics
import sys
import time

import numpy as np
import torch

TASKS, QUERIES, CLUSTERS, D, VARIANCE, NOISE = 64, 32, 8, 8, 0.5, 2.0


def problem():
    rng = np.random.default_rng(1)
    mean = rng.normal(size=(TASKS, CLUSTERS, D))
    mean *= 4 / np.linalg.norm(mean, axis=-1, keepdims=True)
    which = rng.integers(CLUSTERS, size=(TASKS, QUERIES))
    clean = np.take_along_axis(mean, which[..., None], 1) + rng.normal(size=(TASKS, QUERIES, D)) * VARIANCE ** .5
    return mean, clean + rng.normal(size=clean.shape) * NOISE ** .5, clean


def by_torch(mean, z, target, dtype, threads):
    mean, z, target = (torch.tensor(a, dtype=dtype) for a in (mean, z, target))
    u, v, k = ((scale * torch.eye(D, dtype=dtype)).requires_grad_() for scale in (.1, .5, .2))
    s = VARIANCE + NOISE

    def risk(u, v, k):  # shared isotropic covariance: its quadratic form drops out of the weights
        tilt = z @ u.T
        weight = torch.softmax(tilt @ mean.transpose(1, 2), -1)
        f = z @ k.T + (weight @ mean + s * tilt) @ v.T
        return ((f - target) ** 2).sum() / (TASKS * QUERIES)

    def call(function):
        def run():
            torch.set_num_threads(threads)
            for p in (u, v, k):
                p.grad = None
            value = function(u, v, k)
            value.backward()
            return value.item(), np.concatenate([p.grad.numpy().ravel() for p in (u, v, k)])
        return run
    forms = {"eager": call(risk)}
    try:
        compiled = call(torch.compile(risk))
        compiled()
        forms["compiled"] = compiled
    except Exception as error:  # no compiler, or a version without it
        print("torch.compile:", type(error).__name__, file=sys.stderr)
    return forms


def by_library(mean, z, target, threads):
    from sattn_learn import Learn
    learn = Learn(np.zeros((TASKS, CLUSTERS)), mean, np.full(mean.shape, VARIANCE + NOISE), z, target, trained="UVK",
                  threads=threads)
    parameter = learn.join(U=.1 * np.eye(D), V=.5 * np.eye(D), K=.2 * np.eye(D))

    def run():
        risk, gradient = learn.risk(parameter)
        parts = learn.split(gradient)
        return risk, np.concatenate([parts[name].ravel() for name in "UVK"])
    return run


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("library")
    options.add_argument("out")
    options.add_argument("--repetitions", type=int, default=9)
    options.add_argument("--threads", type=int, nargs="*", default=[1, 2])
    args = options.parse_args()
    os.environ["SATTN_LIBRARY"] = args.library
    sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "ffi", "python"))
    data = problem()
    candidates = {}
    for threads in args.threads:
        candidates["sattn", "f64", threads] = by_library(*data, threads)
        for name, dtype in (("f64", torch.float64), ("f32", torch.float32)):
            for form, run in by_torch(*data, dtype, threads).items():
                candidates["torch " + form, name, threads] = run
    want = candidates["sattn", "f64", args.threads[0]]()
    for key, run in candidates.items():
        got, limit = run(), 1e-12 if key[1] == "f64" else 1e-4
        assert abs(got[0] / want[0] - 1) < limit and np.abs(got[1] - want[1]).max() < limit * np.abs(want[1]).max(), key
    times = {key: [] for key in candidates}
    for _ in range(args.repetitions):
        for key, run in candidates.items():
            for _ in range(5):
                run()
            begin = time.perf_counter()
            for _ in range(40):
                run()
            times[key].append((time.perf_counter() - begin) / 40)
    rows = []
    for (who, dtype, threads), mine in times.items():
        ratio = [a / b for a, b in zip(mine, times["sattn", "f64", threads])]
        rows.append(dict(who=who, dtype=dtype, threads=threads, seconds=statistics.median(mine),
                         ratio=[statistics.median(ratio), min(ratio), max(ratio)]))
        print(f"{who:15} {dtype} threads {threads}: {1e6 * rows[-1]['seconds']:8.0f} us, "
              "x %.2f (%.2f-%.2f)" % tuple(rows[-1]["ratio"]))
    with open(args.out, "w", encoding="utf-8") as file:
        json.dump(dict(torch=torch.__version__, rows=rows), file, indent=1)


main()
