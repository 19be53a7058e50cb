/* SPDX-License-Identifier: BSD-2-Clause */
/* Known answers and identities of mixture attention. */
#include "../golden.h"
#include "problem.h"
#include "sattn/softmax.h"

#include <float.h>

/* A small problem, values = keys */
enum { MOST = 36 };
typedef struct {
    int64_t queries, components, width;
    int32_t kind;
    real tilt[MOST], dout[MOST], dcgf[MOST], log_weight[MOST], mean[MOST], covariance[MOST];
    real out[MOST], stats[MOST], cgf[MOST], weight[MOST];
    real dtilt[MOST], dlog_weight[MOST], dmean[MOST], dcovariance[MOST];
} card;

static void copy(real *to, const double *from, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        to[i] = (real)from[i];
}

static void solve_card(card *x)
{
    sattn_mixture p;
    check(sattn_mixture_init(&p, sizeof p, 1, x->queries, x->components, x->width, 0, x->kind) ==
          SATTN_OK);
    p.tilt = x->tilt, p.log_weight = x->log_weight, p.mean = x->mean, p.covariance = x->covariance;
    p.out = x->out, p.stats = x->stats, p.cgf = x->cgf, p.weight = x->weight;
    p.dout = x->dout, p.dcgf = x->dcgf, p.dtilt = x->dtilt;
    p.dlog_weight = x->dlog_weight, p.dmean = x->dmean, p.dcovariance = x->dcovariance;
    check(FN(sattn_mixture_forward)(&p) == SATTN_OK);
    check(FN(sattn_mixture_backward)(&p) == SATTN_OK);
}

static void check_list(const char *what, const real *got, const double *want, int64_t n,
                       double tolerance)
{
    for (int64_t i = 0; i < n; i++)
        check_near(what, i, got[i], want[i], tolerance * fmax(1, fabs(want[i])));
}

/* f32 with centred means: 5e-6 of the larger of 1 and the answer */
EACH_ROW(mixture, golden)
{
    const double tolerance = sizeof(real) == 4 ? 5e-6 : 1e-13;
    card x = {.queries = 3, .components = 3, .width = 2, .kind = SATTN_COVARIANCE_FULL};
    sattn_isa_set(*isa);
    at("isa %d", (int)*isa);
    copy(x.tilt, golden.tilt, 6), copy(x.dout, golden.dout, 6), copy(x.dcgf, golden.dcgf, 3);
    copy(x.log_weight, golden_log_weight(), 3), copy(x.mean, golden.mean, 6);
    copy(x.covariance, golden.covariance, 12);
    solve_card(&x);
    check_list("out", x.out, golden.first_out, 2, tolerance);
    check_list("weight", x.weight, golden.first_weight, 3, tolerance);
    check_list("cgf", x.cgf, golden.cgf, 3, tolerance);
    check_list("dtilt", x.dtilt, golden.dtilt, 6, tolerance);
    check_list("dlog_weight", x.dlog_weight, golden.dlog_weight, 3, tolerance);
    check_list("dmean", x.dmean, golden.dmean, 6, tolerance);
    check_list("dcovariance", x.dcovariance, golden.dcovariance, 12, tolerance);
}

/* Three unlike Gaussians, as a public bug report had them; answers to 10 digits from 60-digit
 * arithmetic */
static card three(const double *weight, int components)
{
    card x = {.queries = 1, .components = components, .width = 2, .kind = SATTN_COVARIANCE_FULL};
    copy(x.tilt, (const double[]){0.5, -0.25}, 2), copy(x.dout, (const double[]){1, 2}, 2);
    copy(x.mean, (const double[]){1, 0, 0, 2, -1, -1}, 6);
    copy(x.covariance, (const double[]){1, .5, .5, 2, .25, 0, 0, .25, 2, -1, -1, 1}, 12);
    for (int c = 0; c < components; c++)
        x.log_weight[c] = (real)log(weight[c]);
    solve_card(&x);
    return x;
}

static const double ten_digits = sizeof(real) == 4 ? 3e-6 : 2e-9;

EACH_ROW(mixture, three_gaussians)
{
    sattn_isa_set(*isa);
    const card x = three((const double[]){.5, .3, .2}, 3);
    const double dpi[] = {0.3785943359, 1.580047119, -3.316556518}, pi[] = {.5, .3, .2};
    check_list("w", x.weight, (const double[]){0.6882953407, 0.1394149721, 0.1722896872}, 3,
               ten_digits);
    check_list("L", x.cgf, (const double[]){0.3053900784}, 1, ten_digits);
    check_list("T", x.out, (const double[]){1.006905387, -0.2034642794}, 2, ten_digits);
    check_list("da", x.dtilt, (const double[]){1.565151971, 5.371199083}, 2, ten_digits);
    check_list("dmu", x.dmean,
               (const double[]){0.7829439246, 1.329266389, 0.3764220399, 0.1603264103,
                                -0.1593659645, 0.5104072004},
               6, ten_digits);
    check_list("dSigma", x.dcovariance,
               (const double[]){0.3678098163, 0.2462796798, 0.2462796798, -0.3382321338,
                                0.128959253, 0.02265473105, 0.02265473105, -0.0548945443,
                                0.003230930675, 0.1060655892, 0.1060655892, -0.1068733219},
               12, ten_digits);
    for (int c = 0; c < 3; c++)
        check_near("dpi", c, (double)x.dlog_weight[c] / pi[c], dpi[c], 5 * ten_digits);
}

EACH_ROW(mixture, weight_zero)
{
    sattn_isa_set(*isa);
    const card x = three((const double[]){.6, .4, 0}, 3), y = three((const double[]){.6, .4}, 2);
    const real zeros[6] = {0};
    check_list("w", x.weight, (const double[]){0.8162887031, 0.1837112969, 0}, 3, ten_digits);
    check_list("T", x.out, (const double[]){1.145360879, 0.1518684621}, 2, ten_digits);
    check_list("dlog pi", x.dlog_weight, (const double[]){-0.468629551, 0.468629551, 0}, 3,
               ten_digits);
    check(x.weight[2] == 0 && x.dlog_weight[2] == 0);
    check(memcmp(x.dmean + 4, zeros, 2 * sizeof(real)) == 0);
    check(memcmp(x.dcovariance + 8, zeros, 4 * sizeof(real)) == 0);
    check_same(x.out, y.out, 2);
    check_same(x.dtilt, y.dtilt, 2);
    check_same(x.dcovariance, y.dcovariance, 8);
}

EACH_ROW(mixture, one_component)
{
    sattn_isa_set(*isa);
    const card x = three((const double[]){1}, 1);
    check(x.out[0] == (real)1.375 && x.out[1] == (real)-0.25); /* mu + Sigma a, all exact */
    check(x.weight[0] == 1 && x.dlog_weight[0] == 0);
}

/* Atoms are keys: softmax attention, whichever way a covariance of zero is given. */
EACH_ROW(mixture, atoms)
{
    const double third[] = {1 / 3., 1 / 3., 1 / 3.},
                 w[] = {0.5434056117, 0.1999077528, 0.2566866355};
    sattn_isa_set(*isa);
    for (int32_t kind = 0; kind < 3; kind++) {
        card x = three(third, 3);
        x.kind = kind;
        memset(x.covariance, 0, sizeof x.covariance);
        solve_card(&x);
        at("isa %d kind %d", (int)*isa, (int)kind);
        real logit[3], weight[3], out[2] = {0, 0};
        for (int c = 0; c < 3; c++)
            logit[c] = x.tilt[0] * x.mean[2 * c] + x.tilt[1] * x.mean[2 * c + 1];
        check(FN(sattn_softmax)(1, 3, logit, 3, weight, 3, 1) == SATTN_OK);
        for (int c = 0; c < 3; c++)
            out[0] += weight[c] * x.mean[2 * c], out[1] += weight[c] * x.mean[2 * c + 1];
        check_list("w", x.weight, w, 3, ten_digits);
        check_list("T", x.out, (const double[]){0.2867189762, 0.14312887}, 2, ten_digits);
        for (int c = 0; c < 3; c++)
            check_near("softmax", c, x.weight[c], weight[c], 8 * EPS);
        check_near("attention", 0, x.out[0], out[0], 8 * EPS);
        check_near("attention", 1, x.out[1], out[1], 8 * EPS);
    }
}

/* A component twice with half its weight: the same answer, half of its gradients each. */
EACH_ROW(mixture, split_component)
{
    sattn_isa_set(*isa);
    const card whole = three((const double[]){.5, .3, .2}, 3);
    card x = {.queries = 1, .components = 4, .width = 2, .kind = SATTN_COVARIANCE_FULL};
    for (int c = 0; c < 4; c++) {
        const int from = c < 3 ? c : 0;
        x.log_weight[c] = from ? whole.log_weight[from] : (real)log(.25);
        memcpy(x.mean + 2 * c, whole.mean + 2 * from, 2 * sizeof(real));
        memcpy(x.covariance + 4 * c, whole.covariance + 4 * from, 4 * sizeof(real));
    }
    memcpy(x.tilt, whole.tilt, sizeof x.tilt), memcpy(x.dout, whole.dout, sizeof x.dout);
    solve_card(&x);
    at("isa %d", (int)*isa);
    check_near("L", 0, x.cgf[0], whole.cgf[0], 16 * EPS);
    for (int i = 0; i < 2; i++) {
        check_near("T", i, x.out[i], whole.out[i], 16 * EPS);
        check_near("half of dmu", i, x.dmean[i], (double)whole.dmean[i] / 2, 16 * EPS);
        check_near("half of dmu", i, x.dmean[6 + i], (double)whole.dmean[i] / 2, 16 * EPS);
    }
}

/* Twins to the left and right of problems that only sattn_mixture_... solves: whole random problems
 * whose numbers are moved to an edge, against the oracle. */
static const int64_t joint[] = {0, 5};

static problem edge(int32_t kind, int i)
{
    return make_problem(&(shape){.seed = (uint64_t)(20 + kind),
                                 .batch = 2,
                                 .queries = 5,
                                 .components = 9,
                                 .kind = kind,
                                 .width = 6,
                                 .value_width = joint[i],
                                 .cross = 1,
                                 .reach = 1});
}

static void move(const array *a, double factor, double shift)
{
    for (int64_t b = 0; a->data && b < a->batch; b++)
        for (int64_t row = 0; row < a->rows; row++)
            for (int64_t col = 0; col < a->cols; col++)
                *cell(a, b, row, col) = (real)(*cell(a, b, row, col) * factor + shift);
}

/* A common offset of the means: centred inside, so the oracle's bound has no term that grows with
 * it but the rounding of out, u.centre and the means themselves. */
EACH_ROW(mixture, offset)
{
    sattn_isa_set(*isa);
    EACH_KIND (kind)
        for (int i = 0; i < 2; i++) {
            problem x = edge(kind, i);
            move(&x.a[MEAN], 1, 100);
            solve(&x);
            check_against_oracle(&x);
            release_guarded();
        }
}

/* Means near the largest number, whose sum and differences overflow: centring leaves them alone.
 * dout . (value - out) is finite. */
EACH_ROW(mixture, largest_means)
{
    static const double second[] = {-0.95, 0.95, 0.2};
    const double most = sizeof(real) == 4 ? (double)FLT_MAX : DBL_MAX;
    sattn_isa_set(*isa);
    for (int i = 0; i < 3; i++) {
        card x = {.queries = 1, .components = 2, .width = 2, .kind = SATTN_COVARIANCE_ZERO};
        copy(x.tilt, (const double[]){0.125, 0}, 2), copy(x.dout, (const double[]){0.25, 0}, 2);
        copy(x.mean, (const double[]){0.9 * most, 1, second[i] * most, 2}, 4);
        const int larger = second[i] > 0.9;
        at("isa %d case %d", (int)*isa, i);
        solve_card(&x);
        check(x.out[0] == x.mean[2 * larger] && x.out[1] == larger + 1);
        check(x.cgf[0] == x.tilt[0] * x.mean[2 * larger]);
        check(x.weight[larger] == 1 && x.weight[!larger] == 0);
        check(isfinite(x.dtilt[0]) && x.dlog_weight[0] == 0 && x.dlog_weight[1] == 0);
    }
}

/* Queries so large that CGF is 1e8 */
EACH_ROW(mixture, large_queries)
{
    sattn_isa_set(*isa);
    EACH_KIND (kind)
        for (int i = 0; i < 2; i++) {
            problem x = edge(kind, i);
            move(&x.a[TILT], sizeof(real) == 4 ? 100 : 1e4, 0);
            solve(&x);
            check_against_oracle(&x);
            for (int64_t q = 0; q < 5; q++)
                check(isfinite(*cell(&x.a[CGF], 0, 0, q)));
            release_guarded();
        }
}

/* u = 0 gives the mean of the mixture and the logarithm of the sum of weights. */
EACH_ROW(mixture, no_tilt)
{
    sattn_isa_set(*isa);
    EACH_KIND (kind)
        for (int i = 0; i < 2; i++) {
            problem x = edge(kind, i);
            move(&x.a[TILT], 0, 0);
            solve(&x);
            check_against_oracle(&x);
            double sum = 0, first = 0;
            for (int64_t c = 0; c < 9; c++) {
                const double pi = exp(*cell(&x.a[LOG_WEIGHT], 0, 0, c));
                sum += pi;
                first += pi * *cell(&x.a[i ? VALUE_MEAN : MEAN], 0, 0, c * (i ? 5 : 6));
            }
            check_near("cgf", 0, *cell(&x.a[CGF], 0, 0, 3), log(sum), 64 * EPS);
            check_near("out", 0, *cell(&x.a[OUT], 0, 3, 0), first / sum, 64 * EPS);
            release_guarded();
        }
}

/* out is the gradient of CGF: the dtilt of dcgf = 1 alone. */
EACH_ROW(mixture, gradient_of_cgf)
{
    sattn_isa_set(*isa);
    EACH_KIND (kind) {
        problem x = edge(kind, 0);
        move(&x.a[DCGF], 0, 1);
        x.p.dout = NULL;
        solve(&x);
        for (int64_t q = 0; q < 5; q++)
            for (int64_t k = 0; k < 6; k++)
                check_near("dtilt", k, *cell(&x.a[DTILT], 1, q, k), *cell(&x.a[OUT], 1, q, k),
                           200 * EPS);
        release_guarded();
    }
}

static void check_all(const problem *x, int i, double value)
{
    const array *a = &x->a[i];
    for (int64_t b = 0; a->data && b < a->batch; b++)
        for (int64_t k = 0; k < a->rows * a->cols; k++)
            check_near(array_names[i], k, *cell(a, b, k / a->cols, k % a->cols), value, 0);
}

/* No component, or none of weight > 0 */
EACH_ROW(mixture, empty)
{
    sattn_isa_set(*isa);
    EACH_KIND (kind)
        for (int i = 0; i < 2; i++)
            for (int64_t components = 0; components <= 65; components += 13) {
                problem x = make_problem(&(shape){.batch = 2,
                                                  .queries = 50,
                                                  .components = components,
                                                  .kind = kind,
                                                  .width = 3,
                                                  .value_width = joint[i],
                                                  .cross = 1,
                                                  .reach = 1,
                                                  .dead = 1});
                solve(&x);
                for (int output = OUT; output < ARRAYS; output++)
                    if (output != STATS)
                        check_all(&x, output, output == CGF ? -INFINITY : 0);
                release_guarded();
            }
}

/* Sizes of 0 are legal: no batch entry (then the gradient of a shared parameter is an empty sum),
 * no query, no width (every logit is log pi). */
EACH_ROW(mixture, zero_sizes)
{
    sattn_isa_set(*isa);
    EACH_KIND (kind)
        for (int i = 0; i < 2; i++)
            for (int zero = 0; zero < 3; zero++) {
                problem x = make_problem(&(shape){.batch = zero != 0,
                                                  .queries = zero != 1 ? 4 : 0,
                                                  .components = 3,
                                                  .width = zero != 2 ? 2 : 0,
                                                  .kind = kind,
                                                  .value_width = joint[i],
                                                  .cross = 1,
                                                  .shared = ALL_PARAMETERS});
                solve(&x);
                check_against_oracle(&x);
                release_guarded();
            }
}

/* A logit too large for the type makes its query NaN, and no other. */
EACH_ROW(mixture, overflow)
{
    sattn_isa_set(*isa);
    for (int32_t kind = SATTN_COVARIANCE_DIAG; kind < SHARED; kind++)
        for (int i = 0; i < 2; i++) {
            problem want = edge(kind, i), x = edge(kind, i);
            solve(&want);
            for (int64_t k = 0; k < 6; k++)
                *cell(&x.a[TILT], 0, 2, k) = sizeof(real) == 4 ? (real)1e25 : (real)1e200;
            solve(&x);
            for (int64_t q = 0; q < 5; q++) {
                const real *out = cell(&x.a[OUT], 0, q, 0), *dtilt = cell(&x.a[DTILT], 0, q, 0);
                if (q == 2) {
                    check(isnan(out[0]) && isnan(*cell(&x.a[CGF], 0, 0, q)) && isnan(dtilt[0]));
                    continue;
                }
                check_same(out, cell(&want.a[OUT], 0, q, 0), x.a[OUT].cols);
                check_same(dtilt, cell(&want.a[DTILT], 0, q, 0), 6);
            }
            release_guarded();
        }
}
