/* SPDX-License-Identifier: BSD-2-Clause */
/* Losses of one query: value, gradient and Hessian product with respect to the prediction f, and
 * the least value over all f. */
#include "learn.h"

#include <math.h>

static double weight_of(const sattn_learn *p, int64_t q)
{
    return p->weight ? p->weight[q] : 1 / (double)(p->tasks * p->queries);
}

static double squared(int64_t e, const double *t, double weight, const double *f, double *g,
                      double *curvature)
{
    double loss = 0;
    for (int64_t i = 0; i < e; i++) {
        const double away = f[i] - t[i];
        loss += away * away;
        g[i] = 2 * weight * away;
        if (curvature)
            curvature[i] *= 2 * weight;
    }
    return loss;
}

static double logistic(const double *t, double weight, const double *f, double *g,
                       double *curvature)
{
    const double x = f[0], tail = exp(-fabs(x)); /* sigma(x) = 1 or tail over 1 + tail */
    const double loss = fmax(x, 0) + log1p(tail) - t[0] * x;
    g[0] = weight * ((x > 0 ? 1 : tail) / (1 + tail) - t[0]);
    if (curvature)
        curvature[0] *= weight * (tail / ((1 + tail) * (1 + tail)));
    return isnan(x) ? x : loss;
}

/* With p = softmax f and T = sum t: gradient T p - t, Hessian T (diag p - p p'). */
static double categorical(int64_t e, const double *t, double weight, const double *f, double *g,
                          double *curvature)
{
    double most = f[0], sum = 0, total = 0, loss = 0, mean = 0;
    for (int64_t i = 1; i < e; i++)
        most = f[i] > most || isnan(f[i]) ? f[i] : most;
    for (int64_t i = 0; i < e; i++) {
        sum += exp(f[i] - most);
        total += t[i];
        loss += t[i] != 0 ? t[i] * (most - f[i]) : 0;
    }
    loss += total * log(sum);
    for (int64_t i = 0; curvature && i < e; i++)
        mean += exp(f[i] - most) / sum * curvature[i];
    for (int64_t i = 0; i < e; i++) {
        const double p = exp(f[i] - most) / sum;
        g[i] = weight * (total * p - t[i]);
        if (curvature)
            curvature[i] = weight * total * p * (curvature[i] - mean);
    }
    return loss;
}

double sattn_learn_loss(const sattn_learn_job *job, int64_t q, const double *f, double *g,
                        double *curvature)
{
    const sattn_learn *p = &job->p;
    const double *t = p->target + q * p->output_width, weight = weight_of(p, q);
    if (p->loss == SATTN_LEARN_LOGISTIC)
        return logistic(t, weight, f, g, curvature);
    if (p->loss == SATTN_LEARN_CATEGORICAL)
        return categorical(p->output_width, t, weight, f, g, curvature);
    return squared(p->output_width, t, weight, f, g, curvature);
}

static double entropy(double t)
{
    return t > 0 ? -t * log(t) : t < 0 ? -(double)INFINITY : t * 0;
}

static double least(const sattn_learn *p, const double *t)
{
    double loss = 0, total = 0;
    if (p->loss == SATTN_LEARN_LOGISTIC)
        return entropy(t[0]) + entropy(1 - t[0]);
    for (int64_t i = 0; p->loss == SATTN_LEARN_CATEGORICAL && i < p->output_width; i++) {
        loss += entropy(t[i]);
        total += t[i];
    }
    return p->loss == SATTN_LEARN_CATEGORICAL ? loss - entropy(total) : 0;
}

int32_t sattn_learn_least_f64(const sattn_learn *given, double *risk, double *loss)
{
    sattn_learn_job job;
    const int32_t status = sattn_learn_check(&job, given);
    if (status != SATTN_OK)
        return status;
    const sattn_learn *p = &job.p;
    if (job.blocks > 0 && p->output_width > 0 && !p->target)
        return SATTN_ENULL;
    double all = 0;
    for (int64_t b = 0; b < job.blocks; b++) {
        const sattn_learn_run run = sattn_learn_block(&job, b);
        double sum = 0;
        for (int64_t q = run.first; q < run.first + run.count; q++) {
            const double value = least(p, p->target + q * p->output_width);
            sum += value * (p->weight ? p->weight[q] : 1);
            if (loss)
                loss[q] = value;
        }
        all += sum;
    }
    if (risk)
        *risk = p->weight || job.blocks == 0 ? all : all / (double)(p->tasks * p->queries);
    return SATTN_OK;
}
