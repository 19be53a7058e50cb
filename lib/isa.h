/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SATTN_LIB_ISA_H
#define SATTN_LIB_ISA_H

/* Dispatch: one row of kernels per instruction set, one atomic pointer to the row in use. */

#include "../simd/kernels.h"
#include "sattn/isa.h"

typedef struct sattn_row {
    int32_t isa;
    const struct sattn_kernels_f32 *f32;
    const struct sattn_kernels_f64 *f64;
} sattn_row;

/* The row in use; chosen on the first call. */
const sattn_row *sattn_active_row(void);

/* Row number `index` of this build (0 = scalar first), NULL past the end or if this machine cannot
 * run it: what the kernel tests iterate over. */
const sattn_row *sattn_row_at(int index);

#endif
