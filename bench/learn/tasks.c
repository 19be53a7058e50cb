/* SPDX-License-Identifier: BSD-2-Clause */
#include "context.h"

#include <math.h>
#include <string.h>

enum { C = CLUSTERS, D = SPACE };

tasks tasks_new(const world *w, int64_t count, int64_t queries, int affine)
{
    tasks t = {.count = count,
               .queries = queries,
               .token_width = w->labelled ? D + 1 : D,
               .target_width = w->labelled ? 1 : D};
    const int64_t d = sizeof(double), points = count * queries;
    t.log_weight = array(count * C, d);
    t.mean = array(count * C * t.token_width, d);
    t.variance = array(count * C * t.token_width, d);
    t.input = array(points * D, d);
    t.target = array(points * t.target_width, d);
    t.uncertainty = array(points, d);
    if (affine)
        t.affine = array(points * t.target_width, d);
    return t;
}

void tasks_free(tasks *t)
{
    double *const arrays[] = {t->log_weight, t->mean,        t->variance, t->input,
                              t->target,     t->uncertainty, t->affine};
    for (size_t i = 0; i < sizeof arrays / sizeof arrays[0]; i++)
        sattn_free(arrays[i]);
}

/* Means uniform on the sphere: normals, scaled. Their stream is far from those of the queries. */
static void draw_means(const world *w, uint64_t stream, int64_t number, double *mean)
{
    must(
        sattn_random_normal_f64(w->seed, ((uint64_t)1 << 63) + stream, number * C * D, C * D, mean),
        "sattn_random_normal");
    for (int64_t c = 0; c < C; c++) {
        double squares = 0;
        for (int64_t i = 0; i < D; i++)
            squares += mean[c * D + i] * mean[c * D + i];
        for (int64_t i = 0; i < D; i++)
            mean[c * D + i] *= w->radius / sqrt(squares);
    }
}

/* The law of query and target given the means */
typedef struct {
    double log_weight[C], covariance[C * D * D], label[C], cross[C * D * D], left[C];
    sattn_task task;
} law;

static void make_law(const world *w, const double *mean, law *l)
{
    memset(l, 0, sizeof *l);
    for (int64_t c = 0; c < C; c++) {
        l->log_weight[c] = -log(C);
        l->label[c] = c < C / 2 ? 1 : -1;
        l->left[c] = D * w->variance;
        for (int64_t i = 0; i < D; i++) {
            l->covariance[(c * D + i) * D + i] = w->variance + w->noise;
            l->cross[(c * D + i) * D + i] = w->variance;
        }
    }
    must(sattn_task_init(&l->task, sizeof l->task, C, D, w->labelled ? 1 : D), "sattn_task_init");
    l->task.threads = 1;
    l->task.log_weight = l->log_weight;
    l->task.mean = mean;
    l->task.covariance = l->covariance;
    l->task.value_mean = w->labelled ? l->label : mean;
    l->task.cross = w->labelled ? NULL : l->cross;
    l->task.value_variance = w->labelled ? NULL : l->left;
}

static void answer_affine(const law *l, const tasks *t, int64_t b)
{
    const int64_t e = t->target_width, first = b * t->queries;
    double matrix[D * D], offset[D];
    must(sattn_task_affine_f64(&l->task, 1, matrix, offset, NULL), "sattn_task_affine");
    for (int64_t q = first; q < first + t->queries; q++)
        for (int64_t i = 0; i < e; i++) {
            double sum = offset[i];
            for (int64_t j = 0; j < D; j++)
                sum += matrix[i * D + j] * t->input[q * D + j];
            t->affine[q * e + i] = sum;
        }
}

void tasks_draw(const world *w, uint64_t stream, int64_t first, tasks *t)
{
    const int64_t width = t->token_width, m = t->queries;
    for (int64_t b = 0; b < t->count; b++) {
        double mean[C * D];
        law l;
        draw_means(w, stream, first + b, mean);
        make_law(w, mean, &l);
        for (int64_t c = 0; c < C; c++) {
            double *to = t->mean + (b * C + c) * width, *spread = t->variance + (b * C + c) * width;
            memcpy(to, mean + c * D, D * sizeof(double));
            for (int64_t i = 0; i < width; i++)
                spread[i] = i < D ? w->variance + w->noise : 0;
            if (w->labelled)
                to[D] = l.label[c];
            t->log_weight[b * C + c] = l.log_weight[c];
        }
        must(sattn_task_draw_f64(&l.task, w->seed, stream, (first + b) * m, m, t->input + b * m * D,
                                 NULL),
             "sattn_task_draw");
        must(sattn_task_bayes_f64(&l.task, m, t->input + b * m * D,
                                  t->target + b * m * t->target_width, t->uncertainty + b * m),
             "sattn_task_bayes");
        if (t->affine)
            answer_affine(&l, t, b);
    }
}
