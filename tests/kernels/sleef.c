/* SPDX-License-Identifier: BSD-2-Clause */
/* SLEEF's exp over arrays whose length is a multiple of 16. Compiled for AVX2 and for AVX-512, with
 * ROW = avx2 or avx512; called only where the processor has it. */
#include <immintrin.h>
#include <sleef.h>
#include <stdint.h>

#ifdef __AVX512F__
#define PICK(avx2, avx512) avx512
#else
#define PICK(avx2, avx512) avx2
#endif
#define JOIN(name, row) name##row
#define NAME(name, row) JOIN(name, row)

void NAME(sleef_exp_f32_, ROW)(int64_t n, const float *x, float *y);
void NAME(sleef_exp_f64_, ROW)(int64_t n, const double *x, double *y);

void NAME(sleef_exp_f32_, ROW)(int64_t n, const float *x, float *y)
{
    for (int64_t i = 0; i < n; i += PICK(8, 16))
        PICK(_mm256_storeu_ps, _mm512_storeu_ps)
    (y + i, PICK(Sleef_expf8_u10avx2,
                 Sleef_expf16_u10avx512f)(PICK(_mm256_loadu_ps, _mm512_loadu_ps)(x + i)));
}

void NAME(sleef_exp_f64_, ROW)(int64_t n, const double *x, double *y)
{
    for (int64_t i = 0; i < n; i += PICK(4, 8))
        PICK(_mm256_storeu_pd, _mm512_storeu_pd)
    (y + i, PICK(Sleef_expd4_u10avx2,
                 Sleef_expd8_u10avx512f)(PICK(_mm256_loadu_pd, _mm512_loadu_pd)(x + i)));
}
