/* SPDX-License-Identifier: BSD-2-Clause */
/* y_j = exp(x_j - m) / sum_k exp(x_k - m), m = max x.
 *
 * Error, with u = 2^-24 (2^-53), w = the weights y: the difference x_j - m is rounded once, a
 * relative error of |x_j - m| u of its exponential; exp adds 1.8 u, the sum 13 u at worst (7
 * additions in a lane and 6 levels of the tree, the rest is in double), the division and the
 * product 2 u: |error of y_j| <= y_j u (|x_j - m| + sum_k w_k |x_k - m| + 19). Long rows stay far
 * below it: rounding errors of a sum of positive numbers mostly cancel. f64: plus what the total of
 * the blocks adds, which is compensated: 2 u.
 *
 * Three ways, which give the same bits: rows of up to SHORT elements several at once, rows of up to
 * NARROW vectors in registers, longer ones in three passes. */
#include "softmax_row.h"

enum { NARROW = 8, SHORT = 16 };

/* Rows of `count` vectors, the last of which has `left` elements */
static inline void narrow_rows(int count, int64_t rows, int64_t left, const R *x, int64_t ldx, R *y,
                               int64_t ldy)
{
    for (int64_t r = 0; r < rows; r++, x += ldx, y += ldy) {
        V a[NARROW], e[NARROW];
        for (int v = 0; v < count - 1; v++)
            a[v] = v_load(x + v * VL);
        a[count - 1] = load_or_lowest(x + (count - 1) * VL, left);
        V top = v_max(a[0], v_set(-R_INF));
        for (int v = 1; v < count; v++)
            top = v_max(a[v], top);
        top = reference(v_top(top));
        for (int v = 0; v < count; v++)
            a[v] = v_sub(a[v], top);
        v_exps(count, a);
        for (int v = 0; v < count; v++)
            e[v] = a[v];
        const V factor = v_set(factor_of(tree(count, e)));
        for (int v = 0; v < count - 1; v++)
            v_store(y + v * VL, v_mul(a[v], factor));
        v_store_n(y + (count - 1) * VL, v_mul(a[count - 1], factor), left);
    }
}

/* Up to VL rows of at most SHORT elements, transposed so that lanes are rows */
static inline void short_rows(int64_t rows, int64_t n, const R *x, int64_t ldx, R *y, int64_t ldy)
{
    enum { SQUARES = (SHORT + VL - 1) / VL, PLACES = SQUARES * VL };
    V a[PLACES], sum[PLACES], top = v_set(-R_INF);
    for (int64_t j = 0; j < n; j += VL) {
        const int64_t left = n - j < VL ? n - j : VL;
        for (int r = 0; r < VL; r++)
            a[j + r] = r < rows ? load_left(x + r * ldx + j, left) : v_set(0);
        v_transpose(a + j);
    }
    for (int64_t j = 0; j < n; j++)
        top = v_max(a[j], top);
    top = v_select(v_lt(v_set(-R_INF), top), top, v_set(0));
    for (int64_t j = 0; j < PLACES; j++)
        a[j] = j < n ? v_sub(a[j], top) : v_set(-R_INF);
    for (int64_t j = 0; j < n; j += GROUP)
        v_exps(GROUP, a + j);
    for (int64_t j = 0; j < PLACES; j++)
        sum[j] = j < n ? a[j] : v_set(0);
    for (int half = PLACES / 2; half > 0; half /= 2)
        for (int j = 0; j < half; j++)
            sum[j] = v_add(sum[j], sum[j + half]);
    const V factor = factors_of(sum[0]);
    for (int64_t j = 0; j < n; j += VL) {
        const int64_t left = n - j < VL ? n - j : VL;
        for (int r = 0; r < VL; r++)
            a[j + r] = v_mul(a[j + r], factor);
        v_transpose(a + j);
        for (int r = 0; r < VL && r < rows; r++)
            store_left(y + r * ldy + j, a[j + r], left);
    }
}

void K(softmax)(int64_t rows, int64_t n, const R *x, int64_t ldx, R *y, int64_t ldy)
{
    const int64_t left = n - (n - 1) / VL * VL;
    if (n <= SHORT && VL > 1) {
        int64_t r = 0;
        for (; n == SHORT && r + VL <= rows; r += VL) /* constants keep a square in registers */
            short_rows(VL, SHORT, x + r * ldx, ldx, y + r * ldy, ldy);
        for (; r < rows; r += VL)
            short_rows(rows - r < VL ? rows - r : VL, n, x + r * ldx, ldx, y + r * ldy, ldy);
        return;
    }
#define CASE(count)                                                                                \
    case count:                                                                                    \
        narrow_rows(count, rows, left, x, ldx, y, ldy);                                            \
        return;
    switch ((n + VL - 1) / VL) { /* constant counts unroll the loops */
        CASE(1) CASE(2) CASE(3) CASE(4) CASE(5) CASE(6) CASE(7) CASE(8)
    }
#undef CASE
    for (int64_t r = 0; r < rows; r++)
        one_row(n, x + r * ldx, y + r * ldy);
}
