/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SATTN_LIB_LEARN_H
#define SATTN_LIB_LEARN_H

/* A call of learn.h in progress. Linear attention is attention over one component of mean 0 whose
 * covariance is the prompt's second moment: after sattn_learn_begin there is no other kind. */

#include "sattn/learn.h"

enum { SATTN_LEARN_BLOCK = 192 }; /* queries that are summed together */

enum { TILT, TILT_BIAS, VALUE, SKIP, BIAS, PARTS };

typedef struct sattn_learn_job {
    sattn_learn p;
    int64_t part[PARTS + 1]; /* where the parts of the parameters begin, and their end */
    int64_t block_tasks;     /* whole tasks a block, or 1 and then */
    int64_t task_blocks;     /* blocks a task */
    int64_t blocks;
    int64_t covariance_width; /* numbers of a component's covariance */
    double *owned;            /* the second moments of linear attention, or NULL */
} sattn_learn_job;

/* A run of queries of a task, or all those of several */
typedef struct sattn_learn_run {
    int64_t task, tasks, first, count; /* the first query's number among those of all tasks */
} sattn_learn_run;

/* Checks shapes and options. */
int32_t sattn_learn_check(sattn_learn_job *job, const sattn_learn *given);

/* Checks the descriptor; `targets`: the losses are needed. */
int32_t sattn_learn_begin(sattn_learn_job *job, const sattn_learn *given, int targets);
void sattn_learn_end(const sattn_learn_job *job);

sattn_learn_run sattn_learn_block(const sattn_learn_job *job, int64_t block);

/* The prompts of a run as a mixture: a batch entry each, or one where all share it. The queries are
 * those of the run, and the heads of a query its neighbours. */
void sattn_learn_prompt(const sattn_learn_job *job, const sattn_learn_run *run,
                        sattn_mixture *mixture);

/* Threads worth having for the job, of which the mixture's calls may take `*inner`. */
int32_t sattn_learn_threads(const sattn_learn_job *job, int32_t *inner);

/* Bytes, a multiple of 64, for a call of mixture attention over the heads of a block. */
int64_t sattn_learn_workspace(const sattn_learn_job *job, int32_t inner);

/* Loss of query q; its gradient with respect to f, times the query's weight, and, unless curvature
 * is NULL, the Hessian times `curvature`, likewise, in place. Without curvature g may be f. */
double sattn_learn_loss(const sattn_learn_job *job, int64_t q, const double *f, double *g,
                        double *curvature);

/* sum[i] = parts[0][i] + parts[1][i] + ..., untrained parts 0 */
void sattn_learn_sum(const sattn_learn_job *job, const double *parts, double *sum);

#endif
