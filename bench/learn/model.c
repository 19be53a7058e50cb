/* SPDX-License-Identifier: BSD-2-Clause */
#include "learn.h"

#include <math.h>
#include <string.h>

enum { D = WIDTH };

prompt prompt_new(int64_t heads, int64_t components)
{
    const int64_t c = heads * components, f = sizeof(float);
    return (prompt){heads, components, array(c, f), array(c * D, f), array(c * D * D, f)};
}

void prompt_free(prompt *p)
{
    sattn_free(p->log_weight);
    sattn_free(p->mean);
    sattn_free(p->covariance);
}

/* All parameters are one array, which the optimiser walks. */
model model_new(int64_t heads)
{
    model m = {.heads = heads, .size = heads * (2 * D * D + D) + D * D + D};
    m.tilt = array(m.size, sizeof(float));
    m.tilt_bias = m.tilt + heads * D * D;
    m.value = m.tilt_bias + heads * D;
    m.skip = m.value + heads * D * D;
    m.bias = m.skip + D * D;
    return m;
}

void model_free(model *m)
{
    sattn_free(m->tilt);
}

/* A batch on its way: tilts and answers of every head, [H][n][D] */
typedef struct {
    int64_t n;
    sattn_mixture call;
    float *u, *y, *stats, *dy, *du;
} pass;

static pass pass_new(const model *m, const prompt *p, int64_t n, int32_t threads)
{
    const int64_t size = m->heads * n * D;
    pass s = {.n = n,
              .u = array(size, sizeof(float)),
              .y = array(size, sizeof(float)),
              .stats = array(m->heads * n * 2, sizeof(float)),
              .dy = array(size, sizeof(float)),
              .du = array(size, sizeof(float))};
    must(sattn_mixture_init(&s.call, sizeof s.call, m->heads, n, p->components, D, 0,
                            SATTN_COVARIANCE_FULL),
         "sattn_mixture_init");
    s.call.threads = threads;
    s.call.tilt = s.u;
    s.call.log_weight = p->log_weight;
    s.call.mean = p->mean;
    s.call.covariance = p->covariance;
    s.call.out = s.y;
    s.call.stats = s.stats;
    s.call.dout = s.dy;
    s.call.dtilt = s.du;
    return s;
}

static void pass_free(pass *s)
{
    sattn_free(s->u);
    sattn_free(s->y);
    sattn_free(s->stats);
    sattn_free(s->dy);
    sattn_free(s->du);
}

static void fill_rows(int64_t n, const float *row, float *x)
{
    for (int64_t i = 0; i < n; i++)
        memcpy(x + i * D, row, D * sizeof(float));
}

static void forward(const model *m, pass *s, const float *z, float *f)
{
    for (int64_t h = 0; h < m->heads; h++) {
        float *u = s->u + h * s->n * D;
        fill_rows(s->n, m->tilt_bias + h * D, u);
        multiply_bt(s->n, D, D, z, m->tilt + h * D * D, u);
    }
    must(sattn_mixture_forward_f32(&s->call), "sattn_mixture_forward");
    fill_rows(s->n, m->bias, f);
    multiply_bt(s->n, D, D, z, m->skip, f);
    for (int64_t h = 0; h < m->heads; h++)
        multiply_bt(s->n, D, D, s->y + h * s->n * D, m->value + h * D * D, f);
}

static void sum_rows(int64_t n, const float *x, float *sum)
{
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < D; j++)
            sum[j] += x[i * D + j];
}

/* Gradient of the loss from its derivative g with respect to f */
static void backward(const model *m, pass *s, const float *z, const float *g, model *gradient)
{
    memset(gradient->tilt, 0, (size_t)gradient->size * sizeof(float));
    memset(s->dy, 0, (size_t)(m->heads * s->n * D) * sizeof(float));
    for (int64_t h = 0; h < m->heads; h++) {
        multiply_at(D, D, s->n, g, s->y + h * s->n * D, gradient->value + h * D * D);
        multiply(s->n, D, D, g, m->value + h * D * D, s->dy + h * s->n * D);
    }
    must(sattn_mixture_backward_f32(&s->call), "sattn_mixture_backward");
    for (int64_t h = 0; h < m->heads; h++) {
        multiply_at(D, D, s->n, s->du + h * s->n * D, z, gradient->tilt + h * D * D);
        sum_rows(s->n, s->du + h * s->n * D, gradient->tilt_bias + h * D);
    }
    multiply_at(D, D, s->n, g, z, gradient->skip);
    sum_rows(s->n, g, gradient->bias);
}

void predict(const model *m, const prompt *p, int64_t n, const float *noisy, float *clean,
             int32_t threads)
{
    pass s = pass_new(m, p, n, threads);
    forward(m, &s, noisy, clean);
    pass_free(&s);
}

/* Adam with bias correction, beta = (0.9, 0.99); each group of parameters has its own rate. */
static void adam(model *m, const model *gradient, float *first, float *second, int64_t step,
                 double rate, double tilt_scale)
{
    const int64_t ends[] = {m->tilt_bias - m->tilt, m->value - m->tilt, m->bias - m->tilt, m->size};
    const double scale[] = {tilt_scale, tilt_scale / 3, 1, 0.3};
    const float correct1 = (float)(1 / (1 - pow(0.9, (double)step)));
    const float correct2 = (float)(1 / (1 - pow(0.99, (double)step)));
    for (int64_t group = 0, i = 0; group < 4; group++)
        for (const float eta = (float)(rate * scale[group]); i < ends[group]; i++) {
            const float g = gradient->tilt[i];
            first[i] += 0.1f * (g - first[i]);
            second[i] += 0.01f * (g * g - second[i]);
            m->tilt[i] -= eta * first[i] * correct1 / (sqrtf(second[i] * correct2) + 1e-8f);
        }
}

void train(model *m, const fold *folds, int64_t fold_count, const schedule *s,
           void (*after)(double risk))
{
    const double pi = 3.14159265358979323846;
    model gradient = model_new(m->heads);
    float *first = array(m->size, sizeof(float)), *second = array(m->size, sizeof(float));
    float *average = array(m->size, sizeof(float));
    int64_t drawn = 0;
    memcpy(average, m->tilt, (size_t)m->size * sizeof(float));
    for (int64_t step = 1; step <= s->steps; step++) {
        const fold *f = &folds[(step - 1) % fold_count];
        const int64_t size = f->count * D;
        float *z = array(size, sizeof(float)), *y = array(size, sizeof(float));
        double risk = 0;
        must(sattn_random_normal_f32(s->seed, s->stream, drawn, size, z), "sattn_random_normal");
        drawn += size + size % 2;
        for (int64_t i = 0; i < size; i++)
            z[i] = f->digit[i] + (float)s->noise * z[i];
        pass batch = pass_new(m, &f->prompt, f->count, s->threads);
        forward(m, &batch, z, y);
        for (int64_t i = 0; i < size; i++) {
            y[i] -= f->digit[i];
            risk += (double)y[i] * y[i] / (double)f->count;
            y[i] *= 2 / (float)f->count;
        }
        backward(m, &batch, z, y, &gradient);
        const double warm = (double)step / (double)s->warm_up, t = (double)step / (double)s->steps;
        adam(m, &gradient, first, second, step,
             s->rate * (1 + cos(pi * t)) / 2 * (warm < 1 ? warm : 1), s->tilt_scale);
        for (int64_t i = 0; i < m->size; i++)
            average[i] += 0.02f * (m->tilt[i] - average[i]);
        pass_free(&batch);
        sattn_free(z);
        sattn_free(y);
        after(risk);
    }
    memcpy(m->tilt, average, (size_t)m->size * sizeof(float));
    model_free(&gradient);
    sattn_free(first);
    sattn_free(second);
    sattn_free(average);
}
