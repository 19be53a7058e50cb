/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SATTN_TRAIN_H
#define SATTN_TRAIN_H

/* Training on the risk of learn.h: gradient descent and Adam, on all queries (population risk) or
 * on fresh ones at every step (SGD). Everything is in f64. Since: 0.2 */

#include "base.h"
#include "learn.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SATTN_TRAIN_DESCENT 0 /* optimisers */
#define SATTN_TRAIN_ADAM 1

#define SATTN_TRAIN_CONSTANT 0 /* schedules of the rate at step s of S */
#define SATTN_TRAIN_COSINE 1   /* rate (1 + cos (pi s / S)) / 2 */
#define SATTN_TRAIN_DROPS 2    /* rate times `drop` for each of drop_at[0], drop_at[1] <= s */

/* Called before step `step` with the risk there. Not 0 ends the training before that step. */
typedef int32_t (*sattn_train_progress)(void *context, int64_t step, double risk);
/* Called before the risk of `step` is computed: writes fresh queries, or prompts, to the arrays
 * that the sattn_learn points to, as a function of `step` alone if runs are to be resumed. Not 0
 * ends the training before that step. */
typedef int32_t (*sattn_train_draw)(void *context, int64_t step);

typedef struct sattn_train {
    int64_t size;       /* sizeof (sattn_train) as the caller was compiled */
    int32_t optimiser;  /* SATTN_TRAIN_DESCENT or ADAM */
    int32_t schedule;   /* SATTN_TRAIN_CONSTANT, COSINE or DROPS */
    int64_t steps;      /* S, of the whole training */
    int64_t until;      /* this call ends before this step; init: as steps */
    int64_t drop_at[2]; /* DROPS; init: 80 % and 90 % of steps */
    double drop;        /* init: 0.1 */
    double rate;        /* init: 0.01 */
    double clip;        /* largest norm of a gradient, longer ones are scaled; 0 = none */
    double decay[2];    /* Adam's; init: 0.9, 0.999 */
    double epsilon;     /* Adam's; init: 1e-8 */

    /* State. What a checkpoint has to keep: a call that starts from it goes on to the same bits. */
    int64_t step;      /* steps done; init: 0 */
    double *parameter; /* [P] */
    double *moment[2]; /* [P] Adam's moments of the gradient, zeros at step 0; else NULL */

    double *trace;                 /* [S] risk before each step that is done; NULL = none */
    sattn_train_draw draw;         /* NULL: the queries stay */
    sattn_train_progress progress; /* NULL = none */
    void *context;                 /* of both */
} sattn_train;

/* Fills *t with defaults for so many steps. Errors: SATTN_ENULL, SATTN_ESTRUCT, SATTN_ESIZE. */
SATTN_API int32_t sattn_train_init(sattn_train *t, int64_t size, int64_t steps);

/* Does steps t->step .. t->until - 1 and updates the state.
 *
 *   g = gradient R, scaled to norm `clip` if longer.   Descent: parameter -= rate_s g
 *   Adam: m = a m + (1 - a) g,  v = b v + (1 - b) g^2,
 *         parameter -= rate_s (m / (1 - a^(s+1))) / (sqrt (v / (1 - b^(s+1))) + epsilon)
 *   A callback may end the training early: SATTN_OK, and t->step < t->until.
 * Errors:  as sattn_learn_risk_f64; SATTN_ENULL parameter or one of Adam's moments is NULL;
 *          SATTN_ESTRUCT; SATTN_ESIZE unless 0 <= step <= until <= steps; SATTN_EOPTION an unknown
 *          optimiser or schedule; SATTN_EVALUE rate or clip negative or not finite, decay outside
 *          [0, 1), epsilon or drop negative or not finite. Nothing is written then, but
 *          where memory runs out or a callback spoils the prompts midway: that leaves the state of
 *          the last whole step.
 * Numbers: the same bits for any thread count, instruction set, and cut into calls.
 * Threads: within a step. Where their number is the default, one or all of them, whichever the
 *          clock finds faster as it goes. Memory: P doubles, beside sattn_learn_risk_f64's.
 * Source:  Kingma, Ba, "Adam", ICLR 2015. Since: 0.2 */
SATTN_API int32_t sattn_train_f64(sattn_train *t, const sattn_learn *p);

#ifdef __cplusplus
}
#endif
#endif
