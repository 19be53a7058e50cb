#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Gauss-Hermite rules of the library beside NumPy's. SATTN_LIBRARY names the library; 77 = skipped: no NumPy."""
import pathlib
import sys

try:
    import numpy as np
except ImportError:
    print("skipped: this Python has no NumPy")
    sys.exit(77)

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "ffi" / "python"))
import sattn  # noqa: E402

worst = [0, 0]
for order in range(1, 129):
    x, w = sattn.hermite(order)
    want, mass = np.polynomial.hermite_e.hermegauss(order)
    worst = [max(worst[0], np.abs(x - want).max()), max(worst[1], np.abs(w - mass / mass.sum()).max())]
assert max(worst) <= 1e-14, worst
x, w = sattn.trapezoid(451, 9)
assert abs(w @ x ** 4 - 3) < 1e-14
print(f"largest difference of a node {worst[0]:.1e}, of a weight {worst[1]:.1e}")
