/* SPDX-License-Identifier: BSD-2-Clause */
#include "learn.h"
#include "check.h"
#include "par.h"

#include <math.h>
#include <string.h>

enum { LEAST_SIZE = offsetof(sattn_learn, weight) + sizeof(double *) };

int32_t sattn_learn_init(sattn_learn *p, int64_t size)
{
    const int32_t status = sattn_check_init(p, size, LEAST_SIZE);
    if (status != SATTN_OK)
        return status;
    const sattn_learn filled = {
        .size = size, .covariance_kind = SATTN_COVARIANCE_FULL, .trained = SATTN_LEARN_ALL};
    sattn_fill(p, size, &filled, sizeof filled);
    return SATTN_OK;
}

static int fits(int64_t a, int64_t b, int64_t c, int64_t d)
{
    int64_t product = 16; /* numbers of scratch beside each */
    return sattn_grow(&product, a) && sattn_grow(&product, b) && sattn_grow(&product, c) &&
           sattn_grow(&product, d);
}

static int32_t check_shape(const sattn_learn *p)
{
    if (p->covariance_kind < SATTN_COVARIANCE_ZERO || p->covariance_kind > SATTN_COVARIANCE_FULL ||
        p->attention < SATTN_LEARN_SOFTMAX || p->attention > SATTN_LEARN_LINEAR ||
        p->loss < SATTN_LEARN_SQUARED || p->loss > SATTN_LEARN_CATEGORICAL ||
        (p->trained & ~SATTN_LEARN_ALL) || p->shared < 0 || p->shared > 1)
        return SATTN_EOPTION;
    if (p->tasks < 0 || p->queries < 0 || p->heads < 0 || p->components < 0 || p->width < 0 ||
        p->input_width < 0 || p->output_width < 0)
        return SATTN_ESIZE;
    if ((p->loss == SATTN_LEARN_LOGISTIC && p->output_width != 1) ||
        (p->loss == SATTN_LEARN_CATEGORICAL && p->output_width == 0))
        return SATTN_EOPTION;
    const int64_t most = p->input_width > p->output_width ? p->input_width : p->output_width,
                  wide = most > p->width ? most : p->width,
                  blocks = p->queries / SATTN_LEARN_BLOCK + 1;
    const int64_t quadratic =
        p->covariance_kind == SATTN_COVARIANCE_FULL || p->attention == SATTN_LEARN_LINEAR;
    if (!fits(p->tasks, p->queries, sattn_plus(p->heads, 1), sattn_plus(wide, 2)) ||
        !fits(p->tasks, sattn_plus(p->components, 1), p->width, quadratic ? p->width : 1) ||
        !fits(sattn_plus(p->heads, 1), sattn_plus(wide, 2), sattn_plus(wide, 2),
              SATTN_MAX_THREADS) ||
        !fits(SATTN_LEARN_BLOCK, sattn_plus(p->heads, 1), sattn_plus(wide, 2), SATTN_MAX_THREADS))
        return SATTN_ESIZE;
    int64_t gradients = p->tasks * blocks;
    return sattn_grow(&gradients, 16 * (p->heads + 1) * (wide + 2) * (wide + 2)) ? SATTN_OK
                                                                                 : SATTN_ESIZE;
}

int32_t sattn_learn_check(sattn_learn_job *job, const sattn_learn *given)
{
    sattn_learn *p = &job->p;
    int32_t status = sattn_check_struct(p, given, sizeof *p, LEAST_SIZE);
    if (status == SATTN_OK)
        status = check_shape(p);
    if (status == SATTN_OK)
        status = sattn_par_check(p->threads);
    if (status != SATTN_OK)
        return status;
    const int64_t d = p->width, n = p->input_width, e = p->output_width;
    const int64_t size[PARTS] = {p->heads * d * n, p->heads * d, p->heads * e * d, e * n, e};
    job->part[0] = 0;
    for (int i = 0; i < PARTS; i++)
        job->part[i + 1] = job->part[i] + size[i];
    const int64_t whole = p->queries > 0 ? SATTN_LEARN_BLOCK / p->queries : 1;
    job->block_tasks = whole > 1 ? whole : 1;
    job->task_blocks = (p->queries + SATTN_LEARN_BLOCK - 1) / SATTN_LEARN_BLOCK;
    job->blocks = (p->tasks * job->task_blocks + job->block_tasks - 1) / job->block_tasks;
    job->covariance_width = p->covariance_kind == SATTN_COVARIANCE_FULL   ? d * d
                            : p->covariance_kind == SATTN_COVARIANCE_DIAG ? d
                                                                          : 0;
    return SATTN_OK;
}

int32_t sattn_learn_count(const sattn_learn *given, int64_t *count)
{
    sattn_learn_job job;
    const int32_t status = sattn_learn_check(&job, given);
    if (status == SATTN_OK && !count)
        return SATTN_ENULL;
    if (status == SATTN_OK)
        *count = job.part[PARTS];
    return status;
}

/* moment = sum_c pi_c (m_c m_c' + S_c) with normalised weights; 0 without a component */
static void second_moment(const sattn_learn_job *job, int64_t prompt, double *moment)
{
    const sattn_learn *p = &job->p;
    const int64_t d = p->width, c = p->components;
    const double *log_weight = p->log_weight + prompt * c;
    double most = -(double)INFINITY, sum = 0;
    memset(moment, 0, (size_t)(d * d) * sizeof(double));
    for (int64_t k = 0; k < c; k++)
        most = fmax(most, log_weight[k]);
    for (int64_t k = 0; k < c; k++)
        sum += log_weight[k] > -(double)INFINITY ? exp(log_weight[k] - most) : 0;
    for (int64_t k = 0; k < c; k++) {
        const double *m = p->mean + (prompt * c + k) * d;
        const double *s = p->covariance + (prompt * c + k) * job->covariance_width;
        if (log_weight[k] == -(double)INFINITY)
            continue;
        const double weight = exp(log_weight[k] - most) / sum;
        for (int64_t i = 0; i < d; i++) {
            for (int64_t j = 0; j < d; j++)
                moment[i * d + j] +=
                    weight * (m[i] * m[j] +
                              (p->covariance_kind == SATTN_COVARIANCE_FULL ? s[i * d + j] : 0));
            if (p->covariance_kind == SATTN_COVARIANCE_DIAG)
                moment[i * d + i] += weight * s[i];
        }
    }
}

/* Prompts of linear attention as one component each */
static int32_t make_linear(sattn_learn_job *job)
{
    sattn_learn *p = &job->p;
    const int64_t d = p->width, prompts = p->shared ? 1 : p->tasks;
    double *zeros = sattn_alloc((prompts * (d * d + d + 1)) * (int64_t)sizeof(double));
    if (!zeros)
        return SATTN_ENOMEM;
    double *moment = zeros + prompts * (d + 1);
    memset(zeros, 0, (size_t)(prompts * (d + 1)) * sizeof(double));
    for (int64_t i = 0; i < prompts; i++)
        second_moment(job, i, moment + i * d * d);
    job->owned = zeros;
    p->log_weight = zeros;
    p->mean = zeros + prompts;
    p->covariance = moment;
    p->components = 1;
    p->covariance_kind = SATTN_COVARIANCE_FULL;
    job->covariance_width = d * d;
    return SATTN_OK;
}

int32_t sattn_learn_begin(sattn_learn_job *job, const sattn_learn *given, int targets)
{
    const int32_t status = sattn_learn_check(job, given);
    if (status != SATTN_OK)
        return status;
    sattn_learn *p = &job->p;
    const int64_t prompts = p->shared ? 1 : p->tasks, c = prompts * p->components;
    const int64_t points = p->tasks * p->queries;
    job->owned = NULL;
    if ((points * p->input_width > 0 && !p->input) ||
        (targets && points * p->output_width > 0 && !p->target))
        return SATTN_ENULL;
    if (p->heads > 0 && c > 0 &&
        (!p->log_weight ||
         (p->width > 0 && (!p->mean || (job->covariance_width && !p->covariance)))))
        return SATTN_ENULL;
    for (int64_t i = 0; p->heads > 0 && i < c; i++)
        if (isnan(p->log_weight[i]) || p->log_weight[i] == (double)INFINITY)
            return SATTN_EVALUE;
    return p->heads > 0 && p->attention == SATTN_LEARN_LINEAR ? make_linear(job) : SATTN_OK;
}

void sattn_learn_end(const sattn_learn_job *job)
{
    sattn_free(job->owned);
}

sattn_learn_run sattn_learn_block(const sattn_learn_job *job, int64_t block)
{
    const int64_t m = job->p.queries, task = block * job->block_tasks / job->task_blocks;
    const int64_t tasks =
        job->p.tasks - task < job->block_tasks ? job->p.tasks - task : job->block_tasks;
    const int64_t first = block % job->task_blocks * SATTN_LEARN_BLOCK, left = tasks * m - first;
    return (sattn_learn_run){task, tasks, task * m + first,
                             left < SATTN_LEARN_BLOCK ? left : SATTN_LEARN_BLOCK};
}

void sattn_learn_prompt(const sattn_learn_job *job, const sattn_learn_run *run,
                        sattn_mixture *mixture)
{
    const sattn_learn *p = &job->p;
    const int64_t first = p->shared ? 0 : run->task * p->components;
    const int64_t batch = p->shared ? 1 : run->tasks;
    sattn_mixture_init(mixture, sizeof *mixture, batch, p->heads * run->count / batch,
                       p->components, p->width, 0, p->covariance_kind);
    mixture->log_weight = p->log_weight + first;
    mixture->mean = p->mean + first * p->width;
    mixture->covariance =
        job->covariance_width ? p->covariance + first * job->covariance_width : NULL;
}

int32_t sattn_learn_threads(const sattn_learn_job *job, int32_t *inner)
{
    const sattn_learn *p = &job->p;
    const int64_t work = p->tasks * p->queries * (p->heads + 1) *
                         ((p->components + 1) * (job->covariance_width + p->width) +
                          p->width * (p->input_width + p->output_width) + 1);
    *inner = job->blocks == 1 ? p->threads : 1;
    return work < 1 << 16 ? 1 : sattn_par_threads(p->threads);
}

/* All blocks are as large as the first, but for the last of a task or of all. */
int64_t sattn_learn_workspace(const sattn_learn_job *job, int32_t inner)
{
    const int64_t shapes[] = {0, job->task_blocks - 1, job->blocks - 1};
    int64_t most = 0;
    for (int i = 0; job->p.heads > 0 && job->blocks > 0 && i < 3; i++) {
        const sattn_learn_run run = sattn_learn_block(job, shapes[i]);
        sattn_mixture m;
        int64_t bytes = 0;
        sattn_learn_prompt(job, &run, &m);
        m.threads = inner;
        sattn_mixture_workspace_f64(&m, &bytes);
        most = bytes > most ? bytes : most;
    }
    return (most + 63) / 64 * 64;
}

void sattn_learn_sum(const sattn_learn_job *job, const double *parts, double *sum)
{
    const int64_t count = job->part[PARTS];
    memset(sum, 0, (size_t)count * sizeof(double));
    for (int64_t b = 0; b < job->blocks; b++)
        for (int i = 0; i < PARTS; i++)
            for (int64_t j = job->part[i]; job->p.trained >> i & 1 && j < job->part[i + 1]; j++)
                sum[j] += parts[b * count + j];
}
