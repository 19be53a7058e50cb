/* SPDX-License-Identifier: BSD-2-Clause */
/* Forward: a state runs through the tokens. It is the total of the blocks before and the run of the
 * present one, so that a long sum loses little, and blocks can be summed by several threads: the
 * same sums in the same order. */
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

static int64_t state_size(const call *k)
{
    return k->p->width * sattn_linear_columns(k->p);
}

static real *state_of(const call *k, int64_t head, int64_t block)
{
    return k->work + k->plan->states + (head * (k->plan->blocks + 1) + block) * k->plan->state;
}

/* run += f(k)' v of the chunk in scratch */
static void add_chunk(const call *k, const scratch *s, int64_t count, real *run)
{
    const int64_t d = k->p->width, f = sattn_linear_columns(k->p);
    FN(sattn_linear_product)(d, f, count, s->fk, 1, d, s->v, f, run, run, f);
}

/* Rows of out' to the caller: scaled, or divided by their last column */
static void put_out(const call *k, int64_t head, int64_t first, int64_t count, const scratch *s)
{
    const sattn_linear *p = k->p;
    const int64_t e = p->value_width, f = sattn_linear_columns(p);
    const sattn_output den = {p->den.data, p->den.batch, p->den.head, p->den.row, 1};
    real *divisor = s->lanes, *factor = s->lanes + TILE;
    for (int64_t i = 0; f > e && i < count; i++)
        divisor[i] = s->out[i * f + e] + (real)p->eps;
    FN(sattn_linear_factors)(p, first, count, divisor, factor);
    FN(sattn_linear_scale)(count, e, factor, s->out, f);
    if (p->out.data)
        FN(sattn_linear_put)(k, head, s->out, f, first, count, e, &p->out, 0);
    if (f > e && den.data)
        FN(sattn_linear_put)(k, head, divisor, 1, first, count, 1, &den, 0);
}

/* The sum over a block of keys, from 0 */
static void sum_block(void *context, int64_t task, int32_t thread)
{
    const call *k = context;
    const int64_t head = task / k->plan->blocks, block = task % k->plan->blocks;
    const int64_t end = least((block + 1) * BLOCK, k->p->keys);
    const scratch s = FN(sattn_linear_scratch_of)(k, thread);
    real *run = state_of(k, head, block + 1);
    memset(run, 0, (size_t)state_size(k) * sizeof *run);
    for (int64_t first = block * BLOCK; first < end; first += TILE) {
        FN(sattn_linear_keys)(k, head, first, least(TILE, end - first), &s);
        add_chunk(k, &s, least(TILE, end - first), run);
    }
}

/* From sums of blocks to totals: before each block, and after all */
static void sum_totals(void *context, int64_t head, int32_t thread)
{
    const call *k = context;
    (void)thread;
    FN(sattn_linear_get_state)(k, head, &k->p->sum, &k->p->key_sum, state_of(k, head, 0));
    for (int64_t block = 0; block < k->plan->blocks; block++)
        kernels()->add(state_size(k), state_of(k, head, block + 1), state_of(k, head, block));
    FN(sattn_linear_put_state)
    (k, head, state_of(k, head, k->plan->blocks), &k->p->sum_out, &k->p->key_sum_out, 0);
}

/* Causal: the answers of a block given the total before it; leaves the block's sum in `run`. */
static void causal_block(const call *k, int64_t head, int64_t block, const scratch *s,
                         const real *total, real *run, real *state)
{
    const int64_t d = k->p->width, f = sattn_linear_columns(k->p);
    const int64_t end = least((block + 1) * BLOCK, k->p->keys);
    const size_t bytes = (size_t)state_size(k) * sizeof *run;
    memset(run, 0, bytes);
    for (int64_t first = block * BLOCK; first < end; first += TILE) {
        const int64_t count = least(TILE, end - first);
        memcpy(state, total, bytes);
        kernels()->add(state_size(k), state, run);
        FN(sattn_linear_keys)(k, head, first, count, s);
        FN(sattn_linear_queries)(k, head, first, count, s);
        FN(sattn_linear_pairs)(count, count, d, s->fq, s->fk, 1, s->tile, s->pairs);
        FN(sattn_linear_product)(count, f, d, s->fq, d, 1, state, f, NULL, s->out, f);
        FN(sattn_linear_product)(count, f, count, s->pairs, TILE, 1, s->v, f, s->out, s->out, f);
        put_out(k, head, first, count, s);
        add_chunk(k, s, count, run);
    }
}

static void one_block(void *context, int64_t task, int32_t thread)
{
    const call *k = context;
    const int64_t head = task / k->plan->blocks, block = task % k->plan->blocks;
    const scratch s = FN(sattn_linear_scratch_of)(k, thread);
    causal_block(k, head, block, &s, state_of(k, head, block), s.state[1], s.state[2]);
}

static void causal_head(void *context, int64_t head, int32_t thread)
{
    const call *k = context;
    const scratch s = FN(sattn_linear_scratch_of)(k, thread);
    real *total = s.state[0];
    FN(sattn_linear_get_state)(k, head, &k->p->sum, &k->p->key_sum, total);
    for (int64_t block = 0; block < k->plan->blocks; block++) {
        causal_block(k, head, block, &s, total, s.state[1], s.state[2]);
        kernels()->add(state_size(k), total, s.state[1]);
    }
    FN(sattn_linear_put_state)(k, head, total, &k->p->sum_out, &k->p->key_sum_out, 0);
}

static void one_tile(void *context, int64_t task, int32_t thread)
{
    const call *k = context;
    const int64_t head = task / k->plan->tiles, first = task % k->plan->tiles * TILE;
    const int64_t d = k->p->width, f = sattn_linear_columns(k->p);
    const int64_t count = least(TILE, k->p->queries - first);
    const scratch s = FN(sattn_linear_scratch_of)(k, thread);
    FN(sattn_linear_queries)(k, head, first, count, &s);
    FN(sattn_linear_product)
    (count, f, d, s.fq, d, 1, state_of(k, head, k->plan->blocks), f, NULL, s.out, f);
    put_out(k, head, first, count, &s);
}

int32_t FN(sattn_linear_forward)(const sattn_linear *given)
{
    sattn_linear p;
    sattn_linear_plan plan;
    call k;
    int32_t status = sattn_linear_check(&p, given, SATTN_LINEAR, sizeof(real));
    if (status == SATTN_OK)
        status = sattn_linear_plan_make(&plan, &p, SATTN_LINEAR);
    if (status == SATTN_OK)
        status = FN(sattn_linear_begin)(&k, &p, &plan);
    if (status != SATTN_OK)
        return sattn_answer(status);
    if (plan.split) {
        sattn_par_for(plan.heads * plan.blocks, plan.threads, sum_block, &k);
        sattn_par_for(plan.heads, plan.threads, sum_totals, &k);
        if (p.flags & SATTN_CAUSAL)
            sattn_par_for(plan.heads * plan.blocks, plan.threads, one_block, &k);
        else
            sattn_par_for(plan.heads * plan.tiles, plan.threads, one_tile, &k);
    } else {
        sattn_par_for(plan.heads, plan.threads, causal_head, &k);
    }
    sattn_free(k.owned);
    return SATTN_OK;
}

int32_t FN(sattn_linear_workspace)(const sattn_linear *given, int64_t *bytes)
{
    sattn_linear p;
    sattn_linear_plan plan[2];
    int32_t status =
        bytes ? sattn_linear_check(&p, given, SATTN_LINEAR_SHAPE, sizeof(real)) : SATTN_ENULL;
    for (int direction = SATTN_LINEAR; status == SATTN_OK && direction <= SATTN_LINEAR_BACK;
         direction++)
        status = sattn_linear_plan_make(&plan[direction], &p, direction);
    if (status != SATTN_OK)
        return status;
    const int64_t most = plan[0].elements > plan[1].elements ? plan[0].elements : plan[1].elements;
    *bytes = most * (int64_t)sizeof(real);
    return SATTN_OK;
}
