/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SATTN_TEST_ROWS_H
#define SATTN_TEST_ROWS_H

/* Kernels straight from their tables, past the public functions. */

#include "../../lib/isa.h"
#include "../harness.h"

#include <math.h>

/* The row of an instruction set that EACH_ROW visits. */
static inline const sattn_row *row_of(int32_t isa)
{
    for (int i = 0; i < SATTN_ISA_COUNT; i++)
        if (sattn_row_at(i) && sattn_row_at(i)->isa == isa)
            return sattn_row_at(i);
    cr_assert(0, "no row for instruction set %d", (int)isa);
    return NULL;
}

#ifdef SATTN_REAL
/* kernels_of(isa)->gemm(...) of the type under test */
static inline const struct FN(sattn_kernels) *kernels_of(int32_t isa)
{
#if SATTN_REAL == 32
    return row_of(isa)->f32;
#else
    return row_of(isa)->f64;
#endif
}

/* a b + c, rounded once */
static inline real fused(real a, real b, real c)
{
    return sizeof(real) == 4 ? (real)fmaf((float)a, (float)b, (float)c) : (real)fma(a, b, c);
}
#endif

#endif
