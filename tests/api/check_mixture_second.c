/* SPDX-License-Identifier: BSD-2-Clause */
/* Second derivatives along a direction: against differences of the long double oracle's out and
 * dtilt, a known answer, the same bits everywhere, guard pages, bad input. */
#include "../golden.h"
#include "../oracle/mixture.h"
#include "problem.h"

#include <stdlib.h>

typedef struct {
    real *direction, *jvp, *hvp;
    int64_t queries, e; /* rows are packed: B M in all */
} along;

static along along_of(const problem *x, placement side)
{
    const int64_t rows = x->shape.batch * x->shape.queries, d = x->shape.width;
    along a = {.queries = rows, .e = x->a[OUT].cols};
    rng r = seed_of(77);
    a.direction = guarded((size_t)(rows * d) * sizeof(real), side, 0);
    a.jvp = guarded((size_t)(rows * a.e) * sizeof(real), side, 0);
    a.hvp = guarded((size_t)(rows * d) * sizeof(real), side, 0);
    random_fill(&r, a.direction, rows * d, -1, 1);
    return a;
}

static double *widened(const array *a, int64_t b)
{
    double *to = calloc((size_t)(a->rows * a->cols) + 1, sizeof *to);
    for (int64_t k = 0; a->data && k < a->rows * a->cols; k++)
        to[k] = *cell(a, b, k / a->cols, k % a->cols);
    return to;
}

/* out and dtilt of one query a step along the direction */
static void step(const oracle_mixture *o, const double *u, const real *p, double h,
                 const double *dout, double dcgf, oracle_number *out, oracle_number *dtilt)
{
    double moved[64];
    oracle_number cgf, weight[200];
    for (int64_t i = 0; i < o->width; i++)
        moved[i] = u[i] + h * p[i];
    oracle_forward(o, moved, out, &cgf, weight);
    oracle_backward(o, moved, dout, dcgf, 1, &(oracle_gradients){.tilt = dtilt});
}

/* Central differences of steps h and 2 h, combined: off by h^4 times a fifth derivative, 1e-10
 * here; in f32 by the roundings of sums of 100 numbers of size 1. */
static void check_rows(const char *what, int64_t n, const oracle_number *const *at, const real *got)
{
    const double h = 0x1p-10, tolerance = sizeof(real) == 4 ? 1e-4 : 3e-9;
    for (int64_t i = 0; i < n; i++) {
        const long double one = at[1][i].value - at[0][i].value;
        const long double two = at[3][i].value - at[2][i].value;
        const double want = (double)((8 * one - two) / (12 * h));
        check_near(what, i, got[i], want, tolerance * (1 + fabs(want)));
    }
}

static void check_differences(const problem *x, const along *a)
{
    static const double steps[] = {-1, 1, -2, 2};
    const shape *s = &x->shape;
    for (int64_t b = 0; b < s->batch; b++) {
        double *in[INPUTS];
        for (int i = 0; i < INPUTS; i++)
            in[i] = widened(&x->a[i], b);
        const oracle_mixture o = {s->components,
                                  s->width,
                                  s->value_width,
                                  s->kind % SHARED,
                                  in[LOG_WEIGHT],
                                  in[MEAN],
                                  in[COVARIANCE],
                                  in[VALUE_MEAN],
                                  s->cross ? in[CROSS] : NULL,
                                  RANK,
                                  s->kind >= SHARED};
        for (int64_t q = 0; q < s->queries; q++) {
            const int64_t row = b * s->queries + q;
            oracle_number out[4][64], dtilt[4][64];
            for (int k = 0; k < 4; k++)
                step(&o, in[TILT] + q * s->width, a->direction + row * s->width, steps[k] * 0x1p-10,
                     in[DOUT] + q * a->e, in[DCGF][q], out[k], dtilt[k]);
            check_rows("jvp", a->e, (const oracle_number *const[]){out[0], out[1], out[2], out[3]},
                       a->jvp + row * a->e);
            check_rows("hvp", s->width,
                       (const oracle_number *const[]){dtilt[0], dtilt[1], dtilt[2], dtilt[3]},
                       a->hvp + row * s->width);
        }
        for (int i = 0; i < INPUTS; i++)
            free(in[i]);
    }
}

static shape variant(int32_t kind, int64_t value_width)
{
    return (shape){.seed = (uint64_t)kind,
                   .batch = 2,
                   .queries = 5,
                   .components = kind % 2 ? 70 : 6,
                   .kind = kind,
                   .width = 6,
                   .value_width = value_width,
                   .cross = kind % 3 != 2,
                   .reach = 1,
                   .dead = 0.2,
                   .shared = kind % 4 == 1 ? ALL_PARAMETERS : 0};
}

static void solve_along(problem *x, const along *a)
{
    check(FN(sattn_mixture_forward)(&x->p) == SATTN_OK);
    check(FN(sattn_mixture_second)(&x->p, a->direction, a->jvp, a->hvp) == SATTN_OK);
    check_guarded();
}

EACH_ROW(mixture_second, differences)
{
    sattn_isa_set(*isa);
    EACH_KIND (kind)
        for (int64_t value_width = 0; value_width <= 4; value_width += 4) {
            const shape s = variant(kind, value_width);
            problem x = make_problem(&s);
            const along a = along_of(&x, kind % 2 ? ENDS : BEGINS);
            solve_along(&x, &a);
            for (int i = DTILT; i < ARRAYS; i++) /* gradients are not its business */
                check(!x.a[i].data || is_untouched(x.a[i].data, sizeof(real)));
            check_differences(&x, &a);
            release_guarded();
        }
}

EACH_ROW(mixture_second, golden)
{
    static const double want[] = {
        0.20409131950048154, 0.8552999510507631, 0.2269879427438301, 2.9065018311016404, 0.5, 2.51};
    real log_weight[3], mean[6], s[12], u[6], one[6], out[6], stats[6], jvp[6];
    sattn_mixture p;
    sattn_isa_set(*isa);
    at("isa %d", (int)*isa);
    for (int i = 0; i < 12; i++)
        s[i] = (real)golden.covariance[i];
    for (int i = 0; i < 6; i++)
        mean[i] = (real)golden.mean[i], u[i] = (real)golden.tilt[i], one[i] = 1;
    for (int i = 0; i < 3; i++)
        log_weight[i] = (real)golden_log_weight()[i];
    check(sattn_mixture_init(&p, sizeof p, 1, 3, 3, 2, 0, SATTN_COVARIANCE_FULL) == SATTN_OK);
    p.log_weight = log_weight, p.mean = mean, p.covariance = s, p.tilt = u, p.out = out,
    p.stats = stats;
    check(FN(sattn_mixture_forward)(&p) == SATTN_OK);
    check(FN(sattn_mixture_second)(&p, one, jvp, NULL) == SATTN_OK);
    for (int i = 0; i < 6; i++)
        check_near("jvp", i, jvp[i], want[i], sizeof(real) == 4 ? 5e-6 : 1e-13);
}

/* Rows, threads, and a query alone: the same bits. */
Test(mixture_second, bits)
{
    EACH_KIND (kind) {
        shape s = variant(kind, kind % 2 ? 3 : 0);
        s.queries = 99;
        sattn_isa_set(SATTN_ISA_SCALAR);
        problem x = make_problem(&s);
        const along want = along_of(&x, ROOMY), got = along_of(&x, ROOMY);
        x.p.threads = 1;
        solve_along(&x, &want);
        const struct criterion_test_params rows = each_row();
        for (size_t i = 0; i < rows.length; i++)
            for (x.p.threads = 1; x.p.threads <= 3; x.p.threads += 2) {
                sattn_isa_set(((const int32_t *)rows.params)[i]);
                solve_along(&x, &got);
                check_same(got.jvp, want.jvp, want.queries * want.e);
                check_same(got.hvp, want.hvp, want.queries * s.width);
            }
        sattn_mixture one = x.p;
        real jvp[8], hvp[8];
        one.batch = one.queries = 1;
        one.tilt = cell(&x.a[TILT], 0, 50, 0), one.dout = cell(&x.a[DOUT], 0, 50, 0);
        one.dcgf = cell(&x.a[DCGF], 0, 0, 50), one.out = cell(&x.a[OUT], 0, 50, 0);
        one.stats = cell(&x.a[STATS], 0, 50, 0);
        check(FN(sattn_mixture_second)(&one, want.direction + 50 * s.width, jvp, hvp) == SATTN_OK);
        check_same(jvp, want.jvp + 50 * want.e, want.e);
        check_same(hvp, want.hvp + 50 * s.width, s.width);
        release_guarded();
    }
}

Test(mixture_second, bad_input)
{
    const shape s = variant(SATTN_COVARIANCE_FULL, 0);
    problem x = make_problem(&s);
    const along a = along_of(&x, ROOMY);
    check(FN(sattn_mixture_forward)(&x.p) == SATTN_OK);
    check(FN(sattn_mixture_second)(NULL, a.direction, a.jvp, a.hvp) == SATTN_ENULL);
    check(FN(sattn_mixture_second)(&x.p, NULL, a.jvp, a.hvp) == SATTN_ENULL);
    check(FN(sattn_mixture_second)(&x.p, a.direction, a.jvp, a.direction) == SATTN_EALIAS);
    check(FN(sattn_mixture_second)(&x.p, a.direction, a.direction, a.hvp) == SATTN_EALIAS);
    check(FN(sattn_mixture_second)(&x.p, a.direction, a.hvp, a.hvp) == SATTN_EALIAS);
    check(FN(sattn_mixture_second)(&x.p, a.direction, x.a[OUT].data, NULL) == SATTN_EALIAS);
    check(FN(sattn_mixture_second)(&x.p, a.direction, NULL, x.a[DOUT].data) == SATTN_EALIAS);
    check(FN(sattn_mixture_second)(&x.p, a.direction, x.a[MEAN].data, NULL) == SATTN_EALIAS);
    x.p.stats = NULL;
    check(FN(sattn_mixture_second)(&x.p, a.direction, a.jvp, a.hvp) == SATTN_ENULL);
    x.p.stats = x.a[STATS].data, x.p.width = -1;
    check(FN(sattn_mixture_second)(&x.p, a.direction, a.jvp, a.hvp) == SATTN_ESIZE);
    check(is_untouched(a.jvp, (size_t)(a.queries * a.e) * sizeof(real)));
    check(is_untouched(a.hvp, (size_t)(a.queries * s.width) * sizeof(real)));
    release_guarded();
}
