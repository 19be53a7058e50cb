/* SPDX-License-Identifier: BSD-2-Clause */
/* Outputs and gradients of random problems against the long double oracle, each within the error
 * bound that the oracle carries along; and the gradients against slopes of the forward pass. */
#include "problem.h"

static const int64_t queries[] = {1, 2, 5, 17, 47, 48, 49, 97};
static const int64_t components[] = {1, 2, 3, 5, 17, 63, 64, 65, 130};

#define PICK(r, list) (list[random_below(r, (int64_t)(sizeof(list) / sizeof(list[0])))])

static shape random_shape(uint64_t seed)
{
    rng r = seed_of(seed);
    shape s = {.seed = seed, .batch = 1 + random_below(&r, 3), .queries = PICK(&r, queries)};
    s.components = PICK(&r, components);
    s.kind = (int32_t)random_below(&r, KINDS);
    s.width = 1 + random_below(&r, 12);
    s.value_width = random_below(&r, 2) ? 1 + random_below(&r, 12) : 0;
    s.cross = (int)random_below(&r, 2);
    s.shared = (unsigned)random_bits(&r) & ALL_PARAMETERS;
    s.gap = random_below(&r, 4);
    s.reach = random_below(&r, 4) ? 1 : 4;
    s.dead = random_below(&r, 2) ? 0.3 : 0;
    return s;
}

static void check_shape(const shape *s)
{
    problem x = make_problem(s);
    solve(&x);
    check_against_oracle(&x);
    release_guarded();
}

EACH_ROW(mixture_oracle, random)
{
    sattn_isa_set(*isa);
    for (uint64_t seed = 1; seed <= 60; seed++) {
        const shape s = random_shape(seed);
        if (is_left_out((int64_t)seed))
            continue;
        check_shape(&s);
    }
}

/* Wide heads, where a batch of keys holds few components or one, and the merge of windows */
EACH_ROW(mixture_oracle, wide)
{
    static const int64_t widths[][2] = {{33, 0}, {64, 0}, {63, 9}, {8, 130}, {1, 65}};
    sattn_isa_set(*isa);
    for (int i = 0; i < 5; i += is_left_out(1) ? 2 : 1)
        EACH_KIND (kind) {
            const shape s = {.seed = (uint64_t)i,
                             .batch = 1,
                             .queries = 3,
                             .components = 70,
                             .kind = kind,
                             .width = widths[i][0],
                             .value_width = widths[i][1],
                             .cross = kind != 1,
                             .reach = 0.5,
                             .dead = i == 2 ? 0.4 : 0};
            check_shape(&s);
        }
}

/* Several blocks of queries in backward, each of at least 192 */
EACH_ROW(mixture_oracle, many_queries)
{
    sattn_isa_set(*isa);
    EACH_KIND (kind)
        for (int64_t value_width = 0; value_width <= 3; value_width += 3) {
            const shape s = {.seed = 5,
                             .batch = 2,
                             .queries = 1000,
                             .components = 3,
                             .kind = kind,
                             .width = 4,
                             .value_width = value_width,
                             .cross = 1,
                             .reach = 1,
                             .shared = kind == 2 ? ALL_PARAMETERS : 0};
            check_shape(&s);
        }
}

/* <dout, out> + <dcgf, cgf> */
static double objective(problem *x)
{
    double sum = 0;
    check(FN(sattn_mixture_forward)(&x->p) == SATTN_OK);
    for (int64_t b = 0; b < x->shape.batch; b++)
        for (int64_t q = 0; q < x->shape.queries; q++) {
            sum += (double)*cell(&x->a[DCGF], b, 0, q) * (double)*cell(&x->a[CGF], b, 0, q);
            for (int64_t i = 0; i < x->a[OUT].cols; i++)
                sum += (double)*cell(&x->a[DOUT], b, q, i) * (double)*cell(&x->a[OUT], b, q, i);
        }
    return sum;
}

/* The slope when an input moves, a covariance together with its mirror image. Off by h^2 times a
 * third derivative, about 30 here, and by a few EPS / h. */
static void check_slope(problem *x, int input, int64_t b, int64_t row, int64_t col, double gradient)
{
    const int64_t d = x->shape.width, ij = col % (d * d);
    const int full = input == COVARIANCE && x->shape.kind % SHARED == SATTN_COVARIANCE_FULL;
    const int64_t mirror = full ? col - ij + ij % d * d + ij / d : col;
    const double h = sizeof(real) == 4 ? 0x1p-8 : 0x1p-18, bound = 30 * h * h + 60 * EPS / h;
    real *one = cell(&x->a[input], b, row, col);
    real *two = cell(&x->a[input], b, row, mirror);
    const real before = *one;
    if (isnan(before)) { /* above the diagonal of a factor */
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

EACH_ROW(mixture_oracle, slopes)
{
    static const int pairs[][2] = {{TILT, DTILT},
                                   {LOG_WEIGHT, DLOG_WEIGHT},
                                   {MEAN, DMEAN},
                                   {COVARIANCE, DCOVARIANCE},
                                   {VALUE_MEAN, DVALUE_MEAN},
                                   {CROSS, DCROSS}};
    sattn_isa_set(*isa);
    EACH_KIND (kind)
        for (int64_t value_width = 0; value_width <= 2; value_width += 2) {
            problem x = make_problem(&(shape){.seed = 7,
                                              .batch = 2,
                                              .queries = 3,
                                              .components = 3,
                                              .kind = kind,
                                              .width = 3,
                                              .value_width = value_width,
                                              .cross = 1,
                                              .reach = 1,
                                              .shared = 1u << MEAN});
            solve(&x);
            for (int i = 0; i < 6; i++) {
                const array *g = &x.a[pairs[i][1]];
                for (int64_t b = 0; g->data && b < g->batch; b++)
                    for (int64_t k = 0; k < g->rows * g->cols; k++)
                        check_slope(&x, pairs[i][0], b, k / g->cols, k % g->cols,
                                    *cell(g, b, k / g->cols, k % g->cols));
            }
            release_guarded();
        }
}
