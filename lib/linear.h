/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SATTN_LIB_LINEAR_H
#define SATTN_LIB_LINEAR_H

/* What forward and backward of linear attention share: checks and the plan of a call. */

#include "attention.h"
#include "sattn/linear.h"

enum {
    SATTN_LINEAR = 0,
    SATTN_LINEAR_BACK = 1,
    SATTN_LINEAR_SHAPE = 2 /* no pointer is looked at */
};

/* Tokens of a chunk, whose pairs are taken one by one, and of a block, whose sum starts from 0.
 * Constants of the algorithm. */
enum { SATTN_CHUNK_TOKENS = SATTN_TILE, SATTN_BLOCK_TOKENS = 64 * SATTN_TILE };

/* Copies the caller's descriptor to *p and checks all of it. */
int32_t sattn_linear_check(sattn_linear *p, const sattn_linear *given, int direction,
                           int64_t element_bytes);

/* Columns of a state: the values, and in the normalised form a column of ones. */
static inline int64_t sattn_linear_columns(const sattn_linear *p)
{
    return p->value_width + ((p->flags & SATTN_NORMALISED) != 0);
}

/* Where things are in the workspace, in elements */
typedef struct sattn_linear_plan {
    int32_t threads;
    int64_t heads;                 /* B H */
    int64_t blocks;                /* of keys */
    int64_t tiles;                 /* of queries */
    int64_t state;                 /* elements of a state: D (E + 1) */
    int split;                     /* forward: blocks (tiles) are tasks; else heads */
    int64_t states;                /* [heads][blocks + 1] states */
    int64_t scratch, scratch_size; /* [threads] */
    int64_t elements;              /* of all */
} sattn_linear_plan;

/* SATTN_OK, or SATTN_ESIZE if the workspace overflows. */
int32_t sattn_linear_plan_make(sattn_linear_plan *plan, const sattn_linear *p, int direction);

#endif
