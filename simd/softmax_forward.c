/* SPDX-License-Identifier: BSD-2-Clause */
/* The general softmax of a row, block by block: the largest logit z_j = scale x_j + bias_j, the sum
 * of exp(z_j - largest), the outputs.
 *
 * The bits are those of softmax.c where both can compute: the same sums. Error, with u = 2^-24
 * (2^-53): that of softmax.c, where |x_j - m| becomes |z_j - m| and, unless z_j is x_j itself, the
 * rounding of z_j adds |z_j| to it. The log of the sum S is off by the relative error of S, at
 * most u (sum_k w_k (|z_k - m| + |z_k|) + 15), and by 2 u log S of its own. log-softmax rounds
 * twice more:
 *   |error| <= u (2 |z_j - m| + |z_j| + sum_k w_k (|z_k - m| + |z_k|) + 15 + 4 log S + |y_j|);
 * lse adds u |lse| to the error of log S and that of the largest logit, u |m|.
 * Storage in 16 bits rounds once more. */
#include "softmax_line.h"

/* A row's number: its largest logit, what is taken from logits, log and factor of the sum */
typedef struct {
    R top, log_sum, factor;
    V reference;
} summary;

static inline void logarithms(int64_t n, const R *z, const summary *a, R *to)
{
    for (int64_t i = 0; i < n; i += VL) {
        const V shifted = v_sub(load_left(z + i, n - i), a->reference);
        store_left(to + i, v_sub(shifted, v_set(a->log_sum)), n - i);
    }
}

static void summarise(summary *a, R top, total t, R sink)
{
    a->top = top + 0; /* one zero, whichever of +0 and -0 the lanes met first */
    if (sink != -R_INF)
        add_block(&t, first_lane(v_exp(v_sub(v_set(sink), a->reference))));
    const double sum = t.sum + t.lost;
    a->factor = factor_of(sum);
    a->log_sum = sum == 0 ? 0 : first_lane(v_log(v_set((R)sum)));
}

/* A row of n live elements. What a pass leaves for the next is on the stack (`kept`) if the row
 * fits; else logits are formed again, and exponentials too unless y can hold them. */
static inline void one_line(const softmax_rows *s, int64_t r, int64_t n, R *kept)
{
    R z_block[BLOCK], e_block[BLOCK];
    const int whole = n <= KEPT, in_y = s->y.data && sattn_is_adjacent(&s->y, s->y_storage);
    const int e_kept = !s->logarithm && (whole || in_y);
    const R sink = s->sink ? s->sink[r * s->sink_row] : -R_INF, *z = NULL;
    R *e_row = whole ? kept : in_y ? sattn_place(&s->y, s->y_storage, r, 0, NULL) : NULL;
    summary a;
    total t = {0, 0};
    R top = -R_INF;
    for (int64_t j = 0; j < n; j += BLOCK) {
        z = logits(s, r, j, block_of(n, j), whole ? kept + j : z_block);
        const R largest = largest_of(block_of(n, j), z);
        top = largest > top ? largest : top;
    }
    top = __builtin_isgreater(sink, top) ? sink : top;
    a.reference = reference(top);
    const R *z_row = whole && n > 0 ? z - (n - 1) / BLOCK * BLOCK : NULL;
    for (int64_t j = 0; j < n; j += BLOCK) {
        const int64_t m = block_of(n, j);
        z = whole ? z_row + j : logits(s, r, j, m, z_block);
        add_block(&t, block_sum(m, z, a.reference, e_kept ? e_row + j : e_block));
    }
    summarise(&a, top, t, sink);
    for (int64_t j = 0; j < n && s->y.data; j += BLOCK) {
        const int64_t m = block_of(n, j);
        R *to = sattn_place(&s->y, s->y_storage, r, j, e_block);
        if (!e_kept)
            z = whole ? z_row + j : logits(s, r, j, m, z_block);
        if (!e_kept && !s->logarithm)
            block_sum(m, z, a.reference, e_block);
        if (s->logarithm)
            logarithms(m, z, &a, to);
        else
            times(m, e_kept ? e_row + j : e_block, a.factor, to);
        bury(s, r, j, m, s->logarithm ? -R_INF : 0, to);
        sattn_put(&s->y, s->y_storage, r, j, m, to);
    }
    if (s->y.data)
        fill_rest(&s->y, s->y_storage, r, n, s->n, s->logarithm ? -R_INF : 0);
    if (s->stats)
        s->stats[r * s->stats_row] = a.top, s->stats[r * s->stats_row + 1] = a.log_sum;
    if (s->lse)
        s->lse[r * s->lse_row] = a.top + a.log_sum;
}

void K(softmax_forward)(const struct T(sattn_softmax_rows) * s)
{
    R kept[KEPT];
    for (int64_t r = 0; r < s->rows; r++)
        one_line(s, r, live_of(s, r), kept);
}
