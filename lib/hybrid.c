/* SPDX-License-Identifier: BSD-2-Clause */
#include "check.h"
#include "hybrid_tile.h"
#include "par.h"

#include <math.h>
#include <stddef.h>

typedef FN(sattn_hybrid_call) call;
typedef FN(sattn_hybrid_tile) tile;
typedef struct FN(sattn_gemm) gemm;

enum { T = SATTN_TILE };

static sattn_input place_of(const sattn_output *x)
{
    return (sattn_input){x->data, x->batch, x->head, x->row, x->col};
}

/* t->rows := sum over tokens and components; leaves every w. */
static void add_up(const call *k, const tile *t, const real *top, const real *log_total)
{
    const int64_t c = k->given.rest.components, e = k->given.exact.value_width, b = t->entry;
    int64_t count;
    real w[T];
    for (int64_t i = 0; i <= c; i++)
        kernels()->merge_weights(t->logit + i * T, t->log_sum + i * T, top, log_total,
                                 t->weight + i * T);
    kernels()->add_scaled_rows(&(struct FN(sattn_scaled_rows)){
        t->lanes, e, t->weight + c * T, k->exact + (b * k->rows + t->first) * e, e, t->rows, e, 0});
    for (int64_t i = 0; (count = FN(sattn_hybrid_run)(k, b, &i)) > 0; i += count)
        kernels()->gemm(&(gemm){t->lanes, e, count, t->weight + i * T, 1, T,
                                FN(sattn_hybrid_value)(k, b, i), e, t->rows, e, t->rows, e, 1});
    for (int64_t i = 0; k->has_turn && i < c; i++) {
        if (t->one[i] != 0)
            continue;
        for (int64_t q = 0; q < T; q++)
            w[q] = t->weight[i * T + q] * t->turn[i * T + q];
        kernels()->add_scaled_rows(&(struct FN(sattn_scaled_rows)){
            t->lanes, e, w, t->x + i * T * e, e, t->rows, e, 1});
    }
}

/* (exp(a) - 1) / n, at most 1, from log n */
static double share_of_error(double a, double log_count)
{
    if (!(a > 0))
        return a == a ? 0 : a;
    const double x = (a > 40 ? a : log(expm1(a))) - log_count;
    return x < 0 ? exp(x) : 1;
}

/* Standard error of lse, and the weight beyond the limits, of query q */
static void judge(const call *k, const tile *t, int64_t q, real *error, real *guarded)
{
    const sattn_mixture *m = &k->given.rest;
    const real *l = sattn_from(m->log_weight, t->entry * m->log_weight_batch);
    double variance = 0, beyond = 0;
    for (int64_t c = 0; c < m->components; c++) {
        const double w = (double)t->weight[c * T + q];
        if (t->one[c] != 0 || w == 0)
            continue;
        variance += error ? w * w * share_of_error((double)t->a[c * T + q], (double)l[c]) : 0;
        beyond += t->turn[c * T + q] < 1 ? w : 0;
    }
    if (error)
        *error = (real)sqrt(variance);
    if (guarded)
        *guarded = (real)beyond;
}

static void hand_over(const call *k, const tile *t, const real *top, const real *log_total)
{
    const sattn_attention *a = &k->given.exact;
    const sattn_input out = place_of(&a->out), stats = place_of(&a->stats), lse = place_of(&a->lse);
    const sattn_input error = place_of(&k->given.p.error), guarded = place_of(&k->given.p.guarded);
    for (int64_t q = 0; q < t->lanes; q++) {
        const int64_t row = t->entry * k->rows + t->first + q;
        real *to = out.data ? FN(sattn_hybrid_row)(k, &out, row) : NULL;
        for (int64_t i = 0; to && i < a->value_width; i++)
            to[i * out.col] = t->rows[q * a->value_width + i];
        to = stats.data ? FN(sattn_hybrid_row)(k, &stats, row) : NULL;
        if (to)
            to[0] = top[q], to[stats.col] = log_total[q];
        if (lse.data)
            *FN(sattn_hybrid_row)(k, &lse, row) = top[q] + log_total[q];
        if (error.data || guarded.data)
            judge(k, t, q, error.data ? FN(sattn_hybrid_row)(k, &error, row) : NULL,
                  guarded.data ? FN(sattn_hybrid_row)(k, &guarded, row) : NULL);
    }
}

static void forward_tile(void *context, int64_t task, int32_t thread)
{
    const call *k = context;
    const tile t = FN(sattn_hybrid_tile_of)(k, task, thread);
    real top[T], log_total[T];
    FN(sattn_hybrid_pairs)(k, &t); /* checked, and has its memory */
    kernels()->merge_totals(k->given.rest.components + 1, t.logit, t.log_sum, top, log_total);
    add_up(k, &t, top, log_total);
    hand_over(k, &t, top, log_total);
}

int32_t FN(sattn_hybrid_forward)(const sattn_hybrid *given)
{
    call k;
    const int32_t status = FN(sattn_hybrid_begin)(&k, given, 0);
    if (status != SATTN_OK)
        return sattn_answer(status);
    sattn_par_for(k.entries * k.tiles, k.threads, forward_tile, &k);
    sattn_free(k.memory);
    return SATTN_OK;
}
