/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SATTN_HYBRID_H
#define SATTN_HYBRID_H

/* Hybrid attention: some tokens exactly (recent or important ones), a Gaussian mixture for others.
 *
 *   Query i of head h attends to the keys j of attention.h and to the components c of the mixture
 *   of its key head, with u = scale q_i, n_c = exp(log weight) the tokens that c stands for:
 *     a_c = u'S_c u,  t_c = min(1, sqrt(limit_c / a_c)),
 *     g_c = a_c / 2 up to a_c = limit_c,  sqrt(a_c limit_c) - limit_c / 2 beyond
 *     l_c = log n_c + u.m_c + g_c,   y_c = m_c + t_c S_c u    (joint blocks: v_c + t_c X_c u)
 *     lse = log (sum_j exp s_ij + sum_c exp l_c)
 *     out = sum_j exp(s_ij - lse) v_j + sum_c exp(l_c - lse) y_c
 *   A token counts 1: log weights must be logarithms of counts, not normalised.
 *
 *   The guard. A Gaussian's exp(u.y) lives where y = m + S u, at exp(-a / 2) of the density. Among
 *   n tokens nothing lies beyond a = 2 log n: their sum is its largest term, log n + u.m + a / 2 is
 *   too much by (sqrt a - sqrt(2 log n))^2 / 2. Beyond the limit the logit goes on along its
 *   tangent in |u|, the answer stands still; logit and answer are continuous. limit 0 is order 1:
 *   the mean answers, for components that are no Gaussians.
 *
 *   The error. Were each component's tokens n_c independent draws from it, exact attention to them
 *   would have, by the delta method on sum exp(u.y) (a variance of exp(a) - 1 a token, relative),
 *     error = sqrt(sum_c w_c^2 min(1, (exp(a_c) - 1) / n_c)),   w_c = exp(l_c - lse)
 *   as standard error of lse: exp(a) / n is one over the tokens that share the weight. At 1 and
 *   above the delta method ends: all of w_c is in doubt. The error of out is of the order of it
 *   times the distance of the values; what the tokens' shape costs beyond chance is not in it.
 *   Source: arXiv 2610.11798, Prop. A.1 (mixtures of prompts); 2205.14135, section 3 (merging);
 *   Derrida, Phys. Rev. B 24, 2613 (1981) (the freezing of sums of exponentials). Since: 0.3 */

#include "attention.h"
#include "base.h"
#include "mixture.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sattn_hybrid {
    int64_t size; /* sizeof (sattn_hybrid) as the caller was compiled */

    /* The exact tokens; shape, scale and threads of the call; out, stats, lse: those of the union;
     * dout, dlse, dq, dk, dv, dbias, dsink, dscale. Masks, windows, bias, lengths and sinks are
     * those of the exact tokens, every query sees every component. No softcap, no query_offset;
     * its workspace is not used. */
    const sattn_attention *attention;
    /* The rest: batch = B Hk, entry b Hk + key head (strides 0 share); width D; value_width E, or 0
     * if the values are the keys (D = E); its parameters and their gradients, by its own flags.
     * No other array, nor queries, threads and workspace, is read. */
    const sattn_mixture *mixture;

    double guard;      /* limit_c = guard log n_c (n_c < 1: 0); 0 = the default, 2; < 0 = none */
    const void *limit; /* [B Hk][C] limit_c >= 0 (inf = none) in place of guard; NULL = not given */
    int64_t limit_batch;

    /* Outputs of forward, [B][H][M], col is not used; each may be NULL */
    sattn_output error;
    sattn_output guarded; /* the sum of w_c over the components beyond their limits */
} sattn_hybrid;

/* Fills *p: the descriptors, packed strides of limit, error and guarded, the rest 0.
 * `size` is sizeof (sattn_hybrid).
 * Errors: SATTN_ENULL, SATTN_ESTRUCT (a size), SATTN_ESIZE (shapes that overflow or do not fit). */
SATTN_API int32_t sattn_hybrid_init(sattn_hybrid *p, int64_t size, const sattn_attention *attention,
                                    const sattn_mixture *mixture);

/* out, stats, lse, error, guarded.
 *
 * Errors:  as sattn_attention_forward and sattn_mixture_forward; SATTN_ESIZE shapes that do not
 *          fit each other; SATTN_EOPTION softcap or query_offset; SATTN_EVALUE guard is not finite,
 *          a limit is NaN or < 0.
 * Numbers: as in attention.h and mixture.h, but means are not centred: logits of exact tokens and
 *          components must compare. A component of log weight -inf is never read. Neither tokens
 *          nor components: out = 0, stats {-inf, 0}. Where a_c overflows: NaN.
 * Threads: over tiles of 48 queries.
 * Memory:  M (D + E + 2) elements a head; C (48 (E + 4) + 2 D) and the workspace of C mixtures of
 *          one component a thread; that of attention. Freed within the call. */
SATTN_API int32_t sattn_hybrid_forward_f32(const sattn_hybrid *p);
SATTN_API int32_t sattn_hybrid_forward_f64(const sattn_hybrid *p);

/* Gradients of  <dout, out> + <dlse, lse>  given out and stats as forward left them: the formulas'
 * derivatives with the limits held fixed (they do not move with the log weights); at a_c = limit_c
 * that of the side below. error and guarded have none, and are not touched.
 *
 * Errors:  as forward, sattn_attention_backward and sattn_mixture_backward.
 * Numbers: sums in a fixed order, over tiles of 48 queries.
 * Threads: over components and keys; tiles follow each other.
 * Memory:  M (2 D + 2 E + 4) elements a head; C 48 (2 E + D + 6) elements, and as forward. */
SATTN_API int32_t sattn_hybrid_backward_f32(const sattn_hybrid *p);
SATTN_API int32_t sattn_hybrid_backward_f64(const sattn_hybrid *p);

#ifdef __cplusplus
}
#endif
#endif
