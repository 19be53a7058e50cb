/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SATTN_TASK_H
#define SATTN_TASK_H

/* Learning tasks on Gaussian mixtures, and what can be known about them without training.
 *
 *   A task is the joint law of a query z and a target y: component c has weight pi_c and
 *     z ~ N(m_c, S_c),   E[y | c] = v_c,   Cov(y, z | c) = X_c,   tr Cov(y | c) = t_c,
 *   y being jointly Gaussian with z or, where X_c = 0, anything. So it covers
 *     classification   v_c = the label of c (or one-hot), X_c = 0, t_c = 0; E[y | z] holds the
 *                      probabilities of the classes
 *     denoising        clean x ~ N(m_c, G_c), z = x + N(0, n I), y = x:
 *                      S_c = G_c + n I, v_c = m_c, X_c = G_c, t_c = tr G_c
 *     regressions      y = a_c.z + noise of variance n: v_c = a_c.m_c, X_c = a_c'S_c,
 *                      t_c = a_c'S_c a_c + n
 *   Everything is in f64. Source: the conditional law of Gaussians; the tasks: Gabet, Boursier,
 *   Boyer, arXiv 2610.11798, sections 3 and 4. Since: 0.2 */

#include "base.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sattn_task {
    int64_t size;                           /* sizeof (sattn_task) as the caller was compiled */
    int64_t components, width, value_width; /* C, N, E */
    int32_t threads;                        /* as in base.h */
    int32_t reserved;                       /* 0 */
    const double *log_weight;               /* [C] log pi, need not be normalised; -inf = absent */
    const double *mean;                     /* [C][N] m */
    const double *covariance;     /* [C][N][N] S, symmetric; only the lower triangle is read */
    const double *value_mean;     /* [C][E] v */
    const double *cross;          /* [C][E][N] X; NULL = zero */
    const double *value_variance; /* [C] t; NULL = zero */
} sattn_task;

/* Fills *t with the shape, all pointers NULL. Errors: SATTN_ENULL, SATTN_ESTRUCT, SATTN_ESIZE. */
SATTN_API int32_t sattn_task_init(sattn_task *t, int64_t size, int64_t components, int64_t width,
                                  int64_t value_width);

/* The Bayes predictor and its risk at n queries:
 *
 *   beta_c = pi_c N(z; m_c, S_c) / sum,   mu_c = v_c + X_c S_c^-1 (z - m_c)
 *   predicted = E[y | z] = sum_c beta_c mu_c
 *   variance  = E[|y - E[y | z]|^2 | z]
 *             = sum_c beta_c (t_c - tr X_c S_c^-1 X_c' + |mu_c - predicted|^2)
 *   The Bayes risk of the squared loss is the expectation of the variance over z.
 * Shapes:  z [n][N], predicted [n][E], variance [n]; the last two may be NULL.
 * Errors:  SATTN_ENULL; SATTN_ESTRUCT; SATTN_EOPTION reserved is not 0; SATTN_ESIZE no component,
 *          no width, n < 0 or an overflow; SATTN_EVALUE a log weight is NaN or +inf, none is above
 *          -inf, S_c of a component that is present is not positive definite, or threads out of
 *          range; SATTN_ENOMEM.
 * Numbers: logits are compared by their differences; a NaN in z makes that query's answer NaN and
 *          no other. A query's answer does not depend on the others.
 * Threads: over blocks of queries. Memory: 2 C N^2 + C E N doubles, about. Since: 0.2 */
SATTN_API int32_t sattn_task_bayes_f64(const sattn_task *t, int64_t n, const double *z,
                                       double *predicted, double *variance);

/* The best affine predictor A z + b for the squared loss, or the best linear one (b = 0), which is
 * what linear attention of any depth can reach on one task.
 *
 *   A = M_yz M_zz^-1 and risk = tr M_yy - tr A M_yz' with second moments M of the mixture, about
 *   the mean if affine, about 0 if linear; b = E y - A E z or 0.
 * Shapes:  matrix [E][N], offset [E], risk one number; any may be NULL.
 * Errors:  as sattn_task_bayes_f64, M_zz standing for S_c; SATTN_EOPTION `affine` is not 0 or 1.
 * Threads: serial. Memory: 3 N^2 + 2 E N doubles, about. Since: 0.2 */
SATTN_API int32_t sattn_task_affine_f64(const sattn_task *t, int32_t affine, double *matrix,
                                        double *offset, double *risk);

/* A tensor rule over z: C n^N points m_c + L_c x, with L_c the lower Cholesky factor of S_c and x
 * from all combinations of n nodes of a rule for the standard normal (quadrature.h), the last
 * coordinate running fastest. Point (c, i) has weight pi_c / sum pi times the product of its nodes'
 * weights. S_c may be singular.
 *
 * Shapes:  node, weight [n]; point [C n^N][N], point_weight [C n^N].
 * Errors:  as sattn_task_bayes_f64, S_c being positive semi-definite. A component of weight 0 gives
 *          points 0 of weight 0.
 * Threads: serial. Memory: N^2 doubles. Since: 0.2 */
SATTN_API int32_t sattn_task_quadrature_f64(const sattn_task *t, int64_t n, const double *node,
                                            const double *weight, double *point,
                                            double *point_weight);

/* Draws first .. first + n - 1 of a stream of queries: draw i takes one uniform, number i of stream
 * 2 `stream`, for its component, and N normals, from number i N on of stream 2 `stream` + 1.
 *
 * Shapes:  point [n][N], component [n]; the latter may be NULL.
 * Errors:  as sattn_task_quadrature_f64; SATTN_ESIZE first < 0 or (first + n) N >= 2^62;
 *          SATTN_EVALUE stream >= 2^63.
 * Threads: serial. Memory: C N^2 doubles, about. Since: 0.2 */
SATTN_API int32_t sattn_task_draw_f64(const sattn_task *t, uint64_t seed, uint64_t stream,
                                      int64_t first, int64_t n, double *point, int32_t *component);

/* The Bayes risk of the squared loss by Monte Carlo, for any width, and its standard error: the
 * mean of the variance of sattn_task_bayes over sattn_task_draw's draws first .. first + n - 1, and
 * their standard deviation (of n - 1 degrees of freedom) over sqrt n. Less noisy than the loss of
 * drawn targets, whose expectation given z the variance is.
 *
 * Shapes:  risk, error one number; either may be NULL.
 * Errors:  as sattn_task_draw_f64 and sattn_task_bayes_f64; SATTN_ESIZE n < 1. One draw: error NaN.
 * Numbers: added in the order of the draws: the same bits for any thread count.
 * Threads: as sattn_task_bayes_f64. Memory: 4096 (N + 1) doubles beside theirs. Since: 0.3 */
SATTN_API int32_t sattn_task_risk_f64(const sattn_task *t, uint64_t seed, uint64_t stream,
                                      int64_t first, int64_t n, double *risk, double *error);

/* Tokens (z, y) of a finite prompt, or queries with noisy targets: draws first .. first + n - 1.
 * z and the component c are sattn_task_draw's of the same stream, and
 *
 *   y = v_c + X_c S_c^-1 (z - m_c) + r e,   r^2 = (t_c - tr X_c S_c^-1 X_c') / E,
 *   e normals from number i E on of stream 2^63 + `stream`:
 *   the residue has no direction, which is so for classes (r = 0), for E = 1, and for denoising
 *   where the clean covariance is isotropic.
 * Shapes:  token [n][N + E], component [n] or NULL. E = 0: tokens z.
 *          As a prompt of learn.h: kind ZERO, mean = token, log weights 0.
 * Errors:  as sattn_task_draw_f64; SATTN_ESIZE (first + n) E >= 2^62; SATTN_EVALUE stream >= 2^62,
 *          or t_c is less than tr X_c S_c^-1 X_c'. Where S_c is singular X_c must be in its range.
 * Threads: serial. Memory: C N^2 + C E N doubles, about. Since: 0.3 */
SATTN_API int32_t sattn_task_prompt_f64(const sattn_task *t, uint64_t seed, uint64_t stream,
                                        int64_t first, int64_t n, double *token,
                                        int32_t *component);

#ifdef __cplusplus
}
#endif
#endif
