/* SPDX-License-Identifier: BSD-2-Clause */
#include "check.h"
#include "par.h"
#include "softmax.h"

/* Places for `count` times `bytes` at the end of the workspace, on a cache line */
static int reserve(int64_t *end, int64_t *place, int64_t count, int64_t bytes)
{
    *place = *end;
    if (!sattn_grow(&count, bytes) || count > INT64_MAX / 32 - *end)
        return 0;
    *end += (count + 63) / 64 * 64;
    return 1;
}

int32_t sattn_softmax_plan_make(sattn_softmax_plan *plan, const sattn_softmax *p,
                                int64_t element_bytes)
{
    sattn_softmax_plan q = {.rows = p->batch * p->rows};
    const int repeat_b = p->bias_batch == 0, repeat_m = p->bias_row == 0;
    q.threads = q.rows * p->width < 2 * SATTN_SOFTMAX_TASK ? 1 : sattn_par_threads(p->threads);
    q.by_slab = p->dbias && (p->bias_col != 0 || p->width == 1);
    q.group_rows = repeat_m ? 1 : p->rows;
    q.groups = (repeat_b ? 1 : p->batch) * q.group_rows;
    q.group = (repeat_b ? p->batch : 1) * (repeat_m ? p->rows : 1);
    q.step = repeat_b && !repeat_m ? p->rows : 1;
    q.slabs = q.group > SATTN_SLAB ? (q.group + SATTN_SLAB - 1) / SATTN_SLAB : 1;
    const int64_t sums = p->dbias && !q.by_slab, wide = sizeof(double);
    const int64_t partials = !q.by_slab ? 0 : q.slabs > 1 ? q.groups * q.slabs : q.threads;
    const int fits = reserve(&q.bytes, &q.logit_sums, sums ? q.rows : 0, wide) &&
                     reserve(&q.bytes, &q.dscale, p->dscale ? q.rows : 0, wide) &&
                     reserve(&q.bytes, &q.dsink, p->dsink ? q.rows : 0, wide) &&
                     reserve(&q.bytes, &q.partial, partials, element_bytes * p->width);
    *plan = q;
    return fits ? SATTN_OK : SATTN_ESIZE;
}
