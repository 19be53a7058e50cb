/* SPDX-License-Identifier: BSD-2-Clause */
/* Tasks and risks: the same bits on every row and for any number of threads, queries that do not
 * know of each other, nothing written outside the outputs, and bad input. The numbers themselves
 * are compared with NumPy's (properties/check_learn.py). */
#include "../harness.h"

#include <math.h>
#include <string.h>

#include "sattn/learn.h"
#include "sattn/quadrature.h"
#include "sattn/task.h"

enum { B = 3, M = 401, H = 2, C = 5, D = 4, N = 3, E = 2, P = H * (D * N + D + E * D) + E * N + E };

static double log_weight[B * C], mean[B * C * D], covariance[B * C * D * D], input[B * M * N],
    target[B * M * E], weight[B * M], parameter[P], direction[P];

static sattn_learn problem(int attention, int loss)
{
    rng r = seed_of(1);
    random_fill(&r, log_weight, B * C, -2, 0);
    log_weight[2] = -(double)INFINITY;
    random_fill(&r, mean, B * C * D, -1, 1);
    for (int c = 0; c < B * C; c++)
        for (int i = 0; i < D; i++)
            for (int j = 0; j <= i; j++)
                covariance[(c * D + i) * D + j] = covariance[(c * D + j) * D + i] =
                    i == j ? 2 : random_in(&r, -.5, .5);
    random_fill(&r, input, B * M * N, -2, 2);
    random_fill(&r, target, B * M * E, 0, 1);
    random_fill(&r, weight, B * M, 0, 1);
    random_fill(&r, parameter, P, -1, 1);
    random_fill(&r, direction, P, -1, 1);
    sattn_learn p;
    cr_assert_eq(sattn_learn_init(&p, sizeof p), SATTN_OK);
    p.tasks = B, p.queries = M, p.heads = H, p.components = C;
    p.width = D, p.input_width = N, p.output_width = loss == SATTN_LEARN_LOGISTIC ? 1 : E;
    p.attention = attention, p.loss = loss;
    p.log_weight = log_weight, p.mean = mean, p.covariance = covariance;
    p.input = input, p.target = target, p.weight = weight;
    return p;
}

/* All that the functions answer */
typedef struct {
    double risk, least, gradient[P], product[P], loss[B * M], predicted[B * M * E];
} answer;

static answer ask(const sattn_learn *p)
{
    answer a;
    memset(&a, 0, sizeof a);
    cr_assert_eq(sattn_learn_risk_f64(p, parameter, &a.risk, a.gradient, a.loss), SATTN_OK);
    cr_assert_eq(sattn_learn_hessian_f64(p, parameter, direction, a.product), SATTN_OK);
    cr_assert_eq(sattn_learn_predict_f64(p, parameter, a.predicted), SATTN_OK);
    cr_assert_eq(sattn_learn_least_f64(p, &a.least, NULL), SATTN_OK);
    return a;
}

EACH_ROW(learn, same_bits)
{
    for (int kind = 0; kind < 6; kind++) {
        sattn_learn p = problem(kind & 1, kind >> 1);
        sattn_isa_set(SATTN_ISA_SCALAR);
        p.threads = 1;
        const answer want = ask(&p);
        sattn_isa_set(*isa);
        for (p.threads = 1; p.threads <= 8; p.threads = 2 * p.threads + 1) {
            const answer got = ask(&p);
            at("kind %d isa %d threads %d", kind, *isa, p.threads);
            check(want.risk > 0);
            check_same((const double *)&got, (const double *)&want,
                       (int64_t)(sizeof got / sizeof(double)));
        }
    }
}

/* A query's prediction and loss do not depend on the others; NaN stays with its query. */
Test(learn, queries_are_alone)
{
    sattn_learn p = problem(0, 0);
    const answer all = ask(&p);
    p.tasks = 1, p.queries = 1;
    for (int64_t q = M; q < M + 20; q++) {
        double predicted[E], loss;
        p.log_weight = log_weight + C, p.mean = mean + C * D, p.covariance = covariance + C * D * D;
        p.input = input + q * N, p.target = target + q * E, p.weight = weight + q;
        at("query %d", (int)q);
        check(sattn_learn_predict_f64(&p, parameter, predicted) == SATTN_OK);
        check(sattn_learn_risk_f64(&p, parameter, NULL, NULL, &loss) == SATTN_OK);
        check_same(predicted, all.predicted + q * E, E);
        check_same(&loss, all.loss + q, 1);
    }
    p = problem(0, 0);
    input[7 * N] = (double)NAN;
    answer some = ask(&p);
    check(isnan(some.risk) && isnan(some.loss[7]) && isnan(some.product[0]));
    some.loss[7] = all.loss[7];
    memcpy(some.predicted + 7 * E, all.predicted + 7 * E, E * sizeof(double));
    check_same(some.loss, all.loss, B * M);
    check_same(some.predicted, all.predicted, B * M * E);
}

/* The eigenvalue problem's own answer: H v = value v, on every row and any number of threads. */
EACH_ROW(learn, spectrum)
{
    static double value[P], vector[P * P], want[P], product[P];
    sattn_learn p = problem(0, 0);
    int64_t count = 0;
    p.trained = SATTN_LEARN_TILT | SATTN_LEARN_BIAS;
    check(sattn_learn_spectrum_f64(&p, parameter, &count, NULL, NULL) == SATTN_OK);
    check(count == H * D * N + E);
    sattn_isa_set(SATTN_ISA_SCALAR);
    check(sattn_learn_spectrum_f64(&p, parameter, NULL, want, vector) == SATTN_OK);
    for (int64_t i = 0; i < count; i++) {
        check(sattn_learn_hessian_f64(&p, parameter, vector + i * P, product) == SATTN_OK);
        for (int64_t j = 0; j < P; j++)
            check(fabs(product[j] - want[i] * vector[i * P + j]) < 1e-13 * (1 + fabs(want[0])));
        check(i == 0 || want[i] <= want[i - 1]);
    }
    sattn_isa_set(*isa);
    for (p.threads = 1; p.threads < 6; p.threads += 2) {
        check(sattn_learn_spectrum_f64(&p, parameter, &count, value, NULL) == SATTN_OK);
        check_same(value, want, count);
    }
    input[0] = (double)NAN;
    check(sattn_learn_spectrum_f64(&p, parameter, NULL, value, vector) == SATTN_OK);
    check(isnan(value[0]) && isnan(value[count - 1]) && isnan(vector[0]) && vector[P - 1 - E] == 0);
    check(sattn_learn_spectrum_f64(&p, NULL, NULL, value, NULL) == SATTN_ENULL);
    p.trained = 32;
    check(sattn_learn_spectrum_f64(&p, parameter, NULL, value, NULL) == SATTN_EOPTION);
}

Test(learn, iterated)
{
    enum { STEPS = 5 };
    static double at[B * M * N], point[B * M * N], moved[B * M], square[P + N * N];
    sattn_learn p = problem(0, 0);
    check(E == N || sattn_learn_iterate_f64(&p, parameter, 1, point, moved) == SATTN_ESIZE);
    p.heads = 0, p.output_width = N, p.target = NULL;
    rng r = seed_of(9);
    random_fill(&r, square, N * N + N, -.4, .4);
    check(sattn_learn_iterate_f64(&p, square, STEPS, point, moved) == SATTN_OK);
    memcpy(at, input, sizeof at);
    p.input = at;
    for (int i = 0; i < STEPS - 1; i++)
        check(sattn_learn_predict_f64(&p, square, at) == SATTN_OK);
    for (int64_t q = 0; q < B * M; q++) {
        long double squares = 0;
        for (int64_t i = q * N; i < (q + 1) * N; i++)
            squares += ((long double)point[i] - at[i]) * ((long double)point[i] - at[i]);
        check(fabsl(moved[q] - sqrtl(squares)) <= 1e-15L + 1e-14L * sqrtl(squares));
    }
    check(sattn_learn_predict_f64(&p, square, at) == SATTN_OK);
    check_same(point, at, B * M * N);
    check(sattn_learn_iterate_f64(&p, square, -1, point, moved) == SATTN_ESIZE);
    check(sattn_learn_iterate_f64(&p, NULL, 1, point, moved) == SATTN_ENULL);
    p.input = NULL;
    check(sattn_learn_iterate_f64(&p, square, 1, point, moved) == SATTN_ENULL);
}

Test(learn, nothing_outside_is_written)
{
    for (int place = ROOMY; place <= BEGINS; place++) {
        const sattn_learn p = problem(0, 0);
        double *gradient = guarded(P * sizeof(double), place, 0),
               *product = guarded(P * sizeof(double), place, 0),
               *loss = guarded(B * M * sizeof(double), place, 0),
               *predicted = guarded(B * M * E * sizeof(double), place, 0), risk;
        check(sattn_learn_risk_f64(&p, parameter, &risk, gradient, loss) == SATTN_OK);
        check(sattn_learn_hessian_f64(&p, parameter, direction, product) == SATTN_OK);
        check(sattn_learn_predict_f64(&p, parameter, predicted) == SATTN_OK);
        check_guarded();
        release_guarded();
    }
}

/* Shapes without a query, head, component or width are legal. */
Test(learn, empty)
{
    for (int i = 0; i < 5; i++) {
        sattn_learn p = problem(0, 0);
        int64_t *const shape[] = {&p.tasks, &p.queries, &p.heads, &p.components, &p.width};
        double risk = -1, gradient[P], product[P], *predicted = target;
        *shape[i] = 0;
        at("shape %d", i);
        check(sattn_learn_risk_f64(&p, parameter, &risk, gradient, NULL) == SATTN_OK);
        check(sattn_learn_hessian_f64(&p, parameter, direction, product) == SATTN_OK);
        check(sattn_learn_predict_f64(&p, parameter, predicted) == SATTN_OK);
        check(i < 2 ? risk == 0 : risk > 0);
    }
}

/* Logits far beyond exp's range; classes that cannot be; least losses of targets that are none. */
Test(learn, categorical)
{
    sattn_learn p = problem(0, SATTN_LEARN_CATEGORICAL);
    static const double far[3] = {1e5, -1e5, 0}, targets[] = {1, 0, 0, 1, .25, .25, 0, 0, -1, 2};
    double bias[E], loss, gradient[E], direction_of[E] = {1, 0}, product[E], least[5], all;
    p.tasks = 1, p.queries = 1, p.heads = 0, p.input_width = 0, p.weight = NULL;
    for (int i = 0; i < 3; i++) {
        bias[0] = far[i], bias[1] = 0;
        p.target = targets;
        at("logit %g", far[i]);
        check(sattn_learn_risk_f64(&p, bias, NULL, gradient, &loss) == SATTN_OK);
        check(sattn_learn_hessian_f64(&p, bias, direction_of, product) == SATTN_OK);
        const double other = far[i] > 0 ? 0 : far[i] < 0 ? 1 : .5; /* P(class 1) */
        check(gradient[0] == -other && gradient[1] == other);
        check(product[0] == other * (1 - other) && product[1] == -other * (1 - other));
        check_near("loss", i, loss, far[i] < 0 ? 1e5 : far[i] > 0 ? 0 : log(2), 1e-15);
    }
    p.queries = 5;
    check(sattn_learn_least_f64(&p, &all, least) == SATTN_OK);
    check(least[0] == 0 && least[1] == 0 && least[3] == 0 && isinf(least[4]) && isinf(all));
    check_near("least", 2, least[2], log(2) / 2, 1e-16);
}

static void refuse(const sattn_learn *p, int32_t status)
{
    double risk, gradient[P], product[P], loss[B * M];
    memset(&risk, 0xff, sizeof risk);
    memset(gradient, 0xff, sizeof gradient);
    memset(product, 0xff, sizeof product);
    memset(loss, 0xff, sizeof loss);
    check(sattn_learn_risk_f64(p, parameter, &risk, gradient, loss) == status);
    check(sattn_learn_hessian_f64(p, parameter, direction, product) == status);
    check(is_untouched(&risk, sizeof risk) && is_untouched(gradient, sizeof gradient));
    check(is_untouched(product, sizeof product) && is_untouched(loss, sizeof loss));
}

#define REFUSE(change, status)                                                                     \
    do {                                                                                           \
        sattn_learn p = problem(0, 0);                                                             \
        change;                                                                                    \
        at("%s", #change);                                                                         \
        refuse(&p, status);                                                                        \
    } while (0)

Test(learn, bad_input)
{
    REFUSE(p.size = 8, SATTN_ESTRUCT);
    REFUSE(p.covariance_kind = 3, SATTN_EOPTION);
    REFUSE(p.attention = 2, SATTN_EOPTION);
    REFUSE(p.loss = -1, SATTN_EOPTION);
    REFUSE(p.loss = 3, SATTN_EOPTION);
    REFUSE(p.loss = SATTN_LEARN_LOGISTIC, SATTN_EOPTION);
    REFUSE(p.trained = 32, SATTN_EOPTION);
    REFUSE(p.shared = 2, SATTN_EOPTION);
    REFUSE(p.threads = -1, SATTN_EVALUE);
    REFUSE(p.tasks = -1, SATTN_ESIZE);
    REFUSE(p.queries = -1, SATTN_ESIZE);
    REFUSE(p.heads = -1, SATTN_ESIZE);
    REFUSE(p.components = -1, SATTN_ESIZE);
    REFUSE(p.width = (int64_t)1 << 40, SATTN_ESIZE);
    REFUSE(p.queries = (int64_t)1 << 60, SATTN_ESIZE);
    REFUSE(p.tasks = (int64_t)1 << 60, SATTN_ESIZE);
    REFUSE(p.heads = (int64_t)1 << 58, SATTN_ESIZE);
    REFUSE(p.log_weight = NULL, SATTN_ENULL);
    REFUSE(p.mean = NULL, SATTN_ENULL);
    REFUSE(p.covariance = NULL, SATTN_ENULL);
    REFUSE(p.input = NULL, SATTN_ENULL);
    REFUSE(p.target = NULL, SATTN_ENULL);
    REFUSE(log_weight[1] = (double)NAN, SATTN_EVALUE);
    REFUSE(log_weight[1] = (double)INFINITY, SATTN_EVALUE);
    const sattn_learn p = problem(0, 0);
    double risk;
    int64_t count = 0;
    check(sattn_learn_risk_f64(&p, NULL, &risk, NULL, NULL) == SATTN_ENULL);
    check(sattn_learn_hessian_f64(&p, parameter, direction, NULL) == SATTN_ENULL);
    check(sattn_learn_predict_f64(&p, parameter, NULL) == SATTN_ENULL);
    check(sattn_learn_count(&p, NULL) == SATTN_ENULL);
    sattn_learn q = p;
    q.target = NULL;
    check(sattn_learn_least_f64(&q, &risk, NULL) == SATTN_ENULL);
    q.loss = SATTN_LEARN_CATEGORICAL, q.output_width = 0;
    check(sattn_learn_least_f64(&q, &risk, NULL) == SATTN_EOPTION);
    check(sattn_learn_count(&p, &count) == SATTN_OK && count == P);
    check(sattn_learn_init(NULL, sizeof p) == SATTN_ENULL);
}
