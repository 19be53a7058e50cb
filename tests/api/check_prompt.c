/* SPDX-License-Identifier: BSD-2-Clause */
/* Quadratic scores and the error of a finite prompt: known answers (NumPy), formulas in long
 * double, the same bits everywhere, bad input. */
#include "../golden.h"
#include "../oracle/mixture.h"
#include "problem.h"
#include "sattn/prompt.h"

#include <stdlib.h>

static const double near_golden = sizeof(real) == 4 ? 1e-5 : 2e-13;

typedef struct {
    real log_weight[3], mean[6], covariance[12], tilt[6];
    sattn_mixture p;
} card;

static void narrow(real *to, const double *from, int n)
{
    for (int i = 0; i < n; i++)
        to[i] = (real)from[i];
}

static void fill(card *x)
{
    narrow(x->log_weight, golden_log_weight(), 3), narrow(x->mean, golden.mean, 6);
    narrow(x->covariance, golden.covariance, 12), narrow(x->tilt, golden.tilt, 6);
    check(sattn_mixture_init(&x->p, sizeof x->p, 1, 3, 3, 2, 0, SATTN_COVARIANCE_FULL) == SATTN_OK);
    x->p.log_weight = x->log_weight, x->p.mean = x->mean, x->p.covariance = x->covariance;
    x->p.tilt = x->tilt;
}

EACH_ROW(prompt, quadratic_golden)
{
    static const double y[] = {-0.4386539819223732, 2.6476148882744046,   -0.3860993011936715,
                               0.5912507858131222,  0.012031363972557189, -0.28622857718072037};
    static const double z[] = {1.895338215592333, -0.351612170150974, -0.5114237944481705};
    static const real quadratic[] = {(real).5, (real).1, (real).1, (real).3};
    card x;
    real l[3], m[6], s[12], out[6], cgf[3];
    sattn_isa_set(*isa);
    at("isa %d", (int)*isa);
    fill(&x);
    check(FN(sattn_quadratic)(3, 2, x.log_weight, x.mean, x.covariance, quadratic, l, m, s) ==
          SATTN_OK);
    x.p.log_weight = l, x.p.mean = m, x.p.covariance = s, x.p.out = out, x.p.cgf = cgf;
    check(FN(sattn_mixture_forward)(&x.p) == SATTN_OK);
    for (int i = 0; i < 6; i++)
        check_near("y", i, out[i], y[i], near_golden * fmax(1, fabs(y[i])));
    for (int i = 0; i < 3; i++)
        check_near("log z", i, cgf[i], z[i], near_golden * fmax(1, fabs(z[i])));
}

/* On the line: m / (1 + s p), s / (1 + s p); a component of weight 0 is not read. */
Test(prompt, quadratic_line)
{
    for (int i = 0; i < 20; i++) {
        rng r = seed_of((uint64_t)i);
        const double m = random_in(&r, -2, 2), s = random_in(&r, 0, 2), p = random_in(&r, 0, 3);
        const real l[2] = {(real)0.25, -INFINITY}, q = (real)p, nan = (real)NAN;
        const real mean[2] = {(real)m, nan}, cov[2] = {(real)s, nan};
        real to_l[2], to_m[2], to_s[2];
        const double by = 1 + (double)cov[0] * q;
        at("m %g s %g p %g", m, s, p);
        check(FN(sattn_quadratic)(2, 1, l, mean, cov, &q, to_l, to_m, to_s) == SATTN_OK);
        check_near("m", 0, to_m[0], mean[0] / by, 8 * EPS * fabs(m));
        check_near("s", 0, to_s[0], cov[0] / by, 8 * EPS * s);
        check_near("l", 0, to_l[0], 0.25 - log(by) / 2 - (double)mean[0] * mean[0] * q / by / 2,
                   8 * EPS * (1 + m * m * p));
        check(to_l[1] == -INFINITY && to_m[1] == 0 && to_s[1] == 0);
    }
}

Test(prompt, quadratic_bad)
{
    card x;
    real l[3], m[6], s[12];
    static const real none[4] = {0}, minus[4] = {-4, 0, 0, 0};
    fill(&x);
    memset(l, 0xff, sizeof l), memset(m, 0xff, sizeof m), memset(s, 0xff, sizeof s);
    at("quadratic");
#define TRY(c, d, log_weight, p, to)                                                               \
    FN(sattn_quadratic)(c, d, log_weight, x.mean, x.covariance, p, to, m, s)
    check(TRY(-1, 2, x.log_weight, none, l) == SATTN_ESIZE);
    check(TRY(3, INT64_MAX, x.log_weight, none, l) == SATTN_ESIZE);
    check(TRY(3, 2, NULL, none, l) == SATTN_ENULL);
    check(TRY(3, 2, x.log_weight, NULL, l) == SATTN_ENULL);
    check(TRY(3, 2, x.log_weight, none, NULL) == SATTN_ENULL);
    check(TRY(3, 2, x.log_weight, none, x.log_weight) == SATTN_EALIAS);
    check(TRY(3, 2, x.log_weight, none, m) == SATTN_EALIAS);
    check(TRY(3, 2, x.log_weight, minus, l) == SATTN_EVALUE);
    x.log_weight[1] = (real)NAN;
    check(TRY(3, 2, x.log_weight, none, l) == SATTN_EVALUE);
    check(is_untouched(l, sizeof l) && is_untouched(m, sizeof m) && is_untouched(s, sizeof s));
}

EACH_ROW(prompt, error_golden)
{
    static const double want[] = {395.92442987611054, 23.00488477051253, 12.748125};
    static const real map[] = {1, 2, -1, (real).5};
    card x;
    real mse[3];
    sattn_isa_set(*isa);
    at("isa %d", (int)*isa);
    fill(&x);
    check(FN(sattn_prompt_error)(&x.p, map, 2, mse, NULL, NULL) == SATTN_OK);
    for (int i = 0; i < 3; i++)
        check_near("L mse", i, mse[i], want[i], 4 * near_golden * want[i]);
}

/* f sum w_c(2u) (trace S_c + |m_c + 2 S_c u - o|^2), -f (o(2u) - o(u)), f - 1 in long double, from
 * the oracle's weights and outputs */
static void check_error(const problem *x, int64_t b, int64_t q, const real *mse, const real *bias,
                        const real *variance)
{
    const int64_t c = x->shape.components, d = x->shape.width;
    double in[3][8 * 36], u[8], two[8];
    for (int i = 0; i < 3; i++)
        for (int64_t k = 0; k < x->a[LOG_WEIGHT + i].cols; k++)
            in[i][k] = *cell(&x->a[LOG_WEIGHT + i], b, 0, k);
    for (int64_t i = 0; i < d; i++)
        u[i] = *cell(&x->a[TILT], b, q, i), two[i] = 2 * u[i];
    const oracle_mixture o = {c, d, 0, ORACLE_FULL, in[0], in[1], in[2], NULL, NULL, 0, 0};
    oracle_number out[8], out2[8], cgf, cgf2, w[8], total = {0, 0};
    oracle_forward(&o, u, out, &cgf, w);
    oracle_forward(&o, two, out2, &cgf2, w);
    long double sum = 0;
    for (int64_t k = 0; k < c; k++) {
        total.value += in[0][k] > -INFINITY ? expl(in[0][k]) : 0;
        for (int64_t i = 0; i < d && in[0][k] > -INFINITY; i++) {
            long double e = in[1][k * d + i] - out[i].value;
            for (int64_t j = 0; j < d; j++)
                e += in[2][(k * d + i) * d + j] * two[j];
            sum += w[k].value * (in[2][(k * d + i) * d + i] + e * e);
        }
    }
    const long double f = total.value * expl(cgf2.value - 2 * cgf.value);
    const double bound = sizeof(real) == 4 ? 1e-4 : 1e-12;
    check_near("mse", q, *mse, (double)(f * sum), bound * (double)(f * sum));
    check_near("variance", q, *variance, (double)(f - 1), bound * (double)f);
    for (int64_t i = 0; i < d; i++)
        check_near("bias", i, bias[i], (double)(-f * (out2[i].value - out[i].value)),
                   bound * (double)(f * (1 + fabsl(out2[i].value) + fabsl(out[i].value))));
}

/* Answers, a map of ones on the diagonal, rows and threads, tilts that lie apart */
EACH_ROW(prompt, error_formula)
{
    const shape s = {.seed = 3,
                     .batch = 2,
                     .queries = 60,
                     .components = 8,
                     .width = 6,
                     .kind = SATTN_COVARIANCE_FULL,
                     .gap = 2,
                     .dead = 0.2,
                     .reach = 1};
    problem x = make_problem(&s);
    real *mse = guarded(120 * sizeof(real), ENDS, 0), *bias = guarded(720 * sizeof(real), ENDS, 0);
    real *variance = guarded(120 * sizeof(real), BEGINS, 0);
    real again[120], again_bias[720], map[36] = {0};
    sattn_isa_set(*isa);
    check(FN(sattn_prompt_error)(&x.p, NULL, 6, mse, bias, variance) == SATTN_OK);
    check_guarded();
    for (int64_t q = 0; q < 120; q++)
        check_error(&x, q / 60, q % 60, mse + q, bias + q * 6, variance + q);
    for (int i = 0; i < 6; i++)
        map[7 * i] = 1;
    sattn_isa_set(SATTN_ISA_SCALAR);
    x.p.threads = 3;
    check(FN(sattn_prompt_error)(&x.p, map, 6, again, again_bias, NULL) == SATTN_OK);
    check_same(again, mse, 120);
    check_same(again_bias, bias, 720);
    check(is_untouched(x.a[OUT].data, sizeof(real)));
    release_guarded();
}

Test(prompt, error_bad)
{
    card x;
    real mse[3], bias[6], map[4] = {0};
    fill(&x);
    memset(mse, 0xff, sizeof mse), memset(bias, 0xff, sizeof bias);
    at("error");
    check(FN(sattn_prompt_error)(NULL, map, 2, mse, bias, NULL) == SATTN_ENULL);
    check(FN(sattn_prompt_error)(&x.p, NULL, 1, mse, bias, NULL) == SATTN_ESIZE);
    check(FN(sattn_prompt_error)(&x.p, map, -1, mse, bias, NULL) == SATTN_ESIZE);
    check(FN(sattn_prompt_error)(&x.p, map, 2, mse, mse, NULL) == SATTN_EALIAS);
    check(FN(sattn_prompt_error)(&x.p, map, 2, map, bias, NULL) == SATTN_EALIAS);
    check(FN(sattn_prompt_error)(&x.p, map, 2, x.tilt, bias, NULL) == SATTN_EALIAS);
    x.p.mean = NULL;
    check(FN(sattn_prompt_error)(&x.p, map, 2, mse, bias, NULL) == SATTN_ENULL);
    x.p.mean = x.mean, x.p.value_width = 2;
    check(FN(sattn_prompt_error)(&x.p, map, 2, mse, bias, NULL) == SATTN_EOPTION);
    x.p.value_width = 0, x.log_weight[0] = (real)NAN;
    check(FN(sattn_prompt_error)(&x.p, map, 2, mse, bias, NULL) == SATTN_EVALUE);
    check(is_untouched(mse, sizeof mse) && is_untouched(bias, sizeof bias));
    for (int i = 0; i < 3; i++)
        x.log_weight[i] = -INFINITY;
    check(FN(sattn_prompt_error)(&x.p, map, 2, mse, bias, NULL) == SATTN_OK && mse[1] == 0);
}
