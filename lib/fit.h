/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SATTN_LIB_FIT_H
#define SATTN_LIB_FIT_H

/* Fitting works in double whatever the tokens' type: fit.c converts, kmeans.c finds a start,
 * fit_em.c computes responsibilities and fit_maximise.c parameters from them. */

#include "isa.h"
#include "sattn/fit.h"

#include <stddef.h>

/* Tokens of a task */
enum { SATTN_EM_BLOCK = 192 };

/* The size of the first release's descriptor; it may only grow. */
enum { SATTN_FIT_LEAST_SIZE = offsetof(sattn_fit, progress_context) + sizeof(void *) };

/* Everything of a fit in progress; arrays belong to one allocation. */
typedef struct sattn_em {
    const sattn_fit *p;
    int64_t n, c, d;
    int32_t threads;
    double floor;       /* added to the diagonal of every covariance */
    double *token;      /* [n][d], centred by fit.c */
    double *column;     /* [d][n], the same */
    double *weight;     /* [c][n] responsibilities */
    double *count;      /* [c] their sums */
    double *mean;       /* [c][d] */
    double *covariance; /* [c][d][d], or [c][d] for DIAG */
    double *log_weight; /* [c] */
    double *whiten;     /* [c][d][d] inverse Cholesky factors; DIAG: [c][d] 1 / deviation */
    double *constant;   /* [c] log weight - log determinant / 2 - d log(2 pi) / 2 */
    double *shift;      /* [c][d] minus the whitened mean */
    double *partial;    /* [blocks] log-likelihoods of blocks of tokens */
    double *scratch;    /* [threads][scratch_size] */
    int64_t blocks, scratch_size;
    double *trace; /* [em_iterations] */
    int64_t iterations;
    int32_t *label; /* [n] */
} sattn_em;

/* Arrays of `em` laid out in `memory`; returns the doubles they take (memory may be NULL), -1 if
 * that overflows. n, c, d, p and threads must be set. */
int64_t sattn_em_layout(sattn_em *em, double *memory);

/* M-step of component k from its responsibilities and count, and what the next E-step needs of it.
 * `context` is the sattn_em; a body of sattn_par_for. */
void sattn_em_maximise(void *context, int64_t k, int32_t thread);

/* k-means: sets mean, label, weight (0 or 1) and count. SATTN_OK or SATTN_ECANCELLED. */
int32_t sattn_kmeans(sattn_em *em);

/* The row of kernels that computes */
static inline const struct sattn_kernels_f64 *sattn_em_row(void)
{
    return sattn_active_row()->f64;
}

static inline int sattn_em_is_full(const sattn_em *em)
{
    return em->p->covariance_kind == SATTN_COVARIANCE_FULL;
}

/* Tokens of a block */
static inline int64_t sattn_em_count(const sattn_em *em, int64_t block)
{
    const int64_t left = em->n - block * SATTN_EM_BLOCK;
    return left < SATTN_EM_BLOCK ? left : SATTN_EM_BLOCK;
}

static inline double *sattn_em_scratch(const sattn_em *em, int32_t thread)
{
    return em->scratch + thread * em->scratch_size;
}

/* The blocks' partial sums, a token */
static inline double sattn_em_sum(const sattn_em *em)
{
    double sum = 0;
    for (int64_t b = 0; b < em->blocks; b++)
        sum += em->partial[b];
    return sum / (double)em->n;
}

/* Tells the caller; SATTN_ECANCELLED if it wants to stop. */
static inline int32_t sattn_em_report(const sattn_em *em, int64_t iteration, double value)
{
    const sattn_fit_progress progress = em->p->progress;
    return progress && progress(em->p->progress_context, iteration, value) ? SATTN_ECANCELLED
                                                                           : SATTN_OK;
}

/* SATTN_OK or SATTN_ECANCELLED; the answer is in mean, covariance, log_weight, label, trace,
 * iterations. */
int32_t sattn_em_run(sattn_em *em);

#endif
