/* SPDX-License-Identifier: BSD-2-Clause */
/* Included by kernels.h once per type, with R the type and SATTN_SUFFIX its suffix: the argument
 * structures of the kernels that need one, and the table of a row. */

/* C = start + A B, element by element c[i][j] = fma over k in rising order, beginning with the
 * start: the bits do not depend on how the matrix is cut.
 *   A: m x k, element (i, p) at a[i a_row + p a_col].
 *   B: k x n, rows b_row apart, adjacent elements.   C: m x n, rows c_row apart, likewise.
 *   start: NULL = zeros, or element (i, j) at start[i s_row + j s_col] with s_col 0 (a value per
 *   row) or 1 (start = c accumulates). */
typedef struct SATTN_TYPED(sattn_gemm) {
    int64_t m, n, k;
    const R *a;
    int64_t a_row, a_col;
    const R *b;
    int64_t b_row;
    R *c;
    int64_t c_row;
    const R *start;
    int64_t s_row, s_col;
} SATTN_TYPED(sattn_gemm);

/* A run of live components of one mixture; means (and so the keys) are centred by the caller. */
typedef struct SATTN_TYPED(sattn_components) {
    int64_t count, width, value_width; /* C <= SATTN_WINDOW, D, E (= D if key is value) */
    int32_t kind;                      /* SATTN_COVARIANCE_... */
    int32_t joint;                     /* 1: values are value_mean + cross u */
    /* of the run's first component; cross may be NULL */
    const R *log_weight, *mean, *covariance, *value_mean, *cross;
} SATTN_TYPED(sattn_components);

/* exp, softmax: as in the public headers; exp contiguous.
 * pack: tile[i][q] = x[q ldx + i] for q < rows, 0 for the other lanes.
 * unpack: x[q ldx + i] = tile[i][q] for q < rows, or += with accumulate.
 * add: into[i] += x[i].
 * squares: half[i] = u[i] u[i] / 2, and product[i] = u[i] y[i] unless y is NULL.
 *
 * A partial result of softmax attention of one tile is R state[E + 2][SATTN_TILE]: the weighted sum
 * of the values, then the largest logit, then the sum of exp(logit - largest). Empty: 0, -inf, 0.
 *
 * mixture_fold adds a run of components to a partial result. Scratch for `keys` is D + E rows, or
 * 2 SATTN_BATCH_ROWS if that is more. */
typedef struct SATTN_TYPED(sattn_fold) {
    const struct SATTN_TYPED(sattn_components) * components;
    int64_t lanes; /* live queries of the tile */
    const R *tilt; /* tile [D] */
    const R *half; /* tile [D] of u_i u_i / 2; read by kind DIAG */
    R *logit;      /* tile [count]: left with the logits */
    R *state;      /* [E + 2][SATTN_TILE] */
    R *scratch;    /* tile [SATTN_WINDOW + 1 + keys] */
} SATTN_TYPED(sattn_fold);

/* mixture_merge: into = the union of two partial results, `width` = E.
 *
 * mixture_finish: outputs of `lanes` queries from a partial result; each pointer may be NULL.
 *   out[q][i] = state sum_i / sum + centre_i;  stats[q] = {largest, log sum};
 *   cgf[q] = largest + log sum + u.centre.   A sum of 0 gives 0, {-inf, 0}, -inf. */
typedef struct SATTN_TYPED(sattn_finish) {
    int64_t lanes, width, value_width;
    const R *state, *tilt;
    const R *centre; /* [D] */
    int32_t joint;   /* 1: the values were not centred */
    R *scratch;      /* tile [E + 2] */
    R *out;
    int64_t out_row;
    R *stats; /* pairs, adjacent */
    R *cgf;   /* adjacent */
} SATTN_TYPED(sattn_finish);

/* mixture_weights: logits[0 .. n-1] := exp(logit - largest - log_sum), 0 if largest is -inf.
 *
 * mixture_offset: what backward adds to dout . value_c before it multiplies by the weight:
 *   offset[q] = dcgf[q] - dout[q] . (out[q] - centre); tiles [E]. dout NULL = 0 (out is
 *   not read then), centre NULL = 0, dcgf NULL = 0.
 *
 * mixture_pull: the backward pass of one tile through a run of components.
 *   w_c = exp(logit_c - largest - log_sum), b_c = w_c (dout . value_c + offset);
 *   w and b go to rows of planes (component c, lanes q at w[c plane_row + q]);
 *   dtilt += sum_c b_c (m_c + S_c u) + w_c S_c dout   (joint: w_c X_c' dout). */
typedef struct SATTN_TYPED(sattn_pull) {
    const struct SATTN_TYPED(sattn_components) * components;
    int64_t lanes;
    const R *tilt, *half;                /* tiles [D] */
    const R *dout;                       /* tile [E] */
    const R *product;                    /* tile [D] of u_i dout_i; read by DIAG with key = value */
    const R *largest, *log_sum, *offset; /* [SATTN_TILE] */
    R *w, *b;
    int64_t plane_row;
    R *dtilt;   /* tile [D] */
    R *scratch; /* tile [keys] */
} SATTN_TYPED(sattn_pull);

/* mixture_outer: z[q][i] = b[q] scale x[q][i] + w[q] y[q][i], the left factor of a sum over queries
 * of outer products. x or y may be NULL (left out). */
typedef struct SATTN_TYPED(sattn_outer) {
    int64_t queries, width;
    const R *b, *w;
    R scale;
    const R *x;
    int64_t x_row;
    const R *y;
    int64_t y_row;
    R *z; /* [queries][width] */
} SATTN_TYPED(sattn_outer);

#define KERNEL(type, name, arguments) type(*name) arguments;
struct SATTN_TYPED(sattn_kernels) {
#include "kernels.def"
};
#undef KERNEL
