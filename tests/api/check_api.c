/* SPDX-License-Identifier: BSD-2-Clause */
/* Bad input to the functions with plain arguments: the documented status, and no output written. */
#include "../harness.h"
#include "sattn/exp.h"
#include "sattn/softmax.h"

#include <stdio.h>
#include <string.h>

/* Outputs start as 0xff and stay so after a refused call. */
static real x[64], y[64];

static void reset(void)
{
    memset(x, 0, sizeof x);
    memset(y, 0xff, sizeof y);
}

#define REFUSED(status, call)                                                                      \
    do {                                                                                           \
        reset();                                                                                   \
        at("%s", #call);                                                                           \
        const int32_t got = call;                                                                  \
        cr_assert(got == (status), "%s, not %s: %s", sattn_status_string(got),                     \
                  sattn_status_string(status), where());                                           \
        check(is_untouched(y, sizeof y));                                                          \
    } while (0)

Test(api, exp)
{
    const int64_t huge = INT64_MAX / 8;
    REFUSED(SATTN_ESIZE, FN(sattn_exp)(-1, x, 1, y, 1, 0));
    REFUSED(SATTN_ESIZE, FN(sattn_exp)(INT64_MIN, x, 1, y, 1, 0));
    REFUSED(SATTN_ESIZE, FN(sattn_exp)(huge, x, 8, y, 8, 0));
    REFUSED(SATTN_ESIZE, FN(sattn_exp)(3, x, 1, y, INT64_MIN, 0));
    REFUSED(SATTN_ENULL, FN(sattn_exp)(4, NULL, 1, y, 1, 0));
    REFUSED(SATTN_ENULL, FN(sattn_exp)(4, x, 1, NULL, 1, 0));
    REFUSED(SATTN_ESTRIDE, FN(sattn_exp)(4, x, 1, y, 0, 0));
    REFUSED(SATTN_EVALUE, FN(sattn_exp)(4, x, 1, y, 1, -1));
    REFUSED(SATTN_EVALUE, FN(sattn_exp)(4, x, 1, y, 1, SATTN_MAX_THREADS + 1));
    REFUSED(SATTN_EALIAS, FN(sattn_exp)(4, y, 2, y, 1, 0));
    REFUSED(SATTN_EALIAS, FN(sattn_exp)(4, y + 3, -1, y, 1, 0));
    REFUSED(SATTN_OK, FN(sattn_exp)(0, NULL, 1, NULL, 1, 0));
    check(FN(sattn_exp)(1, x, 0, y, 0, 0) == SATTN_OK && y[0] == 1);
    check(FN(sattn_exp)(4, x, 0, y, 1, 0) == SATTN_OK && y[3] == 1);
    check(FN(sattn_exp)(4, x + 8, 1, x + 8, 1, 0) == SATTN_OK && x[11] == 1);
}

Test(api, softmax)
{
    const int64_t huge = (int64_t)1 << 40;
    REFUSED(SATTN_ESIZE, FN(sattn_softmax)(-1, 4, x, 4, y, 4, 0));
    REFUSED(SATTN_ESIZE, FN(sattn_softmax)(4, -1, x, 4, y, 4, 0));
    REFUSED(SATTN_ESIZE, FN(sattn_softmax)(huge, 4, x, huge, y, 4, 0));
    REFUSED(SATTN_ESIZE, FN(sattn_softmax)(huge, 4, x, 4, y, huge, 0));
    REFUSED(SATTN_ENULL, FN(sattn_softmax)(2, 4, NULL, 4, y, 4, 0));
    REFUSED(SATTN_ENULL, FN(sattn_softmax)(2, 4, x, 4, NULL, 4, 0));
    REFUSED(SATTN_ESTRIDE, FN(sattn_softmax)(2, 4, x, 4, y, 3, 0));
    REFUSED(SATTN_ESTRIDE, FN(sattn_softmax)(2, 4, x, 4, y, 0, 0));
    REFUSED(SATTN_EVALUE, FN(sattn_softmax)(2, 4, x, 4, y, 4, -1));
    REFUSED(SATTN_EVALUE, FN(sattn_softmax)(2, 4, x, 4, y, 4, SATTN_MAX_THREADS + 1));
    REFUSED(SATTN_EALIAS, FN(sattn_softmax)(2, 4, y + 1, 4, y, 4, 0));
    REFUSED(SATTN_EALIAS, FN(sattn_softmax)(2, 4, y, 8, y, 4, 0));
    REFUSED(SATTN_OK, FN(sattn_softmax)(0, 4, NULL, 4, NULL, 4, 0));
    REFUSED(SATTN_OK, FN(sattn_softmax)(4, 0, NULL, 0, NULL, 0, 0));
    check(FN(sattn_softmax)(2, 4, x, 0, y, 4, 0) == SATTN_OK && y[7] == (real)0.25);
    check(FN(sattn_softmax)(2, 4, x, 4, x, 4, 0) == SATTN_OK && x[7] == (real)0.25);
}

Test(api, threads)
{
    check(sattn_set_num_threads(3) == SATTN_OK);
    const int32_t before = sattn_get_num_threads();
    check(sattn_set_num_threads(-1) == SATTN_EVALUE);
    check(sattn_set_num_threads(SATTN_MAX_THREADS + 1) == SATTN_EVALUE);
    check(sattn_get_num_threads() == before);
    check(sattn_set_num_threads(0) == SATTN_OK);
    check(sattn_get_num_threads() >= 1);
}

Test(api, isa)
{
    const int32_t best = sattn_isa();
    check(sattn_isa_available(best) == 1 && sattn_isa_available(SATTN_ISA_SCALAR) == 1);
    check(sattn_isa_available(-1) == 0 && sattn_isa_available(SATTN_ISA_COUNT) == 0);
    check(sattn_isa_set(-1) == SATTN_EOPTION && sattn_isa_set(SATTN_ISA_COUNT) == SATTN_EOPTION);
    check(sattn_isa() == best);
    for (int32_t cap = 0; cap < SATTN_ISA_COUNT; cap++) {
        check(sattn_isa_set(cap) == SATTN_OK);
        check(sattn_isa() <= cap && sattn_isa_available(sattn_isa()));
        check(!sattn_isa_available(cap) || sattn_isa() == cap);
        check(strcmp(sattn_isa_name(cap), "unknown") != 0);
    }
    check(strcmp(sattn_isa_name(-1), "unknown") == 0);
    check(strcmp(sattn_isa_name(SATTN_ISA_COUNT), "unknown") == 0);
    check(strcmp(sattn_isa_name(SATTN_ISA_AVX512), "avx512") == 0);
}

Test(api, base)
{
    for (int32_t status = 0; status >= SATTN_EUNSUPPORTED; status--)
        for (int32_t other = 0; other > status; other--)
            check(strcmp(sattn_status_string(status), sattn_status_string(other)) != 0);
    check(strcmp(sattn_status_string(SATTN_EUNSUPPORTED), "unknown status") != 0);
    check(strcmp(sattn_status_string(1), "unknown status") == 0);
    check(strcmp(sattn_status_string(SATTN_EUNSUPPORTED - 1), "unknown status") == 0);
    check(strcmp(sattn_status_string(INT32_MIN), "unknown status") == 0);
    int major = 0, minor = 0, patch = 0;
    check(sscanf(sattn_version_string(), "%d.%d.%d", &major, &minor, &patch) == 3);
    check(sattn_version() == major * 10000 + minor * 100 + patch);
    check(strstr(sattn_build_info(), sattn_version_string()) != NULL);
}

Test(api, memory)
{
    for (int64_t bytes = 1; bytes < 1 << 20; bytes *= 3) {
        void *memory = sattn_alloc(bytes);
        check(memory && (uintptr_t)memory % 64 == 0);
        memset(memory, 1, (size_t)bytes);
        sattn_free(memory);
    }
    check(sattn_alloc(-1) == NULL && sattn_alloc(INT64_MIN) == NULL);
    check(sattn_alloc(INT64_MAX) == NULL && sattn_alloc(INT64_MAX - 63) == NULL);
    sattn_free(sattn_alloc(0));
    sattn_free(NULL);
}
