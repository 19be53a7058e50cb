/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SATTN_GEMM_NARROW_H
#define SATTN_GEMM_NARROW_H

/* gemm.c for a B of few columns, SATTN_NARROW at most: vectors along the rows of A instead of the
 * columns of B, so that no lane is idle and A is read at the speed of memory. Squares of adjacent
 * elements of A are transposed in registers, which takes less time than they take to arrive; an A
 * with adjacent rows needs no turn. Each element is the same chain of fused multiply-adds as there,
 * hence the same bits. */

#include "vec.h"

typedef struct T(sattn_gemm) gemm;

/* Squares that A is fetched ahead, into the second cache: VL rows are as many streams, more than a
 * processor foresees. */
enum { AHEAD = 8 };

static inline int is_narrow(const gemm *g)
{
    return VL > 1 && g->n > 0 && g->n <= SATTN_NARROW && g->m >= VL && g->k >= VL &&
           (g->a_col == 1 || g->a_row == 1);
}

/* VL x VL elements of A from (i, p) on as columns, of which `rows` x `cols` exist */
static inline void columns(const gemm *g, int64_t i, int64_t p, int64_t rows, int64_t cols, V a[VL])
{
    const R *at = g->a + i * g->a_row + p * g->a_col;
    if (g->a_row == 1) {
        for (int c = 0; c < VL; c++)
            a[c] = c >= cols    ? v_set(0)
                   : rows == VL ? v_load(at + c * g->a_col)
                                : v_load_n(at + c * g->a_col, rows);
        return;
    }
    if (cols == VL)
        for (int r = 0; r < VL; r++) /* only a hint, so it may point beyond A */
            __builtin_prefetch((const char *)((uintptr_t)at +
                                              (uintptr_t)((r + AHEAD * VL) * g->a_row) * sizeof(R)),
                               0, 2);
    for (int r = 0; r < VL; r++)
        a[r] = r >= rows    ? v_set(0)
               : cols == VL ? v_load(at + r * g->a_row)
                            : v_load_n(at + r * g->a_row, cols);
    v_transpose(a);
}

/* `rows` elements `step` apart */
static inline V gather(const R *x, int64_t step, int64_t rows)
{
    R each[VL] = {0};
    for (int64_t r = 0; r < rows; r++)
        each[r] = x[r * step];
    return v_load(each);
}

/* Rows i .. i + rows - 1. `lanes` is a constant at every call and at least n: lanes beyond n repeat
 * the last one and are not stored. */
static inline __attribute__((always_inline)) void narrow_rows(const gemm *g, int64_t i,
                                                              int64_t rows, const int lanes)
{
    V acc[SATTN_NARROW];
    int64_t column[SATTN_NARROW];
    for (int q = 0; q < lanes; q++) {
        column[q] = q < g->n ? q : g->n - 1;
        acc[q] = g->start ? gather(g->start + i * g->s_row + column[q] * g->s_col, g->s_row, rows)
                          : v_set(0);
    }
    for (int64_t p = 0; p < g->k; p += VL) {
        const int64_t cols = g->k - p < VL ? g->k - p : VL;
        V a[VL];
        columns(g, i, p, rows, cols, a);
        const R *b = g->b + p * g->b_row;
        for (int c = 0; c < VL; c++, b += g->b_row)
            for (int q = 0; c < cols && q < lanes; q++)
                acc[q] = v_fma(a[c], v_set(b[column[q]]), acc[q]);
    }
    for (int q = 0; q < lanes && q < g->n; q++) {
        R each[VL];
        v_store(each, acc[q]);
        for (int64_t r = 0; r < rows; r++)
            g->c[(i + r) * g->c_row + q] = each[r];
    }
}

static void narrow(const gemm *g)
{
    for (int64_t i = 0; i < g->m; i += VL) {
        const int64_t rows = g->m - i < VL ? g->m - i : VL;
        if (g->n == 1)
            narrow_rows(g, i, rows, 1);
        else if (g->n == 2)
            narrow_rows(g, i, rows, 2);
        else if (g->n <= 4)
            narrow_rows(g, i, rows, 4);
        else
            narrow_rows(g, i, rows, SATTN_NARROW);
    }
}

#endif
