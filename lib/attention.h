/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SATTN_LIB_ATTENTION_H
#define SATTN_LIB_ATTENTION_H

/* What forward and backward of softmax attention share: checks, segments, the plan of a call. */

#include "../simd/kernels.h"
#include "sattn/attention.h"

/* An output read as an input */
static inline sattn_input sattn_as_input(const sattn_output *x)
{
    return (sattn_input){x->data, x->batch, x->head, x->row, x->col};
}

enum {
    SATTN_ATTEND = 0,
    SATTN_ATTEND_BACK = 1,
    SATTN_ATTEND_SHAPE = 2 /* no pointer is looked at */
};

/* Keys whose partial results are merged in order (forward), and keys that one task of backward
 * takes through all queries. Constants of the algorithm. */
enum { SATTN_SPLIT = 2048, SATTN_STRIPE = 512 };

/* Copies the caller's descriptor to *p and checks all of it. */
int32_t sattn_attention_check(sattn_attention *p, const sattn_attention *given, int direction,
                              int64_t element_bytes);

/* A batch entry and a key head: the queries of all heads that share the keys, head after head. */
typedef struct sattn_segment {
    int64_t batch, key_head, group; /* heads key_head group .. + group - 1 */
    int64_t queries, keys;          /* of this batch entry; keys that count */
    int64_t first_query, first_key; /* rows where they begin */
    int64_t array_keys;             /* keys of the arrays, counted or not */
    int64_t shift;                  /* query i stands opposite key i + shift */
} sattn_segment;

/* Segment number `index` of B Hk */
sattn_segment sattn_segment_of(const sattn_attention *p, int64_t index);

/* How a call is cut, and where things are in its workspace (offsets and sizes in elements). Every
 * cut depends on the shape alone. */
typedef struct sattn_attention_plan {
    int32_t threads;
    int64_t segments, tiles;       /* B Hk, and tiles of queries in each */
    int64_t blocks, stripes;       /* of keys: forward, backward */
    int split;                     /* forward: blocks are tasks of their own */
    int64_t states, state;         /* forward, split: [segments][tiles][blocks] partial results */
    int64_t offsets, sinks;        /* backward: [segments][tiles][SATTN_TILE], twice */
    int64_t sums;                  /* backward: [segments][stripes] double */
    int64_t passed;                /* backward: [segments][stripes] counters of 64 bits */
    int64_t scratch, scratch_size; /* [threads] */
    int64_t elements;              /* of all */
} sattn_attention_plan;

/* SATTN_OK, or SATTN_ESIZE if the workspace overflows. */
int32_t sattn_attention_plan_make(sattn_attention_plan *plan, const sattn_attention *p,
                                  int direction, int64_t element_bytes);

#endif
