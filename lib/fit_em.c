/* SPDX-License-Identifier: BSD-2-Clause */
/* Expectation-maximisation in double. Tokens are cut into blocks and components into tasks by
 * number alone, and partial sums are added in their order: the same bits for any thread count.
 * Here: the E-step, and the iterations. */
#include "check.h"
#include "fit.h"
#include "par.h"

#include <math.h>
#include <string.h>

typedef sattn_em em;
typedef struct sattn_gemm_f64 gemm;

/* A smaller responsibility is taken as 0. The M-step skips it then, and forms no subnormal number
 * of it; a component lives by 1e-8 of a token at least, beside which N of these are nothing. */
static const double least_share = 0x1p-100;

int64_t sattn_em_layout(sattn_em *e, double *memory)
{
    const int64_t n = e->n, c = e->c, d = e->d, s = sattn_em_is_full(e) ? d : 1;
    const int64_t most = (int64_t)1 << 40, widest = (int64_t)1 << 24; /* no overflow below */
    const int64_t rank = e->p->covariance_kind == SATTN_COVARIANCE_LOW_RANK ? e->p->rank : 0;
    int64_t at = 0;
    if (n > most || c > INT32_MAX || d > widest || rank > widest) /* labels are int32_t */
        return -1;
    e->window = n;
    const int64_t blocks = (e->window + SATTN_EM_BLOCK - 1) / SATTN_EM_BLOCK;
    const int64_t expecting = s * SATTN_EM_BLOCK + (c + 2) * SATTN_EM_BLOCK,
                  whitening = (s + 2) * d + (s > 1 ? 2 * d * d + rank * d : 0);
    e->scratch_size = expecting > whitening ? expecting : whitening;
    double *label;
    const struct {
        double **array;
        int64_t size[3];
    } parts[] = {
        {&e->token, {n, d, 1}},
        {&e->column, {n, d, 1}},
        {&e->weight, {c, e->window, 1}},
        {&e->held, {c, 1, 1}},
        {&e->mean, {c, d, 1}},
        {&e->scatter, {c, d, s}},
        {&e->pooled, {sattn_em_is_shared(e), d, s}},
        {&e->whiten, {sattn_em_is_shared(e) ? 1 : c, d, s}},
        {&e->half_log, {c, 1, 1}},
        {&e->log_weight, {c, 1, 1}},
        {&e->constant, {c, 1, 1}},
        {&e->shift, {c, d, 1}},
        {&e->partial, {blocks, 1, 1}},
        {&e->scratch, {e->threads, e->scratch_size, 1}},
        {&e->trace, {e->p->em_iterations, 1, 1}},
        {&label, {n, 1, 1}},
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
    if (memory)
        e->label = (int32_t *)label;
    return at;
}

void sattn_em_open(sattn_em *e, int64_t first, int64_t count)
{
    e->first = first;
    e->count = count;
    e->blocks = (count + SATTN_EM_BLOCK - 1) / SATTN_EM_BLOCK;
    e->total = (double)count;
}

static const double *whitening(const em *e, int64_t k)
{
    return e->whiten + (sattn_em_is_shared(e) ? 0 : k * sattn_em_matrix(e));
}

/* y = whiten x + shift of a block of tokens. Rows of the triangle go by eights, as far as the last
 * of them reaches: half of the square is zeros. */
static void whiten_block(const em *e, int64_t k, int64_t first, int64_t count, double *y)
{
    enum { STRIP = 8 };
    const int64_t d = e->d;
    const double *w = whitening(e, k), *shift = e->shift + k * d;
    for (int64_t i = 0; i < d; i += STRIP) {
        const int64_t rows = d - i < STRIP ? d - i : STRIP;
        sattn_em_row()->gemm(&(gemm){rows, count, i + rows, w + i * d, d, 1, e->column + first,
                                     e->n, y + i * SATTN_EM_BLOCK, SATTN_EM_BLOCK, shift + i, 1,
                                     0});
    }
}

/* log density plus log weight of one component at a block of tokens */
static void densities(const em *e, int64_t k, int64_t first, int64_t count, double *y, double *out)
{
    const int64_t d = e->d;
    double sum[SATTN_EM_BLOCK] = {0};
    if (sattn_em_is_full(e)) {
        whiten_block(e, k, first, count, y);
        for (int64_t i = 0; i < d; i++)
            for (int64_t n = 0; n < count; n++)
                sum[n] += y[i * SATTN_EM_BLOCK + n] * y[i * SATTN_EM_BLOCK + n];
    } else {
        for (int64_t i = 0; i < d; i++) {
            const double *x = e->column + i * e->n + first;
            const double scale = whitening(e, k)[i], shift = e->shift[k * d + i];
            for (int64_t n = 0; n < count; n++) {
                const double z = x[n] * scale + shift;
                sum[n] += z * z;
            }
        }
    }
    for (int64_t n = 0; n < count; n++)
        out[n] = e->constant[k] - sum[n] / 2;
}

/* E-step of one block of tokens: responsibilities, labels, log-likelihood */
static void expect(void *context, int64_t block, int32_t thread)
{
    const em *e = context;
    const int64_t local = block * SATTN_EM_BLOCK, first = e->first + local;
    const int64_t count = sattn_em_count(e, block);
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
        double *r = e->weight + k * e->window + local, *p = l + k * SATTN_EM_BLOCK;
        for (int64_t n = 0; n < count; n++)
            p[n] = e->log_weight[k] > -INFINITY ? p[n] - top[n] : -INFINITY;
        sattn_em_row()->exp(count, p, r);
        for (int64_t n = 0; n < count; n++)
            sum[n] += r[n];
    }
    for (int64_t n = 0; n < count; n++)
        total += top[n] + log(sum[n]);
    for (int64_t k = 0; k < e->c; k++) {
        double *r = e->weight + k * e->window + local;
        for (int64_t n = 0; n < count; n++)
            r[n] = r[n] > least_share * sum[n] ? r[n] / sum[n] : 0;
    }
    e->partial[block] = total;
}

int32_t sattn_em_run(em *e)
{
    const int64_t most = e->p->covariance_kind == SATTN_COVARIANCE_ZERO ? 0 : e->p->em_iterations;
    double spread = 0, before = -INFINITY;
    for (int64_t i = 0; i < e->n * e->d; i++)
        spread += e->token[i] * e->token[i] / (double)e->n;
    /* rounding leaves a covariance uncertain by some ULP of its trace: the floor stays above that
     */
    if (e->floor < spread * 0x1p-44)
        e->floor = spread * 0x1p-44;
    sattn_em_open(e, 0, e->n);
    if (sattn_kmeans(e) != SATTN_OK)
        return SATTN_ECANCELLED;
    sattn_par_for(e->c, e->threads, sattn_em_moments, e);
    sattn_em_maximise(e);
    for (e->iterations = 0; e->iterations < most;) {
        sattn_par_for(e->blocks, e->threads, expect, e);
        const double value = sattn_em_sum(e);
        e->trace[e->iterations++] = value;
        if (sattn_em_report(e, e->p->lloyd_iterations + e->iterations, value) != SATTN_OK)
            return SATTN_ECANCELLED;
        if (value - before < e->p->tolerance)
            return SATTN_OK;
        before = value;
        sattn_par_for(e->c, e->threads, sattn_em_moments, e);
        sattn_em_maximise(e);
    }
    /* the labels are those of the parameters that are handed out */
    if (e->p->covariance_kind != SATTN_COVARIANCE_ZERO && e->p->label)
        sattn_par_for(e->blocks, e->threads, expect, e);
    return SATTN_OK;
}

int32_t sattn_fit_init(sattn_fit *p, int64_t size, int64_t tokens, int64_t components,
                       int64_t width, int32_t covariance_kind)
{
    const int32_t status = sattn_check_init(p, size, SATTN_FIT_LEAST_SIZE);
    if (status != SATTN_OK)
        return status;
    if (covariance_kind < SATTN_COVARIANCE_ZERO || covariance_kind > SATTN_COVARIANCE_LOW_RANK)
        return SATTN_EOPTION;
    if (!sattn_fits(tokens, width, 1, 1) || !sattn_fits(components, width, width, 1))
        return SATTN_ESIZE;
    const sattn_fit q = {.size = size,
                         .tokens = tokens,
                         .components = components,
                         .width = width,
                         .covariance_kind = covariance_kind,
                         .lloyd_iterations = 20,
                         .em_iterations = 100,
                         .tolerance = 1e-6,
                         .floor = 1e-6,
                         .token_row = width};
    sattn_fill(p, size, &q, sizeof q);
    return SATTN_OK;
}
