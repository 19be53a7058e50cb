/* SPDX-License-Identifier: BSD-2-Clause */
/* Tasks: any number of threads gives the same bits, queries do not know of each other, draws can be
 * cut, singular covariances, and bad input. Numbers: properties/check_learn.py. */
#include "../harness.h"

#include <math.h>
#include <string.h>

#include "sattn/quadrature.h"
#include "sattn/task.h"

enum { C = 4, N = 3, E = 2, M = 300, NODES = 5, POINTS = C * NODES * NODES * NODES };

static double log_weight[C], mean[C * N], covariance[C * N * N], value_mean[C * E],
    cross[C * E * N], value_variance[C], node[NODES], weight[NODES];

static sattn_task problem(void)
{
    rng r = seed_of(1);
    random_fill(&r, log_weight, C, -2, 0);
    random_fill(&r, mean, C * N, -1, 1);
    random_fill(&r, value_mean, C * E, -1, 1);
    random_fill(&r, cross, C * E * N, -.5, .5);
    for (int c = 0; c < C; c++)
        for (int i = 0; i < N; i++)
            for (int j = 0; j <= i; j++)
                covariance[(c * N + i) * N + j] = covariance[(c * N + j) * N + i] =
                    i == j ? 2 : random_in(&r, -.5, .5);
    for (int c = 0; c < C; c++)
        value_variance[c] = 4;
    log_weight[1] = -(double)INFINITY;
    cr_assert_eq(sattn_quadrature_hermite(NODES, node, weight), SATTN_OK);
    sattn_task t;
    cr_assert_eq(sattn_task_init(&t, sizeof t, C, N, E), SATTN_OK);
    t.log_weight = log_weight, t.mean = mean, t.covariance = covariance;
    t.value_mean = value_mean, t.cross = cross, t.value_variance = value_variance;
    return t;
}

/* More draws than are taken at a time, against their mean and deviation in two passes */
static void check_risk(sattn_task *t)
{
    enum { DRAWS = 10000, FIRST = 17 };
    static double z[DRAWS * N], left[DRAWS];
    double want[2], got[2];
    long double average = 0, squares = 0;
    check(sattn_task_draw_f64(t, 5, 6, FIRST, DRAWS, z, NULL) == SATTN_OK);
    check(sattn_task_bayes_f64(t, DRAWS, z, NULL, left) == SATTN_OK);
    for (int i = 0; i < DRAWS; i++)
        average += left[i] / DRAWS;
    for (int i = 0; i < DRAWS; i++)
        squares += (left[i] - average) * (left[i] - average);
    for (t->threads = 1; t->threads < 6; t->threads++) {
        check(sattn_task_risk_f64(t, 5, 6, FIRST, DRAWS, got, got + 1) == SATTN_OK);
        check(fabsl(got[0] / average - 1) < 1e-13L);
        check(fabsl(got[1] * got[1] * (DRAWS - 1.0L) * DRAWS / squares - 1) < 1e-12L);
        if (t->threads > 1)
            check_same(got, want, 2);
        want[0] = got[0], want[1] = got[1];
    }
    check(sattn_task_risk_f64(t, 5, 6, 0, 1, NULL, got + 1) == SATTN_OK && isnan(got[1]));
    check(sattn_task_risk_f64(t, 5, 6, 0, 0, got, NULL) == SATTN_ESIZE);
    check(sattn_task_risk_f64(t, 5, 6, -1, 1, got, NULL) == SATTN_ESIZE);
    check(sattn_task_risk_f64(t, 5, 6, INT64_MAX, 1, got, NULL) == SATTN_ESIZE);
    check(sattn_task_risk_f64(t, 5, ~(uint64_t)0, 0, 1, got, NULL) == SATTN_EVALUE);
}

Test(task, threads_and_neighbours)
{
    static double z[M * N], want[M * E], left[M], got[M * E], rest[M];
    sattn_task t = problem();
    t.threads = 1;
    check(sattn_task_draw_f64(&t, 1, 2, 0, M, z, NULL) == SATTN_OK);
    check(sattn_task_bayes_f64(&t, M, z, want, left) == SATTN_OK);
    for (t.threads = 2; t.threads < 8; t.threads += 3) {
        check(sattn_task_bayes_f64(&t, M, z, got, rest) == SATTN_OK);
        check_same(got, want, M * E);
        check_same(rest, left, M);
    }
    z[5] = (double)NAN; /* of query 1 */
    check(sattn_task_bayes_f64(&t, M, z, got, rest) == SATTN_OK);
    check(isnan(got[E]) && isnan(rest[1]));
    check_same(got, want, E);
    check_same(got + 2 * E, want + 2 * E, (M - 2) * E);
    check_risk(&t);
    for (int64_t q = 2; q < M; q += 37) {
        double one[E], variance;
        check(sattn_task_bayes_f64(&t, 1, z + q * N, one, &variance) == SATTN_OK);
        check_same(one, want + q * E, E);
        check_same(&variance, left + q, 1);
    }
}

Test(task, outputs_end_where_they_say)
{
    for (int place = ROOMY; place <= BEGINS; place++) {
        const sattn_task t = problem();
        double *point = guarded(POINTS * N * sizeof(double), place, 0),
               *mass = guarded(POINTS * sizeof(double), place, 0),
               *matrix = guarded(E * N * sizeof(double), place, 0),
               *offset = guarded(E * sizeof(double), place, 0),
               *draw = guarded(7 * N * sizeof(double), place, 0),
               *token = guarded(7 * (N + E) * sizeof(double), place, 0), risk, sum = 0;
        int32_t *component = guarded(7 * sizeof(int32_t), place, 0);
        check(sattn_task_quadrature_f64(&t, NODES, node, weight, point, mass) == SATTN_OK);
        check(sattn_task_affine_f64(&t, 1, matrix, offset, &risk) == SATTN_OK);
        check(sattn_task_draw_f64(&t, 1, 2, 3, 7, draw, component) == SATTN_OK);
        check(sattn_task_prompt_f64(&t, 1, 2, 3, 7, token, component) == SATTN_OK);
        for (int64_t i = 0; i < 7; i++)
            check_same(token + i * (N + E), draw + i * N, N);
        for (int64_t i = 0; i < POINTS; i++)
            sum += mass[i];
        check_near("total weight", 0, sum, 1, 1e-14);
        for (int64_t i = 0; i < 7; i++)
            check(component[i] >= 0 && component[i] < C && component[i] != 1);
        check_guarded();
        release_guarded();
    }
}

/* Points of a singular covariance lie in its range. */
Test(task, singular)
{
    sattn_task t = problem();
    double point[POINTS * N], mass[POINTS];
    for (int i = 0; i < C * N * N; i++)
        covariance[i] = 1; /* (1, 1, 1)(1, 1, 1)' */
    check(sattn_task_quadrature_f64(&t, NODES, node, weight, point, mass) == SATTN_OK);
    for (int64_t i = 0; i < POINTS; i++)
        for (int64_t j = 1; j < N && mass[i] > 0; j++) {
            const double *m = mean + i / (POINTS / C) * N, *x = point + i * N;
            check_near("deviation", i, x[j] - m[j], x[0] - m[0], 1e-14);
        }
    check(sattn_task_bayes_f64(&t, 1, point, mass, NULL) == SATTN_EVALUE);
}

static void refuse(const sattn_task *t, int targets, int32_t status)
{
    double point[POINTS * N], mass[POINTS], z[N] = {0};
    memset(point, 0xff, sizeof point);
    memset(mass, 0xff, sizeof mass);
    check(sattn_task_bayes_f64(t, 1, z, point, mass) == status);
    check(sattn_task_affine_f64(t, 1, point, mass, mass + E) == status);
    check(sattn_task_prompt_f64(t, 1, 2, 0, 1, point, NULL) == status);
    if (!targets) {
        check(sattn_task_quadrature_f64(t, NODES, node, weight, point, mass) == status);
        check(sattn_task_draw_f64(t, 1, 2, 0, 1, point, NULL) == status);
    }
    check(is_untouched(point, sizeof point) && is_untouched(mass, sizeof mass));
}

#define REFUSE(change, targets, status)                                                            \
    do {                                                                                           \
        sattn_task t = problem();                                                                  \
        change;                                                                                    \
        at("%s", #change);                                                                         \
        refuse(&t, targets, status);                                                               \
    } while (0)

Test(task, bad_input)
{
    REFUSE(t.size = 8, 0, SATTN_ESTRUCT);
    REFUSE(t.reserved = 1, 0, SATTN_EOPTION);
    REFUSE(t.threads = -1, 0, SATTN_EVALUE);
    REFUSE(t.components = 0, 0, SATTN_ESIZE);
    REFUSE(t.width = 0, 0, SATTN_ESIZE);
    REFUSE(t.width = (int64_t)1 << 40, 0, SATTN_ESIZE);
    REFUSE(t.value_width = -1, 0, SATTN_ESIZE);
    REFUSE(t.log_weight = NULL, 0, SATTN_ENULL);
    REFUSE(t.mean = NULL, 0, SATTN_ENULL);
    REFUSE(t.covariance = NULL, 0, SATTN_ENULL);
    REFUSE(t.value_mean = NULL, 1, SATTN_ENULL);
    REFUSE(log_weight[0] = (double)NAN, 0, SATTN_EVALUE);
    REFUSE(log_weight[0] = (double)INFINITY, 0, SATTN_EVALUE);
    REFUSE(log_weight[0] = log_weight[2] = log_weight[3] = -(double)INFINITY, 0, SATTN_EVALUE);
    REFUSE(covariance[0] = (double)NAN, 0, SATTN_EVALUE);
    REFUSE(covariance[0] = -100, 0, SATTN_EVALUE);
    const sattn_task t = problem();
    double x[N * NODES] = {0};
    check(sattn_task_bayes_f64(&t, -1, x, x, x) == SATTN_ESIZE);
    check(sattn_task_bayes_f64(&t, 1, NULL, x, x) == SATTN_ENULL);
    check(sattn_task_affine_f64(&t, 2, x, x, x) == SATTN_EOPTION);
    check(sattn_task_quadrature_f64(&t, 0, node, weight, x, x) == SATTN_ESIZE);
    check(sattn_task_quadrature_f64(&t, (int64_t)1 << 30, node, weight, x, x) == SATTN_ESIZE);
    check(sattn_task_quadrature_f64(&t, 1, NULL, weight, x, x) == SATTN_ENULL);
    check(sattn_task_quadrature_f64(&t, 1, node, weight, NULL, x) == SATTN_ENULL);
    check(sattn_task_draw_f64(&t, 1, 2, -1, 1, x, NULL) == SATTN_ESIZE);
    check(sattn_task_draw_f64(&t, 1, 2, (int64_t)1 << 61, 1, x, NULL) == SATTN_ESIZE);
    check(sattn_task_draw_f64(&t, 1, ~(uint64_t)0, 0, 1, x, NULL) == SATTN_EVALUE);
    check(sattn_task_draw_f64(&t, 1, 2, 0, 1, NULL, NULL) == SATTN_ENULL);
    check(sattn_task_prompt_f64(&t, 1, 2, -1, 1, x, NULL) == SATTN_ESIZE);
    check(sattn_task_prompt_f64(&t, 1, 2, (int64_t)1 << 61, 1, x, NULL) == SATTN_ESIZE);
    check(sattn_task_prompt_f64(&t, 1, (uint64_t)1 << 62, 0, 1, x, NULL) == SATTN_EVALUE);
    check(sattn_task_prompt_f64(&t, 1, 2, 0, 1, NULL, NULL) == SATTN_ENULL);
    value_variance[0] = 1e-3; /* less than z explains */
    check(sattn_task_prompt_f64(&t, 1, 2, 0, 1, x, NULL) == SATTN_EVALUE);
    sattn_task u = t;
    u.value_width = 0, u.value_mean = NULL, u.cross = NULL, u.value_variance = NULL;
    check(sattn_task_prompt_f64(&u, 1, 2, 0, 1, x, NULL) == SATTN_OK);
    check(sattn_task_init(NULL, sizeof u, C, N, E) == SATTN_ENULL);
    check(sattn_task_init(&u, 8, C, N, E) == SATTN_ESTRUCT);
    check(sattn_task_init(&u, sizeof u, C, -1, E) == SATTN_ESIZE);
}
