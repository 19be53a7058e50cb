/* SPDX-License-Identifier: BSD-2-Clause */
/* The limit of linear attention on a mixture: a known answer, its gradients as slopes, the same
 * bits on every row and for any number of threads, absent and bad arguments. */
#include "../golden.h"
#include "problem.h"
#include "sattn/prompt.h"

/* V M u of V = [1, 2; -1, .5] */
EACH_ROW(mixture_linear, golden)
{
    static const double want[] = {9.1785, 2.91275, 1.524, 1.13475, 0, 0};
    real log_weight[3], mean[6], s[12], u[6], out[6];
    sattn_mixture p;
    sattn_isa_set(*isa);
    at("isa %d", (int)*isa);
    for (int i = 0; i < 12; i++)
        s[i] = (real)golden.covariance[i];
    for (int i = 0; i < 6; i++)
        mean[i] = (real)golden.mean[i], u[i] = (real)golden.tilt[i];
    for (int i = 0; i < 3; i++)
        log_weight[i] = (real)golden_log_weight()[i];
    check(sattn_mixture_init(&p, sizeof p, 1, 3, 3, 2, 0, SATTN_COVARIANCE_FULL) == SATTN_OK);
    p.log_weight = log_weight, p.mean = mean, p.covariance = s, p.tilt = u, p.out = out;
    check(FN(sattn_mixture_linear_forward)(&p) == SATTN_OK);
    for (int q = 0; q < 3; q++) {
        const double x = out[2 * q], y = out[2 * q + 1], near_it = sizeof(real) == 4 ? 5e-6 : 1e-13;
        check_near("V M u", 2 * q, x + 2 * y, want[2 * q], near_it * 10);
        check_near("V M u", 2 * q + 1, y / 2 - x, want[2 * q + 1], near_it * 10);
    }
}

static problem make(int32_t kind, int64_t value_width)
{
    return make_problem(&(shape){.seed = (uint64_t)kind,
                                 .batch = 2,
                                 .queries = 5,
                                 .components = 4,
                                 .width = 3,
                                 .kind = kind,
                                 .value_width = value_width,
                                 .cross = kind % 2,
                                 .gap = kind % 3,
                                 .dead = 0.2,
                                 .reach = 1,
                                 .shared = kind % 4 == 1 ? ALL_PARAMETERS : 0});
}

static void solve_linear(problem *x)
{
    check(FN(sattn_mixture_linear_forward)(&x->p) == SATTN_OK);
    check(FN(sattn_mixture_linear_backward)(&x->p) == SATTN_OK);
    check_gaps(x);
}

static double objective(problem *x)
{
    double sum = 0;
    check(FN(sattn_mixture_linear_forward)(&x->p) == SATTN_OK);
    for (int64_t b = 0; b < x->shape.batch; b++)
        for (int64_t q = 0; q < x->shape.queries; q++)
            for (int64_t i = 0; i < x->a[OUT].cols; i++)
                sum += (double)*cell(&x->a[DOUT], b, q, i) * (double)*cell(&x->a[OUT], b, q, i);
    return sum;
}

/* The objective is quadratic in the means and in factors, linear in the rest but exp log pi. */
static void check_slope(problem *x, int input, int64_t b, int64_t row, int64_t col, double gradient)
{
    const int64_t d = x->shape.width, ij = col % (d * d);
    const int full = input == COVARIANCE && x->shape.kind % SHARED == SATTN_COVARIANCE_FULL;
    const int64_t mirror = full ? col - ij + ij % d * d + ij / d : col;
    const double h = sizeof(real) == 4 ? 0x1p-6 : 0x1p-18, bound = 30 * h * h + 300 * EPS / h;
    real *one = cell(&x->a[input], b, row, col);
    real *two = cell(&x->a[input], b, row, mirror);
    const real before = *one;
    if (!isfinite(before)) { /* a dead component, or above the diagonal of a factor */
        check(gradient == 0);
        return;
    }
    *one = *two = before + (real)h;
    double difference = objective(x), step = (double)*one;
    *one = *two = before - (real)h;
    difference -= objective(x);
    step -= (double)*one;
    *one = *two = before;
    check_near(array_names[input], col, difference / step, (one == two ? 1 : 2) * gradient, bound);
}

EACH_ROW(mixture_linear, slopes)
{
    sattn_isa_set(*isa);
    EACH_KIND (kind)
        for (int64_t value_width = 0; value_width <= 2; value_width += 2) {
            problem x = make(kind, value_width);
            x.p.stats = NULL, x.p.cgf = NULL, x.p.weight = NULL, x.p.dcgf = NULL;
            solve_linear(&x);
            for (int i = DTILT; i < ARRAYS; i++) {
                const array *g = &x.a[i];
                const int input = i == DTILT ? TILT : i - DLOG_WEIGHT + LOG_WEIGHT;
                for (int64_t b = 0; g->data && b < g->batch; b++)
                    for (int64_t k = 0; k < g->rows * g->cols; k++)
                        check_slope(&x, input, b, k / g->cols, k % g->cols,
                                    *cell(g, b, k / g->cols, k % g->cols));
            }
            release_guarded();
        }
}

/* Added to what is there: once more the same, up to a rounding; without dout, nothing. */
Test(mixture_linear, accumulate_and_bits)
{
    EACH_KIND (kind) {
        problem want = make(kind, kind % 2 * 2), x = make(kind, kind % 2 * 2);
        sattn_isa_set(SATTN_ISA_SCALAR);
        solve_linear(&want);
        const struct criterion_test_params rows = each_row();
        for (size_t i = 0; i < rows.length; i++) {
            sattn_isa_set(((const int32_t *)rows.params)[i]);
            x.p.flags &= ~SATTN_ACCUMULATE;
            x.p.threads = 3;
            solve_linear(&x);
            check_same_arrays(&x, &want, OUT, STATS);
            check_same_arrays(&x, &want, DTILT, ARRAYS);
            x.p.flags |= SATTN_ACCUMULATE;
            x.p.dout = NULL;
            solve_linear(&x);
            check_same_arrays(&x, &want, DTILT, ARRAYS);
            x.p.dout = x.a[DOUT].data;
            solve_linear(&x);
            for (int k = DTILT; k < ARRAYS; k++)
                for (int64_t j = 0; x.a[k].data && j < x.a[k].cols; j++)
                    check_near(array_names[k], j, *cell(&x.a[k], 0, 0, j),
                               2 * (double)*cell(&want.a[k], 0, 0, j), 100 * EPS);
        }
        release_guarded();
    }
}

Test(mixture_linear, bad_input)
{
    problem x = make(SATTN_COVARIANCE_FULL, 0);
    at("bad input");
    check(FN(sattn_mixture_linear_forward)(NULL) == SATTN_ENULL);
    check(FN(sattn_mixture_linear_backward)(NULL) == SATTN_ENULL);
    x.p.mean = NULL;
    check(FN(sattn_mixture_linear_forward)(&x.p) == SATTN_ENULL);
    check(FN(sattn_mixture_linear_backward)(&x.p) == SATTN_ENULL);
    x.p.mean = x.a[MEAN].data, x.p.dtilt = x.a[MEAN].data;
    check(FN(sattn_mixture_linear_backward)(&x.p) == SATTN_EALIAS);
    x.p.dtilt = x.a[DTILT].data, x.p.width = -1;
    check(FN(sattn_mixture_linear_forward)(&x.p) == SATTN_ESIZE);
    for (int i = OUT; i < ARRAYS; i++)
        check(!x.a[i].data || is_untouched(x.a[i].data, sizeof(real)));
    release_guarded();
}
