/* SPDX-License-Identifier: BSD-2-Clause */
#include "hybrid_tile.h"
#include "check.h"
#include "mixture.h"
#include "par.h"

#include <math.h>
#include <stddef.h>

typedef FN(sattn_hybrid_call) call;
typedef FN(sattn_hybrid_tile) tile;
typedef struct FN(sattn_gemm) gemm;

enum { T = SATTN_TILE };

static const real *log_weights(const call *k, int64_t entry)
{
    return sattn_from(k->given.rest.log_weight, entry * k->given.rest.log_weight_batch);
}

int64_t FN(sattn_hybrid_run)(const call *k, int64_t entry, int64_t *first)
{
    const real *l = log_weights(k, entry), none = -(real)__builtin_inf();
    const int64_t c = k->given.rest.components;
    int64_t next;
    while (*first < c && l[*first] == none)
        ++*first;
    for (next = *first; next < c && l[next] != none; next++)
        ;
    return next - *first;
}

const real *FN(sattn_hybrid_mean)(const call *k, int64_t entry, int64_t c)
{
    const sattn_mixture *m = &k->given.rest;
    return sattn_from(m->mean, entry * m->mean_batch + c * m->width);
}

const real *FN(sattn_hybrid_value)(const call *k, int64_t entry, int64_t c)
{
    const sattn_mixture *m = &k->given.rest;
    return m->value_width
               ? sattn_from(m->value_mean, entry * m->value_mean_batch + c * m->value_width)
               : FN(sattn_hybrid_mean)(k, entry, c);
}

real *FN(sattn_hybrid_row)(const call *k, const sattn_input *array, int64_t row)
{
    const sattn_attention *a = &k->given.exact;
    const int64_t h = row / a->queries;
    /* an output's address passes through here too: the caller knows which it is */
    return (real *)(uintptr_t)array->data + h / a->heads * array->batch +
           h % a->heads * array->head + row % a->queries * array->row;
}

tile FN(sattn_hybrid_tile_of)(const call *k, int64_t task, int32_t thread)
{
    const int64_t c = k->given.rest.components, d = k->given.exact.width;
    const int64_t e = k->given.exact.value_width;
    tile t = {.entry = task / k->tiles, .first = task % k->tiles * T};
    real *at = k->scratch + thread * k->each;
    t.lanes = k->rows - t.first < T ? k->rows - t.first : T;
    t.tilt = sattn_take(&at, T * d);
    t.x = sattn_take(&at, k->has_turn ? c * T * e : 0);
    t.x_stats = sattn_take(&at, c * T * 2);
    t.a = sattn_take(&at, c * T);
    t.turn = sattn_take(&at, c * T);
    t.logit = sattn_take(&at, (c + 1) * T);
    t.log_sum = sattn_take(&at, (c + 1) * T);
    t.weight = sattn_take(&at, (c + 1) * T);
    t.one = sattn_take(&at, c);
    t.zero = sattn_take(&at, d > e ? d : e);
    t.rows = sattn_take(&at, T * e);
    t.rest = at;
    t.work = (char *)k->work + thread * k->work_bytes;
    return t;
}

sattn_mixture FN(sattn_hybrid_single)(const call *k, const tile *t)
{
    const sattn_mixture *m = &k->given.rest;
    const int64_t d = m->width, e = k->given.exact.value_width, s = sattn_covariance_width(m);
    const int64_t b = t->entry, one = m->value_width && m->cross;
    const real *covariance = m->covariance, *cross = m->cross;
    sattn_mixture p = {.size = sizeof p,
                       .batch = m->components,
                       .queries = t->lanes,
                       .components = 1,
                       .width = d,
                       .value_width = m->value_width,
                       .covariance_kind = m->covariance_kind,
                       .rank = m->rank,
                       .threads = 1,
                       .work = t->work,
                       .work_bytes = k->work_bytes};
    p.tilt = k->tilt + (b * k->rows + t->first) * d, p.tilt_row = d;
    p.log_weight = t->one, p.log_weight_batch = 1;
    p.mean = p.value_mean = t->zero;
    p.covariance = covariance ? covariance + b * m->covariance_batch : NULL;
    p.covariance_batch = sattn_is_shared(m) ? 0 : s;
    p.cross = one ? cross + b * m->cross_batch : NULL, p.cross_batch = e * d;
    p.out = k->has_turn ? t->x : NULL, p.out_row = e, p.out_batch = T * e;
    p.stats = t->x_stats, p.stats_batch = 2 * T;
    p.cgf = t->a, p.cgf_batch = T;
    return p;
}

static real limit_of(const call *k, int64_t entry, int64_t c)
{
    const sattn_hybrid *p = &k->given.p;
    const real guard = p->guard == 0 ? 2 : (real)p->guard, l = log_weights(k, entry)[c];
    if (p->limit)
        return ((const real *)p->limit)[entry * p->limit_batch + c];
    return guard < 0 ? (real)__builtin_inf() : l > 0 ? guard * l : 0;
}

/* What the guard makes of component c: `a` holds a / 2, becomes a. */
static void guard(const call *k, const tile *t, int64_t c)
{
    const real limit = limit_of(k, t->entry, c);
    for (int64_t q = 0; q < T; q++) {
        const int64_t i = c * T + q;
        const real half = q < t->lanes ? t->a[i] : 0, a = 2 * half;
        const int beyond = a > limit;
        t->a[i] = a;
        t->turn[i] = beyond ? (real)sqrt((double)(limit / a)) : 1;
        t->logit[i] += beyond ? t->turn[i] * a - limit / 2 : half;
    }
}

/* The exact tokens, and what lies beyond the tile's last query */
static void close_tile(const call *k, const tile *t)
{
    const int64_t c = k->given.rest.components;
    const real *stats = k->stats + (t->entry * k->rows + t->first) * 2;
    for (int64_t i = 0; i < c * T; i++)
        t->log_sum[i] = 0;
    for (int64_t q = 0; q < T; q++) {
        t->logit[c * T + q] = q < t->lanes ? stats[2 * q] : 0;
        t->log_sum[c * T + q] = q < t->lanes ? stats[2 * q + 1] : 0;
    }
    for (int64_t i = 0; i < (c + 1) * T; i++)
        if (i % T >= t->lanes)
            t->logit[i] = -(real)__builtin_inf();
}

int32_t FN(sattn_hybrid_pairs)(const call *k, const tile *t)
{
    const sattn_mixture *m = &k->given.rest;
    const int64_t d = m->width, e = k->given.exact.value_width, b = t->entry;
    const real *l = log_weights(k, b), none = -(real)__builtin_inf();
    int64_t count;
    for (int64_t c = 0; c < m->components; c++) {
        t->one[c] = l[c] == none ? none : 0;
        for (int64_t q = 0; q < T; q++)
            t->logit[c * T + q] = none, t->turn[c * T + q] = t->a[c * T + q] = 0;
    }
    for (int64_t i = 0; i < (d > e ? d : e); i++)
        t->zero[i] = 0;
    kernels()->pack(t->lanes, d, k->tilt + (b * k->rows + t->first) * d, d, t->tilt);
    const sattn_mixture single = FN(sattn_hybrid_single)(k, t);
    const int32_t status =
        m->covariance || k->has_turn ? FN(sattn_mixture_forward)(&single) : SATTN_OK;
    for (int64_t c = 0; (count = FN(sattn_hybrid_run)(k, b, &c)) > 0; c += count) {
        kernels()->gemm(&(gemm){count, T, d, FN(sattn_hybrid_mean)(k, b, c), d, 1, t->tilt, T,
                                t->logit + c * T, T, l + c, 1, 0});
        for (int64_t i = c; i < c + count; i++)
            guard(k, t, i);
    }
    close_tile(k, t);
    return status;
}

/* Log weights and limits: not +inf (limits may be), not NaN */
static int32_t check_values(const call *k)
{
    const sattn_hybrid *p = &k->given.p;
    const sattn_mixture *m = &k->given.rest;
    for (int64_t b = 0; b < m->batch; b++)
        for (int64_t c = 0; c < m->components; c++)
            if (!(log_weights(k, b)[c] < (real)__builtin_inf()) ||
                (p->limit && !(((const real *)p->limit)[b * p->limit_batch + c] >= 0)))
                return SATTN_EVALUE;
    return SATTN_OK;
}

/* Elements of a thread's tile */
static int64_t tile_elements(const call *k, int back)
{
    const int64_t c = k->given.rest.components, d = k->given.exact.width;
    const int64_t e = k->given.exact.value_width, x = k->has_turn ? c * T * e : 0;
    const int64_t forward = T * d + x + 2 * c * T + 5 * (c + 1) * T + c + d + e + T * e;
    const int64_t backward = x + c * T * (d + 2) + 3 * T * e + T * (d + 6) + c * (d + e) + T;
    return (forward + (back ? backward : 0) + 15) / 16 * 16;
}

static int32_t find_memory(call *k, int back)
{
    const sattn_attention *a = &k->given.exact;
    const int64_t rows = k->entries * k->rows, d = a->width, e = a->value_width;
    tile t = {.lanes = k->rows < T ? k->rows : T};
    sattn_mixture single = FN(sattn_hybrid_single)(k, &t);
    int32_t status;
    k->threads = back ? 1 : k->threads;
    single.threads = back ? a->threads : 1;
    status = FN(sattn_mixture_workspace)(&single, &k->work_bytes);
    if (status == SATTN_OK)
        status = FN(sattn_attention_workspace)(a, &k->attention_bytes);
    if (status != SATTN_OK)
        return status;
    k->each = tile_elements(k, back);
    k->work_bytes = (k->work_bytes + 63) / 64 * 64;
    k->attention_bytes = (k->attention_bytes + 63) / 64 * 64;
    int64_t bytes = k->each * (int64_t)sizeof(real);
    const int64_t packed =
        (rows * (d + e + 2 + (back ? d + e + 1 : 0)) + 15) / 16 * 16 * (int64_t)sizeof(real);
    if (!sattn_grow(&bytes, k->threads) || !sattn_fits(k->work_bytes, k->threads, 4, 1))
        return SATTN_ESIZE;
    char *at = k->memory =
        sattn_alloc(k->attention_bytes + k->threads * k->work_bytes + bytes + packed);
    if (!at)
        return SATTN_ENOMEM;
    k->attention_work = at, at += k->attention_bytes;
    k->work = at, at += k->threads * k->work_bytes;
    k->scratch = (real *)(void *)at, at += bytes;
    k->tilt = (real *)(void *)at;
    k->exact = k->tilt + rows * d;
    k->stats = k->exact + rows * e;
    return SATTN_OK;
}

/* Attention to the exact tokens, packed, and the tilts */
static int32_t attend(call *k)
{
    sattn_attention a = k->given.exact;
    const int64_t h = a.heads, m = a.queries, d = a.width, e = a.value_width;
    for (int64_t row = 0; row < k->entries * k->rows; row++) {
        const real *q = FN(sattn_hybrid_row)(k, &a.q, row);
        for (int64_t i = 0; i < d; i++)
            k->tilt[row * d + i] = (real)a.scale * q[i * a.q.col];
    }
    a.size = sizeof a;
    a.out = (sattn_output){k->exact, h * m * e, m * e, e, 1};
    a.stats = (sattn_output){k->stats, h * m * 2, m * 2, 2, 1};
    a.lse.data = NULL;
    a.work = k->attention_work, a.work_bytes = k->attention_bytes;
    return FN(sattn_attention_forward)(&a);
}

int32_t FN(sattn_hybrid_begin)(call *k, const sattn_hybrid *given, int back)
{
    *k = (call){.memory = NULL};
    int32_t status = sattn_hybrid_check(&k->given, given, back, sizeof(real));
    if (status != SATTN_OK)
        return status;
    const sattn_attention *a = &k->given.exact;
    const sattn_mixture *m = &k->given.rest;
    k->entries = m->batch;
    k->rows = a->key_heads > 0 ? a->heads / a->key_heads * a->queries : 0;
    k->tiles = (k->rows + T - 1) / T;
    k->has_turn = m->value_width ? m->cross != NULL : m->covariance != NULL;
    const double work = (double)k->entries * (double)k->rows * (double)m->components * 4 *
                        (double)(a->width + a->value_width);
    k->threads = work < 1 << 18 ? 1 : sattn_par_threads(a->threads);
    status = check_values(k);
    if (status == SATTN_OK)
        status = find_memory(k, back);
    if (status == SATTN_OK)
        status = attend(k);
    if (status != SATTN_OK)
        sattn_free(k->memory);
    return status;
}
