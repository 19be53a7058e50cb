/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SATTN_BASE_H
#define SATTN_BASE_H

/* libsattn: status codes, version, threads. Every other header of the library includes this one.
 *
 * Conventions of the whole library
 *   Letters: B batch, M queries, N keys or tokens, D key width, E value width, C components.
 *   Sizes and strides are int64_t, strides count elements. Arrays are row-major.
 *   A function that can fail returns a status, SATTN_OK or a negative code. Unless it returns
 *   SATTN_OK it has written nothing.
 *   Bits: for one build and type a result does not depend on the instruction set, the number of
 *   threads, the batch it was part of, alignment or strides (a NaN's payload and sign excepted).
 *   Every function may be called from any number of threads at once. None prints, exits, changes
 *   the floating-point environment, thread affinity, signals or OpenMP's settings of the host. */

#include <stdint.h>

#if defined(__GNUC__)
#define SATTN_API __attribute__((visibility("default")))
#else
#define SATTN_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Status. Zero is success, negative values are errors; sattn_status_string names them. */
typedef int32_t sattn_status;

#define SATTN_OK 0
#define SATTN_ENULL (-1)        /* a required pointer is NULL */
#define SATTN_ESIZE (-2)        /* a size is negative, or a product of sizes overflows */
#define SATTN_ESTRIDE (-3)      /* a stride is too small for its row, or output elements overlap */
#define SATTN_EOPTION (-4)      /* an unknown flag bit or option value */
#define SATTN_ESTRUCT (-5)      /* a descriptor's size is wrong, or its unknown tail is not zero */
#define SATTN_EVALUE (-6)       /* a parameter is not finite or outside its range */
#define SATTN_EALIAS (-7)       /* arguments overlap in a way that the function forbids */
#define SATTN_ENOMEM (-8)       /* memory could not be had */
#define SATTN_EWORKSPACE (-9)   /* the caller's workspace is too small or misaligned */
#define SATTN_ECANCELLED (-10)  /* a progress callback asked to stop */
#define SATTN_EUNSUPPORTED (-11) /* this machine or build cannot do it */

/* One line of English, static storage, never NULL (an unknown code gives "unknown status"). */
SATTN_API const char *sattn_status_string(int32_t status);

/* Version of the library that is loaded: major * 10000 + minor * 100 + patch, and as "1.2.3". */
SATTN_API int32_t sattn_version(void);
SATTN_API const char *sattn_version_string(void);

/* Compiler, OpenMP, instruction sets of this build, in one line; static storage. */
SATTN_API const char *sattn_build_info(void);

/* Threads. The count that a call uses is, in this order: its own `threads` argument if > 0; the
 * value of sattn_set_num_threads if > 0; the environment's SATTN_NUM_THREADS if it is a positive
 * number; OpenMP's default, at most the CPUs (and the cgroup quota) of the process. An explicit
 * request may exceed the CPUs. Small problems, calls from inside an OpenMP parallel region and
 * calls in a forked child run on the calling thread alone. The answer never depends on the count.
 * sattn_set_num_threads is process-wide, atomic, lasting; 0 returns to the default.
 * Errors: SATTN_EVALUE if threads < 0 or > SATTN_MAX_THREADS. */
#define SATTN_MAX_THREADS 1024
SATTN_API int32_t sattn_set_num_threads(int32_t threads);
/* The count a large call would use now with threads = 0. Changes nothing. */
SATTN_API int32_t sattn_get_num_threads(void);

/* Flags that several operations share */
#define SATTN_ACCUMULATE 1 /* backward adds to the gradients instead of overwriting them */

/* How an array of numbers is stored where a descriptor has a choice; arithmetic is in the type of
 * the function. */
#define SATTN_STORAGE_OWN 0  /* float for _f32, double for _f64 */
#define SATTN_STORAGE_BF16 1 /* uint16_t, the upper half of a float */
#define SATTN_STORAGE_F16 2  /* uint16_t, IEEE binary16 */

/* Memory for workspaces and arrays, aligned to 64 bytes; NULL if it cannot be had or bytes < 0.
 * Any memory of the caller's serves as well. sattn_free(NULL) does nothing. */
SATTN_API void *sattn_alloc(int64_t bytes);
SATTN_API void sattn_free(void *memory);

#ifdef __cplusplus
}
#endif
#endif
