/* SPDX-License-Identifier: BSD-2-Clause */
/* Backward of the union. x_c = S_c u (joint: X_c u), y_c = v_c + t_c x_c, w_c = exp(l_c - lse):
 *
 *   b_c = w_c (dout . (y_c - out) + dlse)         dlog_weight_c = sum b_c
 *   dmean_c = sum b_c u   dvalue_c = sum w_c dout (values = keys: into dmean)
 *   du = sum b_c m_c + ..
 *
 * What depends on S and X goes through the mixture of one component (hybrid_tile.h), whose CGF is
 * a / 2 and whose result is x. By either branch of the guard dg/d(a/2) = t, and beyond the limit
 * dt/d(a/2) = -t / a, so its cotangents are
 *
 *   dcgf = t b - [a > limit] (t / a) w dout.x,    dout = t w dout */
#include "check.h"
#include "hybrid_tile.h"
#include "mixture_call.h"

#include <stddef.h>
#include <string.h>

typedef FN(sattn_hybrid_call) call;
typedef FN(sattn_hybrid_tile) tile;
typedef struct FN(sattn_gemm) gemm;
typedef struct FN(sattn_scaled_rows) scaled_rows;

enum { T = SATTN_TILE };

/* What backward keeps beside a tile, and packed rows of all queries */
typedef struct {
    real *dout, *out, *part; /* tiles [E]; part: of one component */
    real *total, *dlse, *top, *log_total, *wx, *w; /* [48] */
    real *b, *dcgf;          /* [C] rows of 48 */
    real *dx, *dtilt;        /* [C][48] [E], [D]: cotangents of x, gradients of the tilt */
    real *dtilt_rows;        /* [48][D] */
    real *sum;               /* [C][max(D, E)] */
    real *dexact, *dlse_exact, *dtilt_all; /* [rows] [E], 1, [D] */
} gradients;

static gradients gradients_of(const call *k, const tile *t)
{
    const int64_t c = k->given.rest.components, d = k->given.exact.width;
    const int64_t e = k->given.exact.value_width, rows = k->entries * k->rows;
    real *at = t->rest;
    gradients g;
    g.dout = sattn_take(&at, T * e), g.out = sattn_take(&at, T * e);
    g.part = sattn_take(&at, T * e);
    g.total = sattn_take(&at, T), g.dlse = sattn_take(&at, T), g.top = sattn_take(&at, T);
    g.log_total = sattn_take(&at, T), g.wx = sattn_take(&at, T), g.w = sattn_take(&at, T);
    g.b = sattn_take(&at, c * T), g.dcgf = sattn_take(&at, c * T);
    g.dx = sattn_take(&at, k->has_turn ? c * T * e : 0);
    g.dtilt = sattn_take(&at, c * T * d);
    g.dtilt_rows = sattn_take(&at, T * d);
    g.sum = sattn_take(&at, c * (d > e ? d : e));
    g.dexact = k->stats + 2 * rows;
    g.dlse_exact = g.dexact + rows * e;
    g.dtilt_all = g.dlse_exact + rows;
    return g;
}

static int64_t row_of(const call *k, const tile *t)
{
    return t->entry * k->rows + t->first;
}

static sattn_input place_of(const sattn_output *x)
{
    return (sattn_input){x->data, x->batch, x->head, x->row, x->col};
}

/* Rows of the caller's as a tile; t->rows holds them packed. */
static void fetch(const call *k, const tile *t, const sattn_input *from, real *to)
{
    const int64_t e = k->given.exact.value_width;
    for (int64_t q = 0; q < t->lanes; q++)
        for (int64_t i = 0; i < e; i++)
            t->rows[q * e + i] =
                from->data ? FN(sattn_hybrid_row)(k, from, row_of(k, t) + q)[i * from->col] : 0;
    kernels()->pack(t->lanes, e, t->rows, e, to);
}

/* Statistics of the union, w of everything, and dlse - dout . out */
static void weigh(const call *k, const tile *t, const gradients *g)
{
    const sattn_attention *a = &k->given.exact;
    const sattn_input out = place_of(&a->out), stats = place_of(&a->stats);
    for (int64_t q = 0; q < T; q++) {
        const int live = q < t->lanes;
        const real *s = live ? FN(sattn_hybrid_row)(k, &stats, row_of(k, t) + q) : NULL;
        g->top[q] = live ? s[0] : -(real)__builtin_inf();
        g->log_total[q] = live ? s[stats.col] : 0;
        g->dlse[q] =
            live && a->dlse.data ? *FN(sattn_hybrid_row)(k, &a->dlse, row_of(k, t) + q) : 0;
    }
    for (int64_t c = 0; c <= k->given.rest.components; c++)
        kernels()->merge_weights(t->logit + c * T, t->log_sum + c * T, g->top, g->log_total,
                                 t->weight + c * T);
    fetch(k, t, &out, g->out);
    fetch(k, t, &a->dout, g->dout); /* the last: t->rows are dout's */
    kernels()->mixture_offset(a->value_width, g->dout, g->out, NULL, g->dlse, g->total);
}

/* Cotangents of the exact tokens' result */
static void share_exact(const call *k, const tile *t, const gradients *g)
{
    const int64_t c = k->given.rest.components, e = k->given.exact.value_width;
    const int64_t row = row_of(k, t);
    kernels()->pack(t->lanes, e, k->exact + row * e, e, g->part);
    kernels()->mixture_offset(e, g->dout, g->part, NULL, NULL, g->wx);
    kernels()->merge_pull(t->logit + c * T, t->weight + c * T, g->total, g->wx, g->w);
    memcpy(g->dlse_exact + row, g->w, (size_t)t->lanes * sizeof(real));
    kernels()->add_scaled_rows(&(scaled_rows){t->lanes, e, t->weight + c * T, t->rows, e,
                                              g->dexact + row * e, e, 0});
}

/* b and the cotangents of component c; g->b holds dout . v. */
static void share(const call *k, const tile *t, const gradients *g, int64_t c)
{
    const int64_t e = k->given.exact.value_width;
    for (int64_t q = 0; q < T; q++)
        g->wx[q] = 0;
    if (k->has_turn) {
        kernels()->pack(t->lanes, e, t->x + c * T * e, e, g->part);
        kernels()->mixture_offset(e, g->dout, g->part, NULL, NULL, g->wx); /* - dout . x */
    }
    for (int64_t q = 0; q < T; q++) {
        const int64_t i = c * T + q;
        const real w = t->weight[i], turn = t->turn[i], x = -g->wx[q];
        const int live = q < t->lanes && t->logit[i] != -(real)__builtin_inf();
        const real b = live ? w * (g->b[i] + turn * x + g->total[q]) : 0;
        g->w[q] = live ? w * turn : 0;
        g->b[i] = b;
        g->dcgf[i] = !live ? 0 : turn < 1 ? turn * b - turn / t->a[i] * (w * x) : b;
    }
    if (k->has_turn)
        kernels()->add_scaled_rows(
            &(scaled_rows){t->lanes, e, g->w, t->rows, e, g->dx + c * T * e, e, 0});
}

static void add_to(void *gradient, int64_t at, int64_t count, const real *sum)
{
    if (gradient)
        kernels()->add(count, sattn_from(gradient, at), sum);
}

/* What does not depend on S and X: sums over the tile's queries for components c .. c + count - 1,
 * and their share of the gradient of the tilt. */
static void sum_run(const call *k, const tile *t, const gradients *g, int64_t c, int64_t count)
{
    const sattn_mixture *m = &k->given.rest;
    const int64_t d = m->width, e = k->given.exact.value_width, n = t->lanes, entry = t->entry;
    const real *b = g->b + c * T, *w = t->weight + c * T;
    const real *mean = FN(sattn_hybrid_mean)(k, entry, c);
    kernels()->gemm(
        &(gemm){n, d, count, b, 1, T, mean, d, g->dtilt_rows, d, g->dtilt_rows, d, 1});
    for (int64_t i = 0; m->dlog_weight && i < count; i++)
        for (int64_t q = 0; q < n; q++)
            ((real *)m->dlog_weight)[entry * m->log_weight_batch + c + i] += b[i * T + q];
    kernels()->gemm(&(gemm){count, d, n, b, T, 1, k->tilt + row_of(k, t) * d, d, g->sum, d, NULL, 0,
                            0});
    if (!m->value_width) /* the values are the keys */
        kernels()->gemm(&(gemm){count, d, n, w, T, 1, t->rows, d, g->sum, d, g->sum, d, 1});
    add_to(m->dmean, entry * m->mean_batch + c * d, count * d, g->sum);
    if (!m->value_width || !m->dvalue_mean)
        return;
    kernels()->gemm(&(gemm){count, e, n, w, T, 1, t->rows, e, g->sum, e, NULL, 0, 0});
    add_to(m->dvalue_mean, entry * m->value_mean_batch + c * e, count * e, g->sum);
}

/* What goes through the mixtures of one component */
static int32_t pull_singles(const call *k, const tile *t, const gradients *g)
{
    const sattn_mixture *m = &k->given.rest;
    const int64_t d = m->width, e = k->given.exact.value_width, b = t->entry;
    real *dcovariance = m->dcovariance, *dcross = m->dcross;
    sattn_mixture p = FN(sattn_hybrid_single)(k, t);
    if (!m->covariance && !k->has_turn)
        return SATTN_OK;
    p.flags = SATTN_ACCUMULATE;
    p.threads = k->given.exact.threads;
    p.out = k->has_turn ? t->x : g->dtilt; /* with no S u and no X u: 0 */
    if (!k->has_turn)
        memset(g->dtilt, 0, (size_t)(m->components * T * d) * sizeof(real));
    p.dout = k->has_turn ? g->dx : NULL, p.dout_row = e, p.dout_batch = T * e;
    p.dcgf = g->dcgf, p.dcgf_batch = T;
    p.dcovariance = dcovariance ? dcovariance + b * m->covariance_batch : NULL;
    p.dcross = dcross ? dcross + b * m->cross_batch : NULL;
    p.dtilt = g->dtilt, p.dtilt_row = d, p.dtilt_batch = T * d;
    memset(g->dtilt, 0, (size_t)(m->components * T * d) * sizeof(real));
    const int32_t status = FN(sattn_mixture_backward)(&p);
    for (int64_t c = 0; status == SATTN_OK && c < m->components; c++)
        if (t->one[c] == 0)
            kernels()->add(t->lanes * d, g->dtilt_rows, g->dtilt + c * T * d);
    return status;
}

static int32_t backward_tile(const call *k, const tile *t)
{
    const sattn_mixture *m = &k->given.rest;
    const int64_t d = m->width, e = k->given.exact.value_width;
    const gradients g = gradients_of(k, t);
    int64_t count;
    int32_t status = FN(sattn_hybrid_pairs)(k, t);
    if (status != SATTN_OK)
        return status;
    weigh(k, t, &g);
    share_exact(k, t, &g);
    memset(g.b, 0, (size_t)(m->components * T) * sizeof(real));
    memset(g.dcgf, 0, (size_t)(m->components * T) * sizeof(real));
    memset(g.dtilt_rows, 0, (size_t)(T * d) * sizeof(real));
    for (int64_t c = 0; (count = FN(sattn_hybrid_run)(k, t->entry, &c)) > 0; c += count) {
        kernels()->gemm(&(gemm){count, T, e, FN(sattn_hybrid_value)(k, t->entry, c), e, 1, g.dout,
                                T, g.b + c * T, T, NULL, 0, 0});
        for (int64_t i = c; i < c + count; i++)
            share(k, t, &g, i);
        sum_run(k, t, &g, c, count);
    }
    status = pull_singles(k, t, &g);
    memcpy(g.dtilt_all + row_of(k, t) * d, g.dtilt_rows, (size_t)(t->lanes * d) * sizeof(real));
    return status;
}

static int32_t pull_exact(const call *k, const gradients *g)
{
    sattn_attention a = k->given.exact;
    const int64_t h = a.heads, m = a.queries, e = a.value_width;
    a.size = sizeof a;
    a.out = (sattn_output){k->exact, h * m * e, m * e, e, 1};
    a.stats = (sattn_output){k->stats, h * m * 2, m * 2, 2, 1};
    a.dout = (sattn_input){g->dexact, h * m * e, m * e, e, 1};
    a.dlse = (sattn_input){g->dlse_exact, h * m, m, 1, 0};
    a.work = k->attention_work, a.work_bytes = k->attention_bytes;
    return FN(sattn_attention_backward)(&a);
}

/* dq and dscale take what came through the tilt. */
static void pull_tilt(const call *k, const gradients *g)
{
    const sattn_attention *a = &k->given.exact;
    const sattn_input dq = place_of(&a->dq);
    const int64_t d = a->width;
    double dscale = 0;
    for (int64_t row = 0; row < k->entries * k->rows; row++) {
        const real *du = g->dtilt_all + row * d, *q = FN(sattn_hybrid_row)(k, &a->q, row);
        real *to = dq.data ? FN(sattn_hybrid_row)(k, &dq, row) : NULL;
        for (int64_t i = 0; to && i < d; i++)
            to[i * dq.col] += (real)a->scale * du[i];
        for (int64_t i = 0; a->dscale && i < d; i++)
            dscale += (double)q[i * a->q.col] * (double)du[i];
    }
    if (a->dscale)
        *(real *)a->dscale += (real)dscale;
}

int32_t FN(sattn_hybrid_backward)(const sattn_hybrid *given)
{
    call k;
    int32_t status = FN(sattn_hybrid_begin)(&k, given, 1);
    if (status != SATTN_OK)
        return sattn_answer(status);
    FN(sattn_mixture_reset)(&k.given.rest);
    const tile any = FN(sattn_hybrid_tile_of)(&k, 0, 0);
    const gradients g = gradients_of(&k, &any);
    for (int64_t task = 0; task < k.entries * k.tiles && status == SATTN_OK; task++) {
        const tile t = FN(sattn_hybrid_tile_of)(&k, task, 0);
        status = backward_tile(&k, &t);
    }
    if (status == SATTN_OK)
        status = pull_exact(&k, &g);
    if (status == SATTN_OK)
        pull_tilt(&k, &g);
    sattn_free(k.memory);
    return status;
}
