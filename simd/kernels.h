/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SATTN_KERNELS_H
#define SATTN_KERNELS_H

/* What lib/ sees of simd/: the arguments of the kernels and, per row and type, one complete table
 * of functions. Kernels never allocate, thread or fail, and touch no byte outside their arguments.
 */

#include <stdint.h>

/* Queries of one tile. Lanes are queries: a tile of X is [width][SATTN_TILE], element i of query q
 * at i * SATTN_TILE + q. 48 = 3 AVX-512 vectors of float, and a multiple of every vector's lanes,
 * so that one tile serves every row; no sum runs across lanes, hence the same bits in each of them.
 */
#define SATTN_TILE 48

/* Components whose logits are formed together. A constant of the algorithm: partial results of
 * windows of so many components are merged in their order. */
#define SATTN_WINDOW 64

/* Rows of a tile that the keys of a batch of components with matrices fill, about: 24 KiB of float.
 */
#define SATTN_BATCH_ROWS 128

/* Columns of B up to which a matrix product works along the rows of A, as for a few queries. */
#define SATTN_NARROW 8

/* The elements of some rows in memory: element j of row r is number r row + j col. */
typedef struct sattn_operand {
    void *data; /* NULL: there is none */
    int64_t row, col;
} sattn_operand;

#define SATTN_CAT_(a, b) a##b
#define SATTN_CAT(a, b) SATTN_CAT_(a, b)
#define SATTN_TYPED(name) SATTN_CAT(name, SATTN_SUFFIX)

#define R float
#define SATTN_SUFFIX _f32
#include "arguments.h"
#undef R
#undef SATTN_SUFFIX

#define R double
#define SATTN_SUFFIX _f64
#include "arguments.h"
#undef R
#undef SATTN_SUFFIX

/* The tables, one per row and type, defined by simd/row.c. */
extern const struct sattn_kernels_f32 sattn_kernels_scalar_f32, sattn_kernels_neon_f32,
    sattn_kernels_avx2_f32, sattn_kernels_avx512_f32;
extern const struct sattn_kernels_f64 sattn_kernels_scalar_f64, sattn_kernels_neon_f64,
    sattn_kernels_avx2_f64, sattn_kernels_avx512_f64;

#endif
