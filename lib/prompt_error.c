/* SPDX-License-Identifier: BSD-2-Clause */
/* The error of a finite prompt, from the mixture at u and at 2 u: forward at both, and the
 * quadratic forms v'H(2 u) v of the rows v of the value map by second derivatives. */
#include "check.h"
#include "mixture.h"
#include "real.h"
#include "sattn/prompt.h"

#include <math.h>
#include <stddef.h>

/* Packed rows of queries */
typedef struct {
    const real *map; /* or NULL */
    int64_t rows, d, queries;
    real *twice, *out, *stats, *out2, *stats2, *direction, *jvp;
} arrays;

static double entry(const arrays *a, int64_t row, int64_t i)
{
    return a->map ? (double)a->map[row * a->d + i] : row == i;
}

/* Logarithm of the sum of the weights of batch entry b, -inf if there are none */
static double log_total(const sattn_mixture *p, int64_t b)
{
    const real *l = sattn_from(p->log_weight, b * p->log_weight_batch);
    double top = -INFINITY, sum = 0;
    for (int64_t c = 0; c < p->components; c++)
        top = (double)l[c] > top ? (double)l[c] : top;
    for (int64_t c = 0; c < p->components && top > -INFINITY; c++)
        sum += exp((double)l[c] - top);
    return top > -INFINITY ? top + log(sum) : top;
}

static int32_t run(sattn_mixture *q, const arrays *a, const real *tilt, real *out, real *stats)
{
    q->tilt = tilt, q->out = out, q->stats = stats;
    q->tilt_row = q->out_row = a->d;
    q->tilt_batch = q->out_batch = q->queries * a->d;
    q->stats_batch = 2 * q->queries;
    return FN(sattn_mixture_forward)(q);
}

/* sum_i v_i x_i for row v of the map */
static double project(const arrays *a, int64_t row, const real *x, const real *minus)
{
    double sum = 0;
    for (int64_t i = 0; i < a->d; i++)
        sum += entry(a, row, i) * ((double)x[i] - (minus ? (double)minus[i] : 0));
    return sum;
}

/* f, and f - 1 in *rest; 0 for a mixture without a component */
static double inflation(const arrays *a, int64_t q, double total, double *rest)
{
    const real *one = a->stats + 2 * q, *two = a->stats2 + 2 * q;
    const double log_f =
        total + ((double)two[0] - 2 * (double)one[0]) + ((double)two[1] - 2 * (double)one[1]);
    *rest = total > -INFINITY ? expm1(log_f) : 0;
    return total > -INFINITY ? exp(log_f) : 0;
}

static int32_t measure(sattn_mixture *q, const arrays *a, const real *tilt, real *mse, real *bias,
                       real *variance)
{
    for (int64_t i = 0; i < a->queries * a->d; i++)
        a->twice[i] = 2 * tilt[i];
    int32_t status = run(q, a, tilt, a->out, a->stats);
    if (status == SATTN_OK)
        status = run(q, a, a->twice, a->out2, a->stats2);
    for (int64_t i = 0; i < a->queries && status == SATTN_OK; i++) {
        double rest;
        const double f = inflation(a, i, log_total(q, i / q->queries), &rest);
        if (variance)
            variance[i] = (real)rest;
        if (mse)
            mse[i] = 0;
        for (int64_t row = 0; row < a->rows; row++) {
            const double move = project(a, row, a->out2 + i * a->d, a->out + i * a->d);
            if (bias)
                bias[i * a->rows + row] = (real)(-f * move);
            if (mse)
                mse[i] += (real)(f * move * move);
        }
    }
    for (int64_t row = 0; row < a->rows && mse && status == SATTN_OK; row++) {
        for (int64_t i = 0; i < a->queries * a->d; i++)
            a->direction[i] = (real)entry(a, row, i % a->d);
        status = FN(sattn_mixture_second)(q, a->direction, a->jvp, NULL);
        for (int64_t i = 0; i < a->queries && status == SATTN_OK; i++) {
            double rest;
            const double f = inflation(a, i, log_total(q, i / q->queries), &rest);
            mse[i] += (real)(f * project(a, row, a->jvp + i * a->d, NULL));
        }
    }
    return status;
}

static int32_t check(const sattn_mixture *p, const arrays *a, const real *mse, const real *bias,
                     const real *variance)
{
    const int64_t b = p->batch, m = p->queries, d = p->width, c = p->components;
    const int64_t s = sattn_covariance_count(p) * sattn_covariance_width(p);
    const int64_t bytes = sizeof(real);
    const sattn_argument in[] = {
        {.view = {a->map, {1, a->map ? a->rows : 0, d}, {0, d, 1}}, .bytes = bytes},
        {.view = {p->tilt, {b, m, d}, {p->tilt_batch, p->tilt_row, 1}}, .bytes = bytes},
        {.view = {p->log_weight, {b, 1, c}, {p->log_weight_batch, 0, 1}}, .bytes = bytes},
        {.view = {p->mean, {b, 1, c * d}, {p->mean_batch, 0, 1}}, .bytes = bytes},
        {.view = {p->covariance, {b, 1, s}, {p->covariance_batch, 0, 1}}, .bytes = bytes}};
    const sattn_argument out[] = {
        {.view = {mse, {1, 1, b * m}, {0, 0, 1}}, .bytes = bytes},
        {.view = {bias, {1, b * m, a->rows}, {0, a->rows, 1}}, .bytes = bytes},
        {.view = {variance, {1, 1, b * m}, {0, 0, 1}}, .bytes = bytes}};
    return sattn_check_arguments(in, 5, out, 3, NULL, 0);
}

int32_t FN(sattn_prompt_error)(const sattn_mixture *given, const real *map, int64_t rows, real *mse,
                               real *bias, real *variance)
{
    sattn_mixture p;
    int32_t status = sattn_mixture_check(&p, given, SATTN_SHAPE, sizeof(real));
    if (status != SATTN_OK)
        return status;
    int64_t all = p.batch, elements = p.batch, map_size = rows;
    if (rows < 0 || (!map && rows != p.width) || !sattn_grow(&all, p.queries) ||
        !sattn_grow(&elements, p.queries) || !sattn_grow(&elements, sattn_plus(p.width, 1)) ||
        !sattn_grow(&elements, 6) || !sattn_grow(&map_size, sattn_plus(p.width, 1)) ||
        !sattn_grow(&map_size, sattn_plus(p.queries, 1)) ||
        !sattn_grow(&map_size, sattn_plus(p.batch, 1)))
        return SATTN_ESIZE;
    if (p.value_width)
        return SATTN_EOPTION;
    p.size = sizeof p;
    p.out = p.stats = p.cgf = p.weight = p.work = NULL;
    p.dtilt = p.dlog_weight = p.dmean = p.dcovariance = NULL;
    p.dout = p.dcgf = NULL;
    arrays a = {.map = map, .rows = rows, .d = p.width, .queries = all};
    sattn_mixture checked;
    status = sattn_answer(sattn_mixture_check(&checked, &p, SATTN_FORWARD, sizeof(real)));
    if (status == SATTN_OK)
        status = check(&p, &a, mse, bias, variance);
    if (status != SATTN_OK)
        return sattn_answer(status);
    real *tilt = sattn_alloc(elements * (int64_t)sizeof(real));
    if (!tilt)
        return SATTN_ENOMEM;
    a.twice = tilt + all * a.d, a.out = a.twice + all * a.d, a.out2 = a.out + all * a.d;
    a.direction = a.out2 + all * a.d, a.jvp = a.direction + all * a.d;
    a.stats = a.jvp + all * a.d, a.stats2 = a.stats + 2 * all;
    for (int64_t i = 0; i < all * a.d; i++) {
        const int64_t q = i / a.d;
        tilt[i] = ((const real *)
                       p.tilt)[q / p.queries * p.tilt_batch + q % p.queries * p.tilt_row + i % a.d];
    }
    status = measure(&p, &a, tilt, mse, bias, variance);
    sattn_free(tilt);
    return status;
}
