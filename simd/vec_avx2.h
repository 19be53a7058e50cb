/* SPDX-License-Identifier: BSD-2-Clause */
/* AVX2 + FMA: 8 floats or 4 doubles. */
#include <immintrin.h>

#define V_REGISTERS 16

/* 8 int32 (4 int64) lanes of ones, then zeros: a window into it masks the first n lanes. */
static const int32_t sattn_ones[16] = {-1, -1, -1, -1, -1, -1, -1, -1};

#if SATTN_REAL == 32

typedef float R;
typedef __m256 V;
typedef __m256 M;
#define VL 8
#define P(name) _mm256_##name##_ps
#define SATTN_MASK(lanes) _mm256_castsi256_ps(lanes)
#define SATTN_LANES(n) _mm256_loadu_si256((const __m256i *)(sattn_ones + 8 - (n)))

static inline R v_sum(V a)
{
    __m128 q = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    q = _mm_add_ps(q, _mm_movehl_ps(q, q));
    return _mm_cvtss_f32(_mm_add_ss(q, _mm_movehdup_ps(q)));
}
static inline void v_transpose(V a[VL])
{
    for (int i = 0; i < VL; i += 4) { /* 4 x 4 within the 128-bit lanes */
        const V x = _mm256_unpacklo_ps(a[i], a[i + 1]), y = _mm256_unpackhi_ps(a[i], a[i + 1]);
        const V z = _mm256_unpacklo_ps(a[i + 2], a[i + 3]);
        const V w = _mm256_unpackhi_ps(a[i + 2], a[i + 3]);
        a[i] = _mm256_shuffle_ps(x, z, 0x44);
        a[i + 1] = _mm256_shuffle_ps(x, z, 0xee);
        a[i + 2] = _mm256_shuffle_ps(y, w, 0x44);
        a[i + 3] = _mm256_shuffle_ps(y, w, 0xee);
    }
    for (int j = 0; j < 4; j++) { /* then the lanes */
        const V x = _mm256_permute2f128_ps(a[j], a[4 + j], 0x20);
        a[4 + j] = _mm256_permute2f128_ps(a[j], a[4 + j], 0x31);
        a[j] = x;
    }
}
static inline V v_roots_power(V t)
{
    static const uint32_t root[] = {SATTN_ROOTS(SATTN_ROOT_LESS)};
    const __m256i i = _mm256_castps_si256(t);
    return _mm256_castsi256_ps(
        _mm256_add_epi32(_mm256_permutevar8x32_epi32(_mm256_loadu_si256((const __m256i *)root), i),
                         _mm256_slli_epi32(i, V_POWER)));
}
static inline V v_least(M m, V a) /* a subnormal number's bits are the whole number */
{
    const V whole = _mm256_set1_ps(0x1p23f);
    const __m256i bits =
        _mm256_sub_epi32(_mm256_castps_si256(_mm256_add_ps(a, whole)), _mm256_castps_si256(whole));
    return _mm256_blendv_ps(a, _mm256_castsi256_ps(bits), m);
}
static inline V v_split(V a, V *e)
{
    const __m256i bits = _mm256_castps_si256(a);
    const __m256i x = _mm256_srai_epi32(_mm256_sub_epi32(bits, _mm256_set1_epi32(0x3f3504f3)), 23);
    *e = _mm256_cvtepi32_ps(x);
    return _mm256_castsi256_ps(_mm256_sub_epi32(bits, _mm256_slli_epi32(x, 23)));
}

#else

typedef double R;
typedef __m256d V;
typedef __m256d M;
#define VL 4
#define P(name) _mm256_##name##_pd
#define SATTN_MASK(lanes) _mm256_castsi256_pd(lanes)
#define SATTN_LANES(n) _mm256_loadu_si256((const __m256i *)(sattn_ones + 8 - 2 * (n)))
#define SATTN_LOW(i, bits) (uint32_t)(bits)
#define SATTN_HIGH(i, bits) (uint32_t)((SATTN_ROOT_LESS(i, bits)) >> 32)

static inline R v_sum(V a)
{
    const __m128d q = _mm_add_pd(_mm256_castpd256_pd128(a), _mm256_extractf128_pd(a, 1));
    return _mm_cvtsd_f64(_mm_add_sd(q, _mm_unpackhi_pd(q, q)));
}
static inline void v_transpose(V a[VL])
{
    const V x = _mm256_unpacklo_pd(a[0], a[1]), y = _mm256_unpackhi_pd(a[0], a[1]);
    const V z = _mm256_unpacklo_pd(a[2], a[3]), w = _mm256_unpackhi_pd(a[2], a[3]);
    a[0] = _mm256_permute2f128_pd(x, z, 0x20);
    a[1] = _mm256_permute2f128_pd(y, w, 0x20);
    a[2] = _mm256_permute2f128_pd(x, z, 0x31);
    a[3] = _mm256_permute2f128_pd(y, w, 0x31);
}
/* The halves of an entry are picked apart, each by the low bits of its half of the index. */
static inline V v_roots_power(V t)
{
    static const uint32_t low[] = {SATTN_ROOTS(SATTN_LOW)}, high[] = {SATTN_ROOTS(SATTN_HIGH)};
    const __m256i k = _mm256_castpd_si256(t);
    const __m256i root =
        _mm256_blend_epi32(_mm256_permutevar8x32_epi32(_mm256_loadu_si256((const __m256i *)low), k),
                           _mm256_permutevar8x32_epi32(_mm256_loadu_si256((const __m256i *)high),
                                                       _mm256_slli_epi64(k, 32)),
                           0xaa);
    return _mm256_castsi256_pd(_mm256_add_epi64(root, _mm256_slli_epi64(k, V_POWER)));
}
static inline V v_least(M m, V a)
{
    const V whole = _mm256_set1_pd(0x1p52);
    const __m256i bits =
        _mm256_sub_epi64(_mm256_castpd_si256(_mm256_add_pd(a, whole)), _mm256_castpd_si256(whole));
    return _mm256_blendv_pd(a, _mm256_castsi256_pd(bits), m);
}
static inline V v_split(V a, V *e)
{
    /* AVX2 has no arithmetic shift of 64 bits: shift the exponent plus 1024 */
    const __m256i bits = _mm256_castpd_si256(a), two52 = _mm256_set1_epi64x(0x4330000000000000);
    const __m256i x = _mm256_srli_epi64(
        _mm256_sub_epi64(bits, _mm256_set1_epi64x(0x3fe6a09e667f3bcd - (1024LL << 52))), 52);
    *e = _mm256_sub_pd(_mm256_castsi256_pd(_mm256_or_si256(x, two52)),
                       _mm256_set1_pd(0x1p52 + 1024));
    return _mm256_castsi256_pd(_mm256_sub_epi64(
        bits, _mm256_slli_epi64(_mm256_sub_epi64(x, _mm256_set1_epi64x(1024)), 52)));
}

#endif

static inline V v_set(R r)
{
    return P(set1)(r);
}
static inline V v_load(const R *p)
{
    return P(loadu)(p);
}
static inline void v_store(R *p, V v)
{
    P(storeu)(p, v);
}
static inline V v_load_n(const R *p, int64_t n)
{
    return P(maskload)(p, SATTN_LANES(n));
}
static inline void v_store_n(R *p, V v, int64_t n)
{
    P(maskstore)(p, SATTN_LANES(n), v);
}
static inline V v_add(V a, V b)
{
    return P(add)(a, b);
}
static inline V v_sub(V a, V b)
{
    return P(sub)(a, b);
}
static inline V v_mul(V a, V b)
{
    return P(mul)(a, b);
}
static inline V v_div(V a, V b)
{
    return P(div)(a, b);
}
static inline V v_fma(V a, V b, V c)
{
    return P(fmadd)(a, b, c);
}
static inline V v_fnma(V a, V b, V c)
{
    return P(fnmadd)(a, b, c);
}
static inline V v_max(V a, V b)
{
    return P(max)(a, b);
}
static inline M v_lt(V a, V b)
{
    return P(cmp)(a, b, _CMP_LT_OQ);
}
static inline M v_le(V a, V b)
{
    return P(cmp)(a, b, _CMP_LE_OQ);
}
static inline M v_nle(V a, V b)
{
    return P(cmp)(a, b, _CMP_NLE_UQ);
}
static inline V v_keep(M m, V a)
{
    return P(and)(m, a);
}
static inline V v_select(M m, V a, V b)
{
    return P(blendv)(b, a, m);
}
static inline M v_first(int64_t n)
{
    return SATTN_MASK(SATTN_LANES(n));
}
static inline V v_add_if(M m, V a, V b)
{
    return v_add(a, v_keep(m, b));
}
static inline V v_fma_if(M m, V a, V b, V c)
{
    return v_fma(v_keep(m, a), b, c);
}
static inline V v_fnma_if(M m, V a, V b, V c)
{
    return v_fnma(a, b, v_keep(m, c));
}
static inline V v_reach(V far, M m, V x, V n, R r) /* in the sign bits */
{
    (void)n;
    return P(or)(far, v_sub(v_set(r), P(andnot)(v_set((R)-0.0), v_keep(m, x))));
}
static inline int v_reached(V far, R r)
{
    (void)r;
    return P(movemask)(far);
}
static inline R v_top(V a)
{
    R lane[VL], top;
    v_store(lane, a);
    top = lane[0];
    for (int i = 1; i < VL; i++)
        top = lane[i] > top ? lane[i] : top;
    return top;
}

#undef P
#undef SATTN_LANES
#undef SATTN_MASK
