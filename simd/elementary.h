/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SATTN_ELEMENTARY_H
#define SATTN_ELEMENTARY_H

#include "vec.h"

/* exp(x) = 2^(k/8) exp(r), k = round(8 x / ln 2), r = x - k ln 2 / 8, |r| <= 0.0434
 *
 * k/8 appears in the low bits of t = x / ln 2 + V_ROUNDER, and as t - V_ROUNDER. ln 2 is in two
 * parts; what fma leaves of x after the first is exact (f64), so that r is rounded once. 2^(k/8)
 * is a table of 8 entries times a power of two, v_roots_power. p = exp(r) - 1 has degree 3 (f32) or
 * 7 (f64) and is small, and so are its rounding errors beside the last one, of power + power p. The
 * table is rounded, too: its entries have a common factor that brings all of them next to numbers
 * of the type, and p takes it out again.
 * The constants come from coefficients.sollya and roots.py, which print their errors. f64 is proved
 * to be within 0.67 ULP (tests/proof); maxima measured over all 2^32 floats and 10^9 doubles:
 * docs/accuracy.md; what else was tried: docs/performance.md.
 *
 * What costs time. On Intel's processors an operation that gives a subnormal number, or scalef one
 * that rounds to 0, takes some 150 cycles, and -inf is what masked data hold. So lanes at or below
 * EXP_LOWEST are kept out of all arithmetic by masks (which also keeps it free of exceptions), and
 * if a lane of a vector is beyond EXP_PLAIN, so that its result might be subnormal or overflow,
 * that vector takes v_exp_wide, where v_least makes subnormal numbers as integers. Both ways give
 * the same bits. */
#if SATTN_REAL == 32
#define EXP_LOWEST (-0x1.9fe36ap+6f) /* -103.972084: exp rounds to 0 from here down */
#define EXP_NORMAL (-0x1.5d589ep+6f) /* -87.3365402: a normal number from here up */
#define EXP_PLAIN 0x1.5d5p+6f        /* 87.328: normal and finite within it */
#define EXP_HIGHEST 0x1.64p+6f       /* 89: overflow from 88.7228394 on */
#define EXP_LEAST 149                /* 2^-149 is the least subnormal number */
static const R sattn_ln2[] = {0x1.62e43p-1f, -0x1.05c61p-29f};
static const R sattn_exp_poly[] = {0x1.54682ap-3f, 0x1.feb058p-2f, 0x1.fe9bc2p-1f, -0x1.644016p-9f};
static const R sattn_log_poly[] = {0x1.2ef7cp-2f, 0x1.997b94p-2f, 0x1.55555cp-1f};
#else
#define EXP_LOWEST (-0x1.74910d52d3052p+9) /* -745.133219101941217 */
#define EXP_NORMAL (-0x1.6232bdd7abcd2p+9) /* -708.396418532264 */
#define EXP_PLAIN 0x1.622p+9               /* 708.25 */
#define EXP_HIGHEST 0x1.63p+9              /* 710: overflow from 709.782712893384 on */
#define EXP_LEAST 1074
static const R sattn_ln2[] = {0x1.62e42fefa39efp-1, 0x1.abc9e3b39803fp-56};
static const R sattn_exp_poly[] = {
    0x1.a01aaaa274d48p-13, 0x1.6c1cf30ae99eep-10, 0x1.111106e055aedp-7, 0x1.5555487ac4891p-5,
    0x1.55554889c5b5bp-3,  0x1.ffffeccea92f7p-2,  0x1.ffffeccea9015p-1, -0x1.33156feb21b99p-21};
static const R sattn_log_poly[] = {0x1.2b5cbd7334d54p-3, 0x1.39fe0117cde65p-3, 0x1.7462b79461da2p-3,
                                   0x1.c71c62db98fe7p-3, 0x1.2492492df7bb4p-2, 0x1.99999999952d6p-2,
                                   0x1.5555555555558p-1};
#endif

static inline V sattn_horner(int terms, const R *coefficients, V x)
{
    V p = v_set(coefficients[0]);
    for (int i = 1; i < terms; i++)
        p = v_fma(p, x, v_set(coefficients[i]));
    return p;
}

#define SATTN_POLY(name, x) sattn_horner((int)(sizeof name / sizeof *name), name, x)

/* 2^(k/8) exp(r), a normal number */
static inline V sattn_exp_power(V t, V r)
{
    const V power = v_roots_power(t);
    return v_fma(power, SATTN_POLY(sattn_exp_poly, r), power);
}

/* t of the lanes of `keep`, and k = 0 in the others */
static inline V sattn_exp_t(M keep, V x)
{
    return v_fma_if(keep, x, v_set((R)0x1.71547652b82fep+0), v_set(V_ROUNDER));
}

/* `far` with the lanes of x that are beyond EXP_PLAIN noted */
static inline V sattn_exp_reach(V far, V x)
{
    const M keep = v_nle(x, v_set(EXP_LOWEST)); /* NaN is kept */
    return v_reach(far, keep, x, v_sub(sattn_exp_t(keep, x), v_set(V_ROUNDER)), EXP_PLAIN);
}

/* exp in the lanes of `keep`, all of which are within EXP_PLAIN; +0 in the others */
static inline V v_exp_plain(M keep, V x)
{
    const V t = sattn_exp_t(keep, x), n = v_sub(t, v_set(V_ROUNDER));
    const V r = v_fnma_if(keep, n, v_set(sattn_ln2[0]), x);
    return v_keep(keep, sattn_exp_power(t, v_fnma(n, v_set(sattn_ln2[1]), r)));
}

/* exp of any x: a result that would be subnormal is computed times 2^EXP_LEAST, one that may
 * overflow is halved and then doubled. */
static inline V v_exp_wide(V x)
{
    const M keep = v_nle(x, v_set(EXP_LOWEST));
    V r = v_keep(keep, v_select(v_lt(v_set(EXP_HIGHEST), x), v_set(EXP_HIGHEST), x));
    const M low = v_lt(r, v_set(EXP_NORMAL)), high = v_lt(v_set(EXP_PLAIN), r);
    V t = v_fma(r, v_set((R)0x1.71547652b82fep+0), v_set(V_ROUNDER));
    const V n = v_sub(t, v_set(V_ROUNDER));
    r = v_fnma(n, v_set(sattn_ln2[0]), r);
    r = v_fnma(n, v_set(sattn_ln2[1]), r);
    t = v_add_if(high, v_add_if(low, t, v_set(EXP_LEAST)), v_set(-1));
    const V y = sattn_exp_power(t, r);
    return v_keep(keep, v_least(low, v_add_if(high, y, y))); /* no sum of subnormal numbers */
}

static inline V v_exp(V x)
{
    if (__builtin_expect(v_reached(sattn_exp_reach(v_set(0), x), EXP_PLAIN), 0))
        return v_exp_wide(x);
    return v_exp_plain(v_nle(x, v_set(EXP_LOWEST)), x);
}

/* x[i] = exp(x[i]) of up to 8 vectors: one takes some 50 cycles from end to end, and one test
 * serves all. */
static inline void v_exps(int count, V *x)
{
    V far = v_set(0);
    for (int i = 0; i < count; i++)
        far = sattn_exp_reach(far, x[i]);
    if (__builtin_expect(v_reached(far, EXP_PLAIN), 0)) {
        V copy[8]; /* this loop is not unrolled; x stays in registers */
        for (int i = 0; i < count; i++)
            copy[i] = x[i];
        for (int i = 0; i < count; i++)
            copy[i] = v_exp(copy[i]);
        for (int i = 0; i < count; i++)
            x[i] = copy[i];
        return;
    }
    for (int i = 0; i < count; i++)
        x[i] = v_exp_plain(v_nle(x[i], v_set(EXP_LOWEST)), x[i]);
}

/* log(x), x normal and >= 1, or +inf or NaN, which stay (the library takes it of sums of
 * exponentials): x = 2^e m, f = m - 1, s = f / (2 + f), log m = 2 s + s z p(z) = f - s (f - z
 * p(z)), z = s^2; f is exact and leads, so that the rounding errors of the rest weigh little. */
static inline V v_log(V x)
{
    V e;
    const V f = v_sub(v_split(x, &e), v_set(1));
    const V s = v_div(f, v_add(v_set(2), f)), z = v_mul(s, s);
    V rest = v_mul(s, v_fnma(z, SATTN_POLY(sattn_log_poly, z), f));
    rest = v_fnma(e, v_set(-sattn_ln2[1]), v_sub(v_set(0), rest));
    const V log = v_fma(e, v_set(sattn_ln2[0]), v_add(f, rest));
    return v_select(v_lt(x, v_set(R_INF)), log, x);
}

#endif
