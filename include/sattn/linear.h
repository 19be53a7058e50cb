/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SATTN_LINEAR_H
#define SATTN_LINEAR_H

/* Linear attention, in time and memory linear in the number of tokens, forward and backward.
 *
 *   f is a feature map, taken of each coordinate. Query i sees the keys j <= i (causal) or all, and
 *   what an earlier call left behind: S = sum_j f(k_j) v_j', z = sum_j f(k_j) over `seen` tokens.
 *     plain:      out_i = c_i sum_j (f(q_i) . f(k_j)) v_j,  c_i = scale (with SATTN_MEAN: over the
 *                 number of keys that i sees)
 *     normalised: out_i = sum_j (f(q_i) . f(k_j)) v_j / (den_i + eps),  den_i = sum_j f(q_i) .
 *     f(k_j)
 *   Source: arXiv 2006.16236 (normalised, causal states); the plain form with f = identity is what
 *   theory calls linear attention (arXiv 2306.00297, 2610.11798). Since: 0.2 */

#include "attention.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Feature maps */
#define SATTN_FEATURE_IDENTITY 0 /* x */
#define SATTN_FEATURE_ELU 1      /* elu(x) + 1 = x + 1 for x > 0, exp(x) else */
#define SATTN_FEATURE_RELU 2     /* max(x, 0) */
#define SATTN_FEATURE_EXP 3      /* exp(x) */

/* Flags of sattn_linear, with SATTN_ACCUMULATE */
#define SATTN_CAUSAL 2     /* M = N; query i stands at key i */
#define SATTN_NORMALISED 4 /* the normalised form */
#define SATTN_MEAN 8       /* plain form: an average over the keys that are seen */

/* One problem. Fill it with sattn_linear_init. Arrays [B][H][rows][columns] by their strides; float
 * (_f32) or double (_f64). */
typedef struct sattn_linear {
    int64_t size; /* sizeof (sattn_linear) */
    int64_t batch, heads, queries, keys, width, value_width; /* B, H, M, N, D, E */
    double scale;    /* plain form: c; init: 1 */
    double eps;      /* normalised form; >= 0; init: 0. 0 / 0 is 0 */
    int64_t seen;    /* tokens that the state in has */
    int32_t feature;  /* SATTN_FEATURE_... */
    int32_t flags;
    int32_t threads; /* as in base.h */
    int32_t reserved; /* 0 */

    sattn_input q, k, v;      /* [B][H][M][D], [B][H][N][D], [B][H][N][E] */
    sattn_input sum, key_sum; /* S [B][H][D][E], z [B][H][D] (col not used) or NULL = 0; plain has
                               * no z */

    sattn_output out; /* [B][H][M][E] */
    sattn_output den; /* [B][H][M] (col not used): den + eps; normalised form, for backward */
    sattn_output sum_out, key_sum_out; /* the states after all keys; NULL = not wanted */

    /* Cotangents; NULL = 0 */
    sattn_input dout, dsum_out, dkey_sum_out;

    /* Outputs of backward, each may be NULL */
    sattn_output dq, dk, dv, dsum, dkey_sum;

    /* Workspace: at least sattn_linear_workspace bytes at a multiple of 64, or NULL */
    void *work;
    int64_t work_bytes;
} sattn_linear;

/* Fills *p with packed strides, scale 1, all else 0 or NULL. `size` is sizeof (sattn_linear).
 * Errors: SATTN_ENULL, SATTN_ESTRUCT (size), SATTN_ESIZE (a negative or overflowing shape). */
SATTN_API int32_t sattn_linear_init(sattn_linear *p, int64_t size, int64_t batch, int64_t heads,
                                    int64_t queries, int64_t keys, int64_t width,
                                    int64_t value_width);

/* Bytes of workspace that forward and backward of this shape and these flags need. */
SATTN_API int32_t sattn_linear_workspace_f32(const sattn_linear *p, int64_t *bytes);
SATTN_API int32_t sattn_linear_workspace_f64(const sattn_linear *p, int64_t *bytes);

/* out, den, sum_out, key_sum_out. Calls on the parts of a sequence, each given the state that the
 * one before left, make the result on the whole, up to rounding.
 *
 * Errors:  SATTN_ENULL q, k or v is NULL while its size is not 0; SATTN_ESTRUCT; SATTN_ESIZE, also
 *          causal with M != N; SATTN_EOPTION an unknown flag or feature map; SATTN_EVALUE scale or
 *          eps not finite (f32: or overflows or vanishes as float), eps < 0, seen < 0, threads out
 *          of range; SATTN_ESTRIDE; SATTN_EALIAS; SATTN_EWORKSPACE; SATTN_ENOMEM.
 * Numbers: sums run over blocks of 3072 tokens, each a chain of FMAs, then over the blocks: an
 *          error of (3072 + N / 3072 + D) u sum |f(q)||f(k)||v| at worst. NaN in a key reaches
 *          every query that sees it. den + eps = 0 gives 0.
 * Threads: over heads, or over blocks of tokens when there are few.
 * Memory:  some tiles of 48 x (D + E) and D x E a thread; with few heads D x E a block. */
SATTN_API int32_t sattn_linear_forward_f32(const sattn_linear *p);
SATTN_API int32_t sattn_linear_forward_f64(const sattn_linear *p);

/* Gradients of <dout, out> + <dsum_out, S out> + <dkey_sum_out, z out>; the normalised form needs
 * out and den as forward left them. dsum and dkey_sum are those of the state in.
 *
 * Errors:  as forward; SATTN_ENULL also if the normalised form lacks out or den.
 * Numbers: every gradient is summed in a fixed order. relu has derivative 0 at 0.
 * Threads: over heads and the two directions of a sequence. */
SATTN_API int32_t sattn_linear_backward_f32(const sattn_linear *p);
SATTN_API int32_t sattn_linear_backward_f64(const sattn_linear *p);

#ifdef __cplusplus
}
#endif
#endif
