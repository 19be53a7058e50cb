/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SATTN_MERGE_H
#define SATTN_MERGE_H

/* The union of partial results of softmax attention: over blocks of keys, machines, or kinds of
 * prompt (exact tokens, mixtures).
 *
 *   Part p of a row has out_p and the statistics (m_p, log z_p), lse_p = m_p + log z_p:
 *     lse = log sum_p exp lse_p,   w_p = exp(lse_p - lse),   out = sum_p w_p out_p
 *   With the parts' out over disjoint keys, this is attention over all of them. A result of mixture
 *   attention joins with the statistics (cgf, 0), and log weights that count tokens.
 *   Source: arXiv 2205.14135, section 3 (merging blocks). Since: 0.2 */

#include "base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Arrays hold float (_f32) or double (_f64). */
typedef struct sattn_merge {
    int64_t size;               /* sizeof (sattn_merge) */
    int64_t parts, rows, width; /* P, R, E */
    int32_t flags;              /* 0 */
    int32_t threads;            /* as in base.h */

    /* Inputs: P pointers each; rows out_row (stats_row) elements apart */
    const void *const *part_out; /* [R][E]; not read where the part's m is -inf */
    int64_t part_out_row;
    const void *const *part_stats; /* [R][2]: m, log z >= 0 */
    int64_t part_stats_row;

    /* Outputs of forward, inputs of backward. Forward allows out to be part_out[0] and stats to be
     * part_stats[0], with the same stride. */
    void *out; /* [R][E] */
    int64_t out_row;
    void *stats; /* [R][2] */
    int64_t stats_row;

    /* Cotangents of out and lse; either may be NULL (zero). */
    const void *dout; /* [R][E] */
    int64_t dout_row;
    const void *dlse; /* [R] */

    /* Outputs of backward: P pointers each, or NULL; what the parts' backward passes take as their
     * cotangents dout and dlse (dcgf). */
    void *const *part_dout; /* [R][E] */
    int64_t part_dout_row;
    void *const *part_dlse; /* [R] */
} sattn_merge;

/* Fills *p with packed strides, pointers NULL. `size` is sizeof (sattn_merge).
 * Errors: SATTN_ENULL, SATTN_ESTRUCT (size), SATTN_ESIZE (a negative or overflowing shape). */
SATTN_API int32_t sattn_merge_init(sattn_merge *p, int64_t size, int64_t parts, int64_t rows,
                                   int64_t width);

/* out, stats from the parts.
 *
 * Errors:  SATTN_ENULL a pointer that is needed; SATTN_ESTRUCT; SATTN_ESIZE; SATTN_EOPTION;
 *          SATTN_ESTRIDE rows of an output overlap; SATTN_EALIAS an output overlaps an input
 *          otherwise than in place; SATTN_EVALUE threads out of range.
 * Numbers: a relative error of w_p of |lse_p - m| u + 4 u. A part with m = -inf has weight exactly
 *          0; no part: out = 0, stats {-inf, 0}. NaN in a row stays in it.
 * Threads: over rows. Memory: none. */
SATTN_API int32_t sattn_merge_forward_f32(const sattn_merge *p);
SATTN_API int32_t sattn_merge_forward_f64(const sattn_merge *p);

/* Gradients of  <dout, out> + <dlse, lse>,  given out and stats as forward left them:
 *
 *   part_dout_p = w_p dout,   part_dlse_p = w_p (dout . (out_p - out) + dlse)
 *
 * Errors:  as forward (nothing is in place); SATTN_ENOMEM.
 * Numbers: parts with m = -inf get exactly 0.
 * Threads: over rows. Memory: three tiles of 48 x E a thread, allocated within the call. */
SATTN_API int32_t sattn_merge_backward_f32(const sattn_merge *p);
SATTN_API int32_t sattn_merge_backward_f64(const sattn_merge *p);

#ifdef __cplusplus
}
#endif
#endif
