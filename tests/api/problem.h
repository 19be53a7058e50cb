/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SATTN_TEST_PROBLEM_H
#define SATTN_TEST_PROBLEM_H

/* Random problems of mixture attention, in guarded memory, with every input and output there is. */

#include "../harness.h"
#include "sattn/mixture.h"

#include <math.h>
#include <string.h>

/* Arrays of a problem, inputs first */
enum {
    TILT,
    LOG_WEIGHT,
    MEAN,
    COVARIANCE,
    VALUE_MEAN,
    CROSS,
    DOUT,
    DCGF,
    INPUTS,
    OUT = INPUTS,
    STATS,
    CGF,
    WEIGHT,
    DTILT,
    DLOG_WEIGHT,
    DMEAN,
    DCOVARIANCE,
    DVALUE_MEAN,
    DCROSS,
    ARRAYS
};
#define ALL_PARAMETERS                                                                             \
    (1u << LOG_WEIGHT | 1u << MEAN | 1u << COVARIANCE | 1u << VALUE_MEAN | 1u << CROSS)

/* Kinds of covariance, and how many there are with the shared ones */
enum { SHARED = SATTN_COVARIANCE_LOW_RANK + 1, KINDS = 2 * SHARED, RANK = 2 };

/* Every kind, or each fourth where time is short */
#define EACH_KIND(kind)                                                                            \
    for (int32_t kind = 0; kind < KINDS; kind++)                                                   \
        if (kind % 4 == 0 || !is_left_out(1))

typedef struct {
    int64_t batch, queries, components, width, value_width; /* B, M, C, D, E (0: values = keys) */
    int32_t kind; /* of covariance; from SHARED on: kind - SHARED, shared by all components */
    int cross;       /* joint blocks have X */
    unsigned shared; /* bit LOG_WEIGHT, MEAN, ...: one parameter for the whole batch */
    int64_t gap;     /* elements between rows and between batch entries */
    placement side;
    size_t offset; /* elements */
    double dead;   /* share of components of weight 0, whose parameters are NaN */
    double reach;  /* tilts lie in [-reach, reach] */
    uint64_t seed; /* of the numbers, which do not depend on gap, side and offset */
} shape;

typedef struct {
    real *data; /* NULL: the problem has no such array */
    int64_t batch, rows, cols, batch_stride, row_stride;
} array;

typedef struct {
    shape shape;
    sattn_mixture p;
    array a[ARRAYS];
} problem;

/* Describes the shape with at(). */
problem make_problem(const shape *s);
/* Forward and backward; a check that both are SATTN_OK, and that gaps and guards are as they were.
 */
void solve(problem *x);
void check_gaps(const problem *x);

/* The arrays first .. last - 1 hold the same numbers, whatever their strides. */
void check_same_arrays(const problem *got, const problem *want, int first, int last);
/* All outputs agree with the long double oracle within its error bound. */
void check_against_oracle(const problem *x);

real *cell(const array *a, int64_t b, int64_t row, int64_t col);
/* The member of the descriptor that points to an array. */
void **pointer_of(sattn_mixture *p, int array_index);
extern const char *const array_names[ARRAYS];

#endif
