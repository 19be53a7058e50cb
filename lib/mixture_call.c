/* SPDX-License-Identifier: BSD-2-Clause */
#include "mixture_call.h"
#include "check.h"
#include "par.h"

#include <float.h>
#include <stddef.h>

typedef FN(sattn_call) call;
typedef FN(sattn_components) components;

static const real *log_weights(const call *k, int64_t b)
{
    return sattn_from(k->p->log_weight, b * k->p->log_weight_batch);
}

static real *centred_means(const call *k, int64_t b)
{
    const int64_t own = k->plan->mixtures > 1 ? b : 0;
    return k->work + k->plan->centred + own * (k->p->components + 1) * k->p->width;
}

const real *FN(sattn_call_centre)(const call *k, int64_t b)
{
    return centred_means(k, b) + k->p->components * k->p->width;
}

/* Length of the run of components with a weight in [*first, end), *first moved to its start. */
static int64_t next_run(const real *log_weight, int64_t *first, int64_t end)
{
    int64_t next;
    while (*first < end && log_weight[*first] == -(real)__builtin_inf())
        ++*first;
    for (next = *first; next < end && log_weight[next] != -(real)__builtin_inf(); next++)
        ;
    return next - *first;
}

int64_t FN(sattn_call_run)(const call *k, int64_t b, int64_t from, int64_t end, int64_t *first,
                           components *run)
{
    const sattn_mixture *p = k->p;
    const int64_t d = p->width, e = p->value_width, s = sattn_covariance_width(p);
    *first = from;
    const int64_t count = next_run(log_weights(k, b), first, end);
    const real *covariance = p->covariance, *value = p->value_mean, *cross = p->cross;
    *run = (components){
        .count = count,
        .width = d,
        .value_width = sattn_value_width(p),
        .kind = p->covariance_kind,
        .joint = e > 0,
        .log_weight = log_weights(k, b) + *first,
        .mean = centred_means(k, b) + *first * d,
        .covariance = covariance ? covariance + b * p->covariance_batch + *first * s : NULL,
        .value_mean = value ? value + b * p->value_mean_batch + *first * e : NULL,
        .cross = cross ? cross + b * p->cross_batch + *first * e * d : NULL,
        .rank = k->plan->rank,
        .factor = covariance ? covariance + FN(sattn_call_factor)(k, b, *first) : NULL,
    };
    return count;
}

int64_t FN(sattn_call_factor)(const call *k, int64_t b, int64_t c)
{
    const int64_t d = k->p->width;
    return b * k->p->covariance_batch + (k->p->components + c * k->plan->rank) * d;
}

static int32_t check_log_weights(const call *k)
{
    const int64_t sets = k->p->log_weight_batch ? k->p->batch : k->p->batch > 0;
    for (int64_t b = 0; b < sets; b++)
        for (int64_t c = 0; c < k->p->components; c++)
            if (!(log_weights(k, b)[c] < (real)__builtin_inf()))
                return SATTN_EVALUE;
    return SATTN_OK;
}

/* The negative of a centre, or 0 (no centring of that coordinate) where it is so large that the
 * difference with the largest number would overflow, as its sum may have done. */
static real safe_centre(double x)
{
    const double limit =
        sizeof(real) == 4 ? (double)FLT_MAX * FLT_EPSILON / 4 : DBL_MAX * DBL_EPSILON / 4;
    return x > -limit && x < limit ? (real)x : 0;
}

/* centre = sum of weight times mean over the sum of weights; then mean - centre. The answer does
 * not depend on the centre but for rounding: logits shift together, the output shifts back. */
static void centre_means(void *context, int64_t b, int32_t thread)
{
    const call *k = context;
    const int64_t c = k->p->components, d = k->p->width;
    const real *mean = sattn_from(k->p->mean, b * k->p->mean_batch),
               *log_weight = log_weights(k, b);
    real *centred = centred_means(k, b), *centre = centred + c * d, top = -(real)__builtin_inf();
    static const real one = 1;
    double sum = 0;
    (void)thread;
    for (int64_t i = 0; i < d; i++)
        centre[i] = 0;
    for (int64_t i = 0; i < c; i++)
        top = log_weight[i] > top ? log_weight[i] : top;
    int64_t first, count;
    for (int64_t at = 0; at < c; at = first + count) {
        real weight[SATTN_WINDOW];
        first = at;
        count = next_run(log_weight, &first, at + SATTN_WINDOW < c ? at + SATTN_WINDOW : c);
        for (int64_t i = 0; i < count; i++)
            weight[i] = log_weight[first + i];
        kernels()->mixture_weights(count, weight, top, 0);
        for (int64_t i = 0; i < count; i++)
            sum += weight[i];
        kernels()->gemm(&(struct FN(sattn_gemm)){1, d, count, weight, 0, 1, mean + first * d, d,
                                                 centre, d, centre, 0, 1});
    }
    for (int64_t i = 0; i < d && sum > 0; i++)
        centre[i] = safe_centre(-centre[i] / sum);
    for (int64_t at = 0; at < c; at = first + count) {
        first = at;
        count = next_run(log_weight, &first, c);
        kernels()->gemm(&(struct FN(sattn_gemm)){count, d, 1, &one, 0, 0, centre, 0,
                                                 centred + first * d, d, mean + first * d, d, 1});
    }
    for (int64_t i = 0; i < d; i++)
        centre[i] = -centre[i];
}

void FN(sattn_tile_statistics)(const call *k, int64_t b, int64_t at, int64_t lanes,
                               const real *dout, real *out, real *rows)
{
    const sattn_mixture *p = k->p;
    const int64_t e = sattn_value_width(p);
    const real *stats = sattn_from(p->stats, b * p->stats_batch + 2 * at), *dcgf = p->dcgf;
    real *largest = rows, *log_sum = rows + SATTN_TILE, *offset = rows + 2 * SATTN_TILE;
    real *cotangent = rows + 3 * SATTN_TILE;
    for (int64_t r = 0; r < SATTN_TILE; r++) {
        largest[r] = r < lanes ? stats[2 * r] : 0;
        log_sum[r] = r < lanes ? stats[2 * r + 1] : 0;
        cotangent[r] = r < lanes && dcgf ? dcgf[b * p->dcgf_batch + at + r] : 0;
    }
    kernels()->pack(lanes, e, sattn_from(p->out, b * p->out_batch + at * p->out_row), p->out_row,
                    out);
    kernels()->mixture_offset(e, p->dout ? dout : NULL, out,
                              p->value_width ? NULL : FN(sattn_call_centre)(k, b), cotangent,
                              offset);
}

int32_t FN(sattn_call_begin)(call *k, const sattn_mixture *p, const sattn_mixture_plan *plan)
{
    void *work;
    *k = (call){.given = p, .p = {*p}, .plan = plan};
    if (check_log_weights(k) != SATTN_OK)
        return SATTN_EVALUE;
    const int32_t status = sattn_workspace(
        p->work, p->work_bytes, plan->elements * (int64_t)sizeof(real), &work, &k->owned);
    k->work = work;
    if (status != SATTN_OK)
        return status;
    sattn_par_for(plan->mixtures, plan->threads, centre_means, k);
    FN(sattn_covariance_expand)(k);
    return SATTN_OK;
}
