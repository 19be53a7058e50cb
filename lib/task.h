/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SATTN_LIB_TASK_H
#define SATTN_LIB_TASK_H

/* What the functions of a task share: checks, weights, Cholesky factors. */

#include "sattn/task.h"

/* Copies the caller's descriptor and checks it; `targets`: value_mean is needed. */
int32_t sattn_task_check(sattn_task *t, const sattn_task *given, int targets);

/* SATTN_EVALUE if one is NaN or +inf, or none is above -inf */
int32_t sattn_check_weights(int64_t n, const double *log_weight);
/* Weights exp(log_weight), normalised, [n]. */
void sattn_weights(int64_t n, const double *log_weight, double *weight);
/* For draws by sattn_pick: the sums of weight[0] .. weight[i], inf from the last on that is > 0 */
void sattn_weights_below(int64_t n, const double *weight, double *below);
/* The first i with u <= below[i], for a u > 0: its weight is not 0. */
int64_t sattn_pick(int64_t n, const double *below, double u);

/* Lower Cholesky factor of the lower triangle of s, [d][d], zeros above its diagonal. `definite`:
 * every pivot must be above 0; else one of rounding size counts as 0. Returns 0 if s is not so. */
int sattn_cholesky(int64_t d, const double *s, int definite, double *factor);

/* x := L^-1 x, 0 at a pivot of 0, and x := L'^-1 x */
void sattn_solve_lower(int64_t d, const double *factor, double *x);
void sattn_solve_upper(int64_t d, const double *factor, double *x);

/* Weights [C] and factors [C][N][N] of the components that are present, in one allocation. */
int32_t sattn_task_begin(const sattn_task *t, double **weight, double **factor);

/* point = m + L x */
void sattn_task_place(int64_t d, const double *mean, const double *factor, const double *x,
                      double *point);

#endif
