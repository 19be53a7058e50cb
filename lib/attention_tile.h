/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SATTN_ATTENTION_TILE_H
#define SATTN_ATTENTION_TILE_H

/* A call of softmax attention in progress, typed: tiles of queries, windows of keys. */

#include "attention.h"
#include "real.h"

typedef struct {
    const sattn_attention *p;
    const sattn_attention_plan *plan;
    real *work;
    void *owned; /* workspace to free at the end, or NULL */
} FN(sattn_attention_call);

/* A thread's scratch that both directions use; `rest` is what is left for the one. */
typedef struct {
    real *rows;                       /* [48][D], [48][E] or [48][64] */
    real *key, *value;                /* [64][D], [64][E]: where they cannot be used in place */
    real *query;                      /* tile [D] */
    real *score, *bias, *live;        /* tiles [64] */
    real *low, *high, *slope, *place; /* [48] */
    real *rest;
} FN(sattn_attention_scratch);

/* Queries first .. first + lanes - 1 of a segment, counted head after head. By their places they
 * see keys from[q] .. to[q] - 1; each key that one of them sees is in low .. high - 1, and all see
 * those in all_low .. all_high - 1. */
typedef struct {
    sattn_segment of;
    int64_t first, lanes, low, high, all_low, all_high;
    int64_t place[SATTN_TILE], from[SATTN_TILE], to[SATTN_TILE];
} FN(sattn_tile);

/* Keys first .. first + count - 1 of a segment as they meet a tile. `seen` tells which of them any
 * query may see, `whole` that all are; `masked`: some pair of those is not live. The scores are
 * still to be multiplied by `factor`. */
typedef struct {
    int64_t first, count;
    int masked, whole;
    real factor;
    unsigned char seen[SATTN_WINDOW];
    struct FN(sattn_scores) scores;
} FN(sattn_key_window);

/* Rows of keys or values: element (j, i) at data[j row + i col] */
typedef struct {
    const real *data;
    int64_t row, col;
} FN(sattn_key_rows);

/* SATTN_OK, SATTN_EWORKSPACE, SATTN_ENOMEM */
int32_t FN(sattn_attention_begin)(FN(sattn_attention_call) * call, const sattn_attention *p,
                                  const sattn_attention_plan *plan);

FN(sattn_attention_scratch)
FN(sattn_attention_scratch_of)(const FN(sattn_attention_call) * call, int32_t thread);

/* Tile number `index` of a segment; lanes = 0 past its end. Packs its queries into scratch->query;
 * leaves them in scratch->rows too. */
FN(sattn_tile)
FN(sattn_tile_of)
(const FN(sattn_attention_call) * call, int64_t segment, int64_t index,
 const FN(sattn_attention_scratch) * scratch);

/* rows [lanes][cols] from an array of the queries' shape, or back to one */
void FN(sattn_tile_get)(const FN(sattn_attention_call) * call, const FN(sattn_tile) * tile,
                        const sattn_input *x, int64_t cols, real *rows);
void FN(sattn_tile_put)(const FN(sattn_attention_call) * call, const FN(sattn_tile) * tile,
                        const real *rows, int64_t cols, const sattn_output *x);

/* One number per query's head, as slopes and sinks are; other lanes 0. */
void FN(sattn_tile_heads)(const FN(sattn_tile) * tile, const sattn_input *x, real *lanes);

/* Prepares `count` keys from `first` on for sattn_window_scores; 0 if no query sees any. */
int FN(sattn_window_of)(const FN(sattn_attention_call) * call, const FN(sattn_tile) * tile,
                        const FN(sattn_attention_scratch) * scratch, int64_t first, int64_t count,
                        FN(sattn_key_window) * window);

/* The length of the next run of keys in [*from, count) that may be seen, 0 = none; its start in
 * *from. */
int64_t FN(sattn_window_run)(const FN(sattn_key_window) * window, int64_t *from);

/* Keys (x = k) or values (x = v) of a run. They are copied to `copy` if they are stored otherwise
 * or, with `adjacent`, if their columns are not adjacent. */
FN(sattn_key_rows)
FN(sattn_window_rows)
(const FN(sattn_attention_call) * call, const FN(sattn_tile) * tile,
 const FN(sattn_key_window) * window, const sattn_input *x, int64_t width, int64_t from,
 int64_t run, int adjacent, real *copy);

/* Scores of a run into its rows of scratch->score; `raw` and `rate` are tiles of the window or
 * NULL. */
void FN(sattn_window_scores)(const FN(sattn_key_window) * window, FN(sattn_key_rows) keys,
                             int64_t from, int64_t run, real *raw, real *rate);

#endif
