/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SATTN_SOFTMAX_PAIR_H
#define SATTN_SOFTMAX_PAIR_H

/* The two factors of softmax's backward pass: weights and cotangents, block by block. */
#include "softmax_line.h"

/* exp(z - reference - log_sum), in place */
static inline void weigh(int64_t n, const R *z, V reference, R log_sum, R *to)
{
    for (int64_t i = 0; i < n; i += VL) {
        const V shifted = v_sub(load_left(z + i, n - i), reference);
        store_left(to + i, v_exp(v_sub(shifted, v_set(log_sum))), n - i);
    }
}

/* Weights and cotangents of a block, in memory as they are or in w and d. Dead elements have weight
 * 0; log-softmax, whose cotangents count by themselves, also has d = 0 there. */
typedef struct {
    const R *w, *d;
} pair;

static inline pair block_pair(const softmax_rows *s, int64_t r, int64_t j, int64_t n, V reference,
                              R log_sum, R *w, R *d)
{
    const int from_y = s->y.data != NULL;
    const R *z = from_y ? sattn_elements(&s->y, s->y_storage, r, j, n, w) : logits(s, r, j, n, w);
    pair p = {z, d};
    if (s->dy.data)
        p.d = sattn_elements(&s->dy, s->y_storage, r, j, n, d);
    else
        for (int64_t i = 0; i < n; i++)
            d[i] = 0;
    if (from_y && s->mask.data) {
        for (int64_t i = 0; i < n && z != w; i++)
            w[i] = z[i];
        bury(s, r, j, n, s->logarithm ? -R_INF : 0, w);
        p.w = z = w;
    }
    if (s->logarithm) {
        for (int64_t i = 0; i < n; i += VL) {
            const M keep = v_nle(load_left(z + i, n - i), v_set(-R_INF));
            store_left(d + i, v_keep(keep, load_left(p.d + i, n - i)), n - i);
        }
        p.d = d;
    }
    if (s->logarithm || !from_y) {
        weigh(n, z, from_y ? v_set(0) : reference, from_y ? 0 : log_sum, w);
        p.w = w;
    }
    return p;
}

#endif
