/* SPDX-License-Identifier: BSD-2-Clause */
/* What Hessian-vector products and predictions say when there are many of them. */
#include "check.h"
#include "eigen.h"
#include "learn.h"

#include <math.h>
#include <string.h>

/* The numbers of the trained parameters, ascending, where list is not NULL; returns how many. */
static int64_t trained(const sattn_learn_job *job, int64_t *list)
{
    int64_t count = 0;
    for (int i = 0; i < PARTS; i++)
        for (int64_t j = job->part[i]; job->p.trained >> i & 1 && j < job->part[i + 1];
             j++, count++)
            if (list)
                list[count] = j;
    return count;
}

typedef struct {
    int64_t n, count; /* trained parameters, all parameters */
    int64_t *list;
    double *matrix, *vector, *value, *direction, *product;
} problem;

/* The Hessian of the trained parameters, symmetric to the bit; *finite: no entry is NaN or inf */
static int32_t hessian(const problem *s, const sattn_learn *p, const double *parameter, int *finite)
{
    memset(s->direction, 0, (size_t)s->count * sizeof(double));
    for (int64_t i = 0; i < s->n; i++) {
        s->direction[s->list[i]] = 1;
        const int32_t status = sattn_learn_hessian_f64(p, parameter, s->direction, s->product);
        if (status != SATTN_OK)
            return status;
        s->direction[s->list[i]] = 0;
        for (int64_t j = 0; j < s->n; j++)
            s->matrix[i * s->n + j] = s->product[s->list[j]];
    }
    *finite = 1;
    for (int64_t i = 0; i < s->n; i++)
        for (int64_t j = 0; j <= i; j++) {
            double *below = s->matrix + i * s->n + j, *above = s->matrix + j * s->n + i;
            *below = *above = (*below + *above) / 2;
            *finite = *finite && isfinite(*below);
        }
    return SATTN_OK;
}

static void answer(const problem *s, int finite, double *value, double *vector)
{
    if (value)
        memcpy(value, s->value, (size_t)s->n * sizeof(double));
    for (int64_t i = 0; vector && i < s->n; i++) {
        memset(vector + i * s->count, 0, (size_t)s->count * sizeof(double));
        for (int64_t j = 0; j < s->n; j++)
            vector[i * s->count + s->list[j]] = finite ? s->vector[i * s->n + j] : (double)NAN;
    }
}

int32_t sattn_learn_spectrum_f64(const sattn_learn *p, const double *parameter, int64_t *count,
                                 double *value, double *vector)
{
    sattn_learn_job job;
    problem s = {.n = 0};
    int finite = 1;
    int32_t status = sattn_learn_check(&job, p);
    if (status != SATTN_OK)
        return status;
    s.n = trained(&job, NULL);
    s.count = job.part[PARTS];
    if (value || vector) {
        int64_t square = 4 * (int64_t)sizeof(double);
        if (!sattn_grow(&square, s.n + 1) || !sattn_grow(&square, s.count + 1))
            return SATTN_ESIZE;
        const int64_t numbers = 2 * s.n * s.n + 2 * s.n + 2 * s.count;
        s.matrix = sattn_alloc((numbers + 1) * (int64_t)sizeof(double));
        if (!s.matrix)
            return SATTN_ENOMEM;
        s.vector = s.matrix + s.n * s.n;
        s.value = s.vector + s.n * s.n;
        s.direction = s.value + s.n;
        s.product = s.direction + s.count;
        s.list = (int64_t *)(s.product + s.count);
        trained(&job, s.list);
        status = hessian(&s, p, parameter, &finite);
        if (status == SATTN_OK && finite)
            sattn_eigen(s.n, s.matrix, s.value, s.vector);
        for (int64_t i = 0; !finite && i < s.n; i++)
            s.value[i] = (double)NAN;
        if (status == SATTN_OK)
            answer(&s, finite, value, vector);
        sattn_free(s.matrix);
    }
    if (status == SATTN_OK && count)
        *count = s.n;
    return status;
}

int32_t sattn_learn_iterate_f64(const sattn_learn *given, const double *parameter, int64_t steps,
                                double *point, double *moved)
{
    sattn_learn_job job;
    int32_t status = sattn_learn_check(&job, given);
    if (status != SATTN_OK)
        return status;
    const int64_t n = job.p.input_width, queries = job.p.tasks * job.p.queries, all = queries * n;
    if (steps < 0 || n != job.p.output_width)
        return SATTN_ESIZE;
    if (all > 0 && !job.p.input)
        return SATTN_ENULL;
    double *at = sattn_alloc((2 * all + 1) * (int64_t)sizeof(double)), *before = at + all;
    if (!at)
        return SATTN_ENOMEM;
    memcpy(at, job.p.input, (size_t)all * sizeof(double));
    memcpy(before, at, (size_t)all * sizeof(double));
    job.p.input = before;
    for (int64_t i = 0; status == SATTN_OK && i < steps; i++) {
        memcpy(before, at, (size_t)all * sizeof(double));
        status = sattn_learn_predict_f64(&job.p, parameter, at);
    }
    if (status == SATTN_OK && point)
        memcpy(point, at, (size_t)all * sizeof(double));
    for (int64_t q = 0; status == SATTN_OK && moved && q < queries; q++) {
        double squares = 0;
        for (int64_t i = q * n; i < (q + 1) * n; i++)
            squares += (at[i] - before[i]) * (at[i] - before[i]);
        moved[q] = sqrt(squares);
    }
    sattn_free(at);
    return status;
}
