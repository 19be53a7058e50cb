/* SPDX-License-Identifier: BSD-2-Clause */
#include "sattn/merge.h"
#include "merge.h"
#include "par.h"
#include "real.h"

#include <string.h>

enum { TILE = SATTN_TILE };

typedef struct {
    const sattn_merge *p;
    real *scratch; /* [threads][2 (P + 2) + 5 + 3 E][TILE] */
    int64_t scratch_size;
} call;

typedef struct {
    int64_t first, rows;
    /* [P][TILE] each, then [TILE] each, then tiles [E] */
    real *largest, *log_sum, *top, *log_total, *w, *total, *part, *dout, *out;
} tile;

static tile tile_of(const call *k, int64_t task, int32_t thread)
{
    const int64_t parts = k->p->parts, e = k->p->width, left = k->p->rows - task * TILE;
    real *at = k->scratch + thread * k->scratch_size;
    tile t = {.first = task * TILE, .rows = left < TILE ? left : TILE, .largest = at};
    t.log_sum = t.largest + parts * TILE;
    t.top = t.log_sum + parts * TILE;
    t.log_total = t.top + TILE;
    t.w = t.log_total + TILE;
    t.total = t.w + TILE;
    t.part = t.total + TILE;
    t.dout = t.part + TILE;
    t.out = t.dout + e * TILE;
    return t;
}

static void get_stats(const tile *t, const void *stats, int64_t row, real *largest, real *log_sum)
{
    const real *from = sattn_from(stats, t->first * row);
    for (int64_t q = 0; q < TILE; q++) {
        largest[q] = q < t->rows ? from[q * row] : -(real)__builtin_inf();
        log_sum[q] = q < t->rows ? from[q * row + 1] : 0;
    }
}

static void get_parts(const call *k, const tile *t)
{
    for (int64_t i = 0; i < k->p->parts; i++)
        get_stats(t, k->p->part_stats[i], k->p->part_stats_row, t->largest + i * TILE,
                  t->log_sum + i * TILE);
}

static void forward(void *context, int64_t task, int32_t thread)
{
    const call *k = context;
    const sattn_merge *p = k->p;
    const tile t = tile_of(k, task, thread);
    real *out = sattn_from(p->out, t.first * p->out_row);
    get_parts(k, &t);
    kernels()->merge_totals(p->parts, t.largest, t.log_sum, t.top, t.log_total);
    for (int64_t i = 0; p->out && i < p->parts; i++) { /* the first may be in place */
        kernels()->merge_weights(t.largest + i * TILE, t.log_sum + i * TILE, t.top, t.log_total,
                                 t.w);
        kernels()->add_scaled_rows(&(struct FN(sattn_scaled_rows)){
            t.rows, p->width, t.w, sattn_from(p->part_out[i], t.first * p->part_out_row),
            p->part_out_row, out, p->out_row, i > 0});
    }
    for (int64_t q = 0; p->out && p->parts == 0 && q < t.rows; q++)
        memset(out + q * p->out_row, 0, (size_t)p->width * sizeof(real));
    for (int64_t q = 0; p->stats && q < t.rows; q++) {
        real *stats = sattn_from(p->stats, (t.first + q) * p->stats_row);
        stats[0] = t.top[q];
        stats[1] = t.log_total[q];
    }
}

static void backward(void *context, int64_t task, int32_t thread)
{
    const call *k = context;
    const sattn_merge *p = k->p;
    const tile t = tile_of(k, task, thread);
    const int64_t e = p->dout ? p->width : 0;
    const real *dout = sattn_from(p->dout, t.first * p->dout_row);
    real dlse[TILE] = {0};
    get_parts(k, &t);
    get_stats(&t, p->stats, p->stats_row, t.top, t.log_total);
    for (int64_t q = 0; p->dlse && q < t.rows; q++)
        dlse[q] = ((const real *)p->dlse)[t.first + q];
    kernels()->pack(t.rows, e, dout, p->dout_row, t.dout);
    kernels()->pack(t.rows, e, sattn_from(p->out, t.first * p->out_row), p->out_row, t.out);
    kernels()->mixture_offset(e, t.dout, t.out, NULL, dlse, t.total);
    for (int64_t i = 0; i < p->parts; i++) {
        const real *largest = t.largest + i * TILE;
        kernels()->merge_weights(largest, t.log_sum + i * TILE, t.top, t.log_total, t.w);
        if (p->part_dlse) {
            kernels()->pack(t.rows, e, sattn_from(p->part_out[i], t.first * p->part_out_row),
                            p->part_out_row, t.out);
            kernels()->mixture_offset(e, t.dout, t.out, NULL, NULL, t.part);
            kernels()->merge_pull(largest, t.w, t.total, t.part, dlse);
            memcpy(sattn_from(p->part_dlse[i], t.first), dlse, (size_t)t.rows * sizeof(real));
        }
        for (int64_t q = 0; q < t.rows && !p->dout; q++)
            t.w[q] = 0;
        if (p->part_dout)
            kernels()->add_scaled_rows(&(struct FN(sattn_scaled_rows)){
                t.rows, p->width, t.w, dout, p->dout_row,
                sattn_from(p->part_dout[i], t.first * p->part_dout_row), p->part_dout_row, 0});
    }
}

/* Whether there is no element to write, however many rows */
static int is_idle(const sattn_merge *p, int back)
{
    return back ? p->parts == 0 || (!p->part_dlse && (!p->part_dout || p->width == 0))
                : !p->stats && (!p->out || p->width == 0);
}

static int32_t run(const sattn_merge *given, int back)
{
    sattn_merge p;
    const int32_t status = sattn_merge_check(&p, given, back, sizeof(real));
    if (status != SATTN_OK || p.rows == 0 || is_idle(&p, back))
        return status;
    const int64_t tiles = (p.rows + TILE - 1) / TILE, work = p.rows * (p.width + 1) * (p.parts + 1);
    const int32_t threads = work < 1 << 18 ? 1 : sattn_par_threads(p.threads);
    call k = {&p, NULL, (2 * p.parts + 5 + (back ? 2 * p.width : 0)) * TILE};
    k.scratch = sattn_alloc(threads * k.scratch_size * (int64_t)sizeof(real));
    if (!k.scratch)
        return SATTN_ENOMEM;
    sattn_par_for(tiles, threads, back ? backward : forward, &k);
    sattn_free(k.scratch);
    return SATTN_OK;
}

int32_t FN(sattn_merge_forward)(const sattn_merge *p)
{
    return run(p, 0);
}

int32_t FN(sattn_merge_backward)(const sattn_merge *p)
{
    return run(p, 1);
}
