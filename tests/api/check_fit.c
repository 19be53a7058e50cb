/* SPDX-License-Identifier: BSD-2-Clause */
/* The fit: known mixtures are found, each iteration is an EM step as written here in long double,
 * the log-likelihood rises, labels are the likeliest components, eigenvalues keep the floor,
 * degenerate tokens, the same bits everywhere. */
#include "../harness.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sattn/fit.h"
#include "sattn/random.h"

enum { D = 3, N = 900, MOST = 8, TRACE = 200 };
static const int32_t zero = SATTN_COVARIANCE_ZERO, diag = SATTN_COVARIANCE_DIAG,
                     full = SATTN_COVARIANCE_FULL;

typedef struct {
    real log_weight[MOST], mean[MOST * D], covariance[MOST * D * D];
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

/* A fit of n tokens to f, with all outputs, floor 1e-6, as many iterations as the trace holds */
static sattn_fit plan(const real *x, int64_t n, int64_t c, int32_t kind, fitted *f)
{
    sattn_fit p;
    memset(f, 0, sizeof *f);
    check(sattn_fit_init(&p, sizeof p, n, c, D, kind) == SATTN_OK);
    p.token = x;
    p.log_weight = f->log_weight;
    p.mean = f->mean;
    p.covariance = kind == zero ? NULL : f->covariance;
    p.trace = f->trace;
    p.trace_length = TRACE;
    p.iterations = &f->iterations;
    p.label = f->label;
    p.threads = 1;
    p.tolerance = 0;
    p.em_iterations = TRACE;
    return p;
}

static void fit(const sattn_fit *p)
{
    check(FN(sattn_fit)(p) == SATTN_OK);
}

static double entry(const fitted *f, int32_t kind, int64_t k, int i, int j)
{
    return kind == full ? f->covariance[(k * D + i) * D + j]
           : i == j     ? f->covariance[k * D + i]
                        : 0;
}

/* Elimination on S - shift I, and on y: the pivots, and y' S^-1 y */
static long double eliminate(const fitted *f, int32_t kind, int64_t k, double shift, long double *y,
                             long double *pivot)
{
    long double s[D][D], sum = 0;
    for (int i = 0; i < D; i++)
        for (int j = 0; j < D; j++)
            s[i][j] = entry(f, kind, k, i, j) - (i == j ? shift : 0);
    for (int i = 0; i < D; i++) {
        pivot[i] = s[i][i];
        sum += y[i] * y[i] / s[i][i];
        for (int r = i + 1; r < D; r++) {
            const long double factor = s[r][i] / s[i][i];
            y[r] -= factor * y[i];
            for (int j = i; j < D; j++)
                s[r][j] -= factor * s[i][j];
        }
    }
    return sum;
}

/* l_k = log weight + log N(x; m_k, S_k); returns the likeliest component */
static int likeliest(const fitted *f, int32_t kind, int c, const real *x, long double *l)
{
    int best = 0;
    for (int k = 0; k < c; k++) {
        long double y[D], pivot[D];
        for (int i = 0; i < D; i++)
            y[i] = (long double)x[i] - f->mean[k * D + i];
        l[k] = f->log_weight[k] - eliminate(f, kind, k, 0, y, pivot) / 2;
        for (int i = 0; i < D; i++)
            l[k] -= logl(pivot[i] * 2 * 3.14159265358979323846264L) / 2;
        best = l[k] > l[best] ? k : best;
    }
    return best;
}

/* Sums of an EM step; moments are about the means it starts from. */
typedef struct {
    long double count[MOST], first[MOST][D], second[MOST][D][D], likelihood;
} sums;

static sums em_step(const real *x, const fitted *f, int32_t kind, int c)
{
    sums s;
    memset(&s, 0, sizeof s);
    for (int64_t n = 0; n < N; n++) {
        long double l[MOST], sum = 0;
        const int best = likeliest(f, kind, c, x + n * D, l);
        const long double top = l[best];
        for (int k = 0; k < c; k++)
            sum += l[k] = expl(l[k] - top);
        s.likelihood += (top + logl(sum)) / N;
        for (int k = 0; k < c; k++) {
            s.count[k] += l[k] / sum;
            for (int i = 0; i < D; i++) {
                const long double xi = (long double)x[n * D + i] - f->mean[k * D + i];
                s.first[k][i] += l[k] / sum * xi;
                for (int j = 0; j < D; j++)
                    s.second[k][i][j] +=
                        l[k] / sum * xi * ((long double)x[n * D + j] - f->mean[k * D + j]);
            }
        }
    }
    return s;
}

/* `to` is where an EM step leads from `from`. */
static void check_step(const real *x, const fitted *from, const fitted *to, int32_t kind, int c,
                       double floor, double tolerance)
{
    const sums s = em_step(x, from, kind, c);
    check_near("log-likelihood", 0, to->trace[to->iterations - 1], (double)s.likelihood, tolerance);
    for (int k = 0; k < c; k++) {
        long double d[D];
        check_near("log weight", k, (double)to->log_weight[k], (double)logl(s.count[k] / N),
                   tolerance);
        for (int i = 0; i < D; i++) {
            d[i] = s.first[k][i] / s.count[k];
            check_near("mean", i, (double)to->mean[k * D + i],
                       (double)(from->mean[k * D + i] + d[i]), tolerance);
        }
        for (int i = 0; i < D; i++)
            for (int j = 0; j < D; j++)
                check_near("covariance", i * D + j, entry(to, kind, k, i, j),
                           kind == full || i == j ? (double)(s.second[k][i][j] / s.count[k] -
                                                             d[i] * d[j] + (i == j ? floor : 0))
                                                  : 0,
                           tolerance);
    }
}

static real x[N * D];
static fitted a, b;

EACH_ROW(fit, finds_the_clusters)
{
    enum { C = 2 };
    sattn_isa_set(*isa);
    sample(x, N, 100);
    for (int32_t kind = zero; kind <= full; kind++) {
        at("kind %d", (int)kind);
        sattn_fit p = plan(x, N, C, kind, &a);
        p.tolerance = 1e-12;
        fit(&p);
        const int left = a.mean[0] < 0 ? 0 : 1, right = 1 - left;
        check(fabs(exp((double)a.log_weight[left]) - 1 / 3.) < 0.01);
        check(fabs((double)a.mean[left * D] + 4) < 0.3 &&
              fabs((double)a.mean[right * D] - 4) < 0.3);
        for (int64_t n = 0; n < N; n += 3)
            check(a.label[n] == left || (double)x[n * D] > -1.5);
        if (kind == zero)
            continue;
        check(fabs(entry(&a, kind, right, 0, 0) - 2.25) < 0.35);
        if (kind == full)
            check(fabs(entry(&a, kind, right, 0, 1) - 1.2) < 0.3);
        check(a.iterations == TRACE || isnan(a.trace[a.iterations]));
        /* a fixed point, as near as a likelihood that rises by less than 1e-12 can tell */
        check_step(x, &a, &a, kind, C, 1e-6, SATTN_REAL == 32 ? 1e-3 : 1e-5);
    }
}

/* One iteration more is one EM step more, and the labels are those of the answer. */
EACH_ROW(fit, iterations_are_em_steps)
{
    enum { C = 4 };
    static const int64_t done[] = {0, 1, 7};
    sattn_isa_set(*isa);
    sample(x, N, 0);
    for (int32_t kind = diag; kind <= full; kind++)
        for (int i = 0; i < 3; i++) {
            long double l[MOST];
            at("kind %d, %d iterations", (int)kind, (int)done[i]);
            sattn_fit p = plan(x, N, C, kind, &a);
            p.floor = 0.01;
            p.em_iterations = done[i];
            fit(&p);
            check(a.iterations == done[i]);
            for (int64_t n = 0; n < N; n++) {
                const int best = likeliest(&a, kind, C, x + n * D, l);
                check((double)(l[best] - l[a.label[n]]) < 1000 * EPS);
            }
            p = plan(x, N, C, kind, &b);
            p.floor = 0.01;
            p.em_iterations = done[i] + 1;
            fit(&p);
            check_step(x, &a, &b, kind, C, 0.01, 1000 * EPS);
        }
}

Test(fit, likelihood_rises)
{
    sample(x, N, 0);
    for (int32_t kind = diag; kind <= full; kind++)
        for (uint64_t seed = 0; seed < 20; seed++) {
            sattn_fit p = plan(x, N, 3 + (int64_t)seed % 5, kind, &a);
            at("kind %d seed %d", (int)kind, (int)seed);
            p.seed = seed;
            p.floor = 1e-9;
            p.em_iterations = 60;
            fit(&p);
            check(a.iterations > 2);
            for (int64_t i = 1; i < a.iterations; i++)
                check(a.trace[i] >= a.trace[i - 1] - 1e-8); /* the floor */
        }
}

/* Seeds alone: with as many components as far groups of tokens, k-means++ finds every group. */
Test(fit, seeds_are_far_apart)
{
    enum { C = 6 };
    sample(x, N, 0);
    for (int64_t i = 0; i < N * D; i++)
        x[i] = (real)(1e-4 * (double)x[i] + (i % D == 0 ? 10 * (i / D % C) : 0));
    for (uint64_t seed = 0; seed < 20; seed++) {
        at("seed %d", (int)seed);
        sattn_fit p = plan(x, N, C, zero, &a);
        p.lloyd_iterations = 0;
        p.seed = seed;
        fit(&p);
        for (int k = 0; k < C; k++)
            check_near("log weight", k, (double)a.log_weight[k], -log(C), 8 * EPS);
    }
}

/* k-means ends where every token is labelled with the nearest mean, and means are of their tokens.
 */
Test(fit, k_means_is_a_fixed_point)
{
    enum { C = 5 };
    long double sum[C][D] = {{0}};
    int64_t count[C] = {0};
    sample(x, N, 0);
    sattn_fit p = plan(x, N, C, zero, &a);
    p.lloyd_iterations = 1000;
    fit(&p);
    for (int64_t n = 0; n < N; n++) {
        double distance[C] = {0};
        for (int k = 0; k < C; k++)
            for (int i = 0; i < D; i++)
                distance[k] += pow((double)x[n * D + i] - (double)a.mean[k * D + i], 2);
        at("token %d", (int)n);
        for (int k = 0; k < C; k++)
            check(distance[a.label[n]] <= distance[k] + 1000 * EPS);
        count[a.label[n]]++;
        for (int i = 0; i < D; i++)
            sum[a.label[n]][i] += x[n * D + i];
    }
    for (int k = 0; k < C; k++) {
        at("component %d", k);
        check_near("log weight", k, (double)a.log_weight[k], log((double)count[k] / N), 8 * EPS);
        for (int i = 0; i < D; i++)
            check_near("mean", i, (double)a.mean[k * D + i], (double)(sum[k][i] / count[k]),
                       100 * EPS);
    }
}

/* One Gaussian: the sample's mean and covariance */
Test(fit, one_component)
{
    sample(x, N, 0);
    for (int32_t kind = zero; kind <= full; kind++) {
        long double mean[D] = {0};
        at("kind %d", (int)kind);
        const sattn_fit p = plan(x, N, 1, kind, &a);
        fit(&p);
        check(a.log_weight[0] == 0);
        check(a.iterations == (kind == zero ? 0 : TRACE)); /* 0 is not less than the tolerance 0 */
        for (int64_t i = 0; i < N * D; i++)
            mean[i % D] += (long double)x[i] / N;
        for (int i = 0; i < D; i++)
            check_near("mean", i, (double)a.mean[i], (double)mean[i], 10 * EPS);
        for (int i = 0; i < D && kind != zero; i++)
            for (int j = 0; j < D; j++) {
                long double s = i == j ? 1e-6 : 0;
                for (int64_t n = 0; n < N; n++)
                    s += (x[n * D + i] - mean[i]) * (x[n * D + j] - mean[j]) / N;
                check_near("covariance", i * D + j, entry(&a, kind, 0, i, j),
                           kind == full || i == j ? (double)s : 0, 200 * EPS);
            }
    }
}

/* Every kind, of its own and shared */
Test(fit, same_bits)
{
    enum { C = 5 };
    sample(x, N, 0);
    for (int32_t form = 0; form < 12; form++) {
        const int32_t kind = form / 2;
        sattn_isa_set(SATTN_ISA_SCALAR);
        sattn_fit p = plan(x, N, C, kind, &a);
        p.seed = 3;
        p.floor = 1e-3;
        p.em_iterations = 20;
        p.flags = form % 2 ? SATTN_SHARED_COVARIANCE : 0;
        p.rank = kind == SATTN_COVARIANCE_LOW_RANK ? 2 : 0;
        fit(&p);
        for (int32_t isa = 0; isa < SATTN_ISA_COUNT; isa++) {
            static const int32_t threads[] = {1, 2, 3, 8};
            sattn_isa_set(isa);
            for (int t = 0; t < 4; t++) {
                at("form %d, instruction set %d, %d threads", (int)form, (int)isa, (int)threads[t]);
                sattn_fit q = plan(x, N, C, kind, &b);
                q = p;
                q.log_weight = b.log_weight, q.mean = b.mean, q.trace = b.trace;
                q.covariance = kind == zero ? NULL : b.covariance;
                q.iterations = &b.iterations, q.label = b.label;
                q.threads = threads[t];
                fit(&q);
                check_same(b.mean, a.mean, C * D);
                check_same(b.log_weight, a.log_weight, C);
                check_same(b.covariance, a.covariance, C * D * D);
                check_same(b.trace, a.trace, TRACE);
                check(memcmp(a.label, b.label, sizeof a.label) == 0);
            }
        }
    }
}

/* Rows may lie apart; what is not asked for is not needed; another seed is another start. */
Test(fit, options)
{
    enum { C = 5, ROW = D + 2 };
    static real wide[N * ROW];
    sample(x, N, 0);
    for (int64_t i = 0; i < N * ROW; i++)
        wide[i] = i % ROW < D ? x[i / ROW * D + i % ROW] : (real)NAN;
    for (int32_t kind = zero; kind <= full; kind++) {
        at("kind %d", (int)kind);
        sattn_fit p = plan(x, N, C, kind, &a);
        p.em_iterations = 3;
        fit(&p);
        p = plan(wide, N, C, kind, &b);
        p.em_iterations = 3;
        p.token_row = ROW;
        p.trace = NULL, p.trace_length = 0, p.iterations = NULL, p.label = NULL;
        fit(&p);
        check_same(b.mean, a.mean, C * D);
        check_same(b.covariance, a.covariance, C * D * D);
        p.seed = 1;
        fit(&p);
        check(!same_bits(b.mean, a.mean, C * D, sizeof(real)));
    }
}

/* The least eigenvalue is at least the floor: S - floor I, less some rounding, has pivots > 0. In
 * the direction without scatter it is no more than the floor either. */
Test(fit, floor_of_the_eigenvalues)
{
    enum { C = 4 };
    const double floor = 0.01;
    sample(x, N, 0);
    for (int64_t n = 0; n < N; n++)
        x[n * D + 2] = x[n * D] + x[n * D + 1]; /* a singular scatter */
    sattn_fit p = plan(x, N, C, full, &a);
    p.floor = floor;
    fit(&p);
    for (int k = 0; k < C; k++) {
        static const int v[D] = {1, 1, -1};
        long double y[D] = {0}, pivot[D];
        double form = 0;
        at("component %d", k);
        eliminate(&a, full, k, floor - 64 * EPS, y, pivot);
        for (int i = 0; i < D; i++) {
            check(pivot[i] > 0);
            for (int j = 0; j < D; j++) {
                form += v[i] * v[j] * entry(&a, full, k, i, j);
                check(entry(&a, full, k, i, j) == entry(&a, full, k, j, i));
            }
        }
        check_near("v'Sv / v'v", k, form / D, floor, 200 * EPS);
    }
}

/* A floor below what rounding leaves of a covariance is raised to 2^-44 of the total variance, here
 * seen in a constant coordinate. */
Test(fit, floor_is_raised)
{
    long double spread = 0, mean[D] = {0};
    sample(x, N, 0);
    for (int64_t n = 0; n < N; n++)
        x[n * D + 2] = 1;
    for (int64_t i = 0; i < N * D; i++)
        mean[i % D] += (long double)x[i] / N;
    for (int64_t i = 0; i < N * D; i++)
        spread += (x[i] - mean[i % D]) * (x[i] - mean[i % D]) / N;
    for (int32_t kind = diag; kind <= full; kind++) {
        at("kind %d", (int)kind);
        sattn_fit p = plan(x, N, 4, kind, &a);
        p.floor = 1e-300;
        fit(&p);
        for (int k = 0; k < 4; k++)
            check_near("variance / spread", k, entry(&a, kind, k, 2, 2) / (double)spread, 0x1p-44,
                       0x1p-54);
    }
}

/* Fewer distinct tokens than components: those without a token have weight 0, the floor, and a
 * mean that is a token. Coordinate 2 is the same for all. */
Test(fit, degenerate_tokens)
{
    enum { C = 6 };
    for (int distinct = 1; distinct <= 3; distinct++)
        for (int32_t kind = zero; kind <= SATTN_COVARIANCE_LOW_RANK; kind++) {
            const int64_t n = 2 * distinct; /* each twice */
            int live = 0;
            at("%d distinct tokens, kind %d", distinct, (int)kind);
            for (int64_t i = 0; i < n * D; i++)
                x[i] = (real)(i % D == 2 ? 7 : 10 * (i / D % distinct) + i % D);
            sattn_fit p = plan(x, n, C, kind, &a);
            p.floor = 1e-2;
            p.rank = kind == SATTN_COVARIANCE_LOW_RANK;
            fit(&p);
            for (int k = 0; k < C; k++) {
                const double m = (double)a.mean[k * D];
                live += isfinite(a.log_weight[k]);
                check_near("log weight", k, (double)a.log_weight[k],
                           isfinite(a.log_weight[k]) ? -log(distinct) : -INFINITY, 8 * EPS);
                check(fabs(m / 10 - round(m / 10)) < 8 * EPS && m < 10 * distinct - 9);
                check_near("constant", k, (double)a.mean[k * D + 2], 7, 8 * EPS);
                for (int i = 0; i < D * D && (kind == diag || kind == full); i++)
                    check_near("covariance", i, entry(&a, kind, k, i / D, i % D),
                               i / D == i % D ? 1e-2 : 0, 200 * EPS);
            }
            check(live == distinct);
            for (int64_t i = 0; i < n; i++)
                check(a.label[i] == a.label[i % distinct] && isfinite(a.log_weight[a.label[i]]));
        }
}

/* A common offset of the tokens moves the means and nothing else. */
Test(fit, offset)
{
    enum { C = 2 };
    const double offset = SATTN_REAL == 32 ? 64 : 0x1p30;
    sample(x, N, 0);
    sattn_fit p = plan(x, N, C, full, &a);
    p.em_iterations = 10;
    fit(&p);
    for (int64_t i = 0; i < N * D; i++)
        x[i] += (real)offset;
    p = plan(x, N, C, full, &b);
    p.em_iterations = 10;
    fit(&p);
    for (int i = 0; i < C * D; i++)
        check_near("mean", i, (double)b.mean[i] - offset, (double)a.mean[i], 8 * offset * EPS);
    for (int i = 0; i < C * D * D; i++)
        check_near("covariance", i, (double)b.covariance[i], (double)a.covariance[i],
                   64 * offset * EPS);
}

/* Tokens of nearly the largest size allowed: all stays finite. */
Test(fit, large_tokens)
{
    const double scale = SATTN_REAL == 32 ? 0x1p58 : 0x1p496;
    sample(x, N, 0);
    for (int64_t i = 0; i < N * D; i++)
        x[i] *= (real)scale;
    for (int32_t kind = zero; kind <= full; kind++) {
        at("kind %d", (int)kind);
        const sattn_fit p = plan(x, N, 3, kind, &a);
        fit(&p);
        for (int i = 0; i < 3 * D; i++)
            check(isfinite(a.mean[i]) && isfinite(a.log_weight[i / D]));
        for (int i = 0; i < 3 * D * D; i++)
            check(isfinite(a.covariance[i]));
        check(kind == zero || isfinite(a.trace[a.iterations - 1]));
    }
}

typedef struct {
    int64_t calls, last;
    double value[TRACE];
} watched;

static int32_t watch(void *context, int64_t iteration, double value)
{
    watched *w = context;
    check(w->calls == 0 ? iteration == 0 : iteration > w->last);
    w->last = iteration;
    w->value[w->calls++] = value;
    return 0;
}

/* The callback sees Lloyd's iterations from 0, then EM's from lloyd_iterations + 1, both rising. */
Test(fit, progress)
{
    watched w = {0};
    sample(x, N, 0);
    sattn_fit p = plan(x, N, 4, full, &a);
    p.em_iterations = 12;
    p.progress = watch;
    p.progress_context = &w;
    at("progress");
    fit(&p);
    const int64_t lloyd = w.calls - 12;
    check(a.iterations == 12 && w.last == p.lloyd_iterations + 12 && lloyd > 1 && lloyd <= 21);
    check_same(w.value + lloyd, a.trace, 12);
    for (int64_t i = 1; i < lloyd; i++)
        check(w.value[i] >= w.value[i - 1] - 1e-12);
}
