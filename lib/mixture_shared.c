/* SPDX-License-Identifier: BSD-2-Clause */
/* One covariance S for all components. u'S u / 2 is then common to all logits and S u to all keys,
 * so the weights are those of atoms at the means, which is what the kernels are given. Here is the
 * rest:
 *
 *   cgf += u'S u / 2          out += S u            (joint: -)
 *   dtilt += dcgf S u + S dout                      (joint: dcgf S u)
 *   dS = sum over queries of  dcgf u u' / 2 + (dout u' + u dout') / 2        (joint: the first) */
#include "mixture_call.h"
#include "par.h"

#include <stddef.h>

typedef FN(sattn_call) call;
typedef struct FN(sattn_gemm) gemm;

static int is_shared(const call *k)
{
    return sattn_is_shared(k->given) && k->covariance.kind != SATTN_COVARIANCE_ZERO;
}

/* A batch entry without a component of weight > 0 has outputs and gradients of 0. */
static int is_live(const call *k, int64_t b)
{
    struct FN(sattn_components) run;
    int64_t first;
    return FN(sattn_call_run)(k, b, 0, k->p->components, &first, &run) > 0;
}

/* y = S x, or y += S x; tiles [D] */
static void apply(const call *k, int64_t b, const real *x, real *y, int add)
{
    const int64_t d = k->p->width;
    const real *s = k->covariance.data + b * k->covariance.batch;
    if (k->covariance.kind == SATTN_COVARIANCE_FULL) {
        kernels()->gemm(&(gemm){d, SATTN_TILE, d, s, d, 1, x, SATTN_TILE, y, SATTN_TILE,
                                add ? y : NULL, SATTN_TILE, 1});
        return;
    }
    for (int64_t i = 0; i < d * SATTN_TILE; i++)
        y[i] = (add ? y[i] : 0) + s[i / SATTN_TILE] * x[i];
}

/* sum[q] += scale x . y; tiles [D] */
static void add_dot(int64_t d, real scale, const real *x, const real *y, real *sum)
{
    for (int64_t i = 0; i < d; i++)
        for (int64_t q = 0; q < SATTN_TILE; q++)
            sum[q] += scale * x[i * SATTN_TILE + q] * y[i * SATTN_TILE + q];
}

static void forward_tile(void *context, int64_t task, int32_t thread)
{
    const call *k = context;
    const sattn_mixture *p = k->p;
    const int64_t b = task / k->plan->tiles, q = task % k->plan->tiles * SATTN_TILE;
    const int64_t d = p->width, left = p->queries - q,
                  lanes = left < SATTN_TILE ? left : SATTN_TILE;
    real *tilt = k->work + k->plan->scratch + thread * k->plan->scratch_size;
    real *su = tilt + d * SATTN_TILE, square[SATTN_TILE] = {0};
    if (!is_live(k, b))
        return;
    kernels()->pack(lanes, d, sattn_from(p->tilt, b * p->tilt_batch + q * p->tilt_row), p->tilt_row,
                    tilt);
    apply(k, b, tilt, su, 0);
    if (p->out && !p->value_width)
        kernels()->unpack(lanes, d, su, sattn_from(p->out, b * p->out_batch + q * p->out_row),
                          p->out_row, 1);
    add_dot(d, (real)0.5, tilt, su, square);
    for (int64_t i = 0; p->cgf && i < lanes; i++)
        ((real *)p->cgf)[b * p->cgf_batch + q + i] += square[i];
}

void FN(sattn_shared_forward)(const call *k)
{
    if (is_shared(k))
        sattn_par_for(k->p->batch * k->plan->tiles, k->plan->threads, forward_tile, (void *)k);
}

int FN(sattn_shared_apply)(const call *k, int64_t b, const real *x, real *y, int add)
{
    if (!is_shared(k) || !is_live(k, b))
        return 0;
    apply(k, b, x, y, add);
    return 1;
}

void FN(sattn_shared_pull)(const call *k, int64_t b, const real *tilt, const real *dout,
                           const real *dcgf, real *offset, real *dtilt, real *su)
{
    const int64_t d = k->p->width;
    if (!FN(sattn_shared_apply)(k, b, tilt, su, 0))
        return;
    for (int64_t i = 0; i < d * SATTN_TILE; i++)
        dtilt[i] += dcgf[i % SATTN_TILE] * su[i];
    if (k->p->value_width)
        return;
    add_dot(d, 1, dout, su, offset); /* out holds S u, the kernels' values do not */
    apply(k, b, dout, dtilt, 1);
}

/* A chunk of queries of batch entry b, as rows */
typedef struct {
    int64_t count;
    const real *tilt, *dout, *dcgf; /* dout, dcgf may be NULL */
} rows;

static rows rows_of(const call *k, int64_t b, int64_t q, int64_t most)
{
    const sattn_mixture *p = k->p;
    const real *dout = p->value_width ? NULL : p->dout, *dcgf = p->dcgf;
    return (rows){p->queries - q < most ? p->queries - q : most,
                  sattn_from(p->tilt, b * p->tilt_batch + q * p->tilt_row),
                  dout ? dout + b * p->dout_batch + q * p->dout_row : NULL,
                  dcgf ? dcgf + b * p->dcgf_batch + q : NULL};
}

/* into[i] += sum over queries of dcgf u_i u_i / 2 + u_i dout_i */
static void sum_diagonal(const call *k, int64_t b, real *scratch, real *into)
{
    const int64_t d = k->p->width;
    real *half = scratch, *product = half + d;
    for (int64_t q = 0; q < k->p->queries; q++) {
        const rows r = rows_of(k, b, q, 1);
        kernels()->squares(d, r.tilt, r.dout, half, product);
        for (int64_t i = 0; i < d; i++)
            into[i] += (r.dcgf ? r.dcgf[0] * half[i] : 0) + (r.dout ? product[i] : 0);
    }
}

/* Rows i .. i + n - 1 of  sum over queries of (dcgf u / 2 + dout) u' */
static void sum_panel(const call *k, int64_t b, int64_t i, int64_t n, real *scratch, real *into)
{
    const sattn_mixture *p = k->p;
    const int64_t d = p->width;
    real ones[SATTN_CHUNK];
    for (int64_t q = 0; q < SATTN_CHUNK; q++)
        ones[q] = 1;
    for (int64_t q = 0; q < p->queries; q += SATTN_CHUNK) {
        const rows r = rows_of(k, b, q, SATTN_CHUNK);
        kernels()->mixture_outer(&(struct FN(sattn_outer)){
            r.count, n, r.dcgf, ones, (real)0.5, r.dcgf ? r.tilt + i : NULL, p->tilt_row,
            r.dout ? r.dout + i : NULL, p->dout_row, scratch});
        kernels()->gemm(
            &(gemm){n, d, r.count, scratch, 1, n, r.tilt, p->tilt_row, into, d, into, d, 1});
    }
}

/* Each task owns its rows of one S and takes the batch entries of that S in their order. */
static void sum_task(void *context, int64_t task, int32_t thread)
{
    const call *k = context;
    const int64_t d = k->p->width, panels = (d + SATTN_PANEL - 1) / SATTN_PANEL;
    const int full = k->covariance.kind == SATTN_COVARIANCE_FULL, own = k->covariance.batch != 0;
    const int64_t set = full ? task / panels : task, i = full ? task % panels * SATTN_PANEL : 0;
    real *scratch = k->work + k->plan->scratch + thread * k->plan->scratch_size;
    real *slope = k->covariance.slope + set * k->covariance.batch;
    for (int64_t b = own ? set : 0; b < (own ? set + 1 : k->p->batch); b++) {
        if (!is_live(k, b))
            continue;
        if (full)
            sum_panel(k, b, i, d - i < SATTN_PANEL ? d - i : SATTN_PANEL, scratch, slope + i * d);
        else
            sum_diagonal(k, b, scratch, slope);
    }
}

void FN(sattn_shared_sum)(const call *k)
{
    const int64_t panels = k->covariance.kind == SATTN_COVARIANCE_FULL
                               ? (k->p->width + SATTN_PANEL - 1) / SATTN_PANEL
                               : 1;
    if (is_shared(k) && k->covariance.slope)
        sattn_par_for(k->plan->covariances * panels, k->plan->threads, sum_task, (void *)k);
}
