/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SATTN_LIB_FIT_H
#define SATTN_LIB_FIT_H

/* Fitting works in double whatever the tokens' type: fit.c converts, kmeans.c finds a start,
 * fit_em.c computes responsibilities, fit_moments.c moments under them, fit_maximise.c parameters
 * from those; fit_run.c repeats that. */

#include "isa.h"
#include "sattn/fit.h"

#include <stddef.h>

/* Tokens of a task */
enum { SATTN_EM_BLOCK = 192 };

/* The size of the first release's descriptor; it may only grow. */
enum { SATTN_FIT_LEAST_SIZE = offsetof(sattn_fit, progress_context) + sizeof(void *) };

/* Everything of a fit in progress; arrays belong to one allocation. Tokens are worked on in
 * windows, runs of `count` tokens from `first` on: all that are fitted, or a batch. */
typedef struct sattn_em {
    const sattn_fit *p;
    uint64_t seed;
    int64_t n, c, d;
    int64_t first, count, blocks;
    int64_t window; /* the longest */
    int32_t threads;
    double floor;     /* added to the diagonal of every covariance */
    double total;     /* what the tokens of the window weigh */
    double *token;    /* [n][d], centred by fit.c */
    double *column;   /* [d][n], the same */
    double *weight;   /* [c][window] responsibilities */
    double *held;     /* [c] their sums */
    double *mean;     /* [c][d] */
    double *scatter;  /* [c][d][d], or [c][d] the diagonal: mean of (x - mean) (x - mean)' */
    double *pooled;   /* [d][d] or [d], the mean of scatter: of one covariance for all */
    double *whiten;   /* [c][d][d] inverse Cholesky factors, or [c][d] 1 / deviation */
    double *half_log; /* [c] log determinant / 2 */
    double *log_weight; /* [c] */
    double *constant;   /* [c] log weight - half_log - d log(2 pi) / 2 */
    double *shift;      /* [c][d] minus the whitened mean */
    double *partial;    /* [blocks] sums of blocks of tokens */
    double *scratch;    /* [threads][scratch_size] */
    int64_t scratch_size;
    double *trace; /* [em_iterations] */
    int64_t iterations;
    int32_t *label; /* [n] */
} sattn_em;

/* Arrays of `em` laid out in `memory`; returns the doubles they take (memory may be NULL), -1 if
 * that overflows. n, c, d, p and threads must be set. */
int64_t sattn_em_layout(sattn_em *em, double *memory);

/* The window that what follows works on */
void sattn_em_open(sattn_em *em, int64_t first, int64_t count);

/* Moments of component k under the responsibilities of the window; one that holds too little keeps
 * what it has. `context` is the sattn_em; a body of sattn_par_for. */
void sattn_em_moments(void *context, int64_t k, int32_t thread);

/* Parameters from moments, and what the next E-step needs of them. */
void sattn_em_maximise(sattn_em *em);

/* Covariance k as the caller wants it, in double. scratch as of a thread */
void sattn_em_covariance(const sattn_em *em, int64_t k, double *to, double *scratch);

/* k-means on the window: sets mean, label, weight (0 or 1) of it. SATTN_OK or SATTN_ECANCELLED. */
int32_t sattn_kmeans(sattn_em *em);

/* The row of kernels that computes */
static inline const struct sattn_kernels_f64 *sattn_em_row(void)
{
    return sattn_active_row()->f64;
}

/* A component that holds less of one token is dead. */
static inline int sattn_em_lives(const sattn_em *em, int64_t k)
{
    return em->held[k] > 1e-8;
}

static inline int sattn_em_is_full(const sattn_em *em)
{
    const int32_t kind = em->p->covariance_kind;
    return kind == SATTN_COVARIANCE_FULL || kind == SATTN_COVARIANCE_CHOLESKY ||
           kind == SATTN_COVARIANCE_LOW_RANK;
}

static inline int sattn_em_is_shared(const sattn_em *em)
{
    return (em->p->flags & SATTN_SHARED_COVARIANCE) != 0;
}

/* Elements of a matrix in work */
static inline int64_t sattn_em_matrix(const sattn_em *em)
{
    return em->d * (sattn_em_is_full(em) ? em->d : 1);
}

/* Elements of a covariance as the caller wants it */
static inline int64_t sattn_em_width(const sattn_em *em)
{
    const int64_t d = em->d;
    switch (em->p->covariance_kind) {
    case SATTN_COVARIANCE_ZERO:
        return 0;
    case SATTN_COVARIANCE_ISOTROPIC:
        return 1;
    case SATTN_COVARIANCE_DIAG:
        return d;
    case SATTN_COVARIANCE_LOW_RANK:
        return d * (1 + (int64_t)em->p->rank);
    default:
        return d * d;
    }
}

/* Tokens of a block of the window */
static inline int64_t sattn_em_count(const sattn_em *em, int64_t block)
{
    const int64_t left = em->count - block * SATTN_EM_BLOCK;
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
    return sum / em->total;
}

/* Tells the caller; SATTN_ECANCELLED if it wants to stop. */
static inline int32_t sattn_em_report(const sattn_em *em, int64_t iteration, double value)
{
    const sattn_fit_progress progress = em->p->progress;
    return progress && progress(em->p->progress_context, iteration, value) ? SATTN_ECANCELLED
                                                                           : SATTN_OK;
}

/* SATTN_OK or SATTN_ECANCELLED; the answer is in mean, scatter, log_weight, label, trace,
 * iterations. */
int32_t sattn_em_run(sattn_em *em);

#endif
