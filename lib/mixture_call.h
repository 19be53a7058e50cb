/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SATTN_MIXTURE_CALL_H
#define SATTN_MIXTURE_CALL_H

/* A call of mixture attention in progress, typed: the descriptor, the plan, the workspace. */

#include "mixture.h"
#include "real.h"

typedef struct {
    const sattn_mixture *p;
    const sattn_mixture_plan *plan;
    real *work;
    void *owned; /* workspace to free at the end, or NULL */
} FN(sattn_call);

typedef struct FN(sattn_components) FN(sattn_components);

/* Checks the log weights, finds the workspace, centres the means.
 * SATTN_OK, SATTN_EVALUE, SATTN_EWORKSPACE, SATTN_ENOMEM. */
int32_t FN(sattn_call_begin)(FN(sattn_call) * call, const sattn_mixture *p,
                             const sattn_mixture_plan *plan);

/* The next run of components of batch entry b with a weight > 0 in [from, end): its length, its
 * first component and its arrays; 0 = none. Components of weight 0 are never read. */
int64_t FN(sattn_call_run)(const FN(sattn_call) * call, int64_t b, int64_t from, int64_t end,
                           int64_t *first, FN(sattn_components) * run);

/* The centre of batch entry b's means. */
const real *FN(sattn_call_centre)(const FN(sattn_call) * call, int64_t b);

#endif
