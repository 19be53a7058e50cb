/* SPDX-License-Identifier: BSD-2-Clause */
/* The choice between a team and one thread, on a clock that is made up. */
#include "../harness.h"

#include "../../lib/pace.h"

enum { STEPS = 20000 };

typedef struct {
    double seconds;
    int alone; /* steps */
} outcome;

/* Steps with such costs; `active`, as where there are two threads to be had */
static outcome run(sattn_pace *pace, double team, double alone, int steps)
{
    outcome o = {0, 0};
    for (int i = 0; i < steps; i++) {
        const double cost = pace->alone ? alone : team;
        o.alone += pace->alone;
        o.seconds += cost;
        sattn_pace_account(pace, cost);
    }
    return o;
}

static sattn_pace fresh(void)
{
    sattn_pace pace;
    sattn_pace_init(&pace, 0);
    return pace;
}

Test(pace, finds_the_faster_way)
{
    const double costs[][2] = {{1, 2}, {1, 1.2}, {1, 16}, {1.2, 1}, {70, 1}, {2000, 1}};
    for (int i = 0; i < 6; i++) {
        sattn_pace pace = fresh();
        const double team = costs[i][0], alone = costs[i][1], best = team < alone ? team : alone;
        const outcome o = run(&pace, team, alone, STEPS);
        at("team %g alone %g: %d of %d alone, %g", team, alone, o.alone, STEPS, o.seconds / best);
        const double excess = o.seconds / best - STEPS;
        check(excess < .05 * STEPS + 30 * (team + alone) / best);
        check(alone < team ? o.alone > .98 * STEPS : o.alone < .02 * STEPS);
    }
}

Test(pace, follows_a_change)
{
    sattn_pace pace = fresh();
    run(&pace, 1, 2, STEPS);
    outcome o = run(&pace, 70, 2, STEPS);
    at("%d of %d alone", o.alone, STEPS);
    check(o.alone > .98 * STEPS);
    o = run(&pace, 1, 2, STEPS);
    at("%d of %d alone", o.alone, STEPS);
    check(o.alone < .1 * STEPS);
}

Test(pace, a_number_asked_for_is_given)
{
    for (int32_t threads = 1; threads < 4; threads++) {
        sattn_pace pace;
        sattn_pace_init(&pace, threads);
        for (int i = 0; i < 100; i++) {
            check(sattn_pace_begin(&pace, threads) == threads);
            sattn_pace_end(&pace);
        }
    }
}
