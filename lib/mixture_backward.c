/* SPDX-License-Identifier: BSD-2-Clause */
/* Backward in blocks of queries. For a block, first every tile of queries is pulled through all
 * components: weights w and b go to planes [C][block], dtilt to the caller. Then every parameter
 * sums the planes over the block's queries, each task owning its components, and adds that to its
 * gradient. So no sum is shared between tasks, and its order is that of the blocks. */
#include "check.h"
#include "mixture_call.h"
#include "par.h"

#include <string.h>

typedef FN(sattn_call) call;
typedef struct FN(sattn_gemm) gemm;

typedef FN(sattn_block) block;

static real *scratch_of(const block *k, int32_t thread)
{
    const int64_t own = k->scratch >= 0 ? k->scratch : thread;
    return k->k->work + k->k->plan->scratch + own * k->k->plan->scratch_size;
}

static const real *tilt_rows(const block *k, int64_t q)
{
    const sattn_mixture *p = k->k->p;
    return sattn_from(p->tilt, k->b * p->tilt_batch + (k->first + q) * p->tilt_row);
}

static const real *dout_rows(const block *k, int64_t q)
{
    const sattn_mixture *p = k->k->p;
    const real *dout = p->dout;
    return dout ? dout + k->b * p->dout_batch + (k->first + q) * p->dout_row : NULL;
}

static void pull_tile(void *context, int64_t task, int32_t thread)
{
    const block *k = context;
    const sattn_mixture *p = k->k->p;
    const int64_t d = p->width, e = sattn_value_width(p), q = task * SATTN_TILE;
    const int64_t lanes = k->count - q < SATTN_TILE ? k->count - q : SATTN_TILE;
    const int diagonal = p->covariance_kind == SATTN_COVARIANCE_DIAG;
    real *tilt = scratch_of(k, thread), *half = tilt + d * SATTN_TILE,
         *product = half + d * SATTN_TILE;
    real *dtilt = product + d * SATTN_TILE, *dout = dtilt + d * SATTN_TILE,
         *out = dout + e * SATTN_TILE;
    real *rows = out + e * SATTN_TILE, *rest = rows + 4 * SATTN_TILE;
    kernels()->pack(lanes, d, tilt_rows(k, q), p->tilt_row, tilt);
    kernels()->pack(p->dout ? lanes : 0, e, dout_rows(k, q), p->dout_row, dout);
    FN(sattn_tile_statistics)(k->k, k->b, k->first + q, lanes, dout, out, rows);
    if (diagonal)
        kernels()->squares(d * SATTN_TILE, tilt, p->value_width ? NULL : dout, half, product);
    /* The b of a query sum to its dcgf: that is what the centre, taken from every mean, owes dtilt.
     */
    kernels()->gemm(&(gemm){d, SATTN_TILE, 1, FN(sattn_call_centre)(k->k, k->b), 1, 0,
                            rows + 3 * SATTN_TILE, SATTN_TILE, dtilt, SATTN_TILE, NULL, 0, 0});
    FN(sattn_shared_pull)
    (k->k, k->b, tilt, dout, rows + 3 * SATTN_TILE, rows + 2 * SATTN_TILE, dtilt, rest);
    struct FN(sattn_components) run;
    int64_t first, count;
    for (int64_t w = 0; w < p->components; w += SATTN_WINDOW) {
        const int64_t end = w + SATTN_WINDOW < p->components ? w + SATTN_WINDOW : p->components;
        for (int64_t c = w; (count = FN(sattn_call_run)(k->k, k->b, c, end, &first, &run)) > 0;
             c = first + count) {
            const int64_t at = first * k->k->plan->block + q;
            kernels()->mixture_pull(&(struct FN(sattn_pull)){
                &run, lanes, tilt, half, dout, product, rows, rows + SATTN_TILE,
                rows + 2 * SATTN_TILE, k->w + at, k->d + at, k->k->plan->block, dtilt, rest});
        }
    }
    if (p->dtilt)
        kernels()->unpack(
            lanes, d, dtilt,
            sattn_from(p->dtilt, k->b * p->dtilt_batch + (k->first + q) * p->dtilt_row),
            p->dtilt_row, p->flags & SATTN_ACCUMULATE);
    for (int64_t r = q; diagonal && p->dcovariance && r < q + lanes; r++)
        kernels()->squares(d, tilt_rows(k, r), p->value_width ? NULL : dout_rows(k, r),
                           k->half + r * d, k->product + r * d);
}

/* into += plane x [rows of queries]  (+ plane2 x rows2): `count` components from `first` */
static void sum_planes(const block *k, int64_t first, int64_t count, int64_t width,
                       const real *plane, const real *x, int64_t x_row, const real *plane2,
                       const real *x2, int64_t x2_row, real *sum, real *into)
{
    const int64_t stride = k->k->plan->block;
    if (x)
        kernels()->gemm(&(gemm){count, width, k->count, plane + first * stride, stride, 1, x, x_row,
                                sum, width, NULL, 0, 0});
    if (x2)
        kernels()->gemm(&(gemm){count, width, k->count, plane2 + first * stride, stride, 1, x2,
                                x2_row, sum, width, x ? sum : NULL, width, 1});
    if (x || x2)
        kernels()->add(count * width, into + first * width, sum);
}

static void sum_vectors(const block *k, int64_t group, real *sum)
{
    const sattn_mixture *p = k->k->p;
    const int64_t d = p->width, e = p->value_width, end = (group + 1) * SATTN_GROUP;
    const real *tilt = tilt_rows(k, 0), *dout = dout_rows(k, 0), *keys = e ? NULL : dout;
    real *log_weight = p->dlog_weight, *mean = p->dmean, *covariance = p->dcovariance;
    real *value = p->dvalue_mean;
    struct FN(sattn_components) run;
    int64_t first, count;
    for (int64_t c = group * SATTN_GROUP;
         (count = FN(sattn_call_run)(k->k, k->b, c, end < p->components ? end : p->components,
                                     &first, &run)) > 0;
         c = first + count) {
        if (log_weight)
            sum_planes(k, first, count, 1, k->d, k->ones, 1, NULL, NULL, 0, sum,
                       log_weight + k->b * p->log_weight_batch);
        if (mean)
            sum_planes(k, first, count, d, k->d, tilt, p->tilt_row, k->w, keys, p->dout_row, sum,
                       mean + k->b * p->mean_batch);
        if (covariance && p->covariance_kind == SATTN_COVARIANCE_DIAG)
            sum_planes(k, first, count, d, k->d, k->half, d, k->w, keys ? k->product : NULL, d, sum,
                       covariance + k->b * p->covariance_batch);
        if (value)
            sum_planes(k, first, count, e, NULL, NULL, 0, k->w, dout, p->dout_row, sum,
                       value + k->b * p->value_mean_batch);
    }
}

/* into[rows][D] += sum over queries of z u', with z = scale b x + w y, for component c */
static void sum_outer(const block *k, int64_t c, int64_t rows, real scale, const real *x,
                      const real *y, real *scratch, real *into)
{
    const sattn_mixture *p = k->k->p;
    const int64_t d = p->width, at = c * k->k->plan->block;
    real *sum = scratch, *z = sum + SATTN_PANEL * d;
    for (int64_t q = 0; q < k->count; q += SATTN_CHUNK) {
        const int64_t n = k->count - q < SATTN_CHUNK ? k->count - q : SATTN_CHUNK;
        kernels()->mixture_outer(&(struct FN(sattn_outer)){
            n, rows, k->d + at + q, k->w + at + q, scale, x ? x + q * p->tilt_row : NULL,
            p->tilt_row, y ? y + q * p->dout_row : NULL, p->dout_row, z});
        kernels()->gemm(&(gemm){rows, d, n, z, 1, rows, tilt_rows(k, q), p->tilt_row, sum, d,
                                q ? sum : NULL, d, 1});
    }
    kernels()->add(rows * d, into, sum);
}

static void sum_matrix(const block *k, int64_t c, int64_t panel, int cross, real *scratch)
{
    const sattn_mixture *p = k->k->p;
    const int64_t d = p->width, e = p->value_width, i = panel * SATTN_PANEL, height = cross ? e : d;
    const int64_t rows = height - i < SATTN_PANEL ? height - i : SATTN_PANEL;
    const real *dout = dout_rows(k, 0);
    struct FN(sattn_components) run;
    int64_t first;
    if (FN(sattn_call_run)(k->k, k->b, c, c + 1, &first, &run) == 0)
        return;
    if (cross)
        sum_outer(k, c, rows, 0, NULL, dout ? dout + i : NULL, scratch,
                  sattn_from(p->dcross, k->b * p->cross_batch + (c * e + i) * d));
    else
        sum_outer(k, c, rows, (real)0.5, tilt_rows(k, 0) + i, dout && !e ? dout + i : NULL, scratch,
                  sattn_from(p->dcovariance, k->b * p->covariance_batch + (c * d + i) * d));
}

/* Tasks of the sums over a block's queries: groups of vectors, groups of factors, panels of
 * covariances, panels of crosses */
typedef struct {
    int64_t groups, factors, covariance_panels, cross_panels, tasks;
} sums;

static sums sums_of(const sattn_mixture *p, const sattn_mixture_plan *plan)
{
    const int64_t group = sattn_factor_group(plan);
    const int vectors = p->dlog_weight || p->dmean || p->dvalue_mean ||
                        (p->dcovariance && p->covariance_kind == SATTN_COVARIANCE_DIAG);
    sums s = {0};
    s.groups = vectors ? (p->components + SATTN_GROUP - 1) / SATTN_GROUP : 0;
    s.factors = p->dcovariance && plan->rank ? (p->components + group - 1) / group : 0;
    if (p->dcovariance && p->covariance_kind == SATTN_COVARIANCE_FULL)
        s.covariance_panels = (p->width + SATTN_PANEL - 1) / SATTN_PANEL;
    if (p->dcross && p->dout)
        s.cross_panels = (p->value_width + SATTN_PANEL - 1) / SATTN_PANEL;
    s.tasks = s.groups + s.factors + p->components * (s.covariance_panels + s.cross_panels);
    return s;
}

static void sum_task(void *context, int64_t task, int32_t thread)
{
    const block *k = context;
    const sums s = sums_of(k->k->p, k->k->plan);
    real *scratch = scratch_of(k, thread);
    const int64_t covariances = k->k->p->components * s.covariance_panels;
    if (task < s.groups)
        sum_vectors(k, task, scratch);
    else if ((task -= s.groups) < s.factors)
        FN(sattn_factor_sum)(k, task, scratch);
    else if ((task -= s.factors) < covariances)
        sum_matrix(k, task / s.covariance_panels, task % s.covariance_panels, 0, scratch);
    else if ((task -= covariances) >= 0)
        sum_matrix(k, task / s.cross_panels, task % s.cross_panels, 1, scratch);
}

static void entry(const call *c, int64_t b, int32_t lane, int32_t scratch, int32_t threads)
{
    const int64_t size = c->plan->block, planes = c->p->components * size;
    block k = {.k = c, .b = b, .lane = lane, .scratch = scratch};
    k.w = c->work + c->plan->planes + lane * c->plan->plane;
    k.d = k.w + planes;
    k.ones = k.d + planes;
    k.half = k.ones + size;
    k.product = k.half + size * c->p->width;
    for (int64_t q = 0; q < size; q++)
        k.ones[q] = 1;
    for (k.first = 0; k.first < c->p->queries; k.first += size) {
        k.count = c->p->queries - k.first < size ? c->p->queries - k.first : size;
        sattn_par_for((k.count + SATTN_TILE - 1) / SATTN_TILE, threads, pull_tile, &k);
        sattn_par_for(sums_of(c->p, c->plan).tasks, threads, sum_task, &k);
    }
}

static void one_entry(void *context, int64_t b, int32_t thread)
{
    entry(context, b, thread, thread, 1);
}

/* Sets a parameter's gradient to 0, batch entry by batch entry; a shared one is there even if there
 * is no entry to sum over. */
static void reset(const sattn_mixture *p, void *gradient, int64_t batch_stride, int64_t count)
{
    const int64_t entries = batch_stride ? p->batch : 1;
    for (int64_t b = 0; gradient && b < entries; b++)
        memset(sattn_from(gradient, b * batch_stride), 0, (size_t)count * sizeof(real));
}

void FN(sattn_mixture_reset)(const sattn_mixture *p)
{
    const int64_t c = p->components, e = p->value_width;
    if (p->flags & SATTN_ACCUMULATE)
        return;
    reset(p, p->dlog_weight, p->log_weight_batch, c);
    reset(p, p->dmean, p->mean_batch, c * p->width);
    reset(p, p->dcovariance, p->covariance_batch,
          sattn_covariance_count(p) * sattn_covariance_width(p));
    reset(p, p->dvalue_mean, p->value_mean_batch, c * e);
    reset(p, p->dcross, p->cross_batch, c * e * p->width);
}

void FN(sattn_call_reset)(const call *k)
{
    FN(sattn_mixture_reset)(k->given);
    FN(sattn_covariance_reset)(k);
}

int32_t FN(sattn_mixture_backward)(const sattn_mixture *given)
{
    sattn_mixture p;
    sattn_mixture_plan plan;
    call k;
    int32_t status = sattn_mixture_check(&p, given, SATTN_BACKWARD, sizeof(real));
    if (status == SATTN_OK)
        status = sattn_mixture_plan_make(&plan, &p, SATTN_BACKWARD, sizeof(real));
    if (status == SATTN_OK)
        status = FN(sattn_call_begin)(&k, &p, &plan);
    if (status != SATTN_OK)
        return sattn_answer(status);
    FN(sattn_call_reset)(&k);
    if (plan.lanes > 1)
        sattn_par_for(p.batch, plan.lanes, one_entry, &k);
    for (int64_t b = 0; plan.lanes == 1 && b < p.batch; b++)
        entry(&k, b, 0, -1, plan.threads);
    FN(sattn_shared_sum)(&k);
    FN(sattn_covariance_collect)(&k);
    sattn_free(k.owned);
    return SATTN_OK;
}
