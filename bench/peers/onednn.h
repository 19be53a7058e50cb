/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SATTN_BENCH_ONEDNN_H
#define SATTN_BENCH_ONEDNN_H

#include <cstdint>
#include <functional>

/* y = softmax of the rows of x, by oneDNN's primitive for this shape; 0 = success */
using softmax_of_shape = std::function<int32_t(const float *x, float *y)>;
softmax_of_shape onednn_softmax(int64_t rows, int64_t n);

/* out = softmax(scale q k') v as one writes it with oneDNN: two batched matrix products and a
 * softmax over all scores of all heads */
using attention_of_shape =
    std::function<int32_t(const float *q, const float *k, const float *v, float *out)>;
attention_of_shape onednn_attention(int64_t heads, int64_t queries, int64_t keys, int64_t width,
                                    float scale);

#endif
