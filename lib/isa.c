/* SPDX-License-Identifier: BSD-2-Clause */
#include "isa.h"
#include "cpu.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define ROW(name, number)                                                                          \
    {                                                                                              \
        .isa = number, .f32 = &sattn_kernels_##name##_f32, .f64 = &sattn_kernels_##name##_f64      \
    }

/* In rising order of preference; the last one that the machine runs wins. */
static const sattn_row rows[] = {
    ROW(scalar, SATTN_ISA_SCALAR),
#if defined(__aarch64__)
    ROW(neon, SATTN_ISA_NEON),
#elif defined(__x86_64__)
    ROW(avx2, SATTN_ISA_AVX2),
    ROW(avx512, SATTN_ISA_AVX512),
#endif
};
enum { ROWS = sizeof rows / sizeof rows[0] };

static const char *const names[SATTN_ISA_COUNT] = {"scalar", "neon", "avx2", "avx512"};

static _Atomic(const sattn_row *) active;

static const sattn_row *best_up_to(int32_t cap)
{
    const sattn_row *best = &rows[0];
    for (int i = 1; i < ROWS; i++)
        if (rows[i].isa <= cap && sattn_cpu_can(rows[i].isa))
            best = &rows[i];
    return best;
}

static int32_t cap_of_environment(void)
{
    const char *word = getenv("SATTN_ISA");
    for (int32_t isa = 0; word && isa < SATTN_ISA_COUNT; isa++)
        if (strcmp(word, names[isa]) == 0)
            return isa;
    return SATTN_ISA_COUNT;
}

const sattn_row *sattn_active_row(void)
{
    const sattn_row *row = atomic_load_explicit(&active, memory_order_acquire);
    if (row)
        return row;
    /* Several threads may get here at once and find the same row; a cap set meanwhile stands. */
    const sattn_row *found = best_up_to(cap_of_environment());
    if (atomic_compare_exchange_strong(&active, &row, found))
        return found;
    return row;
}

const sattn_row *sattn_row_at(int index)
{
    if (index < 0 || index >= ROWS || !sattn_cpu_can(rows[index].isa))
        return NULL;
    return &rows[index];
}

int32_t sattn_isa(void)
{
    return sattn_active_row()->isa;
}

int32_t sattn_isa_available(int32_t isa)
{
    for (int i = 0; i < ROWS; i++)
        if (rows[i].isa == isa)
            return sattn_cpu_can(isa);
    return 0;
}

const char *sattn_isa_name(int32_t isa)
{
    return isa >= 0 && isa < SATTN_ISA_COUNT ? names[isa] : "unknown";
}

int32_t sattn_isa_set(int32_t isa)
{
    if (isa < 0 || isa >= SATTN_ISA_COUNT)
        return SATTN_EOPTION;
    atomic_store_explicit(&active, best_up_to(isa), memory_order_release);
    return SATTN_OK;
}
