/* SPDX-License-Identifier: BSD-2-Clause */
/* Forward: partial results of softmax attention over the components of a mixture. For a batch with
 * logits l_k and values v_k,
 *
 *   largest' = max(largest, max l_k),  r = exp(largest - largest'),  p_k = exp(l_k - largest')
 *   sum' = sum r + sum_k p_k,  state' = state r + sum_k p_k v_k
 *
 * r is exactly 1 where the maximum stands, so that a lane does not feel its neighbours' maxima. */
#include "mixture_tile.h"

typedef struct T(sattn_fold) fold;

/* Raises the state's maximum to cover `top` and returns the factor that its sums must take. */
static inline V raise(R *state_largest, V top, V *next)
{
    const V before = v_load(state_largest), largest = v_max(before, top);
    v_store(state_largest, largest);
    *next = reference(largest);
    return v_exp(v_sub(before, *next));
}

/* Maximum, sum and p of a batch; the factor r goes to `factor`. */
static void weigh(const fold *f, int64_t count, const R *logit, R *p, R *factor)
{
    R *largest = f->state + f->components->value_width * SATTN_TILE, *sum = largest + SATTN_TILE;
    for (int64_t q = 0; q < vector_lanes(f->lanes); q += VL) {
        V top = v_load(logit + q), next, total = v_set(0);
        for (int64_t k = 1; k < count; k++)
            top = v_max(top, v_load(logit + k * SATTN_TILE + q));
        const V r = raise(largest + q, top, &next);
        for (int64_t k = 0; k < count; k++) {
            const V x = v_exp(v_sub(v_load(logit + k * SATTN_TILE + q), next));
            v_store(p + k * SATTN_TILE + q, x);
            total = v_add(total, x);
        }
        v_store(sum + q, v_fma(v_load(sum + q), r, total));
        v_store(factor + q, r);
    }
}

/* state rows i .. i + rows - 1 of one group of lanes; `rows` is a constant at every call, so that
 * the sums stay in registers. */
static inline __attribute__((always_inline)) void add_rows(R *state, const int rows,
                                                           const int vectors, int64_t width,
                                                           int64_t count, const R *p,
                                                           const R *factor, const R *value)
{
    V acc[4][GROUP];
    for (int r = 0; r < rows; r++)
        for (int v = 0; v < vectors; v++)
            acc[r][v] = v_mul(v_load(state + r * SATTN_TILE + v * VL), v_load(factor + v * VL));
    for (int64_t k = 0; k < count; k++, value += width * SATTN_TILE, p += SATTN_TILE)
        for (int r = 0; r < rows; r++)
            for (int v = 0; v < vectors; v++)
                acc[r][v] =
                    v_fma(v_load(p + v * VL), v_load(value + r * SATTN_TILE + v * VL), acc[r][v]);
    for (int r = 0; r < rows; r++)
        for (int v = 0; v < vectors; v++)
            v_store(state + r * SATTN_TILE + v * VL, acc[r][v]);
}

static inline __attribute__((always_inline)) void add_values_of(const int vectors, int64_t e,
                                                                int64_t count, const R *p,
                                                                const R *factor, const R *value,
                                                                R *state)
{
    int64_t i = 0;
    for (; i + 4 <= e; i += 4)
        add_rows(state + i * SATTN_TILE, 4, vectors, e, count, p, factor, value + i * SATTN_TILE);
    for (; i < e; i++)
        add_rows(state + i * SATTN_TILE, 1, vectors, e, count, p, factor, value + i * SATTN_TILE);
}

static void add_values(const fold *f, int64_t count, const R *p, const R *factor, const R *value)
{
    const int64_t e = f->components->value_width;
    if (f->lanes <= VL)
        add_values_of(1, e, count, p, factor, value, f->state);
    for (int64_t at = 0; f->lanes > VL && at < group_lanes(f->lanes); at += GROUP * VL)
        add_values_of(GROUP, e, count, p + at, factor + at, value + at, f->state + at);
}

/* Sums of products: r state + sum_k p_k m_k + u sum_k p_k s_k + sum_k F_k (p_k F_k'u) */
static void add_sums(const fold *f, const components *c, const R *p, const R *factor, R *turned)
{
    const int64_t n = product_lanes(f->lanes), d = c->width, e = c->value_width;
    for (int64_t i = 0; i < e; i++)
        for (int64_t q = 0; q < n; q += VL) {
            R *state = f->state + i * SATTN_TILE + q;
            v_store(state, v_mul(v_load(state), v_load(factor + q)));
        }
    product(e, c->count, n, c->joint ? c->value_mean : c->mean, 1, e, p, SATTN_TILE, NULL,
            f->state);
    if (c->joint || c->kind == ZERO)
        return;
    for (int64_t k = 0; k < c->count * c->rank; k++)
        for (int64_t q = 0; q < n; q += VL) {
            R *t = turned + k * SATTN_TILE + q;
            v_store(t, v_mul(v_load(t), v_load(p + k / c->rank * SATTN_TILE + q)));
        }
    if (c->rank)
        product(d, c->count * c->rank, n, c->factor, 1, d, turned, SATTN_TILE, NULL, f->state);
    R *scaled = turned;
    clear(d, scaled);
    product(d, c->count, n, c->covariance, 1, d, p, SATTN_TILE, NULL, scaled);
    for (int64_t i = 0; i < d * SATTN_TILE; i += VL)
        v_store(f->state + i, v_fma(v_load(f->tilt + i), v_load(scaled + i), v_load(f->state + i)));
}

void K(mixture_fold)(const fold *f)
{
    const components *all = f->components;
    const int64_t d = all->width, e = all->value_width, size = batch_of(all);
    const int64_t rows = size * (all->kind == FULL ? d : all->rank);
    R *p = f->scratch, *factor = p + SATTN_WINDOW * SATTN_TILE, *key = factor + SATTN_TILE;
    R *value = all->joint ? key + rows * SATTN_TILE : key;
    clear_idle(f->lanes, SATTN_WINDOW + 1 + rows + (has_values(all) && all->joint ? size * e : 0),
               p);
    for (int64_t k = 0; k < all->count; k += size) {
        const components c = part(all, k, all->count - k < size ? all->count - k : size);
        R *logit = f->logit + k * SATTN_TILE;
        logits_of(&c, f->tilt, f->half, f->lanes, key, logit, SATTN_TILE);
        weigh(f, c.count, logit, p, factor);
        if (c.joint && c.cross)
            values_of(&c, f->tilt, f->lanes, value);
        if (has_values(&c))
            add_values(f, c.count, p, factor, value);
        else
            add_sums(f, &c, p, factor, key);
    }
}

void K(mixture_merge)(int64_t width, R *into, const R *from)
{
    for (int64_t q = 0; q < SATTN_TILE; q += VL) {
        R *largest = into + width * SATTN_TILE + q, *sum = largest + SATTN_TILE;
        V next;
        const V r = raise(largest, v_load(from + width * SATTN_TILE + q), &next);
        const V p = v_exp(v_sub(v_load(from + width * SATTN_TILE + q), next));
        v_store(sum, v_fma(p, v_load(from + (width + 1) * SATTN_TILE + q), v_mul(v_load(sum), r)));
        for (int64_t x = q; x < width * SATTN_TILE; x += SATTN_TILE)
            v_store(into + x, v_fma(p, v_load(from + x), v_mul(v_load(into + x), r)));
    }
}
