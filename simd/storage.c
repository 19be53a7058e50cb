/* SPDX-License-Identifier: BSD-2-Clause */
/* Numbers of other types, and whether numbers are finite. The loops are plain C that compilers
 * vectorise: every conversion is exact, so that rows cannot differ. */
#include "vec.h"

#if SATTN_REAL == 32
#define R_MOST 0x1.fffffep127f
#else
#define R_MOST 0x1.fffffffffffffp1023
#endif

static inline float of_bits(uint32_t bits)
{
    union {
        uint32_t u;
        float f;
    } x = {bits};
    return x.f;
}

static inline float of_bf16(uint16_t x)
{
    return of_bits((uint32_t)x << 16);
}

/* A normal number moves its exponent by 112; one with exponent 0 is a multiple of 2^-24, made from
 * an integer because a host may have told the processor to take subnormal numbers as 0. */
static inline float of_f16(uint16_t x)
{
    const uint32_t sign = (uint32_t)(x & 0x8000) << 16, rest = x & 0x7fff;
    const uint32_t special = rest >= 0x7c00 ? 112u << 23 : 0;
    const float normal = of_bits((rest << 13) + (112u << 23) + special);
    const float small = (float)(int32_t)rest * 0x1p-24f;
    union {
        float f;
        uint32_t u;
    } y = {rest < 0x400 ? small : normal};
    return of_bits(y.u | sign);
}

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
    /* as in sattn/base.h */
    if (storage == 1) {
        WIDEN(uint16_t, of_bf16)
    } else if (storage == 2) {
        WIDEN(uint16_t, of_f16)
    } else {
        WIDEN(R, )
    }
}

void K(flags)(int64_t rows, int64_t cols, const uint8_t *x, int64_t row, int64_t col, R *y)
{
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < cols; j++)
            y[i * cols + j] = x[i * row + j * col] != 0;
}

int32_t K(all_finite)(int64_t rows, int64_t cols, const R *x, int64_t row)
{
    const V most = v_set(R_MOST), zero = v_set(0);
    V found = zero;
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < cols; j += VL) {
            const V a = v_load_n(x + i * row + j, cols - j < VL ? cols - j : VL);
            found = v_add_if(v_nle(a, most), found, v_set(1));
            found = v_add_if(v_nle(v_sub(zero, a), most), found, v_set(1));
        }
    return v_sum(found) == 0;
}
