/* SPDX-License-Identifier: BSD-2-Clause */
/* One lane of plain C: the reference for the bits of every other row. fma is the only libc call. */
#include <math.h>
#include <string.h>

#define VL 1
#define V_REGISTERS 16

#if SATTN_REAL == 32
typedef float R;
typedef int32_t sattn_bits;
typedef uint32_t sattn_word;
#define R_FMA fmaf
enum { R_MANTISSA = 23 };
#define R_WHOLE 0x1p23f
#define R_SQRT_HALF 0x3f3504f3 /* bits of sqrt(1/2) */
#else
typedef double R;
typedef int64_t sattn_bits;
typedef uint64_t sattn_word;
#define R_FMA fma
enum { R_MANTISSA = 52 };
#define R_WHOLE 0x1p52
#define R_SQRT_HALF 0x3fe6a09e667f3bcd
#endif
typedef R V;
typedef int M;

static inline V v_set(R r)
{
    return r;
}
static inline V v_load(const R *p)
{
    return *p;
}
static inline void v_store(R *p, V v)
{
    *p = v;
}
static inline V v_load_n(const R *p, int64_t n)
{
    return n > 0 ? *p : 0;
}
static inline void v_store_n(R *p, V v, int64_t n)
{
    if (n > 0)
        *p = v;
}
static inline V v_add(V a, V b)
{
    return a + b;
}
static inline V v_sub(V a, V b)
{
    return a - b;
}
static inline V v_mul(V a, V b)
{
    return a * b;
}
static inline V v_div(V a, V b)
{
    return a / b;
}
static inline V v_fma(V a, V b, V c)
{
    return R_FMA(a, b, c);
}
static inline V v_fnma(V a, V b, V c)
{
    return R_FMA(-a, b, c);
}
static inline V v_max(V a, V b)
{
    return a > b ? a : b;
}
static inline M v_lt(V a, V b) /* the operators < and <= raise an exception for a NaN */
{
    return __builtin_isless(a, b);
}
static inline M v_le(V a, V b)
{
    return __builtin_islessequal(a, b);
}
static inline M v_nle(V a, V b)
{
    return !__builtin_islessequal(a, b);
}
static inline V v_keep(M m, V a)
{
    return m ? a : 0;
}
static inline V v_select(M m, V a, V b)
{
    return m ? a : b;
}
static inline M v_first(int64_t n)
{
    return n > 0;
}
static inline V v_add_if(M m, V a, V b)
{
    return m ? a + b : a;
}
static inline V v_fma_if(M m, V a, V b, V c)
{
    return R_FMA(m ? a : 0, b, c); /* not m ? fma : c, for which clang computes the fma always */
}
static inline V v_fnma_if(M m, V a, V b, V c)
{
    return m ? R_FMA(-a, b, c) : 0;
}
static inline V v_reach(V far, M m, V x, V n, R r)
{
    (void)n;
    return m && (__builtin_isgreater(x, r) || __builtin_isless(x, -r)) ? 1 : far;
}
static inline int v_reached(V far, R r)
{
    (void)r;
    return far != 0;
}
static inline sattn_word sattn_bits_of(R a)
{
    sattn_word bits;
    memcpy(&bits, &a, sizeof bits);
    return bits;
}
static inline R sattn_of_bits(sattn_word bits)
{
    R a;
    memcpy(&a, &bits, sizeof a);
    return a;
}
static inline V v_roots_power(V t)
{
    static const sattn_word root[] = {SATTN_ROOTS(SATTN_ROOT_LESS)};
    return sattn_of_bits((sattn_bits_of(t) << V_POWER) + root[sattn_bits_of(t) & 7]);
}
static inline V v_least(M m, V a) /* a subnormal number's bits are the whole number */
{
    return m ? sattn_of_bits(sattn_bits_of(a + R_WHOLE) - sattn_bits_of(R_WHOLE)) : a;
}
static inline V v_split(V a, V *e)
{
    sattn_bits bits;
    memcpy(&bits, &a, sizeof bits);
    const sattn_bits exponent = (sattn_bits)(bits - R_SQRT_HALF) >> R_MANTISSA;
    bits -= (sattn_bits)(exponent * ((sattn_bits)1 << R_MANTISSA));
    memcpy(&a, &bits, sizeof a);
    *e = (R)exponent;
    return a;
}
static inline R v_sum(V a)
{
    return a;
}
static inline R v_top(V a)
{
    return a;
}
static inline void v_transpose(V a[VL])
{
    (void)a;
}
