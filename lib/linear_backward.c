/* SPDX-License-Identifier: BSD-2-Clause */
/* Backward: with out' = sum_j (f(q).f(k_j)) v'_j and its cotangent d',
 *
 *   df(q_i) = sum_j (d'_i . v'_j) f(k_j)     needs the state that forward ran through, transposed
 *   df(k_j) = sum_i (d'_i . v'_j) f(q_i)     and  dv'_j = sum_i (f(q_i).f(k_j)) d'_i
 *                                            need the state G = sum_i f(q_i)' d'_i of later queries
 *
 * Both directions of a head are tasks of their own. Blocks as in forward. */
#include "check.h"
#include "linear_chunk.h"
#include "par.h"

#include <stddef.h>
#include <string.h>

typedef FN(sattn_linear_call) call;
typedef FN(sattn_linear_scratch) scratch;

enum { TILE = SATTN_TILE, BLOCK = SATTN_BLOCK_TOKENS };

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* A state that runs: total of whole blocks, run of this one, and their sum, which is what is read
 * */
typedef struct {
    real *total, *run, *sum;
    int64_t rows, cols;
} state;

static void clear_run(const state *x)
{
    memset(x->run, 0, (size_t)(x->rows * x->cols) * sizeof *x->run);
}

static void add_up(const state *x)
{
    memcpy(x->sum, x->total, (size_t)(x->rows * x->cols) * sizeof *x->sum);
    kernels()->add(x->rows * x->cols, x->sum, x->run);
}

static void end_block(const state *x)
{
    kernels()->add(x->rows * x->cols, x->total, x->run);
    clear_run(x);
}

/* run += a' b of a chunk of rows */
static void advance(const state *x, int64_t count, const real *a, const real *b)
{
    FN(sattn_linear_product)
    (x->rows, x->cols, count, a, 1, x->rows, b, x->cols, x->run, x->run, x->cols);
}

static void transpose(int64_t rows, int64_t cols, const real *x, real *y)
{
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < cols; j++)
            y[j * rows + i] = x[i * cols + j];
}

/* d' of a chunk of queries into s->dout */
static void get_dout(const call *k, int64_t head, int64_t first, int64_t count, const scratch *s)
{
    const sattn_linear *p = k->p;
    const int64_t e = p->value_width, f = sattn_linear_columns(p), tile = TILE * (e > 0 ? e : 1);
    const sattn_input out = sattn_as_input(&p->out);
    const sattn_input den = {p->den.data, p->den.batch, p->den.head, p->den.row, 1};
    real *divisor = s->lanes, *dot = s->lanes + TILE, *factor = s->lanes + 2 * TILE;
    memset(s->dout, 0, (size_t)(count * f) * sizeof *s->dout);
    if (!p->dout.data)
        return;
    FN(sattn_linear_get)(k, head, &p->dout, first, count, e, f, s->dout);
    if (f > e) {
        FN(sattn_linear_get)(k, head, &out, first, count, e, e, s->out);
        FN(sattn_linear_get)(k, head, &den, first, count, 1, 1, divisor);
        kernels()->pack(count, e, s->dout, f, s->tile);
        kernels()->pack(count, e, s->out, e, s->tile + tile);
        kernels()->mixture_offset(e, s->tile, s->tile + tile, NULL, NULL, dot); /* - dout . out */
    }
    for (int64_t i = 0; f > e && i < count; i++)
        s->dout[i * f + e] = dot[i];
    FN(sattn_linear_factors)(p, first, count, divisor, factor);
    FN(sattn_linear_scale)(count, f, factor, s->dout, f);
}

static void put_grad(const call *k, int64_t head, int64_t first, int64_t count, real *grad,
                     const real *x, const sattn_output *to)
{
    const int64_t d = k->p->width;
    kernels()->feature_pull(k->p->feature, count * d, x, grad);
    FN(sattn_linear_put)(k, head, grad, d, first, count, d, to, k->p->flags & SATTN_ACCUMULATE);
}

/* dq of a chunk; causal: its own keys are in scratch and join pair by pair. */
static void query_chunk(const call *k, int64_t head, int64_t first, int64_t count, const scratch *s,
                        const state *x, int causal)
{
    const int64_t d = k->p->width, f = x->rows;
    FN(sattn_linear_queries)(k, head, first, count, s);
    get_dout(k, head, first, count, s);
    FN(sattn_linear_product)(count, d, f, s->dout, f, 1, x->sum, d, NULL, s->grad, d);
    if (causal) {
        FN(sattn_linear_pairs)(count, count, f, s->dout, s->v, 1, s->tile, s->pairs);
        FN(sattn_linear_product)(count, d, count, s->pairs, TILE, 1, s->fk, d, s->grad, s->grad, d);
    }
    put_grad(k, head, first, count, s->grad, s->q, &k->p->dq);
}

/* dq of a head, keys in their order */
static void run_forth(const call *k, int64_t head, const scratch *s)
{
    const int64_t d = k->p->width, f = sattn_linear_columns(k->p), n = k->p->keys;
    const int causal = (k->p->flags & SATTN_CAUSAL) != 0;
    const state x = {s->state[0], s->state[1], s->state[2], f, d};
    FN(sattn_linear_get_state)(k, head, &k->p->sum, &k->p->key_sum, x.sum);
    transpose(d, f, x.sum, x.total);
    clear_run(&x);
    for (int64_t first = 0; first < n; first += TILE) {
        const int64_t count = least(TILE, n - first);
        FN(sattn_linear_keys)(k, head, first, count, s);
        if (causal) {
            add_up(&x);
            query_chunk(k, head, first, count, s, &x, 1);
        }
        advance(&x, count, s->v, s->fk);
        if ((first + TILE) % BLOCK == 0)
            end_block(&x);
    }
    add_up(&x);
    for (int64_t first = 0; !causal && first < k->p->queries; first += TILE)
        query_chunk(k, head, first, least(TILE, k->p->queries - first), s, &x, 0);
}

/* dk and dv of a chunk from G [D][F] and its transpose; causal: its own queries are in scratch. */
static void key_chunk(const call *k, int64_t head, int64_t first, int64_t count, const scratch *s,
                      const state *g, const state *t, int causal)
{
    const int64_t d = k->p->width, e = k->p->value_width, f = g->cols;
    FN(sattn_linear_keys)(k, head, first, count, s);
    FN(sattn_linear_product)(count, f, d, s->fk, d, 1, g->sum, f, NULL, s->out, f);
    FN(sattn_linear_product)(count, d, f, s->v, f, 1, t->sum, d, NULL, s->grad, d);
    if (causal) {
        FN(sattn_linear_pairs)(count, count, d, s->fk, s->fq, -1, s->tile, s->pairs);
        FN(sattn_linear_pairs)(count, count, f, s->v, s->dout, -1, s->tile, s->more);
        FN(sattn_linear_product)(count, f, count, s->pairs, TILE, 1, s->dout, f, s->out, s->out, f);
        FN(sattn_linear_product)(count, d, count, s->more, TILE, 1, s->fq, d, s->grad, s->grad, d);
    }
    if (k->p->dv.data)
        FN(sattn_linear_put)
    (k, head, s->out, f, first, count, e, &k->p->dv, k->p->flags & SATTN_ACCUMULATE);
    if (k->p->dk.data)
        put_grad(k, head, first, count, s->grad, s->k, &k->p->dk);
}

/* dk, dv and the gradient of the state of a head, queries from the last to the first */
static void run_back(const call *k, int64_t head, const scratch *s)
{
    const int64_t d = k->p->width, f = sattn_linear_columns(k->p), m = k->p->queries;
    const int causal = (k->p->flags & SATTN_CAUSAL) != 0;
    const state g = {s->state[0], s->state[1], s->state[2], d, f};
    const state t = {s->state[3], s->state[4], s->state[5], f, d};
    FN(sattn_linear_get_state)(k, head, &k->p->dsum_out, &k->p->dkey_sum_out, g.total);
    transpose(d, f, g.total, t.total);
    clear_run(&g);
    clear_run(&t);
    for (int64_t first = (m + TILE - 1) / TILE * TILE - TILE; first >= 0; first -= TILE) {
        const int64_t count = least(TILE, m - first);
        FN(sattn_linear_queries)(k, head, first, count, s);
        get_dout(k, head, first, count, s);
        if (causal) {
            add_up(&g);
            add_up(&t);
            key_chunk(k, head, first, count, s, &g, &t, 1);
        }
        advance(&g, count, s->fq, s->dout);
        advance(&t, count, s->dout, s->fq);
        if (first % BLOCK == 0) {
            end_block(&g);
            end_block(&t);
        }
    }
    add_up(&g);
    add_up(&t);
    FN(sattn_linear_put_state)
    (k, head, g.sum, &k->p->dsum, &k->p->dkey_sum, k->p->flags & SATTN_ACCUMULATE);
    for (int64_t first = 0; !causal && first < k->p->keys; first += TILE)
        key_chunk(k, head, first, least(TILE, k->p->keys - first), s, &g, &t, 0);
}

static void one_direction(void *context, int64_t task, int32_t thread)
{
    const call *k = context;
    const sattn_linear *p = k->p;
    const scratch s = FN(sattn_linear_scratch_of)(k, thread);
    if (task % 2 == 0 && p->dq.data)
        run_forth(k, task / 2, &s);
    if (task % 2 == 1 && (p->dk.data || p->dv.data || p->dsum.data || p->dkey_sum.data))
        run_back(k, task / 2, &s);
}

int32_t FN(sattn_linear_backward)(const sattn_linear *given)
{
    sattn_linear p;
    sattn_linear_plan plan;
    call k;
    int32_t status = sattn_linear_check(&p, given, SATTN_LINEAR_BACK, sizeof(real));
    if (status == SATTN_OK)
        status = sattn_linear_plan_make(&plan, &p, SATTN_LINEAR_BACK);
    if (status == SATTN_OK)
        status = FN(sattn_linear_begin)(&k, &p, &plan);
    if (status != SATTN_OK)
        return sattn_answer(status);
    sattn_par_for(2 * plan.heads, plan.threads, one_direction, &k);
    sattn_free(k.owned);
    return SATTN_OK;
}
