/* SPDX-License-Identifier: BSD-2-Clause */
/* Covariances as the kernels take them. Kinds that are made of others are multiplied out once a
 * call, S = s I and S = diag(s) + F F' (F = L, s = 0 for CHOLESKY), so that a query costs what it
 * costs with S itself; the gradient G of S comes back by the chain rule, once for all queries:
 * trace G, and (G + G') F = 2 G F. A factor of low rank is kept, transposed, beside s: the kernels
 * multiply with it and give its gradient. */
#include "mixture_call.h"
#include "par.h"

#include <stddef.h>

typedef FN(sattn_call) call;
typedef FN(sattn_matrices) matrices;
typedef struct FN(sattn_gemm) gemm;

/* Whether a component of this covariance has a weight > 0: only then is it read. */
static int is_live(const call *k, int64_t set, int64_t c)
{
    const int64_t all = k->given->batch, own = k->given->covariance_batch != 0;
    const int64_t from = sattn_is_shared(k->given) ? 0 : c;
    const int64_t end = sattn_is_shared(k->given) ? k->given->components : c + 1;
    struct FN(sattn_components) run;
    int64_t first;
    for (int64_t b = own ? set : 0; b < (own ? set + 1 : all); b++)
        if (FN(sattn_call_run)(k, b, from, end, &first, &run) > 0)
            return 1;
    return 0;
}

/* Where task number `task` of sets x covariances is in an array of `width` elements each */
static int64_t place(const call *k, int64_t task, int64_t batch, int64_t width)
{
    const int64_t count = sattn_covariance_count(k->given);
    return task / count * batch + task % count * width;
}

static int64_t place_given(const call *k, int64_t task)
{
    return place(k, task, k->given->covariance_batch, sattn_covariance_width(k->given));
}

static real *scratch_of(const call *k, int32_t thread)
{
    return k->work + k->plan->scratch + thread * k->plan->scratch_size;
}

/* F' of the covariance s, zeros above L's diagonal; its columns, D of them, are F's rows. */
static int64_t transpose_factor(const call *k, const real *s, real *factor)
{
    const int64_t d = k->p->width, n = sattn_factor_width(k->given);
    const int lower = k->given->covariance_kind == SATTN_COVARIANCE_CHOLESKY;
    for (int64_t i = 0; i < d; i++)
        for (int64_t j = 0; j < n; j++)
            factor[j * d + i] = !lower ? s[d + i * n + j] : j <= i ? s[i * d + j] : 0;
    return n;
}

static int keeps_factor(const call *k)
{
    return k->given->covariance_kind == SATTN_COVARIANCE_LOW_RANK &&
           k->plan->kind == SATTN_COVARIANCE_DIAG;
}

/* Where F' of a task's covariance is */
static int64_t place_factor(const call *k, int64_t task)
{
    return FN(sattn_call_factor)(k, task / k->p->components, task % k->p->components);
}

/* s and F' apart */
static void keep(const call *k, int64_t task, const real *s)
{
    const int64_t d = k->p->width;
    real *to = k->work + k->plan->matrices;
    real *variance = to + place(k, task, k->covariance.batch, d);
    for (int64_t i = 0; i < d; i++)
        variance[i] = s[i];
    transpose_factor(k, s, to + place_factor(k, task));
}

static void expand(void *context, int64_t task, int32_t thread)
{
    const call *k = context;
    const int64_t d = k->p->width, count = sattn_covariance_count(k->given);
    const real *s = sattn_from(k->given->covariance, place_given(k, task));
    real *to = k->work + k->plan->matrices + task * k->plan->expanded;
    real *factor = scratch_of(k, thread);
    if (!is_live(k, task / count, task % count))
        return;
    if (keeps_factor(k)) {
        keep(k, task, s);
        return;
    }
    if (k->given->covariance_kind == SATTN_COVARIANCE_ISOTROPIC) {
        for (int64_t i = 0; i < d; i++)
            to[i] = s[0];
        return;
    }
    const int64_t n = transpose_factor(k, s, factor);
    for (int64_t i = 0; i < d; i++)
        for (int64_t j = 0; j < d; j++)
            to[i * d + j] =
                i == j && k->given->covariance_kind == SATTN_COVARIANCE_LOW_RANK ? s[i] : 0;
    kernels()->gemm(&(gemm){d, d, n, factor, 1, d, factor, d, to, d, to, d, 1});
}

void FN(sattn_covariance_expand)(call *k)
{
    const sattn_mixture *given = k->given;
    const sattn_mixture_plan *plan = k->plan;
    const int64_t count = sattn_covariance_count(given);
    matrices *m = &k->covariance;
    *m = (matrices){plan->kind, sattn_covariance_width(given), given->covariance_batch,
                    given->covariance, given->dcovariance};
    if (plan->expanded) {
        m->width = keeps_factor(k) ? k->p->width : plan->expanded;
        m->batch = given->covariance_batch ? count * plan->expanded : 0;
        m->data = k->work + plan->matrices;
        m->slope = given->dcovariance ? k->work + plan->slopes : NULL;
    }
    k->p->covariance_kind = plan->kernel_kind;
    k->p->covariance = sattn_is_shared(given) ? NULL : m->data;
    k->p->dcovariance = sattn_is_shared(given) ? NULL : m->slope;
    k->p->covariance_batch = m->batch;
    if (plan->expanded)
        sattn_par_for(plan->covariances * count, plan->threads, expand, k);
}

void FN(sattn_covariance_reset)(const call *k)
{
    const int64_t all = k->plan->covariances * sattn_covariance_count(k->given);
    for (int64_t i = 0; k->covariance.slope && i < all * k->plan->expanded; i++)
        k->covariance.slope[i] = 0;
}

/* G := (G + G') / 2 */
static void symmetrise(int64_t d, real *g)
{
    for (int64_t i = 0; i < d; i++)
        for (int64_t j = 0; j < i; j++)
            g[i * d + j] = g[j * d + i] = (g[i * d + j] + g[j * d + i]) * (real)0.5;
}

/* The gradients of s and F' to the caller's s and F */
static void hand_back(const call *k, int64_t task, const real *variance, real *into)
{
    const int64_t d = k->p->width, n = k->plan->rank;
    const real *factor = k->covariance.slope + place_factor(k, task);
    for (int64_t i = 0; i < d; i++)
        into[i] += variance[i];
    for (int64_t i = 0; i < d; i++)
        for (int64_t j = 0; j < n; j++)
            into[d + i * n + j] += factor[j * d + i];
}

static void collect(void *context, int64_t task, int32_t thread)
{
    const call *k = context;
    const int64_t d = k->p->width, count = sattn_covariance_count(k->given),
                  at = place_given(k, task);
    const int32_t kind = k->given->covariance_kind;
    real *slope = k->covariance.slope + place(k, task, k->covariance.batch, k->covariance.width);
    real *into = sattn_from(k->given->dcovariance, at), *factor = scratch_of(k, thread);
    if (k->covariance.kind == SATTN_COVARIANCE_FULL)
        symmetrise(d, slope);
    if (!k->plan->expanded || !is_live(k, task / count, task % count))
        return;
    if (kind == SATTN_COVARIANCE_ISOTROPIC) {
        real trace = 0;
        for (int64_t i = 0; i < d; i++)
            trace += slope[i];
        into[0] += trace;
        return;
    }
    if (keeps_factor(k)) {
        hand_back(k, task, slope, into);
        return;
    }
    const int lower = kind == SATTN_COVARIANCE_CHOLESKY;
    const int64_t n = transpose_factor(k, sattn_from(k->given->covariance, at), factor);
    real *product = factor + n * d; /* (G F)' */
    kernels()->gemm(&(gemm){n, d, d, factor, d, 1, slope, d, product, d, NULL, 0, 0});
    for (int64_t i = 0; i < d && !lower; i++)
        into[i] += slope[i * d + i];
    for (int64_t i = 0; i < d; i++)
        for (int64_t j = 0; j < (lower ? i + 1 : n); j++)
            into[(lower ? 0 : d) + i * n + j] += 2 * product[j * d + i];
}

void FN(sattn_covariance_collect)(const call *k)
{
    if (k->covariance.slope && k->covariance.kind != SATTN_COVARIANCE_ZERO)
        sattn_par_for(k->plan->covariances * sattn_covariance_count(k->given), k->plan->threads,
                      collect, (void *)k);
}
