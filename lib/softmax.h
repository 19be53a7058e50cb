/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SATTN_LIB_SOFTMAX_H
#define SATTN_LIB_SOFTMAX_H

/* What forward and backward of the softmax descriptor share: checks, and the plan of a call. */

#include "sattn/softmax.h"

#include <stddef.h>

enum {
    SATTN_SOFTMAX_FORWARD = 0,
    SATTN_SOFTMAX_BACKWARD = 1,
    SATTN_SOFTMAX_SHAPE = 2 /* no pointer is looked at */
};

/* A checked descriptor, and the row strides that it leaves unsaid. A batch of single rows is one
 * batch entry with that many rows. */
typedef struct sattn_softmax_call {
    sattn_softmax p;
    int64_t stats_row, lse_row, dlse_row;
} sattn_softmax_call;

int32_t sattn_softmax_check(sattn_softmax_call *k, const sattn_softmax *given, int direction,
                            int64_t element_bytes);

/* The address of element (b, m) of an array, NULL if there is none. Modulo 2^64: an array that the
 * call does not use has not been checked, and its address is not followed. */
static inline void *sattn_softmax_at(const void *data, int64_t b, int64_t batch, int64_t m,
                                     int64_t row, int64_t bytes)
{
    const uint64_t offset = (uint64_t)b * (uint64_t)batch + (uint64_t)m * (uint64_t)row;
    return data ? (void *)(uintptr_t)((uintptr_t)data + offset * (uint64_t)bytes) : NULL;
}

/* Bytes of an element of x or y */
static inline int64_t sattn_storage_bytes(int32_t storage, int64_t element_bytes)
{
    return storage == SATTN_STORAGE_OWN ? element_bytes : 2;
}

/* How a backward call is cut, by its shape alone. Rows b M + m that share a row of bias are a
 * group; SATTN_SLAB rows of it are a slab, whose dz are added up row by row; then the slabs. */
enum { SATTN_SLAB = 64 };
typedef struct sattn_softmax_plan {
    int32_t threads;
    int64_t rows;                      /* B M */
    int64_t groups, group, slabs;      /* how many; rows of each; slabs of each */
    int64_t group_rows;                /* groups of one batch entry: group g begins with row */
    int64_t step;                      /* g / group_rows M + g % group_rows, then every step-th */
    int by_slab;                       /* dbias has columns, so tasks are slabs */
    int64_t logit_sums, dscale, dsink; /* [rows] doubles, where wanted: offsets in bytes */
    int64_t partial;                   /* [groups slabs, or threads if slabs = 1][N]: offset */
    int64_t bytes;                     /* of all */
} sattn_softmax_plan;

/* SATTN_OK, or SATTN_ESIZE if the workspace overflows. */
int32_t sattn_softmax_plan_make(sattn_softmax_plan *plan, const sattn_softmax *p,
                                int64_t element_bytes);

/* Elements of a task, about; a row is never cut. Starting a team costs a few microseconds. */
enum { SATTN_SOFTMAX_TASK = 1 << 16 };

#endif
