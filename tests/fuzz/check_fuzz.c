/* SPDX-License-Identifier: BSD-2-Clause */
/* Some thousand random descriptors; the suite `full` has more seeds. */
#include "../harness.h"
#include "fuzz.h"
#include "operations.h"

enum { TRIES = 6000, BYTES = 256 };

Test(fuzz, random)
{
    int64_t ok[2 * OPERATIONS] = {0};
    for (int64_t i = 0; i < TRIES; i++) {
        if (is_left_out(i))
            continue;
        uint8_t bytes[BYTES];
        rng g = seed_of((uint64_t)i);
        for (int j = 0; j < BYTES; j++)
            bytes[j] = (uint8_t)random_bits(&g);
        const char *wrong = fuzz(bytes, BYTES, ok);
        cr_assert(!wrong, "input %lld: %s: %s", (long long)i, wrong, where());
    }
    for (int i = 0; i < 2 * OPERATIONS; i++)
        cr_assert(ok[i] > 0, "no call of operation %d, type %d had SATTN_OK", i / 2, i % 2);
}
