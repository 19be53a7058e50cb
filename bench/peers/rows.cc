/* SPDX-License-Identifier: BSD-2-Clause */
/* Compiled once per instruction set, with PEER = peer_avx2 or peer_avx512, and -O3 -ffast-math. All
 * but PEER has internal linkage: no function of another object may be replaced by one compiled
 * here. */
#include "rows.h"

#include "sattn/isa.h"

#include <immintrin.h>
#include <math.h>
#include <sleef.h>

#ifdef __AVX512F__
#define NAME "avx512"
#define ISA SATTN_ISA_AVX512
#define PICK(avx2, avx512) avx512
#else
#define NAME "avx2"
#define ISA SATTN_ISA_AVX2
#define PICK(avx2, avx512) avx2
#endif

extern "C" {
PICK(__m256, __m512) PICK(_ZGVdN8v_expf, _ZGVeN16v_expf)(PICK(__m256, __m512));
PICK(__m256d, __m512d) PICK(_ZGVdN4v_exp, _ZGVeN8v_exp)(PICK(__m256d, __m512d));
}

namespace
{

template <class R> struct vector {
    typedef R type __attribute__((vector_size(PICK(32, 64)), aligned(sizeof(R)), may_alias));
    enum { lanes = PICK(32, 64) / sizeof(R) };
};

inline PICK(__m256, __m512) sleef_exp(PICK(__m256, __m512) x)
{
    return PICK(Sleef_expf8_u10avx2, Sleef_expf16_u10avx512f)(x);
}

inline PICK(__m256d, __m512d) sleef_exp(PICK(__m256d, __m512d) x)
{
    return PICK(Sleef_expd4_u10avx2, Sleef_expd8_u10avx512f)(x);
}

inline PICK(__m256, __m512) libmvec_exp(PICK(__m256, __m512) x)
{
    return PICK(_ZGVdN8v_expf, _ZGVeN16v_expf)(x);
}

inline PICK(__m256d, __m512d) libmvec_exp(PICK(__m256d, __m512d) x)
{
    return PICK(_ZGVdN4v_exp, _ZGVeN8v_exp)(x);
}

inline float scalar_exp(float x)
{
    return expf(x);
}

inline double scalar_exp(double x)
{
    return exp(x);
}

template <class R> void sleef(int64_t n, const R *x, R *y)
{
    typedef typename vector<R>::type V;
    for (int64_t i = 0; i < n; i += vector<R>::lanes)
        *(V *)(y + i) = sleef_exp(*(const V *)(x + i));
}

template <class R> void libmvec(int64_t n, const R *x, R *y)
{
    typedef typename vector<R>::type V;
    for (int64_t i = 0; i < n; i += vector<R>::lanes)
        *(V *)(y + i) = libmvec_exp(*(const V *)(x + i));
}

template <class R> void softmax(int64_t rows, int64_t n, const R *x, R *y)
{
    for (int64_t r = 0; r < rows; r++, x += n, y += n) {
        R top = x[0], sum = 0;
        for (int64_t j = 1; j < n; j++)
            top = x[j] > top ? x[j] : top;
        for (int64_t j = 0; j < n; j++)
            sum += y[j] = scalar_exp(x[j] - top);
        const R factor = 1 / sum;
        for (int64_t j = 0; j < n; j++)
            y[j] *= factor;
    }
}

template <class R> void gradient(int64_t rows, int64_t n, const R *y, const R *dy, R *dx)
{
    for (int64_t r = 0; r < rows; r++, y += n, dy += n, dx += n) {
        R sum = 0;
        for (int64_t j = 0; j < n; j++)
            sum += y[j] * dy[j];
        for (int64_t j = 0; j < n; j++)
            dx[j] = y[j] * (dy[j] - sum);
    }
}

/* Full covariances; buffer [components][width + 1]: the values of a query, then its logits */
template <class R>
void mixture(int64_t queries, int64_t components, int64_t width, const R *tilt, const R *log_weight,
             const R *mean, const R *covariance, R *buffer, R *out)
{
    R *logit = buffer + components * width;
    for (int64_t q = 0; q < queries; q++, out += width) {
        const R *u = tilt + q * width;
        for (int64_t c = 0; c < components; c++) {
            const R *m = mean + c * width, *s = covariance + c * width * width;
            R *value = buffer + c * width, linear = 0, quadratic = 0;
            for (int64_t i = 0; i < width; i++)
                value[i] = 0;
            for (int64_t j = 0; j < width; j++)
                for (int64_t i = 0; i < width; i++)
                    value[i] += s[j * width + i] * u[j];
            for (int64_t i = 0; i < width; i++) {
                linear += u[i] * m[i];
                quadratic += u[i] * value[i];
                value[i] += m[i];
            }
            logit[c] = log_weight[c] + linear + quadratic / 2;
        }
        softmax(1, components, logit, logit);
        for (int64_t i = 0; i < width; i++)
            out[i] = 0;
        for (int64_t c = 0; c < components; c++)
            for (int64_t i = 0; i < width; i++)
                out[i] += logit[c] * buffer[c * width + i];
    }
}

/* Two multiply-adds start per cycle and take four: 8 chains would do, and AVX2 has 16 registers. */
enum { CHAINS = 12 };

template <class R> R fma_peak(int64_t steps)
{
    typedef typename vector<R>::type V;
    V acc[CHAINS];
    const V factor = V{} + R(0.5), term = V{} + R(1);
    for (int i = 0; i < CHAINS; i++)
        acc[i] = V{} + R(i);
    for (int64_t s = 0; s < steps; s++)
        for (int i = 0; i < CHAINS; i++)
            acc[i] = acc[i] * factor + term;
    for (int i = 1; i < CHAINS; i++)
        acc[0] += acc[i];
    return acc[0][0];
}

template <class R>
constexpr peer_row<R> row = {NAME,       ISA,         sleef<R>,
                             libmvec<R>, softmax<R>,  gradient<R>,
                             mixture<R>, fma_peak<R>, CHAINS * 2 * vector<R>::lanes};

} // namespace

const peer_row<float> &PEER(float)
{
    return row<float>;
}

const peer_row<double> &PEER(double)
{
    return row<double>;
}
