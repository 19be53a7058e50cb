/* SPDX-License-Identifier: BSD-2-Clause */
/* Softmax by its descriptor: cases from public bug reports with known answers, what dead elements
 * may hold, and in f64 gradients against central differences of the library's own forward. */
#include "lines.h"

#include <stdlib.h>

static const real inf = (real)INFINITY;

static sattn_softmax descriptor(int64_t batch, int64_t rows, int64_t width, const real *x, real *y)
{
    sattn_softmax p;
    check(sattn_softmax_init(&p, sizeof p, batch, rows, width) == SATTN_OK);
    p.x = x;
    p.y = y;
    return p;
}

/* A masked logit of 1000, inf or NaN changes nothing, forward and backward. */
EACH_ROW(softmax, masked)
{
    const real dead[] = {1000, inf, (real)NAN}, dy[] = {1, 2, 3}, dead_dy[] = {1, 2, (real)NAN};
    const uint8_t mask[] = {1, 255, 0};
    const real want[] = {(real)0.5, (real)0.5, 0}, want_dx[] = {(real)-0.25, (real)0.25, 0};
    sattn_isa_set(*isa);
    for (int i = 0; i < 6; i++) {
        const real x[] = {1, 1, dead[i % 3]};
        real y[3], stats[2], dx[3], dscale;
        sattn_softmax p = descriptor(1, 1, 3, x, y);
        at("isa %d case %d", (int)*isa, i);
        p.mask = mask, p.stats = stats, p.dy = i < 3 ? dy : dead_dy, p.dx = dx, p.dscale = &dscale;
        check(FN(sattn_softmax_forward)(&p) == SATTN_OK);
        check_same(y, want, 3);
        check(FN(sattn_softmax_backward)(&p) == SATTN_OK);
        check_same(dx, want_dx, 3);
        check(dscale == 0);
        p.y = NULL;
        check(FN(sattn_softmax_backward)(&p) == SATTN_OK);
        for (int j = 0; j < 3; j++) /* the weights come through exp and log */
            check_near("dx", j, dx[j], want_dx[j], 2 * EPS);
        check(dx[2] == 0);
    }
}

EACH_ROW(softmax, log_softmax)
{
    const real x[] = {0, -inf}, none[] = {-inf, -inf, -inf}, dy[] = {1, (real)NAN, 3};
    real y[3], lse[1], stats[2], dx[3];
    sattn_isa_set(*isa);
    at("isa %d", (int)*isa);
    check(FN(sattn_log_softmax)(1, 2, x, 2, y, 2, 1) == SATTN_OK);
    check(y[0] == 0 && y[1] == -inf);
    sattn_softmax p = descriptor(1, 1, 3, none, y);
    for (int32_t form = 0; form < 2; form++) {
        p.form = form, p.stats = stats, p.lse = lse, p.dy = dy, p.dx = dx, p.dlse = &dy[1];
        check(FN(sattn_softmax_forward)(&p) == SATTN_OK);
        check(y[0] == (form ? -inf : 0) && y[2] == y[0] && lse[0] == -inf);
        check(stats[0] == -inf && stats[1] == 0);
        check(FN(sattn_softmax_backward)(&p) == SATTN_OK);
        check(dx[0] == 0 && dx[1] == 0 && dx[2] == 0);
        sattn_softmax from_x = p;
        from_x.y = NULL;
        check(FN(sattn_softmax_backward)(&from_x) == SATTN_OK);
        check(dx[0] == 0 && dx[1] == 0 && dx[2] == 0);
    }
}

/* A sum that a naive float one would stop at 2^24, with its lse */
EACH_ROW(softmax, saturation)
{
    const int64_t n = (1 << 24) + 1;
    real *x = malloc((size_t)n * sizeof *x), lse[1];
    cr_assert(x, "no memory");
    for (int64_t j = 0; j < n; j++)
        x[j] = j ? (real)-17.32868003845215 : 0;
    sattn_softmax p = descriptor(1, 1, n, x, x); /* in place */
    p.lse = lse;
    sattn_isa_set(*isa);
    at("isa %d", (int)*isa);
    check(FN(sattn_softmax_forward)(&p) == SATTN_OK);
    check_near("lse", 0, lse[0], 0.40546493329, 1e-6 * 0.4);
    check_near("y", 0, x[0], 0.66666678321188, 1e-6 * 0.67);
    double sum = 0;
    for (int64_t j = 0; j < n; j++)
        sum += x[j];
    check_near("y", n - 1, x[n - 1], 1.98682079784940e-08, 1e-14 * 2);
    check_near("sum", 0, sum, 1, 4 * 0x1p-24);
    free(x);
}

/* A NaN at any place: that row NaN, its neighbours 1/n; any axis, any stride, of each sign */
EACH_ROW(softmax, nan_and_strides)
{
    static real x[3 * 70 * 2], y[3 * 70 * 2];
    sattn_isa_set(*isa);
    for (int64_t n = 1; n < 68; n++)
        for (int64_t i = 0; i < n; i++) {
            const int across = (int)(i % 2), step = 1 + (int)(i % 3 == 2);
            sattn_softmax p = descriptor(1, 3, n, x, y);
            memset(x, 0, sizeof x);
            p.x_row = p.y_row = across ? step : n * step;
            p.x_col = p.y_col = across ? 3 * step : step;
            x[p.x_row + i * p.x_col] = (real)NAN;
            if (n % 2 && i % 5 == 4) { /* from the end: a negative stride */
                p.x = x + (n - 1) * p.x_col;
                p.x_col = -p.x_col;
            }
            at("isa %d n %d at %d", (int)*isa, (int)n, (int)i);
            check(FN(sattn_softmax_forward)(&p) == SATTN_OK);
            for (int64_t r = 0; r < 3; r++)
                for (int64_t j = 0; j < n; j++) {
                    const real got = y[r * p.y_row + j * p.y_col];
                    check(r == 1 ? isnan(got) : ulps(got, 1 / (double)n, sizeof got) <= 1);
                }
        }
    const real a[] = {0, 1, 2, 3};
    real out[5];
    sattn_softmax p = descriptor(1, 1, 5, a, out);
    p.x_col = 0;
    check(FN(sattn_softmax_forward)(&p) == SATTN_OK);
    for (int j = 0; j < 5; j++)
        check(ulps(out[j], 0.2, sizeof *out) <= 1);
}

/* The sink alone: it takes all weight. Scale 0: uniform weights, and a gradient of x of 0. */
EACH_ROW(softmax, sink_and_scale)
{
    const real x[] = {-inf, -inf}, sink[] = {2}, dy[] = {3, 4}, dlse[] = {5}, z[] = {7, -9};
    real y[2], lse[1], stats[2], dx[2], dsink[1], dscale[1];
    sattn_softmax p = descriptor(1, 1, 2, x, y);
    sattn_isa_set(*isa);
    at("isa %d", (int)*isa);
    p.sink = sink, p.lse = lse, p.stats = stats, p.dy = dy, p.dlse = dlse, p.dx = dx;
    p.dsink = dsink, p.dscale = dscale;
    check(FN(sattn_softmax_forward)(&p) == SATTN_OK);
    check(FN(sattn_softmax_backward)(&p) == SATTN_OK);
    check(y[0] == 0 && y[1] == 0 && lse[0] == 2 && dx[0] == 0 && dx[1] == 0 && dsink[0] == 5);
    p = descriptor(1, 1, 2, z, y);
    p.scale = 0, p.dy = dy, p.dx = dx, p.dscale = dscale;
    check(FN(sattn_softmax_forward)(&p) == SATTN_OK);
    check(FN(sattn_softmax_backward)(&p) == SATTN_OK);
    check(y[0] == (real)0.5 && dx[0] == 0 && dx[1] == 0 && dscale[0] == -4); /* -7/4 - 9/4 */
}

#if SATTN_REAL == 64
static double loss(problem *x)
{
    double sum = 0;
    check(sattn_softmax_forward_f64(&x->p) == SATTN_OK);
    for (int64_t b = 0; b < x->shape.batch; b++)
        for (int64_t m = 0; m < x->shape.rows; m++) {
            const double lse = get(&x->a[LSE], b, m, 0);
            sum += x->a[DLSE].data && isfinite(lse) ? lse * get(&x->a[DLSE], b, m, 0) : 0;
            for (int64_t j = 0; j < x->shape.width; j++) {
                const double y = get(&x->a[Y], b, m, j);
                sum += isfinite(y) && y != 0 ? y * get(&x->a[DY], b, m, j) : 0;
            }
        }
    return sum;
}

static void check_slope(problem *x, const char *what, double *at_place, double slope)
{
    const double h = 1e-5, before = *at_place;
    if (!isfinite(before))
        return;
    *at_place = before + h;
    const double up = loss(x);
    *at_place = before - h;
    const double down = loss(x);
    *at_place = before;
    check_near(what, 0, (up - down) / (2 * h), slope, 1e-7 * (1 + fabs(slope)));
}

EACH_ROW(softmax, differences)
{
    sattn_isa_set(*isa);
    for (uint64_t seed = 0; seed < 60; seed++) {
        shape s = random_shape(seed + 9000);
        s.width = s.width > 20 ? 19 : s.width;
        s.rows = s.rows > 8 ? 8 : s.rows;
        s.reach = s.reach > 5 ? 5 : s.reach;
        s.side = ROOMY;
        problem x = make_problem(&s);
        solve(&x);
        rng g = seed_of(seed);
        static const int pairs[][2] = {{X, DX}, {BIAS, DBIAS}, {SINK, DSINK}};
        for (int round = 0; round < 12; round++)
            for (int i = 0; i < 3; i++) {
                const array *a = &x.a[pairs[i][0]], *d = &x.a[pairs[i][1]];
                int64_t k[3], empty = !a->data;
                for (int axis = 0; axis < 3; axis++) {
                    k[axis] = a->count[axis] > 0 ? random_below(&g, a->count[axis]) : 0;
                    empty |= a->count[axis] == 0 || (i && a->count[axis] == 0);
                }
                empty |= s.batch == 0 || s.rows == 0 || (s.width == 0 && i < 2);
                if (!empty)
                    check_slope(&x, array_names[pairs[i][1]],
                                (double *)(void *)a->data + k[0] * a->stride[0] +
                                    k[1] * a->stride[1] + k[2] * a->stride[2],
                                get(d, k[0], k[1], k[2]));
            }
        if (s.hidden == 0 || s.scale > 0.1)
            check_slope(&x, "dscale", &x.p.scale, get(&x.a[DSCALE], 0, 0, 0));
        release_guarded();
    }
}
#endif
