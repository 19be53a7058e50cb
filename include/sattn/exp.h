/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SATTN_EXP_H
#define SATTN_EXP_H

#include "base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* y[i incy] = exp(x[i incx]), i = 0 .. n-1
 *
 * Shapes:  x and y hold n elements each, incx and incy elements apart; either may be negative
 *          (the pointer is to element 0) and incx may be 0. In place: y = x with incy = incx.
 * Errors:  SATTN_ESIZE n < 0 or the extent overflows; SATTN_ENULL x or y is NULL and n > 0;
 *          SATTN_ESTRIDE incy = 0 and n > 1; SATTN_EALIAS x and y overlap otherwise than in place
 *          and n > 1; SATTN_EVALUE threads < 0 or > SATTN_MAX_THREADS.
 * Numbers: at most 1 ULP (measured maxima: docs/accuracy.md), gradual underflow to the least
 *          subnormal, exp(-inf) = +0, exp(inf) = inf, NaN for NaN; weakly monotonic.
 * Threads: `threads` as in base.h; serial below some 100,000 elements.
 * Memory:  none.
 * Since:   0.1 */
SATTN_API int32_t sattn_exp_f32(int64_t n, const float *x, int64_t incx, float *y, int64_t incy,
                                int32_t threads);
SATTN_API int32_t sattn_exp_f64(int64_t n, const double *x, int64_t incx, double *y, int64_t incy,
                                int32_t threads);

#ifdef __cplusplus
}
#endif
#endif
