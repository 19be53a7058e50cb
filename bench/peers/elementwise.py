#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""exp, softmax and its gradient of torch and ONNX Runtime beside the library's in one process, on one thread.
Arrays of 512 KiB, so that the few microseconds of a call from Python count little, and in and out
fit a 2 MiB cache; outputs are the caller's."""

import argparse
import ctypes

import numpy as np
import onnx
import onnxruntime
import torch
from measure import checked, interleave, load_binding, pointer, write

ELEMENTS = 1 << 17
LENGTHS = [16, 64, 100, 128, 512, 1024, 4096, 32768, 131072]


def onnx_call(operator, x, y, **attributes):
    """A function that runs one ONNX operator from x to y."""
    shape = list(x.shape)
    tensor = [
        onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, shape) for name in "xy"
    ]
    node = onnx.helper.make_node(operator, ["x"], ["y"], **attributes)
    model = onnx.helper.make_model(
        onnx.helper.make_graph([node], operator, tensor[:1], tensor[1:]),
        opset_imports=[onnx.helper.make_opsetid("", 17)],
        ir_version=8,
    )
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(model.SerializeToString(), options)
    binding = session.io_binding()
    for bind, name, array in ((binding.bind_input, "x", x), (binding.bind_output, "y", y)):
        bind(name, "cpu", 0, np.float32, shape, array.ctypes.data)
    return lambda: session.run_with_iobinding(binding)


def agree(calls, y, least=1e-5, absolute=0):
    """All calls write the same to y, but for rounding."""
    answers = []
    for call in calls.values():
        y.fill(np.nan)
        call()
        answers.append(y.copy())
    for answer in answers:
        if not np.allclose(answer, answers[0], rtol=least, atol=absolute):
            raise RuntimeError("the candidates disagree")
    return calls


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("library", help="path of libsattn.so")
    parser.add_argument("output", help="JSON to write")
    parser.add_argument("--repetitions", type=int, default=9)
    options = parser.parse_args()
    torch.set_num_threads(1)
    library = load_binding(options.library).library
    ours = "sattn-" + library.sattn_isa_name(library.sattn_isa()).decode()
    size = ctypes.c_int64
    x = np.random.default_rng(1).uniform(-5, 5, ELEMENTS).astype(np.float32)
    y = np.zeros_like(x)
    tx, ty = torch.from_numpy(x), torch.from_numpy(y)
    calls = {
        ours: lambda: checked(
            library.sattn_exp_f32, size(ELEMENTS), pointer(x), size(1), pointer(y), size(1), 1
        ),
        "torch": lambda: torch.exp(tx, out=ty),
        "onnxruntime": onnx_call("Exp", x, y),
    }
    results = interleave("exp/f32/512KiB/plain", agree(calls, y), options.repetitions)
    for n in LENGTHS:
        shape = (ELEMENTS // n, n)
        a, b = (v[: shape[0] * n].reshape(shape) for v in (x, y))
        ta, tb = torch.from_numpy(a), torch.from_numpy(b)
        calls = {
            ours: lambda a=a, b=b, shape=shape: checked(
                library.sattn_softmax_f32,
                size(shape[0]),
                size(shape[1]),
                pointer(a),
                size(shape[1]),
                pointer(b),
                size(shape[1]),
                1,
            ),
            "torch": lambda ta=ta, tb=tb: torch.softmax(ta, 1, out=tb),
            "onnxruntime": onnx_call("Softmax", a, b, axis=1),
        }
        results += interleave(f"softmax/f32/512KiB/{n}", agree(calls, b), options.repetitions)
    binding = load_binding(options.library)
    for n in LENGTHS:
        shape = (ELEMENTS // n, n)
        a, b = (v[: shape[0] * n].reshape(shape) for v in (x, y))
        weight = torch.softmax(torch.from_numpy(a), 1)
        grad, dx = torch.from_numpy(a), torch.from_numpy(b)
        problem = binding.rows.SoftmaxDescriptor()
        library.sattn_softmax_init(
            ctypes.byref(problem), size(ctypes.sizeof(problem)), size(1), size(shape[0]), size(n)
        )
        problem.y, problem.dy, problem.dx = weight.data_ptr(), a.ctypes.data, b.ctypes.data
        problem.threads = 1
        backward = torch.ops.aten._softmax_backward_data.out
        calls = {
            ours: lambda p=problem: checked(library.sattn_softmax_backward_f32, ctypes.byref(p)),
            "torch": lambda g=grad, w=weight, d=dx: backward(g, w, 1, torch.float32, grad_input=d),
        }
        results += interleave(
            f"softmax-backward/f32/512KiB/{n}", agree(calls, b, 1e-3, 1e-7), options.repetitions
        )
    write(
        options.output,
        {
            "library": library.sattn_build_info().decode(),
            "torch": torch.__version__,
            "onnxruntime": onnxruntime.__version__,
        },
        results,
    )


if __name__ == "__main__":
    main()
