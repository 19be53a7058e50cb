/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SATTN_MIXTURE_TILE_H
#define SATTN_MIXTURE_TILE_H

/* What the forward and the backward pass of a tile share. Lanes are queries: each step below is the
 * same for every lane, and sums run in the order of their index, so a query's bits depend neither
 * on the vector's width nor on its neighbours.
 *
 * A run of components is taken in batches. If components have matrices, the keys m_c + S_c u of a
 * batch (or its values, or its F_c'u) fill about BATCH_ROWS rows of a tile, one matrix product for
 * all of them; if they have none, the batch is the run. Logits and values of a diagonal covariance
 * are products with the means, the variances and F: no key is formed.
 *
 * A tile is walked in groups of 3 vectors, which hides the latency of dependent FMAs; a group's
 * idle lanes hold zeros or leftovers that nothing reads. */

#include "tile.h"

enum { GROUP = 3 };

/* Covariance kinds, as in sattn/mixture.h */
enum { ZERO = 0, DIAG = 1, FULL = 2 };

typedef struct T(sattn_components) components;
typedef struct T(sattn_gemm) gemm;

/* Lanes of a matrix product: few ones are not rounded up, the product has a way of its own then. */
static inline int64_t product_lanes(int64_t lanes)
{
    return lanes <= SATTN_NARROW ? lanes : vector_lanes(lanes);
}

static inline int64_t group_lanes(int64_t lanes)
{
    return (lanes + GROUP * VL - 1) / (GROUP * VL) * (GROUP * VL);
}

/* Whether each component has a value of its own for each query, which is then formed; else the
 * weighted sum of the values is a sum of products. */
static inline int has_values(const components *c)
{
    return c->joint ? c->cross != NULL : c->kind == FULL;
}

/* Components of a batch. */
static inline int64_t batch_of(const components *c)
{
    int64_t rows = c->kind == FULL ? c->width : c->rank;
    if (has_values(c) && c->value_width > rows)
        rows = c->value_width;
    if (rows == 0)
        return c->count > 0 ? c->count : 1;
    return rows < SATTN_BATCH_ROWS / 2 ? SATTN_BATCH_ROWS / rows : 1;
}

/* `count` components from number k on */
static inline components part(const components *c, int64_t k, int64_t count)
{
    const int64_t d = c->width, e = c->value_width, s = c->kind == FULL ? d * d : d;
    components p = *c;
    p.count = count;
    p.log_weight += k;
    p.mean += k * d;
    p.covariance = c->covariance ? c->covariance + k * s : c->covariance;
    p.value_mean = c->value_mean ? c->value_mean + k * e : c->value_mean;
    p.cross = c->cross ? c->cross + k * e * d : c->cross;
    p.factor = c->rank ? c->factor + k * c->rank * d : c->factor;
    return p;
}

/* c = start + A b, tile to tile, `lanes` whole vectors; the start is a value per row, or c itself
 * if `start` is NULL. */
static inline void product(int64_t rows, int64_t inner, int64_t lanes, const R *a, int64_t a_row,
                           int64_t a_col, const R *b, int64_t b_row, const R *start, R *c)
{
    const gemm g = {rows,
                    lanes,
                    inner,
                    a,
                    a_row,
                    a_col,
                    b,
                    b_row,
                    c,
                    SATTN_TILE,
                    start ? start : c,
                    start ? 1 : SATTN_TILE,
                    start ? 0 : 1};
    K(gemm)(&g);
}

static inline void clear(int64_t rows, R *tile)
{
    for (int64_t i = 0; i < rows * SATTN_TILE; i += VL)
        v_store(tile + i, v_set(0));
}

/* Scratch rows whose lanes beyond the last whole vector are walked in groups but computed by nobody
 */
static inline void clear_idle(int64_t lanes, int64_t rows, R *tile)
{
    if (product_lanes(lanes) < group_lanes(lanes))
        clear(rows, tile);
}

/* Idle lanes of a computed vector that a product does not write */
static inline void clear_rest(int64_t rows, int64_t lanes, R *x, int64_t row)
{
    for (int64_t i = 0; product_lanes(lanes) < vector_lanes(lanes) && i < rows; i++)
        for (int64_t q = 0; q < vector_lanes(lanes); q += VL)
            v_store(x + i * row + q, v_set(0));
}

/* key[k][i] = m_k + S_k u of every component, kind FULL */
static inline void keys_of(const components *c, const R *tilt, int64_t lanes, R *key)
{
    const int64_t d = c->width;
    product(c->count * d, d, product_lanes(lanes), c->covariance, d, 1, tilt, SATTN_TILE, c->mean,
            key);
}

/* turned[k][r] = F_k' x of every component */
static inline void turn(const components *c, const R *x, int64_t lanes, R *turned)
{
    const gemm g = {c->count * c->rank,
                    product_lanes(lanes),
                    c->width,
                    c->factor,
                    c->width,
                    1,
                    x,
                    SATTN_TILE,
                    turned,
                    SATTN_TILE,
                    NULL,
                    0,
                    0};
    K(gemm)(&g);
}

/* sum += scale x . y; tiles [width] */
static inline void add_dot(int64_t width, int64_t lanes, const R *x, const R *y, R scale, R *sum)
{
    for (int64_t q = 0; q < vector_lanes(lanes); q += VL) {
        V acc = v_set(0);
        for (int64_t i = q; i < width * SATTN_TILE; i += SATTN_TILE)
            acc = v_fma(v_load(x + i), v_load(y + i), acc);
        v_store(sum + q, v_fma(v_set(scale), acc, v_load(sum + q)));
    }
}

/* value[k][i] = v_k + X_k u of every component */
static inline void values_of(const components *c, const R *tilt, int64_t lanes, R *value)
{
    product(c->count * c->value_width, c->cross ? c->width : 0, product_lanes(lanes), c->cross,
            c->width, 1, tilt, SATTN_TILE, c->value_mean, value);
}

/* dot of some vectors, a constant at every call */
static inline __attribute__((always_inline)) void dot_of(int64_t width, const int vectors,
                                                         const R *x, const R *y, const R *shift,
                                                         R scale, R start, R *sum)
{
    V acc[2][GROUP];
    for (int v = 0; v < vectors; v++)
        acc[0][v] = acc[1][v] = v_set(0);
    for (int64_t i = 0; i < width; i += 2)
        for (int odd = 0; odd < 2 && i + odd < width; odd++) {
            const V s = v_set(shift ? shift[i + odd] : 0);
            for (int v = 0; v < vectors; v++) {
                const int64_t at = (i + odd) * SATTN_TILE + v * VL;
                const V yi = v_load(y + at);
                acc[odd][v] = v_fma(v_load(x + at), shift ? v_add(s, yi) : yi, acc[odd][v]);
            }
        }
    for (int v = 0; v < vectors; v++)
        v_store(sum + v * VL, v_fma(v_set(scale), v_add(acc[0][v], acc[1][v]), v_set(start)));
}

/* sum_i x_i (y_i + shift_i), shift may be NULL; even and odd i apart, which doubles the chains in
 * flight */
static inline void dot(int64_t width, int64_t lanes, const R *x, const R *y, const R *shift,
                       R scale, R start, R *sum)
{
    if (lanes <= VL)
        dot_of(width, 1, x, y, shift, scale, start, sum);
    for (int64_t at = 0; lanes > VL && at < group_lanes(lanes); at += GROUP * VL)
        dot_of(width, GROUP, x + at, y + at, shift, scale, start, sum + at);
}

/* Keys and logits of kind FULL: log weight + u.m + u'S u / 2 = log weight + u.(m + key) / 2 */
static inline void key_logits(const components *c, const R *tilt, int64_t lanes, R *key, R *logit,
                              int64_t logit_row)
{
    const int64_t d = c->width;
    keys_of(c, tilt, lanes, key);
    for (int64_t k = 0; k < c->count; k++)
        dot(d, lanes, tilt, key + k * d * SATTN_TILE, c->mean + k * d, (R)0.5, c->log_weight[k],
            logit + k * logit_row);
}

/* Logits of the other kinds: log weight + m.u + s.(u u / 2) + |t|^2 / 2, t = F'u */
static inline void sum_logits(const components *c, const R *tilt, const R *half, int64_t lanes,
                              R *turned, R *logit, int64_t logit_row)
{
    const int64_t n = product_lanes(lanes), d = c->width;
    clear_rest(c->count, lanes, logit, logit_row);
    gemm g = {c->count,   n,     d,         c->mean,       d, 1, tilt,
              SATTN_TILE, logit, logit_row, c->log_weight, 1, 0};
    K(gemm)(&g);
    if (c->kind == DIAG) {
        g = (gemm){c->count,   n,     d,         c->covariance, d,         1, half,
                   SATTN_TILE, logit, logit_row, logit,         logit_row, 1};
        K(gemm)(&g);
    }
    if (c->rank)
        turn(c, tilt, lanes, turned);
    for (int64_t k = 0; c->rank && k < c->count; k++, turned += c->rank * SATTN_TILE)
        add_dot(c->rank, lanes, turned, turned, (R)0.5, logit + k * logit_row);
}

/* Logits of a batch; leaves its keys or its F'u in `key` */
static inline void logits_of(const components *c, const R *tilt, const R *half, int64_t lanes,
                             R *key, R *logit, int64_t logit_row)
{
    if (c->kind == FULL)
        key_logits(c, tilt, lanes, key, logit, logit_row);
    else
        sum_logits(c, tilt, half, lanes, key, logit, logit_row);
}

#endif
