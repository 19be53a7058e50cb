/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SATTN_VEC_H
#define SATTN_VEC_H

/* The vector layer: a kernel is written once over it and compiled once per row and type. The build
 * defines SATTN_ROW_SCALAR, _AVX2, _AVX512 or _NEON, and SATTN_REAL = 32 or 64; the file of the row
 * defines
 *
 *   R, V, M          element, vector, mask of lanes
 *   VL               lanes of V; divides SATTN_TILE
 *   V_REGISTERS      vector registers of the machine
 *
 *   v_set(r) v_load(p) v_store(p, v)          unaligned
 *   v_load_n(p, n) v_store_n(p, v, n)         lanes 0 .. n-1, 0 <= n <= VL; other bytes are not
 *                                             touched, other lanes load as 0
 *   v_add v_sub v_mul v_div
 *   v_fma(a, b, c) = a b + c, v_fnma(a, b, c) = c - a b      one rounding
 *   v_max(a, b) = a > b ? a : b               b where an operand is NaN
 *   v_lt(a, b) v_le(a, b) v_nle(a, b) -> M    ordered <, <=; not <= (1 where a lane is NaN)
 *   v_select(m, a, b), v_keep(m, a)           lanes of a where m, else of b or +0
 *   v_first(n)                                mask of lanes 0 .. n-1, 0 <= n <= VL
 *   v_add_if(m, a, b)                         a + b in lanes of m, a elsewhere, which is not -0
 *   v_fma_if(m, a, b, c)                      v_fma in lanes of m, c elsewhere
 *   v_fnma_if(m, a, b, c)                     v_fnma in lanes of m, 0 elsewhere, where a must be 0
 *   v_reach(far, m, x, n, r)                  notes in `far`, at first 0, lanes of m with |x| > r;
 *                                             n is about x / ln 2, 0 outside m: a row looks at
 *                                             x or at n, whichever is cheaper
 *   v_reached(far, r)                         not 0 if a lane was noted
 *   v_split(a, &e)                            a = v 2^e, v in [sqrt(1/2), sqrt(2)); a normal, > 0
 *
 *   v_roots_power(t)                          root i of SATTN_ROOTS times 2^e, normal, where
 *                                             t = V_ROUNDER + k has k = e + i/8 in its low bits
 *   v_least(m, a)                             in lanes of m the whole number next to a, at least 0
 *                                             and at most 2^23 (2^52), times the least subnormal
 *                                             number; made as an integer, as operations with a
 *                                             subnormal result are slow. a elsewhere
 *   v_sum(a)                                  tree: lane i + lane i + VL/2, then VL/4, ... 1
 *   v_top(a)                                  largest lane, none of which is NaN
 *   v_transpose(a)                            V a[VL] as a square matrix, in place
 *
 * Every operation gives the same bits on every row. The scalar row is the reference: VL = 1. */

#include <stddef.h>
#include <stdint.h>

/* V_ROUNDER: added to |k| < 2^18 (f64: 2^47) it rounds k to a multiple of 1/8, which the low bits
 * then hold. V_POWER: shifted left by it, the whole part of k is in the place of the exponent.
 * SATTN_ROOTS: i and the bits of 2^(i/8) times the scale that roots.py found */
#if SATTN_REAL == 32
#define V_ROUNDER 0x1.8p20f
#define V_POWER 20
#define SATTN_ROOTS(F)                                                                             \
    F(0, 0x3f80594e), F(1, 0x3f8bf725), F(2, 0x3f98a224), F(3, 0x3fa672a7), F(4, 0x3fb5833f),      \
        F(5, 0x3fc5f0e4), F(6, 0x3fd7db2e), F(7, 0x3feb6490)
#else
#define V_ROUNDER 0x1.8p49
#define V_POWER 49
#define SATTN_ROOTS(F)                                                                             \
    F(0, 0x3ff00000998abdb7), F(1, 0x3ff172b8e3ed9f95), F(2, 0x3ff306fec0c99242),                  \
        F(3, 0x3ff4bfdb9c54b385), F(4, 0x3ff6a09f3fa35c23), F(5, 0x3ff8ace62ef5e8f2),              \
        F(6, 0x3ffae8a09b949f48), F(7, 0x3ffd5819f694860f)
#endif
#define SATTN_ROOT(i, bits) bits
/* less i in the place where the shifted t has it */
#define SATTN_ROOT_LESS(i, bits) bits - ((uint64_t)(i) << V_POWER)

#if defined(SATTN_ROW_SCALAR)
#include "vec_scalar.h"
#define SATTN_ROW_NAME scalar
#elif defined(SATTN_ROW_AVX2)
#include "vec_avx2.h"
#define SATTN_ROW_NAME avx2
#elif defined(SATTN_ROW_AVX512)
#include "vec_avx512.h"
#define SATTN_ROW_NAME avx512
#elif defined(SATTN_ROW_NEON)
#include "vec_neon.h"
#define SATTN_ROW_NAME neon
#else
#error "no row chosen"
#endif

#include "kernels.h"

/* K(name): the name of this row's and type's function. T(name): a typed structure of kernels.h. */
#define SATTN_K3(name, row, type) sattn_##name##_##row##_##type
#define SATTN_K2(name, row, type) SATTN_K3(name, row, type)
#if SATTN_REAL == 32
#define K(name) SATTN_K2(name, SATTN_ROW_NAME, f32)
#define T(name) name##_f32
#define SATTN_SUFFIX _f32
#define R_INF __builtin_inff()
#else
#define K(name) SATTN_K2(name, SATTN_ROW_NAME, f64)
#define T(name) name##_f64
#define SATTN_SUFFIX _f64
#define R_INF __builtin_inf()
#endif

#define KERNEL(type, name, arguments) type K(name) arguments;
#include "kernels.def"
#undef KERNEL

#endif
