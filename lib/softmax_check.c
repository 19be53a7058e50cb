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
    int64_t size = 1;
    return sattn_grow(&size, p->batch) && sattn_grow(&size, p->rows) &&
                   sattn_grow(&size, p->width) && p->batch >= 0 && p->rows >= 0 && p->width >= 0
               ? SATTN_OK
               : SATTN_ESIZE;
}

int32_t sattn_softmax_init(sattn_softmax *p, int64_t size, int64_t batch, int64_t rows,
                           int64_t width)
{
    if (!p)
        return SATTN_ENULL;
    if (size != sizeof *p)
        return SATTN_ESTRUCT;
    sattn_softmax q = {.size = size, .batch = batch, .rows = rows, .width = width, .scale = 1};
    const int32_t status = check_shape(&q);
    if (status != SATTN_OK)
        return status;
    q.x_batch = q.bias_batch = q.mask_batch = q.y_batch = q.dy_batch = q.dx_batch = rows * width;
    q.x_row = q.bias_row = q.mask_row = q.y_row = q.dy_row = q.dx_row = width;
    q.x_col = q.bias_col = q.mask_col = q.y_col = q.dy_col = q.dx_col = 1;
    q.length_batch = q.sink_batch = q.lse_batch = q.dlse_batch = rows;
    q.length_row = q.sink_row = 1;
    q.stats_batch = 2 * rows;
    *p = q;
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
    const int finite = element_bytes == 4 ? isfinite((float)p->scale) : isfinite(p->scale);
    return finite ? SATTN_OK : SATTN_EVALUE;
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
typedef struct {
    sattn_view view;
    int64_t bytes; /* of an element */
    int required;
} array;

static void list_inputs(array *in, const sattn_softmax *p, int back, int64_t bytes)
{
    const int64_t b = p->batch, m = p->rows, n = p->width;
    const int64_t x = sattn_storage_bytes(p->x_storage, bytes);
    const int64_t y = sattn_storage_bytes(p->y_storage, bytes);
    const int from_x = back && !p->y;
    const array all[INPUTS] = {
        {{p->x, {b, m, n}, {p->x_batch, p->x_row, p->x_col}}, x, !back || from_x || p->dscale},
        {{p->bias, {b, m, n}, {p->bias_batch, p->bias_row, p->bias_col}}, bytes, back && p->dbias},
        {{p->mask, {b, m, n}, {p->mask_batch, p->mask_row, p->mask_col}}, 1, 0},
        {{p->length, {b, m, 1}, {p->length_batch, p->length_row}}, sizeof(int64_t), 0},
        {{p->sink, {b, m, 1}, {p->sink_batch, p->sink_row}}, bytes, back && p->dsink},
        {{p->y, {b, m, n}, {p->y_batch, p->y_row, p->y_col}}, y, 0},
        {{p->stats, {b, m, 2}, {p->stats_batch, 2, 1}}, bytes, from_x || (back && p->dsink)},
        {{p->dy, {b, m, n}, {p->dy_batch, p->dy_row, p->dy_col}}, y, 0},
        {{p->dlse, {b, m, 1}, {p->dlse_batch, 1}}, bytes, 0},
    };
    memcpy(in, all, sizeof all);
}

static void list_outputs(array *out, const array *in, const sattn_softmax *p, int back,
                         int64_t bytes)
{
    const int64_t b = p->batch, m = p->rows, n = p->width;
    const array forward[OUTPUTS] = {
        in[Y], in[STATS], {{p->lse, {b, m, 1}, {p->lse_batch, 1}}, bytes, 0}};
    const array backward[OUTPUTS] = {
        {{p->dx, {b, m, n}, {p->dx_batch, p->dx_row, p->dx_col}}, in[X].bytes, 0},
        {{p->dbias, {b, m, n}, {p->bias_batch, p->bias_row, p->bias_col}}, bytes, 0},
        {{p->dsink, {b, m, 1}, {p->sink_batch, p->sink_row}}, bytes, 0},
        {{p->dscale, {1, 1, 1}, {0}}, bytes, 0}};
    memcpy(out, back ? backward : forward, sizeof backward);
    for (int i = 1; back && i < 3; i++) /* repeats are summed into one element */
        for (int axis = 0; axis < 3; axis++)
            if (out[i].view.stride[axis] == 0 && out[i].view.count[axis] > 1)
                out[i].view.count[axis] = 1;
}

static int shares(const array *a, const array *b)
{
    return a->bytes == b->bytes ? sattn_overlap(&a->view, &b->view, a->bytes)
                                : sattn_spans_meet(&a->view, a->bytes, &b->view, b->bytes);
}

/* The same elements in the same places, of one type: read, then written */
static int in_place(const array *a, const array *b, int same_storage)
{
    for (int i = 0; i < 3; i++)
        if (a->view.count[i] > 1 && a->view.stride[i] != b->view.stride[i])
            return 0;
    return a->view.data == b->view.data && same_storage;
}

static int32_t check_arrays(const sattn_softmax *p, int back, int64_t bytes)
{
    const int inputs = back ? INPUTS : FORWARD_INPUTS, same = p->x_storage == p->y_storage;
    const int64_t room = p->work && p->work_bytes > 0 ? p->work_bytes : 0;
    const array work = {{p->work, {1, 1, room}, {0, 0, 1}}, 1, 0};
    array in[INPUTS], out[OUTPUTS];
    list_inputs(in, p, back, bytes);
    list_outputs(out, in, p, back, bytes);
    for (int i = 0; i < inputs; i++) {
        const int32_t status = sattn_check_input(&in[i].view);
        if (status == SATTN_ESIZE || (status == SATTN_ENULL && in[i].required))
            return status;
        if (shares(&work, &in[i]))
            return SATTN_EALIAS;
    }
    for (int i = 0; i < OUTPUTS; i++) {
        if (!out[i].view.data)
            continue;
        const int32_t status = sattn_check_output(&out[i].view);
        if (status != SATTN_OK)
            return status;
        for (int j = 0; j < inputs; j++) {
            const int allowed = i == 0 && (back ? j == Y || j == DY : j == X);
            if (shares(&out[i], &in[j]) && !(allowed && in_place(&out[i], &in[j], same)))
                return SATTN_EALIAS;
        }
        for (int j = 0; j < i; j++)
            if (shares(&out[i], &out[j]))
                return SATTN_EALIAS;
        if (shares(&work, &out[i]))
            return SATTN_EALIAS;
    }
    return SATTN_OK;
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
