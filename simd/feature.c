/* SPDX-License-Identifier: BSD-2-Clause */
/* The feature maps of linear attention (sattn/linear.h) and their derivatives. */
#include "elementary.h"

enum { IDENTITY = 0, ELU = 1, RELU = 2, EXP = 3 };

static inline V map(int32_t kind, V x)
{
    const M positive = v_lt(v_set(0), x);
    if (kind == ELU)
        return v_select(positive, v_add(x, v_set(1)), v_exp(v_select(positive, v_set(0), x)));
    if (kind == RELU) /* NaN passes */
        return v_keep(v_nle(x, v_set(0)), x);
    return kind == EXP ? v_exp(x) : x;
}

static inline V slope(int32_t kind, V x)
{
    const M positive = v_lt(v_set(0), x);
    if (kind == ELU)
        return v_exp(v_select(positive, v_set(0), x));
    if (kind == RELU)
        return v_keep(positive, v_set(1));
    return kind == EXP ? v_exp(x) : v_set(1);
}

void K(feature)(int32_t kind, int64_t n, const R *x, R *y)
{
    for (int64_t i = 0; i < n; i += VL) {
        const int64_t left = n - i < VL ? n - i : VL;
        v_store_n(y + i, map(kind, v_load_n(x + i, left)), left);
    }
}

void K(feature_pull)(int32_t kind, int64_t n, const R *x, R *dy)
{
    for (int64_t i = 0; i < n; i += VL) {
        const int64_t left = n - i < VL ? n - i : VL;
        const V d = v_load_n(dy + i, left);
        v_store_n(dy + i, v_mul(slope(kind, v_load_n(x + i, left)), d), left);
    }
}
