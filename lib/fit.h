/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SATTN_LIB_FIT_H
#define SATTN_LIB_FIT_H

/* Fitting works in double whatever the tokens' type: fit.c converts, fit_em.c computes. */

#include "sattn/fit.h"

/* Everything of a fit in progress; arrays belong to one allocation. */
typedef struct sattn_em {
    const sattn_fit *p;
    int64_t n, c, d;
    int32_t threads;
    double floor;      /* added to the diagonal of every covariance */
    double *token;     /* [n][d], centred by fit.c */
    double *column;    /* [d][n], the same */
    double *weight;    /* [c][n] responsibilities */
    double *count;     /* [c] their sums */
    double *mean;      /* [c][d] */
    double *covariance; /* [c][d][d], or [c][d] for DIAG */
    double *log_weight; /* [c] */
    double *whiten;    /* FULL: [c][d][d] inverse Cholesky factors; DIAG: [c][d] 1 / standard deviation */
    double *constant;  /* [c] log weight - log determinant / 2 - d log(2 pi) / 2 */
    double *shift;     /* [c][d] minus the whitened mean */
    double *partial;   /* [blocks] log-likelihoods of blocks of tokens */
    double *scratch;   /* [threads][scratch_size] */
    int64_t blocks, scratch_size;
    double *trace;     /* [em_iterations] */
    int64_t iterations;
    int32_t *label; /* [n] */
} sattn_em;

/* Arrays of `em` laid out in `memory`; returns the doubles they take (memory may be NULL), -1 if that
 * overflows. n, c, d, p and threads must be set. */
int64_t sattn_em_layout(sattn_em *em, double *memory);

/* SATTN_OK or SATTN_ECANCELLED; the answer is in mean, covariance, log_weight, label, trace, iterations. */
int32_t sattn_em_run(sattn_em *em);

#endif
