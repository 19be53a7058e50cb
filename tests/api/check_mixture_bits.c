/* SPDX-License-Identifier: BSD-2-Clause */
/* The same bits from every instruction set, thread count, batch, placement and stride; nothing is
 * touched outside the arguments; what is wrong in one query stays there. */
#include "problem.h"

#include <fenv.h>
#include <stdlib.h>

static const int64_t values_of[] = {0, 0, 7}; /* E of three variants: keys, keys, joint blocks */

static shape variant(int i, int32_t kind)
{
    return (shape){.seed = (uint64_t)(10 * kind + i),
                   .batch = 2,
                   .queries = 97,
                   .components = 70,
                   .kind = kind,
                   .width = 9,
                   .value_width = values_of[i],
                   .cross = i == 2,
                   .reach = 1,
                   .dead = i == 1 ? 0.3 : 0,
                   .shared = i == 2 ? 1u << MEAN | 1u << CROSS : 0};
}

static problem solved(const shape *s)
{
    problem x = make_problem(s);
    solve(&x);
    return x;
}

static void clear(const array *a)
{
    for (int64_t b = 0; a->data && b < a->batch; b++)
        for (int64_t row = 0; row < a->rows; row++)
            memset(cell(a, b, row, 0), 0xff, (size_t)a->cols * sizeof(real));
}

static void check_threads_and_rows(const shape *s)
{
    static const int32_t threads[] = {1, 3, 8};
    sattn_isa_set(SATTN_ISA_SCALAR);
    problem want = make_problem(s);
    want.p.threads = 1;
    solve(&want);
    problem got = make_problem(s);
    const struct criterion_test_params rows = each_row();
    for (size_t i = 0; i < rows.length; i++)
        for (int t = 0; t < 3; t++) {
            sattn_isa_set(((const int32_t *)rows.params)[i]);
            got.p.threads = threads[t];
            for (int output = OUT; output < ARRAYS; output++)
                clear(&got.a[output]);
            solve(&got);
            check_same_arrays(&got, &want, OUT, ARRAYS);
        }
    release_guarded();
}

/* Enough work for a team of threads; few queries and many components, where forward splits windows;
 * many batch entries, where backward works on several at once; two blocks of queries in backward.
 */
Test(mixture_bits, rows_and_threads)
{
    EACH_KIND (kind) {
        const shape shapes[] = {
            variant(0, kind),
            variant(1, kind),
            variant(2, kind),
            {.batch = 1, .queries = 3, .components = 500, .width = 33, .dead = 0.1},
            {.batch = 9,
             .queries = 50,
             .components = 20,
             .width = 12,
             .value_width = 5,
             .cross = 1},
            {.batch = 1, .queries = 200, .components = 1000, .width = 2},
        };
        for (int i = 0; i < 6; i++) {
            shape s = shapes[i];
            s.kind = kind;
            s.reach = 1;
            check_threads_and_rows(&s);
        }
    }
}

/* The host's rounding mode changes no bit, on any thread, and stays. */
EACH_ROW(mixture_bits, roundings)
{
    static const int modes[] = {FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO};
    sattn_isa_set(*isa);
    EACH_KIND (kind) {
        const shape s = variant(2, kind);
        problem want = solved(&s), got = make_problem(&s);
        got.p.threads = 3;
        for (int m = 0; m < 3; m++) {
            fesetround(modes[m]);
            solve(&got);
            const int after = fegetround();
            fesetround(FE_TONEAREST);
            at("kind %d, mode %d", (int)kind, m);
            check(after == modes[m]);
            check_same_arrays(&got, &want, OUT, ARRAYS);
        }
        release_guarded();
    }
}

/* Query q of batch entry b on its own: decode gives the bits of prefill. */
static void check_alone(problem *x, int64_t b, int64_t q)
{
    real out[64], cgf[1], weight[70], dtilt[64], stats[2];
    sattn_mixture one = x->p;
    for (int i = 0; i < INPUTS; i++)
        *pointer_of(&one, i) = x->a[i].data ? cell(&x->a[i], b, 0, 0) : NULL;
    one.batch = one.queries = 1;
    one.tilt = cell(&x->a[TILT], b, q, 0);
    one.dout = cell(&x->a[DOUT], b, q, 0);
    one.dcgf = cell(&x->a[DCGF], b, 0, q);
    one.out = out, one.cgf = cgf, one.weight = weight, one.dtilt = dtilt, one.stats = stats;
    one.dlog_weight = one.dmean = one.dcovariance = one.dvalue_mean = one.dcross = NULL;
    check(FN(sattn_mixture_forward)(&one) == SATTN_OK);
    check(FN(sattn_mixture_backward)(&one) == SATTN_OK);
    check_same(out, cell(&x->a[OUT], b, q, 0), x->a[OUT].cols);
    check_same(cgf, cell(&x->a[CGF], b, 0, q), 1);
    check_same(weight, cell(&x->a[WEIGHT], b, q, 0), x->a[WEIGHT].cols);
    check_same(dtilt, cell(&x->a[DTILT], b, q, 0), x->a[DTILT].cols);
}

EACH_ROW(mixture_bits, one_query_alone)
{
    sattn_isa_set(*isa);
    EACH_KIND (kind)
        for (int i = 0; i < 3; i++) {
            const shape s = variant(i, kind);
            problem x = solved(&s);
            for (int64_t q = 0; q < s.queries; q += 5)
                check_alone(&x, q % 2, q);
            release_guarded();
        }
}

/* So wide that the products of a query alone go along the rows of the matrices */
EACH_ROW(mixture_bits, wide_query_alone)
{
    sattn_isa_set(*isa);
    EACH_KIND (kind)
        for (int64_t value_width = 0; value_width <= 35; value_width += 35) {
            problem x = solved(&(shape){.seed = 3,
                                        .batch = 2,
                                        .queries = 49,
                                        .components = 19,
                                        .kind = kind,
                                        .width = 37,
                                        .value_width = value_width,
                                        .cross = 1,
                                        .reach = 0.5});
            for (int64_t q = 0; q < 49; q += 16)
                check_alone(&x, q % 2, q);
            release_guarded();
        }
}

EACH_ROW(mixture_bits, strides)
{
    sattn_isa_set(*isa);
    EACH_KIND (kind)
        for (int i = 0; i < 3; i++) {
            shape s = variant(i, kind);
            problem want = solved(&s);
            for (s.gap = 1; s.gap <= 6; s.gap += 5) {
                problem got = solved(&s);
                check_same_arrays(&got, &want, OUT, ARRAYS);
            }
            release_guarded();
        }
}

/* Query-major arrays: [M][B][...] instead of [B][M][...] */
static problem transposed(const problem *x)
{
    problem t = make_problem(&x->shape);
    int64_t *const strides[][2] = {{&t.p.tilt_batch, &t.p.tilt_row},
                                   {&t.p.dout_batch, &t.p.dout_row},
                                   {&t.p.out_batch, &t.p.out_row},
                                   {&t.p.weight_batch, &t.p.weight_row},
                                   {&t.p.dtilt_batch, &t.p.dtilt_row}};
    static const int arrays[] = {TILT, DOUT, OUT, WEIGHT, DTILT};
    for (int i = 0; i < 5; i++) {
        array *a = &t.a[arrays[i]];
        *strides[i][0] = a->batch_stride = a->cols;
        *strides[i][1] = a->row_stride = a->cols * a->batch;
        for (int64_t b = 0; arrays[i] < INPUTS && b < a->batch; b++)
            for (int64_t row = 0; row < a->rows; row++)
                memcpy(cell(a, b, row, 0), cell(&x->a[arrays[i]], b, row, 0),
                       (size_t)a->cols * sizeof(real));
    }
    return t;
}

EACH_ROW(mixture_bits, query_major)
{
    sattn_isa_set(*isa);
    EACH_KIND (kind)
        for (int i = 0; i < 3; i++) {
            const shape s = variant(i, kind);
            const problem want = solved(&s), got = transposed(&want);
            check(FN(sattn_mixture_forward)(&got.p) == SATTN_OK);
            check(FN(sattn_mixture_backward)(&got.p) == SATTN_OK);
            check_same_arrays(&got, &want, OUT, ARRAYS);
            check_guarded();
            release_guarded();
        }
}

/* One parameter for the whole batch equals copies of it. */
EACH_ROW(mixture_bits, broadcast)
{
    sattn_isa_set(*isa);
    EACH_KIND (kind)
        for (int i = 0; i < 3; i++) {
            shape s = variant(i, kind);
            s.shared = ALL_PARAMETERS;
            problem want = solved(&s);
            s.shared = 0;
            problem got = make_problem(&s);
            for (int input = LOG_WEIGHT; input <= CROSS; input++)
                for (int64_t b = 0; got.a[input].data && b < s.batch; b++)
                    memcpy(cell(&got.a[input], b, 0, 0), want.a[input].data,
                           (size_t)got.a[input].cols * sizeof(real));
            solve(&got);
            check_same_arrays(&got, &want, OUT, DLOG_WEIGHT);
            release_guarded();
        }
}

/* A row stride of 0 asks the same query M times. */
EACH_ROW(mixture_bits, repeated_query)
{
    sattn_isa_set(*isa);
    const shape s = variant(0, SATTN_COVARIANCE_FULL);
    problem x = make_problem(&s);
    x.p.tilt_row = 0;
    check(FN(sattn_mixture_forward)(&x.p) == SATTN_OK);
    for (int64_t q = 1; q < s.queries; q++)
        check_same(cell(&x.a[OUT], 1, q, 0), cell(&x.a[OUT], 1, 0, 0), s.width);
    release_guarded();
}

/* Arrays against an inaccessible page on either side, at odd addresses */
static void check_placement(const shape *roomy)
{
    const problem want = solved(roomy);
    shape s = *roomy;
    for (s.side = ENDS; s.side <= BEGINS; s.side = (placement)(s.side + 1))
        for (s.offset = 0; s.offset < 2; s.offset++) {
            const problem got = solved(&s);
            check_same_arrays(&got, &want, OUT, ARRAYS);
        }
    s.side = ROOMY;
    const problem got = solved(&s);
    check_same_arrays(&got, &want, OUT, ARRAYS);
    release_guarded();
}

EACH_ROW(mixture_bits, guard_pages)
{
    static const int64_t components[] = {1, 5, 17}, queries[] = {1, 47, 48, 49, 97};
    rng r = seed_of(8);
    sattn_isa_set(*isa);
    for (int64_t d = 1; d <= 33; d++)
        EACH_KIND (kind) {
            const int joint = (int)random_below(&r, 3);
            check_placement(&(shape){.seed = (uint64_t)d,
                                     .batch = 1,
                                     .kind = kind,
                                     .width = d,
                                     .reach = 1,
                                     .queries = queries[(d + kind) % 5],
                                     .cross = joint == 2,
                                     .components = components[random_below(&r, 3)],
                                     .value_width = joint ? 1 + random_below(&r, 33) : 0,
                                     .gap = random_below(&r, 2)});
        }
}

/* One query of one array, whatever its shape: *n numbers */
static const real *of_query(const problem *x, int i, int64_t b, int64_t q, int64_t *n)
{
    const int by_column = x->a[i].rows == 1 && x->shape.queries > 1;
    *n = by_column ? 1 : x->a[i].cols;
    return cell(&x->a[i], b, by_column ? 0 : q, by_column ? q : 0);
}

/* A NaN (or an infinity) in query `bad` makes that query's outputs NaN and no others; of backward,
 * a NaN in its dout its dtilt alone. */
static void check_bad_query(problem *x, const problem *want, int input, int64_t bad, real value)
{
    real *spot = cell(&x->a[input], 1, bad, bad % x->a[input].cols), before = *spot;
    *spot = value;
    solve(x);
    *spot = before;
    for (int i = input == TILT ? OUT : DTILT; i < DLOG_WEIGHT; i++)
        for (int64_t b = 0; b < x->shape.batch; b++)
            for (int64_t q = 0, n; q < x->shape.queries; q++) {
                const real *got = of_query(x, i, b, q, &n);
                if (b != 1 || q != bad)
                    check_same_of(array_names[i], got, of_query(want, i, b, q, &n), n,
                                  sizeof(real));
                else
                    for (int64_t k = 0; i != STATS && k < n; k++)
                        cr_assert(isnan(got[k]), "%s of query %d is %g, %s", array_names[i], (int)q,
                                  (double)got[k], where());
            }
}

EACH_ROW(mixture_bits, bad_query)
{
    sattn_isa_set(*isa);
    EACH_KIND (kind)
        for (int i = 0; i < 3; i += 2) {
            shape s = variant(i, kind);
            s.components = 5;
            s.queries = 51;
            problem want = solved(&s), x = make_problem(&s);
            for (int64_t bad = 0; bad < s.queries; bad++) {
                check_bad_query(&x, &want, TILT, bad, (real)NAN);
                check_bad_query(&x, &want, TILT, bad, (real)INFINITY);
                check_bad_query(&x, &want, DOUT, bad, (real)NAN);
            }
            release_guarded();
        }
}

/* Finite problems, dead components and empty mixtures leave no INVALID, DIVBYZERO or OVERFLOW
 * behind. */
EACH_ROW(mixture_bits, flags)
{
    sattn_isa_set(*isa);
    EACH_KIND (kind)
        for (int i = 0; i < 3; i++)
            for (int empty = 0; empty < 2; empty++) {
                shape s = variant(i, kind);
                s.queries = 49 + i;
                s.dead = empty ? 1 : 0.3;
                problem x = make_problem(&s);
                x.p.threads = 1;
                feclearexcept(FE_ALL_EXCEPT);
                check(FN(sattn_mixture_forward)(&x.p) == SATTN_OK);
                check(FN(sattn_mixture_backward)(&x.p) == SATTN_OK);
                check(!fetestexcept(FE_INVALID | FE_DIVBYZERO | FE_OVERFLOW));
                release_guarded();
            }
}
