/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SATTN_PAR_H
#define SATTN_PAR_H

#include <stdint.h>

/* The one place that knows threads. Work is cut by shape into tasks whose results do not depend on
 * who runs them or when; par decides only that. */

/* Threads for a call: `requested` > 0, else the process-wide setting, else the environment's, else
 * OpenMP's default within the CPUs and the cgroup quota. 1 inside a parallel region and in a
 * forked child. */
int32_t sattn_par_threads(int32_t requested);

/* SATTN_OK, or SATTN_EVALUE for a `threads` argument out of range. */
int32_t sattn_par_check(int32_t threads);

typedef void (*sattn_par_body)(void *context, int64_t task, int32_t thread);

/* Calls body(context, task, thread) once for each task in 0 .. tasks-1, on at most `threads`
 * threads, numbered 0 .. threads-1, rounding to nearest. Tasks begin in their order, so that one
 * may wait for another of a lesser number. `threads` must come from sattn_par_threads. */
void sattn_par_for(int64_t tasks, int32_t threads, sattn_par_body body, void *context);

/* A task waits until another has posted `value` or more to the counter; what that one wrote before
 * it posted is then seen. */
void sattn_par_wait(const int64_t *counter, int64_t value);
void sattn_par_post(int64_t *counter, int64_t value);

#endif
