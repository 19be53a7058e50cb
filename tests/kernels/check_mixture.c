/* SPDX-License-Identifier: BSD-2-Clause */
/* The kernels of a tile in their order: fold (and merge), finish, weights; offset, pull. Every
 * argument ends at a guard page, scratch has exactly the documented size. Results are compared with
 * the oracle and, bit by bit, with those of the scalar row. */
#include "../oracle/mixture.h"
#include "rows.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* LOW: diagonal with a factor */
enum { TILE = SATTN_TILE, ZERO = 0, DIAG = 1, FULL = 2, LOW = 3, KINDS };

/* Inputs, then what the kernels make of them */
typedef struct {
    struct FN(sattn_components) c;
    int64_t lanes, split; /* components from number `split` on are folded apart and merged */
    real *tilt, *half, *dout, *product, *dcgf, *centre;
    real *logit, *state, *part, *out, *stats, *cgf, *weight, *offset, *w, *b, *dtilt;
    real *by_tilt, *by_dout; /* of the factor */
} tile;

static real *space(int64_t n)
{
    return guarded((size_t)n * sizeof(real), ENDS, 0);
}

static real *numbers(rng *r, int64_t n, double low, double high)
{
    real *x = space(n);
    random_fill(r, x, n, low, high);
    return x;
}

static real *covariances(rng *r, int64_t count, int64_t d, int32_t kind)
{
    if (kind != FULL)
        return kind == DIAG || kind == LOW ? numbers(r, count * d, 0, 1) : NULL;
    real *s = numbers(r, count * d * d, -1, 1);
    for (int64_t k = 0; k < count; k++)
        for (int64_t i = 0; i < d; i++)
            for (int64_t j = 0; j < i; j++)
                s[(k * d + i) * d + j] = s[(k * d + j) * d + i];
    return s;
}

/* Means about their average, as the caller of the kernels makes them */
static real *centred_means(rng *r, int64_t count, int64_t d, const real *log_weight)
{
    real *mean = numbers(r, count * d, -1, 1);
    for (int64_t i = 0; i < d; i++) {
        double sum = 0, weights = 0;
        for (int64_t c = 0; c < count; c++) {
            sum += exp(log_weight[c]) * mean[c * d + i];
            weights += exp(log_weight[c]);
        }
        for (int64_t c = 0; c < count; c++)
            mean[c * d + i] -= (real)(sum / weights);
    }
    return mean;
}

/* cross: 0 = values are keys, 1 = joint blocks without X, 2 = with */
static tile make_tile(uint64_t seed, int64_t count, int64_t d, int64_t e, int32_t kind, int cross)
{
    rng r = seed_of(seed);
    tile t = {.lanes = 1 + random_below(&r, TILE), .split = random_below(&r, count + 1)};
    e = cross ? e : d;
    const real *log_weight = numbers(&r, count, -1, 1);
    at("seed %d C %d D %d E %d kind %d cross %d lanes %d split %d", (int)seed, (int)count, (int)d,
       (int)e, (int)kind, cross, (int)t.lanes, (int)t.split);
    t.c = (struct FN(sattn_components)){
        .count = count,
        .width = d,
        .value_width = e,
        .kind = kind == LOW ? DIAG : kind,
        .joint = cross > 0,
        .log_weight = log_weight,
        .mean = centred_means(&r, count, d, log_weight),
        .covariance = covariances(&r, count, d, kind),
        .value_mean = cross ? numbers(&r, count * e, -1, 1) : NULL,
        .cross = cross == 2 ? numbers(&r, count * e * d, -1, 1) : NULL,
        .rank = kind == LOW ? (d > 100 ? d : 1 + random_below(&r, d)) : 0,
    };
    t.c.factor = t.c.rank ? numbers(&r, count * t.c.rank * d, -0.5, 0.5) : NULL;
    t.by_tilt = space(count * t.c.rank * TILE), t.by_dout = space(count * t.c.rank * TILE);
    t.tilt = numbers(&r, d * TILE, -1, 1), t.dout = numbers(&r, e * TILE, -1, 1);
    t.dcgf = numbers(&r, TILE, -1, 1), t.centre = numbers(&r, d, 0, 0);
    t.half = space(d * TILE), t.product = space(d * TILE), t.logit = space(count * TILE);
    t.state = space((e + 2) * TILE), t.part = space((e + 2) * TILE);
    t.out = space(t.lanes * e), t.stats = space(2 * t.lanes), t.cgf = space(t.lanes);
    t.weight = space(count * TILE), t.offset = space(TILE);
    t.w = space(count * TILE), t.b = space(count * TILE), t.dtilt = numbers(&r, d * TILE, 0, 0);
    return t;
}

static int64_t keys(const tile *t)
{
    const int64_t rows = t->c.width + t->c.value_width;
    return rows > 2 * SATTN_BATCH_ROWS ? rows : 2 * SATTN_BATCH_ROWS;
}

static void fold(const struct FN(sattn_kernels) * k, const tile *t, int64_t first, int64_t end,
                 real *state)
{
    const int64_t d = t->c.width, e = t->c.value_width, s = t->c.kind == FULL ? d * d : d;
    struct FN(sattn_components) c = t->c;
    for (int64_t i = 0; i < (e + 2) * TILE; i++)
        state[i] = i / TILE == e ? -(real)INFINITY : 0;
    c.count = end - first;
    c.log_weight += first, c.mean += first * d;
    c.covariance = c.covariance ? c.covariance + first * s : NULL;
    c.value_mean = c.value_mean ? c.value_mean + first * e : NULL;
    c.cross = c.cross ? c.cross + first * e * d : NULL;
    c.factor = c.rank ? c.factor + first * c.rank * d : NULL;
    if (c.count > 0)
        k->mixture_fold(&(struct FN(sattn_fold)){&c, t->lanes, t->tilt, t->half,
                                                 t->logit + first * TILE, state,
                                                 space((SATTN_WINDOW + 1 + keys(t)) * TILE)});
}

static void run(int32_t isa, tile *t)
{
    const struct FN(sattn_kernels) *k = kernels_of(isa);
    const int64_t d = t->c.width, e = t->c.value_width;
    k->squares(d * TILE, t->tilt, t->c.joint ? NULL : t->dout, t->half, t->product);
    fold(k, t, 0, t->split, t->state);
    fold(k, t, t->split, t->c.count, t->part);
    k->mixture_merge(e, t->state, t->part);
    k->mixture_finish(&(struct FN(sattn_finish)){t->lanes, d, e, t->state, t->tilt, t->centre,
                                                 t->c.joint, space((e + 2) * TILE), t->out, e,
                                                 t->stats, t->cgf});
    real *largest = space(TILE), *log_sum = space(TILE), *out = space(e * TILE);
    k->pack(t->lanes, e, t->out, e, out);
    for (int64_t q = 0; q < TILE; q++) {
        largest[q] = q < t->lanes ? t->stats[2 * q] : 0;
        log_sum[q] = q < t->lanes ? t->stats[2 * q + 1] : 0;
        for (int64_t c = 0; c < t->c.count; c++)
            t->weight[q * t->c.count + c] = q < t->lanes ? t->logit[c * TILE + q] : 0;
        k->mixture_weights(t->c.count, t->weight + q * t->c.count, largest[q], log_sum[q]);
    }
    k->mixture_offset(e, t->dout, out, t->c.joint ? NULL : t->centre, t->dcgf, t->offset);
    k->mixture_pull(&(struct FN(sattn_pull)){&t->c, t->lanes, t->tilt, t->half, t->dout, t->product,
                                             largest, log_sum, t->offset, t->w, t->b, TILE,
                                             t->dtilt, space(keys(t) * TILE)});
    k->mixture_factors(&t->c, t->lanes, t->tilt, t->c.joint ? NULL : t->dout, t->w, t->b, TILE,
                       t->by_tilt, t->by_dout);
    check_guarded();
}

static double *widened(const real *x, int64_t n, double *to)
{
    for (int64_t i = 0; x && i < n; i++)
        to[i] = x[i];
    return to;
}

/* 4 EPS for 1: second-order terms, rounding of the oracle's value to double, and the centre of the
 * means, which the oracle subtracts once more. The smallest normal number covers weights that
 * underflow. */
static void check_number(const char *what, int64_t i, real got, oracle_number want)
{
    const double least = sizeof(real) == 4 ? FLT_MIN : DBL_MIN;
    check_near(what, i, got, (double)want.value, 4 * EPS * (double)want.error + least);
}

/* Left factors against their formula: a handful of roundings of sums of at most D products */
static void check_factors(const tile *t, int64_t q)
{
    const int64_t d = t->c.width, n = t->c.rank;
    for (int64_t i = 0; i < t->c.count * n; i++) {
        const double w = t->w[i / n * TILE + q], b = t->b[i / n * TILE + q];
        double tr = 0, pr = 0, size = 0;
        for (int64_t j = 0; j < d; j++) {
            const double f = t->c.factor[i * d + j], u = t->tilt[j * TILE + q],
                         y = t->c.joint ? 0 : t->dout[j * TILE + q];
            tr += f * u, pr += f * y;
            size += fabs(f) * (fabs(b * u) + w * fabs(y) + w * fabs(u));
        }
        check_near("by_tilt", i, t->by_tilt[i * TILE + q], b * tr + w * pr,
                   (double)(d + 3) * EPS * size);
        if (!t->c.joint)
            check_near("by_dout", i, t->by_dout[i * TILE + q], w * tr,
                       (double)(d + 3) * EPS * size);
    }
}

/* Covariances of the oracle's kind LOW_RANK: s, then F, for each component */
static double *low_rank(const tile *t, double *to)
{
    const int64_t d = t->c.width, n = t->c.rank;
    for (int64_t c = 0; c < t->c.count; c++)
        for (int64_t i = 0; i < d; i++) {
            double *at = to + c * d * (1 + n);
            at[i] = t->c.covariance[c * d + i];
            for (int64_t r = 0; r < n; r++)
                at[d + i * n + r] = t->c.factor[(c * n + r) * d + i];
        }
    return to;
}

static void check_lane(const tile *t, int64_t q)
{
    static double log_weight[64], mean[64 * 80], covariance[1 << 16], value[64 * 80],
        cross[1 << 16];
    const int64_t c = t->c.count, d = t->c.width, e = t->c.value_width,
                  s = t->c.kind == FULL ? d * d : d;
    oracle_number out[160], cgf, weight[64], dtilt[160];
    double tilt[160], dout[160];
    const oracle_mixture o = {c,
                              d,
                              t->c.joint ? e : 0,
                              t->c.rank ? ORACLE_LOW_RANK : t->c.kind,
                              widened(t->c.log_weight, c, log_weight),
                              widened(t->c.mean, c * d, mean),
                              t->c.rank ? low_rank(t, covariance)
                                        : widened(t->c.covariance, c * s, covariance),
                              widened(t->c.value_mean, c * e, value),
                              t->c.cross ? widened(t->c.cross, c * e * d, cross) : NULL,
                              t->c.rank,
                              0};
    for (int64_t i = 0; i < d; i++)
        tilt[i] = t->tilt[i * TILE + q];
    for (int64_t i = 0; i < e; i++)
        dout[i] = t->dout[i * TILE + q];
    oracle_forward(&o, tilt, out, &cgf, weight);
    oracle_backward(&o, tilt, dout, t->dcgf[q], 1, &(oracle_gradients){.tilt = dtilt});
    for (int64_t i = 0; i < e; i++)
        check_number("out", i, t->out[q * e + i], out[i]);
    check_number("cgf", q, t->cgf[q], cgf);
    for (int64_t i = 0; i < c; i++) {
        check_number("weight", i, t->weight[q * c + i], weight[i]);
        check_number("w", i, t->w[i * TILE + q], weight[i]);
    }
    for (int64_t i = 0; i < d; i++)
        check_number("dtilt", i, t->dtilt[i * TILE + q], dtilt[i]);
    check_factors(t, q);
}

static void check_tile(int32_t isa, uint64_t seed, int64_t count, int64_t d, int64_t e,
                       int32_t kind, int cross)
{
    tile want = make_tile(seed, count, d, e, kind, cross);
    run(SATTN_ISA_SCALAR, &want);
    tile got = make_tile(seed, count, d, e, kind, cross);
    run(isa, &got);
    check_same(got.out, want.out, got.lanes * got.c.value_width);
    check_same(got.stats, want.stats, 2 * got.lanes);
    check_same(got.cgf, want.cgf, got.lanes);
    for (int64_t q = 0; q < got.lanes; q++) {
        check_same(got.weight + q * count, want.weight + q * count, count);
        for (int64_t i = 0; i < d; i++)
            check_same(got.dtilt + i * TILE + q, want.dtilt + i * TILE + q, 1);
        for (int64_t c = 0; c < count; c++) {
            check_same(got.w + c * TILE + q, want.w + c * TILE + q, 1);
            check_same(got.b + c * TILE + q, want.b + c * TILE + q, 1);
        }
        for (int64_t i = 0; i < count * got.c.rank; i++) {
            check_same(got.by_tilt + i * TILE + q, want.by_tilt + i * TILE + q, 1);
            check_same(got.by_dout + i * TILE + q, want.by_dout + i * TILE + q, 1);
        }
    }
    for (int64_t q = 0; q < got.lanes; q += 1 + got.lanes / 3)
        check_lane(&got, q);
    release_guarded();
}

EACH_ROW(mixture, tile)
{
    rng r = seed_of(1);
    for (uint64_t seed = 1; seed <= 150; seed++)
        check_tile(*isa, seed, 1 + random_below(&r, 64), 1 + random_below(&r, 12),
                   1 + random_below(&r, 12), (int32_t)(seed % KINDS), (int)(seed / KINDS % 3));
}

/* Widths around half of the batch of keys, a batch, and beyond */
EACH_ROW(mixture, wide)
{
    static const int64_t widths[][2] = {{63, 1}, {64, 2}, {65, 3}, {2, 64}, {3, 150}, {130, 1}};
    for (int i = 0; i < 6; i++)
        for (int32_t kind = 0; kind < KINDS; kind++)
            for (int cross = 0; cross < 3; cross++)
                check_tile(*isa, (uint64_t)(i + 1), widths[i][0] > 100 ? 2 : 3, widths[i][0],
                           widths[i][1], kind, cross);
}
