/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef ORACLE_LINEAR_H
#define ORACLE_LINEAR_H

/* Linear attention of one head in long double, pair by pair. Every result comes with the sum of the
 * magnitudes of its terms, of which an implementation's error is a multiple of its unit roundoff.
 * */

#include <stdint.h>

typedef struct {
    long double value, size;
} oracle_term;

enum { ORACLE_IDENTITY = 0, ORACLE_ELU = 1, ORACLE_RELU = 2, ORACLE_EXP = 3 };

typedef struct {
    int64_t queries, keys, width, value_width;
    int feature, causal, normalised, mean;
    double scale, eps;
    int64_t seen;
    const double *q, *k, *v, *sum, *key_sum; /* [M][D], [N][D], [N][E], [D][E], [D]; sums or NULL */
    const double *dout, *dsum_out, *dkey_sum_out; /* [M][E], [D][E], [D] */
} oracle_linear;

/* All are set; shapes of what they are named after. */
typedef struct {
    oracle_term *out, *den, *sum_out, *key_sum_out, *dq, *dk, *dv, *dsum, *dkey_sum;
} oracle_linear_results;

void oracle_linear_attend(const oracle_linear *x, const oracle_linear_results *y);

#endif
