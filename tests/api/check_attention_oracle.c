/* SPDX-License-Identifier: BSD-2-Clause */
/* Outputs and gradients of random problems against the long double oracle, each within the error
 * bound that the oracle carries along; and the gradients against slopes of the forward pass. */
#include "attend.h"

static const int64_t queries[] = {1, 2, 5, 17, 47, 48, 49, 97};
static const int64_t keys[] = {1, 2, 7, 31, 63, 64, 65, 130, 200};
static const int64_t widths[] = {1, 2, 3, 8, 15, 16, 17, 33};

#define PICK(r, list) (list[random_below(r, (int64_t)(sizeof(list) / sizeof(list[0])))])

static attend_shape random_shape(uint64_t seed)
{
    rng r = seed_of(seed);
    attend_shape s = {.seed = seed, .batch = 1 + random_below(&r, 3)};
    s.key_heads = 1 + random_below(&r, 2);
    s.heads = s.key_heads * (1 + random_below(&r, 3));
    s.queries = PICK(&r, queries);
    s.keys = PICK(&r, keys);
    s.width = PICK(&r, widths);
    s.value_width = PICK(&r, widths);
    s.scale = random_below(&r, 8) ? random_in(&r, -0.5, 1) : 0;
    s.softcap = random_below(&r, 3) ? 0 : random_in(&r, 0.5, 5);
    s.left = random_below(&r, 3) ? -1 : random_below(&r, 100);
    s.right = random_below(&r, 3) ? -1 : random_below(&r, 3) * random_below(&r, 40);
    s.diagonal = (int32_t)random_below(&r, 2);
    s.bias = random_below(&r, 3) == 0;
    s.mask = random_below(&r, 3) == 0;
    s.slope = random_below(&r, 4) == 0;
    s.sink = random_below(&r, 4) == 0;
    s.lengths = (int)random_below(&r, 3);
    s.repeat = (unsigned)random_bits(&r) & (random_below(&r, 2) ? 15 : 3);
    s.layout = (int)random_below(&r, 3);
    s.gap = random_below(&r, 4);
    s.dead = random_below(&r, 2) ? 0.4 : 0.97;
    s.reach = random_below(&r, 4) ? 1 : 3;
    return s;
}

EACH_ROW(attention_oracle, random)
{
    sattn_isa_set(*isa);
    for (uint64_t seed = 1; seed <= 150; seed++) {
        const attend_shape s = random_shape(seed);
        if (is_left_out((int64_t)seed))
            continue;
        attend x = make_attend(&s);
        solve_attend(&x);
        check_attend_oracle(&x);
        release_guarded();
    }
}

/* Several blocks of keys, stripes of backward and tiles of queries; wide heads */
EACH_ROW(attention_oracle, large)
{
    static const int64_t sizes[][4] = {
        {3, 5000, 8, 5}, {150, 1100, 16, 16}, {60, 200, 100, 70}, {20, 70, 5, 130}};
    sattn_isa_set(*isa);
    for (int i = 0; i < 4; i++)
        for (int window = 0; window < 2; window++) {
            attend x = make_attend(&(attend_shape){.seed = (uint64_t)i,
                                                   .batch = 1,
                                                   .heads = 2,
                                                   .key_heads = 1,
                                                   .queries = sizes[i][0],
                                                   .keys = sizes[i][1],
                                                   .width = sizes[i][2],
                                                   .value_width = sizes[i][3],
                                                   .scale = 0.25,
                                                   .left = window ? 600 : -1,
                                                   .right = window ? 0 : -1,
                                                   .diagonal = SATTN_BOTTOM_RIGHT,
                                                   .reach = 1});
            solve_attend(&x);
            check_attend_oracle(&x);
            release_guarded();
        }
}

/* <dout, out> + <dlse, lse> */
static double objective(attend *x)
{
    const attend_shape *s = &x->shape;
    double sum = 0;
    check(FN(sattn_attention_forward)(&x->p) == SATTN_OK);
    for (int64_t b = 0; b < s->batch; b++)
        for (int64_t h = 0; h < s->heads; h++)
            for (int64_t m = 0; m < s->queries; m++) {
                sum += (double)*attend_cell(x, DLSE, b, h, m, 0) *
                       (double)*attend_cell(x, LSE, b, h, m, 0);
                for (int64_t i = 0; i < s->value_width; i++)
                    sum += (double)*attend_cell(x, DOUT, b, h, m, i) *
                           (double)*attend_cell(x, OUT, b, h, m, i);
            }
    return sum;
}

/* Off by h^2 times a third derivative, about 20 here, and by a few EPS / h. */
static void check_slope(attend *x, int input, real *cell, int64_t index, double gradient)
{
    const double h = sizeof(real) == 4 ? 0x1p-8 : 0x1p-18, bound = 20 * h * h + 60 * EPS / h;
    const real before = *cell;
    *cell = before + (real)h;
    double difference = objective(x), step = (double)*cell;
    *cell = before - (real)h;
    difference -= objective(x);
    step -= (double)*cell;
    *cell = before;
    check_near(attend_names[input], index, difference / step, gradient, bound);
}

EACH_ROW(attention_oracle, slopes)
{
    static const int pairs[][2] = {{Q, DQ}, {K, DK}, {V, DV}, {BIAS, DBIAS}, {SINK, DSINK}};
    sattn_isa_set(*isa);
    for (int cap = 0; cap < 2; cap++) {
        attend x = make_attend(&(attend_shape){.seed = 11,
                                               .batch = 2,
                                               .heads = 2,
                                               .key_heads = 1,
                                               .queries = 3,
                                               .keys = 4,
                                               .width = 3,
                                               .value_width = 2,
                                               .scale = 0.5,
                                               .softcap = cap ? 1.5 : 0,
                                               .left = -1,
                                               .right = 1,
                                               .bias = 1,
                                               .slope = 1,
                                               .sink = 1,
                                               .repeat = 1,
                                               .reach = 1});
        solve_attend(&x);
        for (int i = 0; i < 5; i++) {
            const attend_array *g = &x.a[pairs[i][1]];
            const int64_t *n = g->count;
            for (int64_t at = 0; at < n[0] * n[1] * n[2] * n[3]; at++) {
                const int64_t b = at / (n[1] * n[2] * n[3]), h = at / (n[2] * n[3]) % n[1];
                const int64_t m = at / n[3] % n[2], d = at % n[3];
                check_slope(&x, pairs[i][0], attend_cell(&x, pairs[i][0], b, h, m, d), at,
                            (double)*attend_cell(&x, pairs[i][1], b, h, m, d));
            }
        }
        /* scale is a double of the descriptor */
        const double h = sizeof(real) == 4 ? 0x1p-8 : 0x1p-18;
        x.p.scale += h;
        double difference = objective(&x);
        x.p.scale -= 2 * h;
        difference -= objective(&x);
        check_near("dscale", 0, difference / (2 * h), (double)*x.a[DSCALE].data,
                   200 * h * h + 300 * EPS / h);
        release_guarded();
    }
}
