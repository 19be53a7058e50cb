/* SPDX-License-Identifier: BSD-2-Clause */
/* Rows of queries: lanes run along the width. */
#include "vec.h"

void K(mixture_outer)(const struct T(sattn_outer) * o)
{
    for (int64_t q = 0; q < o->queries; q++) {
        const R *x = o->x ? o->x + q * o->x_row : NULL, *y = o->y ? o->y + q * o->y_row : NULL;
        const V b = v_set(o->x ? o->b[q] * o->scale : 0), w = v_set(o->y ? o->w[q] : 0);
        R *z = o->z + q * o->width;
        for (int64_t i = 0; i < o->width; i += VL) {
            const int64_t left = o->width - i < VL ? o->width - i : VL;
            V t = v_set(0);
            if (x)
                t = v_mul(b, v_load_n(x + i, left));
            if (y)
                t = v_fma(w, v_load_n(y + i, left), t);
            v_store_n(z + i, t, left);
        }
    }
}

void K(add)(int64_t n, R *into, const R *x)
{
    for (int64_t i = 0; i < n; i += VL) {
        const int64_t left = n - i < VL ? n - i : VL;
        v_store_n(into + i, v_add(v_load_n(into + i, left), v_load_n(x + i, left)), left);
    }
}

void K(squares)(int64_t n, const R *u, const R *y, R *half, R *product)
{
    for (int64_t i = 0; i < n; i += VL) {
        const int64_t left = n - i < VL ? n - i : VL;
        const V ui = v_load_n(u + i, left);
        v_store_n(half + i, v_mul(v_mul(ui, ui), v_set((R)0.5)), left);
        if (y)
            v_store_n(product + i, v_mul(ui, v_load_n(y + i, left)), left);
    }
}
