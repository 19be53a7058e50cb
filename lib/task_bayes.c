/* SPDX-License-Identifier: BSD-2-Clause */
/* Bayes predictors. Component c in the coordinates a = L_c^-1 (z - m_c), L_c the Cholesky factor of
 * its covariance: log density -|a|^2 / 2 - log det L_c, mu_c = v_c + (X_c L_c'^-1) a. */
#include "check.h"
#include "par.h"
#include "task.h"

#include <math.h>
#include <string.h>

enum { BLOCK = 64 }; /* queries a task of the team takes */

typedef struct {
    sattn_task t;
    int64_t n, scratch_size;
    const double *z;
    double *predicted, *variance;
    double *factor, *gain;   /* [C][N][N] L, [C][E][N] X L'^-1 */
    double *logit, *residue; /* [C] log pi - log det L, t - |gain|^2 */
    double *scratch;         /* [threads][N + C + C E] */
} bayes;

static int prepare(bayes *b, int64_t c)
{
    const sattn_task *t = &b->t;
    const int64_t d = t->width, e = t->value_width;
    double *factor = b->factor + c * d * d, *gain = b->gain + c * e * d;
    b->logit[c] = t->log_weight[c];
    if (t->log_weight[c] == -(double)INFINITY)
        return 1;
    if (!sattn_cholesky(d, t->covariance + c * d * d, 1, factor))
        return 0;
    for (int64_t i = 0; i < d; i++)
        b->logit[c] -= log(factor[i * d + i]);
    b->residue[c] = t->value_variance ? t->value_variance[c] : 0;
    for (int64_t i = 0; t->cross && i < e; i++) {
        memcpy(gain + i * d, t->cross + (c * e + i) * d, (size_t)d * sizeof(double));
        sattn_solve_lower(d, factor, gain + i * d);
        for (int64_t j = 0; j < d; j++)
            b->residue[c] -= gain[i * d + j] * gain[i * d + j];
    }
    return 1;
}

static void query(const bayes *b, int64_t q, double *a)
{
    const sattn_task *t = &b->t;
    const int64_t d = t->width, e = t->value_width, components = t->components;
    double *weight = a + d, *value = weight + components, most = -(double)INFINITY, sum = 0;
    for (int64_t c = 0; c < components; c++) {
        weight[c] = b->logit[c];
        if (weight[c] == -(double)INFINITY)
            continue;
        for (int64_t i = 0; i < d; i++)
            a[i] = b->z[q * d + i] - t->mean[c * d + i];
        sattn_solve_lower(d, b->factor + c * d * d, a);
        for (int64_t i = 0; i < d; i++)
            weight[c] -= a[i] * a[i] / 2;
        for (int64_t i = 0; i < e; i++) {
            double mu = t->value_mean[c * e + i];
            for (int64_t j = 0; t->cross && j < d; j++)
                mu += b->gain[(c * e + i) * d + j] * a[j];
            value[c * e + i] = mu;
        }
        most = weight[c] > most || isnan(weight[c]) ? weight[c] : most;
    }
    for (int64_t c = 0; c < components; c++)
        sum += weight[c] = b->logit[c] == -(double)INFINITY ? 0 : exp(weight[c] - most);
    double variance = 0, mean;
    for (int64_t i = 0; i < e; i++) {
        mean = 0;
        for (int64_t c = 0; c < components; c++)
            mean += weight[c] > 0 || isnan(weight[c]) ? weight[c] / sum * value[c * e + i] : 0;
        if (b->predicted)
            b->predicted[q * e + i] = mean;
        for (int64_t c = 0; c < components; c++) {
            const double away = weight[c] > 0 || isnan(weight[c]) ? value[c * e + i] - mean : 0;
            variance += weight[c] / sum * away * away;
        }
    }
    for (int64_t c = 0; c < components; c++)
        variance += weight[c] > 0 || isnan(weight[c]) ? weight[c] / sum * b->residue[c] : 0;
    if (b->variance)
        b->variance[q] = variance;
}

static void block(void *context, int64_t task, int32_t thread)
{
    const bayes *b = context;
    for (int64_t q = task * BLOCK; q < b->n && q < (task + 1) * BLOCK; q++)
        query(b, q, b->scratch + thread * b->scratch_size);
}

int32_t sattn_task_bayes_f64(const sattn_task *given, int64_t n, const double *z, double *predicted,
                             double *variance)
{
    bayes b = {.n = n, .z = z, .predicted = predicted, .variance = variance};
    int32_t status = sattn_task_check(&b.t, given, 1);
    if (status != SATTN_OK)
        return status;
    const int64_t c = b.t.components, d = b.t.width, e = b.t.value_width;
    int64_t inputs = n, outputs = n;
    if (!sattn_grow(&inputs, d) || !sattn_grow(&outputs, e))
        return SATTN_ESIZE;
    if (n > 0 && !z)
        return SATTN_ENULL;
    const int32_t threads = n * c * d * d < 1 << 16 ? 1 : sattn_par_threads(b.t.threads);
    b.scratch_size = d + c + c * e;
    const int64_t constants = c * d * d + c * e * d + 2 * c;
    b.factor = sattn_alloc((constants + threads * b.scratch_size) * (int64_t)sizeof(double));
    if (!b.factor)
        return SATTN_ENOMEM;
    b.gain = b.factor + c * d * d;
    b.logit = b.gain + c * e * d;
    b.residue = b.logit + c;
    b.scratch = b.residue + c;
    for (int64_t i = 0; status == SATTN_OK && i < c; i++)
        status = prepare(&b, i) ? SATTN_OK : SATTN_EVALUE;
    if (status == SATTN_OK)
        sattn_par_for((n + BLOCK - 1) / BLOCK, threads, block, &b);
    sattn_free(b.factor);
    return status;
}
