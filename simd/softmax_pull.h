/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SATTN_SOFTMAX_PULL_H
#define SATTN_SOFTMAX_PULL_H

/* From weights and cotangents to dz, and softmax's backward pass of rows that need no more. */
#include "softmax_pair.h"

/* Forms of dz. Where w is 0 softmax's is +0 (hence fma), which FINITE has only if dy is finite. */
enum { SOFT, SOFT_FINITE, LOGARITHM };

static inline V pulled(int form, V w, V d, V c)
{
    const M some = v_nle(w, v_set(0));
    if (form == SOFT_FINITE)
        return v_fma(w, v_add(d, c), v_set(0));
    if (form == SOFT)
        return v_keep(some, v_fma(w, v_add(v_keep(some, d), c), v_set(0)));
    return v_fma(w, v_keep(some, c), d);
}

static inline void pull(int form, int64_t n, const R *w, const R *d, V c, R *to)
{
    int64_t i = 0;
    for (; i + GROUP * VL <= n; i += GROUP * VL)
        for (int v = 0; v < GROUP; v++)
            v_store(to + i + v * VL,
                    pulled(form, v_load(w + i + v * VL), v_load(d + i + v * VL), c));
    for (; i < n; i += VL)
        store_left(to + i, pulled(form, load_left(w + i, n - i), load_left(d + i, n - i), c),
                   n - i);
}

/* Softmax whose y, dy and dx are adjacent R, with no other gradient wanted */
static inline int is_plain(const softmax_rows *s)
{
    return !s->logarithm && s->y.data && s->dy.data && s->dx.data && s->scale == 1 &&
           sattn_is_adjacent(&s->y, s->y_storage) && sattn_is_adjacent(&s->dy, s->y_storage) &&
           sattn_is_adjacent(&s->dx, s->x_storage) && !s->mask.data && !s->length && !s->dbias &&
           !s->logit_sums && !s->dscale && !s->dsink;
}

static inline double row_sum(int kind, int64_t n, const R *a, const R *b)
{
    total t = {0, 0};
    for (int64_t j = 0; j < n; j += BLOCK)
        add_block(&t, sum_of(kind, block_of(n, j), a + j, b + j));
    return t.sum + t.lost;
}

/* If the sum is finite, so is dy at weights of 0. */
static inline void plain_line(int64_t n, const R *y, const R *dy, R dlse, R *dx)
{
    double g = row_sum(ALL_PRODUCTS, n, y, dy);
    if (__builtin_expect(__builtin_isfinite(g), 1)) {
        pull(SOFT_FINITE, n, y, dy, v_set((R)(dlse - g)), dx);
        return;
    }
    g = row_sum(PRODUCTS, n, y, dy);
    pull(SOFT, n, y, dy, v_set((R)(dlse - g)), dx);
}

enum { NARROW_PULL = 8 };

/* A plain row of `count` vectors, the last of which has `left` elements, in registers */
static inline void narrow_line(int count, int64_t left, const R *y, const R *dy, R dlse, R *dx)
{
    V a[NARROW_PULL], b[NARROW_PULL], sum[PARTS];
    for (int v = 0; v < count; v++) {
        const int64_t lanes = v == count - 1 ? left : VL;
        a[v] = load_left(y + v * VL, lanes);
        b[v] = load_left(dy + v * VL, lanes);
        sum[v % PARTS] = v_fma(a[v], b[v], v < PARTS ? v_set(0) : sum[v % PARTS]);
    }
    const R g = tree(count < PARTS ? count : PARTS, sum);
    if (__builtin_expect(!__builtin_isfinite(g), 0)) {
        plain_line((count - 1) * VL + left, y, dy, dlse, dx);
        return;
    }
    const V c = v_set((R)((double)dlse - g));
    for (int v = 0; v < count; v++)
        store_left(dx + v * VL, pulled(SOFT_FINITE, a[v], b[v], c), v == count - 1 ? left : VL);
}

static void plain_lines(const softmax_rows *s)
{
    const R *y = s->y.data, *dy = s->dy.data;
    const int64_t n = s->n, left = n - (n - 1) / VL * VL;
    R *dx = s->dx.data;
    for (int64_t r = 0; r < s->rows; r++, y += s->y.row, dy += s->dy.row, dx += s->dx.row) {
        const R dlse = s->dlse ? s->dlse[r * s->dlse_row] : 0;
#define CASE(count)                                                                                \
    case count:                                                                                    \
        narrow_line(count, left, y, dy, dlse, dx);                                                 \
        break;
        switch ((n + VL - 1) / VL) { /* constant counts unroll the loops */
            CASE(1)
            CASE(2) CASE(3) CASE(4) CASE(5) CASE(6) CASE(7) CASE(8) default
                : plain_line(n, y, dy, dlse, dx);
        }
#undef CASE
    }
}

#endif
