/* SPDX-License-Identifier: BSD-2-Clause */
/* The M-step of one component: weight, mean, covariance plus floor, and its inverse factor. */
#include "fit.h"

#include <math.h>
#include <string.h>

typedef sattn_em em;
typedef struct sattn_gemm_f64 gemm;

static const double least_count = 1e-8; /* a component that holds less of one token is dead */

/* S = U' U, U in the upper triangle of w; returns the sum of log U_ii. A pivot lost to rounding is
 * taken as the floor. By rows, as those of the inverse below: the inner loops run along a row. */
static double factor(int64_t d, const double *s, double floor, double *w)
{
    double log_determinant = 0;
    for (int64_t i = 0; i < d; i++) {
        double *row = w + i * d;
        memcpy(row + i, s + i * d + i, (size_t)(d - i) * sizeof(double));
        for (int64_t k = 0; k < i; k++) {
            const double x = w[k * d + i];
            for (int64_t j = i; j < d; j++)
                row[j] -= x * w[k * d + j];
        }
        row[i] = sqrt(row[i] > floor / 2 ? row[i] : floor);
        for (int64_t j = i + 1; j < d; j++)
            row[j] /= row[i];
        log_determinant += log(row[i]);
    }
    return log_determinant;
}

/* The inverse of U', a lower triangle, in place of U. Row i needs column i of U and the rows of the
 * inverse above, so that neither is in the way of the other. */
static void invert(int64_t d, double *w)
{
    for (int64_t i = 0; i < d; i++) {
        double *row = w + i * d;
        const double inverse = 1 / row[i];
        memset(row, 0, (size_t)i * sizeof(double));
        for (int64_t k = 0; k < i; k++) {
            const double x = w[k * d + i];
            for (int64_t j = 0; j <= k; j++)
                row[j] -= x * w[k * d + j];
        }
        for (int64_t j = 0; j < i; j++)
            row[j] *= inverse;
        row[i] = inverse;
    }
    for (int64_t i = 0; i < d; i++)
        memset(w + i * d + i + 1, 0, (size_t)(d - i - 1) * sizeof(double));
}

/* s += X' X of `count` rows of x: the lower triangle by strips of eight rows */
static void add_squares(int64_t d, int64_t count, const double *x, double *s)
{
    enum { STRIP = 8 };
    for (int64_t i = 0; i < d; i += STRIP) {
        const int64_t rows = d - i < STRIP ? d - i : STRIP;
        double *strip = s + i * d;
        sattn_em_row()->gemm(
            &(gemm){rows, i + rows, count, x + i, 1, d, x, d, strip, d, strip, d, 1});
    }
}

/* scatter / count + floor, from deviations from the mean; tokens that the component does not touch
 * are left out */
static void full_covariance(const em *e, int64_t k, double *x)
{
    const int64_t d = e->d, n = e->n;
    const double *r = e->weight + k * n, *mean = e->mean + k * d;
    double *s = e->covariance + k * d * d;
    memset(s, 0, (size_t)(d * d) * sizeof(double));
    for (int64_t block = 0; block < e->blocks; block++) {
        const int64_t first = block * SATTN_EM_BLOCK, end = first + sattn_em_count(e, block);
        int64_t used = 0;
        for (int64_t q = first; q < end; q++) {
            const double root = sqrt(r[q]);
            if (root == 0)
                continue;
            for (int64_t i = 0; i < d; i++)
                x[used * d + i] = (e->token[q * d + i] - mean[i]) * root;
            used++;
        }
        add_squares(d, used, x, s);
    }
    for (int64_t i = 0; i < d; i++) {
        for (int64_t j = 0; j <= i; j++)
            s[i * d + j] = s[j * d + i] = s[i * d + j] / e->count[k];
        s[i * d + i] += e->floor;
    }
}

static void diagonal_covariance(const em *e, int64_t k)
{
    const int64_t d = e->d, n = e->n;
    const double *r = e->weight + k * n, *mean = e->mean + k * d;
    double *s = e->covariance + k * d;
    memset(s, 0, (size_t)d * sizeof(double));
    for (int64_t q = 0; q < n; q++)
        for (int64_t i = 0; i < d && r[q] > 0; i++) {
            const double y = e->token[q * d + i] - mean[i];
            s[i] += r[q] * y * y;
        }
    for (int64_t i = 0; i < d; i++)
        s[i] = s[i] / e->count[k] + e->floor;
}

static void mean_of(const em *e, int64_t k)
{
    const double *r = e->weight + k * e->n;
    double *mean = e->mean + k * e->d;
    sattn_em_row()->gemm(&(gemm){1, e->d, e->n, r, 0, 1, e->token, e->d, mean, e->d, NULL, 0, 0});
    for (int64_t i = 0; i < e->d; i++)
        mean[i] /= e->count[k];
}

/* A dead component keeps its mean and never comes back. */
static void bury(const em *e, int64_t k)
{
    const int64_t d = e->d, step = sattn_em_is_full(e) ? d + 1 : 1;
    const int64_t size = d * (sattn_em_is_full(e) ? d : 1);
    double *s = e->covariance + k * size;
    memset(s, 0, (size_t)size * sizeof(double));
    for (int64_t i = 0; i < d; i++)
        s[i * step] = e->floor;
    e->log_weight[k] = -INFINITY;
}

/* Whitening of the component: (x - mean)' S^-1 (x - mean) = |whiten x + shift|^2. Returns
 * log determinant / 2. */
static double whiten(const em *e, int64_t k)
{
    const int64_t d = e->d;
    const double *mean = e->mean + k * d;
    double *shift = e->shift + k * d, log_determinant = 0;
    if (sattn_em_is_full(e)) {
        double *w = e->whiten + k * d * d;
        log_determinant = factor(d, e->covariance + k * d * d, e->floor, w);
        invert(d, w);
        for (int64_t i = 0; i < d; i++) {
            shift[i] = 0;
            for (int64_t j = 0; j <= i; j++)
                shift[i] -= w[i * d + j] * mean[j];
        }
        return log_determinant;
    }
    for (int64_t i = 0; i < d; i++) {
        const double deviation = sqrt(e->covariance[k * d + i]);
        e->whiten[k * d + i] = 1 / deviation;
        shift[i] = -mean[i] / deviation;
        log_determinant += log(deviation);
    }
    return log_determinant;
}

void sattn_em_maximise(void *context, int64_t k, int32_t thread)
{
    const em *e = context;
    if (!(e->count[k] > least_count)) {
        bury(e, k);
        return;
    }
    mean_of(e, k);
    e->log_weight[k] = log(e->count[k] / (double)e->n);
    if (e->p->covariance_kind == SATTN_COVARIANCE_ZERO)
        return;
    if (sattn_em_is_full(e))
        full_covariance(e, k, sattn_em_scratch(e, thread));
    else
        diagonal_covariance(e, k);
    e->constant[k] =
        e->log_weight[k] - whiten(e, k) - (double)e->d * log(2 * 3.14159265358979323846) / 2;
}
