/* SPDX-License-Identifier: BSD-2-Clause */
/* The union of partial results: their weights, lanes being rows, and sums of rows. */
#include "attention_tile.h"

/* exp(largest + log sum - next) of a part: its share before the total is known. The logarithm may
 * be larger than what the maximum lacks. */
static inline V share(const R *largest, const R *log_sum, V next)
{
    const V m = v_load(largest);
    return v_keep(live_lanes(m), v_exp(v_add(v_sub(m, next), v_load(log_sum))));
}

void K(merge_totals)(int64_t parts, const R *largest, const R *log_sum, R *total_largest,
                     R *total_log_sum)
{
    for (int64_t q = 0; q < SATTN_TILE; q += VL) {
        V top = v_set(-R_INF), sum = v_set(0);
        for (int64_t p = 0; p < parts; p++)
            top = v_max(v_load(largest + p * SATTN_TILE + q), top);
        const V next = reference(top);
        for (int64_t p = 0; p < parts; p++)
            sum =
                v_add(sum, share(largest + p * SATTN_TILE + q, log_sum + p * SATTN_TILE + q, next));
        /* 0 stays 0, without a logarithm of it; NaN stays NaN */
        const M some = v_lt(v_set(0), sum);
        v_store(total_largest + q, top);
        v_store(total_log_sum + q, v_select(some, v_log(v_select(some, sum, v_set(1))), sum));
    }
}

void K(merge_weights)(const R *largest, const R *log_sum, const R *total_largest,
                      const R *total_log_sum, R *w)
{
    for (int64_t q = 0; q < SATTN_TILE; q += VL) {
        const V m = v_load(largest + q), next = reference(v_load(total_largest + q));
        const V log = v_sub(v_load(log_sum + q), v_load(total_log_sum + q));
        v_store(w + q, v_keep(live_lanes(m), v_exp(v_add(v_sub(m, next), log))));
    }
}

void K(merge_pull)(const R *largest, const R *w, const R *total, const R *part, R *dlse)
{
    for (int64_t q = 0; q < SATTN_TILE; q += VL) {
        const V apart = v_sub(v_load(total + q), v_load(part + q));
        v_store(dlse + q, v_keep(live_lanes(v_load(largest + q)), v_mul(v_load(w + q), apart)));
    }
}

void K(add_scaled_rows)(const struct T(sattn_scaled_rows) * s)
{
    for (int64_t q = 0; q < s->rows; q++) {
        const R *x = s->x + q * s->x_row;
        R *y = s->y + q * s->y_row;
        const V w = v_set(s->w[q]);
        for (int64_t i = 0; i < s->width; i += VL) {
            const int64_t left = s->width - i < VL ? s->width - i : VL;
            const V before = s->accumulate ? v_load_n(y + i, left) : v_set(0);
            const V add = s->w[q] == 0 ? before : v_fma(w, v_load_n(x + i, left), before);
            v_store_n(y + i, add, left);
        }
    }
}
