/* SPDX-License-Identifier: BSD-2-Clause */
/* softmax of a strided axis: element j of row r is x[j x_col + r], so that lanes are rows and no
 * element is moved. The bits are those of softmax.c: its 64 virtual lanes are 64 vectors here,
 * which are added in the same order and by the same tree, one row a lane. */
#include "softmax_row.h"

/* y = exp(x - top) of `depth` elements of each of abreast VL rows, the last vector of which has
 * `left`, added to the virtual lanes from `sum` on; abreast depth = GROUP. */
static inline void exponentials(int abreast, int64_t depth, int64_t left, const R *x, int64_t x_col,
                                const V *top, R *y, int64_t y_col, V *sum)
{
    V a[GROUP];
    for (int i = 0; i < GROUP; i++) {
        const int64_t j = i / abreast, v = i % abreast;
        const int64_t lanes = v == abreast - 1 ? left : VL;
        a[i] = j < depth ? v_sub(load_left(x + j * x_col + v * VL, lanes), top[v]) : v_set(-R_INF);
    }
    v_exps(GROUP, a);
    for (int i = 0; i < GROUP; i++) {
        const int64_t j = i / abreast, v = i % abreast;
        if (j < depth)
            store_left(y + j * y_col + v * VL, a[i], v == abreast - 1 ? left : VL);
        sum[j * abreast + v] = v_add(sum[j * abreast + v], a[i]); /* those past the end are 0 */
    }
}

/* (abreast - 1) VL + left rows */
static inline void some_rows(int abreast, int64_t left, int64_t n, const R *x, int64_t x_col, R *y,
                             int64_t y_col)
{
    const int step = GROUP / abreast;
    V top[GROUP], sum[LANES * GROUP], factor[GROUP];
    total t[GROUP * VL] = {{0, 0}};
    R lane[VL];
    for (int v = 0; v < abreast; v++)
        top[v] = v_set(-R_INF), sum[v] = v_set(0);
    for (int64_t j = 0; j < n; j++)
        for (int v = 0; v < abreast; v++)
            top[v] = v_max(load_left(x + j * x_col + v * VL, v == abreast - 1 ? left : VL), top[v]);
    for (int v = 0; v < abreast; v++) /* as reference() */
        top[v] = v_select(v_lt(v_set(-R_INF), top[v]), top[v], v_set(0));
    for (int64_t first = 0; first < n; first += BLOCK) {
        const int64_t end = n - first < BLOCK ? n : first + BLOCK;
        int used = LANES * abreast; /* the virtual lanes above have nothing to add */
        while (used / 2 >= (end - first) * abreast && used > GROUP)
            used /= 2;
        for (int i = 0; i < used; i++)
            sum[i] = v_set(0);
        for (int64_t j = first; j < end; j += step)
            exponentials(abreast, end - j, left, x + j * x_col, x_col, top, y + j * y_col, y_col,
                         sum + j % LANES * abreast);
        for (int half = used / 2; half >= abreast; half /= 2)
            for (int i = 0; i < half; i++)
                sum[i] = v_add(sum[i], sum[i + half]);
        for (int v = 0; v < abreast && n > BLOCK; v++) {
            v_store(lane, sum[v]);
            for (int i = 0; i < VL; i++)
                add_block(&t[v * VL + i], lane[i]);
        }
    }
    for (int v = 0; v < abreast; v++) {
        for (int i = 0; i < VL && n > BLOCK; i++)
            lane[i] = factor_of(t[v * VL + i].sum + t[v * VL + i].lost);
        factor[v] = n > BLOCK ? v_load(lane) : factors_of(sum[v]);
    }
    for (int64_t j = 0; j < n; j++)
        for (int v = 0; v < abreast; v++) {
            const int64_t lanes = v == abreast - 1 ? left : VL;
            R *place = y + j * y_col + v * VL;
            store_left(place, v_mul(load_left(place, lanes), factor[v]), lanes);
        }
}

void K(softmax_columns)(int64_t rows, int64_t n, const R *x, int64_t x_col, R *y, int64_t y_col)
{
    int64_t r = 0;
    for (; r + GROUP * VL <= rows; r += GROUP * VL)
        some_rows(GROUP, VL, n, x + r, x_col, y + r, y_col);
    for (; r < rows; r += VL)
        some_rows(1, rows - r < VL ? rows - r : VL, n, x + r, x_col, y + r, y_col);
}
