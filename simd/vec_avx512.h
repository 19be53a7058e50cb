/* SPDX-License-Identifier: BSD-2-Clause */
/* AVX-512 F + VL + BW + DQ: 16 floats or 8 doubles. */
#include <immintrin.h>

#define V_REGISTERS 32

#if SATTN_REAL == 32

typedef float R;
typedef __m512 V;
typedef __mmask16 M;
#define VL 16
#define P(name) _mm512_##name##_ps
#define PM(name) _mm512_##name##_ps_mask
#define MP(name) _mm512_mask_##name##_ps
#define MZ(name) _mm512_maskz_##name##_ps
#define M3(name) _mm512_mask3_##name##_ps

static inline R v_sum(V a)
{
    __m256 h = _mm256_add_ps(_mm512_castps512_ps256(a), _mm512_extractf32x8_ps(a, 1));
    __m128 q = _mm_add_ps(_mm256_castps256_ps128(h), _mm256_extractf128_ps(h, 1));
    q = _mm_add_ps(q, _mm_movehl_ps(q, q));
    return _mm_cvtss_f32(_mm_add_ss(q, _mm_movehdup_ps(q)));
}
static inline void sattn_quarters(V a[VL]) /* 4 x 4 transposes within the 128-bit lanes */
{
    for (int i = 0; i < VL; i += 4) {
        const V x = _mm512_unpacklo_ps(a[i], a[i + 1]), y = _mm512_unpackhi_ps(a[i], a[i + 1]);
        const V z = _mm512_unpacklo_ps(a[i + 2], a[i + 3]);
        const V w = _mm512_unpackhi_ps(a[i + 2], a[i + 3]);
        a[i] = _mm512_shuffle_ps(x, z, 0x44);
        a[i + 1] = _mm512_shuffle_ps(x, z, 0xee);
        a[i + 2] = _mm512_shuffle_ps(y, w, 0x44);
        a[i + 3] = _mm512_shuffle_ps(y, w, 0xee);
    }
}
static inline V v_roots_power(V t)
{
    static const uint32_t root[] = {SATTN_ROOTS(SATTN_ROOT), SATTN_ROOTS(SATTN_ROOT)};
    const V power = _mm512_sub_ps(t, _mm512_set1_ps(V_ROUNDER)); /* scalef rounds it down */
    return _mm512_scalef_ps(_mm512_permutexvar_ps(_mm512_castps_si512(t), _mm512_loadu_ps(root)),
                            power);
}
#define SHUFFLE(a, b, lanes) _mm512_shuffle_f32x4(a, b, lanes)
#define SATTN_WHOLE(m, a) _mm512_castsi512_ps(_mm512_mask_cvtps_epi32(_mm512_castps_si512(a), m, a))

#else

typedef double R;
typedef __m512d V;
typedef __mmask8 M;
#define VL 8
#define P(name) _mm512_##name##_pd
#define PM(name) _mm512_##name##_pd_mask
#define MP(name) _mm512_mask_##name##_pd
#define MZ(name) _mm512_maskz_##name##_pd
#define M3(name) _mm512_mask3_##name##_pd

static inline R v_sum(V a)
{
    __m256d h = _mm256_add_pd(_mm512_castpd512_pd256(a), _mm512_extractf64x4_pd(a, 1));
    __m128d q = _mm_add_pd(_mm256_castpd256_pd128(h), _mm256_extractf128_pd(h, 1));
    return _mm_cvtsd_f64(_mm_add_sd(q, _mm_unpackhi_pd(q, q)));
}
static inline void sattn_quarters(V a[VL]) /* 2 x 2 transposes within the 128-bit lanes */
{
    for (int i = 0; i < VL; i += 2) {
        const V x = _mm512_unpacklo_pd(a[i], a[i + 1]);
        a[i + 1] = _mm512_unpackhi_pd(a[i], a[i + 1]);
        a[i] = x;
    }
}
static inline V v_roots_power(V t)
{
    static const uint64_t root[] = {SATTN_ROOTS(SATTN_ROOT)};
    const V power = _mm512_sub_pd(t, _mm512_set1_pd(V_ROUNDER)); /* scalef rounds it down */
    return _mm512_scalef_pd(_mm512_permutexvar_pd(_mm512_castpd_si512(t), _mm512_loadu_pd(root)),
                            power);
}
#define SHUFFLE(a, b, lanes) _mm512_shuffle_f64x2(a, b, lanes)
#define SATTN_WHOLE(m, a) _mm512_castsi512_pd(_mm512_mask_cvtpd_epi64(_mm512_castpd_si512(a), m, a))

#endif

static inline M v_first(int64_t n)
{
    return (M)((1u << n) - 1);
}
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
    return MZ(loadu)(v_first(n), p);
}
static inline void v_store_n(R *p, V v, int64_t n)
{
    MP(storeu)(p, v_first(n), v);
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
    return PM(cmp)(a, b, _CMP_LT_OQ);
}
static inline M v_le(V a, V b)
{
    return PM(cmp)(a, b, _CMP_LE_OQ);
}
static inline M v_nle(V a, V b)
{
    return PM(cmp)(a, b, _CMP_NLE_UQ);
}
static inline V v_keep(M m, V a)
{
    return MZ(mov)(m, a);
}
static inline V v_select(M m, V a, V b)
{
    return P(mask_blend)(m, b, a);
}
static inline V v_add_if(M m, V a, V b)
{
    return MP(add)(a, m, a, b);
}
static inline V v_fma_if(M m, V a, V b, V c)
{
#ifdef __clang__ /* computes every lane and selects later: lanes left out would raise exceptions */
    return v_fma(v_keep(m, a), b, c);
#else
    return M3(fmadd)(a, b, c, m);
#endif
}
static inline V v_fnma_if(M m, V a, V b, V c)
{
    return MZ(fnmadd)(m, a, b, c);
}
static inline V v_reach(V far, M m, V x, V n, R r)
{
    (void)m, (void)x, (void)r;
    return P(range)(far, n, 0xb); /* larger absolute value, or the one not NaN; n never signals */
}
static inline int v_reached(V far, R r)
{
    return PM(cmp)(far, v_set(r * (R)1.4427), _CMP_GT_OQ) != 0; /* 1 / ln 2 = 1.44269504 */
}
static inline V v_least(M m, V a) /* a subnormal number's bits are the whole number */
{
    return SATTN_WHOLE(m, a);
}
static inline V v_split(V a, V *e)
{
    /* [3/4, 3/2) would be one instruction; the others use [sqrt(1/2), sqrt(2)) */
    const V m = P(getmant)(a, _MM_MANT_NORM_1_2, _MM_MANT_SIGN_src), x = P(getexp)(a);
    const M high = PM(cmp)(m, v_set((R)0x1.6a09e667f3bcdp+0), _CMP_GE_OQ);
    *e = MP(add)(x, high, x, v_set(1));
    return MP(mul)(m, high, m, v_set((R)0.5));
}
static inline R v_top(V a)
{
    return P(reduce_max)(a);
}
static inline void v_transpose(V a[VL])
{
    enum { Q = VL / 4 }; /* elements of a 128-bit lane; the lanes make a 4 x 4 matrix */
    sattn_quarters(a);
    for (int j = 0; j < Q; j++) {
        const V x = SHUFFLE(a[j], a[Q + j], 0x44), y = SHUFFLE(a[j], a[Q + j], 0xee);
        const V z = SHUFFLE(a[2 * Q + j], a[3 * Q + j], 0x44);
        const V w = SHUFFLE(a[2 * Q + j], a[3 * Q + j], 0xee);
        a[j] = SHUFFLE(x, z, 0x88);
        a[Q + j] = SHUFFLE(x, z, 0xdd);
        a[2 * Q + j] = SHUFFLE(y, w, 0x88);
        a[3 * Q + j] = SHUFFLE(y, w, 0xdd);
    }
}

#undef SHUFFLE
#undef P
#undef PM
#undef MP
#undef MZ
#undef M3
#undef SATTN_WHOLE
