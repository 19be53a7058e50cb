#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The shared library, through ctypes, against the NumPy oracle on random problems: every kind of
covariance, joint blocks or not, batches, shared mixtures, strided rows; forward and backward.

SATTN_LIBRARY names the library. Exit status 77 = skipped: no NumPy."""
import ctypes
import pathlib
import sys

try:
    import numpy as np
except ImportError:
    print("skipped: this Python has no NumPy")
    sys.exit(77)

here = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(here.parent / "oracle"), str(here.parent.parent / "ffi" / "python")]
import mixture as oracle  # noqa: E402
from sattn import MixtureDescriptor, library as sattn  # noqa: E402

KINDS = ["zero", "diag", "full"]
I64, I32 = ctypes.c_int64, ctypes.c_int32


ROWS = {"tilt", "out", "weight", "dout", "dtilt"}
PARAMETERS = ["log_weight", "mean", "covariance", "value_mean", "cross"]


class Problem:
    """Random numbers and room for the answers, as arrays [B or 1, ...] whose rows lie apart by a gap."""

    def __init__(self, rng, real):
        self.real, self.rng = real, rng
        b, m, c, d, e = (int(x) for x in rng.integers(1, [4, 60, 80, 12, 12]))
        self.kind, joint = rng.choice(KINDS), rng.random() < 0.5
        self.batch = b
        shapes = dict(log_weight=(c,), mean=(c, d))
        if self.kind != "zero":
            shapes["covariance"] = (c, d, d) if self.kind == "full" else (c, d)
        if joint:
            shapes["value_mean"] = (c, e)
            if rng.random() < 0.7:
                shapes["cross"] = (c, e, d)
        self.array = {}
        for name, shape in shapes.items():
            self.array[name] = self.room((1 if rng.random() < 0.4 else b,) + shape)
        self.array["log_weight"][rng.random(self.array["log_weight"].shape) < 0.2] = -np.inf
        if self.kind == "full":
            s = self.array["covariance"]
            s[:] = s @ s.swapaxes(-1, -2) / d
        elif self.kind == "diag":
            self.array["covariance"][:] **= 2
        width = e if joint else d
        for name, shape in dict(tilt=(m, d), dout=(m, width), dcgf=(m,), out=(m, width), stats=(m, 2),
                                cgf=(m,), weight=(m, c), dtilt=(m, d)).items():
            self.array[name] = self.room((b,) + shape, gap=3 if name in ROWS else 0)
        for name in shapes:
            self.array["d" + name] = self.room(self.array[name].shape)
        self.shape = (b, m, c, d, e if joint else 0, KINDS.index(self.kind))

    def room(self, shape, gap=0):
        wide = shape[:-1] + (shape[-1] + gap,)
        return self.rng.uniform(-1, 1, wide).astype(self.real)[..., : shape[-1]]

    def descriptor(self, library):
        p = MixtureDescriptor()
        status = library.sattn_mixture_init(ctypes.byref(p), I64(ctypes.sizeof(p)), *map(I64, self.shape[:5]),
                                            I32(self.shape[5]))
        assert status == 0, status
        for name, array in self.array.items():
            strides = [s // array.itemsize for s in array.strides]
            setattr(p, name, array.ctypes.data)
            if name[1:] not in PARAMETERS:
                setattr(p, name + "_batch", 0 if name in PARAMETERS and len(array) < self.batch else strides[0])
            if name in ROWS:
                setattr(p, name + "_row", strides[1])
        return p

    def entry(self, name, b):
        array = self.array.get(name)
        return None if array is None else array[b if len(array) > 1 else 0].astype(np.float64)

    def answers(self):
        """All outputs, by the oracle."""
        want = {n: np.zeros(a.shape) for n, a in self.array.items() if n not in ("tilt", "dout", "dcgf")}
        c, d = self.shape[2:4]
        for b in range(self.batch):
            log_weight, mean, s, v, x = (self.entry(n, b) for n in PARAMETERS)
            args = (self.entry("tilt", b), log_weight, mean, oracle.dense(self.kind, s, c, d))
            f = oracle.forward(*args, v, x)
            g = oracle.backward(*args, self.entry("dout", b), self.entry("dcgf", b), v, x)
            if self.kind == "diag":
                g["dcovariance"] = np.einsum("cii->ci", g["dcovariance"])
            for name in ("out", "cgf", "weight"):
                want[name][b] = f[name]
            want["dtilt"][b] = g["dtilt"]
            for name in PARAMETERS:
                if "d" + name in want:
                    want["d" + name][b if len(want["d" + name]) > 1 else 0] += g["d" + name]
        return want


def check(library, seed, suffix, real, tolerance):
    x = Problem(np.random.default_rng(seed), real)
    p = x.descriptor(library)
    for name in ("forward", "backward"):
        status = getattr(library, f"sattn_mixture_{name}_{suffix}")(ctypes.byref(p))
        assert status == 0, f"{name} seed {seed}: status {status}"
    worst = 0
    for name, want in x.answers().items():
        if not name.startswith("d") and name not in ("out", "cgf", "weight"):
            continue
        got = x.array[name].astype(np.float64)
        finite = np.isfinite(want)
        assert (got[~finite] == want[~finite]).all(), f"{suffix} seed {seed}: {name}"
        largest = max(1, np.abs(want[finite]).max(initial=0))
        error = np.abs(got[finite] - want[finite]).max(initial=0) / largest
        assert error <= tolerance, f"{suffix} seed {seed} {x.kind} {x.shape}: {name} is off by {error:.3g}"
        worst = max(worst, error)
    return worst


def main():
    # Sums have up to 80 x 180 terms; errors of their roundings hardly ever add up in one direction.
    for suffix, real, tolerance in (("f64", np.float64, 1e-13), ("f32", np.float32, 1e-5)):
        worst = max(check(sattn, seed, suffix, real, tolerance) for seed in range(200))
        print(f"{suffix}: 200 problems, worst error {worst:.3g} of the largest element")


main()
