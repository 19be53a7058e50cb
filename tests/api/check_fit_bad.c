/* SPDX-License-Identifier: BSD-2-Clause */
/* Bad descriptors and tokens for the fit: the documented status, and not a byte written. */
#include "../harness.h"
#include "sattn/fit.h"

#include <math.h>
#include <string.h>

enum { N = 40, C = 3, D = 2 };

typedef struct {
    real log_weight[C], mean[C * D], covariance[C * D * D];
    double trace[8];
    int64_t iterations;
    int32_t label[N];
} outputs;

static real token[N * D];
static outputs result;
static int32_t calls, stop_at;

static int32_t stop(void *context, int64_t iteration, double log_likelihood)
{
    check(context == &calls && isfinite(log_likelihood) && iteration >= 0);
    return ++calls == stop_at;
}

/* A legal fit, its outputs full of 0xff */
static sattn_fit legal(void)
{
    sattn_fit p;
    rng r = seed_of(1);
    random_fill(&r, token, N * D, -1, 1);
    memset(&result, 0xff, sizeof result);
    check(sattn_fit_init(&p, sizeof p, N, C, D, SATTN_COVARIANCE_FULL) == SATTN_OK);
    p.token = token;
    p.log_weight = result.log_weight, p.mean = result.mean, p.covariance = result.covariance;
    p.trace = result.trace, p.trace_length = 8;
    p.iterations = &result.iterations, p.label = result.label;
    return p;
}

static void check_refused(const sattn_fit *p, int32_t status)
{
    const int32_t got = FN(sattn_fit)(p);
    cr_assert(got == status, "%s, not %s: %s", sattn_status_string(got),
              sattn_status_string(status), where());
    check(is_untouched(&result, sizeof result));
}

/* A member, its value, the status */
typedef struct {
    const char *what;
    size_t offset, bytes;
    int64_t value;
    int32_t status;
} change;

#define SET(member, value, status)                                                                 \
    {                                                                                              \
#member " = " #value, offsetof(sattn_fit, member), sizeof(((sattn_fit *)0)->member),       \
            value, SATTN_##status                                                                  \
    }

static const change changes[] = {
    SET(size, 0, ESTRUCT),
    SET(size, -1, ESTRUCT),
    SET(size, INT64_MAX, ESTRUCT),
    SET(tokens, -1, ESIZE),
    SET(tokens, 0, ESIZE),
    SET(components, -1, ESIZE),
    SET(components, 0, ESIZE),
    SET(width, -1, ESIZE),
    SET(tokens, INT64_MAX, ESIZE),
    SET(components, INT64_MAX, ESIZE),
    SET(width, INT64_MAX, ESIZE),
    SET(lloyd_iterations, -1, ESIZE),
    SET(em_iterations, -1, ESIZE),
    SET(em_iterations, INT64_MAX, ESIZE),
    SET(trace_length, -1, ESIZE),
    SET(components, (int64_t)INT32_MAX + 1, ESIZE),
    SET(covariance_kind, 6, EOPTION),
    SET(covariance_kind, -1, EOPTION),
    SET(flags, 1, EOPTION),
    SET(rank, 1, EOPTION),
    SET(threads, -1, EVALUE),
    SET(threads, SATTN_MAX_THREADS + 1, EVALUE),
    SET(token, 0, ENULL),
    SET(log_weight, 0, ENULL),
    SET(mean, 0, ENULL),
    SET(covariance, 0, ENULL),
    SET(trace, 0, ENULL),
    SET(token_row, 1, ESTRIDE),
    SET(token_row, 0, ESTRIDE),
};

Test(fit_bad, members)
{
    for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
        const change *c = &changes[i];
        sattn_fit p = legal();
        const int32_t narrow = (int32_t)c->value;
        at("%s", c->what);
        memcpy((char *)&p + c->offset, c->bytes == 4 ? (const void *)&narrow : &c->value, c->bytes);
        check_refused(&p, c->status);
    }
}

Test(fit_bad, aliases)
{
    unsigned char *outputs_of[] = {
        (unsigned char *)result.log_weight,  (unsigned char *)result.mean,
        (unsigned char *)result.covariance,  (unsigned char *)result.trace,
        (unsigned char *)&result.iterations, (unsigned char *)result.label};
    static const size_t member[] = {offsetof(sattn_fit, log_weight), offsetof(sattn_fit, mean),
                                    offsetof(sattn_fit, covariance), offsetof(sattn_fit, trace),
                                    offsetof(sattn_fit, iterations), offsetof(sattn_fit, label)};
    for (int i = 0; i < 6; i++)
        for (int j = 0; j < 6; j++) {
            sattn_fit p = legal();
            at("output %d is output %d", i, j);
            if (i == j)
                continue;
            memcpy((char *)&p + member[i], &outputs_of[j], sizeof(void *));
            check_refused(&p, SATTN_EALIAS);
        }
    sattn_fit p = legal();
    static real copy[N * D];
    memcpy(copy, token, sizeof copy);
    p.mean = token + N * D - 1;
    check_refused(&p, SATTN_EALIAS);
    check(memcmp(copy, token, sizeof copy) == 0);
}

Test(fit_bad, numbers)
{
    static const double bad[] = {NAN, -1, -INFINITY};
    for (int i = 0; i < 3; i++) {
        sattn_fit p = legal();
        at("tolerance %g", bad[i]);
        p.tolerance = bad[i];
        check_refused(&p, SATTN_EVALUE);
        p = legal();
        at("floor %g", bad[i]);
        p.floor = bad[i];
        check_refused(&p, SATTN_EVALUE);
    }
    sattn_fit p = legal();
    at("floor 0");
    p.floor = 0;
    check_refused(&p, SATTN_EVALUE);
}

Test(fit_bad, tokens)
{
    static const real bad[] = {(real)NAN, (real)INFINITY, -(real)INFINITY};
    for (int64_t i = 0; i < N * D; i++) {
        const sattn_fit p = legal();
        at("token %d", (int)i);
        token[i] = bad[i % 3];
        check_refused(&p, SATTN_EVALUE);
    }
}

/* Farther from the rest than a covariance can tell */
Test(fit_bad, far_tokens)
{
    static const double far[] = {SATTN_REAL == 32 ? 0x1p63 : 0x1p501,
                                 SATTN_REAL == 32 ? 0x1p127 : 0x1p1023};
    for (int i = 0; i < 4; i++) {
        const sattn_fit p = legal();
        at("token %g", far[i / 2]);
        token[7] = (real)(i % 2 ? -far[i / 2] : far[i / 2]);
        token[9] = -token[7];
        check_refused(&p, SATTN_EVALUE);
    }
    sattn_fit p = legal();
    at("floor");
    p.floor = SATTN_REAL == 32 ? 0x1p125 : 0x1p1001;
    check_refused(&p, SATTN_EVALUE);
}

/* Stopped at any call, the first of k-means or the last of EM */
Test(fit_bad, cancelled)
{
    for (stop_at = 1; stop_at <= 12; stop_at++) {
        sattn_fit p = legal();
        at("cancelled at call %d", (int)stop_at);
        calls = 0;
        p.progress = stop;
        p.progress_context = &calls;
        p.lloyd_iterations = 2;
        p.tolerance = 0;
        check_refused(&p, SATTN_ECANCELLED);
        check(calls == stop_at);
    }
}

Test(fit_bad, later_descriptor)
{
    struct {
        sattn_fit p;
        unsigned char tail[16];
    } later = {.tail = {0}};
    later.p = legal();
    later.p.size = sizeof later;
    later.tail[15] = 1;
    at("unknown tail");
    check_refused(&later.p, SATTN_ESTRUCT);
    later.tail[15] = 0;
    check(FN(sattn_fit)(&later.p) == SATTN_OK);
}

Test(fit_bad, init)
{
    sattn_fit p;
    const int64_t size = sizeof p;
    memset(&p, 0xff, sizeof p);
    at("init");
    check(sattn_fit_init(NULL, size, N, C, D, 0) == SATTN_ENULL);
    check(sattn_fit_init(&p, size - 1, N, C, D, 0) == SATTN_ESTRUCT);
    check(sattn_fit_init(&p, size, -1, C, D, 0) == SATTN_ESIZE);
    check(sattn_fit_init(&p, size, N, -1, D, 0) == SATTN_ESIZE);
    check(sattn_fit_init(&p, size, N, C, -1, 0) == SATTN_ESIZE);
    check(sattn_fit_init(&p, size, N, INT64_MAX / 2, INT64_MAX / 2, 0) == SATTN_ESIZE);
    check(sattn_fit_init(&p, size, N, C, D, 6) == SATTN_EOPTION);
    check(is_untouched(&p, sizeof p));
    check(FN(sattn_fit)(NULL) == SATTN_ENULL);
}
