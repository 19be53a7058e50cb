/* SPDX-License-Identifier: BSD-2-Clause */
/* exp beside SLEEF's, which is within 1 ULP where results are normal: they differ by no more than
 * the sum of the two bounds. SLEEF's doubles overflow early, so x stays below that. */
#include "rows.h"

#include <stdio.h>

enum { MANY = 1 << 16, ROUNDS = 8 };

#if SATTN_REAL == 32
#define LOW (-87.33)
#define HIGH 88.72
#define BOUNDS (0.9 + 1.0)
#define SLEEF(row) sleef_exp_f32_##row
enum { MANTISSA = 24 };
#else
#define LOW (-708.39)
#define HIGH 709.78
#define BOUNDS (0.67 + 1.0)
#define SLEEF(row) sleef_exp_f64_##row
enum { MANTISSA = 53 };
#endif

void SLEEF(avx2)(int64_t n, const real *x, real *y);
void SLEEF(avx512)(int64_t n, const real *x, real *y);

EACH_ROW(exp, sleef)
{
    static real x[MANY], y[MANY], other[MANY];
    rng g = seed_of(8);
    double most = 0;
    int64_t different = 0;
    if (*isa != SATTN_ISA_AVX2 && *isa != SATTN_ISA_AVX512)
        return; /* has no vectors of SLEEF's; its bits are those of the others */
    for (int round = 0; round < ROUNDS; round++) {
        random_fill(&g, x, MANY, round % 2 ? -2 : LOW, round % 2 ? 2 : HIGH);
        kernels_of(*isa)->exp(MANY, x, y);
        (*isa == SATTN_ISA_AVX2 ? SLEEF(avx2) : SLEEF(avx512))(MANY, x, other);
        for (int i = 0; i < MANY; i++) {
            int exponent;
            frexp((double)y[i], &exponent);
            const double far =
                fabs((double)y[i] - (double)other[i]) / ldexp(1, exponent - MANTISSA);
            at("isa %d exp(%a) = %a, SLEEF's %a", (int)*isa, (double)x[i], (double)y[i],
               (double)other[i]);
            check(far <= BOUNDS);
            most = far > most ? far : most;
            different += far > 0;
        }
    }
    printf("exp %s beside SLEEF: %.2f ULP at most, %.1f %% differ\n", sattn_isa_name(*isa), most,
           100. * (double)different / (MANY * ROUNDS));
    check(different > 0); /* or else it is one function */
}
