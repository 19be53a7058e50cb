/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef ORACLE_SOFTMAX_H
#define ORACLE_SOFTMAX_H

/* The softmax of one row in long double, written from the formulas alone. Beside each number stands
 * a bound of the error of an implementation in arithmetic of unit roundoff e, in units of e and of
 * first order: sums of many terms err by at most 16 e of their magnitudes (fixed lanes and a tree),
 * exp and log by 2 e, the largest logit is subtracted first. */

#include "mixture.h"

typedef struct {
    int64_t n;
    int logarithm;      /* log-softmax */
    const double *x;    /* [n]; dead ones are not looked at */
    const double *bias; /* [n] or NULL */
    const int *live;    /* [n] */
    double scale, sink; /* sink -inf = none */
} oracle_line;

typedef struct {
    oracle_number largest, log_sum, lse;
} oracle_stats;

/* y [n] */
void oracle_line_forward(const oracle_line *x, oracle_number *y, oracle_stats *s);

/* Gradients of <dy, y> + dlse lse: dz [n] of the logits, dx [n]; dscale, dsink. Weights are those
 * of y if it is given (as stored, exact), else they come from x and the statistics. */
void oracle_line_backward(const oracle_line *x, const double *y, const double *dy, double dlse,
                          oracle_number *dz, oracle_number *dx, oracle_number *dscale,
                          oracle_number *dsink);

#endif
