/* SPDX-License-Identifier: BSD-2-Clause */
#include "check.h"

#include <string.h>

static int64_t magnitude(int64_t x)
{
    return x == INT64_MIN ? INT64_MAX : x < 0 ? -x : x;
}

static int is_empty(const sattn_view *view)
{
    return view->count[0] == 0 || view->count[1] == 0 || view->count[2] == 0;
}

int32_t sattn_check_input(const sattn_view *view)
{
    int64_t extent = 1;
    for (int i = 0; i < 3; i++) {
        int64_t reach = magnitude(view->stride[i]);
        if (view->count[i] < 0)
            return SATTN_ESIZE;
        if (view->count[i] < 2)
            continue;
        if (!sattn_grow(&reach, view->count[i] - 1) || reach > INT64_MAX / 16 - extent)
            return SATTN_ESIZE;
        extent += reach;
    }
    return view->data || is_empty(view) ? SATTN_OK : SATTN_ENULL;
}

/* The dimension of least stride that is not in the set `done` and has more than one element, or -1
 */
static int innermost(const sattn_view *view, unsigned done)
{
    int best = -1;
    for (int i = 2; i >= 0; i--)
        if (!(done >> i & 1) && view->count[i] > 1 &&
            (best < 0 || magnitude(view->stride[i]) < magnitude(view->stride[best])))
            best = i;
    return best;
}

int32_t sattn_check_output(const sattn_view *view)
{
    const int32_t status = sattn_check_input(view);
    if (status != SATTN_OK || is_empty(view))
        return status;
    int64_t extent = 1;
    unsigned done = 0;
    for (int i; (i = innermost(view, done)) >= 0; done |= 1u << i) {
        if (magnitude(view->stride[i]) < extent)
            return SATTN_ESTRIDE;
        extent += magnitude(view->stride[i]) * (view->count[i] - 1);
    }
    return SATTN_OK;
}

static void span(const sattn_view *view, int64_t element_bytes, uintptr_t *low, uintptr_t *high)
{
    int64_t before = 0, after = 1;
    for (int i = 0; i < 3; i++) {
        const int64_t reach = view->stride[i] * (view->count[i] > 0 ? view->count[i] - 1 : 0);
        if (reach < 0)
            before -= reach;
        else
            after += reach;
    }
    *low = (uintptr_t)view->data - (uintptr_t)(before * element_bytes);
    *high = (uintptr_t)view->data + (uintptr_t)(after * element_bytes);
}

int sattn_overlap(const sattn_view *a, const sattn_view *b, int64_t element_bytes)
{
    uintptr_t a_low, a_high, b_low, b_high;
    if (!a->data || !b->data || is_empty(a) || is_empty(b))
        return 0;
    span(a, element_bytes, &a_low, &a_high);
    span(b, element_bytes, &b_low, &b_high);
    return a_low < b_high && b_low < a_high;
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
