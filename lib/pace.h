/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SATTN_LIB_PACE_H
#define SATTN_LIB_PACE_H

/* How many threads a loop of many short steps should use, found by trying. A team is faster where
 * the processors are free. Where others use them, each step of a team waits for the one thread that
 * is not running, which may take a hundred times as long as the step. Results do not depend on
 * threads, so they may depend on the clock.
 *
 *   A spell of steps with the faster way is followed by a short trial of the other one. A spell
 *   that lost its trial makes the next one twice as long, and any spell ends when it falls behind
 *   what the other way took last. */

#include <stdint.h>

typedef struct sattn_pace {
    int active;          /* 0: there is no choice */
    int alone;           /* the way of this spell: 1 = one thread */
    int trial;           /* this spell is a trial */
    int64_t length;      /* of spells that are none */
    double mean[2];      /* seconds a step in the last spell of either way; infinite = unknown */
    int64_t steps;       /* of this spell */
    double spent, begun; /* seconds in this spell, time at the begin of the step */
} sattn_pace;

/* `threads` as in a descriptor: a caller that asks for a number gets it. */
void sattn_pace_init(sattn_pace *pace, int32_t threads);

/* The threads for the next step: what init was given, or 1. */
int32_t sattn_pace_begin(sattn_pace *pace, int32_t threads);
void sattn_pace_end(sattn_pace *pace);

/* What sattn_pace_end does with the seconds that the step took. */
void sattn_pace_account(sattn_pace *pace, double seconds);

#endif
