/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SATTN_MIXTURE_H
#define SATTN_MIXTURE_H

/* Softmax attention in the limit of an infinite prompt whose tokens come from a Gaussian mixture.
 *
 *   For a query with tilt u (the query after the interaction matrix) and components c with weight
 *   pi_c, key mean m_c, key covariance S_c:
 *     l_c = log pi_c + u.m_c + u'S_c u / 2,   CGF = log sum_c exp l_c,   w_c = exp(l_c - CGF)
 *     key = value:   out = sum_c w_c (m_c + S_c u)          (the gradient of CGF with respect to u)
 *     joint blocks:  out = sum_c w_c (v_c + X_c u)          (X_c = Cov(value, key | c))
 *   Source: Gabet, Boursier, Boyer, "Softmax Attention on Gaussian Mixtures", arXiv 2610.11798,
 *   Prop. 2.1 (joint blocks: the same computation with a token's value block). Since: 0.1 */

#include "base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Kinds of covariance, and the layout of `covariance` for one component */
#define SATTN_COVARIANCE_ZERO 0 /* nothing, NULL: atoms; softmax attention over C keys */
#define SATTN_COVARIANCE_DIAG 1 /* [D] variances */
#define SATTN_COVARIANCE_FULL 2 /* [D][D], symmetric */
#define SATTN_COVARIANCE_ISOTROPIC 3 /* [1] variance s, S = s I */
#define SATTN_COVARIANCE_CHOLESKY 4  /* [D][D] lower L, S = L L'; above the diagonal: never read */
#define SATTN_COVARIANCE_LOW_RANK 5  /* [D] variances s, [D][rank] F: S = diag(s) + F F' */
/* LOW_RANK costs D rank a query and component while 2 rank < D, above that as much as FULL. */

/* Flags, besides SATTN_ACCUMULATE: one covariance for all components, `covariance` is [B][layout],
 * its gradient the sum over them. */
#define SATTN_SHARED_COVARIANCE 2

/* One problem: shapes, options and pointers to arrays of float (for _f32) or double (for _f64).
 * Fill it with sattn_mixture_init, set the pointers that you have, change strides if your arrays
 * are not packed.
 * A batch stride of 0 shares one array between all batch entries: give it to inputs;
 * a gradient has the strides of its parameter, and that of a shared parameter is summed over the
 * batch. Within one batch entry parameters are packed: mean [C][D], covariance [C][layout],
 * value_mean [C][E], cross [C][E][D]. */
typedef struct sattn_mixture {
    int64_t size; /* sizeof (sattn_mixture) as the caller was compiled */
    int64_t batch, queries, components, width; /* B, M, C, D */
    int64_t value_width;     /* E: 0 = the values are the keys; > 0 = joint blocks */
    int32_t covariance_kind; /* SATTN_COVARIANCE_... */
    int32_t flags;           /* SATTN_ACCUMULATE, SATTN_SHARED_COVARIANCE */
    int32_t threads;         /* as in base.h */
    int32_t rank;            /* of F, kind LOW_RANK; else 0 */

    /* Inputs */
    const void *tilt; /* [B][M][D] u */
    int64_t tilt_batch, tilt_row;
    const void *log_weight; /* [B][C] log pi, need not be normalised; -inf = absent, never read */
    int64_t log_weight_batch;
    const void *mean; /* [B][C][D] */
    int64_t mean_batch;
    const void *covariance; /* [B][C][...] by kind */
    int64_t covariance_batch;
    const void *value_mean; /* [B][C][E] v, joint blocks only */
    int64_t value_mean_batch;
    const void *cross; /* [B][C][E][D] X, joint blocks only; NULL = zero */
    int64_t cross_batch;

    /* Outputs of forward; any may be NULL. Backward reads out and stats. */
    void *out; /* [B][M][D or E] */
    int64_t out_batch, out_row;
    void *stats; /* [B][M][2] for backward: largest logit of the centred mixture, log of the sum */
    int64_t stats_batch;
    void *cgf; /* [B][M] */
    int64_t cgf_batch;
    void *weight; /* [B][M][C] w */
    int64_t weight_batch, weight_row;

    /* Inputs of backward: cotangents. Either may be NULL (zero). */
    const void *dout; /* [B][M][D or E] */
    int64_t dout_batch, dout_row;
    const void *dcgf; /* [B][M] */
    int64_t dcgf_batch;

    /* Outputs of backward; any may be NULL. Parameter gradients have their parameter's strides;
     * those of parameters that the kind or E = 0 does without are not touched.
     * dcovariance of kind FULL is symmetric (so must be what it is added to): entry ij holds half
     * of the derivative with respect to the pair S_ij = S_ji when i != j. That of kind CHOLESKY is
     * 0 (accumulating: untouched) above the diagonal. */
    void *dtilt; /* [B][M][D] */
    int64_t dtilt_batch, dtilt_row;
    void *dlog_weight, *dmean, *dcovariance, *dvalue_mean, *dcross;

    /* Workspace: at least sattn_mixture_workspace bytes at a multiple of 64 that share nothing with
     * an array, or NULL and the library allocates and frees it within the call. */
    void *work;
    int64_t work_bytes;
} sattn_mixture;

/* Fills *p with the packed strides of the shape, all pointers NULL, all options 0.
 * `size` is sizeof (sattn_mixture). Kind LOW_RANK: set rank, and covariance_batch to
 * C D (1 + rank). A shared covariance: set covariance_batch to its layout's size.
 * Errors: SATTN_ENULL, SATTN_ESTRUCT (size), SATTN_ESIZE (a negative or overflowing shape),
 *         SATTN_EOPTION (covariance_kind). */
SATTN_API int32_t sattn_mixture_init(sattn_mixture *p, int64_t size, int64_t batch, int64_t queries,
                                     int64_t components, int64_t width, int64_t value_width,
                                     int32_t covariance_kind);

/* Bytes of workspace that forward and backward of this shape need for p->threads threads. */
SATTN_API int32_t sattn_mixture_workspace_f32(const sattn_mixture *p, int64_t *bytes);
SATTN_API int32_t sattn_mixture_workspace_f64(const sattn_mixture *p, int64_t *bytes);

/* out, stats, cgf, weight from tilt and the mixture.
 *
 * Units:   u.m and u'Su are pure numbers: u has the unit 1 / key.
 * Errors:  SATTN_ENULL a needed input is NULL while its size is not 0; SATTN_ESTRUCT; SATTN_ESIZE;
 *          SATTN_EOPTION an unknown kind or flag; SATTN_ESTRIDE a row stride below its width (0
 *          repeats an input's row), or an output whose rows or batch entries overlap;
 *          SATTN_EVALUE a log weight is NaN or +inf, or threads out of range; SATTN_EALIAS the span
 *          of an output overlaps that of an input or output; SATTN_EWORKSPACE; SATTN_ENOMEM.
 * Numbers: C = 1 gives exactly out = m + S u up to the rounding of that sum. Means are centred
 *          inside, so that a common offset costs no accuracy; a coordinate whose centre is beyond
 *          1e31 (f64: 5e291) is not, as differences might overflow. No component of weight > 0:
 *          out = 0, cgf = -inf, w = 0. A NaN in a query makes that query's outputs NaN and no
 *          others. A logit of +inf (overflow) gives NaN, in backward dout . (value - out) likewise.
 *          Bounds: docs/accuracy.md.
 * Threads: over tiles of queries, or over blocks of components when there are few queries.
 * Memory:  a few D x 48 tiles a thread and a centred copy of the means; never M x C x D. */
SATTN_API int32_t sattn_mixture_forward_f32(const sattn_mixture *p);
SATTN_API int32_t sattn_mixture_forward_f64(const sattn_mixture *p);

/* Gradients of  <dout, out> + <dcgf, cgf>,  given out and stats as forward left them.
 *
 *   s_c = dout . (value of c),  b_c = w_c (s_c - dout . out + dcgf)
 *   dlog_weight_c = sum b_c          dmean_c = sum b_c u  (+ w_c dout  if key = value)
 *   dcovariance_c = sum b_c u u' / 2 (+ w_c (dout u' + u dout') / 2  if key = value)
 *   dvalue_mean_c = sum w_c dout     dcross_c = sum w_c dout u'
 *   dtilt = sum_c b_c (m_c + S_c u) + w_c S_c dout     (joint: w_c X_c' dout instead)
 *   Kinds made of others, from the gradient G of S:  ISOTROPIC trace G;  CHOLESKY lower triangle of
 *   2 G L;  LOW_RANK the diagonal of G, 2 G F.
 *   The sums run over the queries (and the batch, for a shared parameter).
 *
 * Errors:  as forward; SATTN_ENULL also if out or stats is NULL, or a gradient is asked for a
 *          parameter that is not given.
 * Numbers: a component of log weight -inf has gradients of exactly 0. Each gradient is summed in
 *          a fixed order. Bounds: docs/accuracy.md.
 * Threads: over tiles of queries for dtilt, over components for the parameters; no atomics.
 * Memory:  the weights of one block of queries (about 1 MiB) and a few tiles a thread. */
SATTN_API int32_t sattn_mixture_backward_f32(const sattn_mixture *p);
SATTN_API int32_t sattn_mixture_backward_f64(const sattn_mixture *p);

/* Second derivatives along a direction p of the tilt, [B][M][D] with the strides of tilt:
 *   jvp = (d out / du) p                [B][M][D or E] with the strides of out
 *   hvp = (d dtilt / du) p              [B][M][D] with the strides of dtilt: the Hessian of
 *                                       <dout, out> + <dcgf, cgf> in u times p
 * Either may be NULL. Values = keys: d out / du = H(u) = sum w_c S_c + Cov_w(m_c + S_c u),
 * symmetric; the product with its transpose is backward's dtilt in any case. Forward's out and
 * stats are read.
 *
 * Errors:  as backward; SATTN_ENULL direction; work is not used. p's gradients are not touched.
 * Numbers: a mixture without a component of weight > 0 gives 0. The same bits as everywhere.
 * Threads: over tiles of queries.
 * Memory:  as backward, and 48 (3 C + 5 D + 3 E) elements a thread, freed within the call. */
SATTN_API int32_t sattn_mixture_second_f32(const sattn_mixture *p, const float *direction,
                                           float *jvp, float *hvp);
SATTN_API int32_t sattn_mixture_second_f64(const sattn_mixture *p, const double *direction,
                                           double *jvp, double *hvp);

#ifdef __cplusplus
}
#endif
#endif
