/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SATTN_TILT_H
#define SATTN_TILT_H

/* The maps before and behind mixture attention: a query's tilt, and the value of its result.
 *
 *   tilt:       u = scale A'q + u0        A [Dq][D], one row of A for each coordinate of the query
 *   value map:  y = scale V x + y0        V [D][Dq], flag SATTN_TRANSPOSED: x is `query`, y `tilt`
 *   Source: Gabet, Boursier, Boyer, "Softmax Attention on Gaussian Mixtures", arXiv 2610.11798,
 *   section 2 (u = U z: A = U'). Since: 0.2 */

#include "base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Flag, besides SATTN_ACCUMULATE: `map` is [D][Dq], its rows belong to the result. */
#define SATTN_TRANSPOSED 4

/* Arrays of float (_f32) or double (_f64). A batch stride of 0 shares a map or offset between batch
 * entries, its gradient is then summed over them. */
typedef struct sattn_tilt {
    int64_t size;                               /* sizeof (sattn_tilt) as the caller was compiled */
    int64_t batch, queries, query_width, width; /* B, M, Dq, D */
    int32_t flags;                              /* SATTN_ACCUMULATE, SATTN_TRANSPOSED */
    int32_t threads;                            /* as in base.h */
    double scale;                               /* init sets 1; 0 is a value like any other */

    const void *query; /* [B][M][Dq] */
    int64_t query_batch, query_row;
    const void *map; /* [B][Dq][D], or [B][D][Dq] */
    int64_t map_batch;
    const void *offset; /* [B][D] u0; NULL = 0 */
    int64_t offset_batch;

    void *tilt; /* [B][M][D]: output of forward */
    int64_t tilt_batch, tilt_row;

    const void *dtilt; /* [B][M][D]: input of backward */
    int64_t dtilt_batch, dtilt_row;
    void *dquery; /* outputs of backward; any may be NULL */
    int64_t dquery_batch, dquery_row;
    void *dmap, *doffset; /* with the strides of map and offset */
    void *dscale;         /* [1] */
} sattn_tilt;

/* Fills *p with the packed strides of the shape, scale 1, the rest 0.
 * Errors: SATTN_ENULL, SATTN_ESTRUCT (size), SATTN_ESIZE (a negative or overflowing shape). */
SATTN_API int32_t sattn_tilt_init(sattn_tilt *p, int64_t size, int64_t batch, int64_t queries,
                                  int64_t query_width, int64_t width);

/* tilt from query, map, offset.
 *
 * Errors:  SATTN_ENULL query, map or tilt is NULL while its size is not 0; SATTN_ESTRUCT;
 *          SATTN_ESIZE; SATTN_EOPTION an unknown flag; SATTN_ESTRIDE a row stride below its width,
 *          or an output whose rows or batch entries overlap; SATTN_EVALUE scale is not finite
 *          (f32: or overflows or vanishes as float), threads out of range;
 *          SATTN_EALIAS an output overlaps another array; SATTN_ENOMEM.
 * Numbers: each element is a chain of fused multiply-adds over Dq, times scale, plus u0: at most
 *          (Dq + 2) roundings of the sum of magnitudes. Rows do not depend on each other.
 * Threads: over tiles of 48 queries.
 * Memory:  with SATTN_TRANSPOSED a transposed copy of the map, freed within the call. */
SATTN_API int32_t sattn_tilt_forward_f32(const sattn_tilt *p);
SATTN_API int32_t sattn_tilt_forward_f64(const sattn_tilt *p);

/* Gradients given dtilt:
 *   dquery = scale A dtilt     dmap = scale sum q dtilt'  (SATTN_TRANSPOSED: scale sum dtilt q')
 *   doffset = sum dtilt        dscale = sum (A'q) . dtilt
 *   The sums run over the queries (and the batch, for what is shared; dscale always).
 *
 * Errors:  as forward with dtilt in place of tilt (doffset does not need offset).
 * Numbers: summed in a fixed order; dscale in double.
 * Threads: over tiles of queries for dquery, over 32 rows of the map for the rest.
 * Memory:  a transposed copy of the map unless it is SATTN_TRANSPOSED, 32 rows of it a task. */
SATTN_API int32_t sattn_tilt_backward_f32(const sattn_tilt *p);
SATTN_API int32_t sattn_tilt_backward_f64(const sattn_tilt *p);

#ifdef __cplusplus
}
#endif
#endif
