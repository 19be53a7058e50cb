/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SATTN_PROMPT_H
#define SATTN_PROMPT_H

/* Gaussian mixtures as prompts, beside mixture.h: scores with a quadratic term, how far a finite
 * prompt of L tokens is from the mixture they were drawn from, linear attention. Since: 0.2 */

#include "base.h"
#include "mixture.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Quadratic tilt (RBF) attention: the score u.y - y'P y / 2 instead of u.y, P symmetric positive
 * semi-definite and the same for all queries, is attention to another mixture:
 *   R_c = I + S_c P,  m_c' = R_c^-1 m_c,  S_c' = R_c^-1 S_c,
 *   log pi_c' = log pi_c - log det R_c / 2 - m_c'P m_c' (new mean) / 2
 * so sattn_mixture_forward of the result gives out and the logarithm of the normaliser.
 *
 * Shapes:  log_weight [C], mean [C][D], covariance [C][D][D] symmetric, quadratic P [D][D];
 *          to_... the same. Nothing may overlap.
 * Errors:  SATTN_ENULL; SATTN_ESIZE; SATTN_EALIAS; SATTN_EVALUE a log weight is NaN or +inf, or an
 *          R_c has no positive determinant (P or S_c is not what it should be); SATTN_ENOMEM.
 * Numbers: computed in double. A component of log weight -inf is not read and becomes zeros.
 * Threads: one.
 * Memory:  C (D^2 + D + 1) + 2 D^2 + D doubles, freed within the call.
 * Source:  completing the square under the Gaussian integral of each component. */
SATTN_API int32_t sattn_quadratic_f32(int64_t components, int64_t width, const float *log_weight,
                                      const float *mean, const float *covariance,
                                      const float *quadratic, float *to_log_weight, float *to_mean,
                                      float *to_covariance);
SATTN_API int32_t sattn_quadratic_f64(int64_t components, int64_t width, const double *log_weight,
                                      const double *mean, const double *covariance,
                                      const double *quadratic, double *to_log_weight,
                                      double *to_mean, double *to_covariance);

/* Error of softmax attention o_L over L independent tokens of the mixture, times L, for large L:
 *   f = sum pi exp(CGF(2 u) - 2 CGF(u))
 *   mse          L E |V o_L - V o|^2 -> f (trace V H(2 u) V' + |V (o(2 u) - o(u))|^2)
 *   bias         L (E V o_L - V o)   -> -f V (o(2 u) - o(u))
 *   lse_variance L Var(log-sum-exp)  -> f - 1
 * H is the derivative of out (mixture.h). The limit is near where f is well below L.
 *
 * Shapes:  p: tilt and mixture as for forward, values = keys, no other array is read; value_map
 *          V [E][D], or NULL = identity (value_rows D then); mse, lse_variance [B][M],
 *          bias [B][M][E], packed, any may be NULL.
 * Errors:  as sattn_mixture_forward; SATTN_EOPTION joint blocks; SATTN_ESIZE value_rows < 0, or
 *          not D without a map.
 * Numbers: a mixture without a component of weight > 0 gives 0. Where f overflows: inf.
 * Threads: as sattn_mixture_second, which is called once for each row of V.
 * Memory:  B M (6 D + 4) elements, freed within the call.
 * Source:  the delta method on the two sums of o_L; checked against Monte Carlo. */
SATTN_API int32_t sattn_prompt_error_f32(const sattn_mixture *p, const float *value_map,
                                         int64_t value_rows, float *mse, float *bias,
                                         float *lse_variance);
SATTN_API int32_t sattn_prompt_error_f64(const sattn_mixture *p, const double *value_map,
                                         int64_t value_rows, double *mse, double *bias,
                                         double *lse_variance);

/* The limit of linear attention (scores u.y in place of exp u.y, divided by the number of tokens):
 *   out = M u,  M = sum pi_c (S_c + m_c m_c')      (joint blocks: sum pi_c (X_c + v_c m_c'))
 * on the descriptor of mixture.h. Forward reads tilt and the mixture and writes out alone. Backward
 * reads dout too (not out, stats, dcgf) and writes the gradients of <dout, out>.
 *
 * Errors:  as sattn_mixture_forward and _backward.
 * Numbers: pi = exp(log pi) as it is given, not normalised; -inf is never read.
 * Threads: forward over batch entries; backward one.
 * Memory:  as sattn_mixture_backward, and 3 D E + D + E + C elements a thread, freed within the
 *          call.
 * Source:  arXiv 2610.11798, section 2. */
SATTN_API int32_t sattn_mixture_linear_forward_f32(const sattn_mixture *p);
SATTN_API int32_t sattn_mixture_linear_forward_f64(const sattn_mixture *p);
SATTN_API int32_t sattn_mixture_linear_backward_f32(const sattn_mixture *p);
SATTN_API int32_t sattn_mixture_linear_backward_f64(const sattn_mixture *p);

#ifdef __cplusplus
}
#endif
#endif
