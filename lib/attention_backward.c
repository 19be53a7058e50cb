/* SPDX-License-Identifier: BSD-2-Clause */
/* Backward: a task takes one stripe of keys through all tiles of queries of its segment, so that it
 * alone adds to the gradients of these keys. A tile's dq passes from stripe to stripe in their
 * order: a task waits until its predecessor has passed the tile. Tasks begin in their order, hence
 * a predecessor is at work or done, and no two ever wait for each other. */
#include "attention_sums.h"
#include "check.h"
#include "par.h"

#include <stddef.h>

typedef FN(sattn_attention_call) call;
typedef FN(sattn_attention_scratch) scratch;
typedef FN(sattn_tile) tile;
typedef FN(sattn_key_window) key_window;
typedef FN(sattn_key_rows) key_rows;
typedef FN(sattn_grad_rows) grad_rows;
typedef struct FN(sattn_attention_outer) outer;

enum { TILE = SATTN_TILE, WINDOW = SATTN_WINDOW };

/* What backward keeps in scratch.rest */
typedef struct {
    real *q_rows, *dq_rows, *dout_rows; /* [48][D], [48][D], [48][E] */
    real *dout, *out;                   /* tiles [E] */
    real *dk, *dv;                      /* [64][D], [64][E] */
    real *w, *e, *g, *raw, *rate;       /* tiles [64] */
    real *largest, *log_sum, *offset, *sum, *lanes;
    int finite; /* queries and cotangents */
} places;

static places places_of(const call *k, const scratch *s)
{
    const int64_t d = k->p->width, e = k->p->value_width;
    real *at = s->rest;
    places b;
    b.q_rows = sattn_take(&at, TILE * d);
    b.dq_rows = sattn_take(&at, TILE * d);
    b.dout_rows = sattn_take(&at, TILE * e);
    b.dout = sattn_take(&at, TILE * e);
    b.out = sattn_take(&at, TILE * e);
    b.dk = sattn_take(&at, WINDOW * d);
    b.dv = sattn_take(&at, WINDOW * e);
    real **tiles[] = {&b.w, &b.e, &b.g, &b.raw, &b.rate};
    for (int i = 0; i < 5; i++)
        *tiles[i] = sattn_take(&at, WINDOW * TILE);
    real **lanes[] = {&b.largest, &b.log_sum, &b.offset, &b.sum};
    for (int i = 0; i < 4; i++)
        *lanes[i] = sattn_take(&at, TILE);
    b.lanes = sattn_take(&at, 2 * TILE);
    b.finite = 1;
    return b;
}

/* Statistics of the tile's queries */
static void get_stats(const call *k, const tile *t, const places *b)
{
    const sattn_input stats = sattn_as_input(&k->p->stats);
    FN(sattn_tile_get)(k, t, &stats, 2, b->lanes);
    for (int64_t q = 0; q < TILE; q++) {
        b->largest[q] = q < t->lanes ? b->lanes[2 * q] : -(real)__builtin_inf();
        b->log_sum[q] = q < t->lanes ? b->lanes[2 * q + 1] : 0;
    }
}

static void get_dout(const call *k, const tile *t, const places *b)
{
    const int64_t e = k->p->value_width;
    if (k->p->dout.data)
        FN(sattn_tile_get)(k, t, &k->p->dout, e, b->dout_rows);
    else
        for (int64_t i = 0; i < TILE * e; i++)
            b->dout_rows[i] = 0;
    kernels()->pack(t->lanes, e, b->dout_rows, e, b->dout);
}

/* offset = dlse - dout . out, and what a sink's gradient takes of each query */
static void prepare_tile(void *context, int64_t task, int32_t thread)
{
    const call *k = context;
    const sattn_attention *p = k->p;
    const int64_t e = p->value_width;
    const scratch s = FN(sattn_attention_scratch_of)(k, thread);
    const places b = places_of(k, &s);
    const tile t = FN(sattn_tile_of)(k, task / k->plan->tiles, task % k->plan->tiles, &s);
    const sattn_input out = sattn_as_input(&p->out);
    const sattn_input dlse = {p->dlse.data, p->dlse.batch, p->dlse.head, p->dlse.row, 1};
    real *offset = k->work + k->plan->offsets + task * TILE;
    if (t.lanes == 0)
        return;
    get_stats(k, &t, &b);
    get_dout(k, &t, &b);
    FN(sattn_tile_get)(k, &t, &out, e, s.rows);
    kernels()->pack(t.lanes, e, s.rows, e, b.out);
    for (int64_t q = 0; q < TILE; q++)
        b.lanes[q] = 0;
    if (p->dlse.data)
        FN(sattn_tile_get)(k, &t, &dlse, 1, b.lanes);
    kernels()->mixture_offset(p->dout.data ? e : 0, b.dout, b.out, NULL, b.lanes, offset);
    for (int64_t q = 0; q < t.lanes; q++)
        if (b.largest[q] == -(real)__builtin_inf())
            offset[q] = 0; /* nothing to pull at, whatever the cotangents hold */
    if (p->dsink.data) {
        FN(sattn_tile_heads)(&t, &p->sink, b.lanes);
        kernels()->attention_sink(b.lanes, b.largest, b.log_sum, offset,
                                  k->work + k->plan->sinks + task * TILE);
    }
    if (p->dq.data && !(p->flags & SATTN_ACCUMULATE)) {
        for (int64_t i = 0; i < TILE * p->width; i++)
            s.rows[i] = 0;
        FN(sattn_tile_put)(k, &t, s.rows, p->width, &p->dq);
    }
}

/* dk += g q and dv += w dout of a run of keys */
static void add_key_gradients(const call *k, const tile *t, const places *b, int64_t key,
                              int64_t from, int64_t run, const real *score)
{
    const int64_t d = k->p->width, e = k->p->value_width;
    outer o = {.count = run, .lanes = t->lanes, .score = score};
    if (k->p->dk.data) {
        const grad_rows dk = FN(sattn_grad_rows_of)(k->p, t, &k->p->dk, key, run, d, b->dk);
        o.width = d, o.a = b->g + from * TILE, o.b = b->q_rows, o.b_row = d;
        o.c = dk.data, o.c_row = dk.row;
        kernels()->attention_outer(&o);
        FN(sattn_grad_rows_done)(&dk, run, d);
    }
    if (k->p->dv.data) {
        const grad_rows dv = FN(sattn_grad_rows_of)(k->p, t, &k->p->dv, key, run, e, b->dv);
        o.width = e, o.a = b->w + from * TILE, o.b = b->dout_rows, o.b_row = e;
        o.c = dv.data, o.c_row = dv.row;
        kernels()->attention_outer(&o);
        FN(sattn_grad_rows_done)(&dv, run, e);
    }
}

static void pull_run(const call *k, const tile *t, const scratch *s, const places *b,
                     const key_window *w, int64_t from, int64_t run)
{
    const sattn_attention *p = k->p;
    const int64_t d = p->width, e = p->value_width, at = from * TILE;
    const key_rows keys = FN(sattn_window_rows)(k, t, w, &p->k, d, from, run, 1, s->key);
    const key_rows values = FN(sattn_window_rows)(k, t, w, &p->v, e, from, run, 1, s->value);
    real *raw = !p->dscale        ? NULL
                : w->scores.plain ? s->score
                                  : b->raw,
         *rate = p->softcap > 0 ? b->rate : NULL;
    FN(sattn_window_scores)(w, keys, from, run, raw, rate);
    kernels()->attention_pull(&(struct FN(sattn_attention_pull)){
        .count = run,
        .lanes = t->lanes,
        .width = e,
        .value = values.data,
        .value_row = values.row,
        .value_col = values.col,
        .dout = b->dout,
        .largest = b->largest,
        .log_sum = b->log_sum,
        .offset = b->offset,
        .score = s->score + at,
        .raw = raw ? raw + at : NULL,
        .rate = rate ? rate + at : NULL,
        .factor = w->factor,
        .scale = (real)p->scale,
        .w = b->w + at,
        .e = b->e + at,
        .g = b->g + at,
        .sum = b->sum,
    });
    /* 0 times what a masked key or another query holds must be 0 */
    const int clean =
        !w->masked || (b->finite && kernels()->all_finite(run, d, keys.data, keys.row));
    const real *score = clean ? NULL : s->score + at;
    if (p->dq.data)
        kernels()->attention_outer(
            &(outer){run, t->lanes, d, 1, b->g + at, score, keys.data, keys.row, b->dq_rows, d});
    add_key_gradients(k, t, b, w->first + from, from, run, score);
    if (p->dbias.data)
        FN(sattn_add_bias_gradient)(k->p, t, w->first + from, run, b->e + at);
}

/* The keys of a stripe that a tile sees */
static void pull_tile(const call *k, const tile *t, const scratch *s, places *b, int64_t from,
                      int64_t end)
{
    const sattn_output *x = &k->p->dq;
    const sattn_input dq = sattn_as_input(x);
    const int64_t d = k->p->width, low = t->low > from ? t->low / WINDOW * WINDOW : from;
    key_window w;
    end = end < t->high ? end : t->high;
    if (low >= end)
        return;
    for (int64_t i = 0; i < t->lanes * d; i++)
        b->q_rows[i] = s->rows[i];
    get_stats(k, t, b);
    get_dout(k, t, b);
    b->finite = kernels()->all_finite(t->lanes, d, b->q_rows, d) &&
                kernels()->all_finite(t->lanes, k->p->value_width, b->dout_rows, k->p->value_width);
    if (dq.data)
        FN(sattn_tile_get)(k, t, &dq, d, b->dq_rows);
    for (int64_t j = low; j < end; j += WINDOW) {
        const int64_t left = t->of.keys - j;
        int64_t run;
        if (!FN(sattn_window_of)(k, t, s, j, left < WINDOW ? left : WINDOW, &w))
            continue;
        for (int64_t i = 0; (run = FN(sattn_window_run)(&w, &i)) > 0; i += run)
            pull_run(k, t, s, b, &w, i, run);
    }
    if (dq.data)
        FN(sattn_tile_put)(k, t, b->dq_rows, d, x);
}

typedef struct {
    const call *k;
    int64_t first; /* segment */
} stripes;

static void pull_stripe(void *context, int64_t task, int32_t thread)
{
    const call *k = ((const stripes *)context)->k;
    const int64_t n = k->plan->stripes, segment = ((const stripes *)context)->first + task / n;
    const int64_t stripe = task % n, from = stripe * SATTN_STRIPE, at = segment * n + stripe;
    const sattn_segment g = sattn_segment_of(k->p, segment);
    const scratch s = FN(sattn_attention_scratch_of)(k, thread);
    places b = places_of(k, &s);
    int64_t *passed = (int64_t *)(k->work + k->plan->passed) + at;
    double *sum = (double *)(k->work + k->plan->sums) + at;
    if (!(k->p->flags & SATTN_ACCUMULATE)) {
        FN(sattn_clear_keys)(k->p, &g, &k->p->dk, k->p->width, from);
        FN(sattn_clear_keys)(k->p, &g, &k->p->dv, k->p->value_width, from);
    }
    *sum = 0;
    for (int64_t i = 0; i < k->plan->tiles; i++) {
        const tile t = FN(sattn_tile_of)(k, segment, i, &s);
        const real *offset = k->work + k->plan->offsets + (segment * k->plan->tiles + i) * TILE;
        for (int64_t q = 0; q < TILE; q++) {
            b.offset[q] = q < t.lanes ? offset[q] : 0;
            b.sum[q] = 0;
        }
        if (stripe > 0)
            sattn_par_wait(passed - 1, i + 1);
        pull_tile(k, &t, &s, &b, from, from + SATTN_STRIPE);
        sattn_par_post(passed, i + 1);
        for (int64_t q = 0; q < t.lanes; q++)
            *sum += (double)b.sum[q];
    }
}

static void run(call *k)
{
    const sattn_attention *p = k->p;
    const sattn_attention_plan *plan = k->plan;
    const sattn_output *x = &p->dbias;
    int64_t *passed = (int64_t *)(k->work + plan->passed);
    for (int64_t i = 0; i < plan->segments * plan->stripes; i++)
        passed[i] = 0;
    sattn_par_for(plan->segments * plan->tiles, plan->threads, prepare_tile, k);
    if (x->data && !(p->flags & SATTN_ACCUMULATE))
        FN(sattn_clear_bias)(p);
    /* what several tasks add to is left to one after the other */
    const int over_segments =
        x->data && ((!x->batch && p->batch > 1) || (!x->head && p->heads > 1));
    const int32_t threads = x->data && !x->col ? 1 : plan->threads;
    const int64_t step = over_segments ? 1 : plan->segments;
    for (int64_t i = 0; i < plan->segments; i += step)
        sattn_par_for(step * plan->stripes, threads, pull_stripe, &(stripes){k, i});
    sattn_par_for(1, 1, FN(sattn_add_totals), k);
}

int32_t FN(sattn_attention_backward)(const sattn_attention *given)
{
    sattn_attention p;
    sattn_attention_plan plan;
    call k;
    int32_t status = sattn_attention_check(&p, given, SATTN_ATTEND_BACK, sizeof(real));
    if (status == SATTN_OK)
        status = sattn_attention_plan_make(&plan, &p, SATTN_ATTEND_BACK, sizeof(real));
    if (status == SATTN_OK)
        status = FN(sattn_attention_begin)(&k, &p, &plan);
    if (status != SATTN_OK)
        return sattn_answer(status);
    run(&k);
    sattn_free(k.owned);
    return SATTN_OK;
}
