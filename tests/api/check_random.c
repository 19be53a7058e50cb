/* SPDX-License-Identifier: BSD-2-Clause */
/* Philox against its published vectors; uniforms and normals against their definition from the
 * words; moments; a stream cut anywhere is the same stream. */
#include "../harness.h"

#include <math.h>
#include <stdint.h>

#include "sattn/random.h"

/* Known answers of Random123 (kat_vectors, philox4x32 10): a counter, a key, four words */
static const struct {
    uint64_t counter_low, counter_high, key;
    uint32_t word[4];
} known[] = {
    {0, 0, 0, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
    {~(uint64_t)0, ~(uint64_t)0, ~(uint64_t)0, {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
    {0x85a308d3243f6a88,
     0x0370734413198a2e,
     0x299f31d0a4093822,
     {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
};

Test(random, words_are_philox)
{
    uint32_t word[4];
    for (int i = 0; i < 3; i += 2) { /* block 2^64 - 1 is beyond a stream of 2^62 numbers */
        const int64_t first = (int64_t)known[i].counter_low;
        if (first < 0)
            continue;
        cr_assert_eq(sattn_random_words(known[i].key, known[i].counter_high, 4 * first, 4, word),
                     SATTN_OK);
        for (int k = 0; k < 4; k++)
            cr_assert_eq(word[k], known[i].word[k]);
    }
}

Test(random, a_cut_stream_is_the_same)
{
    enum { N = 101 };
    uint32_t whole[N], part[N];
    double uniform[N], normal[N], one;
    float single;
    cr_assert_eq(sattn_random_words(7, 9, 1000, N, whole), SATTN_OK);
    cr_assert_eq(sattn_random_uniform_f64(7, 9, 500, N, uniform), SATTN_OK);
    cr_assert_eq(sattn_random_normal_f64(7, 9, 500, N, normal), SATTN_OK);
    for (int64_t i = 0; i < N; i++) {
        cr_assert_eq(sattn_random_words(7, 9, 1000 + i, N - i, part), SATTN_OK);
        cr_assert_eq(part[0], whole[i]);
        cr_assert_eq(sattn_random_normal_f64(7, 9, 500 + i, 1, &one), SATTN_OK);
        cr_assert(one == normal[i]);
        cr_assert_eq(sattn_random_normal_f32(7, 9, 500 + i, 1, &single), SATTN_OK);
        cr_assert(single == (float)normal[i]);
    }
    for (int64_t i = 0; i + 1 < N / 2; i++) {
        const uint64_t bits = ((uint64_t)whole[2 * i + 1] << 32 | whole[2 * i]) >> 11;
        cr_assert(uniform[i] == (double)bits * 0x1p-53 + 0x1p-54);
    }
    for (int64_t i = 0; i + 1 < N; i += 2) {
        const double r = sqrt(-2 * log(uniform[i])), angle = 6.283185307179586 * uniform[i + 1];
        cr_assert(fabs(normal[i] - r * cos(angle)) <= 1e-15 * r);
        cr_assert(fabs(normal[i + 1] - r * sin(angle)) <= 1e-15 * r);
    }
}

/* Means of powers of n draws stay within 5 standard errors of their expectations. */
Test(random, moments)
{
    enum { N = 200000 };
    static double x[N];
    double u1 = 0, u2 = 0, n1 = 0, n2 = 0, n4 = 0, lag = 0;
    cr_assert_eq(sattn_random_uniform_f64(1, 2, 0, N, x), SATTN_OK);
    for (int i = 0; i < N; i++) {
        cr_assert(x[i] > 0 && x[i] <= 1);
        u1 += x[i] / N;
        u2 += x[i] * x[i] / N;
    }
    cr_assert(fabs(u1 - 1 / 2.) < 5 * sqrt(1 / 12. / N));
    cr_assert(fabs(u2 - 1 / 3.) < 5 * sqrt(4 / 45. / N));
    cr_assert_eq(sattn_random_normal_f64(1, 3, 0, N, x), SATTN_OK);
    for (int i = 0; i < N; i++) {
        n1 += x[i] / N;
        n2 += x[i] * x[i] / N;
        n4 += x[i] * x[i] * x[i] * x[i] / N;
        lag += i ? x[i] * x[i - 1] / N : 0;
    }
    cr_assert(fabs(n1) < 5 * sqrt(1. / N));
    cr_assert(fabs(n2 - 1) < 5 * sqrt(2. / N));
    cr_assert(fabs(n4 - 3) < 5 * sqrt(96. / N));
    cr_assert(fabs(lag) < 5 * sqrt(1. / N));
}
