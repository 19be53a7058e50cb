/* SPDX-License-Identifier: BSD-2-Clause */
/* The same bits from every instruction set, thread count, batch, placement and stride; nothing is
 * touched outside the arguments; what a query must not see does not reach it. */
#include "attend.h"

#include <fenv.h>

static const attend_shape variants[] = {
    {.batch = 2,
     .heads = 4,
     .key_heads = 2,
     .queries = 50,
     .keys = 130,
     .width = 9,
     .value_width = 7},
    {.batch = 1,
     .heads = 1,
     .key_heads = 1,
     .queries = 3,
     .keys = 6000,
     .width = 20,
     .value_width = 5},
    {.batch = 1,
     .heads = 2,
     .key_heads = 1,
     .queries = 300,
     .keys = 1200,
     .width = 8,
     .value_width = 17,
     .right = 1,
     .diagonal = SATTN_BOTTOM_RIGHT},
    {.batch = 3,
     .heads = 2,
     .key_heads = 2,
     .queries = 60,
     .keys = 150,
     .width = 5,
     .value_width = 6,
     .softcap = 2,
     .bias = 1,
     .mask = 1,
     .sink = 1,
     .slope = 1,
     .repeat = 3,
     .lengths = 1,
     .dead = 0.5},
    {.batch = 3,
     .heads = 2,
     .key_heads = 1,
     .queries = 100,
     .keys = 90,
     .width = 33,
     .value_width = 16,
     .right = 1,
     .lengths = 2,
     .bias = 1,
     .repeat = 1,
     .dead = 0.2},
};
enum { VARIANTS = sizeof variants / sizeof variants[0] };

static attend_shape variant(int i)
{
    attend_shape s = variants[i];
    s.seed = (uint64_t)i;
    s.scale = 0.4;
    s.reach = 1;
    s.left = i == 2 ? 700 : -1;
    s.right = s.right - 1;
    return s;
}

static attend solved(const attend_shape *s)
{
    attend x = make_attend(s);
    solve_attend(&x);
    return x;
}

static void clear(const attend_array *a)
{
    if (a->data)
        memset(a->data, 0xff, (size_t)a->extent * sizeof(real));
}

Test(attention_bits, rows_and_threads)
{
    static const int32_t threads[] = {1, 2, 3, 8};
    const struct criterion_test_params rows = each_row();
    for (int v = 0; v < VARIANTS; v++) {
        const attend_shape s = variant(v);
        sattn_isa_set(SATTN_ISA_SCALAR);
        attend want = make_attend(&s);
        want.p.threads = 1;
        solve_attend(&want);
        attend got = make_attend(&s);
        for (size_t i = 0; i < rows.length; i++)
            for (int t = 0; t < 4; t++) {
                sattn_isa_set(((const int32_t *)rows.params)[i]);
                got.p.threads = threads[t];
                for (int output = OUT; output < ARRAYS; output++)
                    clear(&got.a[output]);
                solve_attend(&got);
                check_same_attend(&got, &want, OUT, ARRAYS);
            }
        release_guarded();
    }
}

EACH_ROW(attention_bits, roundings)
{
    static const int modes[] = {FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO};
    sattn_isa_set(*isa);
    const attend_shape s = variant(3);
    attend want = solved(&s), got = make_attend(&s);
    got.p.threads = 3;
    for (int m = 0; m < 3; m++) {
        fesetround(modes[m]);
        solve_attend(&got);
        const int after = fegetround();
        fesetround(FE_TONEAREST);
        check(after == modes[m]);
        check_same_attend(&got, &want, OUT, ARRAYS);
    }
    release_guarded();
}

EACH_ROW(attention_bits, placements)
{
    static const placement sides[] = {ENDS, BEGINS, ROOMY};
    sattn_isa_set(*isa);
    for (int v = 0; v < VARIANTS; v++) {
        attend_shape s = variant(v);
        attend want = solved(&s);
        for (int i = 0; i < 9; i++) {
            s.side = sides[i % 3];
            s.layout = i / 3;
            s.gap = i % 4;
            s.offset = (size_t)(s.side == ROOMY);
            attend got = solved(&s);
            check_same_attend(&got, &want, OUT, ARRAYS);
        }
        release_guarded();
    }
}

/* Guard pages at small and odd sizes */
EACH_ROW(attention_bits, guards)
{
    static const int64_t sizes[] = {1, 7, 31, 63, 65};
    sattn_isa_set(*isa);
    for (int64_t width = 1; width <= 33; width++)
        for (int i = 0; i < 5 && !is_left_out(width); i++)
            for (int side = ENDS; side <= BEGINS; side++) {
                attend_shape s = {.seed = 1,
                                  .batch = 1,
                                  .heads = 1,
                                  .key_heads = 1,
                                  .queries = sizes[i],
                                  .keys = sizes[(i + width) % 5],
                                  .width = width,
                                  .value_width = 34 - width,
                                  .scale = 1,
                                  .left = -1,
                                  .right = -1,
                                  .reach = 1};
                attend want = solved(&s);
                s.side = (placement)side;
                attend got = solved(&s);
                check_same_attend(&got, &want, OUT, ARRAYS);
                release_guarded();
            }
}

/* A query on its own, as decode has it, gives the bits that it has inside its batch. */
EACH_ROW(attention_bits, alone)
{
    sattn_isa_set(*isa);
    const attend_shape s = variant(0);
    attend x = solved(&s);
    for (int64_t b = 0; b < s.batch; b++)
        for (int64_t h = 0; h < s.heads; h++)
            for (int64_t m = 0; m < s.queries; m += 7) {
                real out[7], stats[2];
                sattn_attention one = x.p;
                one.batch = one.heads = one.key_heads = one.queries = 1;
                one.q.data = attend_cell(&x, Q, b, h, m, 0);
                one.k.data = attend_cell(&x, K, b, h / 2, 0, 0);
                one.v.data = attend_cell(&x, V, b, h / 2, 0, 0);
                one.out = (sattn_output){out, 0, 0, 0, 1};
                one.stats = (sattn_output){stats, 0, 0, 0, 1};
                one.lse.data = NULL;
                at("b %d h %d m %d", (int)b, (int)h, (int)m);
                check(FN(sattn_attention_forward)(&one) == SATTN_OK);
                for (int64_t i = 0; i < 7; i++)
                    check_same(&out[i], attend_cell(&x, OUT, b, h, m, i), 1);
                check_same(stats, attend_cell(&x, STATS, b, h, m, 0), 2);
            }
    release_guarded();
}

/* Keys and values that some queries must not see hold NaN and infinities: those that may see them
 * are the only ones to notice, forward and backward. */
EACH_ROW(attention_bits, poison)
{
    static const double poisons[] = {NAN, INFINITY, -INFINITY};
    sattn_isa_set(*isa);
    for (int form = 0; form < 3; form++) /* causal, a mask, a bias of -inf */
        for (int i = 0; i < 3; i++) {
            const attend_shape s = {.seed = 5,
                                    .batch = 1,
                                    .heads = 1,
                                    .key_heads = 1,
                                    .queries = 100,
                                    .keys = 100,
                                    .width = 9,
                                    .value_width = 6,
                                    .scale = 0.5,
                                    .left = -1,
                                    .right = form == 0 ? 0 : -1,
                                    .mask = form == 1,
                                    .bias = form == 2,
                                    .reach = 1};
            enum { BAD = 70 }; /* this key, seen by queries from 70 on alone */
            attend clean = make_attend(&s), got = make_attend(&s);
            for (int j = 0; j < 2; j++)
                for (int64_t m = 0; m < BAD; m++) {
                    attend *x = j ? &got : &clean;
                    if (form == 1)
                        x->mask[m * 100 + BAD] = 0;
                    if (form == 2)
                        *attend_cell(x, BIAS, 0, 0, m, BAD) = -(real)INFINITY;
                }
            for (int64_t d = 0; d < 9; d++)
                *attend_cell(&got, K, 0, 0, BAD, d) = (real)poisons[i];
            for (int64_t e = 0; e < 6; e++)
                *attend_cell(&got, V, 0, 0, BAD, e) = (real)poisons[i];
            solve_attend(&clean);
            solve_attend(&got);
            at("form %d poison %g", form, poisons[i]);
            for (int64_t m = 0; m < BAD; m++) {
                for (int64_t e = 0; e < 6; e++)
                    check_same(attend_cell(&got, OUT, 0, 0, m, e),
                               attend_cell(&clean, OUT, 0, 0, m, e), 1);
                for (int64_t d = 0; d < 9; d++)
                    check_same(attend_cell(&got, DQ, 0, 0, m, d),
                               attend_cell(&clean, DQ, 0, 0, m, d), 1);
            }
            check(isnan(*attend_cell(&got, OUT, 0, 0, 99, 0)) || poisons[i] == -INFINITY);
            release_guarded();
        }
}

/* A cotangent that is not finite stays with the keys that its query sees. */
EACH_ROW(attention_bits, poisoned_cotangent)
{
    sattn_isa_set(*isa);
    const attend_shape s = {.seed = 6,
                            .batch = 1,
                            .heads = 1,
                            .key_heads = 1,
                            .queries = 60,
                            .keys = 60,
                            .width = 5,
                            .value_width = 4,
                            .scale = 1,
                            .left = -1,
                            .right = 0,
                            .reach = 1};
    attend clean = solved(&s), got = make_attend(&s);
    *attend_cell(&got, DOUT, 0, 0, 20, 1) = (real)NAN;
    solve_attend(&got);
    for (int64_t n = 0; n < 60; n++)
        for (int64_t d = 0; d < 5; d++) {
            const real dk = *attend_cell(&got, DK, 0, 0, n, d);
            at("key %d", (int)n);
            check(n > 20 ? dk == *attend_cell(&clean, DK, 0, 0, n, d) : isnan(dk));
        }
    release_guarded();
}
