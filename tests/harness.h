/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SATTN_TEST_HARNESS_H
#define SATTN_TEST_HARNESS_H

/* What the tests in C share. A test executable is harness.c and one check_*.c, on Criterion or on
 * the shim of its macros.
 *
 *   EACH_ROW(gemm, chain)              a test that runs once for every instruction set of this
 *   {                                  machine; *isa is SATTN_ISA_...
 *       const sattn_row *row = row_of(*isa);      kernels (tests/kernels/rows.h), or
 *       sattn_isa_set(*isa);                      the public functions
 *       ...
 *   }
 *
 * A typed check is compiled twice, with SATTN_REAL = 32 and 64, and then has `real` and FN(name).
 */

#include "sattn/base.h"
#include "sattn/isa.h"

#include <stddef.h>
#include <stdint.h>

#ifdef SATTN_CRITERION
#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#else
#include "criterion_shim.h"
#endif

#if defined(SATTN_REAL) && SATTN_REAL == 32
typedef float real;
#define FN(name) name##_f32
#define EPS 0x1p-24 /* half the spacing of numbers at 1 */
#elif defined(SATTN_REAL)
typedef double real;
#define FN(name) name##_f64
#define EPS 0x1p-53
#endif

struct criterion_test_params each_row(void);
#define EACH_ROW(suite, name)                                                                      \
    ParameterizedTestParameters(suite, name)                                                       \
    {                                                                                              \
        return each_row();                                                                         \
    }                                                                                              \
    ParameterizedTest(int32_t *isa, suite, name)

/* The case under test, as every failing check below prints it: at("n %d seed %llu", n, seed). */
void at(const char *format, ...) __attribute__((format(printf, 1, 2)));
const char *where(void);
#define check(condition) cr_assert(condition, "%s: %s", #condition, where())

/* Numbers of the element size `bytes`: 4 = float, 8 = double. */
double element(const void *x, int64_t i, size_t bytes);
/* Equal bits; any NaN equals any other. */
int same_bits(const void *a, const void *b, int64_t n, size_t bytes);
/* Floating-point numbers between a and b; INT64_MAX if one is NaN and the other not. */
int64_t ulps(double a, double b, size_t bytes);

/* Fails with the first index that differs. */
void check_same_of(const char *what, const void *got, const void *want, int64_t n, size_t bytes);
#define check_same(got, want, n) check_same_of(#got, got, want, n, sizeof *(got))
/* |got - want| <= bound; two NaNs or equal infinities pass, a NaN bound fails. */
void check_near(const char *what, int64_t index, double got, double want, double bound);

/* Seeded random numbers (SplitMix64). seed_of(n) is seed n of a test, changed by SATTN_TEST_SEED.
 */
typedef struct {
    uint64_t state;
} rng;
rng seed_of(uint64_t n);
/* Where time is short (an emulator, sanitisers) SATTN_TEST_SHARE = n leaves out all but each n-th
 * case. */
int is_left_out(int64_t number);
uint64_t random_bits(rng *g);
int64_t random_below(rng *g, int64_t n);
double random_in(rng *g, double low, double high);
void random_fill_of(rng *g, void *x, int64_t n, size_t bytes, double low, double high);
#define random_fill(g, x, n, low, high) random_fill_of(g, x, n, sizeof *(x), low, high)

/* Memory whose neighbourhood is watched. The bytes around it hold 0xff (NaN in both types).
 *   ROOMY         64-byte aligned plus `offset`, 4 KiB free on both sides
 *   ENDS          its last byte is `offset` bytes before an inaccessible page
 *   BEGINS        its first byte is `offset` bytes after an inaccessible page
 * The memory itself holds 0xff too. All of it lives until release_guarded. */
typedef enum { ROOMY, ENDS, BEGINS } placement;
void *guarded(size_t bytes, placement place, size_t offset);
/* Fails if a byte outside was written. */
void check_guarded(void);
void release_guarded(void);

/* Bytes of 0xff, as guarded memory starts. */
int is_untouched(const void *memory, size_t bytes);

#endif
