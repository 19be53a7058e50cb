/* SPDX-License-Identifier: BSD-2-Clause */
#include "check.h"
#include "linear.h"
#include "par.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

/* The size of the first release's descriptor; it may only grow. */
enum { LEAST_SIZE = offsetof(sattn_linear, work_bytes) + sizeof(int64_t) };

/* Multiply-adds below which a team of threads costs more than it saves. */
enum { SERIAL = 1 << 19 };

static int32_t check_shape(const sattn_linear *p)
{
    const int64_t wide = p->width > p->value_width ? p->width : p->value_width;
    if (!sattn_fits(p->batch, p->heads, p->queries, wide) ||
        !sattn_fits(p->batch, p->heads, p->keys, wide) ||
        !sattn_fits(p->batch, p->heads, p->width, sattn_plus(p->value_width, 1)) ||
        !sattn_fits(p->width, sattn_plus(p->value_width, 1), 16 * SATTN_TILE, 1) || /* scratch */
        p->width < 0 || p->value_width < 0)
        return SATTN_ESIZE;
    return p->flags & SATTN_CAUSAL && p->queries != p->keys ? SATTN_ESIZE : SATTN_OK;
}

int32_t sattn_linear_init(sattn_linear *p, int64_t size, int64_t batch, int64_t heads,
                          int64_t queries, int64_t keys, int64_t width, int64_t value_width)
{
    int32_t status = sattn_check_init(p, size, LEAST_SIZE);
    if (status != SATTN_OK)
        return status;
    const int64_t h = heads, m = queries, n = keys, d = width, e = value_width;
    sattn_linear r = {.size = size,
                      .batch = batch,
                      .heads = heads,
                      .queries = queries,
                      .keys = keys,
                      .width = width,
                      .value_width = value_width,
                      .scale = 1};
    status = check_shape(&r);
    if (status != SATTN_OK)
        return status;
    r.q = (sattn_input){NULL, h * m * d, m * d, d, 1};
    r.k = (sattn_input){NULL, h * n * d, n * d, d, 1};
    r.v = (sattn_input){NULL, h * n * e, n * e, e, 1};
    r.dout = (sattn_input){NULL, h * m * e, m * e, e, 1};
    r.sum = r.dsum_out = (sattn_input){NULL, h * d * e, d * e, e, 1};
    r.key_sum = r.dkey_sum_out = (sattn_input){NULL, h * d, d, 1, 0};
    r.out = (sattn_output){NULL, h * m * e, m * e, e, 1};
    r.den = (sattn_output){NULL, h * m, m, 1, 0};
    r.sum_out = r.dsum = (sattn_output){NULL, h * d * e, d * e, e, 1};
    r.key_sum_out = r.dkey_sum = (sattn_output){NULL, h * d, d, 1, 0};
    r.dq = (sattn_output){NULL, h * m * d, m * d, d, 1};
    r.dk = (sattn_output){NULL, h * n * d, n * d, d, 1};
    r.dv = (sattn_output){NULL, h * n * e, n * e, e, 1};
    sattn_fill(p, size, &r, sizeof r);
    return SATTN_OK;
}

static int32_t check_options(const sattn_linear *p, int64_t element_bytes)
{
    const int32_t known = SATTN_ACCUMULATE | SATTN_CAUSAL | SATTN_NORMALISED | SATTN_MEAN;
    if ((p->flags & ~known) != 0 || p->reserved != 0 || p->feature < SATTN_FEATURE_IDENTITY ||
        p->feature > SATTN_FEATURE_EXP)
        return SATTN_EOPTION;
    if (p->flags & SATTN_NORMALISED && p->flags & SATTN_MEAN)
        return SATTN_EOPTION;
    if (!sattn_is_number(p->scale, element_bytes) || !sattn_is_number(p->eps, element_bytes) ||
        p->eps < 0 || p->seen < 0 || p->seen > INT64_MAX / 2)
        return SATTN_EVALUE;
    return SATTN_OK;
}

enum { INPUTS = 10, FORWARD_INPUTS = 5, OUTPUTS = 5 };

static sattn_view view(const sattn_linear *p, const void *data, const int64_t *stride, int64_t rows,
                       int64_t cols)
{
    const int64_t b = p->batch, empty = b == 0;
    return (sattn_view){
        data, {empty ? 0 : p->heads, rows, cols, b}, {stride[1], stride[2], stride[3], stride[0]}};
}

static int32_t check_arrays(const sattn_linear *p, int direction, int64_t bytes)
{
    const int64_t m = p->queries, n = p->keys, d = p->width, e = p->value_width;
    const int back = direction == SATTN_LINEAR_BACK;
    const int64_t ones = (p->flags & SATTN_NORMALISED) != 0;
#define VIEW(array, rows, cols) view(p, (array).data, &(array).batch, rows, cols)
    const sattn_view views[INPUTS] = {
        VIEW(p->q, m, d),
        VIEW(p->k, n, d),
        VIEW(p->v, n, e),
        VIEW(p->sum, d, e),
        VIEW(p->key_sum, d * ones, 1),
        VIEW(p->out, m * ones, e),
        VIEW(p->den, m * ones, 1),
        VIEW(p->dout, m, e),
        VIEW(p->dsum_out, d, e),
        VIEW(p->dkey_sum_out, d * ones, 1),
    };
    const sattn_view forward[OUTPUTS] = {VIEW(p->out, m, e), VIEW(p->den, m * ones, 1),
                                         VIEW(p->sum_out, d, e), VIEW(p->key_sum_out, d * ones, 1)};
    const sattn_view backward[OUTPUTS] = {VIEW(p->dq, m, d), VIEW(p->dk, n, d), VIEW(p->dv, n, e),
                                          VIEW(p->dsum, d, e), VIEW(p->dkey_sum, d * ones, 1)};
#undef VIEW
    const int required[INPUTS] = {1, 1, 1, 0, 0, back, back};
    sattn_argument in[INPUTS], out[OUTPUTS];
    for (int i = 0; i < INPUTS; i++)
        in[i] = (sattn_argument){.view = views[i], .bytes = bytes, .required = required[i]};
    for (int i = 0; i < OUTPUTS; i++)
        out[i] = (sattn_argument){.view = back ? backward[i] : forward[i], .bytes = bytes};
    return sattn_check_arguments(in, back ? INPUTS : FORWARD_INPUTS, out, OUTPUTS, p->work,
                                 p->work_bytes);
}

int32_t sattn_linear_check(sattn_linear *p, const sattn_linear *given, int direction,
                           int64_t element_bytes)
{
    int32_t status = sattn_check_struct(p, given, sizeof *p, LEAST_SIZE);
    if (status == SATTN_OK)
        status = check_options(p, element_bytes);
    if (status == SATTN_OK)
        status = check_shape(p);
    if (status == SATTN_OK)
        status = sattn_par_check(p->threads);
    if (status != SATTN_OK || direction == SATTN_LINEAR_SHAPE)
        return status;
    return check_arrays(p, direction, element_bytes);
}

int32_t sattn_linear_plan_make(sattn_linear_plan *plan, const sattn_linear *p, int direction)
{
    const int64_t d = p->width, e = p->value_width + 1;
    const double work = (double)p->batch * (double)p->heads *
                        ((double)p->queries + (double)p->keys) * (double)d * (double)e;
    sattn_linear_plan q = {.heads = p->batch * p->heads, .state = d * e};
    q.threads = work < SERIAL ? 1 : sattn_par_threads(p->threads);
    q.blocks = (p->keys + SATTN_BLOCK_TOKENS - 1) / SATTN_BLOCK_TOKENS;
    q.tiles = (p->queries + SATTN_CHUNK_TOKENS - 1) / SATTN_CHUNK_TOKENS;
    q.split = direction == SATTN_LINEAR && (!(p->flags & SATTN_CAUSAL) || q.heads < q.threads);
    int64_t states = q.heads, scratch = q.threads;
    q.scratch_size = 6 * q.state + SATTN_TILE * (7 * d + 7 * e + 2 * SATTN_TILE + 4);
    q.scratch_size = (q.scratch_size + 15) / 16 * 16;
    const int64_t kept = q.split ? q.blocks + 1 : 0;
    if (!sattn_grow(&states, kept) || !sattn_grow(&states, q.state) ||
        !sattn_grow(&scratch, q.scratch_size))
        return SATTN_ESIZE;
    q.scratch = (states + 15) / 16 * 16;
    q.elements = q.scratch + scratch;
    *plan = q;
    return q.elements <= INT64_MAX / 16 ? SATTN_OK : SATTN_ESIZE;
}
