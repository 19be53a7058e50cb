# SPDX-License-Identifier: BSD-2-Clause
"""What the Python peers share: the binding, and interleaved timing whose JSON has
the form of Google Benchmark's, so that table.py reads both."""

import ctypes
import json
import os
import pathlib
import platform
import random
import sys
import time

SUFFIX = {32: "f32", 64: "f64"}  # by the bits of a type


def load_binding(path):
    """The Python binding, on the library at `path`"""
    os.environ["SATTN_LIBRARY"] = path
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "ffi" / "python"))
    import sattn

    return sattn


def checked(function, *arguments):
    """Calls a function of the library; a status other than 0 is an error of this program."""
    status = function(*arguments)
    if status:
        raise RuntimeError(f"{function.__name__}: status {status}")


def pointer(array):
    """The address of a NumPy array or a torch tensor"""
    address = array.data_ptr() if hasattr(array, "data_ptr") else array.ctypes.data
    return ctypes.c_void_p(address)


def seconds_of(call, calls):
    wall, cpu = time.perf_counter(), time.process_time()
    for _ in range(calls):
        call()
    return (time.perf_counter() - wall) / calls, (time.process_time() - cpu) / calls


def interleave(group, candidates, repetitions, least=0.03):
    """Runs {name: call} in random order, `repetitions` times each of at least `least` seconds;
    a call that takes more than a second, three times."""
    calls, order = {}, []
    for name, call in candidates.items():
        call()  # first use: allocation, code generation
        once = seconds_of(call, 1)[0]
        calls[name] = max(1, int(least / max(once, 1e-7)))
        order += [name] * (repetitions if once < 1 else min(3, repetitions))
    random.Random(1).shuffle(order)
    results = []
    for name in order:
        wall, cpu = seconds_of(candidates[name], calls[name])
        results.append(
            {
                "name": f"{group}/{name}",
                "run_type": "iteration",
                "iterations": calls[name],
                "real_time": wall * 1e9,
                "cpu_time": cpu * 1e9,
                "time_unit": "ns",
            }
        )
    return results


def write(path, context, results):
    with open("/proc/cpuinfo", encoding="ascii") as lines:
        cpu = next(
            (line.split(":")[1].strip() for line in lines if line.startswith("model name")),
            platform.processor(),
        )
    with open(path, "w", encoding="utf-8") as file:
        json.dump(
            {
                "context": {"cpu": cpu, "load_avg": os.getloadavg(), **context},
                "benchmarks": results,
            },
            file,
            indent=1,
        )
