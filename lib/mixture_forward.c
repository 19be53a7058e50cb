/* SPDX-License-Identifier: BSD-2-Clause */
#include "check.h"
#include "mixture_call.h"
#include "par.h"

#include <stddef.h>

typedef FN(sattn_call) call;

/* A thread's tiles */
typedef struct {
    real *tilt, *half, *logit, *state, *part, *rest;
} scratch;

static scratch scratch_of(const call *k, int32_t thread)
{
    const int64_t d = k->p->width;
    scratch s;
    s.tilt = k->work + k->plan->scratch + thread * k->plan->scratch_size;
    s.half = s.tilt + d * SATTN_TILE;
    s.logit = s.half + d * SATTN_TILE;
    s.state = s.logit + SATTN_WINDOW * SATTN_TILE;
    s.part = s.state + k->plan->state;
    s.rest = s.part + k->plan->state;
    return s;
}

/* One tile of queries of one batch entry */
typedef struct {
    int64_t b, first, lanes;
} span;

static span span_of(const call *k, int64_t task)
{
    span s = {task / k->plan->tiles, task % k->plan->tiles * SATTN_TILE, SATTN_TILE};
    if (k->p->queries - s.first < s.lanes)
        s.lanes = k->p->queries - s.first;
    return s;
}

static real *weights_of(const call *k, const span *s)
{
    real *w = k->p->weight;
    return w ? w + s->b * k->p->weight_batch + s->first * k->p->weight_row : NULL;
}

static void load(const call *k, const span *s, const scratch *t)
{
    const real *tilt = sattn_from(k->p->tilt, s->b * k->p->tilt_batch + s->first * k->p->tilt_row);
    kernels()->pack(s->lanes, k->p->width, tilt, k->p->tilt_row, t->tilt);
    if (k->p->covariance_kind == SATTN_COVARIANCE_DIAG)
        kernels()->squares(k->p->width * SATTN_TILE, t->tilt, NULL, t->half, NULL);
}

static void empty(const call *k, real *state)
{
    const int64_t sums = sattn_value_width(k->p) * SATTN_TILE;
    for (int64_t i = 0; i < k->plan->state; i++)
        state[i] = 0;
    for (int64_t q = 0; q < SATTN_TILE; q++)
        state[sums + q] = -(real)__builtin_inf();
}

/* The partial result of one window of components; leaves logits in the caller's weights. */
static void window(const call *k, const span *s, int64_t w, const scratch *t, real *state)
{
    const int64_t from = w * SATTN_WINDOW, left = k->p->components - from;
    const int64_t end = from + (left < SATTN_WINDOW ? left : SATTN_WINDOW);
    real *weight = weights_of(k, s);
    int64_t first, count;
    empty(k, state);
    for (int64_t q = 0; weight && q < s->lanes; q++)
        for (int64_t c = from; c < end; c++)
            weight[q * k->p->weight_row + c] = -(real)__builtin_inf();
    struct FN(sattn_components) run;
    for (int64_t c = from; (count = FN(sattn_call_run)(k, s->b, c, end, &first, &run)) > 0;
         c = first + count) {
        kernels()->mixture_fold(
            &(struct FN(sattn_fold)){&run, s->lanes, t->tilt, t->half, t->logit, state, t->rest});
        for (int64_t q = 0; weight && q < s->lanes; q++)
            for (int64_t i = 0; i < count; i++)
                weight[q * k->p->weight_row + first + i] = t->logit[i * SATTN_TILE + q];
    }
}

static void finish(const call *k, const span *s, const scratch *t, const real *state)
{
    const sattn_mixture *p = k->p;
    real own_stats[2 * SATTN_TILE], *out = p->out, *cgf = p->cgf, *stats = p->stats;
    real *weight = weights_of(k, s);
    stats = stats ? stats + s->b * p->stats_batch + 2 * s->first : own_stats;
    kernels()->mixture_finish(&(struct FN(sattn_finish)){
        .lanes = s->lanes,
        .width = p->width,
        .value_width = sattn_value_width(p),
        .state = state,
        .tilt = t->tilt,
        .centre = FN(sattn_call_centre)(k, s->b),
        .joint = p->value_width > 0,
        .scratch = t->rest,
        .out = out ? out + s->b * p->out_batch + s->first * p->out_row : NULL,
        .out_row = p->out_row,
        .stats = stats,
        .cgf = cgf ? cgf + s->b * p->cgf_batch + s->first : NULL,
    });
    for (int64_t q = 0; weight && q < s->lanes; q++)
        kernels()->mixture_weights(p->components, weight + q * p->weight_row, stats[2 * q],
                                   stats[2 * q + 1]);
}

static void whole_tile(void *context, int64_t task, int32_t thread)
{
    const call *k = context;
    const scratch t = scratch_of(k, thread);
    const span s = span_of(k, task);
    load(k, &s, &t);
    empty(k, t.state);
    for (int64_t w = 0; w < k->plan->windows; w++) {
        window(k, &s, w, &t, w ? t.part : t.state);
        if (w)
            kernels()->mixture_merge(sattn_value_width(k->p), t.state, t.part);
    }
    finish(k, &s, &t, t.state);
}

/* Few queries, many components: windows are tasks; then a tile's partial results are merged in the
 * same order as above, which gives the same bits. */
static void one_window(void *context, int64_t task, int32_t thread)
{
    const call *k = context;
    const scratch t = scratch_of(k, thread);
    const span s = span_of(k, task / k->plan->windows);
    load(k, &s, &t);
    window(k, &s, task % k->plan->windows, &t, k->work + k->plan->states + task * k->plan->state);
}

static void merge_windows(void *context, int64_t task, int32_t thread)
{
    const call *k = context;
    const scratch t = scratch_of(k, thread);
    const span s = span_of(k, task);
    real *state = k->work + k->plan->states + task * k->plan->windows * k->plan->state;
    load(k, &s, &t);
    for (int64_t w = 1; w < k->plan->windows; w++)
        kernels()->mixture_merge(sattn_value_width(k->p), state, state + w * k->plan->state);
    finish(k, &s, &t, state);
}

int32_t FN(sattn_mixture_forward)(const sattn_mixture *given)
{
    sattn_mixture p;
    sattn_mixture_plan plan;
    call k;
    int32_t status = sattn_mixture_check(&p, given, SATTN_FORWARD, sizeof(real));
    if (status == SATTN_OK)
        status = sattn_mixture_plan_make(&plan, &p, SATTN_FORWARD, sizeof(real));
    if (status == SATTN_OK)
        status = FN(sattn_call_begin)(&k, &p, &plan);
    if (status != SATTN_OK)
        return sattn_answer(status);
    const int64_t tiles = p.batch * plan.tiles;
    if (plan.split) {
        sattn_par_for(tiles * plan.windows, plan.threads, one_window, &k);
        sattn_par_for(tiles, plan.threads, merge_windows, &k);
    } else {
        sattn_par_for(tiles, plan.threads, whole_tile, &k);
    }
    FN(sattn_shared_forward)(&k);
    sattn_free(k.owned);
    return SATTN_OK;
}

int32_t FN(sattn_mixture_workspace)(const sattn_mixture *given, int64_t *bytes)
{
    sattn_mixture p;
    sattn_mixture_plan plan[2];
    int32_t status =
        bytes ? sattn_mixture_check(&p, given, SATTN_SHAPE, sizeof(real)) : SATTN_ENULL;
    for (int direction = SATTN_FORWARD; status == SATTN_OK && direction <= SATTN_BACKWARD;
         direction++)
        status = sattn_mixture_plan_make(&plan[direction], &p, direction, sizeof(real));
    if (status != SATTN_OK)
        return status;
    const int64_t most = plan[0].elements > plan[1].elements ? plan[0].elements : plan[1].elements;
    *bytes = most * (int64_t)sizeof(real);
    return SATTN_OK;
}
