/* SPDX-License-Identifier: BSD-2-Clause */
/* Second derivatives along a direction p, a tile of queries at a time. With keys e_c = m_c + S_c u,
 * values v_c, Y_c = S_c or X_c (the value's derivative), w_c and b_c of backward:
 *
 *   a_c = e_c.p,  alpha_c = a_c - sum w a                            (w_c' = w_c alpha_c)
 *   jvp = sum w_c alpha_c v_c + w_c Y_c p
 *   b_c' = alpha_c b_c + w_c (dout.Y_c p - dout.jvp)
 *   hvp = sum b_c' e_c + S_c (b_c p) + w_c alpha_c Y_c' dout
 *
 * The b_c' and the w_c alpha_c sum to 0, so what is common to all keys (the centre of the means,
 * S u of a shared covariance) drops out; the shared S adds S p to jvp (joint: -), dcgf S p to
 * hvp. */
#include "check.h"
#include "mixture_call.h"
#include "par.h"

#include <stddef.h>

typedef FN(sattn_call) call;
typedef struct FN(sattn_components) components;
typedef struct FN(sattn_gemm) gemm;

enum { T = SATTN_TILE };

typedef struct {
    call k;
    const real *direction;
    real *jvp, *hvp, *memory;
    int64_t each; /* elements of memory a thread */
} second;

/* A thread's tiles: of backward, then those of here */
typedef struct {
    int64_t b, at, lanes;
    real *tilt, *half, *product, *dtilt, *dout, *out, *rows, *rest;
    real *p, *key, *turn, *z, *hvp, *value, *value_turn, *jvp;
    real *w, *slope, *a; /* planes [C] of w, b and alpha */
    real *turned;        /* [rank] F'x */
} tile;

static tile tile_of(const second *s, int64_t task, int32_t thread)
{
    const sattn_mixture *p = s->k.p;
    const int64_t d = p->width * T, e = sattn_value_width(p) * T, c = p->components * T;
    tile t = {.b = task / s->k.plan->tiles, .at = task % s->k.plan->tiles * T};
    t.lanes = p->queries - t.at < T ? p->queries - t.at : T;
    t.tilt = s->k.work + s->k.plan->scratch + thread * s->k.plan->scratch_size;
    t.half = t.tilt + d, t.product = t.half + d, t.dtilt = t.product + d, t.dout = t.dtilt + d;
    t.out = t.dout + e, t.rows = t.out + e, t.rest = t.rows + 4 * T;
    t.p = s->memory + thread * s->each;
    t.key = t.p + d, t.turn = t.key + d, t.z = t.turn + d, t.hvp = t.z + d, t.value = t.hvp + d;
    t.value_turn = t.value + e, t.jvp = t.value_turn + e;
    t.w = t.jvp + e, t.slope = t.w + c, t.a = t.slope + c, t.turned = t.a + c;
    return t;
}

/* w and b of every live component */
static void pull(const second *s, const tile *t)
{
    const call *k = &s->k;
    const sattn_mixture *p = k->p;
    const int64_t d = p->width, e = sattn_value_width(p),
                  row = t->b * p->tilt_batch + t->at * p->tilt_row;
    const real *dout = p->dout;
    components run;
    int64_t first, count;
    kernels()->pack(t->lanes, d, sattn_from(p->tilt, row), p->tilt_row, t->tilt);
    kernels()->pack(t->lanes, d, s->direction + row, p->tilt_row, t->p);
    kernels()->pack(dout ? t->lanes : 0, e,
                    dout ? dout + t->b * p->dout_batch + t->at * p->dout_row : NULL, p->dout_row,
                    t->dout);
    FN(sattn_tile_statistics)(k, t->b, t->at, t->lanes, t->dout, t->out, t->rows);
    kernels()->squares(d * T, t->tilt, p->value_width ? NULL : t->dout, t->half, t->product);
    for (int64_t i = 0; i < d * T; i++)
        t->dtilt[i] = 0;
    FN(sattn_shared_pull)
    (k, t->b, t->tilt, t->dout, t->rows + 3 * T, t->rows + 2 * T, t->dtilt, t->rest);
    for (int64_t c = 0; c < p->components; c = first + count) {
        const int64_t window = (c / SATTN_WINDOW + 1) * SATTN_WINDOW;
        const int64_t end = window < p->components ? window : p->components;
        count = FN(sattn_call_run)(k, t->b, c, end, &first, &run);
        if (count > 0)
            kernels()->mixture_pull(&(struct FN(sattn_pull)){
                &run, t->lanes, t->tilt, t->half, t->dout, t->product, t->rows, t->rows + T,
                t->rows + 2 * T, t->w + first * T, t->slope + first * T, T, t->dtilt, t->rest});
    }
}

/* y = start + M x; start NULL = 0, a value a row */
static void times(int64_t rows, int64_t cols, const real *matrix, const real *x, const real *start,
                  real *y)
{
    kernels()->gemm(&(gemm){rows, T, matrix ? cols : 0, matrix, cols, 1, x, T, y, T, start, 1, 0});
}

/* y = start + S_c x; turned: [rank] */
static void turn(const components *c, const real *x, const real *start, real *turned, real *y)
{
    const int64_t d = c->width;
    if (c->kind != SATTN_COVARIANCE_DIAG) {
        times(d, d, c->kind == SATTN_COVARIANCE_FULL ? c->covariance : NULL, x, start, y);
        return;
    }
    for (int64_t i = 0; i < d * T; i++)
        y[i] = c->covariance[i / T] * x[i] + (start ? start[i / T] : 0);
    times(c->rank, d, c->factor, x, NULL, turned);
    kernels()->gemm(&(gemm){d, T, c->rank, c->factor, 1, d, turned, T, y, T, y, T, 1});
}

static void dot(int64_t width, const real *x, const real *y, real *sum)
{
    for (int64_t q = 0; q < T; q++)
        sum[q] = 0;
    for (int64_t i = 0; i < width * T; i++)
        sum[i % T] += x[i] * y[i];
}

/* The value of component c, and its derivative along p */
static void values(const components *c, const tile *t)
{
    if (c->joint) {
        times(c->value_width, c->width, c->cross, t->tilt, c->value_mean, t->value);
        times(c->value_width, c->width, c->cross, t->p, NULL, t->value_turn);
    } else {
        turn(c, t->tilt, c->mean, t->turned, t->value);
        turn(c, t->p, NULL, t->turned, t->value_turn);
    }
}

static void add_jvp(const components *c, const tile *t, const real *w, const real *alpha)
{
    values(c, t);
    for (int64_t i = 0; i < c->value_width * T; i++)
        t->jvp[i] += w[i % T] * (alpha[i % T] * t->value[i] + t->value_turn[i]);
}

static void add_hvp(const components *c, const tile *t, const real *w, const real *alpha,
                    const real *slope, const real *dout_jvp)
{
    const int64_t d = c->width, e = c->value_width;
    real rise[T];
    values(c, t);
    turn(c, t->tilt, c->mean, t->turned, t->key);
    dot(e, t->dout, t->value_turn, rise);
    for (int64_t q = 0; q < T; q++)
        rise[q] = alpha[q] * slope[q] + w[q] * (rise[q] - dout_jvp[q]);
    for (int64_t i = 0; i < d * T; i++)
        t->z[i] = slope[i % T] * t->p[i] + (c->joint ? 0 : w[i % T] * alpha[i % T] * t->dout[i]);
    turn(c, t->z, NULL, t->turned, t->turn);
    for (int64_t i = 0; i < d * T; i++)
        t->hvp[i] += rise[i % T] * t->key[i] + t->turn[i];
    if (!c->joint || !c->cross)
        return;
    for (int64_t i = 0; i < e * T; i++)
        t->value[i] = w[i % T] * alpha[i % T] * t->dout[i];
    kernels()->gemm(&(gemm){d, T, e, c->cross, 1, d, t->value, T, t->hvp, T, t->hvp, T, 1});
}

static int is_live(const second *s, const tile *t, int64_t c, components *one)
{
    int64_t first;
    return FN(sattn_call_run)(&s->k, t->b, c, c + 1, &first, one) > 0;
}

static void differentiate(const second *s, const tile *t)
{
    const int64_t d = s->k.p->width, e = sattn_value_width(s->k.p), all = s->k.p->components;
    real mean[T] = {0}, dout_jvp[T];
    components one;
    for (int64_t c = 0; c < all; c++) {
        if (!is_live(s, t, c, &one))
            continue;
        turn(&one, t->tilt, one.mean, t->turned, t->key);
        dot(d, t->key, t->p, t->a + c * T);
        for (int64_t q = 0; q < T; q++)
            mean[q] += t->w[c * T + q] * t->a[c * T + q];
    }
    for (int64_t i = 0; i < e * T; i++)
        t->jvp[i] = 0;
    for (int64_t i = 0; i < d * T; i++)
        t->hvp[i] = 0;
    for (int64_t c = 0; c < all; c++) {
        if (!is_live(s, t, c, &one))
            continue;
        for (int64_t q = 0; q < T; q++)
            t->a[c * T + q] -= mean[q];
        add_jvp(&one, t, t->w + c * T, t->a + c * T);
    }
    dot(e, t->dout, t->jvp, dout_jvp);
    for (int64_t c = 0; s->hvp && c < all; c++)
        if (is_live(s, t, c, &one))
            add_hvp(&one, t, t->w + c * T, t->a + c * T, t->slope + c * T, dout_jvp);
    if (!FN(sattn_shared_apply)(&s->k, t->b, t->p, t->turn, 0))
        return;
    for (int64_t i = 0; i < d * T; i++) {
        t->hvp[i] += t->rows[3 * T + i % T] * t->turn[i];
        if (!s->k.p->value_width)
            t->jvp[i] += t->turn[i];
    }
}

static void one_tile(void *context, int64_t task, int32_t thread)
{
    const second *s = context;
    const sattn_mixture *p = s->k.p;
    const tile t = tile_of(s, task, thread);
    for (int64_t i = 0; i < 2 * p->components * T; i++)
        t.w[i] = 0; /* idle lanes too */
    pull(s, &t);
    differentiate(s, &t);
    if (s->jvp)
        kernels()->unpack(t.lanes, sattn_value_width(p), t.jvp,
                          s->jvp + t.b * p->out_batch + t.at * p->out_row, p->out_row, 0);
    if (s->hvp)
        kernels()->unpack(t.lanes, p->width, t.hvp,
                          s->hvp + t.b * p->dtilt_batch + t.at * p->dtilt_row, p->dtilt_row, 0);
}

/* The descriptor as for backward, its gradients left out; then hvp in the place of dtilt, jvp in
 * the place of forward's out, and what those checks do not compare. */
static int32_t check_all(sattn_mixture *p, const sattn_mixture *given, const second *s)
{
    sattn_mixture q;
    int32_t status = sattn_answer(sattn_mixture_check(p, given, SATTN_BACKWARD, sizeof(real)));
    if (status != SATTN_OK)
        return status;
    p->size = sizeof *p;
    p->work = NULL;
    p->dtilt = s->hvp;
    p->dlog_weight = p->dmean = p->dcovariance = p->dvalue_mean = p->dcross = NULL;
    status = sattn_answer(sattn_mixture_check(&q, p, SATTN_BACKWARD, sizeof(real)));
    sattn_mixture forward = *p;
    forward.out = s->jvp;
    forward.stats = forward.cgf = forward.weight = NULL;
    if (status == SATTN_OK)
        status = sattn_answer(sattn_mixture_check(&q, &forward, SATTN_FORWARD, sizeof(real)));
    const int64_t b = p->batch, m = p->queries, e = sattn_value_width(p);
    const sattn_view direction = {s->direction, {b, m, p->width}, {p->tilt_batch, p->tilt_row, 1}};
    const sattn_view jvp = {s->jvp, {b, m, e}, {p->out_batch, p->out_row, 1}};
    const sattn_view hvp = {s->hvp, {b, m, p->width}, {p->dtilt_batch, p->dtilt_row, 1}};
    const sattn_view others[] = {direction,
                                 hvp,
                                 {p->out, {b, m, e}, {p->out_batch, p->out_row, 1}},
                                 {p->stats, {b, m, 2}, {p->stats_batch, 2, 1}},
                                 {p->dout, {b, m, e}, {p->dout_batch, p->dout_row, 1}},
                                 {p->dcgf, {b, 1, m}, {p->dcgf_batch, 0, 1}}};
    if (status == SATTN_OK)
        status = sattn_check_input(&direction);
    if (status == SATTN_OK && sattn_overlap(&hvp, &direction, sizeof(real)))
        status = SATTN_EALIAS;
    for (int i = 0; i < 6 && status == SATTN_OK; i++)
        if (sattn_overlap(&jvp, &others[i], sizeof(real)))
            status = SATTN_EALIAS;
    return status;
}

int32_t FN(sattn_mixture_second)(const sattn_mixture *given, const real *direction, real *jvp,
                                 real *hvp)
{
    sattn_mixture p;
    sattn_mixture_plan plan;
    second s = {.direction = direction, .jvp = jvp, .hvp = hvp};
    int32_t status = check_all(&p, given, &s);
    if (status == SATTN_OK)
        status = sattn_mixture_plan_make(&plan, &p, SATTN_BACKWARD, sizeof(real));
    if (status == SATTN_OK)
        status = FN(sattn_call_begin)(&s.k, &p, &plan);
    if (status != SATTN_OK)
        return status;
    s.each = T * (3 * p.components + 5 * p.width + 3 * sattn_value_width(&p) + plan.rank);
    int64_t bytes = s.each;
    s.memory = sattn_grow(&bytes, plan.threads) ? sattn_alloc(bytes * (int64_t)sizeof(real)) : NULL;
    if (s.memory)
        sattn_par_for(p.batch * plan.tiles, plan.threads, one_tile, &s);
    sattn_free(s.k.owned);
    sattn_free(s.memory);
    return s.memory ? SATTN_OK : SATTN_ENOMEM;
}
