/* SPDX-License-Identifier: BSD-2-Clause */
#include "check.h"

#include <string.h>

enum { DIMENSIONS = 4 };

/* Arrays of equal types may be interleaved. */
static int share(const sattn_argument *a, const sattn_argument *b)
{
    return a->bytes == b->bytes ? sattn_overlap(&a->view, &b->view, a->bytes)
                                : sattn_spans_meet(&a->view, a->bytes, &b->view, b->bytes);
}

/* The same elements in the same places: each is read, then written. */
static int is_same(const sattn_argument *a, const sattn_argument *b)
{
    for (int i = 0; i < DIMENSIONS; i++)
        if (a->view.count[i] > 1 && a->view.stride[i] != b->view.stride[i])
            return 0;
    return a->view.data == b->view.data && a->bytes == b->bytes;
}

static int32_t check_input(const sattn_argument *a)
{
    const sattn_view *v = &a->view;
    const int32_t status = sattn_check_input(v);
    if (status == SATTN_ESIZE || (status == SATTN_ENULL && a->required))
        return status;
    const int64_t row = v->stride[1], width = v->count[2];
    const int cut =
        a->rows && v->data && v->count[1] > 1 && row != 0 && row < width && row > -width;
    return cut ? SATTN_ESTRIDE : SATTN_OK;
}

/* The elements that there are: what is summed exists once even if nothing is added up. */
static sattn_view elements_of(const sattn_argument *a)
{
    sattn_view v = a->view;
    for (int i = 0; a->summed && i < DIMENSIONS; i++)
        if (v.stride[i] == 0 && v.count[i] >= 0)
            v.count[i] = 1;
    return v;
}

static int32_t check_output(const sattn_argument *a)
{
    const sattn_view v = elements_of(a);
    return v.data ? sattn_check_output(&v) : SATTN_OK;
}

int32_t sattn_check_arguments(const sattn_argument *in, int inputs, const sattn_argument *out,
                              int outputs, const void *work, int64_t work_bytes)
{
    const int64_t room = work && work_bytes > 0 ? work_bytes : 0;
    const sattn_argument space = {.view = {work, {1, 1, room, 1}, {0, 0, 1, 0}}, .bytes = 1};
    for (int i = 0; i < inputs; i++) {
        const int32_t status = check_input(&in[i]);
        if (status != SATTN_OK)
            return status;
        if (share(&space, &in[i]))
            return SATTN_EALIAS;
    }
    int32_t answer = SATTN_NOTHING;
    for (int i = 0; i < outputs; i++) {
        const int32_t status = check_output(&out[i]);
        if (status != SATTN_OK)
            return status;
        for (int j = 0; j < inputs; j++)
            if (share(&out[i], &in[j]) && !(out[i].in_place >> j & 1 && is_same(&out[i], &in[j])))
                return SATTN_EALIAS;
        for (int j = 0; j < i; j++)
            if (share(&out[i], &out[j]))
                return SATTN_EALIAS;
        if (share(&out[i], &space))
            return SATTN_EALIAS;
        const sattn_view v = elements_of(&out[i]);
        if (v.data && !sattn_is_empty(&v))
            answer = SATTN_OK;
    }
    return answer;
}

int32_t sattn_workspace(void *given, int64_t given_bytes, int64_t bytes, void **work, void **owned)
{
    *work = given;
    *owned = NULL;
    if (given)
        return given_bytes >= bytes && (uintptr_t)given % 64 == 0 ? SATTN_OK : SATTN_EWORKSPACE;
    *work = *owned = sattn_alloc(bytes);
    return *work ? SATTN_OK : SATTN_ENOMEM;
}

int32_t sattn_check_init(const void *descriptor, int64_t size, int64_t least)
{
    if (!descriptor)
        return SATTN_ENULL;
    return size < least || size > 1 << 16 ? SATTN_ESTRUCT : SATTN_OK;
}

void sattn_fill(void *descriptor, int64_t size, const void *filled, int64_t known)
{
    memset(descriptor, 0, (size_t)size);
    memcpy(descriptor, filled, (size_t)(size < known ? size : known));
}
