/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SATTN_HYBRID_TILE_H
#define SATTN_HYBRID_TILE_H

/* A call of hybrid attention in progress, typed: rows of queries, packed, and tiles of 48 of them
 * with every component.
 *
 * A component meets a tile as mixture attention with one component of mean 0 and log weight 0, of
 * which there are C batch entries: its result is x = S u (joint: X u), its CGF a / 2. */

#include "hybrid.h"
#include "real.h"

typedef struct {
    sattn_hybrid_given given;
    int64_t rows, tiles, entries; /* queries and tiles of an entry; B Hk entries */
    int has_turn;                 /* components have an S u or X u */
    real *tilt, *exact, *stats;   /* [entries][rows] [D], [E], [2]: of the exact tokens */
    real *scratch;                /* [threads][each] */
    int64_t each;
    void *work;                   /* of C mixtures: [threads][work_bytes] */
    int64_t work_bytes;
    void *memory, *attention_work;
    int64_t attention_bytes;
    int32_t threads;
} FN(sattn_hybrid_call);

/* Queries first .. first + lanes - 1 of an entry */
typedef struct {
    int64_t entry, first, lanes;
    real *tilt;        /* tile [D] */
    real *x, *x_stats; /* [C][48][E], [C][48][2]; not set for absent components */
    real *a, *turn;    /* [C] rows of 48: a; t of the guard */
    real *logit;       /* [C + 1]: l, then the exact tokens' largest */
    real *log_sum;     /* [C + 1]: 0, then the exact tokens' */
    real *weight;      /* [C + 1]: w */
    real *one;         /* [C]: log weights of the mixtures: 0, or -inf for an absent component */
    real *zero;        /* [max(D, E)] */
    real *rows;        /* [48][E] */
    real *rest;        /* backward */
    void *work;
} FN(sattn_hybrid_tile);

/* Checks, finds memory (`extra` elements a thread's tile for backward), and attends to the exact
 * tokens. SATTN_NOTHING: the call is over. */
int32_t FN(sattn_hybrid_begin)(FN(sattn_hybrid_call) * k, const sattn_hybrid *given, int back);

/* Element 0 of packed row number `row` of all in an array of the caller's [B][H][M][columns] */
real *FN(sattn_hybrid_row)(const FN(sattn_hybrid_call) * k, const sattn_input *array, int64_t row);

FN(sattn_hybrid_tile)
FN(sattn_hybrid_tile_of)(const FN(sattn_hybrid_call) * k, int64_t task, int32_t thread);

/* Mixture attention of the tile to single components, as above; `back`: for its backward. */
sattn_mixture FN(sattn_hybrid_single)(const FN(sattn_hybrid_call) * k,
                                      const FN(sattn_hybrid_tile) * t);

/* x, a, turn, logit, log_sum of a tile. Unused lanes have logits of -inf. */
int32_t FN(sattn_hybrid_pairs)(const FN(sattn_hybrid_call) * k, const FN(sattn_hybrid_tile) * t);

/* Components with a weight, from *first on: how many adjoin; *first moves to the first of them. */
int64_t FN(sattn_hybrid_run)(const FN(sattn_hybrid_call) * k, int64_t entry, int64_t *first);

/* Means and values of component c of an entry */
const real *FN(sattn_hybrid_mean)(const FN(sattn_hybrid_call) * k, int64_t entry, int64_t c);
const real *FN(sattn_hybrid_value)(const FN(sattn_hybrid_call) * k, int64_t entry, int64_t c);

#endif
