/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SATTN_ATTENTION_FEW_H
#define SATTN_ATTENTION_FEW_H

/* The two products of attention where the queries fill at most half a vector, as in decoding. Then
 * keys lie along the lanes for the scores, and the width of the values for their sums: no lane is
 * idle, and what takes time is to read keys and values. A score is one chain of FMAs over D in its
 * order, an element of the result one over the keys in theirs, whatever lies along the lanes: these
 * are the bits of tile_product. */

#include "attention_tile.h"

enum { FEW = VL / 2 };

/* What is AHEAD rows further on is asked for while this is used: few queries wait for memory. An
 * address past the end does no harm, it is never read. */
static inline void fetch_ahead(const R *x, int64_t row)
{
    enum { AHEAD = SATTN_WINDOW };
    __builtin_prefetch((const void *)((uintptr_t)x + (uintptr_t)(AHEAD * row) * sizeof(R)));
}

/* a[i] = the row i of x, i < rows; 0 beyond it and beyond `cols` */
static inline __attribute__((always_inline)) void load_square(V a[VL], int64_t rows, int64_t cols,
                                                              const R *x, int64_t row)
{
    if (rows >= VL && cols >= VL) {
        for (int i = 0; i < VL; i++) {
            a[i] = v_load(x + i * row);
            fetch_ahead(x + i * row, row);
        }
        return;
    }
    for (int i = 0; i < VL; i++)
        a[i] = i < rows ? v_load_n(x + i * row, cols < VL ? cols : VL) : v_set(0);
}

/* score[k][q] = key_k . query_q of VL keys or fewer; other lanes 0. `lanes` is a constant. */
static inline __attribute__((always_inline)) void few_keys(const struct T(sattn_scores) * s,
                                                           int64_t k, const int lanes)
{
    const int64_t rows = s->count - k < VL ? s->count - k : VL;
    V acc[VL];
    for (int q = 0; q < VL; q++)
        acc[q] = v_set(0);
    for (int64_t i = 0; i < s->width; i += VL) {
        const R *query = s->query + i * SATTN_TILE;
        const int64_t cols = s->width - i;
        V a[VL];
        load_square(a, rows, cols, s->key + k * s->key_row + i, s->key_row);
        v_transpose(a);
        if (cols >= VL)
            for (int c = 0; c < VL; c++)
                for (int q = 0; q < lanes; q++)
                    acc[q] = v_fma(a[c], v_set(query[c * SATTN_TILE + q]), acc[q]);
        else
            for (int c = 0; c < VL - 1; c++)
                for (int q = 0; c < cols && q < lanes; q++)
                    acc[q] = v_fma(a[c], v_set(query[c * SATTN_TILE + q]), acc[q]);
    }
    v_transpose(acc);
    for (int j = 0; j < VL; j++)
        if (j < rows)
            v_store(s->score + (k + j) * SATTN_TILE, acc[j]);
}

static inline void few_scores(const struct T(sattn_scores) * s)
{
    for (int64_t k = 0; k < s->count; k += VL)
        if (s->lanes == 1)
            few_keys(s, k, 1);
        else if (s->lanes <= 2)
            few_keys(s, k, VL > 2 ? 2 : 1);
        else if (s->lanes <= 4)
            few_keys(s, k, VL > 4 ? 4 : 1);
        else
            few_keys(s, k, VL > 8 ? 8 : 1);
}

/* state += sum_k p_k value_k in columns i .. of the values, `vectors` of them. `lanes` and
 * `vectors` are constants. */
static inline __attribute__((always_inline)) void few_columns(const struct T(sattn_values) * v,
                                                              int64_t i, const int lanes,
                                                              const int vectors)
{
    R column[VL];
    V acc[4][VL];
    const int64_t left = v->width - i - (vectors - 1) * VL, last = left < VL ? left : VL;
    for (int x = 0; x < vectors; x++)
        for (int q = 0; q < lanes; q++) {
            const int64_t cols = x < vectors - 1 ? VL : last;
            for (int64_t j = 0; j < cols; j++)
                column[j] = v->state[(i + x * VL + j) * SATTN_TILE + q];
            acc[x][q] = v_load_n(column, cols);
        }
    for (int64_t k = 0; k < v->count; k++) {
        const R *value = v->value + k * v->value_row + i, *p = v->p + k * SATTN_TILE;
        V b[4];
        for (int x = 0; x < vectors; x++) {
            b[x] = x < vectors - 1 ? v_load(value + x * VL) : v_load_n(value + x * VL, last);
            fetch_ahead(value + x * VL, v->value_row);
        }
        for (int q = 0; q < lanes; q++)
            for (int x = 0; x < vectors; x++)
                acc[x][q] = v_fma(b[x], v_set(p[q]), acc[x][q]);
    }
    for (int x = 0; x < vectors; x++)
        for (int q = 0; q < lanes; q++) {
            const int64_t cols = x < vectors - 1 ? VL : last;
            v_store_n(column, acc[x][q], cols);
            for (int64_t j = 0; j < cols; j++)
                v->state[(i + x * VL + j) * SATTN_TILE + q] = column[j];
        }
}

static inline __attribute__((always_inline)) void few_width(const struct T(sattn_values) * v,
                                                            const int lanes, const int most)
{
    int64_t i = 0;
    for (; v->width - i > (most - 1) * VL; i += most * VL)
        few_columns(v, i, lanes, most);
    for (; i < v->width; i += VL)
        few_columns(v, i, lanes, 1);
}

static inline void few_values(const struct T(sattn_values) * v)
{
    if (v->lanes == 1)
        few_width(v, 1, 4);
    else if (v->lanes <= 2)
        few_width(v, VL > 2 ? 2 : 1, 4);
    else if (v->lanes <= 4)
        few_width(v, VL > 4 ? 4 : 1, V_REGISTERS == 32 ? 4 : 2);
    else
        few_width(v, VL > 8 ? 8 : 1, 2);
}

#endif
