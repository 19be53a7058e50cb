/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SATTN_TEST_LINES_H
#define SATTN_TEST_LINES_H

/* Random problems of the softmax descriptor, in guarded memory. */

#include "../harness.h"
#include "sattn/softmax.h"

#include <math.h>
#include <string.h>

/* Arrays of a problem, inputs first */
enum { X, BIAS, MASK, LENGTH, SINK, DY, DLSE, INPUTS };
enum { Y = INPUTS, STATS, LSE, FORWARD_END, DX = FORWARD_END, DBIAS, DSINK, DSCALE, ARRAYS };

typedef struct {
    uint64_t seed; /* of the numbers, which depend on nothing of the layout */
    int64_t batch, rows, width;
    int32_t form, x_storage, y_storage;
    double scale, reach;
    unsigned has;             /* bits BIAS .. DLSE */
    unsigned repeats[INPUTS]; /* bits: axes along which BIAS .. SINK repeat */
    double hidden, dead;      /* shares of logits -inf in x, and of masked elements */
    int from_x;               /* backward from x and stats, not from y */
    /* Layout */
    int order; /* 0 .. 5: which axes are inner */
    int64_t gap;
    placement side;
    size_t offset; /* elements */
} shape;

typedef struct {
    char *data; /* NULL: the problem has no such array */
    int64_t count[3], stride[3];
    size_t bytes; /* of an element */
    int storage;  /* SATTN_STORAGE_..., or -1 whole numbers */
    size_t size;  /* of the memory in bytes */
} array;

typedef struct {
    shape shape;
    sattn_softmax p;
    array a[ARRAYS];
} problem;

shape random_shape(uint64_t seed);
/* Describes the shape with at(). */
problem make_problem(const shape *s);
/* Forward and backward; checks that both are SATTN_OK, and gaps and guards as they were. */
void solve(problem *x);
/* Outputs as they were before the call */
void clear_outputs(problem *x);

int is_live(const problem *x, int64_t b, int64_t m, int64_t j);
/* The number at a place, repeats considered */
double get(const array *a, int64_t b, int64_t m, int64_t j);
/* All outputs hold the same numbers, whatever their layout. */
void check_same_outputs(const problem *got, const problem *want);
/* All outputs agree with the long double oracle within its bound; returns the largest share. */
double check_against_oracle(const problem *x);

extern const char *const array_names[ARRAYS];

/* 16-bit numbers, by arithmetic on doubles */
double of_storage(int storage, uint16_t bits);
double rounded_to(int storage, double x);

#endif
