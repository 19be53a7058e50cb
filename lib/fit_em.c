/* SPDX-License-Identifier: BSD-2-Clause */
/* Expectation-maximisation in double. Tokens are cut into blocks and components into tasks by
 * number alone, and partial sums are added in their order: the same bits for any thread count. */
#include "check.h"
#include "fit.h"
#include "par.h"

#include <math.h>
#include <string.h>

typedef sattn_em em;
typedef struct sattn_gemm_f64 gemm;

static const double least_count = 1e-8; /* a component that holds less of one token is dead */

static int is_full(const em *e)
{
    return e->p->covariance_kind == SATTN_COVARIANCE_FULL;
}

int64_t sattn_em_layout(em *e, double *memory)
{
    const int64_t n = e->n, c = e->c, d = e->d, s = is_full(e) ? d : 1;
    const int64_t most = (int64_t)1 << 40, widest = (int64_t)1 << 24; /* no overflow below */
    int64_t at = 0;
    if (n > most || c > most || d > widest)
        return -1;
    e->blocks = (n + SATTN_EM_BLOCK - 1) / SATTN_EM_BLOCK;
    int64_t scratch = (is_full(e) ? d : 1) * (SATTN_EM_BLOCK + d) + (c + 2) * SATTN_EM_BLOCK;
    e->scratch_size = scratch;
    const struct {
        double **array;
        int64_t size[3];
    } parts[] = {
        {&e->token, {n, d, 1}},
        {&e->column, {n, d, 1}},
        {&e->weight, {c, n, 1}},
        {&e->count, {c, 1, 1}},
        {&e->mean, {c, d, 1}},
        {&e->covariance, {c, d, s}},
        {&e->log_weight, {c, 1, 1}},
        {&e->whiten, {c, d, s}},
        {&e->constant, {c, 1, 1}},
        {&e->shift, {c, d, 1}},
        {&e->partial, {e->blocks, 1, 1}},
        {&e->scratch, {e->threads, scratch, 1}},
        {&e->trace, {e->p->em_iterations, 1, 1}},
        {(double **)&e->label, {n, 1, 1}},
    };
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        int64_t size = parts[i].size[0];
        if (!sattn_grow(&size, parts[i].size[1]) || !sattn_grow(&size, parts[i].size[2]) ||
            size > INT64_MAX / 16 - at)
            return -1;
        if (memory)
            *parts[i].array = memory + at;
        at += (size + 7) / 8 * 8;
    }
    return at;
}

/* L L' = S in place (lower triangle), then its inverse; returns the sum of log L_ii. A pivot lost
 * to rounding is taken as the floor. */
static double invert_factor(int64_t d, const double *s, double floor, double *w)
{
    double log_determinant = 0;
    for (int64_t i = 0; i < d; i++) {
        for (int64_t j = 0; j <= i; j++) {
            double x = s[i * d + j];
            for (int64_t k = 0; k < j; k++)
                x -= w[i * d + k] * w[j * d + k];
            w[i * d + j] = j < i ? x / w[j * d + j] : sqrt(x > floor / 2 ? x : floor);
        }
        log_determinant += log(w[i * d + i]);
    }
    for (int64_t i = 0; i < d;
         i++) { /* row by row; row i of the inverse needs rows 0 .. i - 1 of it */
        const double inverse = 1 / w[i * d + i];
        for (int64_t j = 0; j < i; j++) {
            double x = 0;
            for (int64_t k = j; k < i; k++)
                x -= w[i * d + k] * w[k * d + j];
            w[(j * d) + i] = x * inverse; /* kept in the upper triangle until the row is done */
        }
        for (int64_t j = 0; j < i; j++) {
            w[i * d + j] = w[j * d + i];
            w[j * d + i] = 0;
        }
        w[i * d + i] = inverse;
    }
    return log_determinant;
}

/* scatter / count + floor of one component, from deviations from its mean */
static void covariance_of(const em *e, int64_t k, double floor, double *scratch)
{
    const int64_t d = e->d, n = e->n;
    const double *r = e->weight + k * n, *mean = e->mean + k * d;
    double *s = e->covariance + k * d * (is_full(e) ? d : 1), *x = scratch;
    memset(s, 0, (size_t)(d * (is_full(e) ? d : 1)) * sizeof(double));
    for (int64_t first = 0; is_full(e) && first < n; first += SATTN_EM_BLOCK) {
        const int64_t count = n - first < SATTN_EM_BLOCK ? n - first : SATTN_EM_BLOCK;
        int64_t used = 0; /* tokens that the component does not touch are left out */
        for (int64_t q = first; q < first + count; q++) {
            if (r[q] == 0)
                continue;
            for (int64_t i = 0; i < d; i++)
                x[used * d + i] = (e->token[q * d + i] - mean[i]) * sqrt(r[q]);
            used++;
        }
        sattn_em_row()->gemm(&(gemm){d, d, used, x, 1, d, x, d, s, d, s, d, 1});
    }
    for (int64_t q = 0; !is_full(e) && q < n; q++)
        for (int64_t i = 0; i < d; i++) {
            const double y = e->token[q * d + i] - mean[i];
            s[i] += r[q] * y * y;
        }
    const int64_t size = d * (is_full(e) ? d : 1);
    for (int64_t i = 0; i < size; i++)
        s[i] /= e->count[k];
    for (int64_t i = 0; i < d; i++)
        s[is_full(e) ? i * d + i : i] += floor;
}

static void mean_of(const em *e, int64_t k)
{
    const double *r = e->weight + k * e->n;
    double *mean = e->mean + k * e->d;
    sattn_em_row()->gemm(&(gemm){1, e->d, e->n, r, 0, 1, e->token, e->d, mean, e->d, NULL, 0, 0});
    for (int64_t i = 0; i < e->d; i++)
        mean[i] /= e->count[k];
}

static void bury(const em *e, int64_t k)
{
    const int64_t d = e->d, size = d * (is_full(e) ? d : 1);
    double *s = e->covariance + k * size;
    memset(s, 0, (size_t)size * sizeof(double));
    for (int64_t i = 0; i < d; i++)
        s[is_full(e) ? i * d + i : i] = e->floor;
    e->log_weight[k] = -INFINITY;
}

/* M-step of one component, and what the next E-step needs of it */
static void maximise(void *context, int64_t k, int32_t thread)
{
    const em *e = context;
    const int64_t d = e->d;
    if (!(e->count[k] > least_count)) {
        bury(e, k);
        return;
    }
    mean_of(e, k);
    e->log_weight[k] = log(e->count[k] / (double)e->n);
    if (e->p->covariance_kind == SATTN_COVARIANCE_ZERO)
        return;
    covariance_of(e, k, e->floor, sattn_em_scratch(e, thread));
    const double *mean = e->mean + k * d;
    double *shift = e->shift + k * d, log_determinant = 0;
    if (is_full(e)) {
        double *w = e->whiten + k * d * d;
        log_determinant = invert_factor(d, e->covariance + k * d * d, e->floor, w);
        for (int64_t i = 0; i < d; i++) {
            shift[i] = 0;
            for (int64_t j = 0; j <= i; j++)
                shift[i] -= w[i * d + j] * mean[j];
        }
    } else {
        for (int64_t i = 0; i < d; i++) {
            const double deviation = sqrt(e->covariance[k * d + i]);
            e->whiten[k * d + i] = 1 / deviation;
            shift[i] = -mean[i] / deviation;
            log_determinant += log(deviation);
        }
    }
    e->constant[k] =
        e->log_weight[k] - log_determinant - (double)d * log(2 * 3.14159265358979323846) / 2;
}

/* log density plus log weight of one component at a block of tokens */
static void densities(const em *e, int64_t k, int64_t first, int64_t count, double *y, double *out)
{
    const int64_t d = e->d;
    const double *shift = e->shift + k * d;
    double sum[SATTN_EM_BLOCK] = {0};
    if (is_full(e))
        sattn_em_row()->gemm(&(gemm){d, count, d, e->whiten + k * d * d, d, 1, e->column + first,
                                     e->n, y, SATTN_EM_BLOCK, shift, 1, 0});
    for (int64_t i = 0; i < d; i++)
        for (int64_t n = 0; n < count; n++) {
            const double z =
                is_full(e) ? y[i * SATTN_EM_BLOCK + n]
                           : e->column[i * e->n + first + n] * e->whiten[k * d + i] + shift[i];
            sum[n] += z * z;
        }
    for (int64_t n = 0; n < count; n++)
        out[n] = e->constant[k] - sum[n] / 2;
}

/* E-step of one block of tokens: responsibilities, labels, log-likelihood */
static void expect(void *context, int64_t block, int32_t thread)
{
    const em *e = context;
    const int64_t first = block * SATTN_EM_BLOCK,
                  count = e->n - first < SATTN_EM_BLOCK ? e->n - first : SATTN_EM_BLOCK;
    double *l = sattn_em_scratch(e, thread), *top = l + e->c * SATTN_EM_BLOCK,
           *sum = top + SATTN_EM_BLOCK, *y = sum + SATTN_EM_BLOCK;
    double total = 0;
    for (int64_t k = 0; k < e->c; k++)
        if (e->log_weight[k] > -INFINITY)
            densities(e, k, first, count, y, l + k * SATTN_EM_BLOCK);
    for (int64_t n = 0; n < count; n++) {
        top[n] = -INFINITY;
        sum[n] = 0;
        for (int64_t k = 0; k < e->c; k++)
            if (e->log_weight[k] > -INFINITY && l[k * SATTN_EM_BLOCK + n] > top[n]) {
                top[n] = l[k * SATTN_EM_BLOCK + n];
                e->label[first + n] = (int32_t)k;
            }
    }
    for (int64_t k = 0; k < e->c; k++) {
        double *r = e->weight + k * e->n + first, *p = l + k * SATTN_EM_BLOCK;
        for (int64_t n = 0; n < count; n++)
            p[n] = e->log_weight[k] > -INFINITY ? p[n] - top[n] : -INFINITY;
        sattn_em_row()->exp(count, p, r);
        for (int64_t n = 0; n < count; n++)
            sum[n] += r[n];
    }
    for (int64_t n = 0; n < count; n++)
        total += top[n] + log(sum[n]);
    for (int64_t k = 0; k < e->c; k++)
        for (int64_t n = 0; n < count; n++)
            e->weight[k * e->n + first + n] /= sum[n];
    e->partial[block] = total;
}

static void count_one(void *context, int64_t k, int32_t thread)
{
    const em *e = context;
    (void)thread;
    e->count[k] = 0;
    for (int64_t n = 0; n < e->n; n++)
        e->count[k] += e->weight[k * e->n + n];
}

int32_t sattn_em_run(em *e)
{
    double spread = 0, before = -INFINITY;
    for (int64_t i = 0; i < e->n * e->d; i++)
        spread += e->token[i] * e->token[i] / (double)e->n;
    /* rounding leaves a covariance uncertain by some ULP of its trace: the floor stays above that
     */
    if (e->floor < spread * 0x1p-44)
        e->floor = spread * 0x1p-44;
    if (sattn_kmeans(e) != SATTN_OK)
        return SATTN_ECANCELLED;
    sattn_par_for(e->c, e->threads, maximise, e);
    e->iterations = 0;
    for (int64_t i = 0; e->p->covariance_kind != SATTN_COVARIANCE_ZERO && i < e->p->em_iterations;
         i++) {
        sattn_par_for(e->blocks, e->threads, expect, e);
        const double value = sattn_em_sum(e);
        e->trace[e->iterations++] = value;
        if (sattn_em_report(e, e->p->lloyd_iterations + 1 + i, value) != SATTN_OK)
            return SATTN_ECANCELLED;
        if (value - before < e->p->tolerance)
            break;
        before = value;
        sattn_par_for(e->c, e->threads, count_one, e);
        sattn_par_for(e->c, e->threads, maximise, e);
    }
    return SATTN_OK;
}

int32_t sattn_fit_init(sattn_fit *p, int64_t size, int64_t tokens, int64_t components,
                       int64_t width, int32_t covariance_kind)
{
    int64_t tokens_size = tokens, components_size = components;
    if (!p)
        return SATTN_ENULL;
    if (size < (int64_t)sizeof *p || size > 1 << 16)
        return SATTN_ESTRUCT;
    if (covariance_kind < SATTN_COVARIANCE_ZERO || covariance_kind > SATTN_COVARIANCE_FULL)
        return SATTN_EOPTION;
    if (!sattn_grow(&tokens_size, width) || !sattn_grow(&components_size, width) ||
        !sattn_grow(&components_size, width))
        return SATTN_ESIZE;
    memset(p, 0, (size_t)size);
    *p = (sattn_fit){.size = size,
                     .tokens = tokens,
                     .components = components,
                     .width = width,
                     .covariance_kind = covariance_kind,
                     .lloyd_iterations = 20,
                     .em_iterations = 100,
                     .tolerance = 1e-6,
                     .floor = 1e-6,
                     .token_row = width};
    return SATTN_OK;
}
