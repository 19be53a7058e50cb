/* SPDX-License-Identifier: BSD-2-Clause */
/* Matrix products of rows of queries with a map. The kernel wants the right factor's rows adjacent:
 * where they are the map's columns, the map is transposed once a call. */
#include "tilt.h"
#include "check.h"
#include "par.h"
#include "real.h"

#include <stddef.h>

typedef struct FN(sattn_gemm) gemm;

enum { PANEL = 32 };

typedef struct {
    sattn_tilt p;
    int64_t maps, tiles, panels;
    int64_t sum;   /* elements of one task's rows of sum q dtilt' */
    real *turned;  /* the maps transposed, or NULL */
    real *sums;    /* [maps x panels][sum] */
    double *scale; /* [maps x panels]: parts of dscale */
} call;

static int is_transposed(const call *k)
{
    return (k->p.flags & SATTN_TRANSPOSED) != 0;
}

/* Rows and columns of the map as it is stored */
static int64_t map_rows(const call *k)
{
    return is_transposed(k) ? k->p.width : k->p.query_width;
}

static int64_t map_cols(const call *k)
{
    return is_transposed(k) ? k->p.query_width : k->p.width;
}

static const real *map_of(const call *k, int64_t b)
{
    return sattn_from(k->p.map, b * k->p.map_batch);
}

static void turn(void *context, int64_t set, int32_t thread)
{
    const call *k = context;
    const int64_t rows = map_rows(k), cols = map_cols(k);
    real *to = k->turned + set * rows * cols;
    (void)thread;
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < cols; j++)
            to[j * rows + i] = map_of(k, set)[i * cols + j];
}

/* The map of batch entry b, or its transpose where `turned` is there. */
static const real *factor_of(const call *k, int64_t b)
{
    return k->turned ? k->turned + (k->p.map_batch ? b : 0) * map_rows(k) * map_cols(k)
                     : map_of(k, b);
}

static void forward_tile(void *context, int64_t task, int32_t thread)
{
    const call *k = context;
    const sattn_tilt *p = &k->p;
    const int64_t b = task / k->tiles, q = task % k->tiles * SATTN_TILE, d = p->width;
    const int64_t rows = p->queries - q < SATTN_TILE ? p->queries - q : SATTN_TILE;
    const real *query = sattn_from(p->query, b * p->query_batch + q * p->query_row);
    const real *offset = p->offset, scale = (real)p->scale;
    real *to = sattn_from(p->tilt, b * p->tilt_batch + q * p->tilt_row);
    (void)thread;
    kernels()->gemm(&(gemm){rows, d, p->query_width, query, p->query_row, 1, factor_of(k, b), d, to,
                            p->tilt_row, NULL, 0, 0});
    for (int64_t r = 0; r < rows; r++)
        for (int64_t i = 0; i < d; i++) {
            real *u = &to[r * p->tilt_row + i];
            *u = *u * scale + (offset ? offset[b * p->offset_batch + i] : 0);
        }
}

static void backward_tile(void *context, int64_t task, int32_t thread)
{
    const call *k = context;
    const sattn_tilt *p = &k->p;
    const int64_t b = task / k->tiles, q = task % k->tiles * SATTN_TILE, n = p->query_width;
    const int64_t rows = p->queries - q < SATTN_TILE ? p->queries - q : SATTN_TILE;
    const real *dtilt = sattn_from(p->dtilt, b * p->dtilt_batch + q * p->dtilt_row);
    real *to = sattn_from(p->dquery, b * p->dquery_batch + q * p->dquery_row);
    real sum[SATTN_TILE * PANEL];
    (void)thread;
    for (int64_t i = 0; i < n; i += PANEL) {
        const int64_t count = n - i < PANEL ? n - i : PANEL;
        kernels()->gemm(&(gemm){rows, count, p->width, dtilt, p->dtilt_row, 1, factor_of(k, b) + i,
                                n, sum, PANEL, NULL, 0, 0});
        for (int64_t r = 0; r < rows; r++)
            for (int64_t j = 0; j < count; j++) {
                real *x = &to[r * p->dquery_row + i + j];
                *x = (p->flags & SATTN_ACCUMULATE ? *x : 0) + (real)p->scale * sum[r * PANEL + j];
            }
    }
}

/* 32 rows of the sum over queries of q dtilt' (dtilt q'), over all batch entries of this map */
static void sum_panel(void *context, int64_t task, int32_t thread)
{
    const call *k = context;
    const sattn_tilt *p = &k->p;
    const int64_t set = task / k->panels, i = task % k->panels * PANEL, cols = map_cols(k);
    const int64_t rows = map_rows(k) - i < PANEL ? map_rows(k) - i : PANEL;
    real *sum = k->sums + task * k->sum, *into = p->dmap;
    (void)thread;
    for (int64_t x = 0; x < rows * cols; x++)
        sum[x] = 0;
    for (int64_t b = p->map_batch ? set : 0; b < (p->map_batch ? set + 1 : p->batch); b++) {
        const real *query = sattn_from(p->query, b * p->query_batch);
        const real *dtilt = sattn_from(p->dtilt, b * p->dtilt_batch);
        const gemm g =
            is_transposed(k)
                ? (gemm){rows, cols, p->queries, dtilt + i, 1, p->dtilt_row, query, p->query_row,
                         sum,  cols, sum,        cols,      1}
                : (gemm){rows, cols, p->queries, query + i, 1, p->query_row, dtilt, p->dtilt_row,
                         sum,  cols, sum,        cols,      1};
        kernels()->gemm(&g);
    }
    double scale = 0;
    for (int64_t x = 0; x < rows * cols; x++) {
        if (p->batch > 0) /* else the map may be NULL */
            scale += (double)map_of(k, set)[i * cols + x] * (double)sum[x];
        if (into) {
            real *to = &into[set * p->map_batch + i * cols + x];
            *to = (p->flags & SATTN_ACCUMULATE ? *to : 0) + (real)p->scale * sum[x];
        }
    }
    k->scale[task] = scale;
}

/* doffset, and the parts of dscale in their order */
static void finish(void *context, int64_t task, int32_t thread)
{
    const call *k = context;
    const sattn_tilt *p = &k->p;
    real *dscale = p->dscale;
    double scale = 0;
    (void)task, (void)thread;
    for (int64_t i = 0; dscale && i < k->maps * k->panels; i++)
        scale += k->scale[i];
    if (dscale)
        dscale[0] = (p->flags & SATTN_ACCUMULATE ? dscale[0] : 0) + (real)scale;
    const int64_t d = p->width, sets = p->offset_batch ? p->batch : 1;
    const real one = 1;
    for (int64_t set = 0; p->doffset && set < sets; set++)
        for (int64_t i = 0; i < d && !(p->flags & SATTN_ACCUMULATE); i++)
            ((real *)p->doffset)[set * p->offset_batch + i] = 0;
    for (int64_t b = 0; p->doffset && b < p->batch; b++) {
        real *to = sattn_from(p->doffset, b * p->offset_batch);
        const real *dtilt = sattn_from(p->dtilt, b * p->dtilt_batch);
        kernels()->gemm(
            &(gemm){1, d, p->queries, &one, 0, 0, dtilt, p->dtilt_row, to, d, to, d, 1});
    }
}

/* Checks, and finds memory: for the transposed maps if they are needed, and for `sums` of them. */
static int32_t begin(call *k, const sattn_tilt *given, int backward, void **memory)
{
    *k = (call){0};
    const int32_t status = sattn_tilt_check(&k->p, given, backward, sizeof(real));
    if (status != SATTN_OK)
        return status;
    const sattn_tilt *p = &k->p;
    const int64_t map = p->query_width * p->width;
    k->maps = p->map_batch ? p->batch : 1;
    k->tiles = (p->queries + SATTN_TILE - 1) / SATTN_TILE;
    k->panels = (map_rows(k) + PANEL - 1) / PANEL;
    k->sum = PANEL * map_cols(k);
    const int64_t turned = p->batch > 0 && is_transposed(k) != backward ? k->maps * map : 0;
    const int64_t tasks = backward ? k->maps * k->panels : 0;
    const int64_t bytes = tasks * (int64_t)sizeof(double);
    char *at = *memory =
        sattn_alloc(bytes + (turned + tasks * k->sum) * (int64_t)sizeof(real) + 64);
    if (!at)
        return SATTN_ENOMEM;
    k->scale = (double *)(void *)at;
    k->turned = turned ? (real *)(void *)(at + bytes) : NULL;
    k->sums = (real *)(void *)(at + bytes) + turned;
    if (turned)
        sattn_par_for(k->maps, 1, turn, k);
    return SATTN_OK;
}

static int32_t threads_of(const sattn_tilt *p)
{
    const double work =
        (double)p->batch * (double)p->queries * (double)p->query_width * (double)p->width;
    return work < 1 << 18 ? 1 : sattn_par_threads(p->threads);
}

int32_t FN(sattn_tilt_forward)(const sattn_tilt *given)
{
    call k;
    void *memory = NULL;
    const int32_t status = begin(&k, given, 0, &memory);
    if (status == SATTN_OK)
        sattn_par_for(k.p.batch * k.tiles, threads_of(&k.p), forward_tile, &k);
    sattn_free(memory);
    return sattn_answer(status);
}

int32_t FN(sattn_tilt_backward)(const sattn_tilt *given)
{
    call k;
    void *memory = NULL;
    const int32_t status = begin(&k, given, 1, &memory);
    if (status == SATTN_OK) {
        const int32_t threads = threads_of(&k.p);
        if (k.p.dquery)
            sattn_par_for(k.p.batch * k.tiles, threads, backward_tile, &k);
        if (k.p.dmap || k.p.dscale)
            sattn_par_for(k.maps * k.panels, threads, sum_panel, &k);
        sattn_par_for(1, 1, finish, &k);
    }
    sattn_free(memory);
    return sattn_answer(status);
}
