/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SATTN_CHECK_H
#define SATTN_CHECK_H

/* Argument checks that every operation shares. */

#include "sattn/base.h"

#include <stddef.h>

/* *product *= factor, or 0 if that overflows or a number is negative. The largest product allowed
 * leaves room for the size of an element. */
static inline int sattn_grow(int64_t *product, int64_t factor)
{
    int64_t result;
    if (*product < 0 || factor < 0 || __builtin_mul_overflow(*product, factor, &result) ||
        result > INT64_MAX / 16)
        return 0;
    *product = result;
    return 1;
}

/* A strided array as its caller describes it: `count[i]` elements `stride[i]` apart. Unused
 * dimensions have count 1, or 0 for the last one: a view of three dimensions leaves it out. */
typedef struct sattn_view {
    const void *data;
    int64_t count[4], stride[4];
} sattn_view;

/* SATTN_OK, SATTN_ENULL (data missing while no count is 0) or SATTN_ESIZE (the extent overflows).
 */
int32_t sattn_check_input(const sattn_view *view);

/* As an input, and SATTN_ESTRIDE if two elements may share an address: each stride must reach past
 * the extent of the dimensions of lesser stride, whatever their order. */
int32_t sattn_check_output(const sattn_view *view);

/* 1 if the byte ranges that the two views span have a byte in common. */
int sattn_spans_meet(const sattn_view *a, int64_t a_bytes, const sattn_view *b, int64_t b_bytes);

/* As sattn_spans_meet for equal types, unless the views have equal
 * strides and are interleaved without an element in common. */
int sattn_overlap(const sattn_view *a, const sattn_view *b, int64_t element_bytes);

/* A descriptor handed over by its caller: copies min(known, caller's size) bytes to `out` and
 * zeroes the rest. SATTN_ENULL; SATTN_ESTRUCT if the size is below `least`, or if bytes past
 * `known` are not all zero. The first member of every descriptor is its int64_t size. */
int32_t sattn_check_struct(void *out, const void *given, int64_t known, int64_t least);

#endif
