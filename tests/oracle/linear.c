/* SPDX-License-Identifier: BSD-2-Clause */
#include "linear.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef long double wide;
typedef oracle_term term;

static wide feature(int kind, wide x)
{
    return kind == ORACLE_ELU    ? (x > 0 ? x + 1 : expl(x))
           : kind == ORACLE_RELU ? (x > 0 ? x : 0)
           : kind == ORACLE_EXP  ? expl(x)
                                 : x;
}

static wide slope(int kind, wide x)
{
    return kind == ORACLE_ELU    ? (x > 0 ? 1 : expl(x))
           : kind == ORACLE_RELU ? x > 0
           : kind == ORACLE_EXP  ? expl(x)
                                 : 1;
}

static void add(term *t, wide value, wide size)
{
    t->value += value;
    t->size += fabsl(size);
}

/* Values and the column of ones */
static wide value_at(const oracle_linear *x, int64_t j, int64_t e)
{
    return e < x->value_width ? x->v[j * x->value_width + e] : 1;
}

static wide state_at(const oracle_linear *x, const double *sum, const double *key_sum, int64_t d,
                     int64_t e)
{
    const double *from = e < x->value_width ? sum : key_sum;
    return from ? from[e < x->value_width ? d * x->value_width + e : d] : 0;
}

static int sees(const oracle_linear *x, int64_t i, int64_t j)
{
    return !x->causal || j <= i;
}

static wide fq(const oracle_linear *x, int64_t i, int64_t d)
{
    return feature(x->feature, x->q[i * x->width + d]);
}

static wide fk(const oracle_linear *x, int64_t j, int64_t d)
{
    return feature(x->feature, x->k[j * x->width + d]);
}

/* The row of query i: out' [F] and its cotangent d' [F] */
static void query(const oracle_linear *x, const oracle_linear_results *y, int64_t i, term *d)
{
    const int64_t e = x->value_width, f = e + x->normalised;
    term raw[64] = {{0, 0}}, dot = {0, 0};
    for (int64_t c = 0; c < f; c++) {
        for (int64_t j = 0; j < x->keys; j++)
            for (int64_t k = 0; k < x->width && sees(x, i, j); k++) {
                const wide t = fq(x, i, k) * fk(x, j, k) * value_at(x, j, c);
                add(&raw[c], t, t);
            }
        for (int64_t k = 0; k < x->width; k++) {
            const wide t = fq(x, i, k) * state_at(x, x->sum, x->key_sum, k, c);
            add(&raw[c], t, t);
        }
    }
    const int64_t keys = x->seen + (x->causal ? i + 1 : x->keys);
    wide factor = x->mean ? (keys > 0 ? x->scale / (wide)keys : 0) : x->scale;
    if (x->normalised) {
        const wide den = raw[e].value + x->eps;
        y->den[i] = (term){den, raw[e].size + x->eps};
        factor = den == 0 ? 0 : 1 / den;
    }
    for (int64_t c = 0; c < e; c++) {
        y->out[i * e + c] = (term){factor * raw[c].value, fabsl(factor) * raw[c].size};
        const wide g = x->dout[i * e + c];
        add(&dot, g * factor * raw[c].value, g * factor * raw[c].size);
        d[c] = (term){g * factor, fabsl(g * factor)};
    }
    if (x->normalised)
        d[e] = (term){-factor * dot.value, fabsl(factor) * dot.size};
}

static void pull(const oracle_linear *x, const oracle_linear_results *y, int64_t i, const term *d)
{
    const int64_t w = x->width, e = x->value_width, f = e + x->normalised;
    for (int64_t k = 0; k < w; k++) {
        const wide s = slope(x->feature, x->q[i * w + k]);
        for (int64_t c = 0; c < f; c++) {
            const wide st = state_at(x, x->sum, x->key_sum, k, c);
            add(&y->dq[i * w + k], s * d[c].value * st, s * d[c].size * st);
            term *to = c < e ? &y->dsum[k * e + c] : &y->dkey_sum[k];
            add(to, fq(x, i, k) * d[c].value, fq(x, i, k) * d[c].size);
        }
    }
    for (int64_t j = 0; j < x->keys; j++) {
        term inner = {0, 0};
        wide product = 0, product_size = 0;
        if (!sees(x, i, j))
            continue;
        for (int64_t c = 0; c < f; c++)
            add(&inner, d[c].value * value_at(x, j, c), d[c].size * value_at(x, j, c));
        for (int64_t k = 0; k < w; k++) {
            const wide a = fq(x, i, k), b = fk(x, j, k);
            product += a * b;
            product_size += fabsl(a * b);
            const wide sq = slope(x->feature, x->q[i * w + k]),
                       sk = slope(x->feature, x->k[j * w + k]);
            add(&y->dq[i * w + k], sq * inner.value * b, sq * inner.size * b);
            add(&y->dk[j * w + k], sk * inner.value * a, sk * inner.size * a);
        }
        for (int64_t c = 0; c < e; c++)
            add(&y->dv[j * e + c], product * d[c].value, product_size * d[c].size);
    }
}

/* What the outgoing states pull at */
static void pull_states(const oracle_linear *x, const oracle_linear_results *y)
{
    const int64_t w = x->width, e = x->value_width, f = e + x->normalised;
    for (int64_t k = 0; k < w; k++)
        for (int64_t c = 0; c < f; c++) {
            const wide g = state_at(x, x->dsum_out, x->dkey_sum_out, k, c);
            const wide before = state_at(x, x->sum, x->key_sum, k, c);
            term *sum = c < e ? &y->sum_out[k * e + c] : &y->key_sum_out[k];
            add(c < e ? &y->dsum[k * e + c] : &y->dkey_sum[k], g, g);
            add(sum, before, before);
            for (int64_t j = 0; j < x->keys; j++) {
                const wide a = fk(x, j, k), v = value_at(x, j, c),
                           s = slope(x->feature, x->k[j * w + k]);
                add(sum, a * v, a * v);
                add(&y->dk[j * w + k], s * g * v, s * g * v);
                if (c < e)
                    add(&y->dv[j * e + c], a * g, a * g);
            }
        }
}

void oracle_linear_attend(const oracle_linear *x, const oracle_linear_results *y)
{
    const int64_t m = x->queries, n = x->keys, w = x->width, e = x->value_width;
    const struct {
        term *terms;
        int64_t count;
    } all[] = {{y->out, m * e},     {y->den, m},      {y->sum_out, w * e},
               {y->key_sum_out, w}, {y->dq, m * w},   {y->dk, n * w},
               {y->dv, n * e},      {y->dsum, w * e}, {y->dkey_sum, w}};
    for (int i = 0; i < 9; i++)
        memset(all[i].terms, 0, (size_t)all[i].count * sizeof(term));
    for (int64_t i = 0; i < m; i++) {
        term d[64] = {{0, 0}};
        query(x, y, i, d);
        pull(x, y, i, d);
    }
    pull_states(x, y);
}
