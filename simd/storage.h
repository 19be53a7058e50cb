/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SATTN_STORAGE_H
#define SATTN_STORAGE_H

/* Elements of an operand to adjacent R and back, whatever their stride and type in memory: R
 * itself, or bf16 and f16 as uint16_t (float alone computes with them). To R is exact, from R
 * rounds to nearest, ties to even. Plain C: compilers make vectors of the loops of stride 1. */

#include "sattn/base.h"
#include "vec.h"

typedef union {
    float number;
    uint32_t bits;
} sattn_float;

static inline float sattn_of_bits32(uint32_t bits)
{
    return (sattn_float){.bits = bits}.number;
}

static inline uint32_t sattn_bits32_of(float x)
{
    return (sattn_float){.number = x}.bits;
}

static inline float sattn_of_bf16(uint16_t x)
{
    return sattn_of_bits32((uint32_t)x << 16);
}

static inline uint16_t sattn_to_bf16(float x)
{
    const uint32_t bits = sattn_bits32_of(x), even = bits + 0x7fff + (bits >> 16 & 1);
    const uint32_t quiet = bits | 0x400000;
    return (uint16_t)(((bits & 0x7fffffff) > 0x7f800000 ? quiet : even) >> 16);
}

/* A normal number moves its exponent by 112; one with exponent 0 is a multiple of 2^-24, made from
 * an integer because a host may have told the processor to take subnormal numbers as 0. */
static inline float sattn_of_f16(uint16_t x)
{
    const uint32_t sign = (uint32_t)(x & 0x8000) << 16, rest = x & 0x7fff;
    const uint32_t special = rest >= 0x7c00 ? 112u << 23 : 0;
    const uint32_t normal = (rest << 13) + (112u << 23) + special;
    const uint32_t small = sattn_bits32_of((float)(int32_t)rest * 0x1p-24f);
    return sattn_of_bits32((rest < 0x400 ? small : normal) | sign);
}

/* Below 2^-14 the sum with 1/2 holds the whole multiples of 2^-24, rounded, in its low bits. From
 * there to 2^16 the exponent moves by 112 and 13 bits are rounded off, 65520 up to infinity. */
static inline uint16_t sattn_to_f16(float x)
{
    const uint32_t word = sattn_bits32_of(x), bits = word & 0x7fffffff;
    const float tiny = sattn_of_bits32(bits < (113u << 23) ? bits : 0);
    const uint32_t small = sattn_bits32_of(tiny + 0.5f) - (126u << 23);
    const uint32_t normal = (bits - (112u << 23) + 0xfff + (bits >> 13 & 1)) >> 13;
    const uint32_t beyond = bits > 0x7f800000 ? 0x7e00 : 0x7c00;
    const uint32_t half = bits >= (143u << 23) ? beyond : bits < (113u << 23) ? small : normal;
    return (uint16_t)(half | (word >> 16 & 0x8000));
}

#if SATTN_REAL == 32
static inline void sattn_load_16(int64_t n, const uint16_t *from, int64_t col, int32_t storage,
                                 R *to)
{
    if (storage == SATTN_STORAGE_BF16)
        for (int64_t i = 0; i < n; i++)
            to[i] = sattn_of_bf16(from[i * col]);
    else
        for (int64_t i = 0; i < n; i++)
            to[i] = sattn_of_f16(from[i * col]);
}

static inline void sattn_store_16(int64_t n, const R *from, uint16_t *to, int64_t col,
                                  int32_t storage)
{
    if (storage == SATTN_STORAGE_BF16)
        for (int64_t i = 0; i < n; i++)
            to[i * col] = sattn_to_bf16(from[i]);
    else
        for (int64_t i = 0; i < n; i++)
            to[i * col] = sattn_to_f16(from[i]);
}
#endif

/* Elements j .. j+n-1 of a row: where they are if they are adjacent R, else copied to `to`. */
static inline const R *sattn_elements(const sattn_operand *a, int32_t storage, int64_t row,
                                      int64_t j, int64_t n, R *to)
{
    const int64_t first = row * a->row + j * a->col;
#if SATTN_REAL == 32
    if (storage != SATTN_STORAGE_OWN) {
        const uint16_t *from = (const uint16_t *)a->data + first;
        if (a->col == 1)
            sattn_load_16(n, from, 1, storage, to);
        else
            sattn_load_16(n, from, a->col, storage, to);
        return to;
    }
#endif
    (void)storage;
    const R *from = (const R *)a->data + first;
    if (a->col == 1)
        return from;
    for (int64_t i = 0; i < n; i++)
        to[i] = from[i * a->col];
    return to;
}

static inline int sattn_is_adjacent(const sattn_operand *a, int32_t storage)
{
    return storage == SATTN_STORAGE_OWN && a->col == 1;
}

/* Where to write elements j .. of a row: in place if they are adjacent R, else in `buffer`, from
 * which sattn_put copies them. */
static inline R *sattn_place(const sattn_operand *a, int32_t storage, int64_t row, int64_t j,
                             R *buffer)
{
    return sattn_is_adjacent(a, storage) ? (R *)a->data + row * a->row + j : buffer;
}

static inline void sattn_put(const sattn_operand *a, int32_t storage, int64_t row, int64_t j,
                             int64_t n, const R *buffer)
{
    const int64_t first = row * a->row + j * a->col;
    if (sattn_is_adjacent(a, storage))
        return;
#if SATTN_REAL == 32
    if (storage != SATTN_STORAGE_OWN) {
        uint16_t *to = (uint16_t *)a->data + first;
        if (a->col == 1)
            sattn_store_16(n, buffer, to, 1, storage);
        else
            sattn_store_16(n, buffer, to, a->col, storage);
        return;
    }
#endif
    R *to = (R *)a->data + first;
    for (int64_t i = 0; i < n; i++)
        to[i * a->col] = buffer[i];
}

#endif
