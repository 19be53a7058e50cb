/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SATTN_TEST_ATTEND_H
#define SATTN_TEST_ATTEND_H

/* Random problems of softmax attention in guarded memory, with every input and output there is. */

#include "../harness.h"
#include "sattn/attention.h"

#include <math.h>
#include <string.h>

/* Arrays of a problem, inputs first */
enum {
    Q,
    K,
    V,
    BIAS,
    SLOPE,
    SINK,
    DOUT,
    DLSE,
    INPUTS,
    OUT = INPUTS,
    STATS,
    LSE,
    DQ,
    DK,
    DV,
    DBIAS,
    DSINK,
    DSCALE,
    ARRAYS
};

typedef struct {
    int64_t batch, heads, key_heads, queries, keys, width, value_width;
    double scale, softcap;
    int64_t left, right;
    int32_t diagonal;
    int bias, mask, slope, sink; /* there is one */
    int lengths;                 /* 0 all alike, 1 key lengths, 2 packed sequences */
    unsigned repeat; /* bits 0 .. 3: the bias has stride 0 along batch, head, row, column */
    int layout;      /* 0 [B][H][M][D], 1 [B][M][H][D], 2 [B][H][D][M] */
    int64_t gap;     /* elements between rows */
    placement side;
    size_t offset; /* elements */
    double dead;   /* share of pairs that are masked, in bias and mask */
    double reach;  /* numbers lie in [-reach, reach] */
    uint64_t seed; /* of the numbers, which do not depend on layout, gap, side and offset */
} attend_shape;

typedef struct {
    real *data; /* NULL: the problem has no such array */
    int64_t count[4], stride[4], extent; /* elements from the first to the last */
} attend_array;

typedef struct {
    attend_shape shape;
    sattn_attention p;
    attend_array a[ARRAYS];
    unsigned char *mask; /* [B][H][M][N] */
    int64_t *key_length, *query_offset, *key_offset;
} attend;

/* Describes the shape with at(). */
attend make_attend(const attend_shape *s);
/* Forward and backward; both are SATTN_OK, and gaps and guards are as they were. */
void solve_attend(attend *x);
/* The outputs first .. last - 1 hold the same numbers, whatever their strides. */
void check_same_attend(const attend *got, const attend *want, int first, int last);
/* All outputs agree with the long double oracle within its error bound. */
void check_attend_oracle(const attend *x);

/* Element of an array; with packed sequences `row` counts within the batch entry. */
real *attend_cell(const attend *x, int array, int64_t b, int64_t h, int64_t row, int64_t col);
/* Queries and keys of a batch entry */
int64_t attend_queries(const attend *x, int64_t b);
int64_t attend_keys(const attend *x, int64_t b);
extern const char *const attend_names[ARRAYS];

#endif
