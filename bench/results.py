# SPDX-License-Identifier: BSD-2-Clause
"""Reads the JSON of the benchmarks and of the Python peers, and compares candidates."""

import json
import statistics
from collections import defaultdict
from pathlib import Path

BYTES = {"f32": 4, "f64": 8}
SIZE = {"KiB": 1 << 10, "MiB": 1 << 20}


class Results:
    """Times in ns of one file: group -> candidate -> times; those of a group ran interleaved."""

    def __init__(self, path):
        data = json.loads(Path(path).read_text(encoding="utf-8"))
        self.name, self.context = Path(path).stem, data["context"]
        self.cpu, self.wall = defaultdict(dict), defaultdict(dict)
        self.work = {}
        # Google Benchmark numbers its benchmarks by registration and reports them in random order.
        for run in sorted(data["benchmarks"], key=lambda run: run.get("family_index", 0)):
            if run["run_type"] != "iteration" or run.get("error_occurred"):
                continue
            group, candidate = run["name"].rsplit("/", 1)
            self.cpu[group].setdefault(candidate, []).append(run["cpu_time"])
            self.wall[group].setdefault(candidate, []).append(run["real_time"])
            if "work_bytes" in run:
                self.work[group] = run["work_bytes"]


def quartiles(times):
    return statistics.quantiles(times, n=4, method="inclusive") if len(times) > 1 else times * 3


class Ratio:
    """How many times as long as b takes a, so > 1: b is faster"""

    def __init__(self, a, b):
        (a1, self.a, a3), (b1, self.b, b3) = quartiles(a), quartiles(b)
        self.value, self.low, self.high = self.a / self.b, a1 / b3, a3 / b1

    def __str__(self):
        digits = 1 if self.value >= 10 else 2
        return f"{self.value:.{digits}f} ({self.low:.{digits}f}–{self.high:.{digits}f})"


def elements(group):
    """Elements of exp/TYPE/SIZE/DATA, softmax/TYPE/SIZE/N; flops of mixture-PASS/TYPE/KIND/MxCxD and
    of the live pairs of attention-PASS/TYPE/VARIANT/HxMxNxD"""
    part = group.split("/")
    if part[0].startswith("attention"):
        h, m, n, d = map(int, part[3].split("x"))
        pairs = {"causal": (m * n + n) / 2, "mask": 0.9 * m * n}.get(part[2], m * n)
        return h * pairs * d * (10 if part[0] == "attention-backward" else 4)
    if part[0].startswith("mixture"):
        m, c, d = map(int, part[3].split("x"))
        each = {"full": 2 * d + 6, "diag": 8, "zero": 4}[part[2]]
        return m * c * d * each * (4 if part[0] == "mixture-both" else 1)
    n = int(part[2][:-3]) * SIZE[part[2][-3:]] // BYTES[part[1]]
    return n if part[0] == "exp" else max(n // int(part[3]), 1) * int(part[3])


def ours(candidates):
    """The library's fastest row that ran"""
    return next(
        (
            name
            for name in ("sattn-avx512", "sattn-avx2", "sattn-neon", "sattn-scalar")
            if name in candidates
        ),
        None,
    )


def fastest_peer(candidates):
    peers = [name for name in candidates if not name.startswith("sattn") and name != "copy"]
    return min(peers, key=lambda name: statistics.median(candidates[name]), default=None)


def peak(results, kind, isa):
    """ns per flop at the peak of multiply-adds: 10,000 steps of 12 chains of full vectors"""
    lanes = {"avx2": 32, "avx512": 64}[isa] // BYTES[kind]
    return [t / (10000 * 12 * 2 * lanes) for t in results.cpu[f"fma/{kind}"][isa]]


def percent_of_peak(results, group, isa):
    times = [t / elements(group) for t in results.cpu[group]["sattn-" + isa]]
    return 100 * Ratio(peak(results, group.split("/")[1], isa), times).value


def markdown(header, rows):
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])
