/* SPDX-License-Identifier: BSD-2-Clause */
#include "fit.h"
#include "check.h"
#include "par.h"
#include "real.h"

#include <math.h>
#include <string.h>

/* Farthest that a token may lie from the mean of all, and root of the largest floor: a covariance
 * is then finite as `real`, and every sum of squares as double. */
#if SATTN_REAL == 32
static const double farthest = 0x1p62;
#else
static const double farthest = 0x1p500;
#endif

static int32_t check(sattn_fit *p, const sattn_fit *given)
{
    int32_t status = sattn_check_struct(p, given, sizeof *p, SATTN_FIT_LEAST_SIZE);
    if (status == SATTN_OK)
        status = sattn_par_check(p->threads);
    if (status != SATTN_OK)
        return status;
    if (p->covariance_kind < SATTN_COVARIANCE_ZERO || p->covariance_kind > SATTN_COVARIANCE_FULL ||
        p->flags != 0 || p->reserved != 0)
        return SATTN_EOPTION;
    if (p->tokens < 1 || p->components < 1 || p->width < 1 || p->lloyd_iterations < 0 ||
        p->em_iterations < 0 || p->trace_length < 0)
        return SATTN_ESIZE;
    if (!(p->tolerance >= 0) || !(p->floor > 0) || p->floor > farthest * farthest)
        return SATTN_EVALUE;
    const sattn_view token = {p->token, {1, p->tokens, p->width}, {0, p->token_row, 1}};
    status = sattn_check_input(&token);
    if (status == SATTN_OK && p->tokens > 1 && p->token_row < p->width)
        status = SATTN_ESTRIDE;
    if (status == SATTN_OK && (!p->log_weight || !p->mean ||
                               (!p->covariance && p->covariance_kind != SATTN_COVARIANCE_ZERO) ||
                               (!p->trace && p->trace_length > 0)))
        status = SATTN_ENULL;
    return status;
}

/* Outputs are written one after another at the end: one that shares memory with another would be
 * lost. Of a shape that sattn_em_layout accepted. */
static int32_t check_outputs(const sattn_fit *p)
{
    enum { ARRAYS = 7 };
    const int64_t c = p->components, d = p->width;
    const int64_t s = p->covariance_kind == SATTN_COVARIANCE_ZERO   ? 0
                      : p->covariance_kind == SATTN_COVARIANCE_DIAG ? d
                                                                    : d * d;
    const struct {
        sattn_view view;
        int64_t bytes;
    } a[ARRAYS] = {
        {{p->token, {1, p->tokens, d}, {0, p->token_row, 1}}, sizeof(real)},
        {{p->log_weight, {1, 1, c}, {0, 0, 1}}, sizeof(real)},
        {{p->mean, {1, 1, c * d}, {0, 0, 1}}, sizeof(real)},
        {{p->covariance, {1, 1, c * s}, {0, 0, 1}}, sizeof(real)},
        {{p->trace, {1, 1, p->trace_length}, {0, 0, 1}}, sizeof *p->trace},
        {{p->iterations, {1, 1, 1}, {0, 0, 1}}, sizeof *p->iterations},
        {{p->label, {1, 1, p->tokens}, {0, 0, 1}}, sizeof *p->label},
    };
    if (p->trace_length > INT64_MAX / 16)
        return SATTN_ESIZE;
    for (int i = 1; i < ARRAYS; i++)
        for (int j = 0; j < i; j++)
            if (sattn_spans_meet(&a[i].view, a[i].bytes, &a[j].view, a[j].bytes))
                return SATTN_EALIAS;
    return SATTN_OK;
}

/* Tokens as doubles, less their mean: a common offset would cost the scatter matrices their digits.
 */
static int32_t load(const sattn_em *em, double *offset)
{
    const sattn_fit *p = em->p;
    for (int64_t i = 0; i < em->d; i++)
        offset[i] = 0;
    for (int64_t n = 0; n < em->n; n++)
        for (int64_t i = 0; i < em->d; i++) {
            const double x = ((const real *)p->token)[n * p->token_row + i];
            if (!isfinite(x))
                return SATTN_EVALUE;
            em->token[n * em->d + i] = x;
            offset[i] += x / (double)em->n;
        }
    for (int64_t n = 0; n < em->n; n++)
        for (int64_t i = 0; i < em->d; i++) {
            const double x = em->token[n * em->d + i] - offset[i];
            if (fabs(x) > farthest)
                return SATTN_EVALUE;
            em->column[i * em->n + n] = em->token[n * em->d + i] = x;
        }
    return SATTN_OK;
}

static void store(const sattn_em *em, const double *offset)
{
    const sattn_fit *p = em->p;
    const int64_t c = em->c, d = em->d;
    const int64_t s = p->covariance_kind == SATTN_COVARIANCE_FULL ? d * d : d;
    real *log_weight = p->log_weight, *mean = p->mean, *covariance = p->covariance;
    for (int64_t k = 0; k < c; k++)
        log_weight[k] = (real)em->log_weight[k];
    for (int64_t k = 0; k < c * d; k++)
        mean[k] = (real)(em->mean[k] + offset[k % d]);
    for (int64_t k = 0; p->covariance_kind != SATTN_COVARIANCE_ZERO && k < c * s; k++)
        covariance[k] = (real)em->covariance[k];
    for (int64_t i = 0; i < p->trace_length; i++)
        p->trace[i] = i < em->iterations ? em->trace[i] : (double)NAN;
    if (p->iterations)
        *p->iterations = em->iterations;
    if (p->label)
        memcpy(p->label, em->label, (size_t)em->n * sizeof *em->label);
}

int32_t FN(sattn_fit)(const sattn_fit *given)
{
    sattn_fit p;
    int32_t status = check(&p, given);
    if (status != SATTN_OK)
        return status;
    sattn_em em = {.p = &p,
                   .n = p.tokens,
                   .c = p.components,
                   .d = p.width,
                   .floor = p.floor,
                   .threads = sattn_par_threads(p.threads)};
    const int64_t doubles = sattn_em_layout(&em, NULL);
    if (doubles < 0)
        return SATTN_ESIZE;
    status = check_outputs(&p);
    if (status != SATTN_OK)
        return status;
    double *memory = sattn_alloc((doubles + em.d) * (int64_t)sizeof *memory);
    if (!memory)
        return SATTN_ENOMEM;
    double *offset = memory + doubles;
    sattn_em_layout(&em, memory);
    status = load(&em, offset);
    if (status == SATTN_OK)
        status = sattn_em_run(&em);
    if (status == SATTN_OK)
        store(&em, offset);
    sattn_free(memory);
    return status;
}
