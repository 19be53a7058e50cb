/* SPDX-License-Identifier: BSD-2-Clause */
/* From moments to parameters: covariances of every kind, their inverse factors, log weights. */
#include "eigen.h"
#include "fit.h"
#include "par.h"

#include <math.h>
#include <string.h>

typedef sattn_em em;

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

static const double *scatter_of(const em *e, int64_t k)
{
    return sattn_em_is_shared(e) ? e->pooled : e->scatter + k * sattn_em_matrix(e);
}

/* Probabilistic principal components (Tipping, Bishop, JRSS B 61, 1999): the likeliest s I + F F'
 * of a scatter has F from its largest eigenpairs and for s the mean of the other eigenvalues.
 * to = s [d], F [d][rank]; scratch 2 d^2 + d */
static void low_rank(const em *e, const double *scatter, double *to, double *scratch)
{
    const int64_t d = e->d, rank = e->p->rank, used = rank < d ? rank : d;
    double *a = scratch, *vector = a + d * d, *value = vector + d * d, rest = 0;
    memcpy(a, scatter, (size_t)(d * d) * sizeof *a);
    sattn_eigen(d, a, value, vector);
    for (int64_t i = used; i < d; i++)
        rest += value[i] > 0 ? value[i] / (double)(d - used) : 0;
    for (int64_t i = 0; i < d; i++) {
        to[i] = rest + e->floor;
        for (int64_t j = 0; j < rank; j++)
            to[d + i * rank + j] =
                j < used && value[j] > rest ? vector[j * d + i] * sqrt(value[j] - rest) : 0;
    }
}

/* S as a matrix, which factor() takes */
static void full_covariance(const em *e, const double *scatter, double *s, double *scratch)
{
    const int64_t d = e->d, rank = e->p->rank;
    const int low = e->p->covariance_kind == SATTN_COVARIANCE_LOW_RANK;
    const double *f = scratch + d;
    if (!low)
        memcpy(s, scatter, (size_t)(d * d) * sizeof *s);
    else
        low_rank(e, scatter, scratch, scratch + d * (1 + rank));
    for (int64_t i = 0; low && i < d; i++)
        for (int64_t j = 0; j < d; j++) {
            s[i * d + j] = i == j ? scratch[i] : 0;
            for (int64_t k = 0; k < rank; k++)
                s[i * d + j] += f[i * rank + k] * f[j * rank + k];
        }
    for (int64_t i = 0; !low && i < d; i++)
        s[i * d + i] += e->floor;
}

static void diagonal_covariance(const em *e, const double *scatter, double *s)
{
    const int64_t d = e->d;
    double mean = 0;
    for (int64_t i = 0; i < d; i++)
        mean += scatter[i] / (double)d;
    for (int64_t i = 0; i < d; i++)
        s[i] = (e->p->covariance_kind == SATTN_COVARIANCE_DIAG ? scatter[i] : mean) + e->floor;
}

void sattn_em_covariance(const em *e, int64_t k, double *to, double *scratch)
{
    const int64_t d = e->d;
    const double *scatter = scatter_of(e, k);
    switch (e->p->covariance_kind) {
    case SATTN_COVARIANCE_ZERO:
        return;
    case SATTN_COVARIANCE_ISOTROPIC:
        diagonal_covariance(e, scatter, scratch);
        to[0] = scratch[0];
        return;
    case SATTN_COVARIANCE_DIAG:
        diagonal_covariance(e, scatter, to);
        return;
    case SATTN_COVARIANCE_LOW_RANK:
        low_rank(e, scatter, to, scratch);
        return;
    default:
        full_covariance(e, scatter, to, scratch);
    }
    if (e->p->covariance_kind != SATTN_COVARIANCE_CHOLESKY)
        return;
    memcpy(scratch, to, (size_t)(d * d) * sizeof *to);
    factor(d, scratch, e->floor, scratch + d * d);
    for (int64_t i = 0; i < d; i++)
        for (int64_t j = 0; j < d; j++)
            to[i * d + j] = j <= i ? scratch[d * d + j * d + i] : 0;
}

/* A dead component keeps its mean and never comes back. */
static void bury(const em *e, int64_t k)
{
    const int64_t size = sattn_em_matrix(e);
    memset(e->scatter + k * size, 0, (size_t)size * sizeof(double));
    e->log_weight[k] = -INFINITY;
}

/* pooled row i: the mean of the scatters, weighted by what their components hold */
static void pool_row(void *context, int64_t i, int32_t thread)
{
    const em *e = context;
    const int64_t size = sattn_em_matrix(e), width = size / e->d;
    double *row = e->pooled + i * width, held = 0;
    (void)thread;
    memset(row, 0, (size_t)width * sizeof *row);
    for (int64_t k = 0; k < e->c; k++)
        held += sattn_em_lives(e, k) ? e->held[k] : 0;
    for (int64_t k = 0; k < e->c; k++)
        for (int64_t j = 0; sattn_em_lives(e, k) && j < width; j++)
            row[j] += e->held[k] / held * e->scatter[k * size + i * width + j];
}

/* Whitening of covariance k: (x - mean)' S^-1 (x - mean) = |whiten x + shift|^2 */
static void whiten(void *context, int64_t k, int32_t thread)
{
    const em *e = context;
    const int64_t d = e->d, size = sattn_em_matrix(e);
    double *w = e->whiten + k * size, *s = sattn_em_scratch(e, thread);
    if (!sattn_em_is_shared(e) && !sattn_em_lives(e, k))
        return;
    e->half_log[k] = 0;
    if (sattn_em_is_full(e)) {
        full_covariance(e, scatter_of(e, k), s, s + size);
        e->half_log[k] = factor(d, s, e->floor, w);
        invert(d, w);
        return;
    }
    diagonal_covariance(e, scatter_of(e, k), s);
    for (int64_t i = 0; i < d; i++) {
        const double deviation = sqrt(s[i]);
        w[i] = 1 / deviation;
        e->half_log[k] += log(deviation);
    }
}

static void finish(void *context, int64_t k, int32_t thread)
{
    const em *e = context;
    const int64_t d = e->d, set = sattn_em_is_shared(e) ? 0 : k;
    const double *w = e->whiten + set * sattn_em_matrix(e), *mean = e->mean + k * d;
    double *shift = e->shift + k * d;
    (void)thread;
    if (!sattn_em_lives(e, k)) {
        bury(e, k);
        return;
    }
    e->log_weight[k] = log(e->held[k] / e->total);
    if (e->p->covariance_kind == SATTN_COVARIANCE_ZERO)
        return;
    e->constant[k] =
        e->log_weight[k] - e->half_log[set] - (double)d * log(2 * 3.14159265358979323846) / 2;
    for (int64_t i = 0; i < d; i++) {
        shift[i] = 0;
        if (sattn_em_is_full(e))
            for (int64_t j = 0; j <= i; j++)
                shift[i] -= w[i * d + j] * mean[j];
        else
            shift[i] = -mean[i] * w[i];
    }
}

void sattn_em_maximise(em *e)
{
    const int zero = e->p->covariance_kind == SATTN_COVARIANCE_ZERO;
    if (!zero && sattn_em_is_shared(e))
        sattn_par_for(e->d, e->threads, pool_row, e);
    if (!zero)
        sattn_par_for(sattn_em_is_shared(e) ? 1 : e->c, e->threads, whiten, e);
    sattn_par_for(e->c, e->threads, finish, e);
}
