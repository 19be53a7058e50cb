/* SPDX-License-Identifier: BSD-2-Clause */
#include "cpu.h"
#include "sattn/isa.h"

#if defined(__x86_64__)
#include <cpuid.h>

/* What the OS saves on a context switch (XCR0): xmm + ymm, and the opmask and zmm state besides.
 * CPUID alone says what the processor has, also where the OS or a hypervisor has switched it off.
 */
enum { YMM_STATE = 0x06, ZMM_STATE = 0xe6 };

/* Feature bits of CPUID leaf 1 (ecx) and leaf 7 (ebx): what -mavx2 -mfma and
 * -mavx512f -mavx512vl -mavx512bw -mavx512dq let the compiler use. */
enum {
    L1_FMA = 1 << 12,
    L1_OSXSAVE = 1 << 27,
    L1_AVX = 1 << 28,
    L7_AVX2 = 1 << 5,
    L7_AVX512F = 1 << 16,
    L7_AVX512DQ = 1 << 17,
    L7_AVX512BW = 1 << 30,
};
#define L7_AVX512VL (1u << 31)

static unsigned saved_state(void)
{
    unsigned low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return low;
}

static int has(unsigned word, unsigned bits)
{
    return (word & bits) == bits;
}

int sattn_cpu_can(int32_t isa)
{
    unsigned a, b, c1, d, b7;
    if (isa == SATTN_ISA_SCALAR)
        return 1;
    /* OSXSAVE first: without it XGETBV faults. */
    if (!__get_cpuid(1, &a, &b, &c1, &d) || !has(c1, L1_OSXSAVE | L1_AVX | L1_FMA))
        return 0;
    if (!__get_cpuid_count(7, 0, &a, &b7, &c1, &d) || !has(b7, L7_AVX2))
        return 0;
    if (isa == SATTN_ISA_AVX2)
        return has(saved_state(), YMM_STATE);
    if (isa == SATTN_ISA_AVX512)
        return has(b7, L7_AVX512F | L7_AVX512DQ | L7_AVX512BW | L7_AVX512VL) &&
               has(saved_state(), ZMM_STATE);
    return 0;
}

#else

int sattn_cpu_can(int32_t isa)
{
#if defined(__aarch64__) /* Advanced SIMD is part of the architecture */
    if (isa == SATTN_ISA_NEON)
        return 1;
#endif
    return isa == SATTN_ISA_SCALAR;
}

#endif
