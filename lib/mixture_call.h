/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SATTN_MIXTURE_CALL_H
#define SATTN_MIXTURE_CALL_H

/* A call of mixture attention in progress, typed: the descriptor, the plan, the workspace. */

#include "mixture.h"
#include "real.h"

/* Covariances multiplied out, and where the gradient with respect to them goes. */
typedef struct {
    int32_t kind;  /* ZERO, DIAG or FULL */
    int64_t width; /* elements of one */
    int64_t batch; /* stride of a batch entry */
    const real *data;
    real *slope; /* or NULL */
} FN(sattn_matrices);

typedef struct {
    const sattn_mixture *given;
    sattn_mixture p[1]; /* as the kernels see it: expanded covariances, a shared one left out */
    FN(sattn_matrices) covariance;
    const sattn_mixture_plan *plan;
    real *work;
    void *owned; /* workspace to free at the end, or NULL */
} FN(sattn_call);

typedef struct FN(sattn_components) FN(sattn_components);

/* Checks the log weights, finds the workspace, centres the means, expands the covariances.
 * SATTN_OK, SATTN_EVALUE, SATTN_EWORKSPACE, SATTN_ENOMEM. */
int32_t FN(sattn_call_begin)(FN(sattn_call) * call, const sattn_mixture *p,
                             const sattn_mixture_plan *plan);

/* The next run of components of batch entry b with a weight > 0 in [from, end): its length, its
 * first component and its arrays; 0 = none. Components of weight 0 are never read. */
int64_t FN(sattn_call_run)(const FN(sattn_call) * call, int64_t b, int64_t from, int64_t end,
                           int64_t *first, FN(sattn_components) * run);

/* Where F' of component c of batch entry b is among covariances that keep it, and its gradient
 * among theirs. */
int64_t FN(sattn_call_factor)(const FN(sattn_call) * call, int64_t b, int64_t c);

/* The centre of batch entry b's means. */
const real *FN(sattn_call_centre)(const FN(sattn_call) * call, int64_t b);

/* Of a tile of queries from number `at` on, for backward: packs `out`, and rows of 48: largest
 * logit, log of the sum, offset of b, cotangent of the CGF. */
void FN(sattn_tile_statistics)(const FN(sattn_call) * call, int64_t b, int64_t at, int64_t lanes,
                               const real *dout, real *out, real *rows);

/* Parameter gradients to 0, unless they are added to. */
void FN(sattn_call_reset)(const FN(sattn_call) * call);
/* The caller's part of it: the gradients of the parameters, each in its layout */
void FN(sattn_mixture_reset)(const sattn_mixture *p);

/* mixture_covariance.c: multiplies the covariances out; sets the gradient of what it multiplied out
 * to 0; at the end hands that gradient back to the caller's kind. */
void FN(sattn_covariance_expand)(FN(sattn_call) * call);
void FN(sattn_covariance_reset)(const FN(sattn_call) * call);
void FN(sattn_covariance_collect)(const FN(sattn_call) * call);

/* A block of queries in backward */
typedef struct {
    const FN(sattn_call) * k;
    int64_t b, first, count; /* queries first .. first + count - 1 of batch entry b */
    int32_t lane;            /* whose planes */
    int32_t scratch;         /* >= 0: this thread's scratch whatever the task's thread */
    real *w, *d, *ones, *half, *product; /* planes of w and b; rows of squares and products */
} FN(sattn_block);

/* mixture_factor.c: adds a block's share to the gradient of F' of a group of components. */
void FN(sattn_factor_sum)(const FN(sattn_block) * block, int64_t group, real *scratch);

/* mixture_shared.c: what a covariance shared by all components adds to the outputs of forward; to
 * b's offset and to dtilt of one tile of backward (tiles as there; scratch: D rows); and its
 * gradient. They do nothing for a mixture without. */
void FN(sattn_shared_forward)(const FN(sattn_call) * call);
void FN(sattn_shared_pull)(const FN(sattn_call) * call, int64_t b, const real *tilt,
                           const real *dout, const real *dcgf, real *offset, real *dtilt,
                           real *scratch);
/* y = S x, or y += S x, tiles; 0 and nothing done for a mixture without, or without a live
 * component */
int FN(sattn_shared_apply)(const FN(sattn_call) * call, int64_t b, const real *x, real *y, int add);
void FN(sattn_shared_sum)(const FN(sattn_call) * call);

#endif
