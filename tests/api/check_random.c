/* SPDX-License-Identifier: BSD-2-Clause */
/* Words against a Philox written here, which gives its published vectors; uniforms and normals
 * against their definition from the words; moments and distribution; a stream cut anywhere is the
 * same stream. */
#include "../harness.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "sattn/random.h"

/* Philox4x32-10 after Salmon et al. 2011, section 4.3, on an array of two halves */
static void philox(const uint32_t counter[4], const uint32_t key[2], uint32_t word[4])
{
    static const uint32_t multiplier[2] = {0xD2511F53, 0xCD9E8D57};
    static const uint32_t weyl[2] = {0x9E3779B9, 0xBB67AE85};
    memcpy(word, counter, 4 * sizeof *word);
    for (uint32_t round = 0; round < 10; round++) {
        uint32_t next[4];
        for (uint32_t half = 0; half < 2; half++) {
            const uint64_t product = (uint64_t)multiplier[1 - half] * word[2 - 2 * half];
            next[2 * half] =
                (uint32_t)(product >> 32) ^ word[2 * half + 1] ^ (key[half] + round * weyl[half]);
            next[2 * half + 1] = (uint32_t)product;
        }
        memcpy(word, next, sizeof next);
    }
}

/* Known answers of Random123 (kat_vectors, philox4x32 10): counter, key, words. Streams do not
 * reach the second and third counter, 2^60 blocks being the longest: these vouch for the above. */
static const uint32_t known[][10] = {
    {0, 0, 0, 0, 0, 0, 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8},
    {~0u, ~0u, ~0u, ~0u, ~0u, ~0u, 0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd},
    {0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344, 0xa4093822, 0x299f31d0, 0xd16cfe09, 0x94fdcceb,
     0x5001e420, 0x24126ea1},
};

Test(random, words_are_philox)
{
    uint32_t want[4], got[4];
    for (int i = 0; i < 3; i++) {
        at("known answer %d", i);
        philox(known[i], known[i] + 4, want);
        check_same(want, known[i] + 6, 4);
    }
    check(sattn_random_words(0, 0, 0, 4, got) == SATTN_OK);
    check_same(got, known[0] + 6, 4);
    rng r = seed_of(2);
    for (int i = 0; i < 1000; i++) {
        const uint64_t seed = random_bits(&r), stream = random_bits(&r);
        const uint64_t block = random_bits(&r) >> (4 + i % 60);
        const uint32_t counter[] = {(uint32_t)block, (uint32_t)(block >> 32), (uint32_t)stream,
                                    (uint32_t)(stream >> 32)};
        const uint32_t key[] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
        at("seed %llx stream %llx block %llx", (unsigned long long)seed, (unsigned long long)stream,
           (unsigned long long)block);
        philox(counter, key, want);
        if (sattn_random_words(seed, stream, (int64_t)(4 * block), 4, got) == SATTN_OK)
            check_same(got, want, 4);
        else
            check(block == ~(uint64_t)0 >> 4); /* the last: its end is 2^62 */
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
        const long double r = sqrtl(-2 * logl(uniform[i])),
                          angle = 2 * 3.14159265358979323846264L * uniform[i + 1];
        at("normal %d", (int)i);
        check_near("cosine", i, normal[i], (double)(r * cosl(angle)), 0x1p-49 * (double)r);
        check_near("sine", i, normal[i + 1], (double)(r * sinl(angle)), 0x1p-49 * (double)r);
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

static int rising(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Kolmogorov and Smirnov: sqrt(n) times the largest distance between the distribution of n draws
 * and its expectation exceeds 2.2 with probability 2 exp(-2 2.2^2) = 1.3e-4; seeds are fixed. */
Test(random, distributions)
{
    enum { N = 100000 };
    static double x[N];
    for (uint64_t stream = 0; stream < 4; stream++)
        for (int normal = 0; normal < 2; normal++) {
            double most = 0;
            at("stream %d %s", (int)stream, normal ? "normal" : "uniform");
            check((normal ? sattn_random_normal_f64 : sattn_random_uniform_f64)(11, stream, 12345,
                                                                                N, x) == SATTN_OK);
            qsort(x, N, sizeof *x, rising);
            for (int i = 0; i < N; i++) {
                const double p = normal ? erfc(-x[i] / sqrt(2)) / 2 : x[i];
                const double below = p - (double)i / N, above = (double)(i + 1) / N - p;
                most = below > most ? below : most;
                most = above > most ? above : most;
            }
            check(sqrt(N) * most < 2.2);
            check(sqrt(N) * most > 0.2); /* nor are they spread evenly */
        }
}

/* Correlation of neighbouring seeds and streams: its standard error is 1 / sqrt(n). */
Test(random, streams_differ)
{
    enum { N = 100000 };
    static double x[3][N];
    for (uint64_t i = 0; i < 3; i++)
        check(sattn_random_normal_f64(i == 1, i == 2, 0, N, x[i]) == SATTN_OK);
    for (int i = 0; i < 3; i++) {
        double sum = 0;
        for (int n = 0; n < N; n++)
            sum += x[i][n] * x[(i + 1) % 3][n] / N;
        at("pair %d", i);
        check(fabs(sum) < 5 / sqrt(N));
    }
}
