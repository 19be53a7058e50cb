/* SPDX-License-Identifier: BSD-2-Clause */
/* Conversions of stored numbers: every bit pattern of the 16-bit types, strides, and finiteness. */
#include "rows.h"

#include <math.h>

/* binary16 by its definition */
static double half(uint16_t x)
{
    const int exponent = x >> 10 & 31, fraction = x & 1023;
    const double size = exponent == 31  ? (fraction ? NAN : INFINITY)
                        : exponent == 0 ? ldexp(fraction, -24)
                                        : ldexp(1024 + fraction, exponent - 25);
    return x & 0x8000 ? -size : size;
}

static double brain(uint16_t x)
{
    const uint32_t bits = (uint32_t)x << 16;
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

EACH_ROW(storage, every_half)
{
    const struct FN(sattn_kernels) *k = kernels_of(*isa);
    uint16_t *x = guarded(65536 * sizeof *x, ENDS, 0);
    real *y = guarded(65536 * sizeof *y, ENDS, 0);
    for (int32_t storage = 1; storage <= 2; storage++) {
        for (int i = 0; i < 65536; i++)
            x[i] = (uint16_t)i;
        k->widen(storage, 16, 4096, x, 4096, 1, y);
        for (int i = 0; i < 65536; i++) {
            const real want = (real)(storage == 1 ? brain(x[i]) : half(x[i]));
            at("storage %d bits %x", storage, i);
            check_same(&y[i], &want, 1);
        }
    }
    check_guarded();
    release_guarded();
}

EACH_ROW(storage, strides)
{
    const struct FN(sattn_kernels) *k = kernels_of(*isa);
    real x[100], y[12];
    uint8_t bytes[100];
    for (int i = 0; i < 100; i++) {
        x[i] = (real)i;
        bytes[i] = (uint8_t)(i % 3);
    }
    k->widen(0, 3, 4, x + 50, -10, 3, y);
    for (int i = 0; i < 12; i++)
        check(y[i] == (real)(50 - 10 * (i / 4) + 3 * (i % 4)));
    k->flags(3, 4, bytes, 10, 2, y);
    for (int i = 0; i < 12; i++)
        check(y[i] == (real)((10 * (i / 4) + 2 * (i % 4)) % 3 != 0));
}

EACH_ROW(storage, finite)
{
    const struct FN(sattn_kernels) *k = kernels_of(*isa);
    static const double special[] = {NAN, INFINITY, -INFINITY};
    for (int64_t n = 1; n <= 40; n++) {
        real *x = guarded((size_t)(3 * n) * sizeof *x, ENDS, 0);
        for (int64_t i = 0; i < 3 * n; i++)
            x[i] = (real)(sizeof(real) == 4 ? 3e38 : 1e308) * (real)(i % 2 ? 1 : -1);
        at("n %d", (int)n);
        check(k->all_finite(3, n, x, n));
        for (int64_t i = 0; i < 3 * n; i++)
            for (int j = 0; j < 3; j++) {
                const real before = x[i];
                x[i] = (real)special[j];
                check(!k->all_finite(3, n, x, n));
                x[i] = before;
            }
        release_guarded();
    }
}
