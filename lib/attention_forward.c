/* SPDX-License-Identifier: BSD-2-Clause */
#include "attention_tile.h"
#include "check.h"
#include "par.h"

#include <stddef.h>

typedef FN(sattn_attention_call) call;
typedef FN(sattn_attention_scratch) scratch;
typedef FN(sattn_tile) tile;
typedef FN(sattn_key_window) key_window;
typedef FN(sattn_key_rows) key_rows;

enum { TILE = SATTN_TILE, WINDOW = SATTN_WINDOW };

/* What forward keeps in scratch.rest */
typedef struct {
    real *p, *state, *part, *finish, *sink;
} places;

static places places_of(const call *k, const scratch *s)
{
    places f;
    f.p = s->rest;
    f.sink = f.p + WINDOW * TILE;
    f.state = f.sink + TILE;
    f.part = f.state + k->plan->state;
    f.finish = f.part + k->plan->state;
    return f;
}

static void empty(const call *k, real *state)
{
    const int64_t sums = k->p->value_width * TILE;
    for (int64_t i = 0; i < k->plan->state; i++)
        state[i] = 0;
    for (int64_t q = 0; q < TILE; q++)
        state[sums + q] = -(real)__builtin_inf();
}

/* A window of keys joins a partial result. */
static void join(const call *k, const tile *t, const scratch *s, const key_window *w, real *p,
                 real *state)
{
    const int64_t d = k->p->width, e = k->p->value_width;
    int64_t run;
    for (int64_t j = 0; (run = FN(sattn_window_run)(w, &j)) > 0; j += run) {
        const key_rows keys = FN(sattn_window_rows)(k, t, w, &k->p->k, d, j, run, 0, s->key);
        FN(sattn_window_scores)(w, keys, j, run, NULL, NULL);
    }
    kernels()->attention_weigh(
        &(struct FN(sattn_weigh)){w->count, t->lanes, e, w->factor, s->score, p, state});
    for (int64_t j = 0; (run = FN(sattn_window_run)(w, &j)) > 0; j += run) {
        const key_rows values =
            FN(sattn_window_rows)(k, t, w, &k->p->v, e, j, run, w->masked, s->value);
        const int careful = w->masked && !kernels()->all_finite(run, e, values.data, values.row);
        kernels()->attention_values(
            &(struct FN(sattn_values)){run, t->lanes, e, values.data, values.row, values.col,
                                       s->score + j * TILE, p + j * TILE, careful, state});
    }
}

/* Keys from .. end - 1 as far as the tile sees them; windows begin at multiples of their length. */
static void fold_keys(const call *k, const tile *t, const scratch *s, int64_t from, int64_t end,
                      real *p, real *state)
{
    key_window w;
    const int64_t low = t->low > from ? t->low / WINDOW * WINDOW : from;
    end = end < t->high ? end : t->high;
    for (int64_t j = low; j < end; j += WINDOW) {
        const int64_t left = t->of.keys - j;
        if (FN(sattn_window_of)(k, t, s, j, left < WINDOW ? left : WINDOW, &w))
            join(k, t, s, &w, p, state);
    }
}

static void fold_block(const call *k, const tile *t, const scratch *s, int64_t block, real *p,
                       real *state)
{
    empty(k, state);
    fold_keys(k, t, s, block * SATTN_SPLIT, (block + 1) * SATTN_SPLIT, p, state);
}

/* The statistics of a tile to the caller */
static void put_stats(const call *k, const tile *t, const real *stats, const real *lse)
{
    const sattn_output column = {k->p->lse.data, k->p->lse.batch, k->p->lse.head, k->p->lse.row, 1};
    if (k->p->stats.data)
        FN(sattn_tile_put)(k, t, stats, 2, &k->p->stats);
    if (k->p->lse.data)
        FN(sattn_tile_put)(k, t, lse, 1, &column);
}

static void finish(const call *k, const tile *t, const scratch *s, const places *f, real *state)
{
    const sattn_attention *p = k->p;
    const int64_t e = p->value_width;
    real stats[2 * TILE], lse[TILE];
    if (p->sink.data) {
        FN(sattn_tile_heads)(t, &p->sink, f->sink);
        kernels()->attention_weigh(
            &(struct FN(sattn_weigh)){1, t->lanes, e, 1, f->sink, f->p, state});
    }
    kernels()->mixture_finish(&(struct FN(sattn_finish)){.lanes = t->lanes,
                                                         .value_width = e,
                                                         .state = state,
                                                         .joint = 1,
                                                         .scratch = f->finish,
                                                         .out = p->out.data ? s->rows : NULL,
                                                         .out_row = e,
                                                         .stats = stats,
                                                         .cgf = lse});
    if (p->out.data)
        FN(sattn_tile_put)(k, t, s->rows, e, &p->out);
    put_stats(k, t, stats, lse);
}

static void whole_tile(void *context, int64_t task, int32_t thread)
{
    const call *k = context;
    const scratch s = FN(sattn_attention_scratch_of)(k, thread);
    const places f = places_of(k, &s);
    const tile t = FN(sattn_tile_of)(k, task / k->plan->tiles, task % k->plan->tiles, &s);
    if (t.lanes == 0)
        return;
    empty(k, f.state);
    for (int64_t block = 0; block < k->plan->blocks; block++) {
        fold_block(k, &t, &s, block, f.p, block ? f.part : f.state);
        if (block)
            kernels()->mixture_merge(k->p->value_width, f.state, f.part);
    }
    finish(k, &t, &s, &f, f.state);
}

/* Few queries, many keys: blocks are tasks; then a tile's partial results are merged in the same
 * order as above, which gives the same bits. */
static void one_block(void *context, int64_t task, int32_t thread)
{
    const call *k = context;
    const int64_t blocks = k->plan->blocks, at = task / blocks;
    const scratch s = FN(sattn_attention_scratch_of)(k, thread);
    const places f = places_of(k, &s);
    const tile t = FN(sattn_tile_of)(k, at / k->plan->tiles, at % k->plan->tiles, &s);
    if (t.lanes > 0)
        fold_block(k, &t, &s, task % blocks, f.p,
                   k->work + k->plan->states + task * k->plan->state);
}

static void merge_blocks(void *context, int64_t task, int32_t thread)
{
    const call *k = context;
    const scratch s = FN(sattn_attention_scratch_of)(k, thread);
    const places f = places_of(k, &s);
    const tile t = FN(sattn_tile_of)(k, task / k->plan->tiles, task % k->plan->tiles, &s);
    real *state = k->work + k->plan->states + task * k->plan->blocks * k->plan->state;
    if (t.lanes == 0)
        return;
    for (int64_t block = 1; block < k->plan->blocks; block++)
        kernels()->mixture_merge(k->p->value_width, state, state + block * k->plan->state);
    finish(k, &t, &s, &f, state);
}

int32_t FN(sattn_attention_forward)(const sattn_attention *given)
{
    sattn_attention p;
    sattn_attention_plan plan;
    call k;
    int32_t status = sattn_attention_check(&p, given, SATTN_ATTEND, sizeof(real));
    if (status == SATTN_OK)
        status = sattn_attention_plan_make(&plan, &p, SATTN_ATTEND, sizeof(real));
    if (status == SATTN_OK)
        status = FN(sattn_attention_begin)(&k, &p, &plan);
    if (status != SATTN_OK)
        return sattn_answer(status);
    const int64_t tiles = plan.segments * plan.tiles;
    if (plan.split) {
        sattn_par_for(tiles * plan.blocks, plan.threads, one_block, &k);
        sattn_par_for(tiles, plan.threads, merge_blocks, &k);
    } else {
        sattn_par_for(tiles, plan.threads, whole_tile, &k);
    }
    sattn_free(k.owned);
    return SATTN_OK;
}

int32_t FN(sattn_attention_workspace)(const sattn_attention *given, int64_t *bytes)
{
    sattn_attention p;
    sattn_attention_plan plan[2];
    int32_t status =
        bytes ? sattn_attention_check(&p, given, SATTN_ATTEND_SHAPE, sizeof(real)) : SATTN_ENULL;
    for (int direction = SATTN_ATTEND; status == SATTN_OK && direction <= SATTN_ATTEND_BACK;
         direction++)
        status = sattn_attention_plan_make(&plan[direction], &p, direction, sizeof(real));
    if (status != SATTN_OK)
        return status;
    const int64_t most = plan[0].elements > plan[1].elements ? plan[0].elements : plan[1].elements;
    *bytes = most * (int64_t)sizeof(real);
    return SATTN_OK;
}
