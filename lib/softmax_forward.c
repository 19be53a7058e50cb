/* SPDX-License-Identifier: BSD-2-Clause */
#include "check.h"
#include "par.h"
#include "softmax_rows.h"

/* Rows whose elements are side by side share cache lines: a task gets so many at least. */
enum { SIDE_BY_SIDE = 64 };

typedef struct {
    const sattn_softmax_call *k;
    int64_t rows, rows_per_task;
} problem;

/* Plain softmax, which has kernels of its own with the same bits */
static int is_plain(const struct FN(sattn_softmax_rows) * s)
{
    return !s->logarithm && s->x_storage == SATTN_STORAGE_OWN &&
           s->y_storage == SATTN_STORAGE_OWN && s->scale == 1 && s->n > 0 && s->y.data &&
           !s->bias.data && !s->mask.data && !s->length && !s->sink && !s->stats && !s->lse;
}

static void some_rows(const sattn_softmax_call *k, int64_t b, int64_t m, int64_t rows)
{
    const struct FN(sattn_softmax_rows) s = FN(sattn_softmax_rows_of)(k, b, m, rows);
    if (is_plain(&s) && s.x.col == 1 && s.y.col == 1)
        kernels()->softmax(rows, s.n, s.x.data, s.x.row, s.y.data, s.y.row);
    else if (is_plain(&s) && s.x.row == 1 && s.y.row == 1)
        kernels()->softmax_columns(rows, s.n, s.x.data, s.x.col, s.y.data, s.y.col);
    else
        kernels()->softmax_forward(&s);
}

static void body(void *context, int64_t task, int32_t thread)
{
    const problem *p = context;
    const int64_t rows = p->k->p.rows, first = task * p->rows_per_task;
    const int64_t end = p->rows - first < p->rows_per_task ? p->rows : first + p->rows_per_task;
    (void)thread;
    for (int64_t r = first, next; r < end; r = next) {
        next = r - r % rows + rows < end ? r - r % rows + rows : end;
        some_rows(p->k, r / rows, r % rows, next - r);
    }
}

int32_t FN(sattn_softmax_forward)(const sattn_softmax *given)
{
    sattn_softmax_call k;
    const int32_t status =
        sattn_softmax_check(&k, given, SATTN_SOFTMAX_FORWARD, (int64_t)sizeof(real));
    if (status != SATTN_OK)
        return sattn_answer(status);
    const int64_t n = k.p.width, least = k.p.x_row == 1 && k.p.x_col != 1 ? SIDE_BY_SIDE : 1;
    problem p = {&k, k.p.batch * k.p.rows, SATTN_SOFTMAX_TASK / (n + 1) / least * least + least};
    const int64_t tasks = (p.rows + p.rows_per_task - 1) / p.rows_per_task;
    sattn_par_for(tasks, tasks < 2 ? 1 : sattn_par_threads(k.p.threads), body, &p);
    return SATTN_OK;
}

static int32_t plain(int32_t form, int64_t rows, int64_t n, const real *x, int64_t ldx, real *y,
                     int64_t ldy, real *lse, int32_t threads)
{
    sattn_softmax p;
    const int32_t status = sattn_softmax_init(&p, sizeof p, 1, rows, n);
    if (status != SATTN_OK)
        return status;
    p.form = form;
    p.x = x;
    p.x_row = ldx;
    p.y = y;
    p.y_row = ldy;
    p.lse = lse;
    p.threads = threads;
    return FN(sattn_softmax_forward)(&p);
}

int32_t FN(sattn_log_softmax)(int64_t rows, int64_t n, const real *x, int64_t ldx, real *y,
                              int64_t ldy, int32_t threads)
{
    if (!y && rows > 0 && n > 0)
        return SATTN_ENULL;
    return plain(SATTN_FORM_LOG_SOFTMAX, rows, n, x, ldx, y, ldy, NULL, threads);
}

int32_t FN(sattn_log_sum_exp)(int64_t rows, int64_t n, const real *x, int64_t ldx, real *lse,
                              int32_t threads)
{
    if (!lse && rows > 0)
        return SATTN_ENULL;
    return plain(SATTN_FORM_SOFTMAX, rows, n, x, ldx, NULL, 0, lse, threads);
}
