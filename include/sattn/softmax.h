/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SATTN_SOFTMAX_H
#define SATTN_SOFTMAX_H

/* Softmax, log-softmax and log-sum-exp of rows: plain ones by plain arguments; with strides on
 * every axis, scale, bias, mask, lengths, sink, bf16 and f16, and gradients by a descriptor. */

#include "base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* softmax:      y[r][j] = exp(x[r][j] - max_j x[r][j]) / sum_j exp(x[r][j] - max_j x[r][j])
 * log_softmax:  y[r][j] = x[r][j] - lse[r]
 * log_sum_exp:  lse[r] = log sum_j exp(x[r][j]), computed as largest + log of the sum
 *
 * Shapes:  rows x n; rows start ldx (ldy) elements apart, the elements of a row are adjacent.
 *          ldx may be 0 (one row for all). In place: y = x with ldy = ldx. lse [rows], adjacent.
 * Errors:  SATTN_ESIZE rows or n < 0, or the extent overflows; SATTN_ENULL x or y is NULL and
 *          rows * n > 0 (lse: rows > 0); SATTN_ESTRIDE |ldy| < n with rows > 1; SATTN_EALIAS an
 *          output overlaps x otherwise than in place; SATTN_EVALUE threads < 0 or >
 *          SATTN_MAX_THREADS.
 * Numbers: docs/accuracy.md derives and measures the bounds; a row of softmax sums to 1 within
 *          4 ULP up to n = 2^25. -inf has weight exactly 0; a row of -inf alone is all 0, its
 *          log-softmax and lse are -inf; NaN or +inf in a row make the whole row and its lse NaN
 *          and leave its neighbours alone.
 * Threads: `threads` as in base.h; serial below some 100,000 elements.
 * Memory:  none.
 * Since:   0.1 (log_softmax, log_sum_exp: 0.2) */
SATTN_API int32_t sattn_softmax_f32(int64_t rows, int64_t n, const float *x, int64_t ldx, float *y,
                                    int64_t ldy, int32_t threads);
SATTN_API int32_t sattn_softmax_f64(int64_t rows, int64_t n, const double *x, int64_t ldx,
                                    double *y, int64_t ldy, int32_t threads);
SATTN_API int32_t sattn_log_softmax_f32(int64_t rows, int64_t n, const float *x, int64_t ldx,
                                        float *y, int64_t ldy, int32_t threads);
SATTN_API int32_t sattn_log_softmax_f64(int64_t rows, int64_t n, const double *x, int64_t ldx,
                                        double *y, int64_t ldy, int32_t threads);
SATTN_API int32_t sattn_log_sum_exp_f32(int64_t rows, int64_t n, const float *x, int64_t ldx,
                                        float *lse, int32_t threads);
SATTN_API int32_t sattn_log_sum_exp_f64(int64_t rows, int64_t n, const double *x, int64_t ldx,
                                        double *lse, int32_t threads);

/* Forms */
#define SATTN_FORM_SOFTMAX 0
#define SATTN_FORM_LOG_SOFTMAX 1

/* One problem: shapes, options and pointers to arrays, of float (for _f32) or double (for _f64) but
 * where another type stands. Fill it with sattn_softmax_init, set the pointers that you have,
 * change strides (in elements) if your arrays are not packed. A stride of 0 repeats an input along
 * that axis; the gradient of bias and sink has their strides and is the sum over repeated axes.
 * An element is dead if its mask is 0 or its place is at or past its row's length. */
typedef struct sattn_softmax {
    int64_t size; /* sizeof (sattn_softmax) as the caller was compiled */
    int64_t batch, rows, width; /* B, M, N: softmax runs over N, which may be any axis in memory */
    int32_t form;               /* SATTN_FORM_... */
    int32_t x_storage, y_storage; /* SATTN_STORAGE_... of x with dx, of y with dy; 16 bits: _f32 */
    int32_t flags;                /* 0 */
    int32_t threads;              /* as in base.h */
    int32_t reserved;             /* 0 */
    double scale;                 /* 1 / temperature, rounded to the type; 1 by init, 0 is legal */

    /* Inputs. All but x may be NULL. */
    const void *x; /* [B][M][N] */
    int64_t x_batch, x_row, x_col;
    const void *bias; /* [B][M][N], added to scale x */
    int64_t bias_batch, bias_row, bias_col;
    const uint8_t *mask; /* [B][M][N]: 0 = dead */
    int64_t mask_batch, mask_row, mask_col;
    const int64_t *length; /* [B][M]: live elements of the row, 0 .. N */
    int64_t length_batch, length_row;
    const void *sink; /* [B][M]: a logit that takes weight and gives no output; -inf = none */
    int64_t sink_batch, sink_row;

    /* Outputs of forward; any may be NULL. Backward reads y, or x and stats. */
    void *y; /* [B][M][N] */
    int64_t y_batch, y_row, y_col;
    void *stats; /* [B][M][2]: the largest logit, the log of the sum of exp(logit - largest) */
    int64_t stats_batch;
    void *lse; /* [B][M]: the sum of the two */
    int64_t lse_batch;

    /* Inputs of backward: cotangents. Either may be NULL (zero). */
    const void *dy; /* [B][M][N] */
    int64_t dy_batch, dy_row, dy_col;
    const void *dlse; /* [B][M] */
    int64_t dlse_batch;

    /* Outputs of backward; any may be NULL */
    void *dx; /* [B][M][N] */
    int64_t dx_batch, dx_row, dx_col;
    void *dbias, *dsink; /* with the strides of bias and sink */
    void *dscale;        /* one number */

    /* Workspace of backward for dbias, dsink and dscale: at least sattn_softmax_workspace bytes at
     * a multiple of 64 that share nothing with an array, or NULL and the library allocates and
     * frees it within the call. */
    void *work;
    int64_t work_bytes;
} sattn_softmax;

/* Fills *p with the packed strides of the shape, all pointers NULL, scale 1, other options 0.
 * `size` is sizeof (sattn_softmax).
 * Errors: SATTN_ENULL, SATTN_ESTRUCT (size), SATTN_ESIZE (a negative or overflowing shape).
 * Since:  0.2 */
SATTN_API int32_t sattn_softmax_init(sattn_softmax *p, int64_t size, int64_t batch, int64_t rows,
                                     int64_t width);

/* Bytes of workspace that backward needs for this shape, these gradients and p->threads threads.
 * Errors: as backward's for the shape and the options. Since: 0.2 */
SATTN_API int32_t sattn_softmax_workspace_f32(const sattn_softmax *p, int64_t *bytes);
SATTN_API int32_t sattn_softmax_workspace_f64(const sattn_softmax *p, int64_t *bytes);

/* Each row by itself, over its live elements j:
 *   z_j = scale x_j + bias_j (rounded once),   lse = log (sum_j exp z_j + exp sink)
 *   softmax: y_j = exp(z_j - lse), 0 if dead;  log-softmax: y_j = z_j - lse, -inf if dead
 *
 * Shapes:  at the members above. In place: y = x with the same storage and strides.
 * Units:   logits are pure numbers.
 * Errors:  SATTN_ENULL x is NULL while B M N > 0; SATTN_ESTRUCT; SATTN_ESIZE; SATTN_EOPTION an
 *          unknown form, flag or storage, or 16 bits for _f64; SATTN_ESTRIDE elements of an output
 *          overlap; SATTN_EVALUE scale is not finite (f32: or overflows or vanishes as float), a
 *          length is outside 0 .. N, threads out of range; SATTN_EALIAS an output's span overlaps
 *          that of another array, not in place.
 * Numbers: bounds in docs/accuracy.md. Dead elements of x, bias and mask's row past the length are
 *          not used and may hold anything. No live element with z > -inf and no sink: y = 0
 *          (log: -inf), stats {-inf, 0}, lse -inf. NaN or +inf among the live: that row's live
 *          outputs are NaN, no others. bf16 and f16 are rounded to nearest even once.
 * Threads: over rows. Memory: none. Since: 0.2 */
SATTN_API int32_t sattn_softmax_forward_f32(const sattn_softmax *p);
SATTN_API int32_t sattn_softmax_forward_f64(const sattn_softmax *p);

/* Gradients of  <dy, y> + <dlse, lse>,  given y, or x and stats, as forward left them.
 *
 *   w_j = exp(z_j - lse): softmax's y, log-softmax's exp y; without y from x and stats
 *   softmax:     c = dlse - sum_j w_j dy_j,  dz_j = w_j (dy_j + c)
 *   log-softmax: c = dlse - sum_j dy_j,      dz_j = dy_j + w_j c
 *   dx_j = scale dz_j,  dbias = sum dz,  dscale = sum dz x,  dsink = sum exp(sink - lse) c
 *
 * Shapes:  in place: dx = dy or dx = y with the same storage and strides.
 * Errors:  as forward; SATTN_ENULL also if neither y nor x with stats is there, if dscale comes
 *          without x, dsink without sink and stats, dbias without bias; SATTN_EWORKSPACE;
 *          SATTN_ENOMEM.
 * Numbers: gradients of dead elements, of weights 0 (log: y = -inf) and of rows without any are
 *          exactly 0 whatever dy holds there. Sums over rows run in a fixed order. Bounds:
 *          docs/accuracy.md.
 * Threads: over rows. Memory: for dbias repeated over rows 1/64 of the logits, or N a thread; for
 *          sums of a number a row 8 bytes a row. Since: 0.2 */
SATTN_API int32_t sattn_softmax_backward_f32(const sattn_softmax *p);
SATTN_API int32_t sattn_softmax_backward_f64(const sattn_softmax *p);

#ifdef __cplusplus
}
#endif
#endif
