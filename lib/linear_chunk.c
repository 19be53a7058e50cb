/* SPDX-License-Identifier: BSD-2-Clause */
#include "linear_chunk.h"
#include "check.h"

#include <stddef.h>
#include <string.h>

typedef FN(sattn_linear_call) call;
typedef FN(sattn_linear_scratch) scratch;

enum { TILE = SATTN_TILE };

int32_t FN(sattn_linear_begin)(call *k, const sattn_linear *p, const sattn_linear_plan *plan)
{
    void *work;
    *k = (call){p, plan, NULL, NULL};
    const int32_t status = sattn_workspace(
        p->work, p->work_bytes, plan->elements * (int64_t)sizeof(real), &work, &k->owned);
    k->work = work;
    return status;
}

scratch FN(sattn_linear_scratch_of)(const call *k, int32_t thread)
{
    const int64_t d = k->p->width, f = k->p->value_width + 1, wide = d > f ? d : f;
    real *at = k->work + k->plan->scratch + thread * k->plan->scratch_size;
    scratch s;
    real **narrow[] = {&s.q, &s.fq, &s.k, &s.fk}, **values[] = {&s.v, &s.dout, &s.out};
    for (int i = 0; i < 4; i++)
        *narrow[i] = sattn_take(&at, TILE * d);
    for (int i = 0; i < 3; i++)
        *values[i] = sattn_take(&at, TILE * f);
    s.grad = sattn_take(&at, TILE * wide);
    s.tile = sattn_take(&at, 2 * TILE * wide);
    s.pairs = sattn_take(&at, TILE * TILE);
    s.more = sattn_take(&at, TILE * TILE);
    s.lanes = sattn_take(&at, 4 * TILE);
    for (int i = 0; i < 6; i++)
        s.state[i] = sattn_take(&at, d * f);
    return s;
}

static int64_t place_of(const call *k, int64_t head, int64_t first, const sattn_input *x)
{
    return head / k->p->heads * x->batch + head % k->p->heads * x->head + first * x->row;
}

void FN(sattn_linear_get)(const call *k, int64_t head, const sattn_input *x, int64_t first,
                          int64_t count, int64_t cols, int64_t row, real *rows)
{
    const real *from = sattn_from(x->data, (count > 0 ? place_of(k, head, first, x) : 0));
    for (int64_t i = 0; i < count; i++)
        kernels()->widen(SATTN_STORAGE_OWN, 1, cols, from + i * x->row, x->row, x->col,
                         rows + i * row);
}

void FN(sattn_linear_put)(const call *k, int64_t head, const real *rows, int64_t row, int64_t first,
                          int64_t count, int64_t cols, const sattn_output *x, int accumulate)
{
    const sattn_input as_input = sattn_as_input(x);
    real *to = sattn_from(x->data, place_of(k, head, first, &as_input));
    for (int64_t i = 0; i < count; i++)
        for (int64_t j = 0; j < cols; j++) {
            real *y = to + i * x->row + j * x->col;
            *y = accumulate ? *y + rows[i * row + j] : rows[i * row + j];
        }
}

void FN(sattn_linear_keys)(const call *k, int64_t head, int64_t first, int64_t count,
                           const scratch *s)
{
    const int64_t d = k->p->width, e = k->p->value_width, f = sattn_linear_columns(k->p);
    FN(sattn_linear_get)(k, head, &k->p->k, first, count, d, d, s->k);
    FN(sattn_linear_get)(k, head, &k->p->v, first, count, e, f, s->v);
    for (int64_t i = 0; f > e && i < count; i++)
        s->v[i * f + e] = 1;
    kernels()->feature(k->p->feature, count * d, s->k, s->fk);
}

void FN(sattn_linear_queries)(const call *k, int64_t head, int64_t first, int64_t count,
                              const scratch *s)
{
    const int64_t d = k->p->width;
    FN(sattn_linear_get)(k, head, &k->p->q, first, count, d, d, s->q);
    kernels()->feature(k->p->feature, count * d, s->q, s->fq);
}

void FN(sattn_linear_get_state)(const call *k, int64_t head, const sattn_input *sum,
                                const sattn_input *key_sum, real *state)
{
    const int64_t d = k->p->width, e = k->p->value_width, f = sattn_linear_columns(k->p);
    const sattn_input column = {key_sum->data, key_sum->batch, key_sum->head, key_sum->row, 1};
    memset(state, 0, (size_t)(d * f) * sizeof *state);
    if (sum->data)
        FN(sattn_linear_get)(k, head, sum, 0, d, e, f, state);
    if (f > e && column.data)
        FN(sattn_linear_get)(k, head, &column, 0, d, 1, f, state + e);
}

void FN(sattn_linear_put_state)(const call *k, int64_t head, const real *state,
                                const sattn_output *sum, const sattn_output *key_sum,
                                int accumulate)
{
    const int64_t d = k->p->width, e = k->p->value_width, f = sattn_linear_columns(k->p);
    const sattn_output column = {key_sum->data, key_sum->batch, key_sum->head, key_sum->row, 1};
    if (sum->data)
        FN(sattn_linear_put)(k, head, state, f, 0, d, e, sum, accumulate);
    if (f > e && column.data)
        FN(sattn_linear_put)(k, head, state + e, f, 0, d, 1, &column, accumulate);
}

void FN(sattn_linear_factors)(const sattn_linear *p, int64_t first, int64_t count,
                              const real *divisor, real *factor)
{
    for (int64_t i = 0; i < count; i++) {
        const int64_t keys = p->seen + (p->flags & SATTN_CAUSAL ? first + i + 1 : p->keys);
        if (p->flags & SATTN_NORMALISED)
            factor[i] = divisor[i] == 0 ? 0 : 1 / divisor[i];
        else if (p->flags & SATTN_MEAN)
            factor[i] = keys > 0 ? (real)(p->scale / (double)keys) : 0;
        else
            factor[i] = (real)p->scale;
    }
}

void FN(sattn_linear_scale)(int64_t count, int64_t width, const real *factor, real *rows,
                            int64_t row)
{
    kernels()->add_scaled_rows(
        &(struct FN(sattn_scaled_rows)){count, width, factor, rows, row, rows, row, 0});
}

void FN(sattn_linear_product)(int64_t m, int64_t n, int64_t k, const real *a, int64_t a_row,
                              int64_t a_col, const real *b, int64_t b_row, const real *start,
                              real *c, int64_t c_row)
{
    kernels()->gemm(&(struct FN(sattn_gemm)){.m = m,
                                             .n = n,
                                             .k = k,
                                             .a = a,
                                             .a_row = a_row,
                                             .a_col = a_col,
                                             .b = b,
                                             .b_row = b_row,
                                             .c = c,
                                             .c_row = c_row,
                                             .start = start,
                                             .s_row = c_row,
                                             .s_col = 1});
}

void FN(sattn_linear_pairs)(int64_t m, int64_t n, int64_t width, const real *x, const real *y,
                            int causal, real *tile, real *pairs)
{
    kernels()->pack(n, width, y, width, tile);
    FN(sattn_linear_product)(m, TILE, width, x, width, 1, tile, TILE, NULL, pairs, TILE);
    for (int64_t i = 0; causal && i < m; i++)
        for (int64_t j = causal > 0 ? i + 1 : 0; j < (causal > 0 ? n : i); j++)
            pairs[i * TILE + j] = 0;
}
