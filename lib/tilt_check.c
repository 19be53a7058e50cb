/* SPDX-License-Identifier: BSD-2-Clause */
#include "check.h"
#include "par.h"
#include "tilt.h"

#include <stddef.h>

/* The size of the first release's descriptor; it may only grow. */
enum { LEAST_SIZE = offsetof(sattn_tilt, dscale) + sizeof(void *) };

enum { INPUTS = 4, OUTPUTS = 4 };
enum { ROOM = 32 }; /* sums are kept in panels of 32 rows */

static int32_t check_shape(const sattn_tilt *p)
{
    return sattn_fits(p->batch, p->queries, p->query_width, 1) &&
                   sattn_fits(p->batch, p->queries, p->width, 1) &&
                   sattn_fits(sattn_plus(p->batch, 1), sattn_plus(p->query_width, ROOM),
                              sattn_plus(p->width, ROOM), 1) &&
                   p->query_width >= 0 && p->width >= 0 && p->batch >= 0
               ? SATTN_OK
               : SATTN_ESIZE;
}

int32_t sattn_tilt_init(sattn_tilt *p, int64_t size, int64_t batch, int64_t queries,
                        int64_t query_width, int64_t width)
{
    int32_t status = sattn_check_init(p, size, LEAST_SIZE);
    if (status != SATTN_OK)
        return status;
    sattn_tilt q = {.size = size,
                    .batch = batch,
                    .queries = queries,
                    .query_width = query_width,
                    .width = width,
                    .scale = 1};
    status = check_shape(&q);
    if (status != SATTN_OK)
        return status;
    q.query_row = q.dquery_row = query_width;
    q.query_batch = q.dquery_batch = queries * query_width;
    q.map_batch = query_width * width;
    q.offset_batch = q.tilt_row = q.dtilt_row = width;
    q.tilt_batch = q.dtilt_batch = queries * width;
    sattn_fill(p, size, &q, sizeof q);
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
    if (!sattn_is_number(p->scale, element_bytes))
        return SATTN_EVALUE;
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
    sattn_argument arguments[INPUTS], results[OUTPUTS];
    for (int i = 0; i < INPUTS; i++)
        arguments[i] =
            (sattn_argument){.view = in[i], .bytes = element_bytes, .required = i != 2, .rows = 1};
    for (int i = 0; i < OUTPUTS; i++) /* what is shared has one gradient */
        results[i] = (sattn_argument){.view = backward ? gradients[i] : forward[i],
                                      .bytes = element_bytes,
                                      .summed = backward && i > 0};
    if (!backward)
        status = sattn_check_input(&tilt);
    return status == SATTN_OK ? sattn_check_arguments(arguments, INPUTS, results, OUTPUTS, NULL, 0)
                              : status;
}
