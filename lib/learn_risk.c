/* SPDX-License-Identifier: BSD-2-Clause */
/* Predictions, risk and gradient: one block of queries at a time, heads side by side as queries of
 * one call of mixture attention, dense maps by the row's matrix product. */
#include "check.h"
#include "isa.h"
#include "learn.h"
#include "par.h"

#include <math.h>
#include <string.h>

typedef struct sattn_gemm_f64 gemm;

typedef struct {
    sattn_learn_job job;
    const double *parameter;
    double *turned;                 /* U' [N][H][D], V' [H][D][E], K' [N][E] */
    double *scratch, *parts, *risk; /* [threads][...], [blocks][P], [blocks] */
    double *loss, *predicted;       /* outputs or NULL */
    int64_t scratch_size;
    int32_t inner;
    char *work; /* [threads][work_bytes] of the mixture's calls */
    int64_t work_bytes;
} pass;

/* A block's arrays: [n][H][D] tilts, answers and their gradients; [n][E] predictions and theirs */
typedef struct {
    double *u, *y, *dy, *du, *stats, *f;
    char *work;
} arrays;

static arrays place(const pass *s, int32_t thread)
{
    const sattn_learn *p = &s->job.p;
    const int64_t size = p->heads * SATTN_LEARN_BLOCK * p->width;
    arrays a = {.u = s->scratch + thread * s->scratch_size};
    a.y = a.u + size;
    a.dy = a.y + size;
    a.du = a.dy + size;
    a.stats = a.du + size;
    a.f = a.stats + p->heads * SATTN_LEARN_BLOCK * 2;
    a.work = s->work + thread * s->work_bytes;
    return a;
}

static void turn(int64_t rows, int64_t columns, const double *x, double *y)
{
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++)
            y[j * rows + i] = x[i * columns + j];
}

static void turn_all(const pass *s)
{
    const sattn_learn *p = &s->job.p;
    const int64_t d = p->width, n = p->input_width, e = p->output_width, *part = s->job.part;
    double *next = s->turned;
    turn(p->heads * d, n, s->parameter + part[TILT], next);
    next += n * p->heads * d;
    for (int64_t h = 0; h < p->heads; h++, next += d * e)
        turn(e, d, s->parameter + part[VALUE] + h * e * d, next);
    turn(e, n, s->parameter + part[SKIP], next);
}

static void forward(const pass *s, const sattn_learn_run *run, const arrays *a, sattn_mixture *m)
{
    const sattn_learn *p = &s->job.p;
    const int64_t hd = p->heads * p->width, n = p->input_width, e = p->output_width;
    const double *z = p->input + run->first * n, *value = s->turned + n * hd;
    const struct sattn_kernels_f64 *row = sattn_active_row()->f64;
    if (p->heads > 0) {
        row->gemm(&(gemm){run->count, hd, n, z, n, 1, s->turned, hd, a->u, hd,
                          s->parameter + s->job.part[TILT_BIAS], 0, 1});
        sattn_learn_prompt(&s->job, run, m);
        m->threads = s->inner;
        m->work = a->work;
        m->work_bytes = s->work_bytes;
        m->tilt = a->u;
        m->out = a->y;
        m->stats = a->stats;
        sattn_mixture_forward_f64(m);
    }
    row->gemm(&(gemm){run->count, e, n, z, n, 1, value + hd * e, e, a->f, e,
                      s->parameter + s->job.part[BIAS], 0, 1});
    if (p->heads > 0)
        row->gemm(&(gemm){run->count, e, hd, a->y, hd, 1, value, e, a->f, e, a->f, e, 1});
}

/* The block's share of the gradient of the trained parts, of others nothing is written (but U goes
 * with u); f holds the derivatives of the losses. */
static void backward(const pass *s, const sattn_learn_run *run, const arrays *a, sattn_mixture *m,
                     double *gradient)
{
    static const double one = 1;
    const sattn_learn *p = &s->job.p;
    const int64_t d = p->width, hd = p->heads * d, n = p->input_width, e = p->output_width;
    const int64_t *part = s->job.part, count = run->count;
    const double *z = p->input + run->first * n;
    const struct sattn_kernels_f64 *row = sattn_active_row()->f64;
    for (int64_t h = 0; p->trained & SATTN_LEARN_VALUE && h < p->heads; h++)
        row->gemm(&(gemm){e, d, count, a->f, 1, e, a->y + h * d, hd,
                          gradient + part[VALUE] + h * e * d, d, NULL, 0, 0});
    if (p->heads > 0 && p->trained & (SATTN_LEARN_TILT | SATTN_LEARN_TILT_BIAS)) {
        for (int64_t h = 0; h < p->heads; h++)
            row->gemm(&(gemm){count, d, e, a->f, e, 1, s->parameter + part[VALUE] + h * e * d, d,
                              a->dy + h * d, hd, NULL, 0, 0});
        m->dout = a->dy;
        m->dtilt = a->du;
        sattn_mixture_backward_f64(m);
        row->gemm(&(gemm){hd, n, count, a->du, 1, hd, z, n, gradient + part[TILT], n, NULL, 0, 0});
        if (p->trained & SATTN_LEARN_TILT_BIAS)
            row->gemm(&(gemm){1, hd, count, &one, 0, 0, a->du, hd, gradient + part[TILT_BIAS], hd,
                              NULL, 0, 0});
    }
    if (p->trained & SATTN_LEARN_SKIP)
        row->gemm(&(gemm){e, n, count, a->f, 1, e, z, n, gradient + part[SKIP], n, NULL, 0, 0});
    if (p->trained & SATTN_LEARN_BIAS)
        row->gemm(&(gemm){1, e, count, &one, 0, 0, a->f, e, gradient + part[BIAS], e, NULL, 0, 0});
}

/* The mixture's calls have been checked and have their workspace: they cannot fail. */
static void block(void *context, int64_t number, int32_t thread)
{
    pass *s = context;
    const sattn_learn *p = &s->job.p;
    const sattn_learn_run run = sattn_learn_block(&s->job, number);
    const int64_t e = p->output_width;
    const arrays a = place(s, thread);
    sattn_mixture m;
    forward(s, &run, &a, &m);
    if (s->predicted) {
        memcpy(s->predicted + run.first * e, a.f, (size_t)(run.count * e) * sizeof(double));
    } else {
        double sum = 0;
        for (int64_t i = 0; i < run.count; i++) {
            const int64_t q = run.first + i;
            const double loss = sattn_learn_loss(&s->job, q, a.f + i * e, a.f + i * e, NULL);
            sum += loss * (p->weight ? p->weight[q] : 1);
            if (s->loss)
                s->loss[q] = loss;
        }
        s->risk[number] = sum;
        if (s->parts)
            backward(s, &run, &a, &m, s->parts + number * s->job.part[PARTS]);
    }
}

/* Room for a pass: all that a call needs, then `extra` numbers, the start of which it returns. */
static double *room(pass *s, int32_t threads, int64_t extra)
{
    const sattn_learn *p = &s->job.p;
    const int64_t d = p->width, n = p->input_width, e = p->output_width;
    const int64_t turned = p->heads * (n + e) * d + n * e;
    s->scratch_size = SATTN_LEARN_BLOCK * (p->heads * (4 * d + 2) + e);
    s->work_bytes = sattn_learn_workspace(&s->job, s->inner);
    s->work = sattn_alloc(threads * s->work_bytes +
                          (turned + threads * s->scratch_size + extra) * (int64_t)sizeof(double));
    if (!s->work)
        return NULL;
    s->turned = (double *)(s->work + threads * s->work_bytes);
    s->scratch = s->turned + turned;
    turn_all(s);
    return s->scratch + threads * s->scratch_size;
}

int32_t sattn_learn_predict_f64(const sattn_learn *given, const double *parameter,
                                double *predicted)
{
    pass s = {.parameter = parameter, .predicted = predicted};
    int32_t status = sattn_learn_begin(&s.job, given, 0);
    if (status != SATTN_OK)
        return status;
    const int64_t numbers = s.job.p.tasks * s.job.p.queries * s.job.p.output_width;
    const int32_t threads = sattn_learn_threads(&s.job, &s.inner);
    if (numbers == 0)
        goto end;
    status = SATTN_ENULL;
    if (!parameter || !predicted)
        goto end;
    status = SATTN_ENOMEM;
    if (!room(&s, threads, 0))
        goto end;
    sattn_par_for(s.job.blocks, threads, block, &s);
    status = SATTN_OK;
    sattn_free(s.work);
end:
    sattn_learn_end(&s.job);
    return status;
}

int32_t sattn_learn_risk_f64(const sattn_learn *given, const double *parameter, double *risk,
                             double *gradient, double *loss)
{
    pass s = {.parameter = parameter, .loss = loss};
    int32_t status = sattn_learn_begin(&s.job, given, 1);
    if (status != SATTN_OK)
        return status;
    const sattn_learn *p = &s.job.p;
    const int64_t parts = gradient ? s.job.blocks * s.job.part[PARTS] : 0;
    const int32_t threads = sattn_learn_threads(&s.job, &s.inner);
    status = SATTN_ENULL;
    if (!parameter && s.job.part[PARTS] > 0)
        goto end;
    status = SATTN_ENOMEM;
    s.risk = room(&s, threads, s.job.blocks + parts);
    if (!s.risk)
        goto end;
    s.parts = gradient ? s.risk + s.job.blocks : NULL;
    sattn_par_for(s.job.blocks, threads, block, &s);
    status = SATTN_OK;
    double sum = 0;
    for (int64_t b = 0; b < s.job.blocks; b++)
        sum += s.risk[b];
    if (risk)
        *risk = p->weight || s.job.blocks == 0 ? sum : sum / (double)(p->tasks * p->queries);
    if (gradient)
        sattn_learn_sum(&s.job, s.parts, gradient);
    sattn_free(s.work);
end:
    sattn_learn_end(&s.job);
    return status;
}
