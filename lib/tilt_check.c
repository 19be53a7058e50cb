/* SPDX-License-Identifier: BSD-2-Clause */
#include "check.h"
#include "par.h"
#include "tilt.h"

#include <string.h>

enum { LEAST_SIZE = sizeof(sattn_tilt), INPUTS = 4, OUTPUTS = 4 };
enum { ROOM = 32 }; /* sums are kept in panels of 32 rows */

static int32_t check_shape(const sattn_tilt *p)
{
    int64_t queries = 1, tilts = 1, map = 1;
    if (!sattn_grow(&queries, p->batch) || !sattn_grow(&queries, p->queries) ||
        !sattn_grow(&queries, p->query_width) || !sattn_grow(&tilts, p->batch) ||
        !sattn_grow(&tilts, p->queries) || !sattn_grow(&tilts, p->width) ||
        !sattn_grow(&map, p->batch + 1) || !sattn_grow(&map, p->query_width + ROOM) ||
        !sattn_grow(&map, p->width + ROOM))
        return SATTN_ESIZE;
    return p->query_width < 0 || p->width < 0 || p->queries < 0 || p->batch < 0 ? SATTN_ESIZE
                                                                                : SATTN_OK;
}

int32_t sattn_tilt_init(sattn_tilt *p, int64_t size, int64_t batch, int64_t queries,
                        int64_t query_width, int64_t width)
{
    if (!p)
        return SATTN_ENULL;
    if (size < LEAST_SIZE || size > 1 << 16)
        return SATTN_ESTRUCT;
    sattn_tilt q = {.size = size,
                    .batch = batch,
                    .queries = queries,
                    .query_width = query_width,
                    .width = width,
                    .scale = 1};
    const int32_t status = check_shape(&q);
    if (status != SATTN_OK)
        return status;
    q.query_row = q.dquery_row = query_width;
    q.query_batch = q.dquery_batch = queries * query_width;
    q.map_batch = query_width * width;
    q.offset_batch = q.tilt_row = q.dtilt_row = width;
    q.tilt_batch = q.dtilt_batch = queries * width;
    memset(p, 0, (size_t)size);
    memcpy(p, &q, sizeof q);
    return SATTN_OK;
}

/* A row stride of 0 repeats a row of an input. */
static int32_t check_input(const sattn_view *view, int required)
{
    const int32_t status = sattn_check_input(view);
    if (status == SATTN_ESIZE || (status == SATTN_ENULL && required))
        return status;
    const int64_t row = view->stride[1];
    return view->data && view->count[1] > 1 && row != 0 && row < view->count[2] &&
                   row > -view->count[2]
               ? SATTN_ESTRIDE
               : SATTN_OK;
}

static int32_t check_outputs(const sattn_view *in, const sattn_view *out, int64_t element_bytes)
{
    for (int i = 0; i < OUTPUTS; i++) {
        sattn_view view = out[i];
        if (!view.data)
            continue;
        if (i > 0 && view.stride[0] == 0)
            view.count[0] = 1; /* the gradient of what is shared is one array */
        const int32_t status = sattn_check_output(&view);
        if (status != SATTN_OK)
            return status;
        for (int j = 0; j < INPUTS; j++)
            if (sattn_overlap(&view, &in[j], element_bytes))
                return SATTN_EALIAS;
        for (int j = 0; j < i; j++)
            if (sattn_overlap(&view, &out[j], element_bytes))
                return SATTN_EALIAS;
    }
    return SATTN_OK;
}

int32_t sattn_tilt_check(sattn_tilt *p, const sattn_tilt *given, int backward,
                         int64_t element_bytes)
{
    int32_t status = sattn_check_struct(p, given, sizeof *p, LEAST_SIZE);
    if (status == SATTN_OK)
        status = check_shape(p);
    if (status == SATTN_OK)
        status = sattn_par_check(p->threads);
    if (status != SATTN_OK)
        return status;
    if (p->flags & ~(SATTN_ACCUMULATE | SATTN_TRANSPOSED))
        return SATTN_EOPTION;
    const int64_t b = p->batch, m = p->queries, n = p->query_width, d = p->width;
    const sattn_view in[INPUTS] = {
        {p->query, {b, m, n}, {p->query_batch, p->query_row, 1}},
        {p->map, {b, 1, n * d}, {p->map_batch, 0, 1}},
        {p->offset, {b, 1, d}, {p->offset_batch, 0, 1}},
        {backward ? p->dtilt : NULL, {b, backward ? m : 0, d}, {p->dtilt_batch, p->dtilt_row, 1}}};
    const sattn_view tilt = {p->tilt, {b, m, d}, {p->tilt_batch, p->tilt_row, 1}};
    const sattn_view gradients[OUTPUTS] = {
        {p->dquery, {b, m, n}, {p->dquery_batch, p->dquery_row, 1}},
        {p->dmap, {b, 1, n * d}, {p->map_batch, 0, 1}},
        {p->doffset, {b, 1, d}, {p->offset_batch, 0, 1}},
        {p->dscale, {1, 1, 1}, {0, 0, 1}}};
    const sattn_view forward[OUTPUTS] = {tilt};
    for (int i = 0; i < INPUTS && status == SATTN_OK; i++)
        status = check_input(&in[i], i != 2);
    if (status == SATTN_OK && !backward && sattn_check_input(&tilt) != SATTN_OK)
        status = sattn_check_input(&tilt);
    return status == SATTN_OK ? check_outputs(in, backward ? gradients : forward, element_bytes)
                              : status;
}
