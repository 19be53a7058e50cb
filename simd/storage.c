/* SPDX-License-Identifier: BSD-2-Clause */
/* Numbers of other types, and whether numbers are finite. The loops are plain C that compilers
 * vectorise: every conversion is exact, so that rows cannot differ. */
#include "storage.h"

#if SATTN_REAL == 32
#define R_MOST 0x1.fffffep127f
#else
#define R_MOST 0x1.fffffffffffffp1023
#endif

#define WIDEN(type, convert)                                                                       \
    for (int64_t i = 0; i < rows; i++) {                                                           \
        const type *from = (const type *)x + i * row;                                              \
        if (col == 1)                                                                              \
            for (int64_t j = 0; j < cols; j++)                                                     \
                y[i * cols + j] = convert(from[j]);                                                \
        else                                                                                       \
            for (int64_t j = 0; j < cols; j++)                                                     \
                y[i * cols + j] = convert(from[j * col]);                                          \
    }

void K(widen)(int32_t storage, int64_t rows, int64_t cols, const void *x, int64_t row, int64_t col,
              R *y)
{
    if (storage == SATTN_STORAGE_BF16) {
        WIDEN(uint16_t, sattn_of_bf16)
    } else if (storage == SATTN_STORAGE_F16) {
        WIDEN(uint16_t, sattn_of_f16)
    } else {
        WIDEN(R, )
    }
}

void K(flags)(int64_t rows, int64_t cols, const uint8_t *x, int64_t row, int64_t col, R *y)
{
    for (int64_t i = 0; i < rows; i++)
        if (col == 1)
            for (int64_t j = 0; j < cols; j++)
                y[i * cols + j] = (R)(x[i * row + j] != 0);
        else
            for (int64_t j = 0; j < cols; j++)
                y[i * cols + j] = (R)(x[i * row + j * col] != 0);
}

void K(live_columns)(int64_t rows, int64_t cols, const R *x, R dead, R *count)
{
    for (int64_t j = 0; j < cols; j += VL) {
        const int64_t left = cols - j < VL ? cols - j : VL;
        V found = v_set(0);
        for (int64_t i = 0; i < rows; i++)
            found = v_add_if(v_nle(v_load_n(x + i * cols + j, left), v_set(dead)), found, v_set(1));
        v_store_n(count + j, found, left);
    }
}

int32_t K(all_finite)(int64_t rows, int64_t cols, const R *x, int64_t row)
{
    const V most = v_set(R_MOST), zero = v_set(0);
    V found = zero;
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < cols; j += VL) {
            const V a = v_load_n(x + i * row + j, cols - j < VL ? cols - j : VL);
            /* the larger of a and -a; NaN stays */
            found = v_add_if(v_nle(v_max(a, v_sub(zero, a)), most), found, v_set(1));
        }
    return v_sum(found) == 0;
}
