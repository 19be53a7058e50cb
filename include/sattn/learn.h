/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SATTN_LEARN_H
#define SATTN_LEARN_H

/* What softmax attention learns: the risk of attention heads over mixtures, its gradient, its
 * Hessian, and their training.
 *
 *   Task b has a prompt (a Gaussian mixture of tokens of width D) and weighted queries z of width N
 *   with targets t of width E. All tasks share the parameters; the model is
 *     f_b(z) = K z + k + sum_h V_h y_b(U_h z + u_h),     y_b(u) = grad CGF_b(u)  (mixture.h)
 *   or, for linear attention, y_b(u) = sum_c pi_c (m_c m_c' + S_c) u. The risk is
 *     R = sum_b sum_q weight_bq loss(f_b(z_bq), t_bq).
 *   Prompts: infinite, a mixture; summarised, a fitted mixture (fit.h); finite, kind ZERO with the
 *   L tokens as components of log weight 0. Tokens (x, y) with queries (x, 0): D = N + E, and U_h
 *   has no columns for the zeros. Queries: quadrature (task.h), or draws with weights 1 / n.
 *   Parameters are one array:  U [H][D][N], u [H][D], V [H][E][D], K [E][N], k [E].
 *   Everything is in f64. Source: Gabet, Boursier, Boyer, arXiv 2610.11798. Since: 0.2 */

#include "base.h"
#include "mixture.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SATTN_LEARN_SOFTMAX 0 /* kinds of attention */
#define SATTN_LEARN_LINEAR 1

#define SATTN_LEARN_SQUARED 0  /* losses: |f - t|^2 */
#define SATTN_LEARN_LOGISTIC 1 /* E = 1, t = P(label is 1): log (1 + exp f) - t f */
/* E classes, t_i = P(class i): sum_i t_i (log sum_j exp f_j - f_i). Since: 0.3 */
#define SATTN_LEARN_CATEGORICAL 2

#define SATTN_LEARN_TILT 1      /* parts of the parameters that are trained: U */
#define SATTN_LEARN_TILT_BIAS 2 /* u */
#define SATTN_LEARN_VALUE 4     /* V */
#define SATTN_LEARN_SKIP 8      /* K */
#define SATTN_LEARN_BIAS 16     /* k */
#define SATTN_LEARN_ALL 31

typedef struct sattn_learn {
    int64_t size;                              /* sizeof (sattn_learn) as the caller was compiled */
    int64_t tasks, queries, heads, components; /* B, M, H, C */
    int64_t width, input_width, output_width;  /* D, N, E */
    int32_t covariance_kind;                   /* of mixture.h; init sets FULL */
    int32_t attention;                         /* SATTN_LEARN_SOFTMAX or LINEAR */
    int32_t loss;                              /* SATTN_LEARN_SQUARED, LOGISTIC or CATEGORICAL */
    int32_t trained; /* parts whose gradient is computed, the others' is 0; init sets ALL */
    int32_t shared;  /* 1: the prompt arrays hold one prompt, of all tasks */
    int32_t threads; /* as in base.h */

    /* Prompts, packed */
    const double *log_weight; /* [B][C] need not be normalised; -inf = absent */
    const double *mean;       /* [B][C][D] */
    const double *covariance; /* [B][C][...] by kind */

    /* Queries, packed */
    const double *input;  /* [B][M][N] z */
    const double *target; /* [B][M][E] t */
    const double *weight; /* [B][M]; NULL = 1 / (B M) */
} sattn_learn;

/* Fills *p with defaults; shapes are 0: set them and the pointers.
 * Errors: SATTN_ENULL, SATTN_ESTRUCT. */
SATTN_API int32_t sattn_learn_init(sattn_learn *p, int64_t size);

/* P, the number of parameters. Errors: as sattn_learn_risk_f64 for shapes and options. */
SATTN_API int32_t sattn_learn_count(const sattn_learn *p, int64_t *count);

/* R, its gradient and the losses of all queries (of which Monte Carlo has its standard error).
 *
 * Shapes:  parameter, gradient [P], risk one number, loss [B][M]; outputs may be NULL.
 * Errors:  SATTN_ENULL a needed pointer is NULL; SATTN_ESTRUCT; SATTN_ESIZE a negative or
 *          overflowing size; SATTN_EOPTION an unknown kind, loss, part or flag, a logistic loss of
 *          a width that is not 1, or a categorical one of width 0; SATTN_EVALUE a log weight is NaN
 *          or +inf, or threads out of range; SATTN_ENOMEM.
 * Numbers: queries are taken in blocks of 192 of a task, or of as many whole tasks as have no more,
 *          and blocks added in their order: the same bits for any thread count and instruction set.
 *          NaN in, NaN out.
 * Threads: over blocks of queries. Memory: P + 1 doubles a block, and 192 (3 H D + 4 E) a thread,
 *          about, beside mixture.h's. */
SATTN_API int32_t sattn_learn_risk_f64(const sattn_learn *p, const double *parameter, double *risk,
                                       double *gradient, double *loss);

/* f at all queries, [B][M][E]; target is not read. Errors and the rest: as sattn_learn_risk_f64. */
SATTN_API int32_t sattn_learn_predict_f64(const sattn_learn *p, const double *parameter,
                                          double *predicted);

/* The risk that no predictor goes below, f being free at every query: what is left of R is the
 * excess risk, where the targets are E[y | z].
 *
 *   Squared: 0. Logistic: the entropy -t log t - (1 - t) log (1 - t) of t, and where t is not
 *   within [0, 1], -inf. Categorical: sum_i t_i (log sum_j t_j - log t_i); t_i < 0: -inf.
 * Shapes:  risk one number, loss [B][M]; either may be NULL.
 * Errors:  as sattn_learn_risk_f64; of the prompts nothing is read.
 * Numbers: 0 log 0 = 0. NaN in, NaN out. Summed in blocks as R is.
 * Threads: serial. Memory: none. Since: 0.3 */
SATTN_API int32_t sattn_learn_least_f64(const sattn_learn *p, double *risk, double *loss);

/* The Hessian of R times a direction, exactly: the derivative of the gradient along it. Parts that
 * are not trained count as constants: their entries of direction are not read, those of product 0.
 *
 * Shapes:  parameter, direction, product [P].
 * Errors, Numbers, Threads: as sattn_learn_risk_f64.
 * Memory:  P doubles a block of queries, C + 9 D + 2 E a thread, about. */
SATTN_API int32_t sattn_learn_hessian_f64(const sattn_learn *p, const double *parameter,
                                          const double *direction, double *product);

/* Eigenvalues and vectors of the Hessian of R as a function of the trained parameters, of which
 * there are T = *count: at a minimum the values that are 0 but for rounding count the dimension of
 * its kernel, flat directions; a negative one at a critical point makes that a strict saddle.
 *
 * Shapes:  parameter [P], value [T] falling, vector [T][P] orthonormal, 0 where not trained, the
 *          largest entry positive. Outputs may be NULL; with count alone nothing is computed.
 * Errors:  as sattn_learn_risk_f64.
 * Numbers: values within some T 2^-52 of the largest in magnitude, beside the rounding of the
 *          Hessian. The same bits for any thread count and instruction set. NaN in, all NaN.
 * Threads: as sattn_learn_hessian_f64, T times. Memory: 2 T^2 + 3 T + 2 P doubles beside its.
 * Source:  cyclic Jacobi rotations: Golub, Van Loan, "Matrix Computations", 8.5. Since: 0.3 */
SATTN_API int32_t sattn_learn_spectrum_f64(const sattn_learn *p, const double *parameter,
                                           int64_t *count, double *value, double *vector);

/* The iterated map z <- f(z), `steps` times from the queries: where it leads is a fixed point once
 * the last step's length `moved` is of rounding size. Target is not read.
 *
 * Shapes:  point [B][M][N], moved [B][M]; either may be NULL. E = N.
 * Errors:  as sattn_learn_predict_f64; SATTN_ESIZE steps < 0 or E is not N.
 * Numbers, Threads: as sattn_learn_predict_f64. Memory: 2 B M N doubles. Since: 0.3 */
SATTN_API int32_t sattn_learn_iterate_f64(const sattn_learn *p, const double *parameter,
                                          int64_t steps, double *point, double *moved);

#ifdef __cplusplus
}
#endif
#endif
