/* SPDX-License-Identifier: BSD-2-Clause */
/* The best affine and the best linear predictor of a task, from the moments of its mixture. */
#include "task.h"

#include <string.h>

/* Second moments about `centre` and `value_centre`: zz [N][N], yz [E][N]; returns tr yy. */
static double moments(const sattn_task *t, const double *weight, const double *centre,
                      const double *value_centre, double *zz, double *yz)
{
    const int64_t d = t->width, e = t->value_width;
    double yy = 0;
    for (int64_t c = 0; c < t->components; c++) {
        if (!(weight[c] > 0))
            continue;
        const double *m = t->mean + c * d, *v = t->value_mean + c * e;
        for (int64_t i = 0; i < d; i++)
            for (int64_t j = 0; j <= i; j++)
                zz[i * d + j] += weight[c] * (t->covariance[(c * d + i) * d + j] +
                                              (m[i] - centre[i]) * (m[j] - centre[j]));
        for (int64_t i = 0; i < e; i++) {
            const double away = v[i] - value_centre[i];
            for (int64_t j = 0; j < d; j++)
                yz[i * d + j] += weight[c] * ((t->cross ? t->cross[(c * e + i) * d + j] : 0) +
                                              away * (m[j] - centre[j]));
            yy += weight[c] * away * away;
        }
        yy += t->value_variance ? weight[c] * t->value_variance[c] : 0;
    }
    return yy;
}

int32_t sattn_task_affine_f64(const sattn_task *given, int32_t affine, double *matrix,
                              double *offset, double *risk)
{
    sattn_task t;
    const int32_t status = sattn_task_check(&t, given, 1);
    if (status != SATTN_OK)
        return status;
    if (affine != 0 && affine != 1)
        return SATTN_EOPTION;
    const int64_t c = t.components, d = t.width, e = t.value_width;
    const int64_t count = c + d + e + 2 * d * d + 2 * e * d;
    double *weight = sattn_alloc(count * (int64_t)sizeof(double));
    if (!weight)
        return SATTN_ENOMEM;
    double *centre = weight + c, *value_centre = centre + d, *zz = value_centre + e,
           *factor = zz + d * d, *yz = factor + d * d, *best = yz + e * d;
    memset(weight, 0, (size_t)count * sizeof(double));
    sattn_weights(t.components, t.log_weight, weight);
    for (int64_t k = 0; affine && k < c; k++) {
        for (int64_t i = 0; weight[k] > 0 && i < d; i++)
            centre[i] += weight[k] * t.mean[k * d + i];
        for (int64_t i = 0; weight[k] > 0 && i < e; i++)
            value_centre[i] += weight[k] * t.value_mean[k * e + i];
    }
    double rest = moments(&t, weight, centre, value_centre, zz, yz);
    const int definite = sattn_cholesky(d, zz, 1, factor);
    memcpy(best, yz, (size_t)(e * d) * sizeof(double));
    for (int64_t i = 0; definite && i < e; i++) {
        sattn_solve_lower(d, factor, best + i * d);
        sattn_solve_upper(d, factor, best + i * d);
        for (int64_t j = 0; j < d; j++)
            rest -= best[i * d + j] * yz[i * d + j];
        for (int64_t j = 0; offset && j < d; j++)
            value_centre[i] -= best[i * d + j] * centre[j];
    }
    if (definite && matrix)
        memcpy(matrix, best, (size_t)(e * d) * sizeof(double));
    if (definite && offset)
        memcpy(offset, value_centre, (size_t)e * sizeof(double));
    if (definite && risk)
        *risk = rest;
    sattn_free(weight);
    return definite ? SATTN_OK : SATTN_EVALUE;
}
