/* SPDX-License-Identifier: BSD-2-Clause */
/* Re-parameterises a mixture for scores with a quadratic term: one LU factorisation a component.
 * The eigenvalues of R = I + S P are those of I + P^1/2 S P^1/2, at least 1. */
#include "check.h"
#include "real.h"
#include "sattn/prompt.h"

#include <math.h>

/* Solves R X = Y, R [d][d] and Y [d][cols] row by row, in place; the log of R's determinant, NaN
 * unless that is positive and finite. */
static double solve(int64_t d, int64_t cols, double *r, double *y)
{
    double log_det = 0;
    int sign = 1;
    for (int64_t k = 0; k < d; k++) {
        int64_t pivot = k;
        for (int64_t i = k + 1; i < d; i++)
            if (fabs(r[i * d + k]) > fabs(r[pivot * d + k]))
                pivot = i;
        for (int64_t j = 0; j < d && pivot != k; j++) {
            const double t = r[k * d + j];
            r[k * d + j] = r[pivot * d + j], r[pivot * d + j] = t;
        }
        for (int64_t j = 0; j < cols && pivot != k; j++) {
            const double t = y[k * cols + j];
            y[k * cols + j] = y[pivot * cols + j], y[pivot * cols + j] = t;
        }
        sign = ((pivot != k) != (r[k * d + k] < 0)) ? -sign : sign;
        log_det += log(fabs(r[k * d + k]));
        for (int64_t i = k + 1; i < d; i++) {
            const double factor = r[i * d + k] / r[k * d + k];
            for (int64_t j = k; j < d; j++)
                r[i * d + j] -= factor * r[k * d + j];
            for (int64_t j = 0; j < cols; j++)
                y[i * cols + j] -= factor * y[k * cols + j];
        }
    }
    for (int64_t i = d - 1; i >= 0; i--)
        for (int64_t j = 0; j < cols; j++) {
            for (int64_t k = i + 1; k < d; k++)
                y[i * cols + j] -= r[i * d + k] * y[k * cols + j];
            y[i * cols + j] /= r[i * d + i];
        }
    return sign > 0 && log_det < INFINITY && log_det > -INFINITY ? log_det : NAN;
}

/* One component: `to` becomes the log weight, the mean and the covariance; r [d][d],
 * y [d][d + 1]. */
static int32_t component(int64_t d, const real *log_weight, const real *mean, const real *s,
                         const real *p, double *r, double *y, double *to)
{
    for (int64_t i = 0; i < d; i++) {
        for (int64_t j = 0; j < d; j++) {
            r[i * d + j] = i == j;
            for (int64_t k = 0; k < d; k++)
                r[i * d + j] += (double)s[i * d + k] * (double)p[k * d + j];
            y[i * (d + 1) + j] = s[i * d + j];
        }
        y[i * (d + 1) + d] = mean[i];
    }
    const double log_det = solve(d, d + 1, r, y);
    if (!(log_det == log_det))
        return SATTN_EVALUE;
    double square = 0;
    for (int64_t i = 0; i < d; i++)
        for (int64_t j = 0; j < d; j++)
            square += (double)mean[i] * (double)p[i * d + j] * y[j * (d + 1) + d];
    to[0] = (double)*log_weight - log_det / 2 - square / 2;
    for (int64_t i = 0; i < d; i++) {
        to[1 + i] = y[i * (d + 1) + d];
        for (int64_t j = 0; j < d; j++)
            to[1 + d + i * d + j] = (y[i * (d + 1) + j] + y[j * (d + 1) + i]) / 2;
    }
    return SATTN_OK;
}

int32_t FN(sattn_quadratic)(int64_t c, int64_t d, const real *log_weight, const real *mean,
                            const real *covariance, const real *quadratic, real *to_log_weight,
                            real *to_mean, real *to_covariance)
{
    int64_t one = 1, all = 1;
    if (c < 0 || d < 0 || c > INT64_MAX - 2 || d > INT64_MAX - 2 || !sattn_grow(&one, d + 2) ||
        !sattn_grow(&one, d + 2) || !sattn_grow(&all, c + 2) || !sattn_grow(&all, one))
        return SATTN_ESIZE;
    /* outputs are required too, and so are looked at as inputs first */
    const sattn_argument all_of_them[] = {
        {.view = {log_weight, {1, 1, c}, {0, 0, 1}}, .bytes = sizeof(real), .required = 1},
        {.view = {mean, {1, c, d}, {0, d, 1}}, .bytes = sizeof(real), .required = 1},
        {.view = {covariance, {1, c, d * d}, {0, d * d, 1}}, .bytes = sizeof(real), .required = 1},
        {.view = {quadratic, {1, d, d}, {0, d, 1}}, .bytes = sizeof(real), .required = 1},
        {.view = {to_log_weight, {1, 1, c}, {0, 0, 1}}, .bytes = sizeof(real), .required = 1},
        {.view = {to_mean, {1, c, d}, {0, d, 1}}, .bytes = sizeof(real), .required = 1},
        {.view = {to_covariance, {1, c, d * d}, {0, d * d, 1}},
         .bytes = sizeof(real),
         .required = 1}};
    int32_t status = sattn_answer(sattn_check_arguments(all_of_them, 7, NULL, 0, NULL, 0));
    if (status == SATTN_OK)
        status = sattn_answer(sattn_check_arguments(all_of_them, 4, all_of_them + 4, 3, NULL, 0));
    for (int64_t k = 0; k < c && status == SATTN_OK; k++)
        status = log_weight[k] < (real)INFINITY ? SATTN_OK : SATTN_EVALUE;
    if (status != SATTN_OK)
        return status;
    const int64_t width = d * d + d + 1;
    double *to = sattn_alloc((c * width + 2 * d * d + d) * (int64_t)sizeof *to);
    if (!to)
        return SATTN_ENOMEM;
    double *r = to + c * width, *y = r + d * d;
    for (int64_t k = 0; k < c && status == SATTN_OK; k++) {
        for (int64_t i = 0; i < width; i++)
            to[k * width + i] = i ? 0 : (double)log_weight[k];
        if (log_weight[k] > -(real)INFINITY)
            status = component(d, log_weight + k, mean + k * d, covariance + k * d * d, quadratic,
                               r, y, to + k * width);
    }
    for (int64_t k = 0; k < c && status == SATTN_OK; k++) {
        to_log_weight[k] = (real)to[k * width];
        for (int64_t i = 0; i < d; i++)
            to_mean[k * d + i] = (real)to[k * width + 1 + i];
        for (int64_t i = 0; i < d * d; i++)
            to_covariance[k * d * d + i] = (real)to[k * width + 1 + d + i];
    }
    sattn_free(to);
    return status;
}
