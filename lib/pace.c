/* SPDX-License-Identifier: BSD-2-Clause */
#include "pace.h"
#include "par.h"

#include <math.h>
#include <time.h>

enum { TRIAL = 4, SHORTEST = 64, LONGEST = 1024 };

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void sattn_pace_init(sattn_pace *pace, int32_t threads)
{
    *pace = (sattn_pace){.active = threads == 0 && sattn_par_threads(0) > 1,
                         .trial = 1,
                         .length = SHORTEST,
                         .mean = {(double)INFINITY, (double)INFINITY}};
}

int32_t sattn_pace_begin(sattn_pace *pace, int32_t threads)
{
    if (!pace->active)
        return threads;
    pace->begun = now();
    return pace->alone ? 1 : threads;
}

void sattn_pace_account(sattn_pace *pace, double seconds)
{
    const int other = !pace->alone;
    pace->steps++;
    pace->spent += seconds;
    const int64_t least = pace->steps < TRIAL ? TRIAL : pace->steps;
    const int behind = pace->spent > (double)least * pace->mean[other];
    if (!behind && pace->steps < (pace->trial ? TRIAL : pace->length))
        return;
    pace->mean[pace->alone] = pace->spent / (double)pace->steps;
    const int lost = pace->mean[other] < pace->mean[pace->alone];
    if (!pace->trial || pace->mean[other] == (double)INFINITY) {
        pace->alone = other;
        pace->trial = 1;
    } else {
        const int64_t next = lost ? 2 * pace->length : SHORTEST;
        pace->alone = lost ? other : pace->alone;
        pace->trial = 0;
        pace->length = next < LONGEST ? next : LONGEST;
    }
    pace->steps = 0;
    pace->spent = 0;
}

void sattn_pace_end(sattn_pace *pace)
{
    if (pace->active)
        sattn_pace_account(pace, now() - pace->begun);
}
