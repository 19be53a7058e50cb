/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SATTN_CHECK_H
#define SATTN_CHECK_H

/* Argument checks that every operation shares. */

#include "sattn/base.h"

#include <math.h>
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

/* The sum, or INT64_MAX, which no product above 0 survives */
static inline int64_t sattn_plus(int64_t a, int64_t b)
{
    int64_t sum;
    return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

/* Whether sizes are not negative and their product can be counted, with room for the size of an
 * element. A size of 0 counts as 1: strides and scratch are computed even where nothing is. */
static inline int sattn_fits(int64_t a, int64_t b, int64_t c, int64_t d)
{
    const int64_t sizes[] = {a, b, c, d};
    int64_t product = 1;
    for (int i = 0; i < 4; i++)
        if (sizes[i] < 0 || !sattn_grow(&product, sizes[i] ? sizes[i] : 1))
            return 0;
    return 1;
}

/* Whether an option is a number of the arrays' type, and not 0 there unless it is 0. */
static inline int sattn_is_number(double x, int64_t element_bytes)
{
    const double there = element_bytes == sizeof(float) ? (double)(float)x : x;
    return isfinite(there) && (there != 0) == (x != 0);
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

/* 1 if a count is 0 */
int sattn_is_empty(const sattn_view *view);

/* 1 if the byte ranges that the two views span have a byte in common. */
int sattn_spans_meet(const sattn_view *a, int64_t a_bytes, const sattn_view *b, int64_t b_bytes);

/* As sattn_spans_meet for equal types, unless the views have equal strides and are interleaved
 * without an element in common. */
int sattn_overlap(const sattn_view *a, const sattn_view *b, int64_t element_bytes);

/* An argument of a call. Of an input: whether it must be there; `rows`: a row may be repeated by a
 * stride of 0, but not be shorter than its elements. Of an output: `summed`, a dimension of stride
 * 0 is one element, which all its repeats add up to; `in_place`, the bits of the inputs that it may
 * be the same array as. */
typedef struct sattn_argument {
    sattn_view view;
    int64_t bytes; /* of an element */
    int required, rows, summed;
    unsigned in_place;
} sattn_argument;

/* Of checks, never returned to a caller: all is right, and no output has an element. Such a call is
 * over, however many empty rows there are. */
enum { SATTN_NOTHING = 1 };

static inline int32_t sattn_answer(int32_t status)
{
    return status == SATTN_NOTHING ? SATTN_OK : status;
}

/* Everything there is to check of arrays: SATTN_OK, SATTN_NOTHING, SATTN_ENULL, SATTN_ESIZE,
 * SATTN_ESTRIDE, or SATTN_EALIAS if an output or the workspace (NULL = none) shares memory with
 * anything else. */
int32_t sattn_check_arguments(const sattn_argument *in, int inputs, const sattn_argument *out,
                              int outputs, const void *work, int64_t work_bytes);

/* The workspace of a call: the caller's, if it is large enough and aligned, or memory of our own,
 * which *owned says and sattn_free ends. SATTN_OK, SATTN_EWORKSPACE, SATTN_ENOMEM */
int32_t sattn_workspace(void *given, int64_t given_bytes, int64_t bytes, void **work, void **owned);

/* What an init function is handed: SATTN_ENULL, or SATTN_ESTRUCT for a size below `least`. */
int32_t sattn_check_init(const void *descriptor, int64_t size, int64_t least);
/* *descriptor := what is known of it, of the `size` bytes that its caller has; 0 beyond */
void sattn_fill(void *descriptor, int64_t size, const void *filled, int64_t known);

/* A descriptor handed over by its caller: copies min(known, caller's size) bytes to `out` and
 * zeroes the rest. SATTN_ENULL; SATTN_ESTRUCT if the size is below `least`, or if bytes past
 * `known` are not all zero. The first member of every descriptor is its int64_t size. */
int32_t sattn_check_struct(void *out, const void *given, int64_t known, int64_t least);

#endif
