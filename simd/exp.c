/* SPDX-License-Identifier: BSD-2-Clause */
#include "elementary.h"

enum { UNROLL = 4 };

void K(exp)(int64_t n, const R *x, R *y)
{
    int64_t i = 0;
    for (; i + UNROLL * VL <= n; i += UNROLL * VL) {
        V a[UNROLL];
        for (int v = 0; v < UNROLL; v++)
            a[v] = v_load(x + i + v * VL);
        v_exps(UNROLL, a);
        for (int v = 0; v < UNROLL; v++)
            v_store(y + i + v * VL, a[v]);
    }
    for (; i < n; i += VL) {
        const int64_t left = n - i < VL ? n - i : VL;
        v_store_n(y + i, v_exp(v_load_n(x + i, left)), left);
    }
}
