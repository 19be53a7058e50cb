/* SPDX-License-Identifier: BSD-2-Clause */
/* Moments of a component under its responsibilities: what it holds, mean, scatter about the mean.
 */
#include "fit.h"

#include <math.h>
#include <string.h>

typedef sattn_em em;
typedef struct sattn_gemm_f64 gemm;

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

/* From deviations from the mean; tokens that the component does not touch are left out. */
static void full_scatter(const em *e, const double *r, double held, const double *mean, double *s,
                         double *x)
{
    const int64_t d = e->d;
    memset(s, 0, (size_t)(d * d) * sizeof(double));
    for (int64_t block = 0; block < e->blocks; block++) {
        const int64_t first = block * SATTN_EM_BLOCK, end = first + sattn_em_count(e, block);
        int64_t used = 0;
        for (int64_t q = first; q < end; q++) {
            const double root = sqrt(r[q]);
            if (root == 0)
                continue;
            const double *token = e->token + (e->first + q) * d;
            for (int64_t i = 0; i < d; i++)
                x[used * d + i] = (token[i] - mean[i]) * root;
            used++;
        }
        add_squares(d, used, x, s);
    }
    for (int64_t i = 0; i < d; i++)
        for (int64_t j = 0; j <= i; j++)
            s[i * d + j] = s[j * d + i] = s[i * d + j] / held;
}

static void diagonal_scatter(const em *e, const double *r, double held, const double *mean,
                             double *s)
{
    const int64_t d = e->d;
    memset(s, 0, (size_t)d * sizeof(double));
    for (int64_t q = 0; q < e->count; q++) {
        const double *token = e->token + (e->first + q) * d;
        for (int64_t i = 0; i < d && r[q] > 0; i++) {
            const double y = token[i] - mean[i];
            s[i] += r[q] * y * y;
        }
    }
    for (int64_t i = 0; i < d; i++)
        s[i] /= held;
}

void sattn_em_moments(void *context, int64_t k, int32_t thread)
{
    const em *e = context;
    const int64_t d = e->d;
    const double *r = e->weight + k * e->window, *x = e->token + e->first * d;
    double *mean = e->mean + k * d, *s = e->scatter + k * sattn_em_matrix(e);
    double held = 0;
    for (int64_t q = 0; q < e->count; q++)
        held += r[q];
    e->held[k] = held;
    if (!sattn_em_lives(e, k))
        return;
    sattn_em_row()->gemm(&(gemm){1, d, e->count, r, 0, 1, x, d, mean, d, NULL, 0, 0});
    for (int64_t i = 0; i < d; i++)
        mean[i] /= held;
    if (e->p->covariance_kind == SATTN_COVARIANCE_ZERO)
        return;
    if (sattn_em_is_full(e))
        full_scatter(e, r, held, mean, s, sattn_em_scratch(e, thread));
    else
        diagonal_scatter(e, r, held, mean, s);
}
