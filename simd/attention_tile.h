/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SATTN_ATTENTION_TILE_H
#define SATTN_ATTENTION_TILE_H

/* Softmax attention of a tile: lanes are queries, rows are keys; sums over keys run in their order,
 * lane by lane, so that a query's bits depend neither on the vector's width nor on its neighbours.
 *
 * Weights below exp(-EXP_PLAIN) of the largest are 0: e^-87 in float, e^-708 in double. */

#include "tile.h"

/* Lanes whose score is not -inf, as masked keys have it; NaN counts as live. */
static inline M live_lanes(V score)
{
    return v_nle(score, v_set(-R_INF));
}

/* exp(x) of x <= 0, or NaN, as v_exp_plain but with ln 2 in one part: that errs by 0.05 u |x|
 * (0.1 u |x| in double), beside the u |x| that x itself carries from its subtraction. */
static inline V v_weight(V x)
{
    const M keep = v_nle(x, v_set(-EXP_PLAIN));
    const V t = sattn_exp_t(keep, x), n = v_sub(t, v_set(V_ROUNDER));
    return v_keep(keep, sattn_exp_power(t, v_fnma_if(keep, n, v_set(sattn_ln2[0]), x)));
}

/* c = A b + start, tile to tile: A is rows x inner; start NULL = 0 */
static inline void tile_product(int64_t rows, int64_t inner, int64_t lanes, const R *a,
                                int64_t a_row, int64_t a_col, const R *b, const R *start, R *c)
{
    const struct T(sattn_gemm) g = {.m = rows,
                                    .n = vector_lanes(lanes),
                                    .k = inner,
                                    .a = a,
                                    .a_row = a_row,
                                    .a_col = a_col,
                                    .b = b,
                                    .b_row = SATTN_TILE,
                                    .c = c,
                                    .c_row = SATTN_TILE,
                                    .start = start,
                                    .s_row = SATTN_TILE,
                                    .s_col = 1};
    K(gemm)(&g);
}

#endif
