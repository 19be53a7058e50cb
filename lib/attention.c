/* SPDX-License-Identifier: BSD-2-Clause */
#include "attention.h"
#include "check.h"
#include "par.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

/* The size of the first release's descriptor; it may only grow. */
enum { LEAST_SIZE = offsetof(sattn_attention, work_bytes) + sizeof(int64_t) };

static int32_t check_shape(const sattn_attention *p)
{
    const int64_t wide = p->width > p->value_width ? p->width : p->value_width;
    if (p->batch < 0 || p->heads < 0 || p->key_heads < 0 || p->queries < 0 || p->keys < 0 ||
        p->width < 0 || p->value_width < 0)
        return SATTN_ESIZE;
    if (p->heads > 0 && (p->key_heads == 0 || p->heads % p->key_heads != 0))
        return SATTN_ESIZE;
    const int64_t b = p->batch, h = p->heads > p->key_heads ? p->heads : p->key_heads;
    if (!sattn_fits(b, h, p->queries, wide) || !sattn_fits(b, h, p->keys, wide) ||
        !sattn_fits(h, p->queries, p->keys, 1) || !sattn_fits(p->queries, SATTN_TILE, 1, 1) ||
        !sattn_fits(wide, 32 * SATTN_TILE, 1, 1)) /* scratch */
        return SATTN_ESIZE;
    return SATTN_OK;
}

int32_t sattn_attention_init(sattn_attention *p, int64_t size, int64_t batch, int64_t heads,
                             int64_t key_heads, int64_t queries, int64_t keys, int64_t width,
                             int64_t value_width)
{
    int32_t status = sattn_check_init(p, size, LEAST_SIZE);
    if (status != SATTN_OK)
        return status;
    const int64_t h = heads, m = queries, n = keys, d = width, e = value_width;
    sattn_attention q = {.size = size,
                         .batch = batch,
                         .heads = heads,
                         .key_heads = key_heads,
                         .queries = queries,
                         .keys = keys,
                         .width = width,
                         .value_width = value_width,
                         .scale = d > 0 ? 1 / sqrt((double)d) : 1,
                         .left = -1,
                         .right = -1};
    status = check_shape(&q);
    if (status != SATTN_OK)
        return status;
    q.q = (sattn_input){NULL, h * m * d, m * d, d, 1};
    q.k = (sattn_input){NULL, key_heads * n * d, n * d, d, 1};
    q.v = (sattn_input){NULL, key_heads * n * e, n * e, e, 1};
    q.bias = q.mask = (sattn_input){NULL, 0, 0, n, 1};
    q.slope = q.sink = (sattn_input){NULL, 0, 1, 0, 0};
    q.out = (sattn_output){NULL, h * m * e, m * e, e, 1};
    q.dout = (sattn_input){NULL, h * m * e, m * e, e, 1};
    q.stats = (sattn_output){NULL, h * m * 2, m * 2, 2, 1};
    q.lse = (sattn_output){NULL, h * m, m, 1, 0};
    q.dlse = (sattn_input){NULL, h * m, m, 1, 0};
    q.dq = (sattn_output){NULL, h * m * d, m * d, d, 1};
    q.dk = (sattn_output){NULL, key_heads * n * d, n * d, d, 1};
    q.dv = (sattn_output){NULL, key_heads * n * e, n * e, e, 1};
    q.dbias = (sattn_output){NULL, 0, 0, n, 1};
    q.dsink = (sattn_output){NULL, 0, 1, 0, 0};
    sattn_fill(p, size, &q, sizeof q);
    return SATTN_OK;
}

static int32_t check_options(const sattn_attention *p, int direction, int64_t element_bytes)
{
    if ((p->flags & ~SATTN_ACCUMULATE) != 0 || p->diagonal < SATTN_TOP_LEFT ||
        p->diagonal > SATTN_BOTTOM_RIGHT || p->storage < SATTN_STORAGE_OWN ||
        p->storage > SATTN_STORAGE_F16)
        return SATTN_EOPTION;
    if (p->page_size != 0 && direction == SATTN_ATTEND_BACK)
        return SATTN_EOPTION;
    if (!sattn_is_number(p->scale, element_bytes) || !sattn_is_number(p->softcap, element_bytes) ||
        p->softcap < 0 || p->left < -1 || p->right < -1 || p->page_size < 0 ||
        p->page_size % SATTN_WINDOW != 0)
        return SATTN_EVALUE;
    return SATTN_OK;
}

/* Lengths and offsets: within the shape, and offsets do not decrease. */
static int32_t check_lengths(const sattn_attention *p)
{
    for (int64_t b = 0; b < p->batch; b++) {
        const int64_t *q = p->query_offset, *k = p->key_offset;
        if (q && (q[b] < 0 || q[b + 1] < q[b] || q[b + 1] - q[b] > p->queries))
            return SATTN_EVALUE;
        if (k && (k[b] < 0 || k[b + 1] < k[b] || k[b + 1] - k[b] > p->keys))
            return SATTN_EVALUE;
        const int64_t rows = k ? k[b + 1] - k[b] : p->keys;
        if (p->key_length && (p->key_length[b] < 0 || p->key_length[b] > rows))
            return SATTN_EVALUE;
        const int64_t keys = p->key_length ? p->key_length[b] : rows;
        const int64_t pages = p->page_size ? keys / p->page_size + (keys % p->page_size != 0) : 0;
        for (int64_t t = 0; t < pages; t++)
            if (!p->page || p->page[b * p->page_batch + t] < 0)
                return p->page ? SATTN_EVALUE : SATTN_ENULL;
    }
    return SATTN_OK;
}

/* The arrays of the descriptor as views of [B][H][rows][columns] */
enum { INPUTS = 11, FORWARD_INPUTS = 7, OUTPUTS = 6, LISTS = 4 };

static sattn_view view(const void *data, const int64_t *stride, int64_t b, int64_t h, int64_t rows,
                       int64_t cols)
{
    const sattn_view v = {data, /* a last count of 0 would mean 1 */
                          {b ? h : 0, rows, cols, b},
                          {stride[1], stride[2], stride[3], stride[0]}};
    return v;
}

/* Packed sequences: one array of as many rows as the last offset says, without a batch. */
static sattn_view rows_view(const void *data, const int64_t *stride, const sattn_attention *p,
                            const int64_t *offset, int64_t h, int64_t rows, int64_t cols)
{
    if (!offset || !p->batch)
        return view(data, stride, p->batch, h, rows, cols);
    return view(data, stride, 1, h, offset[p->batch], cols);
}

static int32_t check_arrays(const sattn_attention *p, int direction, int64_t bytes)
{
    const int64_t b = p->batch, h = p->heads, hk = p->key_heads, m = p->queries, n = p->keys;
    const int64_t *qo = p->query_offset, *ko = p->key_offset;
    const int back = direction == SATTN_ATTEND_BACK, live = p->page_size == 0;
    const int64_t d = p->width, e = p->value_width, kept = p->storage ? 2 : bytes;
#define STRIDES(array) (array).data, &(array).batch
    const sattn_view views[INPUTS] = {
        rows_view(STRIDES(p->q), p, qo, h, m, d),
        /* of paged keys the extent is not known: no more than their first rows are looked at */
        rows_view(STRIDES(p->k), p, live ? ko : NULL, hk, live ? n : 1, n > 0 ? d : 0),
        rows_view(STRIDES(p->v), p, live ? ko : NULL, hk, live ? n : 1, n > 0 ? e : 0),
        view(STRIDES(p->bias), b, h, m, n),
        view(STRIDES(p->mask), b, h, m, n),
        view(STRIDES(p->slope), b, h, 1, 1),
        view(STRIDES(p->sink), b, h, 1, 1),
        rows_view(STRIDES(p->out), p, qo, h, m, e),
        rows_view(STRIDES(p->stats), p, qo, h, m, 2),
        rows_view(STRIDES(p->dout), p, qo, h, m, e),
        rows_view(STRIDES(p->dlse), p, qo, h, m, 1),
    };
    const sattn_view forward[OUTPUTS] = {views[7], views[8],
                                         rows_view(STRIDES(p->lse), p, qo, h, m, 1)};
    const sattn_view backward[OUTPUTS] = {
        rows_view(STRIDES(p->dq), p, qo, h, m, d),  rows_view(STRIDES(p->dk), p, ko, hk, n, d),
        rows_view(STRIDES(p->dv), p, ko, hk, n, e), view(STRIDES(p->dbias), b, h, m, n),
        view(STRIDES(p->dsink), b, h, 1, 1),        {p->dscale, {1, 1, 1, 1}, {0}},
    };
#undef STRIDES
    const int required[INPUTS] = {1,    1,   1, back && p->dbias.data, 0, 0, back && p->dsink.data,
                                  back, back};
    /* what says which rows and pages there are: of integers, never repeated */
    const int64_t pages = live ? 0 : n / p->page_size + (n % p->page_size != 0);
    const sattn_view lists[LISTS] = {{p->key_length, {1, 1, b}, {0, 0, 1}},
                                     {qo, {1, 1, b + 1}, {0, 0, 1}},
                                     {ko, {1, 1, b + 1}, {0, 0, 1}},
                                     {p->page, {1, b, pages}, {0, p->page_batch, 1}}};
    sattn_argument in[LISTS + INPUTS], out[OUTPUTS];
    for (int i = 0; i < LISTS; i++)
        in[i] = (sattn_argument){.view = lists[i], .bytes = i < 3 ? 8 : 4};
    for (int i = 0; i < INPUTS; i++)
        in[LISTS + i] = (sattn_argument){.view = views[i],
                                         .bytes = i == 1 || i == 2 ? kept
                                                  : i == 4         ? 1
                                                                   : bytes,
                                         .required = required[i]};
    for (int i = 0; i < OUTPUTS; i++) /* biases and sinks that repeat have one gradient for all */
        out[i] = (sattn_argument){
            .view = back ? backward[i] : forward[i], .bytes = bytes, .summed = back && i >= 3};
    return sattn_check_arguments(in, LISTS + (back ? INPUTS : FORWARD_INPUTS), out, OUTPUTS,
                                 p->work, p->work_bytes);
}

int32_t sattn_attention_check(sattn_attention *p, const sattn_attention *given, int direction,
                              int64_t element_bytes)
{
    int32_t status = sattn_check_struct(p, given, sizeof *p, LEAST_SIZE);
    if (status == SATTN_OK)
        status = check_shape(p);
    if (status == SATTN_OK)
        status = sattn_par_check(p->threads);
    if (status == SATTN_OK)
        status = check_options(p, direction, element_bytes);
    if (status != SATTN_OK || direction == SATTN_ATTEND_SHAPE)
        return status;
    status = check_lengths(p);
    if (status != SATTN_OK)
        return status;
    return check_arrays(p, direction, element_bytes);
}
