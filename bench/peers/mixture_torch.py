#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The mixture's forward and backward pass as one writes them with torch and NumPy, beside the
library in one process and on one thread."""

import argparse
import ctypes
import os

import numpy as np
import torch
from mixture_forms import FORMS, numpy_einsum
from measure import SUFFIX, checked, interleave, load_binding, pointer, write

SHAPES = [(4096, 64, 64), (1024, 512, 128), (65536, 8, 16), (4096, 16, 4)]
KINDS = {"zero": 0, "diag": 1, "full": 2}


def blas():
    """Which BLAS torch calls and, of OpenBLAS, which kernels it picked"""
    if torch.backends.mkl.is_available():
        return "MKL"
    with open("/proc/self/maps", encoding="ascii") as maps:
        paths = {line.split()[-1] for line in maps if "openblas" in line}
    for path in sorted(paths):
        name = ctypes.CDLL(path).openblas_get_corename
        name.restype = ctypes.c_char_p
        return f"OpenBLAS, {name().decode()} kernels"
    return "not recognised"


class Problem:
    def __init__(self, sattn, kind, shape, dtype):
        queries, c, d = shape
        draw = torch.Generator().manual_seed(1)

        def uniform(*size):
            return torch.rand(*size, generator=draw, dtype=dtype) - 0.5

        self.kind, self.library, self.suffix = kind, sattn.library, SUFFIX[torch.finfo(dtype).bits]
        s = {"full": uniform(c, d, d) / (5 * d), "diag": uniform(c, d) / 5, "zero": None}[kind]
        if kind == "full":
            s = (s + s.transpose(1, 2)) / 2 + torch.eye(d, dtype=dtype) / 2
        elif kind == "diag":
            s = s + 0.5
        self.inputs = [uniform(queries, d), uniform(c), 2 * uniform(c, d), s]
        self.dout, self.dcgf = uniform(queries, d), uniform(queries)
        self.out, self.stats = torch.zeros(queries, d, dtype=dtype), torch.zeros(
            queries, 2, dtype=dtype
        )
        self.gradients = [None if x is None else torch.zeros_like(x) for x in self.inputs]
        self.describe(sattn.MixtureDescriptor(), queries, c, d)

    def describe(self, p, queries, c, d):
        self.p = p
        checked(
            self.library.sattn_mixture_init,
            ctypes.byref(p),
            ctypes.c_int64(ctypes.sizeof(p)),
            *map(ctypes.c_int64, (1, queries, c, d, 0)),
            KINDS[self.kind],
        )
        p.threads = 1
        tensors = dict(zip("tilt log_weight mean covariance".split(), self.inputs))
        tensors.update(zip("dtilt dlog_weight dmean dcovariance".split(), self.gradients))
        tensors.update(out=self.out, stats=self.stats, dout=self.dout, dcgf=self.dcgf)
        for name, tensor in tensors.items():
            if tensor is not None:
                setattr(p, name, pointer(tensor))
        size = ctypes.c_int64()
        checked(
            getattr(self.library, f"sattn_mixture_workspace_{self.suffix}"),
            ctypes.byref(p),
            ctypes.byref(size),
        )
        self.work = torch.zeros(size.value + 64, dtype=torch.uint8)
        p.work, p.work_bytes = (self.work.data_ptr() + 63) // 64 * 64, size.value

    def forward(self):
        checked(getattr(self.library, f"sattn_mixture_forward_{self.suffix}"), ctypes.byref(self.p))

    def both(self):
        self.forward()
        checked(
            getattr(self.library, f"sattn_mixture_backward_{self.suffix}"), ctypes.byref(self.p)
        )

    def torch_forward(self, form):
        with torch.no_grad():
            return form(*self.inputs)

    def torch_both(self, form):
        inputs = [None if x is None else x.detach().requires_grad_() for x in self.inputs]
        out, cgf = form(*inputs)
        given = [x for x in inputs if x is not None]
        return torch.autograd.grad([out, cgf], given, [self.dout, self.dcgf])

    def agree(self, form):
        """The library and torch compute the same, or the comparison is void."""
        self.both()
        pairs = [(self.out, self.torch_forward(form)[0])]
        pairs += zip([g for g in self.gradients if g is not None], self.torch_both(form))
        if self.kind == "full":  # torch tells S_ij from S_ji
            pairs[-1] = (pairs[-1][0], (pairs[-1][1] + pairs[-1][1].transpose(1, 2)) / 2)
        for ours, theirs in pairs:
            error = (ours - theirs).abs().max() / theirs.abs().max()
            if not error < 2e-3:
                raise RuntimeError(f"{form.__name__}: relative difference {error}")


def candidates(problem, compiled):
    """{name: form} for a problem; compiled forms where torch has a compiler and one asks for it."""
    forms = dict(FORMS[problem.kind])
    for name in ("einsum", "gemm", "broadcast", "matmul") if compiled else ():
        if name in forms:
            forms[f"compiled-{name}"] = torch.compile(forms[name], dynamic=False)
    return forms


def compare(problem, shape, ours, compiled, repetitions):
    forward, both = {ours: problem.forward}, {ours: problem.both}
    for name, form in candidates(problem, compiled).items():
        problem.agree(form)
        forward[f"torch-{name}"] = lambda form=form: problem.torch_forward(form)
        both[f"torch-{name}"] = lambda form=form: problem.torch_both(form)
    if (
        problem.kind == "full" and shape[0] * shape[1] * shape[2] ** 2 < 2e9
    ):  # above: half a minute a call
        arrays = [x.numpy() for x in problem.inputs]
        forward["numpy-einsum"] = lambda: numpy_einsum(*arrays)
    group = f"{problem.suffix}/{problem.kind}/{'x'.join(map(str, shape))}/threads1"
    return interleave(f"mixture-forward/{group}", forward, repetitions) + interleave(
        f"mixture-both/{group}", both, repetitions
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("library", help="path of libsattn.so")
    parser.add_argument("output", help="JSON to write")
    parser.add_argument("--repetitions", type=int, default=9)
    parser.add_argument("--compile", action="store_true", help="torch.compile too")
    parser.add_argument("--types", nargs="*", default=["float32"])
    options = parser.parse_args()
    torch.set_num_threads(1)
    sattn = load_binding(options.library)
    library = sattn.library
    ours = "sattn-" + library.sattn_isa_name(library.sattn_isa()).decode()
    results = []
    for dtype in options.types:
        for kind in FORMS:
            for shape in SHAPES:
                if options.compile:
                    torch.compiler.reset()
                problem = Problem(sattn, kind, shape, getattr(torch, dtype))
                results += compare(problem, shape, ours, options.compile, options.repetitions)
    kernels = torch.__config__.show().split("CPU capability usage: ")[1].split("\n")[0]
    chosen = {
        name: value
        for name, value in sorted(os.environ.items())
        if name.startswith(("ATEN_", "OPENBLAS_", "MALLOC_", "MKL_"))
    }
    write(
        options.output,
        {
            "library": library.sattn_build_info().decode(),
            "torch": torch.__version__,
            "torch_kernels": kernels,
            "torch_blas": blas(),
            "numpy": np.__version__,
            "environment": chosen,
        },
        results,
    )


if __name__ == "__main__":
    main()
