/* SPDX-License-Identifier: BSD-2-Clause */
#include "check.h"
#include "merge.h"
#include "par.h"

#include <stddef.h>
#include <string.h>

/* The size of the first release's descriptor; it may only grow. */
enum { LEAST_SIZE = offsetof(sattn_merge, part_dlse) + sizeof(void *const *) };

static int32_t check_shape(const sattn_merge *p)
{
    return sattn_fits(p->rows, sattn_plus(p->width, 2), sattn_plus(p->parts, 3), 64) &&
                   p->width >= 0 && p->parts >= 0
               ? SATTN_OK
               : SATTN_ESIZE;
}

int32_t sattn_merge_init(sattn_merge *p, int64_t size, int64_t parts, int64_t rows, int64_t width)
{
    int32_t status = sattn_check_init(p, size, LEAST_SIZE);
    if (status != SATTN_OK)
        return status;
    const sattn_merge q = {.size = size,
                           .parts = parts,
                           .rows = rows,
                           .width = width,
                           .part_out_row = width,
                           .part_stats_row = 2,
                           .out_row = width,
                           .stats_row = 2,
                           .dout_row = width,
                           .part_dout_row = width};
    status = check_shape(&q);
    if (status != SATTN_OK)
        return status;
    sattn_fill(p, size, &q, sizeof q);
    return SATTN_OK;
}

static sattn_view rows_of(const sattn_merge *p, const void *data, int64_t row, int64_t width)
{
    return (sattn_view){data, {1, p->rows, width, 1}, {0, row, 1, 0}};
}

/* Array i of kind: 0 part_out, 1 part_stats (inputs), 2 part_dout, 3 part_dlse (outputs) */
static sattn_view part_of(const sattn_merge *p, int kind, int64_t i)
{
    return kind == 0   ? rows_of(p, p->part_out[i], p->part_out_row, p->width)
           : kind == 1 ? rows_of(p, p->part_stats[i], p->part_stats_row, 2)
           : kind == 2 ? rows_of(p, p->part_dout[i], p->part_dout_row, p->width)
                       : rows_of(p, p->part_dlse[i], 1, 1);
}

/* An output against everything else. in_place: 0, or 1 + the kind whose first part it may be, with
 * the stride own_row. */
static int32_t check_output(const sattn_merge *p, const sattn_view *out, const sattn_view *inputs,
                            int count, int in_place, int64_t own_row, int64_t bytes)
{
    const int32_t status = sattn_check_output(out);
    if (status != SATTN_OK)
        return status;
    for (int i = 0; i < count; i++)
        if (sattn_overlap(out, &inputs[i], bytes))
            return SATTN_EALIAS;
    for (int kind = 0; kind < 2; kind++)
        for (int64_t i = 0; i < p->parts; i++) {
            const sattn_view part = part_of(p, kind, i);
            const int same = i == 0 && kind == in_place - 1 && part.data == out->data &&
                             part.stride[1] == own_row;
            if (!same && sattn_overlap(out, &part, bytes))
                return SATTN_EALIAS;
        }
    return SATTN_OK;
}

static int32_t check_inputs(const sattn_merge *p)
{
    if (p->rows > 0 && p->parts > 0 && (!p->part_out || !p->part_stats))
        return SATTN_ENULL;
    for (int kind = 0; kind < 2; kind++)
        for (int64_t i = 0; p->rows > 0 && i < p->parts; i++) {
            const sattn_view v = part_of(p, kind, i);
            const int32_t status = sattn_check_input(&v);
            if (status != SATTN_OK)
                return status;
        }
    return SATTN_OK;
}

static int32_t check_forward(const sattn_merge *p, int64_t bytes)
{
    const sattn_view out = rows_of(p, p->out, p->out_row, p->width);
    const sattn_view stats = rows_of(p, p->stats, p->stats_row, 2);
    int32_t status = p->stats ? sattn_check_output(&stats) : SATTN_OK; /* before it is compared */
    if (status == SATTN_OK && p->out)
        status = check_output(p, &out, &stats, 1, 1, p->out_row, bytes);
    if (status == SATTN_OK && p->stats)
        status = check_output(p, &stats, &out, 1, 2, p->stats_row, bytes);
    return status;
}

static int32_t check_backward(const sattn_merge *p, int64_t bytes)
{
    const sattn_view in[] = {rows_of(p, p->out, p->out_row, p->width),
                             rows_of(p, p->stats, p->stats_row, 2),
                             rows_of(p, p->dout, p->dout_row, p->width), rows_of(p, p->dlse, 1, 1)};
    for (int i = 0; i < 4; i++) {
        const int32_t status = sattn_check_input(&in[i]);
        if (status == SATTN_ESIZE || (status == SATTN_ENULL && i < 2))
            return status;
    }
    for (int kind = 2; kind < 4; kind++)
        for (int64_t i = 0; (kind == 2 ? p->part_dout : p->part_dlse) && i < p->parts; i++) {
            const sattn_view out = part_of(p, kind, i);
            const int32_t status = check_output(p, &out, in, 4, 0, 0, bytes);
            if (status != SATTN_OK)
                return status;
            for (int other = 2; other <= kind; other++)
                for (int64_t j = 0; (other == 2 ? p->part_dout : p->part_dlse) &&
                                    j < (other == kind ? i : p->parts);
                     j++) {
                    const sattn_view before = part_of(p, other, j);
                    if (sattn_overlap(&out, &before, bytes))
                        return SATTN_EALIAS;
                }
        }
    return SATTN_OK;
}

int32_t sattn_merge_check(sattn_merge *p, const sattn_merge *given, int back, int64_t element_bytes)
{
    int32_t status = sattn_check_struct(p, given, sizeof *p, LEAST_SIZE);
    if (status == SATTN_OK)
        status = check_shape(p);
    if (status == SATTN_OK)
        status = sattn_par_check(p->threads);
    if (status == SATTN_OK && p->flags != 0)
        status = SATTN_EOPTION;
    if (status == SATTN_OK)
        status = check_inputs(p);
    if (status != SATTN_OK || p->rows == 0)
        return status;
    return back ? check_backward(p, element_bytes) : check_forward(p, element_bytes);
}
