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
    const int64_t d = c->width, n = vector_lanes(p->lanes);
    if (c->kind == ZERO)
        return;
    key_gradients(p, c, w, b, z);
    if (c->kind == FULL) {
        product(d, c->count * d, n, c->covariance, 1, d, z, SATTN_TILE, NULL, p->dtilt);
        return;
    }
    for (int64_t r = 0; r < c->count * d; r++)
        for (int64_t q = 0; q < n; q += VL) {
            R *t = p->dtilt + r % d * SATTN_TILE + q;
            v_store(t, v_fma(v_set(c->covariance[r]), v_load(z + r * SATTN_TILE + q), v_load(t)));
        }
}

/* dtilt += sum_k X_k' (w_k dout) */
static void pull_crosses(const pull *p, const components *c, const R *w, R *z)
{
    const int64_t d = c->width, e = c->value_width, n = vector_lanes(p->lanes);
    for (int64_t k = 0; k < c->count; k++)
        for (int64_t q = 0; q < n; q += VL)
            for (int64_t x = q; x < e * SATTN_TILE; x += SATTN_TILE)
                v_store(z + k * e * SATTN_TILE + x,
                        v_mul(v_load(w + k * p->plane_row + q), v_load(p->dout + x)));
    product(d, c->count * e, n, c->cross, 1, d, z, SATTN_TILE, NULL, p->dtilt);
}

static void pull_batches(const pull *p)
{
    const components *all = p->components;
    const int64_t d = all->width, e = all->value_width, size = batch_of(all);
    R *key = p->scratch, *value = all->joint ? key + size * d * SATTN_TILE : key;
    clear_idle(p->lanes, size * (d + (all->joint ? e : 0)), key);
    for (int64_t k = 0; k < all->count; k += size) {
        const components c = part(all, k, all->count - k < size ? all->count - k : size);
        R *w = p->w + k * p->plane_row, *b = p->b + k * p->plane_row;
        keys_of(&c, p->tilt, p->lanes, key);
        logits_of(&c, p->tilt, p->lanes, key, w, p->plane_row);
        if (c.joint)
            values_of(&c, p->tilt, p->lanes, value);
        for (int64_t i = 0; i < c.count; i++) {
            dot(e, p->lanes, p->dout, value + i * e * SATTN_TILE, NULL, 1, 0, b + i * p->plane_row);
            weigh(p, w + i * p->plane_row, b + i * p->plane_row);
        }
        product(d, c.count, vector_lanes(p->lanes), c.mean, 1, d, b, p->plane_row, NULL, p->dtilt);
        pull_keys(p, &c, w, b, key);
        if (c.joint && c.cross)
            pull_crosses(p, &c, w, value);
    }
}

/* dtilt += x * (A' plane), element by element; A' plane goes through scratch */
static void pull_scaled(const pull *p, const R *x, const R *plane, R *scaled)
{
    const components *c = p->components;
    const int64_t d = c->width;
    clear(d, scaled);
    product(d, c->count, vector_lanes(p->lanes), c->covariance, 1, d, plane, p->plane_row, NULL,
            scaled);
    for (int64_t i = 0; i < d * SATTN_TILE; i += VL)
        v_store(p->dtilt + i, v_fma(v_load(x + i), v_load(scaled + i), v_load(p->dtilt + i)));
}

static void pull_window(const pull *p)
{
    const components *c = p->components;
    const int64_t n = vector_lanes(p->lanes), d = c->width, e = c->value_width;
    gemm g = {c->count, n,
              e,        c->joint ? c->value_mean : c->mean,
              e,        1,
              p->dout,  SATTN_TILE,
              p->b,     p->plane_row,
              NULL,     0,
              0};
    window_logits(c, p->tilt, p->half, p->lanes, p->w, p->plane_row);
    K(gemm)(&g);
    if (!c->joint && c->kind == DIAG) {
        g = (gemm){c->count,   n,          d,    c->covariance, d,    1,
                   p->product, SATTN_TILE, p->b, p->plane_row,  p->b, p->plane_row,
                   1};
        K(gemm)(&g);
    }
    for (int64_t k = 0; k < c->count; k++)
        weigh(p, p->w + k * p->plane_row, p->b + k * p->plane_row);
    product(d, c->count, n, c->mean, 1, d, p->b, p->plane_row, NULL, p->dtilt);
    if (c->kind == DIAG)
        pull_scaled(p, p->tilt, p->b, p->scratch);
    if (c->kind == DIAG && !c->joint)
        pull_scaled(p, p->dout, p->w, p->scratch);
}

void K(mixture_pull)(const pull *p)
{
    if (has_no_matrix(p->components))
        pull_window(p);
    else
        pull_batches(p);
}

void K(mixture_offset)(int64_t width, const R *dout, const R *out, const R *centre, const R *dcgf,
                       R *offset)
{
    for (int64_t q = 0; q < SATTN_TILE; q += VL) {
        V x = dcgf ? v_load(dcgf + q) : v_set(0);
        for (int64_t i = 0; dout && i < width; i++) {
            const V c = v_set(centre ? centre[i] : 0), y = v_load(out + i * SATTN_TILE + q);
            x = v_fnma(v_load(dout + i * SATTN_TILE + q), v_sub(y, c), x);
        }
        v_store(offset + q, x);
    }
}
