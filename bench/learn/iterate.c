/* SPDX-License-Identifier: BSD-2-Clause */
/* The map z <- f(z): attention, layer after layer, as clustering. */
#include "population.h"
#include "result.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { STARTS = 9, STEPS = 4000, SHOWN = 20 };

static const double poles[4] = {0, 3, 0, -3};

/* The largest u = tanh(l^2 u), by bisection */
static double fixed_point(double l)
{
    double low = 1e-9, high = 1;
    if (l * l * low >= 1 || tanh(l * l * low) <= low)
        return 0;
    for (int i = 0; i < 200; i++) {
        const double u = (low + high) / 2;
        *(tanh(l * l * u) > u ? &low : &high) = u;
    }
    return low;
}

/* Prop. C.3, opposite means m and -m, n a unit vector across: one head
 * U = (m + n) m' / (xi^2 |m|^2), V = m (m / |m|^2 - n)' */
static void weights(const population *p, double noise, double *w)
{
    const parts a = parts_of(p, w);
    const double m[2] = {0, 3}, n[2] = {1, 0};
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 2; j++) {
            a.tilt[2 * i + j] = (m[i] + n[i]) * m[j] / (noise * 9);
            a.value[2 * i + j] = m[i] * (m[j] / 9 - n[j]);
        }
}

static double iterate(result *r, double xi)
{
    population *p = denoising(2, half, poles, 0, xi * xi, 1, 1);
    double w[16] = {0}, z[2 * STARTS], by_bayes[2 * STARTS], path[SHOWN + 1][STARTS], apart = 0;
    char what[100];
    weights(p, xi * xi, w);
    sattn_learn l = p->learn;
    l.queries = STARTS, l.input = z, l.weight = NULL;
    for (int i = 0; i < STARTS; i++)
        z[2 * i] = 1, z[2 * i + 1] = i - STARTS / 2;
    for (int step = 0; step <= STEPS; step++) {
        double next[2 * STARTS];
        for (int i = 0; step <= SHOWN && i < STARTS; i++)
            path[step][i] = z[2 * i + 1];
        must(sattn_learn_predict_f64(&l, w, next), "sattn_learn_predict");
        must(sattn_task_bayes_f64(&p->task, STARTS, z, by_bayes, NULL), "sattn_task_bayes");
        for (int i = 0; i < 2 * STARTS; i++)
            apart = fmax(apart, fabs(next[i] - by_bayes[i]));
        memcpy(z, next, sizeof z);
    }
    snprintf(what, sizeof what, "Fig. 3: z <- f(z), xi = %g", xi);
    result_panel(r, what, "iteration", "second coordinate", "linear");
    for (int i = 0; i < STARTS; i++) {
        result_series(r, "", "line");
        for (int step = 0; step <= SHOWN; step++)
            result_point(r, step, path[step][i]);
    }
    snprintf(what, sizeof what, "xi = %g: attention beside Bayes, along the paths", xi);
    result_number(r, what, apart, 0, 1e-12, "Prop. C.3: 0");
    const double limit = z[2 * STARTS - 1] / 3;
    population_free(p);
    return limit;
}

static int run(const settings *s)
{
    (void)s->threads;
    result *r = result_new(s);
    result_number(r, "xi = 2 (lambda = 1.5): limit u of the upper starts", iterate(r, 2),
                  0.975495825740, 1e-9, "Prop. 4.3: u = tanh(lambda^2 u)");
    result_number(r, "xi = 4 (lambda = 0.75): limit", iterate(r, 4), 0, 1e-9,
                  "Prop. 4.3: the middle");
    result_panel(r, "Where the iteration ends", "lambda = |m1 - m2| / (2 xi)", "u", "linear");
    result_series(r, "u = tanh(lambda^2 u)", "dashed grey");
    for (double l = .5; l < 3; l += .01)
        result_point(r, l, fixed_point(l));
    result_series(r, "iterated Bayes predictor", "points best");
    for (double l = .5; l < 3; l += .1) {
        population *p = denoising(2, half, poles, 0, 9 / (l * l), 1, 1);
        double z[2] = {0, 3}, next[2];
        for (int step = 0; step < STEPS; step++) {
            must(sattn_task_bayes_f64(&p->task, 1, z, next, NULL), "sattn_task_bayes");
            memcpy(z, next, sizeof z);
        }
        result_point(r, l, z[1] / 3);
        population_free(p);
    }
    result_note(r, "The paper does not state the two values of xi of Fig. 3; 2 and 4 are ours.");
    return result_end(r);
}

const experiment experiment_iterate = {
    .name = "iterate",
    .source = "arXiv 2610.11798, Fig. 3, Propositions 4.3 and C.3",
    .about = "Two clusters of one point each, at (0, 3) and (0, -3), and noise xi. One attention "
             "head is exactly the Bayes denoiser, and denoising again and again is a map with "
             "fixed points: where the clusters are further apart than the noise (lambda > 1) every "
             "start goes near its own cluster, otherwise all go to the middle.",
    .defaults = "",
    .run = run};
