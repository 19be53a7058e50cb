/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SATTN_ISA_H
#define SATTN_ISA_H

/* Which instruction set computes. All give the same bits; they differ in speed alone.
 *
 * The best set that processor and operating system both offer is chosen on the first call. The
 * environment variable SATTN_ISA=scalar|neon|avx2|avx512, read once, and sattn_isa_set cap the
 * choice: a cap above the machine's means selects the best there is, an unknown word changes
 * nothing. "avx2" means AVX2 + FMA, "avx512" means F + VL + BW + DQ besides. */

#include "base.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SATTN_ISA_SCALAR 0
#define SATTN_ISA_NEON 1
#define SATTN_ISA_AVX2 2
#define SATTN_ISA_AVX512 3
#define SATTN_ISA_COUNT 4

/* The set in use. */
SATTN_API int32_t sattn_isa(void);

/* 1 if this build has kernels for the set and this machine can run them, else 0. */
SATTN_API int32_t sattn_isa_available(int32_t isa);

/* "scalar", "neon", "avx2", "avx512"; "unknown" otherwise. Static storage. */
SATTN_API const char *sattn_isa_name(int32_t isa);

/* Use the best available set that is <= isa, process-wide, for calls that start afterwards.
 * Errors: SATTN_EOPTION if isa is none of the constants above. */
SATTN_API int32_t sattn_isa_set(int32_t isa);

#ifdef __cplusplus
}
#endif
#endif
