/* SPDX-License-Identifier: BSD-2-Clause */
/* Forward: a window of keys with scores s_k and values v_k joins a partial result,
 *
 *   largest' = max(largest, max s_k),  r = exp(largest - largest'),  p_k = exp(s_k - largest')
 *   sum' = sum r + sum_k p_k,  state' = state r + sum_k p_k v_k
 *
 * r is exactly 1 where the maximum stands, so that a lane does not feel its neighbours' maxima, and
 * where it stands in all lanes nothing needs rescaling. */
#include "attention_few.h"

/* The lanes at q: maximum, weights and sum. Returns r. */
static inline V weigh(int64_t count, V scale, const R *score, R *p, R *largest, R *sum)
{
    enum { CHAINS = 4 };
    V top[CHAINS], total = v_set(0);
    for (int c = 0; c < CHAINS; c++)
        top[c] = v_set(-R_INF);
    int64_t k = 0;
    for (; k + CHAINS <= count; k += CHAINS)
        for (int c = 0; c < CHAINS; c++)
            top[c] = v_max(v_load(score + (k + c) * SATTN_TILE), top[c]);
    for (; k < count; k++)
        top[0] = v_max(v_load(score + k * SATTN_TILE), top[0]);
    const V most = v_max(v_max(top[0], top[1]), v_max(top[2], top[3]));
    const V before = v_load(largest), next = v_max(before, v_mul(most, scale));
    const V shift = reference(next);
    for (k = 0; k + CHAINS <= count; k += CHAINS) {
        V x[CHAINS];
        for (int c = 0; c < CHAINS; c++)
            x[c] = v_mul(v_load(score + (k + c) * SATTN_TILE), scale);
        for (int c = 0; c < CHAINS; c++)
            x[c] = v_weight(v_sub(x[c], shift));
        for (int c = 0; c < CHAINS; c++) {
            v_store(p + (k + c) * SATTN_TILE, x[c]);
            total = v_add(total, x[c]);
        }
    }
    for (; k < count; k++) {
        const V x = v_weight(v_sub(v_mul(v_load(score + k * SATTN_TILE), scale), shift));
        v_store(p + k * SATTN_TILE, x);
        total = v_add(total, x);
    }
    const V r = v_weight(v_sub(before, shift));
    v_store(largest, next);
    v_store(sum, v_fma(v_load(sum), r, total));
    return r;
}

void K(attention_weigh)(const struct T(sattn_weigh) * w)
{
    R *largest = w->state + w->width * SATTN_TILE, *sum = largest + SATTN_TILE;
    for (int64_t q = 0; q < vector_lanes(w->lanes); q += VL) {
        const V r = weigh(w->count, v_set(w->scale), w->score + q, w->p + q, largest + q, sum + q);
        if (v_top(v_keep(v_lt(r, v_set(1)), v_set(1))) == 0)
            continue;
        for (int64_t x = q; x < w->width * SATTN_TILE; x += SATTN_TILE)
            v_store(w->state + x, v_mul(v_load(w->state + x), r));
    }
}

/* Key by key, where live: slow, for values that are not finite */
static void careful_values(const struct T(sattn_values) * v)
{
    for (int64_t i = 0; i < v->width; i++)
        for (int64_t q = 0; q < vector_lanes(v->lanes); q += VL) {
            R *state = v->state + i * SATTN_TILE + q;
            V acc = v_load(state);
            for (int64_t k = 0; k < v->count; k++) {
                const V value = v_set(v->value[k * v->value_row + i * v->value_col]);
                const V p = v_load(v->p + k * SATTN_TILE + q);
                acc = v_select(live_lanes(v_load(v->score + k * SATTN_TILE + q)),
                               v_fma(value, p, acc), acc);
            }
            v_store(state, acc);
        }
}

void K(attention_values)(const struct T(sattn_values) * v)
{
    if (v->careful)
        careful_values(v);
    else if (v->lanes <= FEW && v->value_col == 1)
        few_values(v);
    else
        tile_product(v->width, v->count, v->lanes, v->value, v->value_col, v->value_row, v->p,
                     v->state, v->state);
}
