/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SATTN_SOFTMAX_H
#define SATTN_SOFTMAX_H

#include "base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* y[r][j] = exp(x[r][j] - max_j x[r][j]) / sum_j exp(x[r][j] - max_j x[r][j])
 *
 * Shapes:  rows x n; rows start ldx (ldy) elements apart, the elements of a row are adjacent.
 *          ldx may be 0 (one row for all). In place: y = x with ldy = ldx.
 * Errors:  SATTN_ESIZE rows or n < 0, or the extent overflows; SATTN_ENULL x or y is NULL and
 *          rows * n > 0; SATTN_ESTRIDE |ldy| < n with rows > 1; SATTN_EALIAS x and y overlap
 *          otherwise than in place; SATTN_EVALUE threads < 0 or > SATTN_MAX_THREADS.
 * Numbers: docs/accuracy.md derives and measures the bound; a row sums to 1 within 4 ULP up to
 *          n = 2^25. -inf has weight exactly 0; a row of -inf alone is all 0; NaN or +inf in
 *          a row make the whole row NaN and leave its neighbours alone.
 * Threads: `threads` as in base.h; serial below some 100,000 elements.
 * Memory:  none.
 * Since:   0.1 */
SATTN_API int32_t sattn_softmax_f32(int64_t rows, int64_t n, const float *x, int64_t ldx, float *y,
                                    int64_t ldy, int32_t threads);
SATTN_API int32_t sattn_softmax_f64(int64_t rows, int64_t n, const double *x, int64_t ldx,
                                    double *y, int64_t ldy, int32_t threads);

#ifdef __cplusplus
}
#endif
#endif
