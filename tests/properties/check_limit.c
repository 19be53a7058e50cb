/* SPDX-License-Identifier: BSD-2-Clause */
/* The theorem behind the library: softmax attention over N tokens drawn from a mixture tends to
 * attention on the mixture itself. Both sides are the library's, the tokens as atoms of weight 1 /
 * N.
 *
 * For large N (delta method on the two sums), with everything at 2 u marked by a prime:
 *   N E|out_N - out|^2 -> F sum_c w'_c (tr S_c + |m_c + 2 S_c u - out|^2),  F = exp(CGF' - 2 CGF)
 *   N Var(CGF_N) -> F - 1 */
#include "../golden.h"
#include "../harness.h"
#include "sattn/mixture.h"

enum { N = 60000, C = 3, D = 2, Q = 3 };

static real token[N * D], even[N];
static real log_weight[C], mean[C * D], covariance[C * D * D];

static double normal(rng *r)
{
    return sqrt(-2 * log(1 - random_in(r, 0, 1))) * cos(6.283185307179586 * random_in(r, 0, 1));
}

static void draw_tokens(void)
{
    rng r = seed_of(1);
    for (int n = 0; n < N; n++) {
        double pick = random_in(&r, 0, 1), x = normal(&r), y = normal(&r);
        int c = 0;
        while (c < C - 1 && (pick -= golden.weight[c]) > 0)
            c++;
        const double *m = golden.mean + D * c, *s = golden.covariance + D * D * c,
                     root = sqrt(s[0]);
        token[D * n] = (real)(m[0] + root * x);
        token[D * n + 1] = (real)(m[1] + s[1] / root * x + sqrt(s[3] - s[1] * s[1] / s[0]) * y);
        even[n] = (real)-log(N);
    }
}

static void attend(int64_t components, const real *weights, const real *means,
                   const real *covariances, double scale, real *out, real *cgf, real *weight)
{
    sattn_mixture p;
    real tilt[Q * D];
    check(sattn_mixture_init(&p, sizeof p, 1, Q, components, D, 0,
                             covariances ? SATTN_COVARIANCE_FULL : SATTN_COVARIANCE_ZERO) ==
          SATTN_OK);
    for (int i = 0; i < Q * D; i++)
        tilt[i] = (real)(scale * golden.tilt[i]);
    p.tilt = tilt, p.log_weight = weights, p.mean = means, p.covariance = covariances;
    p.out = out, p.cgf = cgf, p.weight = weight;
    check(FN(sattn_mixture_forward)(&p) == SATTN_OK);
}

/* N times the mean squared distance of out_N from out for query q */
static double predicted(int q, const real *out, const real *weight_at_2u, double factor)
{
    double sum = 0;
    for (int c = 0; c < C; c++) {
        const double *m = golden.mean + D * c, *s = golden.covariance + D * D * c;
        const double *u = golden.tilt + D * q;
        const double x = m[0] + 2 * (s[0] * u[0] + s[1] * u[1]) - (double)out[D * q];
        const double y = m[1] + 2 * (s[2] * u[0] + s[3] * u[1]) - (double)out[D * q + 1];
        sum += (double)weight_at_2u[C * q + c] * (s[0] + s[3] + x * x + y * y);
    }
    return factor * sum;
}

Test(limit, softmax_tends_to_mixture)
{
    real out[Q * D], cgf[Q], out_n[Q * D], cgf_n[Q], out_2u[Q * D], cgf_2u[Q], weight_2u[Q * C];
    draw_tokens();
    for (int i = 0; i < C * D * D; i++)
        covariance[i] = (real)golden.covariance[i];
    for (int i = 0; i < C * D; i++)
        mean[i] = (real)golden.mean[i];
    for (int i = 0; i < C; i++)
        log_weight[i] = (real)golden_log_weight()[i];
    attend(C, log_weight, mean, covariance, 1, out, cgf, NULL);
    attend(C, log_weight, mean, covariance, 2, out_2u, cgf_2u, weight_2u);
    attend(N, even, token, NULL, 1, out_n, cgf_n, NULL);
    for (int q = 0; q < Q; q++) {
        const double factor = exp((double)cgf_2u[q] - 2 * (double)cgf[q]);
        const double dx = out_n[D * q] - out[D * q], dy = out_n[D * q + 1] - out[D * q + 1];
        const double squared = predicted(q, out, weight_2u, factor) / N;
        at("query %d, %g standard errors", q, sqrt((dx * dx + dy * dy) / squared));
        check(dx * dx + dy * dy < 16 * squared && squared < 0.01);
        check_near("cgf", q, cgf_n[q], cgf[q], 4 * sqrt((factor - 1) / N) + 1e-5);
    }
}
