/* SPDX-License-Identifier: BSD-2-Clause */
#include "sattn/softmax.h"
#include "check.h"
#include "par.h"
#include "real.h"

/* Elements of one task, about; a row is never cut. */
enum { TASK = 1 << 16 };

typedef struct {
    int64_t rows, n, ldx, ldy, rows_per_task;
    const real *x;
    real *y;
} problem;

static void body(void *context, int64_t task, int32_t thread)
{
    const problem *p = context;
    const int64_t first = task * p->rows_per_task, left = p->rows - first;
    (void)thread;
    kernels()->softmax(left < p->rows_per_task ? left : p->rows_per_task, p->n,
                       p->x + first * p->ldx, p->ldx, p->y + first * p->ldy, p->ldy);
}

int32_t FN(sattn_softmax)(int64_t rows, int64_t n, const real *x, int64_t ldx, real *y, int64_t ldy,
                          int32_t threads)
{
    const sattn_view in = {x, {1, rows, n}, {0, ldx, 1}}, out = {y, {1, rows, n}, {0, ldy, 1}};
    int32_t status = sattn_par_check(threads);
    if (status == SATTN_OK)
        status = sattn_check_input(&in);
    if (status == SATTN_OK)
        status = sattn_check_output(&out);
    if (status != SATTN_OK || rows == 0 || n == 0)
        return status;
    if (sattn_overlap(&in, &out, sizeof(real)) && (x != y || (ldx != ldy && rows > 1)))
        return SATTN_EALIAS;
    problem p = {rows, n, ldx, ldy, n < TASK ? TASK / n : 1, x, y};
    const int64_t tasks = (rows + p.rows_per_task - 1) / p.rows_per_task;
    sattn_par_for(tasks, tasks < 2 ? 1 : sattn_par_threads(threads), body, &p);
    return SATTN_OK;
}
