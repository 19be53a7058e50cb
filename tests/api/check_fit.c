/* SPDX-License-Identifier: BSD-2-Clause */
/* The fit: known mixtures are found, the answer is a fixed point of an EM step written here, the
 * log-likelihood rises, eigenvalues keep the floor, degenerate tokens, the same bits everywhere. */
#include "../harness.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sattn/fit.h"
#include "sattn/random.h"

enum { D = 3, N = 900, C = 2, TRACE = 200 };

typedef struct {
    real log_weight[8], mean[8 * D], covariance[8 * D * D];
    double trace[TRACE];
    int64_t iterations;
    int32_t label[N];
} fitted;

/* Two clusters: a third of the tokens at (-4, 1, offset), the rest at (4, 0, offset) and stretched
 */
static void sample(real *x, int64_t n, double offset)
{
    double *z = malloc((size_t)(n * D) * sizeof *z);
    check(sattn_random_normal_f64(5, 6, 0, n * D, z) == SATTN_OK);
    for (int64_t i = 0; i < n; i++) {
        const int first = i % 3 == 0;
        x[i * D] = (real)(first ? -4 + z[i * D] : 4 + 1.5 * z[i * D]);
        x[i * D + 1] = (real)(first ? 1 + z[i * D + 1] : 0.5 * z[i * D + 1] + 0.8 * z[i * D]);
        x[i * D + 2] = (real)(offset + z[i * D + 2]);
    }
    free(z);
}

static int32_t fit(const real *x, int64_t n, int64_t c, int32_t kind, int32_t threads,
                   uint64_t seed, double floor, fitted *f)
{
    sattn_fit p;
    memset(f, 0, sizeof *f);
    check(sattn_fit_init(&p, sizeof p, n, c, D, kind) == SATTN_OK);
    p.token = x;
    p.log_weight = f->log_weight;
    p.mean = f->mean;
    p.covariance = kind == SATTN_COVARIANCE_ZERO ? NULL : f->covariance;
    p.trace = f->trace;
    p.trace_length = TRACE;
    p.iterations = &f->iterations;
    p.label = f->label;
    p.threads = threads;
    p.seed = seed;
    p.floor = floor;
    p.tolerance = 1e-12;
    p.em_iterations = TRACE;
    return FN(sattn_fit)(&p);
}

static double entry(const fitted *f, int32_t kind, int64_t k, int i, int j)
{
    return kind == SATTN_COVARIANCE_FULL ? f->covariance[(k * D + i) * D + j]
           : i == j                      ? f->covariance[k * D + i]
                                         : 0;
}

/* log N(x; m_k, S_k) in long double, by elimination on D x D */
static long double log_density(const fitted *f, int32_t kind, int64_t k, const real *x)
{
    long double s[D][D], y[D], sum = 0, log_det = 0;
    for (int i = 0; i < D; i++) {
        y[i] = (long double)x[i] - f->mean[k * D + i];
        for (int j = 0; j < D; j++)
            s[i][j] = entry(f, kind, k, i, j);
    }
    for (int i = 0; i < D; i++) {
        log_det += logl(s[i][i]);
        sum += y[i] * y[i] / s[i][i];
        for (int r = i + 1; r < D; r++) {
            const long double factor = s[r][i] / s[i][i];
            y[r] -= factor * y[i];
            for (int j = i; j < D; j++)
                s[r][j] -= factor * s[i][j];
        }
    }
    return -(sum + log_det + D * logl(2 * 3.14159265358979323846264L)) / 2;
}

/* One EM step from the fit changes nothing beyond what convergence and rounding leave. */
static void check_fixed_point(const real *x, const fitted *f, int32_t kind, double floor)
{
    long double count[C] = {0}, mean[C][D] = {{0}}, second[C][D][D] = {{{0}}}, likelihood = 0;
    for (int64_t n = 0; n < N; n++) {
        long double l[C], top = -INFINITY, sum = 0;
        for (int k = 0; k < C; k++) {
            l[k] = f->log_weight[k] + log_density(f, kind, k, x + n * D);
            top = l[k] > top ? l[k] : top;
        }
        for (int k = 0; k < C; k++)
            sum += expl(l[k] - top);
        likelihood += (top + logl(sum)) / N;
        for (int k = 0; k < C; k++) {
            const long double r = expl(l[k] - top) / sum;
            count[k] += r;
            for (int i = 0; i < D; i++) {
                const long double xi = (long double)x[n * D + i] - f->mean[k * D + i];
                mean[k][i] += r * xi;
                for (int j = 0; j < D; j++)
                    second[k][i][j] += r * xi * ((long double)x[n * D + j] - f->mean[k * D + j]);
            }
        }
    }
    const double tolerance = 1e-4; /* EM stops when the likelihood rises by less than 1e-12 */
    check(fabsl(likelihood - f->trace[f->iterations - 1]) < 1e-5);
    for (int k = 0; k < C; k++) {
        check(fabsl(logl(count[k] / N) - f->log_weight[k]) < tolerance);
        for (int i = 0; i < D; i++) {
            check(fabsl(mean[k][i] / count[k]) < tolerance);
            for (int j = 0; j < (kind == SATTN_COVARIANCE_FULL ? D : 0); j++)
                check(fabsl(second[k][i][j] / count[k] + (i == j ? floor : 0) -
                            entry(f, kind, k, i, j)) < tolerance * 10);
            check(fabsl(second[k][i][i] / count[k] + floor - entry(f, kind, k, i, i)) <
                  tolerance * 10);
        }
    }
}

static real x[N * D];
static fitted a, b;

EACH_ROW(fit, finds_the_clusters)
{
    sattn_isa_set(*isa);
    sample(x, N, 100);
    for (int32_t kind = SATTN_COVARIANCE_ZERO; kind <= SATTN_COVARIANCE_FULL; kind++) {
        at("kind %d", (int)kind);
        check(fit(x, N, C, kind, 1, 1, 1e-6, &a) == SATTN_OK);
        const int left = a.mean[0] < 0 ? 0 : 1;
        check(fabs(exp((double)a.log_weight[left]) - 1 / 3.) < 0.01);
        check(fabs((double)a.mean[left * D] + 4) < 0.3 &&
              fabs((double)a.mean[(1 - left) * D] - 4) < 0.3);
        for (int64_t n = 0; n < N; n += 3)
            check(a.label[n] == left || (double)x[n * D] > -1.5);
        if (kind == SATTN_COVARIANCE_ZERO)
            continue;
        check(fabs(entry(&a, kind, 1 - left, 0, 0) - 2.25) < 0.35);
        if (kind == SATTN_COVARIANCE_FULL)
            check(fabs(entry(&a, kind, 1 - left, 0, 1) - 1.2) < 0.3);
        for (int64_t i = 1; i < a.iterations; i++)
            check(a.trace[i] >= a.trace[i - 1] - 1e-10);
        check(a.iterations == TRACE || isnan(a.trace[a.iterations]));
        check_fixed_point(x, &a, kind, 1e-6);
    }
}

Test(fit, same_bits)
{
    sample(x, N, 0);
    for (int32_t kind = SATTN_COVARIANCE_ZERO; kind <= SATTN_COVARIANCE_FULL; kind++) {
        sattn_isa_set(SATTN_ISA_SCALAR);
        check(fit(x, N, 5, kind, 1, 3, 1e-3, &a) == SATTN_OK);
        for (int32_t isa = 0; isa < SATTN_ISA_COUNT; isa++) {
            static const int32_t threads[] = {1, 2, 3, 5, 8};
            sattn_isa_set(isa);
            for (int t = 0; t < 5; t++) {
                at("kind %d, instruction set %d, %d threads", (int)kind, (int)isa, (int)threads[t]);
                check(fit(x, N, 5, kind, threads[t], 3, 1e-3, &b) == SATTN_OK);
                check(same_bits(a.mean, b.mean, 5 * D, sizeof(real)));
                check(same_bits(a.log_weight, b.log_weight, 5, sizeof(real)));
                check(same_bits(a.covariance, b.covariance, 5 * D * D, sizeof(real)));
                check(memcmp(a.label, b.label, sizeof a.label) == 0);
            }
        }
    }
}

/* v' S v >= floor |v|^2 for random directions, and the constant coordinate has the floor alone */
Test(fit, floor_of_the_eigenvalues)
{
    const double floor = 0.01;
    sample(x, N, 0);
    for (int64_t n = 0; n < N; n++)
        x[n * D + 2] = x[n * D] + x[n * D + 1]; /* a singular scatter */
    check(fit(x, N, 4, SATTN_COVARIANCE_FULL, 1, 2, floor, &a) == SATTN_OK);
    rng r = seed_of(9);
    for (int trial = 0; trial < 1000; trial++) {
        real v[D];
        random_fill(&r, v, D, -1, 1);
        if (trial == 0)
            v[0] = v[1] = 1, v[2] = -1;
        for (int k = 0; k < 4; k++) {
            double form = 0, norm = 0;
            for (int i = 0; i < D; i++) {
                norm += (double)v[i] * v[i];
                for (int j = 0; j < D; j++)
                    form += (double)v[i] * v[j] * a.covariance[(k * D + i) * D + j];
            }
            at("component %d, trial %d", k, trial);
            check(form >= floor * norm * 0.999 - 40 * EPS);
        }
    }
}

Test(fit, degenerate_tokens)
{
    static const int64_t counts[] = {1, 2, 5};
    for (int c = 0; c < 3; c++)
        for (int32_t kind = SATTN_COVARIANCE_ZERO; kind <= SATTN_COVARIANCE_FULL; kind++) {
            at("%d equal tokens, kind %d", (int)counts[c], (int)kind);
            for (int64_t i = 0; i < counts[c] * D; i++)
                x[i] = (real)(i % D);
            check(fit(x, counts[c], 4, kind, 1, 0, 1e-2, &a) == SATTN_OK);
            double weight = 0;
            for (int k = 0; k < 4; k++) {
                weight += exp((double)a.log_weight[k]);
                for (int i = 0; i < D; i++) {
                    check(isfinite(a.mean[k * D + i]));
                    if (kind != SATTN_COVARIANCE_ZERO)
                        check(entry(&a, kind, k, i, i) > 0.999e-2);
                }
                check(a.log_weight[k] < 1e-6 && (isfinite(a.log_weight[k]) || a.log_weight[k] < 0));
            }
            check(fabs(weight - 1) < 1e-5);
        }
}

/* A common offset of the tokens moves the means and nothing else. */
Test(fit, offset)
{
    sample(x, N, 0);
    check(fit(x, N, C, SATTN_COVARIANCE_FULL, 1, 1, 1e-6, &a) == SATTN_OK);
    for (int64_t i = 0; i < N * D; i++)
        x[i] += 64;
    check(fit(x, N, C, SATTN_COVARIANCE_FULL, 1, 1, 1e-6, &b) == SATTN_OK);
    for (int i = 0; i < C * D; i++)
        check(fabs((double)b.mean[i] - 64 - (double)a.mean[i]) < 64 * 8 * EPS + 1e-5);
    for (int i = 0; i < C * D * D; i++)
        check(fabs((double)b.covariance[i] - (double)a.covariance[i]) < 64 * 64 * EPS + 1e-5);
}
