/* SPDX-License-Identifier: BSD-2-Clause */
#include "hybrid.h"
#include "../simd/kernels.h"
#include "attention.h"
#include "check.h"
#include "mixture.h"

#include <stddef.h>

/* The size of the first release's descriptor; it may only grow. */
enum { LEAST_SIZE = offsetof(sattn_hybrid, guarded) + sizeof(sattn_output) };

/* Whether the two descriptors are of one problem, and its scratch can be counted. */
static int32_t check_shapes(const sattn_attention *a, const sattn_mixture *m)
{
    const int64_t d = a->width, e = a->value_width;
    int64_t entries = a->batch;
    if (!sattn_grow(&entries, a->key_heads) || m->batch != entries || m->width != d)
        return SATTN_ESIZE;
    if (m->value_width ? m->value_width != e : d != e)
        return SATTN_ESIZE;
    return sattn_fits(sattn_plus(m->components, 2), SATTN_TILE, sattn_plus(d, sattn_plus(e, e)),
                      4) &&
                   sattn_fits(a->batch, a->heads, a->queries,
                              sattn_plus(sattn_plus(d, e), sattn_plus(d, e)))
               ? SATTN_OK
               : SATTN_ESIZE;
}

int32_t sattn_hybrid_init(sattn_hybrid *p, int64_t size, const sattn_attention *attention,
                          const sattn_mixture *mixture)
{
    sattn_attention a;
    sattn_mixture m;
    int32_t status = sattn_check_init(p, size, LEAST_SIZE);
    if (status == SATTN_OK)
        status = sattn_attention_check(&a, attention, SATTN_ATTEND_SHAPE, sizeof(double));
    if (status == SATTN_OK)
        status = sattn_mixture_check(&m, mixture, SATTN_SHAPE, sizeof(double));
    if (status == SATTN_OK)
        status = check_shapes(&a, &m);
    if (status != SATTN_OK)
        return status;
    const sattn_output numbers = {NULL, a.heads * a.queries, a.queries, 1, 0};
    const sattn_hybrid q = {.size = size,
                            .attention = attention,
                            .mixture = mixture,
                            .limit_batch = m.components,
                            .error = numbers,
                            .guarded = numbers};
    sattn_fill(p, size, &q, sizeof q);
    return SATTN_OK;
}

typedef struct {
    sattn_argument in[18], out[11];
    int inputs, outputs;
    int64_t bytes;
} arguments;

static void take(arguments *x, const void *data, const int64_t *stride, int64_t b, int64_t h,
                 int64_t rows, int64_t cols, int64_t bytes)
{
    x->in[x->inputs++] = (sattn_argument){
        .view = {data, {b ? h : 0, rows, cols, b}, {stride[1], stride[2], stride[3], stride[0]}},
        .bytes = bytes};
}

static void give(arguments *x, const void *data, const int64_t *stride, int64_t b, int64_t h,
                 int64_t rows, int64_t cols, int summed)
{
    x->out[x->outputs++] = (sattn_argument){
        .view = {data, {b ? h : 0, rows, cols, b}, {stride[1], stride[2], stride[3], stride[0]}},
        .bytes = x->bytes,
        .summed = summed};
}

/* A parameter of the mixture: `count` elements a batch entry */
static sattn_argument parameter(const void *data, const sattn_mixture *m, int64_t batch,
                                int64_t count, int64_t bytes, int required)
{
    return (sattn_argument){.view = {data, {m->batch, 1, count}, {batch, 0, 1}},
                            .bytes = bytes,
                            .required = required,
                            .summed = 1};
}

static void list_mixture(arguments *x, const sattn_hybrid_given *g, int back)
{
    const sattn_mixture *m = &g->rest;
    const int64_t c = m->components, d = m->width, e = m->value_width, y = x->bytes;
    const int64_t s = sattn_covariance_count(m) * sattn_covariance_width(m);
    const sattn_argument in[] = {
        parameter(m->log_weight, m, m->log_weight_batch, c, y, 1),
        parameter(m->mean, m, m->mean_batch, c * d, y, 1),
        parameter(m->covariance, m, m->covariance_batch, s, y, s > 0),
        parameter(m->value_mean, m, m->value_mean_batch, c * e, y, e > 0),
        parameter(m->cross, m, m->cross_batch, c * e * d, y, back && m->dcross && e > 0),
        parameter(g->p.limit, m, g->p.limit_batch, c, y, 0)};
    const sattn_argument out[] = {
        parameter(m->dlog_weight, m, m->log_weight_batch, c, y, 0),
        parameter(m->dmean, m, m->mean_batch, c * d, y, 0),
        parameter(m->dcovariance, m, m->covariance_batch, s, y, 0),
        parameter(m->dvalue_mean, m, m->value_mean_batch, c * e, y, 0),
        parameter(m->dcross, m, m->cross_batch, c * e * d, y, 0)};
    for (int i = 0; i < 6; i++)
        x->in[x->inputs++] = in[i];
    for (int i = 0; back && i < 5; i++)
        x->out[x->outputs++] = out[i];
}

static void list_attention(arguments *x, const sattn_hybrid_given *g, int back)
{
    const sattn_attention *a = &g->exact;
    const int64_t b = a->batch, h = a->heads, hk = a->key_heads, m = a->queries, n = a->keys;
    const int64_t d = a->width, e = a->value_width, y = x->bytes, kept = a->storage ? 2 : y;
    /* of paged keys no more than the first rows are known; packed ones have no batch */
    const int64_t kb = a->key_offset ? b > 0 : b;
    const int64_t known = a->page_size ? n > 0 : a->key_offset && b ? a->key_offset[b] : n;
#define STRIDES(array) (array).data, &(array).batch
    take(x, STRIDES(a->q), b, h, m, d, y);
    take(x, STRIDES(a->k), kb, hk, known, d, kept);
    take(x, STRIDES(a->v), kb, hk, known, e, kept);
    take(x, STRIDES(a->bias), b, h, m, n, y);
    take(x, STRIDES(a->mask), b, h, m, n, 1);
    take(x, STRIDES(a->slope), b, h, 1, 1, y);
    take(x, STRIDES(a->sink), b, h, 1, 1, y);
    if (!back) {
        give(x, STRIDES(a->out), b, h, m, e, 0);
        give(x, STRIDES(a->stats), b, h, m, 2, 0);
        give(x, STRIDES(a->lse), b, h, m, 1, 0);
        give(x, STRIDES(g->p.error), b, h, m, 1, 0);
        give(x, STRIDES(g->p.guarded), b, h, m, 1, 0);
        return;
    }
    take(x, STRIDES(a->out), b, h, m, e, y);
    take(x, STRIDES(a->stats), b, h, m, 2, y);
    take(x, STRIDES(a->dout), b, h, m, e, y);
    take(x, STRIDES(a->dlse), b, h, m, 1, y);
    give(x, STRIDES(a->dq), b, h, m, d, 0);
    give(x, STRIDES(a->dk), kb, hk, known, d, 0);
    give(x, STRIDES(a->dv), kb, hk, known, e, 0);
    give(x, STRIDES(a->dbias), b, h, m, n, 1);
    give(x, STRIDES(a->dsink), b, h, 1, 1, 1);
#undef STRIDES
    x->out[x->outputs++] =
        (sattn_argument){.view = {a->dscale, {1, 1, 1, 1}, {0}}, .bytes = y};
}

int32_t sattn_hybrid_check(sattn_hybrid_given *g, const sattn_hybrid *given, int back,
                           int64_t element_bytes)
{
    const int direction = back ? SATTN_ATTEND_BACK : SATTN_ATTEND;
    int32_t status = sattn_check_struct(&g->p, given, sizeof g->p, LEAST_SIZE);
    if (status == SATTN_OK)
        status = sattn_attention_check(&g->exact, g->p.attention, SATTN_ATTEND_SHAPE,
                                       element_bytes);
    if (status == SATTN_OK)
        status = sattn_mixture_check(&g->rest, g->p.mixture, SATTN_SHAPE, element_bytes);
    if (status == SATTN_OK)
        status = check_shapes(&g->exact, &g->rest);
    if (status != SATTN_OK)
        return status;
    if (g->exact.softcap != 0 || g->exact.query_offset)
        return SATTN_EOPTION;
    if (!isfinite(g->p.guard))
        return SATTN_EVALUE;
    sattn_attention own = g->exact; /* of the exact tokens; the workspace is ours */
    own.size = sizeof own, own.work = NULL;
    status = sattn_answer(sattn_attention_check(&g->exact, &own, direction, element_bytes));
    if (status != SATTN_OK)
        return status;
    arguments x = {.bytes = element_bytes};
    list_mixture(&x, g, back);
    list_attention(&x, g, back);
    return sattn_check_arguments(x.in, x.inputs, x.out, x.outputs, NULL, 0);
}
