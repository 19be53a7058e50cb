/* SPDX-License-Identifier: BSD-2-Clause */
#include "../oracle/softmax.h"
#include "lines.h"

#include <stdlib.h>

/* A row's numbers for the oracle */
typedef struct {
    oracle_line line;
    double *x, *bias, *dy, *y;
    int *live;
    oracle_number *out, *dz, *dx;
} row;

static void *numbers(int64_t n, size_t bytes)
{
    void *memory = calloc((size_t)n + 1, bytes);
    cr_assert(memory, "no memory");
    return memory;
}

static row open_row(const problem *p)
{
    const int64_t n = p->shape.width;
    row r = {.x = numbers(n, sizeof(double)),
             .bias = numbers(n, sizeof(double)),
             .dy = numbers(n, sizeof(double)),
             .y = numbers(n, sizeof(double)),
             .live = numbers(n, sizeof(int)),
             .out = numbers(n, sizeof(oracle_number)),
             .dz = numbers(n, sizeof(oracle_number)),
             .dx = numbers(n, sizeof(oracle_number))};
    r.line = (oracle_line){.n = n,
                           .logarithm = p->shape.form == SATTN_FORM_LOG_SOFTMAX,
                           .x = r.x,
                           .bias = p->a[BIAS].data ? r.bias : NULL,
                           .live = r.live,
                           .scale = (double)(real)p->shape.scale};
    return r;
}

static void read_row(row *r, const problem *p, int64_t b, int64_t m)
{
    for (int64_t j = 0; j < p->shape.width; j++) {
        r->live[j] = is_live(p, b, m, j);
        r->x[j] = get(&p->a[X], b, m, j);
        r->bias[j] = p->a[BIAS].data ? get(&p->a[BIAS], b, m, j) : 0;
        r->y[j] = get(&p->a[Y], b, m, j);
        r->dy[j] = p->a[DY].data ? get(&p->a[DY], b, m, j) : 0;
    }
    r->line.sink = p->a[SINK].data ? get(&p->a[SINK], b, m, 0) : -(double)INFINITY;
}

static void close_row(row *r)
{
    void *const all[] = {r->x, r->bias, r->dy, r->y, r->live, r->out, r->dz, r->dx};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        free(all[i]);
}

/* Storage in 16 bits rounds once more; results may be subnormal. */
static double compare(const array *a, const char *name, int64_t b, int64_t m, int64_t j,
                      oracle_number want)
{
    const double got = get(a, b, m, j), value = (double)want.value;
    const double unit = a->storage == SATTN_STORAGE_OWN    ? 0
                        : a->storage == SATTN_STORAGE_BF16 ? 0x1p-8
                                                           : 0x1p-11;
    const double tiny = sizeof(real) == 4 ? 0x1p-140 : 0x1p-1064;
    const double least = a->storage == SATTN_STORAGE_F16 ? 0x1p-25 : tiny;
    const double bound = (double)want.error * EPS + fabs(value) * unit + least;
    if (isinf(value) || isnan(value))
        cr_assert(same_bits(&got, &value, 1, sizeof got), "%s[%d][%d][%d] = %g, not %g: %s", name,
                  (int)b, (int)m, (int)j, got, value, where());
    else if (!(fabs(got - value) <= bound) && !(unit == 0x1p-11 && fabs(value) >= 65500))
        check_near(name, (b * 1000 + m) * 10000 + j, got, value, bound);
    return isfinite(value) && unit == 0 && bound > 1e9 * tiny ? fabs(got - value) / bound : 0;
}

/* Sums of oracle numbers, one per element of a gradient that repeats */
typedef struct {
    oracle_number *sum;
    long double *size;
    int64_t n;
} sums;

static sums open_sums(const array *a)
{
    const int64_t n = a->count[0] * a->count[1] * a->count[2];
    return (sums){numbers(n, sizeof(oracle_number)), numbers(n, sizeof(long double)), n};
}

static int64_t index_of(const array *a, int64_t b, int64_t m, int64_t j)
{
    const int64_t at[] = {b, m, j};
    int64_t index = 0;
    for (int i = 0; i < 3; i++)
        index = index * a->count[i] + (a->stride[i] ? at[i] : 0);
    return index;
}

static void add(sums *s, int64_t index, oracle_number x)
{
    s->sum[index].value += x.value;
    s->sum[index].error += x.error;
    s->size[index] += fabsl(x.value);
}

/* 64 rows one after the other, then slabs in double; sums along a row have 16 steps. */
static double close_sums(sums *s, const array *a, const char *name)
{
    double most = 0;
    for (int64_t i = 0; i < s->n && a->data; i++) {
        const int64_t j = i % a->count[2], m = i / a->count[2] % a->count[1];
        s->sum[i].error += 80 * s->size[i];
        most = fmax(most, compare(a, name, i / a->count[2] / a->count[1], m, j, s->sum[i]));
    }
    free(s->sum);
    free(s->size);
    return most;
}

double check_against_oracle(const problem *p)
{
    const array *a = p->a;
    row r = open_row(p);
    double most = 0;
    sums bias = open_sums(&a[DBIAS]), sink = open_sums(&a[DSINK]), scale = open_sums(&a[DSCALE]);
    for (int64_t b = 0; b < p->shape.batch; b++)
        for (int64_t m = 0; m < p->shape.rows; m++) {
            oracle_stats stats;
            oracle_number dscale, dsink;
            read_row(&r, p, b, m);
            oracle_line_forward(&r.line, r.out, &stats);
            oracle_line_backward(&r.line, p->shape.from_x ? NULL : r.y, r.dy,
                                 a[DLSE].data ? get(&a[DLSE], b, m, 0) : 0, r.dz, r.dx, &dscale,
                                 &dsink);
            most = fmax(most, compare(&a[STATS], "largest", b, m, 0, stats.largest));
            most = fmax(most, compare(&a[STATS], "log sum", b, m, 1, stats.log_sum));
            most = fmax(most, compare(&a[LSE], "lse", b, m, 0, stats.lse));
            for (int64_t j = 0; j < p->shape.width; j++) {
                most = fmax(most, compare(&a[Y], "y", b, m, j, r.out[j]));
                most = fmax(most, compare(&a[DX], "dx", b, m, j, r.dx[j]));
                if (a[DBIAS].data)
                    add(&bias, index_of(&a[DBIAS], b, m, j), r.dz[j]);
            }
            add(&scale, 0, dscale);
            if (a[DSINK].data)
                add(&sink, index_of(&a[DSINK], b, m, 0), dsink);
        }
    most = fmax(most, close_sums(&bias, &a[DBIAS], "dbias"));
    most = fmax(most, close_sums(&sink, &a[DSINK], "dsink"));
    most = fmax(most, close_sums(&scale, &a[DSCALE], "dscale"));
    close_row(&r);
    return most;
}
