/* SPDX-License-Identifier: BSD-2-Clause */
/* Training: the same bits on every row, for any number of threads and any cut into calls; bad input
 * leaves the state alone. Curves and optimisers: properties/check_train.py. */
#include "../harness.h"

#include <math.h>
#include <string.h>

#include "sattn/train.h"

enum { M = 500, C = 3, D = 3, STEPS = 30, P = D * D + D + D * D + D * D + D };

static double log_weight[C], mean[C * D], variance[C * D], input[M * D], target[M * D];

static sattn_learn problem(void)
{
    rng r = seed_of(1);
    random_fill(&r, log_weight, C, -2, 0);
    random_fill(&r, mean, C * D, -2, 2);
    random_fill(&r, variance, C * D, .5, 1);
    random_fill(&r, input, M * D, -2, 2);
    random_fill(&r, target, M * D, -1, 1);
    sattn_learn p;
    cr_assert_eq(sattn_learn_init(&p, sizeof p), SATTN_OK);
    p.tasks = p.heads = 1, p.queries = M, p.components = C;
    p.width = p.input_width = p.output_width = D;
    p.covariance_kind = SATTN_COVARIANCE_DIAG;
    p.log_weight = log_weight, p.mean = mean, p.covariance = variance;
    p.input = input, p.target = target;
    return p;
}

typedef struct {
    double parameter[P], moment[2][P], trace[STEPS];
} state;

static sattn_train training(state *s, int optimiser)
{
    sattn_train t;
    rng r = seed_of(2);
    memset(s, 0, sizeof *s);
    random_fill(&r, s->parameter, P, -.5, .5);
    cr_assert_eq(sattn_train_init(&t, sizeof t, STEPS), SATTN_OK);
    t.optimiser = optimiser, t.schedule = SATTN_TRAIN_COSINE, t.clip = 1;
    t.parameter = s->parameter, t.trace = s->trace;
    t.moment[0] = s->moment[0], t.moment[1] = s->moment[1];
    return t;
}

EACH_ROW(train, same_bits)
{
    for (int optimiser = 0; optimiser < 2; optimiser++) {
        sattn_learn p = problem();
        state want, got;
        sattn_train t = training(&want, optimiser);
        p.threads = 1;
        sattn_isa_set(SATTN_ISA_SCALAR);
        check(sattn_train_f64(&t, &p) == SATTN_OK && t.step == STEPS);
        check(want.trace[STEPS - 1] < want.trace[0]);
        sattn_isa_set(*isa);
        for (p.threads = 0; p.threads < 6; p.threads += 2 - (p.threads == 0)) {
            t = training(&got, optimiser);
            at("isa %d optimiser %d threads %d", *isa, optimiser, p.threads);
            for (t.until = p.threads + 1; t.until < STEPS; t.until += 7)
                check(sattn_train_f64(&t, &p) == SATTN_OK && t.step == t.until);
            t.until = STEPS;
            check(sattn_train_f64(&t, &p) == SATTN_OK);
            check_same(got.parameter, want.parameter, P);
            check_same(got.trace, want.trace, STEPS);
        }
    }
}

#define REFUSE(change, status)                                                                     \
    do {                                                                                           \
        sattn_learn p = problem();                                                                 \
        state before, after;                                                                       \
        training(&before, SATTN_TRAIN_ADAM);                                                       \
        sattn_train t = training(&after, SATTN_TRAIN_ADAM);                                        \
        change;                                                                                    \
        at("%s", #change);                                                                         \
        check(sattn_train_f64(&t, &p) == status);                                                  \
        check(memcmp(&before, &after, sizeof before) == 0);                                        \
    } while (0)

Test(train, bad_input)
{
    REFUSE(t.size = 8, SATTN_ESTRUCT);
    REFUSE(t.optimiser = 2, SATTN_EOPTION);
    REFUSE(t.schedule = 3, SATTN_EOPTION);
    REFUSE(t.step = -1, SATTN_ESIZE);
    REFUSE(t.step = STEPS + 1, SATTN_ESIZE);
    REFUSE(t.until = STEPS + 1, SATTN_ESIZE);
    REFUSE(t.rate = -1, SATTN_EVALUE);
    REFUSE(t.rate = (double)NAN, SATTN_EVALUE);
    REFUSE(t.clip = (double)INFINITY, SATTN_EVALUE);
    REFUSE(t.decay[0] = 1, SATTN_EVALUE);
    REFUSE(t.decay[1] = -.1, SATTN_EVALUE);
    REFUSE(t.epsilon = -1, SATTN_EVALUE);
    REFUSE(t.drop = (double)NAN, SATTN_EVALUE);
    REFUSE(t.parameter = NULL, SATTN_ENULL);
    REFUSE(t.moment[1] = NULL, SATTN_ENULL);
    REFUSE(p.size = 8, SATTN_ESTRUCT);
    REFUSE(p.target = NULL, SATTN_ENULL);
    REFUSE(log_weight[0] = (double)NAN, SATTN_EVALUE);
    sattn_train t;
    const sattn_learn p = problem();
    check(sattn_train_init(NULL, sizeof t, 1) == SATTN_ENULL);
    check(sattn_train_init(&t, 8, 1) == SATTN_ESTRUCT);
    check(sattn_train_init(&t, sizeof t, -1) == SATTN_ESIZE);
    check(sattn_train_f64(NULL, &p) == SATTN_ENULL);
}
