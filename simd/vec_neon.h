/* SPDX-License-Identifier: BSD-2-Clause */
/* Advanced SIMD of AArch64: 4 floats or 2 doubles. */
#include <arm_neon.h>

#define V_REGISTERS 32

#if SATTN_REAL == 32

typedef float R;
typedef float32x4_t V;
typedef uint32x4_t M;
#define VL 4
#define P(name) name##_f32
#define U(name) name##_u32

static inline V v_roots_power(V t)
{
    static const uint32_t root[] = {SATTN_ROOTS(SATTN_ROOT_LESS)};
    const uint32x4_t k = vreinterpretq_u32_f32(t);
    uint32x4_t r = vandq_u32(k, vdupq_n_u32(7));
    r = vmlaq_u32(vdupq_n_u32(0x03020100), r, vdupq_n_u32(0x04040404)); /* numbers of its bytes */
    const uint8x16x2_t bytes = {
        {vreinterpretq_u8_u32(vld1q_u32(root)), vreinterpretq_u8_u32(vld1q_u32(root + 4))}};
    const uint8x16_t picked = vqtbl2q_u8(bytes, vreinterpretq_u8_u32(r));
    return vreinterpretq_f32_u32(vaddq_u32(vreinterpretq_u32_u8(picked), vshlq_n_u32(k, V_POWER)));
}
static inline V v_least(M m, V a) /* a subnormal number's bits are the whole number */
{
    const V whole = vdupq_n_f32(0x1p23f);
    const int32x4_t bits =
        vsubq_s32(vreinterpretq_s32_f32(vaddq_f32(a, whole)), vreinterpretq_s32_f32(whole));
    return vbslq_f32(m, vreinterpretq_f32_s32(bits), a);
}
static inline V v_split(V a, V *e)
{
    const int32x4_t bits = vreinterpretq_s32_f32(a);
    const int32x4_t x = vshrq_n_s32(vsubq_s32(bits, vdupq_n_s32(0x3f3504f3)), 23);
    *e = vcvtq_f32_s32(x);
    return vreinterpretq_f32_s32(vsubq_s32(bits, vshlq_n_s32(x, 23)));
}
static inline R v_sum(V a)
{
    const float32x2_t h = vadd_f32(vget_low_f32(a), vget_high_f32(a));
    return vget_lane_f32(h, 0) + vget_lane_f32(h, 1);
}
static inline void v_transpose(V a[VL])
{
    const float64x2_t x = vreinterpretq_f64_f32(vzip1q_f32(a[0], a[1]));
    const float64x2_t y = vreinterpretq_f64_f32(vzip2q_f32(a[0], a[1]));
    const float64x2_t z = vreinterpretq_f64_f32(vzip1q_f32(a[2], a[3]));
    const float64x2_t w = vreinterpretq_f64_f32(vzip2q_f32(a[2], a[3]));
    a[0] = vreinterpretq_f32_f64(vzip1q_f64(x, z));
    a[1] = vreinterpretq_f32_f64(vzip2q_f64(x, z));
    a[2] = vreinterpretq_f32_f64(vzip1q_f64(y, w));
    a[3] = vreinterpretq_f32_f64(vzip2q_f64(y, w));
}

#else

typedef double R;
typedef float64x2_t V;
typedef uint64x2_t M;
#define VL 2
#define P(name) name##_f64
#define U(name) name##_u64

static inline V v_roots_power(V t)
{
    static const uint64_t root[] = {SATTN_ROOTS(SATTN_ROOT_LESS)};
    const uint64x2_t k = vreinterpretq_u64_f64(t);
    /* numbers of its bytes: 8 i in each of them, and 0 to 7 */
    const uint8x16_t i = vqtbl1q_u8(vreinterpretq_u8_u64(vshlq_n_u64(k, 3)),
                                    vcombine_u8(vdup_n_u8(0), vdup_n_u8(8)));
    const uint8x16_t byte = vorrq_u8(vandq_u8(i, vdupq_n_u8(56)),
                                     vreinterpretq_u8_u64(vdupq_n_u64(0x0706050403020100)));
    const uint8x16x4_t bytes = {
        {vreinterpretq_u8_u64(vld1q_u64(root)), vreinterpretq_u8_u64(vld1q_u64(root + 2)),
         vreinterpretq_u8_u64(vld1q_u64(root + 4)), vreinterpretq_u8_u64(vld1q_u64(root + 6))}};
    const uint64x2_t picked = vreinterpretq_u64_u8(vqtbl4q_u8(bytes, byte));
    return vreinterpretq_f64_u64(vaddq_u64(picked, vshlq_n_u64(k, V_POWER)));
}
static inline V v_least(M m, V a)
{
    const V whole = vdupq_n_f64(0x1p52);
    const int64x2_t bits =
        vsubq_s64(vreinterpretq_s64_f64(vaddq_f64(a, whole)), vreinterpretq_s64_f64(whole));
    return vbslq_f64(m, vreinterpretq_f64_s64(bits), a);
}
static inline V v_split(V a, V *e)
{
    const int64x2_t bits = vreinterpretq_s64_f64(a);
    const int64x2_t x = vshrq_n_s64(vsubq_s64(bits, vdupq_n_s64(0x3fe6a09e667f3bcd)), 52);
    *e = vcvtq_f64_s64(x);
    return vreinterpretq_f64_s64(vsubq_s64(bits, vshlq_n_s64(x, 52)));
}
static inline R v_sum(V a)
{
    return vgetq_lane_f64(a, 0) + vgetq_lane_f64(a, 1);
}
static inline void v_transpose(V a[VL])
{
    const V x = vzip1q_f64(a[0], a[1]);
    a[1] = vzip2q_f64(a[0], a[1]);
    a[0] = x;
}

#endif

static inline V v_set(R r)
{
    return P(vdupq_n)(r);
}
static inline V v_load(const R *p)
{
    return P(vld1q)(p);
}
static inline void v_store(R *p, V v)
{
    P(vst1q)(p, v);
}
static inline V v_load_n(const R *p, int64_t n)
{
    R lane[VL] = {0};
    for (int64_t i = 0; i < n; i++)
        lane[i] = p[i];
    return v_load(lane);
}
static inline void v_store_n(R *p, V v, int64_t n)
{
    R lane[VL];
    v_store(lane, v);
    for (int64_t i = 0; i < n; i++)
        p[i] = lane[i];
}
static inline V v_add(V a, V b)
{
    return P(vaddq)(a, b);
}
static inline V v_sub(V a, V b)
{
    return P(vsubq)(a, b);
}
static inline V v_mul(V a, V b)
{
    return P(vmulq)(a, b);
}
static inline V v_div(V a, V b)
{
    return P(vdivq)(a, b);
}
static inline V v_fma(V a, V b, V c)
{
    return P(vfmaq)(c, a, b);
}
static inline V v_fnma(V a, V b, V c)
{
    return P(vfmsq)(c, a, b);
}
static inline M v_lt(V a, V b)
{
    return P(vcltq)(a, b);
}
static inline M v_le(V a, V b)
{
    return P(vcleq)(a, b);
}
static inline M v_nle(V a, V b)
{
#if SATTN_REAL == 32
    return vmvnq_u32(vcleq_f32(a, b));
#else
    return veorq_u64(vcleq_f64(a, b), vdupq_n_u64(UINT64_MAX));
#endif
}
static inline M v_first(int64_t n)
{
    R lane[VL];
    for (int i = 0; i < VL; i++)
        lane[i] = i < n ? 1 : 0;
    return v_lt(v_set(0), v_load(lane));
}
static inline V v_select(M m, V a, V b)
{
    return P(vbslq)(m, a, b);
}
static inline V v_keep(M m, V a)
{
    return v_select(m, a, v_set(0));
}
static inline V v_max(V a, V b) /* not FMAX: NaN handling differs from the other rows */
{
    return v_select(v_lt(b, a), a, b);
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
static inline V v_reach(V far, M m, V x, V n, R r)
{
    (void)n;
    (void)r;
    return v_max(P(vabsq)(v_keep(m, x)), far);
}
static inline int v_reached(V far, R r)
{
    return P(vmaxvq)(far) > r;
}
static inline R v_top(V a)
{
    return P(vmaxvq)(a);
}

#undef P
#undef U
