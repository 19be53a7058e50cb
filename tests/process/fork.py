# SPDX-License-Identifier: BSD-2-Clause
"""fork.py LIBRARY: worker processes of Python's multiprocessing (method fork) compute what their parent does."""
import array
import ctypes
import multiprocessing
import signal
import sys

ROWS, COLUMNS = 2048, 512
library = ctypes.CDLL(sys.argv[1])
x = array.array("f", (i * 37 % 101 / 50 - 1 for i in range(ROWS * COLUMNS)))


def softmax(_):
    signal.alarm(20)
    y = array.array("f", bytes(4 * len(x)))
    address = [ctypes.c_void_p(a.buffer_info()[0]) for a in (x, y)]
    long = ctypes.c_int64
    status = library.sattn_softmax_f32(long(ROWS), long(COLUMNS), address[0], long(COLUMNS),
                                       address[1], long(COLUMNS), ctypes.c_int32(4))
    assert status == 0, status
    signal.alarm(0)
    return y.tobytes()


wanted = softmax(0)
with multiprocessing.get_context("fork").Pool(2) as pool:
    assert pool.map(softmax, range(8)) == [wanted] * 8, "other bits in a worker"
assert softmax(0) == wanted, "other bits in the parent afterwards"
