/* SPDX-License-Identifier: BSD-2-Clause */
/* Points of a task's queries: tensor rules and seeded draws. */
#include "check.h"
#include "sattn/random.h"
#include "task.h"

#include <string.h>

/* Weights [C] and factors [C][N][N] of the components that are present, in one allocation. */
static int32_t begin(const sattn_task *t, double **weight, double **factor)
{
    const int64_t c = t->components, d = t->width;
    *weight = sattn_alloc((c + c * d * d) * (int64_t)sizeof(double));
    if (!*weight)
        return SATTN_ENOMEM;
    *factor = *weight + c;
    sattn_task_weights(t, *weight);
    for (int64_t k = 0; k < c; k++)
        if ((*weight)[k] > 0 &&
            !sattn_cholesky(d, t->covariance + k * d * d, 0, *factor + k * d * d)) {
            sattn_free(*weight);
            return SATTN_EVALUE;
        }
    return SATTN_OK;
}

/* point = m + L x */
static void place(int64_t d, const double *mean, const double *factor, const double *x,
                  double *point)
{
    for (int64_t i = 0; i < d; i++) {
        double sum = mean[i];
        for (int64_t j = 0; j <= i; j++)
            sum += factor[i * d + j] * x[j];
        point[i] = sum;
    }
}

int32_t sattn_task_quadrature_f64(const sattn_task *given, int64_t n, const double *node,
                                  const double *weight, double *point, double *point_weight)
{
    sattn_task t;
    int32_t status = sattn_task_check(&t, given, 0);
    if (status != SATTN_OK)
        return status;
    const int64_t d = t.width;
    int64_t count = 1, elements = t.components;
    int fits = n >= 1;
    for (int64_t i = 0; fits && i < d && (n > 1 || i < 1); i++)
        fits = sattn_grow(&count, n);
    if (!fits || !sattn_grow(&elements, count) || !sattn_grow(&elements, d))
        return SATTN_ESIZE;
    if (!node || !weight || !point || !point_weight)
        return SATTN_ENULL;
    double *share, *factor, *x = sattn_alloc(d * (int64_t)sizeof(double));
    if (!x)
        return SATTN_ENOMEM;
    status = begin(&t, &share, &factor);
    for (int64_t k = 0; status == SATTN_OK && k < t.components; k++)
        for (int64_t p = 0; p < count; p++) {
            double *at = point + (k * count + p) * d, mass = share[k];
            for (int64_t i = d - 1, rest = p; i >= 0; i--, rest /= n) {
                x[i] = node[rest % n];
                mass *= weight[rest % n];
            }
            if (share[k] > 0)
                place(d, t.mean + k * d, factor + k * d * d, x, at);
            else
                memset(at, 0, (size_t)d * sizeof(double));
            point_weight[k * count + p] = mass;
        }
    if (status == SATTN_OK)
        sattn_free(share);
    sattn_free(x);
    return status;
}

int32_t sattn_task_draw_f64(const sattn_task *given, uint64_t seed, uint64_t stream, int64_t first,
                            int64_t n, double *point, int32_t *component)
{
    sattn_task t;
    int32_t status = sattn_task_check(&t, given, 0);
    if (status != SATTN_OK)
        return status;
    const int64_t d = t.width, end = (int64_t)1 << 62;
    if (n < 0 || first < 0 || first > end - n - 1 || first + n > (end - 1) / d)
        return SATTN_ESIZE;
    if (stream >> 63)
        return SATTN_EVALUE;
    if (n > 0 && !point)
        return SATTN_ENULL;
    double *share, *factor, *x = sattn_alloc(d * (int64_t)sizeof(double));
    if (!x)
        return SATTN_ENOMEM;
    status = begin(&t, &share, &factor);
    for (int64_t i = 0; status == SATTN_OK && i < n; i++) {
        double u, below = 0;
        sattn_random_uniform_f64(seed, 2 * stream, first + i, 1, &u);
        sattn_random_normal_f64(seed, 2 * stream + 1, (first + i) * d, d, x);
        int64_t last = 0;
        for (int64_t k = 0; k < t.components && below < u; k++)
            if (share[k] > 0) {
                below += share[k];
                last = k;
            }
        place(d, t.mean + last * d, factor + last * d * d, x, point + i * d);
        if (component)
            component[i] = (int32_t)last;
    }
    if (status == SATTN_OK)
        sattn_free(share);
    sattn_free(x);
    return status;
}
