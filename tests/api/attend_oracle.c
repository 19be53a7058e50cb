/* SPDX-License-Identifier: BSD-2-Clause */
#include "../oracle/attention.h"
#include "attend.h"

#include <stdlib.h>

static void *zeros(int64_t n, size_t bytes)
{
    void *memory = calloc((size_t)n + 1, bytes);
    check(memory != NULL);
    return memory;
}

/* An input as a dense array; rows past a sequence's end stay 0. NULL if the problem has none */
static double *dense(const attend *x, int i, int64_t heads, int64_t rows, int64_t cols)
{
    const int keys = i == K || i == V;
    if (!x->a[i].data)
        return NULL;
    double *y = zeros(x->shape.batch * heads * rows * cols, sizeof *y);
    for (int64_t b = 0; b < x->shape.batch; b++) {
        const int64_t live = i == SLOPE || i == SINK ? 1
                             : keys                  ? attend_keys(x, b)
                             : i == BIAS             ? rows
                                                     : attend_queries(x, b);
        for (int64_t h = 0; h < heads; h++)
            for (int64_t m = 0; m < live; m++)
                for (int64_t d = 0; d < cols; d++)
                    y[((b * heads + h) * rows + m) * cols + d] =
                        (double)*attend_cell(x, i, b, h, m, d);
    }
    return y;
}

static void compare(const attend *x, int i, const oracle_number *want, int64_t heads, int64_t rows,
                    int64_t cols)
{
    const int keys = i == DK || i == DV;
    for (int64_t b = 0; b < x->shape.batch; b++) {
        /* gradients of keys that do not count are 0, and are there if the array has them */
        const int64_t live = !keys                   ? attend_queries(x, b)
                             : x->shape.lengths == 2 ? attend_keys(x, b)
                                                     : rows;
        for (int64_t h = 0; h < heads; h++)
            for (int64_t m = 0; m < live; m++)
                for (int64_t d = 0; d < cols; d++) {
                    const int64_t at = ((b * heads + h) * rows + m) * cols + d;
                    check_near(attend_names[i], at, (double)*attend_cell(x, i, b, h, m, d),
                               (double)want[at].value, (double)want[at].error * EPS + 1e-30);
                }
    }
}

/* Gradients of repeated biases and sinks are sums over what they repeat. */
static void compare_sums(const attend *x, int i, const oracle_number *want)
{
    const attend_array *a = &x->a[i];
    oracle_number *sum = zeros(a->extent, sizeof *sum);
    const int64_t *n = a->count, terms = n[0] * n[1] * n[2] * n[3];
    for (int64_t at = 0; at < terms; at++) {
        const int64_t b = at / (n[1] * n[2] * n[3]), h = at / (n[2] * n[3]) % n[1],
                      m = at / n[3] % n[2], d = at % n[3];
        oracle_number *s =
            sum + b * a->stride[0] + h * a->stride[1] + m * a->stride[2] + d * a->stride[3];
        s->value += want[at].value;
        s->error += want[at].error + (long double)terms * fabsl(want[at].value);
    }
    for (int64_t at = 0; at < terms; at++) {
        const int64_t b = at / (n[1] * n[2] * n[3]), h = at / (n[2] * n[3]) % n[1],
                      m = at / n[3] % n[2], d = at % n[3];
        const oracle_number *s =
            sum + b * a->stride[0] + h * a->stride[1] + m * a->stride[2] + d * a->stride[3];
        check_near(attend_names[i], at, (double)*attend_cell(x, i, b, h, m, d), (double)s->value,
                   (double)s->error * EPS + 1e-30);
    }
    free(sum);
}

void check_attend_oracle(const attend *x)
{
    const attend_shape *s = &x->shape;
    const int64_t b = s->batch, h = s->heads, hk = s->key_heads, m = s->queries, n = s->keys,
                  d = s->width, e = s->value_width;
    int64_t query_count[8], key_count[8];
    for (int64_t i = 0; i < b; i++) {
        query_count[i] = attend_queries(x, i);
        key_count[i] = attend_keys(x, i);
    }
    double *in[INPUTS] = {dense(x, Q, h, m, d),     dense(x, K, hk, n, d),
                          dense(x, V, hk, n, e),    dense(x, BIAS, h, m, n),
                          dense(x, SLOPE, h, 1, 1), dense(x, SINK, h, 1, 1),
                          dense(x, DOUT, h, m, e),  dense(x, DLSE, h, m, 1)};
    const oracle_attention o = {b,
                                h,
                                hk,
                                m,
                                n,
                                d,
                                e,
                                (double)(real)s->scale,
                                (double)(real)s->softcap,
                                s->left,
                                s->right,
                                s->diagonal == SATTN_BOTTOM_RIGHT,
                                query_count,
                                key_count,
                                in[Q],
                                in[K],
                                in[V],
                                in[BIAS],
                                x->mask,
                                in[SLOPE],
                                in[SINK],
                                in[DOUT],
                                in[DLSE]};
    oracle_number *const memory =
        zeros(b * h * m * (2 + e + d + n) + b * hk * n * (d + e) + b * h + 2, sizeof *memory);
    oracle_attention_results y;
    y.out = memory;
    y.lse = y.out + b * h * m * e;
    y.dq = y.lse + b * h * m;
    y.dk = y.dq + b * h * m * d;
    y.dv = y.dk + b * hk * n * d;
    y.dbias = y.dv + b * hk * n * e;
    y.dsink = y.dbias + b * h * m * n;
    y.dscale = y.dsink + b * h;
    oracle_attend(&o, &y);
    compare(x, OUT, y.out, h, m, e);
    compare(x, LSE, y.lse, h, m, 1);
    compare(x, DQ, y.dq, h, m, d);
    compare(x, DK, y.dk, hk, n, d);
    compare(x, DV, y.dv, hk, n, e);
    if (x->a[DBIAS].data)
        compare_sums(x, DBIAS, y.dbias);
    if (x->a[DSINK].data)
        compare_sums(x, DSINK, y.dsink);
    check_near("dscale", 0, (double)*x->a[DSCALE].data, (double)y.dscale->value,
               (double)y.dscale->error * EPS + 1e-30);
    for (int i = 0; i < INPUTS; i++)
        free(in[i]);
    free(memory);
}
