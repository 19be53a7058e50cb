/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SATTN_REAL_H
#define SATTN_REAL_H

/* A typed file of lib/ is compiled once per type, with SATTN_REAL = 32 or 64. This header gives it
 *   real          the type
 *   FN(name)      name_f32 or name_f64
 *   kernels()     the active row of kernels of that type
 *   sattn_take    what cuts scratch into its parts
 *   sattn_from    an array from one of its elements on */

#include "isa.h"

#include <stddef.h>
#include <stdint.h>

#if SATTN_REAL == 32
typedef float real;
#define FN(name) name##_f32
#define kernels() (sattn_active_row()->f32)
#elif SATTN_REAL == 64
typedef double real;
#define FN(name) name##_f64
#define kernels() (sattn_active_row()->f64)
#else
#error "SATTN_REAL must be 32 or 64"
#endif

/* NULL, which is not there or empty, has no elements to begin at. */
static inline real *sattn_from(const void *array, int64_t element)
{
    return array ? (real *)(uintptr_t)array + element : NULL;
}

/* The next `elements` of a stretch of scratch */
static inline real *sattn_take(real **from, int64_t elements)
{
    real *place = *from;
    *from += elements;
    return place;
}

#endif
