/* SPDX-License-Identifier: BSD-2-Clause */
/* threads COUNT: fails if the library would not use COUNT threads (SATTN_NUM_THREADS and the like).
 * threads starved: where threads cannot be had, a call for eight of them makes do with fewer;
 * OpenMP's own runtime would end the process. */
#define _GNU_SOURCE
#include "process.h"
#include "sattn/softmax.h"

#include <pthread.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* Bytes of address space that this process has, and those that the stack of a thread takes */
static size_t address_space(void)
{
    size_t pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    EXPECT(file && fscanf(file, "%zu", &pages) == 1, "no /proc");
    fclose(file);
    return pages * (size_t)sysconf(_SC_PAGESIZE);
}

static size_t stack_of_thread(void)
{
    size_t bytes = 0;
    pthread_attr_t defaults;
    EXPECT(pthread_getattr_default_np(&defaults) == 0, "no defaults");
    EXPECT(pthread_attr_getstacksize(&defaults, &bytes) == 0, "no size");
    return bytes;
}

static void starved(void)
{
    float *x = floats(), *y = floats(), *wanted = floats();
    fill(x);
    EXPECT(sattn_softmax_f32(ROWS, COLUMNS, x, COLUMNS, wanted, COLUMNS, 1) == SATTN_OK, "softmax");
    /* room for one more thread, and none for a second */
    const rlim_t room = address_space() + stack_of_thread() * 3 / 2;
    EXPECT(setrlimit(RLIMIT_AS, &(struct rlimit){room, room}) == 0, "limit");
    EXPECT(sattn_set_num_threads(8) == SATTN_OK && sattn_get_num_threads() < 8, "limit unnoticed");
    EXPECT(sattn_softmax_f32(ROWS, COLUMNS, x, COLUMNS, y, COLUMNS, 8) == SATTN_OK, "softmax");
    EXPECT(memcmp(y, wanted, ELEMENTS * sizeof *y) == 0, "other bits");
    free(x);
    free(y);
    free(wanted);
}

int main(int count, char **arguments)
{
    EXPECT(count == 2, "how many threads?");
    if (strcmp(arguments[1], "starved") == 0) {
        starved();
    } else {
        const int32_t threads = sattn_get_num_threads();
        EXPECT(threads == atoi(arguments[1]), "%d, not %s", threads, arguments[1]);
    }
    return 0;
}
