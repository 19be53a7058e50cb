/* SPDX-License-Identifier: BSD-2-Clause */
#include "task.h"
#include "check.h"
#include "par.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

enum { LEAST_SIZE = offsetof(sattn_task, value_variance) + sizeof(double *) };

static int32_t check_shape(const sattn_task *t)
{
    int64_t covariances = 1, crosses = 1;
    if (t->components < 1 || t->width < 1 || t->value_width < 0 || t->components > INT32_MAX ||
        !sattn_grow(&covariances, t->components) || !sattn_grow(&covariances, t->width) ||
        !sattn_grow(&covariances, 2 * t->width) || !sattn_grow(&crosses, t->components) ||
        !sattn_grow(&crosses, sattn_plus(t->value_width, 1)) || !sattn_grow(&crosses, t->width))
        return SATTN_ESIZE;
    return SATTN_OK;
}

int32_t sattn_task_init(sattn_task *t, int64_t size, int64_t components, int64_t width,
                        int64_t value_width)
{
    int32_t status = sattn_check_init(t, size, LEAST_SIZE);
    if (status != SATTN_OK)
        return status;
    const sattn_task filled = {
        .size = size, .components = components, .width = width, .value_width = value_width};
    status = check_shape(&filled);
    if (status != SATTN_OK)
        return status;
    sattn_fill(t, size, &filled, sizeof filled);
    return SATTN_OK;
}

int32_t sattn_task_check(sattn_task *t, const sattn_task *given, int targets)
{
    int32_t status = sattn_check_struct(t, given, sizeof *t, LEAST_SIZE);
    if (status == SATTN_OK)
        status = check_shape(t);
    if (status == SATTN_OK)
        status = sattn_par_check(t->threads);
    if (status != SATTN_OK)
        return status;
    if (t->reserved != 0)
        return SATTN_EOPTION;
    if (!t->log_weight || !t->mean || !t->covariance ||
        (targets && t->value_width && !t->value_mean))
        return SATTN_ENULL;
    return sattn_check_weights(t->components, t->log_weight);
}

int32_t sattn_check_weights(int64_t n, const double *log_weight)
{
    int present = 0;
    for (int64_t c = 0; c < n; c++) {
        if (isnan(log_weight[c]) || log_weight[c] == (double)INFINITY)
            return SATTN_EVALUE;
        present |= log_weight[c] > -(double)INFINITY;
    }
    return present ? SATTN_OK : SATTN_EVALUE;
}

void sattn_weights(int64_t n, const double *log_weight, double *weight)
{
    double most = -(double)INFINITY, sum = 0;
    for (int64_t c = 0; c < n; c++)
        most = fmax(most, log_weight[c]);
    for (int64_t c = 0; c < n; c++)
        sum += weight[c] = exp(log_weight[c] - most);
    for (int64_t c = 0; c < n; c++)
        weight[c] /= sum;
}

void sattn_weights_below(int64_t n, const double *weight, double *below)
{
    double sum = 0;
    int64_t last = 0;
    for (int64_t c = 0; c < n; c++) {
        last = weight[c] > 0 ? c : last;
        below[c] = sum += weight[c];
    }
    for (int64_t c = last; c < n; c++)
        below[c] = (double)INFINITY;
}

int64_t sattn_pick(int64_t n, const double *below, double u)
{
    int64_t from = 0, end = n - 1;
    while (from < end) {
        const int64_t middle = from + (end - from) / 2;
        if (u <= below[middle])
            end = middle;
        else
            from = middle + 1;
    }
    return from;
}

/* Pivots below this share of their diagonal element are rounding: d 2^-50 would do. */
static const double rounding = 0x1p-40;

int sattn_cholesky(int64_t d, const double *s, int definite, double *factor)
{
    for (int64_t i = 0; i < d; i++) {
        double *row = factor + i * d;
        for (int64_t j = 0; j <= i; j++) {
            const double *other = factor + j * d;
            double x = s[i * d + j];
            for (int64_t k = 0; k < j; k++)
                x -= row[k] * other[k];
            if (j < i) {
                row[j] = other[j] > 0 ? x / other[j] : 0;
                continue;
            }
            const double least = definite ? 0 : -rounding * fabs(s[i * d + i]);
            if (!(definite ? x > least : x >= least) || !isfinite(x))
                return 0;
            row[i] = !definite && x <= -least ? 0 : sqrt(x);
        }
        memset(row + i + 1, 0, (size_t)(d - i - 1) * sizeof(double));
    }
    return 1;
}

void sattn_solve_lower(int64_t d, const double *factor, double *x)
{
    for (int64_t i = 0; i < d; i++) {
        for (int64_t k = 0; k < i; k++)
            x[i] -= factor[i * d + k] * x[k];
        x[i] = factor[i * d + i] > 0 ? x[i] / factor[i * d + i] : 0;
    }
}

void sattn_solve_upper(int64_t d, const double *factor, double *x)
{
    for (int64_t i = d - 1; i >= 0; i--) {
        x[i] /= factor[i * d + i];
        for (int64_t k = 0; k < i; k++)
            x[k] -= factor[i * d + k] * x[i];
    }
}

int32_t sattn_task_begin(const sattn_task *t, double **weight, double **factor)
{
    const int64_t c = t->components, d = t->width;
    *weight = sattn_alloc((c + c * d * d) * (int64_t)sizeof(double));
    if (!*weight)
        return SATTN_ENOMEM;
    *factor = *weight + c;
    sattn_weights(c, t->log_weight, *weight);
    for (int64_t k = 0; k < c; k++)
        if ((*weight)[k] > 0 &&
            !sattn_cholesky(d, t->covariance + k * d * d, 0, *factor + k * d * d)) {
            sattn_free(*weight);
            return SATTN_EVALUE;
        }
    return SATTN_OK;
}

void sattn_task_place(int64_t d, const double *mean, const double *factor, const double *x,
                      double *point)
{
    for (int64_t i = 0; i < d; i++) {
        double sum = mean[i];
        for (int64_t j = 0; j <= i; j++)
            sum += factor[i * d + j] * x[j];
        point[i] = sum;
    }
}
