/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SATTN_ATTENTION_SUMS_H
#define SATTN_ATTENTION_SUMS_H

/* Gradients that many tasks add to: where they start, and what becomes of their parts. */

#include "attention_tile.h"

/* Rows of dk or dv: in place if their columns are adjacent, else by way of a copy, which
 * sattn_grad_rows_done brings back. */
typedef struct {
    real *data, *at;
    int64_t row, from_row, from_col;
} FN(sattn_grad_rows);

FN(sattn_grad_rows)
FN(sattn_grad_rows_of)
(const sattn_attention *p, const FN(sattn_tile) * tile, const sattn_output *x, int64_t key,
 int64_t run, int64_t width, real *copy);
void FN(sattn_grad_rows_done)(const FN(sattn_grad_rows) * rows, int64_t run, int64_t width);

/* dk or dv of the stripe of keys that begins at `from` starts from 0. */
void FN(sattn_clear_keys)(const sattn_attention *p, const sattn_segment *g, const sattn_output *x,
                          int64_t width, int64_t from);

/* dbias starts from 0; where a stride is 0 there is one element for all. */
void FN(sattn_clear_bias)(const sattn_attention *p);

/* dbias += e of a run of keys; strides of 0 add them up, in this order. */
void FN(sattn_add_bias_gradient)(const sattn_attention *p, const FN(sattn_tile) * tile, int64_t key,
                                 int64_t run, const real *e);

/* dsink and dscale from their parts in the workspace. A task, so that it too rounds to nearest;
 * context is the call. */
void FN(sattn_add_totals)(void *context, int64_t task, int32_t thread);

#endif
