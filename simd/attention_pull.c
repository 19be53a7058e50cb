/* SPDX-License-Identifier: BSD-2-Clause */
/* Backward of a tile of queries and a run of keys: the factors of the gradients, and the sums of
 * outer products that they stand in. */
#include "attention_tile.h"

typedef struct T(sattn_attention_pull) pull;
typedef struct T(sattn_attention_outer) outer;

void K(attention_pull)(const pull *p)
{
    const V scale = v_set(p->scale), factor = v_set(p->factor);
    tile_product(p->count, p->width, p->lanes, p->value, p->value_row, p->value_col, p->dout, NULL,
                 p->e);
    for (int64_t q = 0; q < vector_lanes(p->lanes); q += VL) {
        const V largest = reference(v_load(p->largest + q)), log_sum = v_load(p->log_sum + q);
        const V offset = v_load(p->offset + q);
        V sum = v_load(p->sum + q);
        for (int64_t at = q; at < p->count * SATTN_TILE; at += SATTN_TILE) {
            const V score = v_load(p->score + at);
            const V w = v_weight(v_sub(v_sub(v_mul(score, factor), largest), log_sum));
            const V e = v_keep(live_lanes(score), v_mul(w, v_add(v_load(p->e + at), offset)));
            const V inner = p->rate ? v_mul(v_load(p->rate + at), e) : e;
            v_store(p->w + at, w);
            v_store(p->e + at, e);
            v_store(p->g + at, v_mul(scale, inner));
            if (p->raw)
                sum = v_select(live_lanes(score), v_fma(inner, v_load(p->raw + at), sum), sum);
        }
        v_store(p->sum + q, sum);
    }
}

static void add_scaled(int64_t n, R a, const R *b, R *c)
{
    for (int64_t j = 0; j < n; j += VL) {
        const int64_t left = n - j < VL ? n - j : VL;
        v_store_n(c + j, v_fma(v_set(a), v_load_n(b + j, left), v_load_n(c + j, left)), left);
    }
}

/* Pair by pair, where live; the same sums in the same order */
static void careful_outer(const outer *o)
{
    for (int64_t k = 0; k < o->count; k++)
        for (int64_t q = 0; q < o->lanes; q++) {
            const int64_t at = k * SATTN_TILE + q;
            if (o->score[at] == -R_INF)
                continue;
            if (o->transposed)
                add_scaled(o->width, o->a[at], o->b + k * o->b_row, o->c + q * o->c_row);
            else
                add_scaled(o->width, o->a[at], o->b + q * o->b_row, o->c + k * o->c_row);
        }
}

void K(attention_outer)(const outer *o)
{
    if (o->score) {
        careful_outer(o);
        return;
    }
    const struct T(sattn_gemm) g = {.m = o->transposed ? o->lanes : o->count,
                                    .n = o->width,
                                    .k = o->transposed ? o->count : o->lanes,
                                    .a = o->a,
                                    .a_row = o->transposed ? 1 : SATTN_TILE,
                                    .a_col = o->transposed ? SATTN_TILE : 1,
                                    .b = o->b,
                                    .b_row = o->b_row,
                                    .c = o->c,
                                    .c_row = o->c_row,
                                    .start = o->c,
                                    .s_row = o->c_row,
                                    .s_col = 1};
    K(gemm)(&g);
}

void K(attention_sink)(const R *sink, const R *largest, const R *log_sum, const R *offset, R *dsink)
{
    for (int64_t q = 0; q < SATTN_TILE; q += VL) {
        const V x = v_sub(v_load(sink + q), reference(v_load(largest + q)));
        const V p = v_weight(v_sub(x, v_load(log_sum + q)));
        v_store(dsink + q, v_mul(p, v_load(offset + q)));
    }
}
