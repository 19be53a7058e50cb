/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SATTN_BENCH_ROWS_H
#define SATTN_BENCH_ROWS_H

/* Peers that need an instruction set of their own: rows.cc is compiled once per set, and each gives
 * one table per type. Only a CPU that has the set may call into it. */

#include <cstdint>

template <class R> struct peer_row {
    const char *name; /* "avx2", "avx512" */
    int32_t isa;      /* the SATTN_ISA_... that it needs */

    /* y = exp(x), n a multiple of the vector's lanes */
    void (*sleef)(int64_t n, const R *x, R *y);
    void (*libmvec)(int64_t n, const R *x, R *y);

    /* What one writes in C, compiled with -O3 -ffast-math, which makes the loops call libmvec */
    void (*softmax)(int64_t rows, int64_t n, const R *x, R *y);
    void (*gradient)(int64_t rows, int64_t n, const R *y, const R *dy, R *dx); /* of softmax */
    void (*mixture)(int64_t queries, int64_t components, int64_t width, const R *tilt,
                    const R *log_weight, const R *mean, const R *covariance, R *buffer, R *out);

    /* Independent chains of fused multiply-adds of full vectors, fma_flops a step */
    R (*fma)(int64_t steps);
    int64_t fma_flops;
};

const peer_row<float> &peer_avx2(float);
const peer_row<double> &peer_avx2(double);
const peer_row<float> &peer_avx512(float);
const peer_row<double> &peer_avx512(double);

#endif
