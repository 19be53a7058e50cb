# SPDX-License-Identifier: BSD-2-Clause
"""The table of exp f32: 2^(i/8) times a common scale, rounded to float.

A table of the 8th roots themselves would be off by up to 0.34 ULP. One scale near 1 is found for which
all eight products lie next to a float; the polynomial (coefficients.sollya) takes the scale out again,
which costs nothing. Prints the scale, the rounding errors and the entries' bits."""
import numpy as np

TRIES, BATCH = 24_000_000, 400_000
roots = np.exp2(np.arange(8).astype(np.longdouble) / 8)
draw = np.random.default_rng(8)


def errors(scales):
    exact = roots[:, None] * scales[None, :]
    return (exact.astype(np.float32).astype(np.longdouble) - exact) * np.longdouble(2) ** 23


best, scale = 1.0, np.longdouble(1)
for _ in range(TRIES // BATCH):
    scales = 1 + draw.random(BATCH).astype(np.longdouble) / 128
    worst = np.abs(errors(scales)).max(axis=0)
    if worst.min() < best:
        best, scale = worst.min(), scales[worst.argmin()]
print("scale", float(scale).hex(), "table's error at most", round(float(best), 4), "ULP")
for i, root in enumerate(roots):
    print(i, hex((root * scale).astype(np.float32).view(np.uint32)), "error",
          round(float(errors(np.array([scale]))[i, 0]), 4))
