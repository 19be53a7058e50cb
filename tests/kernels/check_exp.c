/* SPDX-License-Identifier: BSD-2-Clause */
/* exp of every row: values at the edges, error, equal bits, monotonicity, memory, exceptions.
 *
 * Reference: f32 by exp of the C library in double, whose error of less than one of its ULPs is
 * 2^-29 of ours; f64 by expl, 2^-11 or less. Test `reference` holds both against MPFR where it is
 * installed. */
#include "rows.h"

#include "sattn/exp.h"

#include <fenv.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef SATTN_MPFR
#include <mpfr.h>
#endif

#if SATTN_REAL == 32
typedef uint32_t word;
#define LEAST 0x1p-149L
#define LIMIT 0.9L            /* ULP; the maximum over all floats is 0.8928 */
#define SUBNORMAL_LIMIT 0.92L /* in units of the least subnormal; 0.9167 */
#define LOW (-105.0)
#define HIGH 90.0
enum { MANTISSA = 24, LEAST_EXPONENT = -125, EXACT = 1 };

/* x, exp(x) correctly rounded, 1 = no other answer is allowed */
static const struct {
    word x, y;
    int exact;
} table[] = {
    {0x00000000, 0x3f800000, 1}, {0x80000000, 0x3f800000, 1},
    {0x000116c2, 0x3f800000, 1}, /* 1e-40 */
    {0x3f800000, 0x402df854, 0}, {0xc0bacb9c, 0x3b3f238d, 0},
    {0x42b170a4, 0x7f7f4648, 0}, {0x42b17217, 0x7f7fff84, 0},
    {0x42b17218, 0x7f800000, 1}, /* 88.7228317 is the last finite one */
    {0x7f7fffff, 0x7f800000, 1}, {0x7f800000, 0x7f800000, 1},
    {0x7fc00000, 0x7fc00000, 1}, {0xc2aeae14, 0x007f8f18, 0},
    {0xc2b00000, 0x0041edc4, 0}, {0xc2c80000, 0x0000001b, 0},
    {0xc2cfcccd, 0x00000001, 0}, {0xc2cff0a4, 0x00000001, 0},
    {0xc2cff1b4, 0x00000001, 1}, {0xc2cff1b5, 0x00000000, 1}, /* the last not 0, the first 0 */
    {0xc2cff5c3, 0x00000000, 1}, {0xc2d00000, 0x00000000, 1},
    {0xf149f2ca, 0x00000000, 1}, {0xff7fffff, 0x00000000, 1},
    {0xff800000, 0x00000000, 1},
};
#else
typedef uint64_t word;
#define LEAST 0x1p-1074L
#define LIMIT 0.67L /* tests/proof/exp.py; the largest seen are in docs/accuracy.md */
#define SUBNORMAL_LIMIT 0.835L
#define LOW (-746.0)
#define HIGH 710.0
enum { MANTISSA = 53, LEAST_EXPONENT = -1021 };

static const struct {
    word x, y;
    int exact;
} table[] = {
    {0x0000000000000000, 0x3ff0000000000000, 1}, {0x8000000000000000, 0x3ff0000000000000, 1},
    {0x00000000000116c2, 0x3ff0000000000000, 1}, {0x3ff0000000000000, 0x4005bf0a8b145769, 0},
    {0x40862e42fefa39ef, 0x7fefffffffffff2a, 0}, {0x40862e42fefa39f0, 0x7ff0000000000000, 1},
    {0x7fefffffffffffff, 0x7ff0000000000000, 1}, {0x7ff0000000000000, 0x7ff0000000000000, 1},
    {0x7ff8000000000000, 0x7ff8000000000000, 1}, {0xc0874910d52d3051, 0x0000000000000001, 1},
    {0xc0874910d52d3052, 0x0000000000000000, 1}, {0xc6293e5939a08cea, 0x0000000000000000, 1},
    {0xffefffffffffffff, 0x0000000000000000, 1}, {0xfff0000000000000, 0x0000000000000000, 1},
};
#endif

enum { MANY = 1 << 16 };

static real real_of(word bits)
{
    real x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static word word_of(real x)
{
    word bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static long double reference(real x)
{
    return sizeof(real) == 4 ? (long double)exp((double)x) : expl((long double)x);
}

/* |y - exp(x)| in ULPs of exp(x); of the least subnormal number if it is below the normal ones */
static long double error_of(real x, real y, int *subnormal)
{
    const long double want = reference(x);
    int exponent;
    frexpl(want, &exponent);
    *subnormal = exponent < LEAST_EXPONENT;
    return fabsl((long double)y - want) / (*subnormal ? LEAST : ldexpl(1, exponent - MANTISSA));
}

/* Arguments of all kinds: uniform, small, any bits, edges */
static void draw(rng *g, int64_t n, real *x)
{
    for (int64_t i = 0; i < n; i++) {
        const int64_t kind = random_below(g, 8);
        if (kind < 4)
            x[i] = (real)random_in(g, LOW, HIGH);
        else if (kind == 4)
            x[i] = (real)random_in(g, -2, 2);
        else if (kind == 5)
            x[i] = (real)random_in(g, LOW, LOW * 0.83); /* subnormal results */
        else if (kind == 6)
            x[i] = real_of((word)random_bits(g));
        else
            x[i] = real_of(table[random_below(g, (int64_t)(sizeof table / sizeof *table))].x +
                           (word)random_below(g, 3) - 1);
    }
}

EACH_ROW(exp, edges)
{
    const struct FN(sattn_kernels) *k = kernels_of(*isa);
    real half = (real)0.5, around;
    k->exp(1, &half, &around);
    for (size_t e = 0; e < sizeof table / sizeof *table; e++) {
        const real want = real_of(table[e].y);
        for (int n = 1; n <= 67; n++)
            for (int i = 0; i < n; i++) {
                real x[67], y[67];
                for (int j = 0; j < n; j++)
                    x[j] = j == i ? real_of(table[e].x) : half;
                k->exp(n, x, y);
                at("isa %d exp(%a) at %d of %d is %a, not %a", (int)*isa, (double)x[i], i, n,
                   (double)y[i], (double)want);
                check(ulps(y[i], want, sizeof want) <= !table[e].exact);
                check(!signbit(y[i]) || y[i] != y[i]);
                for (int j = 0; j < n; j++)
                    check(j == i || word_of(y[j]) == word_of(around));
            }
    }
}

EACH_ROW(exp, error)
{
    static real x[MANY], y[MANY];
    rng g = seed_of(1);
    long double most[2] = {0, 0};
    real witness[2] = {0, 0};
    const char *rounds = getenv("SATTN_ROUNDS"); /* of 65536 */
    for (int round = 0; round < (rounds ? atoi(rounds) : 4); round++) {
        draw(&g, MANY, x);
        kernels_of(*isa)->exp(MANY, x, y);
        for (int i = 0; i < MANY; i++) {
            int subnormal = 0, good;
            const long double error = error_of(x[i], y[i], &subnormal);
            if (isnan(x[i]) || isnan(error) ||
                isinf(error)) /* the edge of overflow is in the table */
                good = isnan(x[i]) ? isnan(y[i]) : isinf(y[i]) && y[i] > 0 && x[i] > HIGH - 2;
            else
                good = error <= (subnormal ? SUBNORMAL_LIMIT : LIMIT);
            if (error > most[subnormal] && !isinf(error)) {
                most[subnormal] = error;
                witness[subnormal] = x[i];
            }
            if (!good)
                at("isa %d exp(%a) = %a", (int)*isa, (double)x[i], (double)y[i]);
            check(good);
        }
    }
    printf("exp %s: %.4Lf at %a, subnormal results %.4Lf at %a\n", sattn_isa_name(*isa), most[0],
           (double)witness[0], most[1], (double)witness[1]);
    check(most[0] > 0.5L && most[1] > 0.5L); /* or else nothing was measured */
}

/* Every row gives the bits of the first; so does every length and place. */
EACH_ROW(exp, same_bits)
{
    static real x[MANY], y[MANY], want[MANY];
    rng g = seed_of(2);
    for (int round = 0; round < 4; round++) {
        draw(&g, MANY, x);
        kernels_of(SATTN_ISA_SCALAR)->exp(MANY, x, want);
        at("isa %d round %d", (int)*isa, round);
        kernels_of(*isa)->exp(MANY, x, y);
        check_same(y, want, MANY);
        for (int64_t from = 0; from + 200 < 4000; from += 1 + random_below(&g, 67)) {
            const int64_t n = random_below(&g, 200);
            kernels_of(*isa)->exp(n, x + from, y + from);
            check_same(y + from, want + from, n);
        }
    }
}

EACH_ROW(exp, monotone)
{
    static real x[MANY], y[MANY];
    rng g = seed_of(3);
    for (int round = 0; round < 24; round++) {
        const word start =
            word_of((real)random_in(&g, round % 2 ? 0.01 : -0.01, round % 2 ? HIGH : LOW));
        for (int i = 0; i < MANY; i++)
            x[i] = real_of(start + (word)i);
        kernels_of(*isa)->exp(MANY, x, y);
        for (int i = 1; i < MANY; i++) {
            const int good = x[i] > x[i - 1] ? y[i] >= y[i - 1] : y[i] <= y[i - 1];
            if (!good)
                at("isa %d exp(%a) = %a, exp(%a) = %a", (int)*isa, (double)x[i - 1],
                   (double)y[i - 1], (double)x[i], (double)y[i]);
            check(good);
        }
    }
}

EACH_ROW(exp, memory)
{
    rng g = seed_of(4);
    real want[131];
    for (int64_t n = 0; n <= 131; n++)
        for (placement side = ROOMY; side <= BEGINS; side++) {
            at("isa %d n %d side %d", (int)*isa, (int)n, (int)side);
            real *x = guarded((size_t)n * sizeof *x, side, (size_t)(n % 3) * sizeof *x);
            real *y = guarded((size_t)n * sizeof *y, side, 0);
            draw(&g, n, x);
            kernels_of(*isa)->exp(n, x, y);
            for (int64_t i = 0; i < n; i++)
                kernels_of(*isa)->exp(1, x + i, want + i);
            check_same(y, want, n);
            kernels_of(*isa)->exp(n, x, x); /* in place */
            check_same(x, want, n);
            check_guarded();
            release_guarded();
        }
}

/* NEON's comparisons flag NaN. */
static int flags_nan(int32_t isa)
{
    return isa == SATTN_ISA_NEON;
}

EACH_ROW(exp, exceptions)
{
    static real x[MANY], y[MANY];
    rng g = seed_of(5);
    for (int i = 0; i < MANY; i++)
        x[i] = i % 64 == 7    ? -(real)INFINITY
               : i % 64 == 33 ? real_of(table[sizeof table / sizeof *table - 2].x) /* -FLT_MAX */
               : i % 64 == 50 && !flags_nan(*isa) ? (real)NAN
                                                  : (real)random_in(&g, LOW, HIGH - 2);
    feclearexcept(FE_ALL_EXCEPT);
    kernels_of(*isa)->exp(MANY, x, y);
    at("isa %d", (int)*isa);
    check(fetestexcept(FE_INVALID | FE_DIVBYZERO | FE_OVERFLOW) == 0);
}

/* The host's rounding mode changes no bit, and stays. */
EACH_ROW(exp, roundings)
{
    static real x[MANY], y[MANY], want[MANY];
    static const int modes[] = {FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO};
    rng g = seed_of(6);
    draw(&g, MANY, x);
    kernels_of(*isa)->exp(MANY, x, want);
    sattn_isa_set(*isa);
    for (int m = 0; m < 3; m++) {
        fesetround(modes[m]);
        const int32_t status = FN(sattn_exp)(MANY, x, 1, y, 1, 2);
        const int after = fegetround();
        fesetround(FE_TONEAREST);
        at("isa %d mode %d", (int)*isa, m);
        check(status == SATTN_OK && after == modes[m]);
        check_same(y, want, MANY);
    }
}

EACH_ROW(exp, strides)
{
    const real x[] = {0, 1, 2, 3};
    real want[4], y[9];
    kernels_of(*isa)->exp(4, x, want);
    sattn_isa_set(*isa);
    check(FN(sattn_exp)(2, x, 2, y, 1, 1) == SATTN_OK && y[0] == want[0] && y[1] == want[2]);
    check(FN(sattn_exp)(4, x + 3, -1, y, 1, 1) == SATTN_OK);
    for (int i = 0; i < 4; i++)
        check(y[i] == want[3 - i]);
    check(FN(sattn_exp)(5, x + 1, 0, y, 1, 1) == SATTN_OK);
    for (int i = 0; i < 5; i++)
        check(y[i] == want[1]);
    memset(y, 0xff, sizeof y);
    check(FN(sattn_exp)(3, x, 1, y + 8, -4, 1) == SATTN_OK);
    for (int i = 0; i < 9; i++)
        check(i % 4 == 0 ? y[i] == want[2 - i / 4] : is_untouched(y + i, sizeof *y));
}

#ifdef SATTN_MPFR
Test(exp, reference)
{
    rng g = seed_of(7);
    mpfr_t a, difference;
    mpfr_init2(a, 160);
    mpfr_init2(difference, 160);
    for (int i = 0; i < 200000; i++) {
        const real x = (real)random_in(&g, LOW * 0.84, HIGH - 2);
        const long double got = reference(x);
        int exponent;
        frexpl(got, &exponent);
        mpfr_set_d(a, x, MPFR_RNDN); /* exact */
        mpfr_exp(a, a, MPFR_RNDN);
        mpfr_set_ld(difference, got, MPFR_RNDN);
        mpfr_sub(difference, difference, a, MPFR_RNDN);
        at("exp(%a) = %La", (double)x, got);
        check(fabsl(mpfr_get_ld(difference, MPFR_RNDN)) <=
              ldexpl(1, exponent - (sizeof(real) == 4 ? 53 : 63)));
    }
    mpfr_clears(a, difference, (mpfr_ptr)0);
}
#endif
