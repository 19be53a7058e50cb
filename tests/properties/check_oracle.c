/* SPDX-License-Identifier: BSD-2-Clause */
/* The oracle is right by itself: its gradients are the slopes of its own forward pass, and it gives
 * a vector of numbers that was computed elsewhere (automatic differentiation, NumPy). */
#include "../golden.h"
#include "../harness.h"
#include "../oracle/mixture.h"

#include <math.h>
#include <string.h>

enum { C = 4, D = 3, E = 2 };

typedef struct {
    double log_weight[C], mean[C * D], covariance[C * D * D], value_mean[C * E], cross[C * E * D];
    double tilt[D], dout[D], dcgf;
} numbers;

/* From SHARED on: kind - SHARED, shared by all components */
enum { SHARED = ORACLE_LOW_RANK + 1, RANK = 2 };

static oracle_mixture mixture_of(const numbers *x, int kind, int joint)
{
    return (oracle_mixture){C,
                            D,
                            joint ? E : 0,
                            kind % SHARED,
                            x->log_weight,
                            x->mean,
                            x->covariance,
                            x->value_mean,
                            joint == 2 ? x->cross : NULL,
                            RANK,
                            kind >= SHARED};
}

static long double objective(const numbers *x, int kind, int joint)
{
    const oracle_mixture m = mixture_of(x, kind, joint);
    oracle_number out[D], cgf, weight[C];
    oracle_forward(&m, x->tilt, out, &cgf, weight);
    long double sum = x->dcgf * cgf.value;
    for (int i = 0; i < (joint ? E : D); i++)
        sum += x->dout[i] * out[i].value;
    return sum;
}

static void fill(numbers *x, uint64_t seed, int kind)
{
    rng r = seed_of(seed);
    random_fill(&r, (double *)x, (int64_t)(sizeof *x / sizeof(double)), -1, 1);
    for (int c = 0; c < C && kind % SHARED == ORACLE_FULL; c++)
        for (int i = 0; i < D; i++)
            for (int j = 0; j < i; j++)
                x->covariance[(c * D + i) * D + j] = x->covariance[(c * D + j) * D + i];
}

/* Central differences with step h err by h^2 times a third derivative of order 10 here, and by
 * 1e-19 / h. */
static void check_slope(numbers *x, int kind, int joint, double *at_i, double *at_j,
                        long double slope)
{
    const double h = 0x1p-17, before_i = *at_i, before_j = *at_j;
    long double difference = 0;
    for (int sign = -1; sign <= 1; sign += 2) {
        *at_i = before_i + sign * h;
        *at_j = at_i == at_j ? *at_i : before_j + sign * h;
        difference += sign * objective(x, kind, joint);
        *at_i = before_i;
        *at_j = before_j;
    }
    check_near("slope", 0, (double)(difference / (2 * h)), (double)slope, 1e-8);
}

static void check_gradients(uint64_t seed, int kind, int joint)
{
    numbers x;
    oracle_number tilt[D], log_weight[C] = {{0, 0}}, mean[C * D] = {{0, 0}},
                           value[C * E] = {{0, 0}};
    oracle_number covariance[C * D * D] = {{0, 0}}, cross[C * E * D] = {{0, 0}};
    fill(&x, seed, kind);
    const oracle_mixture m = mixture_of(&x, kind, joint);
    at("seed %d kind %d joint %d", (int)seed, kind, joint);
    oracle_backward(&m, x.tilt, x.dout, x.dcgf, 1,
                    &(oracle_gradients){tilt, log_weight, mean, covariance, value, cross});
    for (int i = 0; i < D; i++)
        check_slope(&x, kind, joint, &x.tilt[i], &x.tilt[i], tilt[i].value);
    for (int i = 0; i < C; i++)
        check_slope(&x, kind, joint, &x.log_weight[i], &x.log_weight[i], log_weight[i].value);
    for (int i = 0; i < C * D; i++)
        check_slope(&x, kind, joint, &x.mean[i], &x.mean[i], mean[i].value);
    static const int layout[] = {0, D, D * D, 1, D * D, D * (1 + RANK)};
    const int full = kind % SHARED == ORACLE_FULL,
              count = (kind < SHARED ? C : 1) * layout[kind % SHARED];
    for (int i = 0; !full && i < count; i++)
        check_slope(&x, kind, joint, &x.covariance[i], &x.covariance[i], covariance[i].value);
    for (int i = 0; full && i < count; i++) {
        const int row = i / D % D, col = i % D, mirror = i - row * D - col + col * D + row;
        check_slope(&x, kind, joint, &x.covariance[i], &x.covariance[mirror],
                    (row == col ? 1 : 2) * covariance[i].value);
        check(fabsl(covariance[i].value - covariance[mirror].value) < 1e-18L);
    }
    for (int i = 0; joint && i < C * E; i++)
        check_slope(&x, kind, joint, &x.value_mean[i], &x.value_mean[i], value[i].value);
    for (int i = 0; joint == 2 && i < C * E * D; i++)
        check_slope(&x, kind, joint, &x.cross[i], &x.cross[i], cross[i].value);
}

Test(oracle, gradients)
{
    for (uint64_t seed = 1; seed <= 20; seed++)
        for (int kind = ORACLE_ZERO; kind < 2 * SHARED; kind++)
            for (int joint = 0; joint <= 2; joint++)
                check_gradients(seed, kind, joint);
}

Test(oracle, golden)
{
    oracle_number log_weight[3] = {{0, 0}}, mean[6] = {{0, 0}}, covariance[12] = {{0, 0}};
    const oracle_mixture m = {
        3,    2, 0, ORACLE_FULL, golden_log_weight(), golden.mean, golden.covariance, NULL,
        NULL, 0, 0};
    at("golden");
    for (int q = 0; q < 3; q++) {
        oracle_number out[2], cgf, weight[3], tilt[2];
        oracle_forward(&m, golden.tilt + 2 * q, out, &cgf, weight);
        oracle_backward(&m, golden.tilt + 2 * q, golden.dout + 2 * q, golden.dcgf[q], 3,
                        &(oracle_gradients){tilt, log_weight, mean, covariance, NULL, NULL});
        check_near("cgf", q, (double)cgf.value, golden.cgf[q], 1e-15);
        for (int c = 0; q == 0 && c < 3; c++)
            check_near("weight", c, (double)weight[c].value, golden.first_weight[c], 1e-15);
        for (int i = 0; i < 2; i++)
            check_near("dtilt", 2 * q + i, (double)tilt[i].value, golden.dtilt[2 * q + i], 1e-14);
        for (int i = 0; q == 0 && i < 2; i++)
            check_near("out", i, (double)out[i].value, golden.first_out[i], 1e-15);
    }
    for (int i = 0; i < 3; i++)
        check_near("dlog_weight", i, (double)log_weight[i].value, golden.dlog_weight[i], 1e-14);
    for (int i = 0; i < 6; i++)
        check_near("dmean", i, (double)mean[i].value, golden.dmean[i], 1e-14);
    for (int i = 0; i < 12; i++)
        check_near("dcovariance", i, (double)covariance[i].value, golden.dcovariance[i], 1e-14);
}

Test(oracle, softmax)
{
    const double x[] = {-100000, -100001, -100003, -INFINITY};
    long double y[4];
    oracle_softmax(4, x, y);
    check_near("softmax", 0, (double)y[0], 0.7053845127, 1e-10);
    check_near("softmax", 1, (double)y[1], 0.2594964603, 1e-10);
    check_near("softmax", 2, (double)y[2], 0.0351190270, 1e-10);
    check(y[3] == 0);
}
