/* SPDX-License-Identifier: BSD-2-Clause */
/* exp f64 of 10^9 doubles through every row: error, monotonicity, equal bits. Suite `full`.
 *
 * A piece is either random doubles or runs of neighbours, which show whether exp ever decreases:
 * where the rounding of 8 x / ln 2 steps, that is around (k + 1/2) ln 2 / 8, and anywhere in
 * [-1, 1], where neighbours are nearer to each other than their exponentials' ULP. The reference is
 * expl, off by at most 2^-10 ULP of a double (check_exp.c compares it with MPFR). Prints the
 * maxima: the source of docs/accuracy.md. */
#include "rows.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#define LIMIT 0.67L /* tests/proof/exp.py */
#define SUBNORMAL_LIMIT 0.835L
#define STEP 0.0866433975699932 /* ln 2 / 8 */

enum { PIECE = 1 << 16, PIECES = 1 << 14, THREADS = 2, FIRST = -8600, LAST = 8192 };

typedef struct {
    int first; /* of the pieces first, first + THREADS, ... */
    long double most[2];
    double witness[2];
    const char *failure;
    double failed;
} part;

static double moved(double x, int64_t places)
{
    int64_t bits;
    memcpy(&bits, &x, sizeof bits);
    bits += x < 0 ? -places : places;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* Length of the runs of neighbours in the piece; 1 = random doubles */
static int draw(int piece, double *x)
{
    rng g = seed_of((uint64_t)piece);
    const int kind = piece % 4, run = kind == 2 ? 256 : kind == 3 ? PIECE : 1;
    for (int i = 0; i < PIECE; i += run) {
        double start = random_in(&g, -745.5, 709.8);
        if (kind == 1)
            start = ldexp(random_in(&g, -1, 1), (int)random_below(&g, 72) - 62);
        else if (kind == 3)
            start = random_in(&g, -1, 1);
        else if (kind == 2) { /* every other run is of the few steps near 0 */
            const int64_t near = random_below(&g, 32) - 16;
            const int64_t any = FIRST + random_below(&g, LAST - FIRST);
            start = moved(((double)(i / run % 2 ? any : near) + 0.5) * STEP,
                          -run / 2 - random_below(&g, run));
        }
        for (int j = 0; j < run; j++)
            x[i + j] = moved(start, j);
    }
    return run;
}

/* The first reason why y is wrong, or NULL */
static const char *judge(part *p, double x, double y)
{
    const long double want = expl((long double)x);
    if (want < 0x1p-1075L)
        return y == 0 && !signbit(y) ? NULL : "not 0";
    if (want >= 0x1.fffffffffffff8p1023L)
        return isinf(y) && y > 0 ? NULL : "not infinite";
    int exponent;
    frexpl(want, &exponent);
    const int subnormal = exponent < -1021;
    const long double ulp = subnormal ? 0x1p-1074L : ldexpl(1, exponent - 53);
    const long double error = fabsl((long double)y - want) / ulp;
    if (error > p->most[subnormal]) {
        p->most[subnormal] = error;
        p->witness[subnormal] = x;
    }
    return error <= (subnormal ? SUBNORMAL_LIMIT : LIMIT) ? NULL : "too far";
}

static void fail(part *p, const char *failure, double x)
{
    if (!p->failure) {
        p->failure = failure;
        p->failed = x;
    }
}

static void *run_part(void *context)
{
    part *p = context;
    static _Thread_local double x[PIECE], y[PIECE], other[PIECE];
    for (int piece = p->first; piece < PIECES && !p->failure; piece += THREADS) {
        const int run = draw(piece, x);
        sattn_row_at(0)->f64->exp(PIECE, x, y);
        for (int r = 1; r < SATTN_ISA_COUNT; r++) {
            if (!sattn_row_at(r))
                continue;
            sattn_row_at(r)->f64->exp(PIECE, x, other);
            for (int i = 0; i < PIECE; i++)
                if (memcmp(y + i, other + i, sizeof *y) != 0)
                    fail(p, "rows differ", x[i]);
        }
        for (int i = 0; i < PIECE; i++) {
            const char *failure = judge(p, x[i], y[i]);
            if (failure)
                fail(p, failure, x[i]);
            if (i % run > 0 && (x[i] > x[i - 1] ? y[i] < y[i - 1] : y[i] > y[i - 1]))
                fail(p, "not monotone", x[i]);
        }
    }
    return NULL;
}

Test(exp, many_doubles)
{
    static part parts[THREADS];
    pthread_t thread[THREADS];
    for (int t = 0; t < THREADS; t++) {
        parts[t].first = t;
        cr_assert(pthread_create(&thread[t], NULL, run_part, &parts[t]) == 0, "no thread");
    }
    for (int t = 0; t < THREADS; t++)
        pthread_join(thread[t], NULL);
    for (int kind = 0; kind < 2; kind++) {
        const part *most = &parts[parts[1].most[kind] > parts[0].most[kind]];
        printf("exp f64, %s: %.4Lf at %a\n", kind ? "subnormal results" : "normal results",
               most->most[kind], most->witness[kind]);
    }
    for (int t = 0; t < THREADS; t++)
        cr_assert(!parts[t].failure, "%s: %a", parts[t].failure, parts[t].failed);
}
