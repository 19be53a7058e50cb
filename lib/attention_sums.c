/* SPDX-License-Identifier: BSD-2-Clause */
#include "attention_sums.h"

typedef FN(sattn_attention_call) call;
typedef FN(sattn_tile) tile;
typedef FN(sattn_grad_rows) grad_rows;

enum { TILE = SATTN_TILE };

grad_rows FN(sattn_grad_rows_of)(const sattn_attention *p, const tile *t, const sattn_output *x,
                                 int64_t key, int64_t run, int64_t width, real *copy)
{
    const int64_t batch = p->key_offset ? 0 : t->of.batch * x->batch;
    real *at =
        sattn_from(x->data, batch + t->of.key_head * x->head + (t->of.first_key + key) * x->row);
    if (x->col == 1)
        return (grad_rows){at, at, x->row, x->row, 1};
    kernels()->widen(SATTN_STORAGE_OWN, run, width, at, x->row, x->col, copy);
    return (grad_rows){copy, at, width, x->row, x->col};
}

void FN(sattn_grad_rows_done)(const grad_rows *g, int64_t run, int64_t width)
{
    for (int64_t i = 0; g->data != g->at && i < run; i++)
        for (int64_t j = 0; j < width; j++)
            g->at[i * g->from_row + j * g->from_col] = g->data[i * g->row + j];
}

void FN(sattn_add_bias_gradient)(const sattn_attention *p, const tile *t, int64_t key, int64_t run,
                                 const real *e)
{
    const sattn_output *x = &p->dbias;
    for (int64_t q = 0; q < t->lanes; q++) {
        const int64_t row = t->first + q;
        const int64_t head = t->of.key_head * t->of.group + row / t->of.queries;
        real *to = sattn_from(x->data, t->of.batch * x->batch + head * x->head +
                                           row % t->of.queries * x->row + key * x->col);
        for (int64_t j = 0; j < run; j++)
            to[j * x->col] += e[j * TILE + q];
    }
}

void FN(sattn_clear_keys)(const sattn_attention *p, const sattn_segment *g, const sattn_output *x,
                          int64_t width, int64_t from)
{
    const int64_t end = from + SATTN_STRIPE < g->array_keys ? from + SATTN_STRIPE : g->array_keys;
    const int64_t batch = p->key_offset ? 0 : g->batch * x->batch;
    real *at = sattn_from(x->data, batch + g->key_head * x->head + g->first_key * x->row);
    for (int64_t i = from; x->data && i < end; i++)
        for (int64_t j = 0; j < width; j++)
            at[i * x->row + j * x->col] = 0;
}

void FN(sattn_clear_bias)(const sattn_attention *p)
{
    const sattn_output *x = &p->dbias;
    for (int64_t b = 0; b < (x->batch ? p->batch : p->batch > 0); b++)
        for (int64_t h = 0; h < (x->head ? p->heads : p->heads > 0); h++)
            for (int64_t m = 0; m < (x->row ? p->queries : p->queries > 0); m++)
                for (int64_t n = 0; n < (x->col ? p->keys : p->keys > 0); n++)
                    ((real *)x->data)[b * x->batch + h * x->head + m * x->row + n * x->col] = 0;
}

/* Sums over queries, in double and in one order. A sink that repeats has one gradient for all. */
static void add_sinks(const call *k)
{
    const sattn_attention *p = k->p;
    const sattn_output *x = &p->dsink;
    for (int64_t b = 0; !(p->flags & SATTN_ACCUMULATE) && b < p->batch; b++)
        for (int64_t h = 0; h < p->heads; h++)
            ((real *)x->data)[b * x->batch + h * x->head] = 0;
    for (int64_t segment = 0; segment < k->plan->segments; segment++) {
        const sattn_segment g = sattn_segment_of(p, segment);
        const real *part = k->work + k->plan->sinks + segment * k->plan->tiles * TILE;
        for (int64_t h = 0; h < g.group; h++) {
            double sum = 0;
            for (int64_t q = 0; q < g.queries; q++)
                sum += (double)part[h * g.queries + q];
            ((real *)x->data)[g.batch * x->batch + (g.key_head * g.group + h) * x->head] +=
                (real)sum;
        }
    }
}

static void add_scale(const call *k)
{
    const double *sums = (const double *)(k->work + k->plan->sums);
    double sum = k->p->flags & SATTN_ACCUMULATE ? (double)*(real *)k->p->dscale : 0;
    for (int64_t i = 0; i < k->plan->segments * k->plan->stripes; i++)
        sum += sums[i];
    *(real *)k->p->dscale = (real)sum;
}

void FN(sattn_add_totals)(void *context, int64_t task, int32_t thread)
{
    const call *k = context;
    (void)task, (void)thread;
    if (k->p->dsink.data)
        add_sinks(k);
    if (k->p->dscale)
        add_scale(k);
}
