/* SPDX-License-Identifier: BSD-2-Clause */
/* Gradients of the general softmax of a row, with w its weights and c from one sum over the row:
 *   softmax:     c = dlse - sum_j w_j dy_j,  dz_j = w_j (dy_j + c)
 *   log-softmax: c = dlse - sum_j dy_j,      dz_j = dy_j + w_j c
 *
 * Error with u = 2^-24 (2^-53), G = sum of the magnitudes of the terms of c: a sum is off by 14 u G
 * (8 steps in a lane, 6 levels of the tree), so that for weights as given
 *   |error of dz_j| <= w_j u (3 |dy_j| + 17 G + 3 |dlse|),
 *   log-softmax: u (|dz_j| + w_j (16 G + 2 |dlse|)) and 2 u w_j |c| where w_j = exp y_j.
 * Weights from x and stats have the error of softmax_forward.c. */
#include "softmax_pull.h"

/* What a block's dz are added to */
static inline void add_up(const softmax_rows *s, int64_t r, int64_t j, int64_t n, const R *dz,
                          total *sum, total *products)
{
    R buffer[BLOCK];
    for (int64_t i = 0; i < n && s->dbias; i += VL)
        store_left(s->dbias + j + i,
                   v_add(load_left(s->dbias + j + i, n - i), load_left(dz + i, n - i)), n - i);
    if (s->logit_sums)
        add_block(sum, sum_of(TERMS, n, dz, dz));
    if (s->dscale) {
        const R *x = sattn_elements(&s->x, s->x_storage, r, j, n, buffer);
        add_block(products, sum_of(SIGNED_PRODUCTS, n, dz, x));
    }
}

/* A row of n live elements; KEPT of weights and cotangents stay on the stack between passes. */
static inline void one_line(const softmax_rows *s, int64_t r, int64_t n, R *w_kept, R *d_kept)
{
    R w_block[BLOCK], d_block[BLOCK], dz_block[BLOCK];
    const int whole = n <= KEPT, kind = s->logarithm ? TERMS : PRODUCTS;
    const R log_sum = s->stats ? s->stats[r * s->stats_row + 1] : 0;
    const V reference_of_row = reference(s->stats ? s->stats[r * s->stats_row] : 0);
    total g = {0, 0}, sum = {0, 0}, products = {0, 0};
    pair p = {NULL, NULL}, row = {NULL, NULL};
    for (int64_t j = 0; j < n; j += BLOCK) {
        p = block_pair(s, r, j, block_of(n, j), reference_of_row, log_sum,
                       whole ? w_kept + j : w_block, whole ? d_kept + j : d_block);
        add_block(&g, sum_of(kind, block_of(n, j), p.w, p.d));
        if (j == 0)
            row = p;
    }
    const R c = (R)((s->dlse ? s->dlse[r * s->dlse_row] : 0) - (g.sum + g.lost));
    for (int64_t j = 0; j < n && (s->dx.data || s->dbias || s->logit_sums || s->dscale);
         j += BLOCK) {
        const int64_t m = block_of(n, j);
        if (whole)
            p = (pair){row.w + j, row.d + j};
        else
            p = block_pair(s, r, j, m, reference_of_row, log_sum, w_block, d_block);
        R *to = s->dx.data ? sattn_place(&s->dx, s->x_storage, r, j, dz_block) : dz_block;
        pull(s->logarithm ? LOGARITHM : SOFT, m, p.w, p.d, v_set(c), to);
        bury(s, r, j, m, 0, to);
        add_up(s, r, j, m, to, &sum, &products);
        if (s->scale != 1)
            times(m, to, s->scale, to);
        if (s->dx.data)
            sattn_put(&s->dx, s->x_storage, r, j, m, to);
    }
    if (s->dx.data)
        fill_rest(&s->dx, s->x_storage, r, n, s->n, 0);
    if (s->logit_sums)
        s->logit_sums[r] = sum.sum + sum.lost;
    if (s->dscale)
        s->dscale[r] = products.sum + products.lost;
    if (s->dsink) {
        const V sink = v_sub(v_set(s->sink[r * s->sink_row]), reference_of_row);
        const R weight = first_lane(v_exp(v_sub(sink, v_set(log_sum))));
        s->dsink[r] = weight == 0 ? 0 : (double)weight * c;
    }
}

void K(softmax_backward)(const struct T(sattn_softmax_rows) * s)
{
    R w_kept[KEPT], d_kept[KEPT];
    if (is_plain(s)) {
        plain_lines(s);
        return;
    }
    for (int64_t r = 0; r < s->rows; r++)
        one_line(s, r, live_of(s, r), w_kept, d_kept);
}
