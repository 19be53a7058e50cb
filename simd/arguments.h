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

/* softmax_columns: softmax of rows side by side, element j of row r at x[j x_col + r].
 *
 * softmax_forward, softmax_backward: rows of the general softmax, as sattn/softmax.h defines it.
 * Everything that is NULL is left out; masked elements and those from a row's length on are dead.
 * x and dx have the storage type x_storage, y and dy y_storage, all else is R. */
typedef struct SATTN_TYPED(sattn_softmax_rows) {
    int64_t rows, n;
    int32_t logarithm; /* 1: log-softmax */
    int32_t x_storage, y_storage;
    R scale;
    sattn_operand x, y, bias;
    sattn_operand mask; /* of uint8_t */
    const int64_t *length;
    int64_t length_row;
    const R *sink;
    int64_t sink_row;
    R *stats; /* pairs */
    int64_t stats_row;
    R *lse;
    int64_t lse_row;

    /* Backward. Weights are those of y if there is one, else they come from x and stats. */
    sattn_operand dx, dy;
    const R *dlse;
    int64_t dlse_row;
    R *dbias;                            /* [n]: the rows' dz are added to it */
    double *logit_sums, *dscale, *dsink; /* [rows]: sums of dz_j and of dz_j x_j, dsink */
} SATTN_TYPED(sattn_softmax_rows);

/* A run of live components of one mixture; means (and so the keys) are centred by the caller. */
typedef struct SATTN_TYPED(sattn_components) {
    int64_t count, width, value_width; /* C <= SATTN_WINDOW, D, E (= D if key is value) */
    int32_t kind;                      /* SATTN_COVARIANCE_... */
    int32_t joint;                     /* 1: values are value_mean + cross u */
    /* of the run's first component; cross may be NULL */
    const R *log_weight, *mean, *covariance, *value_mean, *cross;
    /* Kind DIAG: S = diag(covariance) + F F', F of rank <= D columns; 0 = none */
    int64_t rank;
    const R *factor; /* [count][rank][D] F' */
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

/* mixture_factors: of a tile and a run with a factor, the left factors of the gradient of F',
 *   b t' u' + w (p' u' + t' dout') for t = F'u, p = F'dout:
 *   by_tilt[k][r] = b_k t_r + w_k p_r, by_dout[k][r] = w_k t_r; tiles [count rank]. dout NULL = 0.
 */

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

/* widen: y [rows][cols] = x of a storage type (SATTN_STORAGE_...), whose elements are `row` and
 *   `col` elements apart.
 * flags: y [rows][cols] = 1 where the byte is not 0, else 0.
 * live_columns: count[j] = how many rows of x [rows][cols] have more than `dead`, or NaN, there.
 * all_finite: 1 if no element is infinite or NaN; adjacent columns. */

/* attention_scores: the scores of `count` adjacent keys for a tile of queries, by the formula of
 * sattn/attention.h; a key that is not live for a lane has -inf there. NULL = no such term. */
typedef struct SATTN_TYPED(sattn_scores) {
    int64_t first, count, lanes, width; /* first: of these keys among those of the window */
    const R *key;
    int64_t key_row, key_col;
    const R *query; /* tile [D] */
    int32_t plain;  /* 1: score = key . query, which the reader scales; nothing else is asked for */
    R scale, cap;   /* cap 0 = none */
    const R *bias;  /* tile [count] */
    const R *slope, *place; /* [SATTN_TILE]: slope, and the query's place in the window */
    const R *low, *high;    /* [SATTN_TILE]: keys low <= j < high of the window are live */
    const R *live;          /* tile [count]: 0 = masked */
    R *raw, *rate; /* tiles [count]: key . query, and cap' (only with a cap); what backward needs */
    R *score;      /* tile [count] */
} SATTN_TYPED(sattn_scores);

/* attention_weigh: raises the maximum of a partial result [E + 2][SATTN_TILE] (see above) to that
 * of scale times the scores, scale >= 0, rescales it, p = exp(scale score - largest), and adds p to
 * its sum. */
typedef struct SATTN_TYPED(sattn_weigh) {
    int64_t count, lanes, width; /* E */
    R scale;
    const R *score; /* tile [count] */
    R *p;           /* tile [count] */
    R *state;
} SATTN_TYPED(sattn_weigh);

/* attention_values: state += sum_k p_k value_k. With `careful`, values that are not finite do not
 * reach lanes whose score is -inf; otherwise p is 0 there, which does for finite values. */
typedef struct SATTN_TYPED(sattn_values) {
    int64_t count, lanes, width; /* E */
    const R *value;
    int64_t value_row, value_col;
    const R *score, *p; /* tiles [count] */
    int32_t careful;
    R *state; /* tile [E] */
} SATTN_TYPED(sattn_values);

/* attention_pull: from scores to the factors of the gradients, for a run of keys:
 *   w = exp(factor score - largest - log_sum),  e = w (dout . value + offset), 0 where the score is
 *   -inf;  g = scale rate e;  sum += rate raw e   (rate NULL = 1; raw NULL: no sum) */
typedef struct SATTN_TYPED(sattn_attention_pull) {
    int64_t count, lanes, width; /* E */
    const R *value;
    int64_t value_row, value_col;
    const R *dout;                       /* tile [E] */
    const R *largest, *log_sum, *offset; /* [SATTN_TILE] */
    const R *score, *raw, *rate;         /* tiles [count] */
    R factor, scale;
    R *w, *e, *g; /* tiles [count] */
    R *sum;       /* [SATTN_TILE] */
} SATTN_TYPED(sattn_attention_pull);

/* attention_outer: c += a' b (transposed = 0: c[k] += sum_q a[k][q] b[q], rows of keys) or
 * c[q] += sum_k a[k][q] b[k] (transposed = 1, rows of queries). With `score`, pairs whose score is
 * -inf are left out, whatever b holds. */
typedef struct SATTN_TYPED(sattn_attention_outer) {
    int64_t count, lanes, width;
    int32_t transposed;
    const R *a, *score; /* tiles [count] */
    const R *b;
    int64_t b_row;
    R *c;
    int64_t c_row;
} SATTN_TYPED(sattn_attention_outer);

/* attention_sink: dsink[q] = exp(sink - largest - log_sum) offset; all [SATTN_TILE]. */

/* merge_...: lanes are rows of results, arrays [SATTN_TILE]; largest and log_sum have one for each
 *   part. totals: log of sum_p exp(largest + log_sum), in two parts. weights: w = exp(largest +
 *   log_sum - totals), 0 if largest is -inf. pull: dlse = w (total - part), 0 if largest is -inf.
 *
 * add_scaled_rows: y[q][i] = w[q] x[q][i], or += with accumulate; rows whose w is 0 are not read.
 * */
typedef struct SATTN_TYPED(sattn_scaled_rows) {
    int64_t rows, width;
    const R *w, *x;
    int64_t x_row;
    R *y;
    int64_t y_row;
    int32_t accumulate;
} SATTN_TYPED(sattn_scaled_rows);

/* feature: y = f(x) of a feature map SATTN_FEATURE_...; feature_pull: dy *= f'(x). */

#define KERNEL(type, name, arguments) type(*name) arguments;
struct SATTN_TYPED(sattn_kernels) {
#include "kernels.def"
};
#undef KERNEL
