/* SPDX-License-Identifier: BSD-2-Clause */
/* The limit of linear attention on a mixture: out = M u, M = sum pi_c (Y_c + v_c m_c'), Y = S or X.
 * With G = sum over queries of u dout' (the transpose of M's gradient):
 *   dlog pi_c = pi_c <G', Y_c + v_c m_c'>, dm_c = pi_c G v_c, dv_c = pi_c G' m_c, dY_c = pi_c G',
 * and values = keys add dm_c and dv_c. M and G are kept as [D][E]. */
#include "check.h"
#include "mixture_call.h"
#include "par.h"
#include "sattn/prompt.h"

#include <stddef.h>

typedef FN(sattn_call) call;
typedef struct FN(sattn_gemm) gemm;

typedef struct {
    call k;
    real *memory;
    int64_t each; /* elements a thread */
} linear;

/* One live component of batch entry b */
typedef struct {
    int64_t c;
    const real *mean, *value, *cross, *covariance; /* cross or covariance is NULL, or both */
    int diagonal;
} part;

static const real *array_of(const void *data, int64_t at)
{
    return data ? sattn_from(data, at) : NULL;
}

/* Component c if it has a weight > 0 */
static int part_of(const call *k, int64_t b, int64_t c, part *x)
{
    const sattn_mixture *p = k->p;
    const int64_t d = p->width, e = p->value_width;
    struct FN(sattn_components) run;
    int64_t first;
    const int64_t own = sattn_is_shared(k->given) ? 0 : c * k->covariance.width;
    const int has = e == 0 && k->covariance.kind != SATTN_COVARIANCE_ZERO;
    x->c = c;
    x->mean = sattn_from(p->mean, b * p->mean_batch + c * d);
    x->value = e ? sattn_from(p->value_mean, b * p->value_mean_batch + c * e) : x->mean;
    x->cross = e ? array_of(p->cross, b * p->cross_batch + c * e * d) : NULL;
    x->covariance = has ? k->covariance.data + b * k->covariance.batch + own : NULL;
    x->diagonal = k->covariance.kind == SATTN_COVARIANCE_DIAG;
    return FN(sattn_call_run)(k, b, c, c + 1, &first, &run) > 0;
}

/* Entry (i, j) of Y */
static real entry(const part *x, int64_t d, int64_t i, int64_t j)
{
    if (x->cross)
        return x->cross[i * d + j];
    if (!x->covariance || (x->diagonal && i != j))
        return 0;
    return x->covariance[x->diagonal ? i : i * d + j];
}

static void weigh(const call *k, int64_t b, real *weight)
{
    kernels()->exp(k->p->components, sattn_from(k->p->log_weight, b * k->p->log_weight_batch),
                   weight);
}

static void moment(const call *k, int64_t b, const real *weight, real *m)
{
    const int64_t d = k->p->width, e = sattn_value_width(k->p);
    part x;
    for (int64_t i = 0; i < d * e; i++)
        m[i] = 0;
    for (int64_t c = 0; c < k->p->components; c++)
        for (int64_t j = 0; part_of(k, b, c, &x) && j < d; j++)
            for (int64_t i = 0; i < e; i++)
                m[j * e + i] += weight[c] * (x.mean[j] * x.value[i] + entry(&x, d, i, j));
}

static void forward_entry(void *context, int64_t b, int32_t thread)
{
    const linear *l = context;
    const sattn_mixture *p = l->k.p;
    const int64_t d = p->width, e = sattn_value_width(p);
    real *m = l->memory + thread * l->each, *weight = m + d * e;
    weigh(&l->k, b, weight);
    moment(&l->k, b, weight, m);
    kernels()->gemm(&(gemm){p->queries, e, d, sattn_from(p->tilt, b * p->tilt_batch), p->tilt_row,
                            1, m, e, sattn_from(p->out, b * p->out_batch), p->out_row, NULL, 0, 0});
}

static void add(void *gradient, int64_t at, real x)
{
    if (gradient)
        ((real *)gradient)[at] += x;
}

/* Gradients of component x from G; gv = G v, gm = G' m */
static void add_part(const call *k, int64_t b, const part *x, real pi, const real *g, real *gv,
                     real *gm)
{
    const sattn_mixture *p = k->p;
    const int64_t d = p->width, e = sattn_value_width(p), c = x->c;
    const int64_t own = sattn_is_shared(k->given) ? 0 : c * k->covariance.width;
    real slope = 0, *s = k->covariance.slope;
    for (int64_t i = 0; i < e; i++)
        gm[i] = 0;
    for (int64_t j = 0; j < d; j++) {
        gv[j] = 0;
        for (int64_t i = 0; i < e; i++) {
            const real gij = g[j * e + i];
            gv[j] += gij * x->value[i];
            gm[i] += gij * x->mean[j];
            slope += gij * entry(x, d, i, j);
            add(p->dcross, b * p->cross_batch + (c * e + i) * d + j, pi * gij);
            if (s && x->covariance && (!x->diagonal || i == j))
                s[b * k->covariance.batch + own + (x->diagonal ? i : i * d + j)] += pi * gij;
        }
        slope += gv[j] * x->mean[j];
    }
    add(p->dlog_weight, b * p->log_weight_batch + c, pi * slope);
    for (int64_t j = 0; j < d; j++)
        add(p->dmean, b * p->mean_batch + c * d + j, pi * (p->value_width ? gv[j] : gv[j] + gm[j]));
    for (int64_t i = 0; i < p->value_width; i++)
        add(p->dvalue_mean, b * p->value_mean_batch + c * e + i, pi * gm[i]);
}

static void backward_entry(void *context, int64_t b, int32_t thread)
{
    const linear *l = context;
    const sattn_mixture *p = l->k.p;
    const int64_t d = p->width, e = sattn_value_width(p);
    real *m = l->memory + thread * l->each, *turned = m + d * e, *g = turned + d * e;
    real *gv = g + d * e, *gm = gv + d, *weight = gm + e;
    const real *tilt = sattn_from(p->tilt, b * p->tilt_batch);
    const real *dout = array_of(p->dout, b * p->dout_batch);
    const int64_t queries = dout ? p->queries : 0;
    part x;
    weigh(&l->k, b, weight);
    moment(&l->k, b, weight, m);
    for (int64_t i = 0; i < d * e; i++)
        turned[i % e * d + i / e] = m[i];
    kernels()->gemm(
        &(gemm){d, e, queries, tilt, 1, p->tilt_row, dout, p->dout_row, g, e, NULL, 0, 0});
    for (int64_t c = 0; c < p->components; c++)
        if (part_of(&l->k, b, c, &x))
            add_part(&l->k, b, &x, weight[c], g, gv, gm);
    for (int64_t q = 0; p->dtilt && q < p->queries; q++) {
        real *to = sattn_from(p->dtilt, b * p->dtilt_batch + q * p->dtilt_row);
        kernels()->gemm(&(gemm){1, d, dout ? e : 0, dout ? dout + q * p->dout_row : NULL, 0, 1,
                                turned, d, to, d, p->flags & SATTN_ACCUMULATE ? to : NULL, d, 1});
    }
}

static int32_t run(const sattn_mixture *given, int direction)
{
    sattn_mixture p;
    sattn_mixture_plan plan;
    linear l = {.memory = NULL};
    int32_t status = sattn_mixture_check(&p, given, direction, sizeof(real));
    if (status == SATTN_OK)
        status = sattn_mixture_plan_make(&plan, &p, SATTN_LINEAR_BACKWARD, sizeof(real));
    p.work = NULL;
    if (status == SATTN_OK)
        status = FN(sattn_call_begin)(&l.k, &p, &plan);
    if (status != SATTN_OK)
        return sattn_answer(status);
    const int64_t e = sattn_value_width(&p),
                  threads = direction == SATTN_FORWARD ? plan.threads : 1;
    int64_t bytes = l.each = 3 * p.width * e + p.width + e + p.components;
    l.memory = sattn_grow(&bytes, threads) ? sattn_alloc(bytes * (int64_t)sizeof(real)) : NULL;
    if (l.memory && direction == SATTN_FORWARD && p.out)
        sattn_par_for(p.batch, plan.threads, forward_entry, &l);
    if (l.memory && direction != SATTN_FORWARD) {
        FN(sattn_call_reset)(&l.k);
        sattn_par_for(p.batch, 1, backward_entry, &l);
        FN(sattn_covariance_collect)(&l.k);
    }
    sattn_free(l.k.owned);
    sattn_free(l.memory);
    return l.memory ? SATTN_OK : SATTN_ENOMEM;
}

int32_t FN(sattn_mixture_linear_forward)(const sattn_mixture *given)
{
    return run(given, SATTN_FORWARD);
}

int32_t FN(sattn_mixture_linear_backward)(const sattn_mixture *given)
{
    return run(given, SATTN_LINEAR_BACKWARD);
}
