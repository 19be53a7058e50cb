/* SPDX-License-Identifier: BSD-2-Clause */
/* Scores of a tile of queries against some keys: scale, cap, bias, slope, mask, in this order.
 *
 * Error of a score, u = 2^-24 (2^-53): the product over D is one chain of FMAs, D u sum |q_d k_d|
 * at worst; each later term rounds once more. The cap's tanh adds 2 u of itself (measured 1.5). */
#include "attention_few.h"

typedef struct T(sattn_scores) scores;

/* tanh(x) = x + x z p(z), z = x^2, up to SMALL, else 1 - 2 / (exp(2 |x|) + 1) with the sign of x;
 * it is 1 to the last bit from MOST on. Coefficients: coefficients.sollya. */
#if SATTN_REAL == 32
#define TANH_MOST 10
static const R tanh_poly[] = {-0x1.b05946p-8f, 0x1.5cf902p-6f, -0x1.b99b0ep-5f, 0x1.110fcap-3f,
                              -0x1.555554p-2f};
#else
#define TANH_MOST 20
static const R tanh_poly[] = {
    0x1.9db67e459c535p-18, -0x1.01ec3da448824p-15, 0x1.83243e382fa99p-14, -0x1.f21454e79c4cfp-13,
    0x1.352480edaf0dfp-11, -0x1.7d9f4154b5aedp-10, 0x1.d6d397eeb77fap-9,  -0x1.226e345ea621cp-7,
    0x1.664f487d359e4p-6,  -0x1.ba1ba1ba0a655p-5,  0x1.111111111104ap-3,  -0x1.5555555555555p-2};
#endif
#define TANH_SMALL ((R)0.5)

static inline V v_tanh(V x)
{
    const V zero = v_set(0), one = v_set(1), most = v_set(TANH_MOST);
    const V size = v_select(v_lt(x, zero), v_sub(zero, x), x); /* NaN stays */
    const V a = v_select(v_lt(most, size), most, size), z = v_mul(a, a);
    const V e = v_exp_plain(v_nle(a, v_set(-1)), v_add(a, a));
    const V large = v_sub(one, v_div(v_set(2), v_add(e, one)));
    const V small = v_fma(v_mul(a, z), SATTN_POLY(tanh_poly, z), a);
    const V t = v_select(v_lt(a, v_set(TANH_SMALL)), small, large);
    return v_select(v_lt(x, zero), v_sub(zero, t), t);
}

static inline V term(const R *tile, int64_t at, V otherwise)
{
    return tile ? v_load(tile + at) : otherwise;
}

/* The score of key k from its product with the query; `at` is its place in a tile. */
static inline V finish(const scores *s, int64_t k, int64_t q, V raw)
{
    const int64_t at = k * SATTN_TILE + q;
    const V nothing = v_set(-R_INF), key = v_set((R)(s->first + k));
    V x = v_mul(raw, v_set(s->scale));
    if (s->cap > 0) {
        const V t = v_tanh(v_div(x, v_set(s->cap)));
        if (s->rate)
            v_store(s->rate + at, v_fnma(t, t, v_set(1)));
        x = v_mul(v_set(s->cap), t);
    }
    if (s->bias) {
        const V bias = v_load(s->bias + at);
        x = v_select(live_lanes(bias), v_add(x, bias), nothing);
    }
    if (s->slope) {
        const V from = v_sub(v_load(s->place + q), key), to = v_sub(v_set(0), from);
        x = v_fnma(v_load(s->slope + q), v_max(from, to), x);
    }
    if (s->live)
        x = v_select(v_lt(v_set(0), v_load(s->live + at)), x, nothing);
    x = v_select(v_le(term(s->low, q, key), key), x, nothing);
    return v_select(v_lt(key, term(s->high, q, v_set((R)(s->first + k + 1)))), x, nothing);
}

void K(attention_scores)(const scores *s)
{
    const int64_t n = vector_lanes(s->lanes);
    if (s->lanes <= FEW && s->key_col == 1)
        few_scores(s);
    else
        tile_product(s->count, s->width, s->lanes, s->key, s->key_row, s->key_col, s->query, NULL,
                     s->score);
    if (s->plain)
        return;
    for (int64_t k = 0; k < s->count; k++)
        for (int64_t q = 0; q < n; q += VL) {
            R *score = s->score + k * SATTN_TILE + q;
            const V raw = v_load(score);
            if (s->raw)
                v_store(s->raw + k * SATTN_TILE + q, raw);
            v_store(score, finish(s, k, q, raw));
        }
}
