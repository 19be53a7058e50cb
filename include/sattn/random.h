/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SATTN_RANDOM_H
#define SATTN_RANDOM_H

#include "base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Counter-based random numbers: the i-th number of a stream is a function of (seed, stream, i)
 * alone, so that any part of a stream can be drawn
 * anywhere, in any order, by any number of threads.
 *
 *   Block j of a stream is Philox4x32-10 with key (seed low, seed high) and counter (j low, j high,
 *   stream low, stream high): four 32-bit words w0 .. w3.
 *   words:   word i is w[i mod 4] of block i / 4.
 *   uniform: number i = ((hi 2^32 + lo) >> 11) 2^-53 + 2^-54 of the words lo = number 2 i and
 *            hi = number 2 i + 1: in (0, 1].
 *   normal:  numbers 2 p and 2 p + 1 are sqrt(-2 log U) times cos and sin of 2 pi V, with
 *            uniforms U = number 2 p, V = number 2 p + 1 (Box and Muller). f32 rounds
 *            the f64 number.
 * Shapes:  n numbers from number `first` on. first + n < 2^62.
 * Errors:  SATTN_ESIZE n or first < 0 or first + n >= 2^62; SATTN_ENULL out is NULL and n > 0.
 * Numbers: words are exact, and uniforms but for the rounding of their sum above 1/2; a normal is
 *          within 2^-49 sqrt(-2 log U) of the formula: its angle is rounded, and libm computes.
 * Threads: serial. Memory: none.
 * Source:  Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011.
 * Since:   0.1 */
SATTN_API int32_t sattn_random_words(uint64_t seed, uint64_t stream, int64_t first, int64_t n,
                                     uint32_t *out);
SATTN_API int32_t sattn_random_uniform_f64(uint64_t seed, uint64_t stream, int64_t first, int64_t n,
                                           double *out);
SATTN_API int32_t sattn_random_normal_f64(uint64_t seed, uint64_t stream, int64_t first, int64_t n,
                                          double *out);
SATTN_API int32_t sattn_random_normal_f32(uint64_t seed, uint64_t stream, int64_t first, int64_t n,
                                          float *out);

/* Categories: number i is the first class c with (w_0 + .. + w_c) / sum w >= uniform number i,
 * w = exp(log_weight), the sums being rounded as they grow.
 *
 * Shapes:  log_weight [classes], need not be normalised, -inf = never drawn; n numbers from
 *          `first` on, as above.
 * Errors:  as above; SATTN_ESIZE classes < 1 or above 2^31 - 1; SATTN_EVALUE a log weight is NaN or
 *          +inf, or none is above -inf; SATTN_ENOMEM.
 * Threads: serial. Memory: 2 `classes` doubles, freed within the call. Since: 0.3 */
SATTN_API int32_t sattn_random_categorical(uint64_t seed, uint64_t stream, int64_t first, int64_t n,
                                           int64_t classes, const double *log_weight, int32_t *out);

/* Uniform on the sphere of a radius in R^width: point i is radius x / |x| of the normals x with
 * numbers i width .. (i + 1) width - 1. n points from `first` on; out [n][width].
 * Errors:  as above, (first + n) width < 2^62; SATTN_ESIZE width < 1; SATTN_EVALUE radius negative
 *          or not finite.
 * Threads: serial. Memory: none. Since: 0.3 */
SATTN_API int32_t sattn_random_sphere_f64(uint64_t seed, uint64_t stream, int64_t first, int64_t n,
                                          int64_t width, double radius, double *out);

#ifdef __cplusplus
}
#endif
#endif
