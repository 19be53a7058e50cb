/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SATTN_BENCH_ONEDNN_H
#define SATTN_BENCH_ONEDNN_H

#include <cstdint>
#include <functional>

/* Softmax of rows x n, prepared for that shape: computes y from x and returns 0. */
typedef std::function<int32_t(const float *x, float *y)> softmax_of_shape;

softmax_of_shape onednn_softmax(int64_t rows, int64_t n);

#endif
