/* SPDX-License-Identifier: BSD-2-Clause */
#include "softmax.h"

#include <math.h>
#include <stdlib.h>

typedef long double wide;
typedef oracle_number number;

/* Logits with the error of their rounding, and what the row makes of them */
typedef struct {
    number *z, *weight; /* weight n is the sink's */
    number largest, log_sum;
} line;

static number logit(const oracle_line *x, int64_t j)
{
    if (j == x->n)
        return (number){x->sink, 0};
    if (!x->live[j])
        return (number){-INFINITY, 0};
    const wide z = (wide)x->scale * x->x[j] + (x->bias ? x->bias[j] : 0);
    return (number){z, x->scale == 1 && !x->bias ? 0 : fabsl(z)};
}

static line open_line(const oracle_line *x)
{
    line a = {malloc((size_t)(x->n + 1) * sizeof(number)),
              malloc((size_t)(x->n + 1) * sizeof(number)),
              {-INFINITY, 0},
              {0, 0}};
    if (!a.z || !a.weight)
        abort();
    int special = 0;
    wide sum = 0, spread = 0;
    for (int64_t j = 0; j <= x->n; j++) {
        a.z[j] = logit(x, j);
        special |= isnan(a.z[j].value) || a.z[j].value == INFINITY;
        if (a.z[j].value > a.largest.value)
            a.largest = a.z[j];
    }
    for (int64_t j = 0; j <= x->n; j++) {
        const int dead = a.z[j].value == -INFINITY;
        const wide down = dead ? 0 : a.largest.value - a.z[j].value;
        const wide term = dead ? 0 : special ? NAN : expl(-down);
        /* the error of the exponent; relative, so of the term once multiplied by it */
        a.weight[j] = (number){term, dead ? 0 : down + a.z[j].error + a.largest.error};
        sum += term;
        spread += dead ? 0 : term * a.weight[j].error;
    }
    spread = sum > 0 ? spread / sum : 0;
    a.log_sum = (number){special ? NAN : sum > 0 ? logl(sum) : 0, 0};
    a.log_sum.error = spread + 20 + 2 * fabsl(a.log_sum.value);
    for (int64_t j = 0; j <= x->n; j++) {
        const wide w = sum > 0 ? a.weight[j].value / sum : special ? NAN : 0;
        a.weight[j].value = a.z[j].value == -INFINITY ? 0 : w;
        a.weight[j].error = a.weight[j].value * (a.weight[j].error + spread + 25);
    }
    return a;
}

static void close_line(line *a)
{
    free(a->z);
    free(a->weight);
}

void oracle_line_forward(const oracle_line *x, number *y, oracle_stats *s)
{
    line a = open_line(x);
    for (int64_t j = 0; j < x->n; j++) {
        const wide z = a.z[j].value;
        y[j] = a.weight[j];
        if (!x->logarithm)
            continue;
        y[j] = (number){-INFINITY, 0};
        if (z == -INFINITY)
            continue;
        y[j].value = z - a.largest.value - a.log_sum.value;
        y[j].error = fabsl(z - a.largest.value) + a.z[j].error + a.largest.error + a.log_sum.error +
                     fabsl(y[j].value);
    }
    s->largest = a.largest;
    s->log_sum = a.log_sum;
    s->lse.value = a.largest.value + a.log_sum.value;
    s->lse.error = a.largest.error + a.log_sum.error + fabsl(s->lse.value);
    if (a.largest.value == -INFINITY)
        s->lse = (number){-INFINITY, 0};
    close_line(&a);
}

/* The weights that backward has; weight n, the sink's, always comes from the statistics. */
static void weigh(const oracle_line *x, const line *a, const double *y, number *w)
{
    for (int64_t j = 0; j <= x->n; j++) {
        const wide z = a->z[j].value, v = a->weight[j].value;
        w[j] = (number){v, 0};
        if (z != -INFINITY && v != 0)
            w[j].error = v * (fabsl(z - a->largest.value) + a->z[j].error + a->largest.error +
                              fabsl(logl(v)) + a->log_sum.error + 4);
        if (y && j < x->n)
            w[j].value = !x->live[j] ? 0 : x->logarithm ? expl(y[j]) : y[j];
        if (y && j < x->n)
            w[j].error = x->logarithm ? 2 * w[j].value : 0;
    }
}

void oracle_line_backward(const oracle_line *x, const double *y, const double *dy, double dlse,
                          number *dz, number *dx, number *dscale, number *dsink)
{
    line a = open_line(x);
    number *w = malloc((size_t)(x->n + 1) * sizeof *w), c = {dlse, 0};
    if (!w)
        abort();
    weigh(x, &a, y, w);
    wide size = 0, first = 0;
    for (int64_t j = 0; j < x->n; j++) {
        const int counts = x->logarithm
                               ? y ? x->live[j] && y[j] != -INFINITY : a.z[j].value != -INFINITY
                               : w[j].value != 0;
        const wide d = counts ? dy[j] : 0;
        c.value -= x->logarithm ? d : w[j].value * d;
        size += fabsl(x->logarithm ? d : w[j].value * d);
        first += x->logarithm ? 0 : w[j].error * fabsl(d);
        dz[j] = (number){d, 0};
    }
    c.error = first + 16 * size + fabsl((wide)dlse) + fabsl(c.value);
    *dscale = (number){0, 0};
    wide terms = 0;
    for (int64_t j = 0; j < x->n; j++) {
        const wide d = dz[j].value, v = w[j].value;
        if (v == 0 && !x->logarithm)
            dz[j] = (number){0, 0};
        else if (!x->logarithm)
            dz[j] = (number){v * (d + c.value), w[j].error * fabsl(d + c.value) +
                                                    v * (c.error + 2 * fabsl(d + c.value))};
        else
            dz[j] = (number){d + (v == 0 ? 0 : v * c.value),
                             w[j].error * fabsl(c.value) + v * c.error + fabsl(v * c.value)};
        if (x->logarithm)
            dz[j].error += fabsl(dz[j].value);
        if (!x->live[j])
            dz[j] = (number){0, 0};
        dx[j].value = x->scale * dz[j].value;
        dx[j].error = fabs(x->scale) * dz[j].error + fabsl(dx[j].value);
        if (dz[j].value == 0 && dz[j].error == 0)
            continue;
        dscale->value += dz[j].value * x->x[j];
        dscale->error += dz[j].error * fabs(x->x[j]);
        terms += fabsl(dz[j].value * x->x[j]);
    }
    dscale->error += 16 * terms;
    const number sink = w[x->n];
    *dsink = (number){sink.value == 0 ? 0 : sink.value * c.value, 0};
    if (sink.value != 0)
        dsink->error = sink.error * fabsl(c.value) + sink.value * (c.error + 2 * fabsl(c.value));
    free(w);
    close_line(&a);
}
