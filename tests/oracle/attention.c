/* SPDX-License-Identifier: BSD-2-Clause */
#include "attention.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef long double wide;
typedef oracle_number number;

/* One query and all keys */
typedef struct {
    int64_t b, h, m;
    int *live;                  /* [N] */
    number *score, *w;          /* [N] */
    wide *raw, *rate, *product; /* [N]: q.k, d score / d (scale q.k), sum |q||k| */
    wide sink, sink_weight, sink_error, mean_error;
    number lse;
} row;

static int sees(const oracle_attention *x, const row *r, int64_t n)
{
    const int64_t keys = x->key_count ? x->key_count[r->b] : x->keys;
    const int64_t queries = x->query_count ? x->query_count[r->b] : x->queries;
    const int64_t place = r->m + (x->bottom_right ? keys - queries : 0);
    const int64_t pair = ((r->b * x->heads + r->h) * x->queries + r->m) * x->keys + n;
    if (n >= keys || (x->left >= 0 && n < place - x->left) ||
        (x->right >= 0 && n > place + x->right))
        return 0;
    return !(x->mask && !x->mask[pair]) && !(x->bias && x->bias[pair] == -INFINITY);
}

static const double *keys_of(const oracle_attention *x, const row *r, const double *array,
                             int64_t width, int64_t n)
{
    const int64_t head = r->h / (x->heads / x->key_heads);
    return array + ((r->b * x->key_heads + head) * x->keys + n) * width;
}

static int64_t query_at(const oracle_attention *x, const row *r)
{
    return (r->b * x->heads + r->h) * x->queries + r->m;
}

static void score(const oracle_attention *x, row *r, int64_t n)
{
    const double *q = x->q + query_at(x, r) * x->width, *k = keys_of(x, r, x->k, x->width, n);
    const int64_t keys = x->key_count ? x->key_count[r->b] : x->keys;
    const int64_t queries = x->query_count ? x->query_count[r->b] : x->queries;
    wide raw = 0, size = 0;
    for (int64_t d = 0; d < x->width; d++) {
        raw += (wide)q[d] * k[d];
        size += fabsl((wide)q[d] * k[d]);
    }
    wide s = x->scale * raw, error = fabs(x->scale) * size * (x->width + 1);
    r->raw[n] = raw;
    r->rate[n] = 1;
    r->product[n] = size * (x->width + 1);
    if (x->softcap > 0) {
        const wide t = tanhl(s / x->softcap);
        r->rate[n] = 1 - t * t;
        error += fabsl(s) + 4 * x->softcap * fabsl(t);
        s = x->softcap * t;
    }
    if (x->bias) {
        s += x->bias[query_at(x, r) * x->keys + n];
        error += fabsl(s);
    }
    if (x->slope) {
        const int64_t place = r->m + (x->bottom_right ? keys - queries : 0);
        s -= x->slope[r->b * x->heads + r->h] * (wide)llabs(place - n);
        error += fabsl(s);
    }
    r->score[n] = (number){s, error};
}

static void weigh(const oracle_attention *x, row *r)
{
    wide top = r->sink, sum = 0;
    for (int64_t n = 0; n < x->keys; n++) {
        r->live[n] = sees(x, r, n);
        if (r->live[n]) {
            score(x, r, n);
            top = fmaxl(top, r->score[n].value);
        }
    }
    for (int64_t n = 0; n < x->keys; n++) {
        const wide s = r->score[n].value;
        sum += r->w[n].value = r->live[n] ? expl(s - top) : 0;
        /* of the weight before it is divided: the score's error, its difference's, exp's */
        r->w[n].error = r->live[n] ? r->score[n].error + 2 * fabsl(s - top) + 4 : 0;
    }
    r->sink_weight = r->sink > -INFINITY ? expl(r->sink - top) : 0;
    r->sink_error = r->sink > -INFINITY ? 2 * fabsl(r->sink - top) + 4 : 0;
    sum += r->sink_weight;
    r->mean_error = 4 + (wide)x->keys;
    for (int64_t n = 0; n < x->keys; n++) {
        r->w[n].value = sum > 0 ? r->w[n].value / sum : 0;
        r->mean_error += r->w[n].value * r->w[n].error;
    }
    r->sink_weight = sum > 0 ? r->sink_weight / sum : 0;
    r->mean_error += r->sink_weight * r->sink_error;
    r->lse.value = sum > 0 ? top + logl(sum) : -INFINITY;
    r->lse.error = sum > 0 ? r->mean_error + 3 * fabsl(top) + 3 * fabsl(logl(sum)) + 2 : 0;
    for (int64_t n = 0; n < x->keys; n++) /* now absolute */
        r->w[n].error = r->w[n].value * (r->w[n].error + r->mean_error);
}

static void accumulate(number *to, wide value, wide error)
{
    to->value += value;
    to->error += error;
}

static void one_query(const oracle_attention *x, const oracle_attention_results *y, row *r)
{
    const int64_t at = query_at(x, r), d = x->width, e = x->value_width;
    const int64_t head = r->h / (x->heads / x->key_heads);
    const int64_t sums = (x->heads / x->key_heads) * x->queries + 8; /* terms of dk and dv */
    const double *dout = x->dout + at * e, *q = x->q + at * d;
    number *out = y->out + at * e;
    wide pull = 0, pull_error = 0; /* dout . out */
    weigh(x, r);
    y->lse[at] = r->lse;
    for (int64_t i = 0; i < e; i++) {
        for (int64_t n = 0; n < x->keys; n++)
            if (r->live[n]) {
                const wide v = keys_of(x, r, x->v, e, n)[i];
                accumulate(&out[i], r->w[n].value * v,
                           (r->w[n].error + r->w[n].value * (x->keys + 4)) * fabsl(v));
            }
        pull += dout[i] * out[i].value;
        pull_error += fabsl(dout[i]) * (out[i].error + fabsl(out[i].value) * (e + 2));
    }
    const wide dlse = x->dlse[at];
    accumulate(&y->dsink[r->b * x->heads + r->h], r->sink_weight * (dlse - pull),
               r->sink_weight * (pull_error + (r->sink_error + r->mean_error + x->queries + 4) *
                                                  (fabsl(dlse) + fabsl(pull))));
    for (int64_t n = 0; n < x->keys; n++) {
        if (!r->live[n])
            continue;
        const double *v = keys_of(x, r, x->v, e, n), *k = keys_of(x, r, x->k, d, n);
        wide a = 0, size = 0;
        for (int64_t i = 0; i < e; i++) {
            a += (wide)dout[i] * v[i];
            size += fabsl((wide)dout[i] * v[i]);
        }
        const wide w = r->w[n].value, inner = a - pull + dlse;
        const wide inner_error =
            size * (e + 2) + pull_error + 2 * (fabsl(a) + fabsl(pull) + fabsl(dlse));
        const number g = {w * inner,
                          w * inner_error + r->w[n].error * fabsl(inner) + 2 * fabsl(w * inner)};
        const wide rate = r->rate[n], key = ((r->b * x->key_heads + head) * x->keys + n);
        /* rate = 1 - t^2 errs by twice what t does: some e of 1, and the error of its argument */
        const wide rate_error =
            x->softcap > 0 ? 12 + 2 * (fabs(x->scale) * r->product[n]) / x->softcap : 0;
        const wide ge = g.error * rate + fabsl(g.value) * (rate_error + 3);
        y->dbias[at * x->keys + n] = g;
        accumulate(y->dscale, rate * r->raw[n] * g.value,
                   ge * fabsl(r->raw[n]) +
                       fabsl(g.value) * rate *
                           (r->product[n] + fabsl(r->raw[n]) * (wide)(x->keys + 8)));
        for (int64_t i = 0; i < d; i++) {
            const wide c = x->scale * rate * g.value, ce = fabs(x->scale) * ge;
            accumulate(&y->dq[at * d + i], c * k[i],
                       (ce + fabsl(c) * (x->keys + 4)) * fabsl((wide)k[i]));
            accumulate(&y->dk[(int64_t)key * d + i], c * q[i],
                       (ce + fabsl(c) * sums) * fabsl((wide)q[i]));
        }
        for (int64_t i = 0; i < e; i++)
            accumulate(&y->dv[(int64_t)key * e + i], w * dout[i],
                       (r->w[n].error + w * sums) * fabsl((wide)dout[i]));
    }
}

static void clear(number *x, int64_t n)
{
    memset(x, 0, (size_t)n * sizeof *x);
}

void oracle_attend(const oracle_attention *x, const oracle_attention_results *y)
{
    const int64_t rows = x->batch * x->heads * x->queries, n = x->keys;
    const int64_t key_rows = x->batch * x->key_heads * n;
    row r = {.live = calloc((size_t)n + 1, sizeof(int)),
             .score = calloc(2 * (size_t)n + 1, sizeof(number)),
             .raw = calloc(3 * (size_t)n + 1, sizeof(wide))};
    if (!r.live || !r.score || !r.raw)
        abort();
    r.w = r.score + n;
    r.rate = r.raw + n;
    r.product = r.rate + n;
    clear(y->out, rows * x->value_width);
    clear(y->lse, rows);
    clear(y->dq, rows * x->width);
    clear(y->dk, key_rows * x->width);
    clear(y->dv, key_rows * x->value_width);
    clear(y->dbias, rows * n);
    clear(y->dsink, x->batch * x->heads);
    clear(y->dscale, 1);
    for (r.b = 0; r.b < x->batch; r.b++)
        for (r.h = 0; r.h < x->heads; r.h++)
            for (r.m = 0; r.m < (x->query_count ? x->query_count[r.b] : x->queries); r.m++) {
                r.sink = x->sink ? x->sink[r.b * x->heads + r.h] : -INFINITY;
                one_query(x, y, &r);
            }
    free(r.live);
    free(r.score);
    free(r.raw);
}
