/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SATTN_LIB_TASK_H
#define SATTN_LIB_TASK_H

/* What the functions of a task share: checks, weights, Cholesky factors. */

#include "sattn/task.h"

/* Copies the caller's descriptor and checks it; `targets`: value_mean is needed. */
int32_t sattn_task_check(sattn_task *t, const sattn_task *given, int targets);

/* Weights exp(log_weight), normalised, [C]. */
void sattn_task_weights(const sattn_task *t, double *weight);

/* Lower Cholesky factor of the lower triangle of s, [d][d], zeros above its diagonal. `definite`:
 * every pivot must be above 0; else one of rounding size counts as 0. Returns 0 if s is not so. */
int sattn_cholesky(int64_t d, const double *s, int definite, double *factor);

/* x := L^-1 x, and x := L'^-1 x */
void sattn_solve_lower(int64_t d, const double *factor, double *x);
void sattn_solve_upper(int64_t d, const double *factor, double *x);

#endif
