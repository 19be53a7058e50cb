/* SPDX-License-Identifier: BSD-2-Clause */
/* Rows of queries to a tile and back, in squares of VL x VL that are transposed in registers. */
#include "vec.h"

static inline int64_t at_most_vl(int64_t n)
{
    return n < 0 ? 0 : n < VL ? n : VL;
}

void K(pack)(int64_t rows, int64_t cols, const R *x, int64_t ldx, R *tile)
{
    for (int64_t q = 0; q < SATTN_TILE; q += VL) {
        const int64_t height = at_most_vl(rows - q);
        for (int64_t i = 0; i < cols; i += VL) {
            const int64_t width = at_most_vl(cols - i);
            V a[VL];
            for (int r = 0; r < VL; r++)
                a[r] = r >= height   ? v_set(0)
                       : width == VL ? v_load(x + (q + r) * ldx + i)
                                     : v_load_n(x + (q + r) * ldx + i, width);
            v_transpose(a);
            for (int c = 0; c < VL; c++)
                if (c < width)
                    v_store(tile + (i + c) * SATTN_TILE + q, a[c]);
        }
    }
}

void K(unpack)(int64_t rows, int64_t cols, const R *tile, R *x, int64_t ldx, int32_t accumulate)
{
    for (int64_t q = 0; q < rows; q += VL) {
        const int64_t height = at_most_vl(rows - q);
        for (int64_t i = 0; i < cols; i += VL) {
            const int64_t width = at_most_vl(cols - i);
            V a[VL];
            for (int c = 0; c < VL; c++)
                a[c] = c < width ? v_load(tile + (i + c) * SATTN_TILE + q) : v_set(0);
            v_transpose(a);
            for (int r = 0; r < VL; r++) {
                if (r >= height)
                    continue;
                R *row = x + (q + r) * ldx + i;
                v_store_n(row, accumulate ? v_add(v_load_n(row, width), a[r]) : a[r], width);
            }
        }
    }
}
