/* SPDX-License-Identifier: BSD-2-Clause */
/* Which outputs are asked for, accumulation, the caller's workspace. */
#include "problem.h"

static const int64_t joint[] = {0, 3};

static shape small(int32_t kind, int i)
{
    return (shape){.seed = (uint64_t)kind,
                   .batch = 2,
                   .queries = 50,
                   .components = 4,
                   .kind = kind,
                   .width = 5,
                   .value_width = joint[i],
                   .cross = 1,
                   .reach = 1,
                   .shared = 1u << LOG_WEIGHT};
}

/* Any set of outputs: those asked for have the bits they always have. */
static void check_subset(const problem *want, unsigned set)
{
    problem x = make_problem(&want->shape);
    for (int i = OUT; i < ARRAYS; i++)
        if (set >> (i - OUT) & 1) {
            *pointer_of(&x.p, i) = NULL;
            x.a[i].data = NULL;
        }
    const int can_go_back = x.p.out && x.p.stats;
    check(FN(sattn_mixture_forward)(&x.p) == SATTN_OK);
    if (can_go_back)
        check(FN(sattn_mixture_backward)(&x.p) == SATTN_OK);
    check_same_arrays(&x, want, OUT, can_go_back ? ARRAYS : DTILT);
    check_guarded();
}

EACH_ROW(mixture_options, subsets)
{
    sattn_isa_set(*isa);
    EACH_KIND (kind)
        for (int i = 0; i < 2; i++) {
            const shape s = small(kind, i);
            for (unsigned set = 0; set < 1u << (ARRAYS - OUT); set += set < 16 ? 1 : 16) {
                problem want = make_problem(&s);
                solve(&want);
                check_subset(&want, set);
                release_guarded();
            }
        }
}

/* A cotangent of NULL is a cotangent of zeros, X of NULL a matrix of zeros: what the oracle is
 * given. */
EACH_ROW(mixture_options, absent_inputs)
{
    static const int absent[] = {DOUT, DCGF, CROSS};
    sattn_isa_set(*isa);
    EACH_KIND (kind)
        for (int i = 0; i < 2; i++)
            for (int k = 0; k < 3 - !i; k++) {
                const shape s = small(kind, i);
                problem x = make_problem(&s);
                const array *a = &x.a[absent[k]];
                for (int64_t b = 0; b < a->batch; b++)
                    for (int64_t row = 0; row < a->rows; row++)
                        memset(cell(a, b, row, 0), 0, (size_t)a->cols * sizeof(real));
                *pointer_of(&x.p, absent[k]) = NULL;
                if (absent[k] == CROSS)
                    x.p.dcross = NULL, x.a[DCROSS].data = NULL;
                solve(&x);
                check_against_oracle(&x);
                release_guarded();
            }
}

/* With ACCUMULATE a gradient is what was there plus what is written without; one more rounding. */
EACH_ROW(mixture_options, accumulate)
{
    sattn_isa_set(*isa);
    EACH_KIND (kind)
        for (int i = 0; i < 2; i++) {
            shape s = small(kind, i);
            s.shared = 0;
            problem want = make_problem(&s), x = make_problem(&s);
            solve(&want);
            x.p.flags |= SATTN_ACCUMULATE;
            for (int k = DTILT; k < ARRAYS; k++)
                for (int64_t b = 0; x.a[k].data && b < s.batch; b++)
                    for (int64_t row = 0; row < x.a[k].rows; row++)
                        for (int64_t col = 0; col < x.a[k].cols; col++)
                            *cell(&x.a[k], b, row, col) = 3;
            solve(&x);
            check_same_arrays(&x, &want, OUT, DTILT);
            for (int k = DTILT; k < ARRAYS; k++)
                for (int64_t b = 0; x.a[k].data && b < s.batch; b++)
                    for (int64_t row = 0; row < x.a[k].rows; row++)
                        for (int64_t col = 0; col < x.a[k].cols; col++) {
                            const double g = *cell(&want.a[k], b, row, col);
                            check_near(array_names[k], col, *cell(&x.a[k], b, row, col), 3 + g,
                                       8 * EPS * (3 + fabs(g)));
                        }
            release_guarded();
        }
}

/* The caller's workspace: the size that was asked for suffices, against a guard page; a byte less
 * or an odd address is refused. */
EACH_ROW(mixture_options, workspace)
{
    sattn_isa_set(*isa);
    EACH_KIND (kind)
        for (int i = 0; i < 2; i++)
            for (int32_t threads = 1; threads <= 3; threads++) {
                shape s = small(kind, i);
                s.queries = 200, s.components = 70;
                problem want = make_problem(&s), x = make_problem(&s);
                int64_t bytes = 0;
                solve(&want);
                x.p.threads = threads;
                check(FN(sattn_mixture_workspace)(&x.p, &bytes) == SATTN_OK && bytes > 0);
                x.p.work_bytes = bytes = (bytes + 63) / 64 * 64;
                x.p.work = guarded((size_t)bytes, ENDS, 0);
                solve(&x);
                check_same_arrays(&x, &want, OUT, ARRAYS);
                x.p.work_bytes = 64;
                check(FN(sattn_mixture_forward)(&x.p) == SATTN_EWORKSPACE);
                check(FN(sattn_mixture_backward)(&x.p) == SATTN_EWORKSPACE);
                x.p.work_bytes = bytes - 8;
                x.p.work = (char *)x.p.work + 8;
                check(FN(sattn_mixture_forward)(&x.p) == SATTN_EWORKSPACE);
                check_same_arrays(&x, &want, OUT, ARRAYS);
                release_guarded();
            }
}
