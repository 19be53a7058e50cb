/* SPDX-License-Identifier: BSD-2-Clause */
/* race: eight threads make the first call of a process at once.
 * race cap: meanwhile others set the cap on instruction sets and the number of threads. */
#define _GNU_SOURCE
#include "process.h"
#include "sattn/sattn.h"

#include <pthread.h>
#include <string.h>

enum { THREADS = 8, CALLS = 20 };

static pthread_barrier_t start;
static float *x, *results[THREADS];
static int32_t isas[THREADS];

static void *caller(void *number)
{
    const intptr_t i = (intptr_t)number;
    pthread_barrier_wait(&start);
    for (int call = 0; call < CALLS; call++) {
        const int32_t status =
            sattn_softmax_f32(ROWS / 8, COLUMNS, x, COLUMNS, results[i], COLUMNS, 2);
        EXPECT(status == SATTN_OK, "%s", sattn_status_string(status));
        if (call == 0)
            isas[i] = sattn_isa();
    }
    return NULL;
}

static void *meddler(void *number)
{
    pthread_barrier_wait(&start);
    for (int i = 0; i < 1000; i++) {
        EXPECT(sattn_isa_set(i % SATTN_ISA_COUNT) == SATTN_OK, "cap");
        EXPECT(sattn_set_num_threads(i % 3) == SATTN_OK, "threads");
        EXPECT(sattn_get_num_threads() >= 1, "threads");
    }
    return number;
}

int main(int count, char **arguments)
{
    const int cap = count > 1 && strcmp(arguments[1], "cap") == 0;
    pthread_t ids[2 * THREADS];
    x = floats();
    fill(x);
    for (int i = 0; i < THREADS; i++)
        results[i] = floats();
    pthread_barrier_init(&start, NULL, cap ? 2 * THREADS : THREADS);
    for (intptr_t i = 0; i < THREADS; i++) {
        EXPECT(pthread_create(&ids[i], NULL, caller, (void *)i) == 0, "no thread");
        EXPECT(!cap || pthread_create(&ids[THREADS + i], NULL, meddler, NULL) == 0, "no thread");
    }
    for (int i = 0; i < (cap ? 2 : 1) * THREADS; i++)
        pthread_join(ids[i], NULL);
    for (int i = 1; i < THREADS; i++) {
        EXPECT(cap || isas[i] == isas[0], "thread %d saw %s", i, sattn_isa_name(isas[i]));
        EXPECT(memcmp(results[i], results[0], ELEMENTS / 8 * sizeof *x) == 0, "other bits in %d",
               i);
    }
    return 0;
}
