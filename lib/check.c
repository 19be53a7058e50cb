/* SPDX-License-Identifier: BSD-2-Clause */
#include "check.h"

#include <string.h>

static int64_t magnitude(int64_t x)
{
    return x == INT64_MIN ? INT64_MAX : x < 0 ? -x : x;
}

enum { DIMENSIONS = 4 };

static int64_t count_of(const sattn_view *view, int i)
{
    return i == DIMENSIONS - 1 && view->count[i] == 0 ? 1 : view->count[i];
}

int sattn_is_empty(const sattn_view *view)
{
    return view->count[0] == 0 || view->count[1] == 0 || view->count[2] == 0;
}

int32_t sattn_check_input(const sattn_view *view)
{
    int64_t extent = 1;
    for (int i = 0; i < DIMENSIONS; i++) {
        int64_t reach = magnitude(view->stride[i]);
        if (view->count[i] < 0)
            return SATTN_ESIZE;
        if (view->count[i] < 2)
            continue;
        if (!sattn_grow(&reach, view->count[i] - 1) || reach > INT64_MAX / 16 - extent)
            return SATTN_ESIZE;
        extent += reach;
    }
    return view->data || sattn_is_empty(view) ? SATTN_OK : SATTN_ENULL;
}

/* Whether no two index tuples have the same address: taken in the order of their strides, each
 * dimension must reach past the extent of the lesser ones. */
static int is_injective(int dimensions, const int64_t *count, const int64_t *stride)
{
    int64_t extent = 1;
    unsigned done = 0;
    for (;;) {
        int best = -1;
        for (int i = dimensions - 1; i >= 0; i--)
            if (!(done >> i & 1) && count[i] > 1 &&
                (best < 0 || magnitude(stride[i]) < magnitude(stride[best])))
                best = i;
        if (best < 0)
            return 1;
        if (magnitude(stride[best]) < extent)
            return 0;
        extent += magnitude(stride[best]) * (count[best] - 1);
        done |= 1u << best;
    }
}

int32_t sattn_check_output(const sattn_view *view)
{
    const int32_t status = sattn_check_input(view);
    if (status != SATTN_OK || sattn_is_empty(view))
        return status;
    return is_injective(DIMENSIONS, view->count, view->stride) ? SATTN_OK : SATTN_ESTRIDE;
}

static void span(const sattn_view *view, int64_t element_bytes, uintptr_t *low, uintptr_t *high)
{
    int64_t before = 0, after = 1;
    for (int i = 0; i < DIMENSIONS; i++) {
        const int64_t reach = view->stride[i] * (count_of(view, i) - 1);
        if (reach < 0)
            before -= reach;
        else
            after += reach;
    }
    *low = (uintptr_t)view->data - (uintptr_t)(before * element_bytes);
    *high = (uintptr_t)view->data + (uintptr_t)(after * element_bytes);
}

/* Both views are parts of one array that has a dimension more: which of the two. */
static int is_interleaved(const sattn_view *a, const sattn_view *b, int64_t element_bytes)
{
    const int64_t apart = (int64_t)((uintptr_t)b->data - (uintptr_t)a->data);
    int64_t count[DIMENSIONS + 1] = {2}, stride[DIMENSIONS + 1] = {apart / element_bytes};
    for (int i = 0; i < DIMENSIONS; i++) {
        const int64_t n = count_of(a, i), m = count_of(b, i);
        if (n > 1 && m > 1 && a->stride[i] != b->stride[i])
            return 0;
        count[i + 1] = n > m ? n : m;
        stride[i + 1] = n > 1 ? a->stride[i] : b->stride[i];
    }
    return apart % element_bytes == 0 && is_injective(DIMENSIONS + 1, count, stride);
}

int sattn_spans_meet(const sattn_view *a, int64_t a_bytes, const sattn_view *b, int64_t b_bytes)
{
    uintptr_t a_low, a_high, b_low, b_high;
    if (!a->data || !b->data || sattn_is_empty(a) || sattn_is_empty(b))
        return 0;
    span(a, a_bytes, &a_low, &a_high);
    span(b, b_bytes, &b_low, &b_high);
    return a_low < b_high && b_low < a_high;
}

int sattn_overlap(const sattn_view *a, const sattn_view *b, int64_t element_bytes)
{
    return sattn_spans_meet(a, element_bytes, b, element_bytes) &&
           !is_interleaved(a, b, element_bytes);
}

int32_t sattn_check_struct(void *out, const void *given, int64_t known, int64_t least)
{
    int64_t size;
    if (!given)
        return SATTN_ENULL;
    memcpy(&size, given, sizeof size);
    if (size < least || size > 1 << 16)
        return SATTN_ESTRUCT;
    for (int64_t i = known; i < size; i++)
        if (((const unsigned char *)given)[i])
            return SATTN_ESTRUCT;
    memset(out, 0, (size_t)known);
    memcpy(out, given, (size_t)(size < known ? size : known));
    return SATTN_OK;
}
