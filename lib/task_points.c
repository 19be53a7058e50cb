/* SPDX-License-Identifier: BSD-2-Clause */
/* Points of a task's queries: tensor rules. */
#include "check.h"
#include "task.h"

#include <string.h>

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
    status = sattn_task_begin(&t, &share, &factor);
    for (int64_t k = 0; status == SATTN_OK && k < t.components; k++)
        for (int64_t p = 0; p < count; p++) {
            double *at = point + (k * count + p) * d, mass = share[k];
            for (int64_t i = d - 1, rest = p; i >= 0; i--, rest /= n) {
                x[i] = node[rest % n];
                mass *= weight[rest % n];
            }
            if (share[k] > 0)
                sattn_task_place(d, t.mean + k * d, factor + k * d * d, x, at);
            else
                memset(at, 0, (size_t)d * sizeof(double));
            point_weight[k * count + p] = mass;
        }
    if (status == SATTN_OK)
        sattn_free(share);
    sattn_free(x);
    return status;
}
