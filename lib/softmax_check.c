/* SPDX-License-Identifier: BSD-2-Clause */
#include "check.h"
#include "par.h"
#include "softmax.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

/* The size of the first published layout, below which a descriptor lacks members. */
enum { LEAST_SIZE = offsetof(sattn_softmax, work_bytes) + sizeof(int64_t) };

static int32_t check_shape(const sattn_softmax *p)
{
    return sattn_fits(p->batch, p->rows, p->width, 1) ? SATTN_OK : SATTN_ESIZE;
}

int32_t sattn_softmax_init(sattn_softmax *p, int64_t size, int64_t batch, int64_t rows,
                           int64_t width)
{
    int32_t status = sattn_check_init(p, size, LEAST_SIZE);
    if (status != SATTN_OK)
        return status;
    sattn_softmax q = {.size = size, .batch = batch, .rows = rows, .width = width, .scale = 1};
    status = check_shape(&q);
    if (status != SATTN_OK)
        return status;
    q.x_batch = q.bias_batch = q.mask_batch = q.y_batch = q.dy_batch = q.dx_batch = rows * width;
    q.x_row = q.bias_row = q.mask_row = q.y_row = q.dy_row = q.dx_row = width;
    q.x_col = q.bias_col = q.mask_col = q.y_col = q.dy_col = q.dx_col = 1;
    q.length_batch = q.sink_batch = q.lse_batch = q.dlse_batch = rows;
    q.length_row = q.sink_row = 1;
    q.stats_batch = 2 * rows;
    sattn_fill(p, size, &q, sizeof q);
    return SATTN_OK;
}

static int32_t check_options(const sattn_softmax *p, int64_t element_bytes)
{
    const int32_t storage[] = {p->x_storage, p->y_storage};
    if (p->form < SATTN_FORM_SOFTMAX || p->form > SATTN_FORM_LOG_SOFTMAX || p->flags || p->reserved)
        return SATTN_EOPTION;
    for (int i = 0; i < 2; i++)
        if (storage[i] < SATTN_STORAGE_OWN || storage[i] > SATTN_STORAGE_F16 ||
            (storage[i] != SATTN_STORAGE_OWN && element_bytes != 4))
            return SATTN_EOPTION;
    return sattn_is_number(p->scale, element_bytes) ? SATTN_OK : SATTN_EVALUE;
}

static int32_t check_lengths(const sattn_softmax *p)
{
    for (int64_t b = 0; p->length && b < p->batch; b++)
        for (int64_t m = 0; m < p->rows; m++) {
            const int64_t n = p->length[b * p->length_batch + m * p->length_row];
            if (n < 0 || n > p->width)
                return SATTN_EVALUE;
        }
    return SATTN_OK;
}

/* Arrays of the descriptor; forward reads the first FORWARD_INPUTS. */
enum { X, BIAS, MASK, LENGTH, SINK, FORWARD_INPUTS, Y = FORWARD_INPUTS, STATS, DY, DLSE, INPUTS };
enum { OUTPUTS = 4 };
typedef sattn_argument array;

static void list_inputs(array *in, const sattn_softmax *p, int back, int64_t bytes)
{
    const int64_t b = p->batch, m = p->rows, n = p->width;
    const int64_t x = sattn_storage_bytes(p->x_storage, bytes);
    const int64_t y = sattn_storage_bytes(p->y_storage, bytes);
    const int from_x = back && !p->y;
    const array all[INPUTS] = {
        {.view = {p->x, {b, m, n}, {p->x_batch, p->x_row, p->x_col}},
         .bytes = x,
         .required = !back || from_x || p->dscale},
        {.view = {p->bias, {b, m, n}, {p->bias_batch, p->bias_row, p->bias_col}},
         .bytes = bytes,
         .required = back && p->dbias},
        {.view = {p->mask, {b, m, n}, {p->mask_batch, p->mask_row, p->mask_col}}, .bytes = 1},
        {.view = {p->length, {b, m, 1}, {p->length_batch, p->length_row}},
         .bytes = sizeof(int64_t)},
        {.view = {p->sink, {b, m, 1}, {p->sink_batch, p->sink_row}},
         .bytes = bytes,
         .required = back && p->dsink},
        {.view = {p->y, {b, m, n}, {p->y_batch, p->y_row, p->y_col}}, .bytes = y},
        {.view = {p->stats, {b, m, 2}, {p->stats_batch, 2, 1}},
         .bytes = bytes,
         .required = from_x || (back && p->dsink)},
        {.view = {p->dy, {b, m, n}, {p->dy_batch, p->dy_row, p->dy_col}}, .bytes = y},
        {.view = {p->dlse, {b, m, 1}, {p->dlse_batch, 1}}, .bytes = bytes},
    };
    memcpy(in, all, sizeof all);
}

static void list_outputs(array *out, const array *in, const sattn_softmax *p, int back,
                         int64_t bytes)
{
    const int64_t b = p->batch, m = p->rows, n = p->width;
    const array forward[OUTPUTS] = {
        in[Y], in[STATS], {.view = {p->lse, {b, m, 1}, {p->lse_batch, 1}}, .bytes = bytes}};
    const array backward[OUTPUTS] = {
        {.view = {p->dx, {b, m, n}, {p->dx_batch, p->dx_row, p->dx_col}}, .bytes = in[X].bytes},
        {.view = {p->dbias, {b, m, n}, {p->bias_batch, p->bias_row, p->bias_col}}, .bytes = bytes},
        {.view = {p->dsink, {b, m, 1}, {p->sink_batch, p->sink_row}}, .bytes = bytes},
        {.view = {p->dscale, {1, 1, 1}, {0}}, .bytes = bytes}};
    memcpy(out, back ? backward : forward, sizeof backward);
    out[1].summed = out[2].summed = back;
    if (p->x_storage == p->y_storage)
        out[0].in_place = back ? 1u << Y | 1u << DY : 1u << X;
}

static int32_t check_arrays(const sattn_softmax *p, int back, int64_t bytes)
{
    array in[INPUTS], out[OUTPUTS];
    list_inputs(in, p, back, bytes);
    list_outputs(out, in, p, back, bytes);
    return sattn_check_arguments(in, back ? INPUTS : FORWARD_INPUTS, out, OUTPUTS, p->work,
                                 p->work_bytes);
}

/* A batch of single rows is rows of one batch entry. */
static void turn_batch_to_rows(sattn_softmax_call *k)
{
    sattn_softmax *p = &k->p;
    p->rows = p->batch;
    p->batch = 1;
    p->x_row = p->x_batch;
    p->bias_row = p->bias_batch;
    p->mask_row = p->mask_batch;
    p->length_row = p->length_batch;
    p->sink_row = p->sink_batch;
    p->y_row = p->y_batch;
    p->dy_row = p->dy_batch;
    p->dx_row = p->dx_batch;
    k->stats_row = p->stats_batch;
    k->lse_row = p->lse_batch;
    k->dlse_row = p->dlse_batch;
}

int32_t sattn_softmax_check(sattn_softmax_call *k, const sattn_softmax *given, int direction,
                            int64_t element_bytes)
{
    *k = (sattn_softmax_call){.stats_row = 2, .lse_row = 1, .dlse_row = 1};
    int32_t status = sattn_check_struct(&k->p, given, sizeof k->p, LEAST_SIZE);
    if (status == SATTN_OK)
        status = check_shape(&k->p);
    if (status == SATTN_OK)
        status = sattn_par_check(k->p.threads);
    if (status == SATTN_OK)
        status = check_options(&k->p, element_bytes);
    if (status == SATTN_OK && direction != SATTN_SOFTMAX_SHAPE)
        status = check_arrays(&k->p, direction == SATTN_SOFTMAX_BACKWARD, element_bytes);
    if (status == SATTN_OK && direction != SATTN_SOFTMAX_SHAPE)
        status = check_lengths(&k->p);
    if (status == SATTN_OK && k->p.rows == 1 && k->p.batch != 1)
        turn_batch_to_rows(k);
    return status;
}
