/* SPDX-License-Identifier: BSD-2-Clause */
/* Backward of a tile through a run of components, up to the sums over queries: the weights w and
 * b = w (dout . value + offset), and the gradient of the tilt. The sums over queries are matrix
 * products of the planes of w and b with rows of queries (mixture_outer forms their left factors).
 */
#include "mixture_tile.h"

typedef struct T(sattn_pull) pull;

/* w = exp(logit - largest - log_sum), b = w (s + offset), in place: w holds logits, b holds s. */
static void weigh(const pull *p, R *w, R *b)
{
    for (int64_t q = 0; q < vector_lanes(p->lanes); q += VL) {
        const V l = v_sub(v_load(w + q), reference(v_load(p->largest + q)));
        const V x = v_exp(v_sub(l, v_load(p->log_sum + q)));
        v_store(b + q, v_mul(x, v_add(v_load(b + q), v_load(p->offset + q))));
        v_store(w + q, x);
    }
}

/* z[k][i] = b_k u_i + w_k dout_i (joint: b_k u_i), what multiplies S_k in dtilt */
static void key_gradients(const pull *p, const components *c, const R *w, const R *b, R *z)
{
    for (int64_t k = 0; k < c->count; k++, z += c->width * SATTN_TILE)
        for (int64_t q = 0; q < vector_lanes(p->lanes); q += VL) {
            const V bq = v_load(b + k * p->plane_row + q), wq = v_load(w + k * p->plane_row + q);
            for (int64_t x = q; x < c->width * SATTN_TILE; x += SATTN_TILE) {
                const V t = v_mul(bq, v_load(p->tilt + x));
                v_store(z + x, c->joint ? t : v_fma(wq, v_load(p->dout + x), t));
            }
        }
}

/* dtilt += sum_k S_k z_k; S_k is symmetric, so that the batch is one product over (k, row of S_k)
 */
static void pull_keys(const pull *p, const components *c, const R *w, const R *b, R *z)
{
    const int64_t d = c->width;
    key_gradients(p, c, w, b, z);
    product(d, c->count * d, product_lanes(p->lanes), c->covariance, 1, d, z, SATTN_TILE, NULL,
            p->dtilt);
}

/* dtilt += sum_k X_k' (w_k dout) */
static void pull_crosses(const pull *p, const components *c, const R *w, R *z)
{
    const int64_t d = c->width, e = c->value_width;
    for (int64_t k = 0; k < c->count; k++)
        for (int64_t q = 0; q < vector_lanes(p->lanes); q += VL)
            for (int64_t x = q; x < e * SATTN_TILE; x += SATTN_TILE)
                v_store(z + k * e * SATTN_TILE + x,
                        v_mul(v_load(w + k * p->plane_row + q), v_load(p->dout + x)));
    product(d, c->count * e, product_lanes(p->lanes), c->cross, 1, d, z, SATTN_TILE, NULL,
            p->dtilt);
}

/* dtilt += x * (A' plane), element by element; A' plane goes through scratch */
static void pull_scaled(const pull *p, const components *c, const R *x, const R *plane, R *scaled)
{
    const int64_t d = c->width;
    clear(d, scaled);
    product(d, c->count, product_lanes(p->lanes), c->covariance, 1, d, plane, p->plane_row, NULL,
            scaled);
    for (int64_t i = 0; i < d * SATTN_TILE; i += VL)
        v_store(p->dtilt + i, v_fma(v_load(x + i), v_load(scaled + i), v_load(p->dtilt + i)));
}

/* t := b t + w y (joint: b t), tiles [count][rank] of F'u and F'dout */
static void weigh_turned(const pull *p, const components *c, const R *w, const R *b, R *t,
                         const R *y)
{
    for (int64_t k = 0; k < c->count * c->rank; k++)
        for (int64_t q = 0; q < vector_lanes(p->lanes); q += VL) {
            const int64_t at = k / c->rank * p->plane_row + q, i = k * SATTN_TILE + q;
            const V x = v_mul(v_load(b + at), v_load(t + i));
            v_store(t + i, c->joint ? x : v_fma(v_load(w + at), v_load(y + i), x));
        }
}

/* dtilt += sum_k s_k z_k + F_k (F_k' z_k), with z as above; t = F'u, y = F'dout are used up */
static void pull_sums(const pull *p, const components *c, const R *w, const R *b, R *t, const R *y)
{
    if (c->kind == ZERO)
        return;
    weigh_turned(p, c, w, b, t, y);
    if (c->rank)
        product(c->width, c->count * c->rank, product_lanes(p->lanes), c->factor, 1, c->width, t,
                SATTN_TILE, NULL, p->dtilt);
    pull_scaled(p, c, p->tilt, b, t);
    if (!c->joint)
        pull_scaled(p, c, p->dout, w, t);
}

/* b := dout . value_k, with y = F'dout */
static void slopes_of(const pull *p, const components *c, const R *t, R *y, R *b)
{
    const int64_t n = product_lanes(p->lanes), d = c->width, e = c->value_width;
    clear_rest(c->count, p->lanes, b, p->plane_row);
    gemm g = {c->count, n,
              e,        c->joint ? c->value_mean : c->mean,
              e,        1,
              p->dout,  SATTN_TILE,
              b,        p->plane_row,
              NULL,     0,
              0};
    K(gemm)(&g);
    if (c->joint || c->kind == ZERO)
        return;
    g = (gemm){c->count,     n, d, c->covariance, d, 1, p->product, SATTN_TILE, b, p->plane_row, b,
               p->plane_row, 1};
    K(gemm)(&g);
    if (c->rank)
        turn(c, p->dout, p->lanes, y);
    for (int64_t k = 0; c->rank && k < c->count; k++) {
        const int64_t at = k * c->rank * SATTN_TILE;
        add_dot(c->rank, p->lanes, y + at, t + at, 1, b + k * p->plane_row);
    }
}

void K(mixture_pull)(const pull *p)
{
    const components *all = p->components;
    const int64_t d = all->width, e = all->value_width, size = batch_of(all);
    const int64_t rows = size * (all->kind == FULL ? d : all->rank);
    R *key = p->scratch, *value = all->joint ? key + rows * SATTN_TILE : key;
    R *turned = key + rows * SATTN_TILE; /* F'dout: then there are no values */
    clear_idle(p->lanes, rows + (has_values(all) && all->joint ? size * e : 0), key);
    for (int64_t k = 0; k < all->count; k += size) {
        const components c = part(all, k, all->count - k < size ? all->count - k : size);
        R *w = p->w + k * p->plane_row, *b = p->b + k * p->plane_row;
        logits_of(&c, p->tilt, p->half, p->lanes, key, w, p->plane_row);
        if (c.joint && c.cross)
            values_of(&c, p->tilt, p->lanes, value);
        for (int64_t i = 0; has_values(&c) && i < c.count; i++)
            dot(e, p->lanes, p->dout, value + i * e * SATTN_TILE, NULL, 1, 0, b + i * p->plane_row);
        if (!has_values(&c))
            slopes_of(p, &c, key, turned, b);
        for (int64_t i = 0; i < c.count; i++)
            weigh(p, w + i * p->plane_row, b + i * p->plane_row);
        product(d, c.count, product_lanes(p->lanes), c.mean, 1, d, b, p->plane_row, NULL, p->dtilt);
        if (c.kind == FULL)
            pull_keys(p, &c, w, b, key);
        else
            pull_sums(p, &c, w, b, key, turned);
        if (c.joint && c.cross)
            pull_crosses(p, &c, w, value);
    }
}
