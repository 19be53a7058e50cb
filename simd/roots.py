# SPDX-License-Identifier: BSD-2-Clause
"""The tables of exp: 2^(i/8) times a common scale, rounded to float and to double.

A table of the 8th roots themselves would be off by up to 0.34 ULP (0.42 in double). One scale near 1 is
found for which all eight products lie next to a number of the type; the polynomial (coefficients.sollya)
takes the scale out again, which costs nothing. Prints the scale, the rounding errors in ULPs and the
entries' bits; takes a minute or two."""
import math

import numpy as np

# 2^(i/8) 2^128, rounded down
ROOTS = [math.isqrt(math.isqrt(math.isqrt(1 << (i + 8 * 128)))) for i in range(8)]


def show(name, scale, mantissa, bias):
    """scale: an integer, in units of 2^-63"""
    print(name, "scale", (scale / 2**63).hex())
    bits = 63 + 128 - mantissa
    for i, root in enumerate(ROOTS):
        entry = (scale * root + (1 << (bits - 1))) >> bits
        error = ((entry << bits) - scale * root) / (1 << bits)
        print(f"   {i} {entry - (1 << mantissa) + (bias << mantissa):#x} error {error:.4f}")


def find_f32(tries=24_000_000, batch=400_000):
    """Of random scales the best"""
    roots = np.exp2(np.arange(8).astype(np.longdouble) / 8)
    draw = np.random.default_rng(8)
    best, scale = 1.0, np.longdouble(1)
    for _ in range(tries // batch):
        scales = 1 + draw.random(batch).astype(np.longdouble) / 128
        exact = roots[:, None] * scales[None, :]
        worst = np.abs(exact.astype(np.float32).astype(np.longdouble) - exact).max(axis=0)
        if worst.min() < best:
            best, scale = worst.min(), scales[worst.argmin()]
    return int(scale * np.longdouble(2)**63)


def find_f64(batches=640, batch=1 << 22):
    """Of the doubles from 1 on the best: entry i is (2^52 + j) 2^(i/8), whose 64 bits after the point
    say how near to an integer it is. A candidate is dropped at the first entry that is no better than
    the worst of the best scale so far."""
    best, scale = 1 << 59, 0
    places = np.arange(batch, dtype=np.uint64)
    steps = [places * np.uint64(root >> 64 & (1 << 64) - 1) for root in ROOTS]
    for first in range(1 << 52, (1 << 52) + batches * batch, batch):
        kept, worst = places, np.zeros(batch, np.int64)
        for root, step in zip(ROOTS[1:], steps[1:]):
            start = np.uint64(root * first >> 64 & (1 << 64) - 1)
            miss = np.abs((step[kept] + start).view(np.int64))
            good = miss < best
            kept, worst = kept[good], np.maximum(worst[good], miss[good])
        if len(kept):
            best, scale = int(worst.min()), first + int(kept[worst.argmin()])
    return scale << 11


show("f32", find_f32(), 23, 127)
show("f64", find_f64(), 52, 1023)
