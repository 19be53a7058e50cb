/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SATTN_TEST_PROCESS_H
#define SATTN_TEST_PROCESS_H

/* A program of this folder does to the library, in a process of its own, what a host program might
 * do to it. It exits with 0 (good), 1 (bad, a line on stderr says why) or 77 (cannot be tried
 * here). */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { SKIPPED = 77 };

/* EXPECT(condition, format, ...) */
#define EXPECT(condition, ...)                                                                     \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: %s: ", __FILE__, __LINE__, #condition);                        \
            fprintf(stderr, __VA_ARGS__);                                                          \
            fputc('\n', stderr);                                                                   \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

/* A softmax that is worth several threads. */
enum { ROWS = 2048, COLUMNS = 512, ELEMENTS = ROWS * COLUMNS };

static inline void fill(float *x)
{
    for (int64_t i = 0; i < ELEMENTS; i++)
        x[i] = (float)(i * 37 % 101) / 50 - 1;
}

static inline float *floats(void)
{
    float *memory = malloc(ELEMENTS * sizeof *memory);
    EXPECT(memory, "no memory");
    return memory;
}

#endif
