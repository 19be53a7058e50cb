/* SPDX-License-Identifier: BSD-2-Clause */
#include "par.h"
#include "sattn/base.h"

#include <fenv.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#ifdef _OPENMP
#include <omp.h>
#endif

static _Atomic int32_t setting; /* sattn_set_num_threads; 0 = none */
static _Atomic int forked;      /* libgomp's pool does not survive fork: serial in children */

static void on_fork(void)
{
    atomic_store(&forked, 1);
}

__attribute__((constructor)) static void at_load(void)
{
    pthread_atfork(NULL, NULL, on_fork);
}

int32_t sattn_par_check(int32_t threads)
{
    return threads < 0 || threads > SATTN_MAX_THREADS ? SATTN_EVALUE : SATTN_OK;
}

int32_t sattn_set_num_threads(int32_t threads)
{
    const int32_t status = sattn_par_check(threads);
    if (status == SATTN_OK)
        atomic_store(&setting, threads);
    return status;
}

int32_t sattn_get_num_threads(void)
{
    return sattn_par_threads(0);
}

/* Kernels are written for rounding to nearest: in another mode exp would reduce its argument to
 * twice the range of its polynomial. A task sets the mode if its thread has another one and gives
 * that back, so that results are the same bits in every mode. Exception flags stay. */
static void run(sattn_par_body body, void *context, int64_t task, int32_t thread)
{
    const int mode = fegetround();
    if (mode != FE_TONEAREST)
        fesetround(FE_TONEAREST);
    body(context, task, thread);
    if (mode != FE_TONEAREST)
        fesetround(mode);
}

/* The other task is at work: soon done, or its thread waits for a processor. */
void sattn_par_wait(const int64_t *counter, int64_t value)
{
    enum { SPINS = 1000 };
    for (int i = 0; __atomic_load_n(counter, __ATOMIC_ACQUIRE) < value; i++)
        if (i > SPINS)
            sched_yield();
}

void sattn_par_post(int64_t *counter, int64_t value)
{
    __atomic_store_n(counter, value, __ATOMIC_RELEASE);
}

static void run_all(int64_t tasks, sattn_par_body body, void *context)
{
    for (int64_t task = 0; task < tasks; task++)
        run(body, context, task, 0);
}

#ifdef _OPENMP

static _Atomic int32_t environment; /* default of this process; 0 = not yet known */
static _Atomic int32_t proven = 1;  /* so many threads could be had at once */

/* CPUs that the cgroup's quota pays for, at least 1; a large number if there is no quota. */
static int32_t cgroup_cpus(void)
{
    long long quota = 0, period = 0;
    FILE *file = fopen("/sys/fs/cgroup/cpu.max", "re");
    if (!file)
        return SATTN_MAX_THREADS;
    const int found = fscanf(file, "%lld %lld", &quota, &period);
    fclose(file);
    if (found != 2 || quota <= 0 || period <= 0 || quota / period >= SATTN_MAX_THREADS)
        return SATTN_MAX_THREADS;
    return (int32_t)((quota + period - 1) / period);
}

static int32_t default_threads(void)
{
    int32_t threads = atomic_load(&environment);
    if (threads)
        return threads;
    const char *word = getenv("SATTN_NUM_THREADS");
    const long asked = word ? strtol(word, NULL, 10) : 0;
    if (asked > 0) {
        threads = asked > SATTN_MAX_THREADS ? SATTN_MAX_THREADS : (int32_t)asked;
    } else {
        /* libgomp counts the CPUs of the process before OMP_PROC_BIND shrinks the affinity */
        const int32_t limits[] = {omp_get_max_threads(), omp_get_num_procs(), cgroup_cpus()};
        threads = limits[0];
        for (int i = 1; i < 3; i++)
            threads = limits[i] < threads ? limits[i] : threads;
    }
    atomic_store(&environment, threads);
    return threads;
}

static void *do_nothing(void *gate)
{
    pthread_mutex_lock(gate);
    pthread_mutex_unlock(gate);
    return NULL;
}

/* libgomp ends the process when it cannot create a thread. So before a team grows beyond what was
 * had before, that many threads are made at once and ended again; returns how many there were. */
static int32_t probe(int32_t threads)
{
    pthread_t id[SATTN_MAX_THREADS];
    pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
    pthread_attr_t attributes;
    size_t stack;
    int32_t made = 0;
    /* LLVM's runtime asks for the default and 64 bytes times the thread's number. glibc keeps the
     * stacks of threads that ended: these must fit, or there would have to be room for both. */
    if (pthread_attr_init(&attributes) || pthread_attr_getstacksize(&attributes, &stack) ||
        pthread_attr_setstacksize(&attributes, stack + 64 * SATTN_MAX_THREADS))
        return 1;
    pthread_mutex_lock(&gate);
    while (made < threads - 1 && pthread_create(&id[made], &attributes, do_nothing, &gate) == 0)
        made++;
    pthread_mutex_unlock(&gate);
    pthread_attr_destroy(&attributes);
    for (int32_t i = 0; i < made; i++)
        pthread_join(id[i], NULL);
    return made + 1;
}

int32_t sattn_par_threads(int32_t requested)
{
    if (atomic_load(&forked) || omp_in_parallel())
        return 1;
    int32_t threads = requested > 0 ? requested : atomic_load(&setting);
    if (threads <= 0)
        threads = default_threads();
    const int32_t limit = omp_get_thread_limit();
    if (threads > limit)
        threads = limit;
    if (threads > atomic_load(&proven)) {
        threads = probe(threads);
        int32_t before = atomic_load(&proven);
        while (before < threads && !atomic_compare_exchange_weak(&proven, &before, threads))
            ;
    }
    return threads;
}

void sattn_par_for(int64_t tasks, int32_t threads, sattn_par_body body, void *context)
{
    if (threads > tasks)
        threads = (int32_t)tasks;
    if (threads <= 1) {
        run_all(tasks, body, context);
        return;
    }
#pragma omp parallel for num_threads(threads) schedule(monotonic : dynamic)
    for (int64_t task = 0; task < tasks; task++)
        run(body, context, task, omp_get_thread_num());
}

#else

int32_t sattn_par_threads(int32_t requested)
{
    (void)requested;
    return 1;
}

void sattn_par_for(int64_t tasks, int32_t threads, sattn_par_body body, void *context)
{
    (void)threads;
    run_all(tasks, body, context);
}

#endif
