/* SPDX-License-Identifier: BSD-2-Clause */
#include "sattn/exp.h"
#include "check.h"
#include "par.h"
#include "real.h"

/* Elements of one task. Starting a team costs a few microseconds: below two tasks it does not pay.
 */
enum { TASK = 1 << 16, GATHER = 256 };

typedef struct {
    int64_t n, incx, incy;
    const real *x;
    real *y;
} problem;

/* Strided elements go through a buffer, so that a value's bits do not depend on its neighbours. */
static void strided(const problem *p, int64_t first, int64_t end)
{
    real buffer[GATHER];
    for (int64_t block = first; block < end; block += GATHER) {
        const int64_t n = end - block < GATHER ? end - block : GATHER;
        for (int64_t i = 0; i < n; i++)
            buffer[i] = p->x[(block + i) * p->incx];
        kernels()->exp(n, buffer, buffer);
        for (int64_t i = 0; i < n; i++)
            p->y[(block + i) * p->incy] = buffer[i];
    }
}

static void body(void *context, int64_t task, int32_t thread)
{
    const problem *p = context;
    const int64_t first = task * TASK, end = first + TASK < p->n ? first + TASK : p->n;
    (void)thread;
    if (p->incx == 1 && p->incy == 1)
        kernels()->exp(end - first, p->x + first, p->y + first);
    else
        strided(p, first, end);
}

int32_t FN(sattn_exp)(int64_t n, const real *x, int64_t incx, real *y, int64_t incy,
                      int32_t threads)
{
    const sattn_view in = {x, {1, 1, n}, {0, 0, incx}}, out = {y, {1, 1, n}, {0, 0, incy}};
    int32_t status = sattn_par_check(threads);
    if (status == SATTN_OK)
        status = sattn_check_input(&in);
    if (status == SATTN_OK)
        status = sattn_check_output(&out);
    if (status != SATTN_OK)
        return status;
    if (n > 1 && sattn_overlap(&in, &out, sizeof(real)) && (x != y || incx != incy))
        return SATTN_EALIAS;
    problem p = {n, incx, incy, x, y};
    const int64_t tasks = (n + TASK - 1) / TASK;
    sattn_par_for(tasks, tasks < 2 ? 1 : sattn_par_threads(threads), body, &p);
    return SATTN_OK;
}
