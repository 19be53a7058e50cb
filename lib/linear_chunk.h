/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SATTN_LINEAR_CHUNK_H
#define SATTN_LINEAR_CHUNK_H

/* A call of linear attention in progress, typed: chunks of tokens, states. A state is a matrix
 * [D][F], F = E or, normalised, E + 1 with a column for the sum of the keys. */

#include "linear.h"
#include "real.h"

typedef struct {
    const sattn_linear *p;
    const sattn_linear_plan *plan;
    real *work;
    void *owned;
} FN(sattn_linear_call);

/* A thread's scratch. Rows of a chunk, [48][...]: */
typedef struct {
    real *q, *fq, *k, *fk;       /* [D] as given, and their features */
    real *v, *dout, *out, *grad; /* [F] values with their 1, cotangents, [F] or [D] results */
    real *pairs, *more, *tile;   /* [48][48] twice; tile of 48 columns */
    real *lanes;                 /* [4][48] */
    real *state[6];              /* [D][F] or [F][D] */
} FN(sattn_linear_scratch);

int32_t FN(sattn_linear_begin)(FN(sattn_linear_call) * call, const sattn_linear *p,
                               const sattn_linear_plan *plan);
FN(sattn_linear_scratch)
FN(sattn_linear_scratch_of)(const FN(sattn_linear_call) * call, int32_t thread);

/* Rows first .. first + count - 1 of head number `head` of B H */
void FN(sattn_linear_get)(const FN(sattn_linear_call) * call, int64_t head, const sattn_input *x,
                          int64_t first, int64_t count, int64_t cols, int64_t row, real *rows);
void FN(sattn_linear_put)(const FN(sattn_linear_call) * call, int64_t head, const real *rows,
                          int64_t row, int64_t first, int64_t count, int64_t cols,
                          const sattn_output *x, int accumulate);

/* k, fk and v of a chunk of keys; q and fq of a chunk of queries */
void FN(sattn_linear_keys)(const FN(sattn_linear_call) * call, int64_t head, int64_t first,
                           int64_t count, const FN(sattn_linear_scratch) * s);
void FN(sattn_linear_queries)(const FN(sattn_linear_call) * call, int64_t head, int64_t first,
                              int64_t count, const FN(sattn_linear_scratch) * s);

/* A state from, or to, the caller's arrays; `sum` NULL is 0. */
void FN(sattn_linear_get_state)(const FN(sattn_linear_call) * call, int64_t head,
                                const sattn_input *sum, const sattn_input *key_sum, real *state);
void FN(sattn_linear_put_state)(const FN(sattn_linear_call) * call, int64_t head, const real *state,
                                const sattn_output *sum, const sattn_output *key_sum,
                                int accumulate);

/* What multiplies out' of the queries first .. first + count - 1: 1 over their divisors (0 for 0),
 * or the plain form's c_i */
void FN(sattn_linear_factors)(const sattn_linear *p, int64_t first, int64_t count,
                              const real *divisor, real *factor);

/* rows [count] of `width` times their factors; a row whose factor is 0 becomes 0. */
void FN(sattn_linear_scale)(int64_t count, int64_t width, const real *factor, real *rows,
                            int64_t row);

/* c = start + a b; all dense but for a, whose element (i, j) is at a[i a_row + j a_col]. start NULL
 * = 0, or as c. */
void FN(sattn_linear_product)(int64_t m, int64_t n, int64_t k, const real *a, int64_t a_row,
                              int64_t a_col, const real *b, int64_t b_row, const real *start,
                              real *c, int64_t c_row);

/* pairs[i][j] = x_i . y_j of two sets of rows of a chunk; with `causal`, 0 where j > i (1) or j < i
 * (-1). `tile` takes y. */
void FN(sattn_linear_pairs)(int64_t m, int64_t n, int64_t width, const real *x, const real *y,
                            int causal, real *tile, real *pairs);

#endif
