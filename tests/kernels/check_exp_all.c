/* SPDX-License-Identifier: BSD-2-Clause */
/* exp f32 of all 2^32 floats through every row: error, monotonicity, equal bits. Suite `full`.
 *
 * The reference is exp of the C library in double: an error below 1 ULP of double is 2^-29 ULP of
 * float, which is added to the limit. Nothing here depends on correct rounding, so hard cases need
 * no care; check_exp.c holds that exp against MPFR. Prints the maxima: the source of
 * docs/accuracy.md. */
#include "rows.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#define LIMIT 0.9
#define SUBNORMAL_LIMIT 0.92

enum { PIECE = 1 << 16, THREADS = 2 };

typedef struct {
    int first; /* of the pieces first, first + THREADS, ... */
    double most[2];
    uint32_t witness[2];
    const char *failure;
    uint32_t failed;
} part;

static float float_of(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* The first reason why y is wrong, or NULL */
static const char *judge(part *p, uint32_t bits, float y)
{
    const float x = float_of(bits);
    if (isnan(x))
        return isnan(y) ? NULL : "NaN is lost";
    const double want = exp((double)x);
    if (want < 0x1p-150)
        return y == 0 && !signbit(y) ? NULL : "not 0";
    if (isinf((float)want))
        return isinf(y) && y > 0 ? NULL : "not infinite";
    int exponent;
    frexp(want, &exponent);
    const int subnormal = exponent < -125;
    const double error = fabs(y - want) / (subnormal ? 0x1p-149 : ldexp(1, exponent - 24));
    if (error > p->most[subnormal]) {
        p->most[subnormal] = error;
        p->witness[subnormal] = bits;
    }
    return error <= (subnormal ? SUBNORMAL_LIMIT : LIMIT) ? NULL : "too far";
}

static void fail(part *p, const char *failure, uint32_t bits)
{
    if (!p->failure) {
        p->failure = failure;
        p->failed = bits;
    }
}

static void *run(void *context)
{
    part *p = context;
    static _Thread_local float x[PIECE + 1], y[PIECE + 1], other[PIECE + 1];
    for (uint32_t piece = (uint32_t)p->first; piece < 65536 && !p->failure; piece += THREADS) {
        /* one more than a piece, so that neighbours across pieces are compared too */
        for (uint32_t i = 0; i <= PIECE; i++)
            x[i] = float_of(piece * PIECE + i);
        const sattn_row *row = sattn_row_at(0);
        row->f32->exp(PIECE + 1, x, y);
        for (int r = 1; r < SATTN_ISA_COUNT; r++) {
            if (!(row = sattn_row_at(r)))
                continue;
            row->f32->exp(PIECE + 1, x, other);
            for (uint32_t i = 0; i <= PIECE; i++)
                if (memcmp(y + i, other + i, sizeof *y) != 0 && !(isnan(y[i]) && isnan(other[i])))
                    fail(p, "rows differ", piece * PIECE + i);
        }
        for (uint32_t i = 0; i < PIECE; i++) {
            const char *failure = judge(p, piece * PIECE + i, y[i]);
            if (failure)
                fail(p, failure, piece * PIECE + i);
            if (x[i + 1] > x[i] ? y[i + 1] < y[i] : x[i + 1] < x[i] && y[i + 1] > y[i])
                fail(p, "not monotone", piece * PIECE + i);
        }
    }
    return NULL;
}

Test(exp, all_floats)
{
    static part parts[THREADS];
    pthread_t thread[THREADS];
    for (int t = 0; t < THREADS; t++) {
        parts[t].first = t;
        cr_assert(pthread_create(&thread[t], NULL, run, &parts[t]) == 0, "no thread");
    }
    for (int t = 0; t < THREADS; t++)
        pthread_join(thread[t], NULL);
    for (int kind = 0; kind < 2; kind++) {
        const part *most = &parts[parts[1].most[kind] > parts[0].most[kind]];
        printf("exp f32, %s: %.4f at 0x%08x\n", kind ? "subnormal results" : "normal results",
               most->most[kind], (unsigned)most->witness[kind]);
    }
    for (int t = 0; t < THREADS; t++)
        cr_assert(!parts[t].failure, "%s: 0x%08x", parts[t].failure, (unsigned)parts[t].failed);
}
