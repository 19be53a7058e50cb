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

/* Uniforms 2 j and 2 j + 1 of a stream, those of block j */
static void uniform_pair(uint64_t seed, uint64_t stream, uint64_t j, double u[2])
{
    uint32_t w[4];
    philox(seed, stream, j, w);
    for (int i = 0; i < 2; i++)
        u[i] = (double)(((uint64_t)w[2 * i + 1] << 32 | w[2 * i]) >> 11) * 0x1p-53 + 0x1p-54;
}

/* Normals 2 j and 2 j + 1, from the uniforms of the same numbers */
static void normal_pair(uint64_t seed, uint64_t stream, uint64_t j, double z[2])
{
    uniform_pair(seed, stream, j, z);
    const double radius = sqrt(-2 * log(z[0])), angle = 2 * 3.14159265358979323846 * z[1];
    z[0] = radius * cos(angle);
    z[1] = radius * sin(angle);
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

/* Numbers first .. first + n - 1 of a stream that `draw` gives by pairs, as doubles or as floats */
static int32_t pairs(void (*draw)(uint64_t, uint64_t, uint64_t, double *), uint64_t seed,
                     uint64_t stream, int64_t first, int64_t n, double *wide, float *narrow)
{
    const int32_t status = check(first, n, wide ? (void *)wide : narrow);
    double pair[2];
    for (int64_t i = 0; status == SATTN_OK && i < n; i++) {
        if (i == 0 || (first + i) % 2 == 0)
            draw(seed, stream, (uint64_t)(first + i) / 2, pair);
        if (wide)
            wide[i] = pair[(first + i) % 2];
        else
            narrow[i] = (float)pair[(first + i) % 2];
    }
    return status;
}

int32_t sattn_random_uniform_f64(uint64_t seed, uint64_t stream, int64_t first, int64_t n,
                                 double *out)
{
    return pairs(uniform_pair, seed, stream, first, n, out, NULL);
}

int32_t sattn_random_normal_f64(uint64_t seed, uint64_t stream, int64_t first, int64_t n,
                                double *out)
{
    return pairs(normal_pair, seed, stream, first, n, out, NULL);
}

int32_t sattn_random_normal_f32(uint64_t seed, uint64_t stream, int64_t first, int64_t n,
                                float *out)
{
    return pairs(normal_pair, seed, stream, first, n, NULL, out);
}
