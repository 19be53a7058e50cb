/* SPDX-License-Identifier: BSD-2-Clause */
#include "sattn/train.h"
#include "check.h"
#include "learn.h"
#include "pace.h"

#include <math.h>
#include <string.h>

enum { LEAST_SIZE = offsetof(sattn_train, context) + sizeof(void *) };

int32_t sattn_train_init(sattn_train *t, int64_t size, int64_t steps)
{
    const int32_t status = sattn_check_init(t, size, LEAST_SIZE);
    if (status != SATTN_OK)
        return status;
    if (steps < 0 || steps > INT64_MAX / 16)
        return SATTN_ESIZE;
    const sattn_train filled = {.size = size,
                                .steps = steps,
                                .until = steps,
                                .drop_at = {steps * 8 / 10, steps * 9 / 10},
                                .drop = 0.1,
                                .rate = 0.01,
                                .decay = {0.9, 0.999},
                                .epsilon = 1e-8};
    sattn_fill(t, size, &filled, sizeof filled);
    return SATTN_OK;
}

static int is_size(double x)
{
    return x >= 0 && isfinite(x);
}

static int32_t check(sattn_train *t, const sattn_train *given)
{
    const int32_t status = sattn_check_struct(t, given, sizeof *t, LEAST_SIZE);
    if (status != SATTN_OK)
        return status;
    if (t->optimiser < SATTN_TRAIN_DESCENT || t->optimiser > SATTN_TRAIN_ADAM ||
        t->schedule < SATTN_TRAIN_CONSTANT || t->schedule > SATTN_TRAIN_DROPS)
        return SATTN_EOPTION;
    if (t->step < 0 || t->step > t->until || t->until > t->steps || t->steps > INT64_MAX / 16)
        return SATTN_ESIZE;
    if (!is_size(t->rate) || !is_size(t->clip) || !is_size(t->drop) || !is_size(t->epsilon) ||
        !(t->decay[0] >= 0 && t->decay[0] < 1) || !(t->decay[1] >= 0 && t->decay[1] < 1))
        return SATTN_EVALUE;
    if (!t->parameter || (t->optimiser == SATTN_TRAIN_ADAM && (!t->moment[0] || !t->moment[1])))
        return SATTN_ENULL;
    return SATTN_OK;
}

static double rate_of(const sattn_train *t)
{
    double rate = t->rate;
    if (t->schedule == SATTN_TRAIN_COSINE)
        rate *= (1 + cos(3.14159265358979323846 * ((double)t->step / (double)t->steps))) / 2;
    for (int i = 0; t->schedule == SATTN_TRAIN_DROPS && i < 2; i++)
        rate *= t->drop_at[i] <= t->step ? t->drop : 1;
    return rate;
}

static void clip(int64_t n, double most, double *gradient)
{
    double squares = 0;
    for (int64_t i = 0; i < n; i++)
        squares += gradient[i] * gradient[i];
    const double norm = sqrt(squares);
    for (int64_t i = 0; most > 0 && norm > most && i < n; i++)
        gradient[i] *= most / norm;
}

static void update(const sattn_train *t, int64_t n, const double *gradient)
{
    const double rate = rate_of(t), *decay = t->decay;
    if (t->optimiser == SATTN_TRAIN_DESCENT) {
        for (int64_t i = 0; i < n; i++)
            t->parameter[i] -= rate * gradient[i];
        return;
    }
    const double rest[2] = {1 - pow(decay[0], (double)t->step + 1),
                            1 - pow(decay[1], (double)t->step + 1)};
    for (int64_t i = 0; i < n; i++) {
        const double g = gradient[i];
        double *m = t->moment[0] + i, *v = t->moment[1] + i;
        *m = decay[0] * *m + (1 - decay[0]) * g;
        *v = decay[1] * *v + (1 - decay[1]) * g * g;
        t->parameter[i] -= rate * (*m / rest[0]) / (sqrt(*v / rest[1]) + t->epsilon);
    }
}

int32_t sattn_train_f64(sattn_train *given, const sattn_learn *p)
{
    sattn_train t;
    sattn_learn_job job;
    sattn_pace pace;
    double risk;
    int32_t status = check(&t, given);
    if (status == SATTN_OK)
        status = sattn_learn_check(&job, p);
    if (status != SATTN_OK)
        return status;
    const int64_t count = job.part[PARTS];
    const int32_t threads = job.p.threads;
    sattn_pace_init(&pace, threads);
    double *gradient = sattn_alloc(count * (int64_t)sizeof(double));
    if (!gradient)
        return SATTN_ENOMEM;
    while (status == SATTN_OK && t.step < t.until) {
        if (t.draw && t.draw(t.context, t.step))
            break;
        job.p.threads = sattn_pace_begin(&pace, threads);
        status = sattn_learn_risk_f64(&job.p, t.parameter, &risk, gradient, NULL);
        sattn_pace_end(&pace);
        if (status != SATTN_OK || (t.progress && t.progress(t.context, t.step, risk)))
            break;
        if (t.trace)
            t.trace[t.step] = risk;
        clip(count, t.clip, gradient);
        update(&t, count, gradient);
        t.step++;
    }
    given->step = t.step;
    sattn_free(gradient);
    return status;
}
