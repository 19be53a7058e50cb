/* SPDX-License-Identifier: BSD-2-Clause */
/* host: calls change neither OpenMP's settings, nor affinity, nor signal handlers; write nothing to
 * stdout or stderr, errors included; and start no thread inside a parallel region of the host. */
#define _GNU_SOURCE
#include "process.h"
#include "sattn/sattn.h"

#include <dirent.h>
#include <omp.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

typedef struct {
    int most, dynamic, levels, limit;
    omp_sched_t schedule;
    int chunk;
    cpu_set_t cpus;
    void (*handlers[32])(int);
} settings;

static settings current(void)
{
    settings s;
    memset(&s, 0, sizeof s); /* compared with memcmp */
    s.most = omp_get_max_threads();
    s.dynamic = omp_get_dynamic();
    s.levels = omp_get_max_active_levels();
    s.limit = omp_get_thread_limit();
    omp_get_schedule(&s.schedule, &s.chunk);
    EXPECT(sched_getaffinity(0, sizeof s.cpus, &s.cpus) == 0, "affinity");
    for (int i = 1; i < 32; i++) {
        struct sigaction action;
        EXPECT(sigaction(i, NULL, &action) == 0, "signal %d", i);
        s.handlers[i] = action.sa_handler;
    }
    return s;
}

static int threads_of_process(void)
{
    int count = 0;
    DIR *tasks = opendir("/proc/self/task");
    EXPECT(tasks, "no /proc");
    while (readdir(tasks))
        count++;
    closedir(tasks);
    return count - 2; /* . and .. */
}

static const float *x;

/* The last successful call wants another number of threads than the host's, which must stay. */
static void call_all(float *y)
{
    const int32_t more = omp_get_max_threads() + 1;
    EXPECT(sattn_exp_f32(ELEMENTS, x, 1, y, 1, 0) == SATTN_OK, "exp");
    EXPECT(sattn_softmax_f32(ROWS, COLUMNS, x, COLUMNS, y, COLUMNS, more) == SATTN_OK, "softmax");
    EXPECT(sattn_softmax_f32(ROWS, COLUMNS, NULL, 0, y, COLUMNS, 0) == SATTN_ENULL, "no error");
    EXPECT(sattn_exp_f32(-1, x, 1, y, 1, 4) == SATTN_ESIZE, "no error");
    EXPECT(sattn_isa_set(99) == SATTN_EOPTION && sattn_set_num_threads(-1) == SATTN_EVALUE,
           "no error");
    EXPECT(sattn_mixture_forward_f32(NULL) == SATTN_ENULL, "no error");
}

/* In a region of two threads, each calls the library with four. Nested parallelism is allowed. */
static void nested(void)
{
    int serial = 1, before = 0, after = 0;
    omp_set_max_active_levels(2);
#pragma omp parallel num_threads(2) reduction(&& : serial)
    {
        float *y = floats();
#pragma omp master
        before = threads_of_process();
#pragma omp barrier
        serial = sattn_get_num_threads() == 1;
        serial = serial && sattn_softmax_f32(ROWS, COLUMNS, x, COLUMNS, y, COLUMNS, 4) == SATTN_OK;
#pragma omp barrier
#pragma omp master
        after = threads_of_process();
        free(y);
    }
    EXPECT(serial, "not serial inside a parallel region");
    EXPECT(after <= before, "%d threads became %d inside a parallel region", before, after);
}

int main(void)
{
    float *data = floats(), *y = floats();
    FILE *file = tmpfile();
    EXPECT(file, "no temporary file");
    fill(data);
    x = data;

    const int out = dup(STDOUT_FILENO), err = dup(STDERR_FILENO);
    dup2(fileno(file), STDOUT_FILENO);
    dup2(fileno(file), STDERR_FILENO);
    const settings before = current();
    call_all(y);
    const settings after = current();
    fflush(NULL);
    dup2(out, STDOUT_FILENO);
    dup2(err, STDERR_FILENO);
    EXPECT(lseek(fileno(file), 0, SEEK_END) == 0, "something was written");
    EXPECT(memcmp(&before, &after, sizeof before) == 0, "a setting changed: %d, %d threads",
           before.most, after.most);
    nested();
    fclose(file);
    free(data);
    free(y);
    return 0;
}
