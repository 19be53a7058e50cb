/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef ORACLE_MIXTURE_H
#define ORACLE_MIXTURE_H

/* Softmax and mixture attention in long double, written from the formulas alone, one query at a
 * time. Beside each number stands a bound of the error of an implementation that works in
 * arithmetic of unit roundoff e: `error` is in units of e and of first order. The bound assumes
 * sums in any order (a sum of n terms errs by at most n e times the sum of their magnitudes), exp
 * and log within 2 e, means centred at their average, logits from which the largest is subtracted,
 * and a running maximum. */

#include <stdint.h>

typedef struct {
    long double value, error;
} oracle_number;

/* Kinds of covariance: nothing, [D] variances, [D][D], [1], [D][D] lower L of L L', [D] variances
 * and [D][rank] F of diag + F F' */
enum {
    ORACLE_ZERO,
    ORACLE_DIAG,
    ORACLE_FULL,
    ORACLE_ISOTROPIC,
    ORACLE_CHOLESKY,
    ORACLE_LOW_RANK
};

typedef struct {
    int64_t components, width, value_width; /* C, D, E; E = 0: the values are the keys */
    int kind;                               /* of covariance: [C][...], or [...] if shared */
    const double *log_weight, *mean, *covariance;
    const double *value_mean, *cross; /* [C][E], [C][E][D] or NULL = zero */
    int64_t rank;                     /* of kind LOW_RANK */
    int shared;                       /* one covariance for all components */
} oracle_mixture;

/* Gradients of <dout, out> + dcgf cgf; tilt is set, the others are added to; covariances of kind
 * FULL are symmetric, those of CHOLESKY 0 above the diagonal. NULL = not wanted. */
typedef struct {
    oracle_number *tilt, *log_weight, *mean, *covariance, *value_mean, *cross;
} oracle_gradients;

void oracle_softmax(int64_t n, const double *x, long double *y);

/* out [D or E], weight [C] */
void oracle_forward(const oracle_mixture *x, const double *tilt, oracle_number *out,
                    oracle_number *cgf, oracle_number *weight);

/* `terms`: queries that the caller sums, for the bound. */
void oracle_backward(const oracle_mixture *x, const double *tilt, const double *dout, double dcgf,
                     int64_t terms, const oracle_gradients *g);

#endif
