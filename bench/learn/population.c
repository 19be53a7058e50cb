/* SPDX-License-Identifier: BSD-2-Clause */
#include "population.h"

#include <math.h>
#include <string.h>

const double half[2] = {.5, .5}, quarter[4] = {.25, .25, .25, .25};
const double corner[4] = {3, 0, 0, 3}; /* Fig. 2 of the paper: means (3, 0), (0, 3) */
const double square[8] = {4, 0, 0, 4, -4, 0, 0, -4};
const double xor_mean[8] = {1.5, 1.5, -1.5, -1.5, 1.5, -1.5, -1.5, 1.5};
const double xor_label[4] = {1, 1, -1, -1};
const double lda_share[2] = {.6, .4}, lda_mean[4] = {1, 0, 0, 1}, lda_label[2] = {1, -1};

/* Points and weights of the task's queries, Bayes's answers there */
static void fill(population *p, int64_t order)
{
    enum { TRAPEZOID = 451 };
    const int64_t n = order ? order : TRAPEZOID, d = p->task.width, e = p->task.value_width;
    const int64_t points = p->task.components * (d == 1 ? n : n * n);
    double node[TRAPEZOID], weight[TRAPEZOID], *left = array(points, sizeof(double));
    must(order ? sattn_quadrature_hermite(n, node, weight)
               : sattn_quadrature_trapezoid(n, 9, node, weight),
         "sattn_quadrature");
    p->input = array(points * d, sizeof(double));
    p->target = array(points * e, sizeof(double));
    p->weight = array(points, sizeof(double));
    must(sattn_task_quadrature_f64(&p->task, n, node, weight, p->input, p->weight),
         "sattn_task_quadrature");
    must(sattn_task_bayes_f64(&p->task, points, p->input, p->target, left), "sattn_task_bayes");
    for (int64_t i = 0; i < points; i++)
        p->bayes += p->weight[i] * left[i];
    sattn_free(left);
    p->learn.queries = points;
}

static population *begin(int64_t components, int64_t width, int64_t value_width,
                         const double *share, const double *mean)
{
    population *p = array(1, sizeof *p);
    must(sattn_task_init(&p->task, sizeof p->task, components, width, value_width),
         "sattn_task_init");
    must(sattn_learn_init(&p->learn, sizeof p->learn), "sattn_learn_init");
    memcpy(p->mean, mean, (size_t)(components * width) * sizeof(double));
    for (int64_t c = 0; c < components; c++)
        p->log_weight[c] = log(share[c]);
    p->task.log_weight = p->log_weight, p->task.mean = p->mean, p->task.covariance = p->covariance;
    p->task.value_mean = p->value;
    sattn_learn *l = &p->learn;
    l->tasks = 1, l->shared = 1, l->components = components;
    l->input_width = width, l->output_width = value_width;
    l->covariance_kind = SATTN_COVARIANCE_DIAG;
    l->log_weight = p->log_weight, l->mean = p->prompt, l->covariance = p->variance;
    return p;
}

static population *finish(population *p, int64_t order)
{
    fill(p, order);
    p->learn.input = p->input, p->learn.target = p->target, p->learn.weight = p->weight;
    must(sattn_learn_count(&p->learn, &p->count), "sattn_learn_count");
    must(sattn_learn_least_f64(&p->learn, &p->least, NULL), "sattn_learn_least");
    return p;
}

population *denoising(int64_t components, const double *share, const double *mean, double variance,
                      double noise, int64_t heads, int64_t order)
{
    population *p = begin(components, 2, 2, share, mean);
    memcpy(p->value, mean, (size_t)(2 * components) * sizeof(double));
    memcpy(p->prompt, mean, (size_t)(2 * components) * sizeof(double));
    for (int64_t c = 0; c < components; c++) {
        p->left[c] = 2 * variance;
        for (int64_t i = 0; i < 2; i++) {
            p->covariance[c * 4 + i * 3] = p->variance[c * 2 + i] = variance + noise;
            p->cross[c * 4 + i * 3] = variance;
        }
    }
    p->task.cross = p->cross, p->task.value_variance = p->left;
    p->learn.width = 2, p->learn.heads = heads;
    return finish(p, order);
}

population *labelled(int64_t components, int64_t width, const double *share, const double *mean,
                     const double *label, int32_t loss, int64_t order)
{
    population *p = begin(components, width, 1, share, mean);
    for (int64_t c = 0; c < components; c++) {
        double *token = p->prompt + c * (width + 1);
        memcpy(token, mean + c * width, (size_t)width * sizeof(double));
        token[width] = label[c];
        p->value[c] = loss == SATTN_LEARN_LOGISTIC ? (1 + label[c]) / 2 : label[c];
        for (int64_t i = 0; i < width; i++) {
            p->covariance[(c * width + i) * width + i] = 1;
            p->variance[c * (width + 1) + i] = 1;
        }
    }
    p->learn.width = width + 1, p->learn.heads = 1, p->learn.loss = loss;
    p->learn.trained = SATTN_LEARN_TILT | SATTN_LEARN_VALUE;
    return finish(p, order);
}

void population_free(population *p)
{
    sattn_free(p->input);
    sattn_free(p->target);
    sattn_free(p->weight);
    sattn_free(p);
}

parts parts_of(const population *p, double *parameter)
{
    const sattn_learn *l = &p->learn;
    parts a = {.tilt = parameter};
    a.tilt_bias = a.tilt + l->heads * l->width * l->input_width;
    a.value = a.tilt_bias + l->heads * l->width;
    a.skip = a.value + l->heads * l->output_width * l->width;
    a.bias = a.skip + l->output_width * l->input_width;
    return a;
}

double excess(const population *p, const double *parameter)
{
    double risk;
    must(sattn_learn_risk_f64(&p->learn, parameter, &risk, NULL, NULL), "sattn_learn_risk");
    return risk - p->least;
}
