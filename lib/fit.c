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

static int32_t check_options(const sattn_fit *p)
{
    const int32_t kind = p->covariance_kind;
    if (kind < SATTN_COVARIANCE_ZERO || kind > SATTN_COVARIANCE_LOW_RANK ||
        (p->rank && kind != SATTN_COVARIANCE_LOW_RANK) || (p->flags & ~SATTN_SHARED_COVARIANCE))
        return SATTN_EOPTION;
    if (p->tokens < 1 || p->components < 1 || p->width < 1 || p->rank < 0 ||
        p->lloyd_iterations < 0 || p->em_iterations < 0 || p->trace_length < 0 ||
        p->trace_length > INT64_MAX / 16)
        return SATTN_ESIZE;
    if (!(p->tolerance >= 0) || !(p->floor > 0) || p->floor > farthest * farthest)
        return SATTN_EVALUE;
    return SATTN_OK;
}

static sattn_argument packed(const void *data, int64_t count, int64_t bytes)
{
    return (sattn_argument){.view = {data, {1, 1, count, 1}, {0, 0, 1, 0}}, .bytes = bytes};
}

/* Of a shape that sattn_em_layout accepted. Outputs are written one after another at the end: one
 * that shares memory with another would be lost. */
static int32_t check_arrays(const sattn_em *em)
{
    const sattn_fit *p = em->p;
    const int64_t n = p->tokens, c = p->components, d = p->width, r = sizeof(real);
    const int64_t s = sattn_em_width(em) * (sattn_em_is_shared(em) ? 1 : c);
    const sattn_argument in[] = {
        {.view = {p->token, {1, n, d, 1}, {0, p->token_row, 1, 0}}, .bytes = r, .required = 1},
    };
    const sattn_argument out[] = {
        packed(p->log_weight, c, r),
        packed(p->mean, c * d, r),
        packed(p->covariance, s, r),
        packed(p->trace, p->trace_length, sizeof *p->trace),
        packed(p->iterations, 1, sizeof *p->iterations),
        packed(p->label, n, sizeof *p->label),
    };
    if (!p->log_weight || !p->mean || (!p->covariance && s > 0) ||
        (!p->trace && p->trace_length > 0))
        return SATTN_ENULL;
    if (n > 1 && p->token_row < d)
        return SATTN_ESTRIDE;
    return sattn_check_arguments(in, sizeof in / sizeof in[0], out, sizeof out / sizeof out[0],
                                 NULL, 0);
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

static void store(const sattn_em *em, const double *offset, double *covariance)
{
    const sattn_fit *p = em->p;
    const int64_t c = em->c, d = em->d, s = sattn_em_width(em);
    real *log_weight = p->log_weight, *mean = p->mean, *to = p->covariance;
    for (int64_t k = 0; k < c; k++)
        log_weight[k] = (real)em->log_weight[k];
    for (int64_t k = 0; k < c * d; k++)
        mean[k] = (real)(em->mean[k] + offset[k % d]);
    for (int64_t k = 0; s > 0 && k < (sattn_em_is_shared(em) ? 1 : c); k++) {
        sattn_em_covariance(em, k, covariance, em->scratch);
        for (int64_t i = 0; i < s; i++)
            to[k * s + i] = (real)covariance[i];
    }
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
    int32_t status = sattn_check_struct(&p, given, sizeof p, SATTN_FIT_LEAST_SIZE);
    if (status == SATTN_OK)
        status = sattn_par_check(p.threads);
    if (status == SATTN_OK)
        status = check_options(&p);
    if (status != SATTN_OK)
        return status;
    sattn_em em = {.p = &p,
                   .seed = p.seed,
                   .n = p.tokens,
                   .c = p.components,
                   .d = p.width,
                   .floor = p.floor,
                   .threads = sattn_par_threads(p.threads)};
    const int64_t doubles = sattn_em_layout(&em, NULL);
    if (doubles < 0)
        return SATTN_ESIZE;
    status = check_arrays(&em);
    if (status != SATTN_OK)
        return status;
    double *memory =
        sattn_alloc((doubles + em.d + sattn_em_width(&em)) * (int64_t)sizeof *memory);
    if (!memory)
        return SATTN_ENOMEM;
    double *offset = memory + doubles;
    sattn_em_layout(&em, memory);
    status = load(&em, offset);
    if (status == SATTN_OK)
        status = sattn_em_run(&em);
    if (status == SATTN_OK)
        store(&em, offset, offset + em.d);
    sattn_free(memory);
    return status;
}
