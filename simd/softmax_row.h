/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SATTN_SOFTMAX_ROW_H
#define SATTN_SOFTMAX_ROW_H

/* What the ways of softmax.c share, and its way for long rows: the largest element, exponentials
 * and their sum, products.
 *
 * Sums run in 64 virtual lanes (4 AVX-512 vectors of float, 64 scalars) over BLOCK elements, then a
 * fixed tree, then a double: the same bits for every vector width, and no growth with n. NaN and
 * +inf reach the sum, and through it the whole row. */
#include "elementary.h"

enum { LANES = 64, PARTS = LANES / VL, GROUP = 4, BLOCK = 512 };

/* The sum of some vectors as the virtual lanes have it: those that are missing are 0. */
static inline R tree(int count, V *a)
{
    for (int v = PARTS; v < count; v++)
        a[v % PARTS] = v_add(a[v % PARTS], a[v]);
    for (int half = PARTS / 2; half > 0; half /= 2)
        for (int v = 0; v < half && v + half < count; v++)
            a[v] = v_add(a[v], a[v + half]);
    return v_sum(a[0]);
}

/* What exponentials are divided by: nothing is left of a row of -inf. */
static inline R factor_of(double sum)
{
    return sum == 0 ? 0 : (R)(1 / sum);
}

/* The same bits lane by lane, for sums of one block: dividing in double first rounds no further. */
static inline V factors_of(V sum)
{
    const M some = v_nle(sum, v_set(0));
    return v_keep(some, v_div(v_set(1), v_select(some, sum, v_set(1))));
}

static inline V reference(R largest)
{
    return v_set(largest == -R_INF ? 0 : largest); /* a row of -inf: exp(-inf - 0) = 0 */
}

static inline V load_or_lowest(const R *x, int64_t n)
{
    return v_select(v_first(n), v_load_n(x, n), v_set(-R_INF));
}

static inline V load_left(const R *p, int64_t left)
{
    return left >= VL ? v_load(p) : v_load_n(p, left);
}

static inline void store_left(R *p, V v, int64_t left)
{
    if (left >= VL)
        v_store(p, v);
    else
        v_store_n(p, v, left);
}

static inline R largest_of(int64_t n, const R *x)
{
    V top[GROUP];
    for (int v = 0; v < GROUP; v++)
        top[v] = v_set(-R_INF);
    int64_t j = 0;
    for (; j + GROUP * VL <= n; j += GROUP * VL)
        for (int v = 0; v < GROUP; v++)
            top[v] = v_max(v_load(x + j + v * VL), top[v]);
    for (; j + VL <= n; j += VL)
        top[0] = v_max(v_load(x + j), top[0]);
    top[1] = v_max(load_or_lowest(x + j, n - j), top[1]);
    return v_top(v_max(v_max(top[0], top[1]), v_max(top[2], top[3])));
}

/* y = exp(x - top) of at most BLOCK elements; returns their sum. */
static inline R block_sum(int64_t n, const R *x, V top, R *y)
{
    enum { AT_ONCE = PARTS < GROUP ? PARTS : GROUP };
    const int64_t whole = n / LANES * LANES;
    V sum[PARTS];
    for (int part = 0; part < PARTS; part += AT_ONCE) {
        V acc[AT_ONCE], a[AT_ONCE];
        for (int v = 0; v < AT_ONCE; v++)
            acc[v] = v_set(0);
        for (int64_t j = part * VL; j < whole; j += LANES) {
            for (int v = 0; v < AT_ONCE; v++)
                a[v] = v_sub(v_load(x + j + v * VL), top);
            v_exps(AT_ONCE, a);
            for (int v = 0; v < AT_ONCE; v++) {
                v_store(y + j + v * VL, a[v]);
                acc[v] = v_add(acc[v], a[v]);
            }
        }
        for (int v = 0; v < AT_ONCE; v++)
            sum[part + v] = acc[v];
    }
    int64_t j = whole;
    for (int v = 0; j < n; j += VL, v++) {
        const int64_t left = n - j < VL ? n - j : VL;
        const V e = v_exp(v_sub(load_or_lowest(x + j, left), top));
        v_store_n(y + j, e, left);
        sum[v] = v_add(sum[v], e);
    }
    return tree(PARTS, sum);
}

static inline void scale(int64_t n, R *y, R factor)
{
    const V f = v_set(factor);
    int64_t j = 0;
    for (; j + GROUP * VL <= n; j += GROUP * VL)
        for (int v = 0; v < GROUP; v++)
            v_store(y + j + v * VL, v_mul(v_load(y + j + v * VL), f));
    for (; j < n; j += VL) {
        const int64_t left = n - j < VL ? n - j : VL;
        v_store_n(y + j, v_mul(v_load_n(y + j, left), f), left);
    }
}

/* A sum of the blocks of a row, with what its additions round away (Knuth's two-sum) */
typedef struct {
    double sum, lost;
} total;

static inline void add_block(total *t, double part)
{
    const double next = t->sum + part, kept = next - t->sum;
    t->lost += (t->sum - (next - kept)) + (part - kept);
    t->sum = next;
}

static inline void one_row(int64_t n, const R *x, R *y)
{
    const V top = reference(largest_of(n, x));
    total t = {0, 0};
    for (int64_t j = 0; j < n; j += BLOCK)
        add_block(&t, block_sum(n - j < BLOCK ? n - j : BLOCK, x + j, top, y + j));
    scale(n, y, factor_of(t.sum + t.lost));
}

#endif
