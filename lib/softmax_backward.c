/* SPDX-License-Identifier: BSD-2-Clause */
#include "check.h"
#include "par.h"
#include "softmax_rows.h"

typedef struct {
    const sattn_softmax_call *k;
    const sattn_softmax_plan *plan;
    char *work;
    int64_t rows_per_task;
} problem;

/* Columns whose slabs one task adds up */
enum { COLUMNS = 1024 };

static double *row_values(const problem *c, const void *wanted, int64_t offset)
{
    return wanted ? (double *)(void *)(c->work + offset) : NULL;
}

/* Rows of one batch entry from row number r = b M + m on; their dz are added to dbias. */
static void some_rows(const problem *c, int64_t r, int64_t rows, real *dbias)
{
    const sattn_softmax *p = &c->k->p;
    struct FN(sattn_softmax_rows) s =
        FN(sattn_softmax_rows_of)(c->k, r / p->rows, r % p->rows, rows);
    double *const sums = row_values(c, c->plan->by_slab ? NULL : p->dbias, c->plan->logit_sums);
    double *const dscale = row_values(c, p->dscale, c->plan->dscale);
    double *const dsink = row_values(c, p->dsink, c->plan->dsink);
    s.dbias = dbias;
    s.logit_sums = sums ? sums + r : NULL;
    s.dscale = dscale ? dscale + r : NULL;
    s.dsink = dsink ? dsink + r : NULL;
    kernels()->softmax_backward(&s);
}

static void rows_body(void *context, int64_t task, int32_t thread)
{
    const problem *c = context;
    const int64_t rows = c->k->p.rows, all = c->plan->rows, first = task * c->rows_per_task;
    const int64_t end = all - first < c->rows_per_task ? all : first + c->rows_per_task;
    (void)thread;
    for (int64_t r = first, next; r < end; r = next) {
        next = r - r % rows + rows < end ? r - r % rows + rows : end;
        some_rows(c, r, next - r, NULL);
    }
}

static real *group_of_dbias(const problem *c, int64_t group)
{
    const sattn_softmax *p = &c->k->p;
    return sattn_from(p->dbias, group / c->plan->group_rows * p->bias_batch +
                                    group % c->plan->group_rows * p->bias_row);
}

static real *partial(const problem *c, int64_t index)
{
    return (real *)(void *)(c->work + c->plan->partial) + index * c->k->p.width;
}

static void slab_body(void *context, int64_t task, int32_t thread)
{
    const problem *c = context;
    const sattn_softmax_plan *plan = c->plan;
    const int64_t n = c->k->p.width, group = task / plan->slabs, slab = task % plan->slabs;
    const int64_t base = group / plan->group_rows * c->k->p.rows + group % plan->group_rows;
    const int64_t first = slab * SATTN_SLAB, left = plan->group - first;
    real *sums = partial(c, plan->slabs > 1 ? task : thread);
    for (int64_t j = 0; j < n; j++)
        sums[j] = 0;
    for (int64_t i = first; i < first + (left < SATTN_SLAB ? left : SATTN_SLAB); i++)
        some_rows(c, base + i * plan->step, 1, sums);
    for (int64_t j = 0; j < n && plan->slabs == 1; j++)
        group_of_dbias(c, group)[j * c->k->p.bias_col] = sums[j];
}

static void merge_body(void *context, int64_t task, int32_t thread)
{
    const problem *c = context;
    const int64_t n = c->k->p.width, pieces = (n + COLUMNS - 1) / COLUMNS;
    const int64_t group = task / pieces, first = task % pieces * COLUMNS;
    const int64_t columns = n - first < COLUMNS ? n - first : COLUMNS;
    double sums[COLUMNS] = {0};
    (void)thread;
    for (int64_t slab = 0; slab < c->plan->slabs; slab++)
        for (int64_t j = 0; j < columns; j++)
            sums[j] += partial(c, group * c->plan->slabs + slab)[first + j];
    for (int64_t j = 0; j < columns; j++)
        group_of_dbias(c, group)[(first + j) * c->k->p.bias_col] = (real)sums[j];
}

/* to[b][m] = the values of its rows; a stride of 0 sums over that axis, row after row. */
static void reduce(const sattn_softmax *p, const double *values, int64_t batch, int64_t row,
                   real *to)
{
    const int64_t over_b = batch == 0 ? p->batch : 1, over_m = row == 0 ? p->rows : 1;
    for (int64_t b = 0; b < (batch == 0 ? 1 : p->batch); b++)
        for (int64_t m = 0; m < (row == 0 ? 1 : p->rows); m++) {
            double sum = 0;
            for (int64_t i = b; i < b + over_b; i++)
                for (int64_t j = m; j < m + over_m; j++)
                    sum += values[i * p->rows + j];
            to[b * batch + m * row] = (real)sum;
        }
}

static void run(problem *c)
{
    const sattn_softmax *p = &c->k->p;
    const sattn_softmax_plan *plan = c->plan;
    const int64_t tasks = (plan->rows + c->rows_per_task - 1) / c->rows_per_task;
    if (!plan->by_slab)
        sattn_par_for(tasks, plan->threads, rows_body, c);
    else
        sattn_par_for(plan->groups * plan->slabs, plan->threads, slab_body, c);
    if (plan->by_slab && plan->slabs > 1)
        sattn_par_for(plan->groups * ((p->width + COLUMNS - 1) / COLUMNS), plan->threads,
                      merge_body, c);
    if (p->dbias && !plan->by_slab)
        reduce(p, row_values(c, p->dbias, plan->logit_sums), p->bias_batch, p->bias_row, p->dbias);
    if (p->dscale)
        reduce(p, row_values(c, p->dscale, plan->dscale), 0, 0, p->dscale);
    if (p->dsink)
        reduce(p, row_values(c, p->dsink, plan->dsink), p->sink_batch, p->sink_row, p->dsink);
}

int32_t FN(sattn_softmax_workspace)(const sattn_softmax *given, int64_t *bytes)
{
    sattn_softmax_call k;
    sattn_softmax_plan plan;
    if (!bytes)
        return SATTN_ENULL;
    int32_t status = sattn_softmax_check(&k, given, SATTN_SOFTMAX_SHAPE, (int64_t)sizeof(real));
    if (status == SATTN_OK)
        status = sattn_softmax_plan_make(&plan, &k.p, (int64_t)sizeof(real));
    if (status == SATTN_OK)
        *bytes = plan.bytes;
    return status;
}

int32_t FN(sattn_softmax_backward)(const sattn_softmax *given)
{
    sattn_softmax_call k;
    sattn_softmax_plan plan;
    int32_t status = sattn_softmax_check(&k, given, SATTN_SOFTMAX_BACKWARD, (int64_t)sizeof(real));
    if (status == SATTN_OK)
        status = sattn_softmax_plan_make(&plan, &k.p, (int64_t)sizeof(real));
    if (status != SATTN_OK)
        return sattn_answer(status);
    const int64_t n = k.p.width;
    problem c = {&k, &plan, NULL, n < SATTN_SOFTMAX_TASK ? SATTN_SOFTMAX_TASK / (n + 1) : 1};
    void *work, *owned;
    status = sattn_workspace(k.p.work, k.p.work_bytes, plan.bytes, &work, &owned);
    if (status != SATTN_OK)
        return status;
    c.work = work;
    run(&c);
    sattn_free(owned);
    return SATTN_OK;
}
