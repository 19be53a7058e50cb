/* SPDX-License-Identifier: BSD-2-Clause */
#include "sattn/random.h"

#include <math.h>
#include <stddef.h>

/* Philox4x32-10: ten rounds of two 32 x 32 -> 64 multiplications, the key advanced by Weyl
 * constants (the golden ratio and sqrt(3) - 1). Constants: Salmon et al. 2011. */
static void philox(uint64_t seed, uint64_t stream, uint64_t block, uint32_t w[4])
{
    uint32_t k0 = (uint32_t)seed, k1 = (uint32_t)(seed >> 32);
    w[0] = (uint32_t)block;
    w[1] = (uint32_t)(block >> 32);
    w[2] = (uint32_t)stream;
    w[3] = (uint32_t)(stream >> 32);
    for (int round = 0; round < 10; round++, k0 += 0x9e3779b9u, k1 += 0xbb67ae85u) {
        const uint64_t a = (uint64_t)0xd2511f53u * w[0], b = (uint64_t)0xcd9e8d57u * w[2];
        const uint32_t next0 = (uint32_t)(b >> 32) ^ w[1] ^ k0,
                       next2 = (uint32_t)(a >> 32) ^ w[3] ^ k1;
        w[1] = (uint32_t)b;
        w[3] = (uint32_t)a;
        w[0] = next0;
        w[2] = next2;
    }
}

/* Uniform number i of a stream; two of them share a block. */
static double uniform(uint64_t seed, uint64_t stream, int64_t i)
{
    uint32_t w[4];
    philox(seed, stream, (uint64_t)i / 2, w);
    const uint32_t *pair = w + 2 * (i % 2);
    return (double)(((uint64_t)pair[1] << 32 | pair[0]) >> 11) * 0x1p-53 + 0x1p-54;
}

static double normal(uint64_t seed, uint64_t stream, int64_t i)
{
    const int64_t even = i - i % 2;
    const double radius = sqrt(-2 * log(uniform(seed, stream, even)));
    const double angle = 2 * 3.14159265358979323846 * uniform(seed, stream, even + 1);
    return radius * (i % 2 ? sin(angle) : cos(angle));
}

static int32_t check(int64_t first, int64_t n, const void *out)
{
    const int64_t end = (int64_t)1 << 62;
    if (n < 0 || first < 0 || first >= end || n >= end - first)
        return SATTN_ESIZE;
    return out || n == 0 ? SATTN_OK : SATTN_ENULL;
}

int32_t sattn_random_words(uint64_t seed, uint64_t stream, int64_t first, int64_t n, uint32_t *out)
{
    const int32_t status = check(first, n, out);
    uint32_t w[4];
    for (int64_t i = 0; status == SATTN_OK && i < n; i++) {
        if (i == 0 || (first + i) % 4 == 0)
            philox(seed, stream, (uint64_t)(first + i) / 4, w);
        out[i] = w[(first + i) % 4];
    }
    return status;
}

int32_t sattn_random_uniform_f64(uint64_t seed, uint64_t stream, int64_t first, int64_t n,
                                 double *out)
{
    const int32_t status = check(first, n, out);
    for (int64_t i = 0; status == SATTN_OK && i < n; i++)
        out[i] = uniform(seed, stream, first + i);
    return status;
}

int32_t sattn_random_normal_f64(uint64_t seed, uint64_t stream, int64_t first, int64_t n,
                                double *out)
{
    const int32_t status = check(first, n, out);
    for (int64_t i = 0; status == SATTN_OK && i < n; i++)
        out[i] = normal(seed, stream, first + i);
    return status;
}

int32_t sattn_random_normal_f32(uint64_t seed, uint64_t stream, int64_t first, int64_t n,
                                float *out)
{
    const int32_t status = check(first, n, out);
    for (int64_t i = 0; status == SATTN_OK && i < n; i++)
        out[i] = (float)normal(seed, stream, first + i);
    return status;
}
