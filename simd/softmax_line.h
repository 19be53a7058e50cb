/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SATTN_SOFTMAX_LINE_H
#define SATTN_SOFTMAX_LINE_H

/* What forward and backward of the general softmax share: blocks of BLOCK elements of a row as
 * adjacent R, and sums that have the bits of softmax_row.h. */
#include "softmax_row.h"
#include "storage.h"

/* Elements of a row that stay on the stack between passes; longer rows are read again. */
enum { KEPT = 2048 };

typedef struct T(sattn_softmax_rows) softmax_rows;

static inline int64_t live_of(const softmax_rows *s, int64_t row)
{
    return s->length ? s->length[row * s->length_row] : s->n;
}

static inline int64_t block_of(int64_t n, int64_t j)
{
    return n - j < BLOCK ? n - j : BLOCK;
}

static inline R first_lane(V v)
{
    R lane[VL];
    v_store(lane, v);
    return lane[0];
}

/* live[i] = 1 or 0 as the mask says; a multiple of VL is set. Without a mask all are live. */
static inline void live_elements(const softmax_rows *s, int64_t row, int64_t j, int64_t n, R *live)
{
    const int64_t col = s->mask.col;
    const uint8_t *mask = (const uint8_t *)s->mask.data + row * s->mask.row + j * col;
    int64_t i = 0;
    if (col == 1)
        for (; i < n; i++)
            live[i] = mask[i] ? 1 : 0;
    else
        for (; i < n; i++)
            live[i] = mask[i * col] ? 1 : 0;
    for (; i % VL != 0; i++)
        live[i] = 0;
}

/* to[i] = `dead` where the mask is 0 */
static inline void bury(const softmax_rows *s, int64_t row, int64_t j, int64_t n, R dead, R *to)
{
    R live[BLOCK];
    if (!s->mask.data)
        return;
    live_elements(s, row, j, n, live);
    for (int64_t i = 0; i < n; i += VL) {
        const M keep = v_lt(v_set(0), v_load(live + i));
        store_left(to + i, v_select(keep, load_left(to + i, n - i), v_set(dead)), n - i);
    }
}

/* The block's logits: where x is if they are x itself, else in `to`. Dead ones are -inf; their x
 * and bias take part in no arithmetic. */
static inline const R *logits(const softmax_rows *s, int64_t row, int64_t j, int64_t n, R *to)
{
    R live[BLOCK], buffer[BLOCK];
    const R *bias = NULL, *x = sattn_elements(&s->x, s->x_storage, row, j, n, to);
    if (!s->bias.data && !s->mask.data && s->scale == 1)
        return x;
    if (s->bias.data)
        bias = sattn_elements(&s->bias, SATTN_STORAGE_OWN, row, j, n, buffer);
    if (s->mask.data)
        live_elements(s, row, j, n, live);
    for (int64_t i = 0; i < n; i += VL) {
        const M keep = s->mask.data ? v_lt(v_set(0), v_load(live + i)) : v_first(VL);
        const V a = v_keep(keep, load_left(x + i, n - i));
        const V b = bias ? v_keep(keep, load_left(bias + i, n - i)) : v_set(0);
        const V z = v_select(keep, v_fma(a, v_set(s->scale), b), v_set(-R_INF));
        store_left(to + i, z, n - i);
    }
    return to;
}

static inline void times(int64_t n, const R *from, R factor, R *to)
{
    for (int64_t i = 0; i < n; i += VL)
        store_left(to + i, v_mul(load_left(from + i, n - i), v_set(factor)), n - i);
}

/* Elements n .. end-1 of a row = value */
static inline void fill_rest(const sattn_operand *a, int32_t storage, int64_t row, int64_t n,
                             int64_t end, R value)
{
    R block[BLOCK];
    for (int64_t i = 0; i < BLOCK && i < end - n; i++)
        block[i] = value;
    for (int64_t j = n; j < end; j += BLOCK) {
        const int64_t m = block_of(end, j);
        R *to = sattn_place(a, storage, row, j, block);
        for (int64_t i = 0; i < m && to != block; i++)
            to[i] = value;
        sattn_put(a, storage, row, j, m, to);
    }
}

/* What is summed: a b, with b left out where a is 0 (a >= 0, or of any sign); a b, which has the
 * same bits unless b is not finite there; b alone */
enum { PRODUCTS, SIGNED_PRODUCTS, ALL_PRODUCTS, TERMS };

static inline V plus(int kind, V sum, V a, V b)
{
    if (kind == TERMS)
        return v_add(sum, b);
    if (kind == ALL_PRODUCTS)
        return v_fma(a, b, sum);
    sum = v_fma(a, v_keep(v_nle(a, v_set(0)), b), sum);
    return kind == PRODUCTS ? sum : v_fma(a, v_keep(v_lt(a, v_set(0)), b), sum);
}

/* The sum over a block, in the lanes and the tree of block_sum */
static inline R sum_of(int kind, int64_t n, const R *a, const R *b)
{
    enum { AT_ONCE = PARTS < GROUP ? PARTS : GROUP };
    const int64_t whole = n / LANES * LANES;
    V sum[PARTS];
    for (int part = 0; part < PARTS; part += AT_ONCE) {
        V acc[AT_ONCE];
        for (int v = 0; v < AT_ONCE; v++)
            acc[v] = v_set(0);
        for (int64_t j = part * VL; j < whole; j += LANES)
            for (int v = 0; v < AT_ONCE; v++)
                acc[v] = plus(kind, acc[v], v_load(a + j + v * VL), v_load(b + j + v * VL));
        for (int v = 0; v < AT_ONCE; v++)
            sum[part + v] = acc[v];
    }
    int64_t j = whole;
    for (int v = 0; j < n; j += VL, v++)
        sum[v] = plus(kind, sum[v], load_left(a + j, n - j), load_left(b + j, n - j));
    return tree(PARTS, sum);
}

#endif
