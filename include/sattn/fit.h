/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SATTN_FIT_H
#define SATTN_FIT_H

/* Fitting a Gaussian mixture to tokens: k-means++ and expectation-maximisation.
 *
 *   x_n ~ sum_c pi_c N(m_c, S_c), N tokens of width D. Start: k-means++ seeding, then Lloyd
 *   iterations. Then EM on the log-likelihood  sum_n log sum_c pi_c N(x_n; m_c, S_c).
 *   Source: Arthur, Vassilvitskii, "k-means++", SODA 2007; Dempster, Laird, Rubin, JRSS B 39, 1977.
 *   Since:  0.1 */

#include "base.h"
#include "mixture.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Called in every iteration on the calling thread with the value of the parameters so far: during
 * Lloyd's iterations (from 0 on) minus half the mean squared distance, during EM (iterations from
 * lloyd_iterations + 1 on) the mean log-likelihood per token. Not 0 stops the fit. */
typedef int32_t (*sattn_fit_progress)(void *context, int64_t iteration, double log_likelihood);

typedef struct sattn_fit {
    int64_t size;                      /* sizeof (sattn_fit) as the caller was compiled */
    int64_t tokens, components, width; /* N, C, D */
    int32_t covariance_kind;           /* of mixture.h; ZERO = k-means alone */
    int32_t flags;                     /* SATTN_SHARED_COVARIANCE: one for all components */
    int32_t threads;                   /* as in base.h */
    int32_t rank;                      /* of F, kind LOW_RANK; else 0 */
    int64_t lloyd_iterations;          /* at most; init sets 20 */
    int64_t em_iterations;             /* at most; init sets 100 */
    double tolerance; /* stop EM when the mean log-likelihood rises by less; init sets 1e-6 */
    double floor;     /* > 0, added to every eigenvalue (f32: before rounding to it); raised to
                       * 2^-44 of the tokens' total variance; init sets 1e-6 */
    uint64_t seed;    /* of the k-means++ draws: same seed, same fit */

    const void *token; /* [N][D] */
    int64_t token_row;

    /* Outputs, packed as mixture.h wants them; covariance may be NULL for kind ZERO. */
    void *log_weight; /* [C], normalised; -inf for a component that no token needs */
    void *mean;       /* [C][D] */
    void *covariance; /* [C][...] by kind; shared: [...] */

    /* Optional outputs */
    double *trace; /* [trace_length] value that each EM iteration found, rest NaN */
    int64_t trace_length;
    int64_t *iterations; /* EM iterations done */
    int32_t *label;      /* [N] likeliest component; kind ZERO: whose tokens `mean` is of */

    sattn_fit_progress progress; /* NULL = none */
    void *progress_context;
} sattn_fit;

/* Fills *p with defaults and packed strides. Errors: SATTN_ENULL, SATTN_ESTRUCT, SATTN_ESIZE,
 * SATTN_EOPTION. */
SATTN_API int32_t sattn_fit_init(sattn_fit *p, int64_t size, int64_t tokens, int64_t components,
                                 int64_t width, int32_t covariance_kind);

/* Fits the mixture. With A_c the scatter of component c about its mean (responsibilities times
 * squared deviations, divided by what it holds) or, shared, the mean of A_c weighted by what the
 * components hold, each M-step takes the likeliest S + floor I of its kind:
 *   FULL, CHOLESKY  S = A             DIAG  the diagonal of A      ISOTROPIC  s = trace A / D
 *   LOW_RANK        s = mean of the D - rank least eigenvalues of A, F = sqrt(l_i - s) v_i of the
 *                   others (0 for columns beyond D): probabilistic principal components, Tipping,
 *                   Bishop, JRSS B 61, 1999.
 *
 * Errors:  SATTN_ENULL token, log_weight, mean (or covariance) is NULL, or trace while its length
 *          is not 0; SATTN_ESTRUCT; SATTN_ESIZE a negative size, no token, no component or no
 *          width; SATTN_ESTRIDE token_row < D; SATTN_EALIAS the span of an output overlaps that of
 *          the tokens or another output; SATTN_EOPTION; SATTN_EVALUE a token is not finite or
 *          farther than 2^62 (f64: 2^500) from the mean of all in a coordinate, floor <= 0 or above
 *          the square of that, tolerance < 0 or NaN, threads out of range; SATTN_ENOMEM;
 *          SATTN_ECANCELLED the callback asked to stop. No output is written then.
 * Numbers: duplicates, constant coordinates and more components than distinct tokens are legal:
 *          a component that no token needs (that holds 1e-8 of one or less) gets log weight -inf,
 *          keeps its last mean, has the floor as covariance and never comes back.
 *          The log-likelihood never falls but for rounding, the floor and what such a component
 *          held. All is computed in f64 for both types; same seed, same bits for any thread count
 *          and row.
 * Threads: over blocks of tokens and over components.
 * Memory:  N (C + 2 D) + 2 C D^2 doubles and 192 (C + D) a thread, about, allocated and freed
 *          within the call; kinds without matrices 2 C D in place of 2 C D^2. */
SATTN_API int32_t sattn_fit_f32(const sattn_fit *p);
SATTN_API int32_t sattn_fit_f64(const sattn_fit *p);

#ifdef __cplusplus
}
#endif
#endif
