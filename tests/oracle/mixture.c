/* SPDX-License-Identifier: BSD-2-Clause */
#include "mixture.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef long double wide;
typedef oracle_number number;

/* What one query makes of a mixture. `_size` is the sum of the magnitudes of a sum's terms. */
typedef struct {
    int64_t c, d, e;
    wide *centre, *key_size, *value_size, *out_size;
    number *key, *value; /* [C][D], [C][E]; centred if the values are the keys */
    number *logit, *weight, *out;
    number cgf;
    void *memory;
} query;

void oracle_softmax(int64_t n, const double *x, wide *y)
{
    wide largest = -INFINITY, sum = 0;
    for (int64_t i = 0; i < n; i++)
        largest = fmaxl(largest, x[i]);
    for (int64_t i = 0; i < n; i++)
        sum += y[i] = largest == -INFINITY ? 0 : expl(x[i] - largest);
    for (int64_t i = 0; i < n; i++)
        y[i] = sum > 0 ? y[i] / sum : 0;
}

static int is_live(const oracle_mixture *x, int64_t c)
{
    return x->log_weight[c] != -INFINITY;
}

/* Component c's covariance as it is stored */
static const double *stored(const oracle_mixture *x, int64_t c)
{
    const int64_t d = x->width, sizes[] = {0, d, d * d, 1, d * d, d * (1 + x->rank)};
    return x->covariance + (x->shared ? 0 : c * sizes[x->kind]);
}

/* Columns of the factor F of S = F F' (+ a diagonal) */
static int64_t factors(const oracle_mixture *x)
{
    return x->kind == ORACLE_CHOLESKY ? x->width : x->kind == ORACLE_LOW_RANK ? x->rank : 0;
}

static wide factor(const oracle_mixture *x, int64_t c, int64_t i, int64_t p)
{
    const int64_t d = x->width;
    if (x->kind == ORACLE_LOW_RANK)
        return stored(x, c)[d + i * x->rank + p];
    return p <= i ? stored(x, c)[i * d + p] : 0;
}

/* Entry (i, j) of component c's covariance, and in `error` the magnitudes that it is the sum of */
static number covariance(const oracle_mixture *x, int64_t c, int64_t i, int64_t j)
{
    number s = {0, 0};
    if (x->kind == ORACLE_FULL)
        s.value = stored(x, c)[i * x->width + j];
    else if (i == j && (x->kind == ORACLE_DIAG || x->kind == ORACLE_LOW_RANK))
        s.value = stored(x, c)[i];
    else if (i == j && x->kind == ORACLE_ISOTROPIC)
        s.value = stored(x, c)[0];
    s.error = fabsl(s.value);
    for (int64_t p = 0; p < factors(x); p++) {
        s.value += factor(x, c, i, p) * factor(x, c, j, p);
        s.error += fabsl(factor(x, c, i, p) * factor(x, c, j, p));
    }
    return s;
}

static wide cross(const oracle_mixture *x, int64_t c, int64_t i, int64_t j)
{
    return x->cross ? x->cross[(c * x->value_width + i) * x->width + j] : 0;
}

static void set_up(query *q, const oracle_mixture *x)
{
    const int64_t c = x->components, d = x->width, e = x->value_width ? x->value_width : d;
    number *n = calloc((size_t)(2 * c * (d + e) + 2 * c + 2 * (d + e) + 1), sizeof *n);
    if (!n)
        abort();
    wide *w = (wide *)(n + c * (d + e) + 2 * c + e);
    *q = (query){.c = c, .d = d, .e = e, .memory = n, .key = n, .value = n + c * d};
    q->logit = q->value + c * e;
    q->weight = q->logit + c;
    q->out = q->weight + c;
    q->centre = w;
    q->key_size = w + d;
    q->value_size = q->key_size + c * d;
    q->out_size = q->value_size + c * e;
}

static void centre_means(query *q, const oracle_mixture *x)
{
    wide top = -INFINITY, sum = 0;
    for (int64_t c = 0; c < q->c; c++)
        top = fmaxl(top, x->log_weight[c]);
    for (int64_t c = 0; c < q->c; c++) {
        const wide p = is_live(x, c) ? expl(x->log_weight[c] - top) : 0;
        sum += p;
        for (int64_t i = 0; i < q->d && p > 0; i++)
            q->centre[i] += p * x->mean[c * q->d + i];
    }
    for (int64_t i = 0; i < q->d && sum > 0; i++)
        q->centre[i] /= sum;
}

/* Key, value and logit of component c */
static void component(query *q, const oracle_mixture *x, const double *u, int64_t c)
{
    const int64_t d = q->d, e = q->e, steps = d + 1 + factors(x); /* factors are multiplied out */
    wide logit = x->log_weight[c], size = fabsl(logit), error = 0;
    for (int64_t i = 0; i < d; i++) {
        const wide m = x->mean[c * d + i] - q->centre[i];
        wide g = 0, g_size = 0;
        for (int64_t j = 0; j < d; j++) {
            g += covariance(x, c, i, j).value * u[j];
            g_size += covariance(x, c, i, j).error * fabsl(u[j]);
        }
        q->key_size[c * d + i] = fabsl(m) + g_size;
        q->key[c * d + i] = (number){m + g, fabsl(m) + steps * (fabsl(m) + g_size)};
        logit += u[i] * (m + g / 2);
        size += fabsl(u[i] * m) + fabsl(u[i]) * g_size / 2;
        error += fabsl(u[i]) * (fabsl(m) + q->key[c * d + i].error / 2);
    }
    q->logit[c] = (number){logit, error + (2 * d + 6 + factors(x)) * size};
    for (int64_t i = 0; i < e; i++) {
        if (!x->value_width) {
            q->value[c * e + i] = q->key[c * d + i];
            q->value_size[c * e + i] = q->key_size[c * d + i];
            continue;
        }
        wide v = x->value_mean[c * e + i], v_size = fabsl(v);
        for (int64_t j = 0; j < d; j++) {
            v += cross(x, c, i, j) * u[j];
            v_size += fabsl(cross(x, c, i, j) * u[j]);
        }
        q->value[c * e + i] = (number){v, (d + 1) * v_size};
        q->value_size[c * e + i] = v_size;
    }
}

/* Weights, CGF and output of the query from keys, values and logits. An error D_c of logit c
 * changes a weighted mean by sum_c w_c D_c (value_c - mean). */
static void combine(query *q, const oracle_mixture *x, const double *u)
{
    const int64_t e = q->e,
                  steps = 6 * q->c + 12; /* roundings that a term of a running sum meets */
    wide top = -INFINITY, sum = 0, mean_error = 0, shift = 0, shift_size = 0;
    for (int64_t c = 0; c < q->c; c++)
        if (is_live(x, c))
            top = fmaxl(top, q->logit[c].value);
    for (int64_t c = 0; c < q->c; c++)
        sum += is_live(x, c) ? expl(q->logit[c].value - top) : 0;
    for (int64_t c = 0; c < q->c; c++) {
        if (!is_live(x, c))
            continue;
        q->logit[c].error += 4 + 2 * (top - q->logit[c].value) + fabsl(logl(sum));
        q->weight[c].value = expl(q->logit[c].value - top) / sum;
        mean_error += q->weight[c].value * q->logit[c].error;
    }
    for (int64_t i = 0; i < q->d; i++) {
        shift += u[i] * q->centre[i];
        shift_size += fabsl(u[i] * q->centre[i]);
    }
    const wide centred = top + logl(sum);
    q->cgf.value = sum > 0 ? centred + shift : -INFINITY;
    q->cgf.error = mean_error + steps + fabsl(top) + 3 * fabsl(logl(sum)) + fabsl(centred) +
                   (q->d + 2) * shift_size + fabsl(q->cgf.value);
    for (int64_t c = 0; c < q->c; c++)
        q->weight[c].error = q->weight[c].value * (q->logit[c].error + mean_error + steps);
    for (int64_t i = 0; i < e; i++) {
        number out = {0, 0};
        for (int64_t c = 0; c < q->c; c++) {
            out.value += q->weight[c].value * q->value[c * e + i].value;
            q->out_size[i] += q->weight[c].value * q->value_size[c * e + i];
        }
        for (int64_t c = 0; c < q->c; c++)
            out.error += q->weight[c].value *
                         (q->logit[c].error * fabsl(q->value[c * e + i].value - out.value) +
                          q->value[c * e + i].error);
        out.error += 2 * steps * q->out_size[i];
        out.value += x->value_width ? 0 : q->centre[i];
        out.error += x->value_width ? 0 : fabsl(out.value);
        q->out[i] = out;
    }
}

static void visit(query *q, const oracle_mixture *x, const double *u)
{
    set_up(q, x);
    centre_means(q, x);
    for (int64_t c = 0; c < q->c; c++)
        if (is_live(x, c))
            component(q, x, u, c);
    combine(q, x, u);
}

void oracle_forward(const oracle_mixture *x, const double *u, number *out, number *cgf,
                    number *weight)
{
    query q;
    visit(&q, x, u);
    memcpy(out, q.out, (size_t)q.e * sizeof *out);
    memcpy(weight, q.weight, (size_t)q.c * sizeof *weight);
    *cgf = q.cgf;
    free(q.memory);
}

/* One query's term of a sum over `terms` queries: `size` bounds the magnitudes it was formed from.
 */
static void add(number *sum, int64_t terms, wide value, wide size, wide error)
{
    sum->value += value;
    sum->error += error + (terms + 6) * size;
}

/* b_c = w_c (dout . value_c - dout . out + dcgf) */
static number slope(const query *q, const oracle_mixture *x, const double *g, double dcgf,
                    int64_t c)
{
    const number w = q->weight[c];
    wide t = dcgf, error = 3 * fabsl((wide)dcgf);
    for (int64_t i = 0; i < q->e; i++) {
        const number v = q->value[c * q->e + i];
        const wide out = q->out[i].value - (x->value_width ? 0 : q->centre[i]);
        t += g[i] * (v.value - out);
        error += fabsl(g[i]) * (v.error + q->out[i].error +
                                (q->e + 4) * (q->value_size[c * q->e + i] + q->out_size[i]));
    }
    return (number){w.value * t, fabsl(t) * w.error + w.value * error + fabsl(w.value * t)};
}

/* What a query and a component contribute to gradients */
typedef struct {
    const oracle_mixture *x;
    const double *u, *key_g, *g; /* key_g: dout where the values are the keys, else zeros */
    int64_t c, terms;
    number b, w;
} share;

/* dS_ij = b u_i u_j / 2 + w (g_i u_j + u_i g_j) / 2 */
static void add_entry(const share *s, int64_t i, int64_t j, int64_t more, number *to)
{
    const wide uu = (wide)s->u[i] * s->u[j] / 2;
    const wide one = (wide)s->key_g[i] * s->u[j] / 2, two = (wide)s->u[i] * s->key_g[j] / 2;
    add(to, s->terms + more, s->b.value * uu + s->w.value * (one + two),
        fabsl(s->b.value * uu) + s->w.value * (fabsl(one) + fabsl(two)),
        s->b.error * fabsl(uu) + s->w.error * (fabsl(one) + fabsl(two)));
}

/* dF_ip = 2 (dS F)_ip = b u_i t_p + w (g_i t_p + u_i h_p), t = F'u, h = F'g */
static void add_factor(const share *s, int64_t i, int64_t p, number *to)
{
    number t = {0, 0}, h = {0, 0};
    for (int64_t j = 0; j < s->x->width; j++) {
        const wide f = factor(s->x, s->c, j, p);
        t.value += f * s->u[j], t.error += fabsl(f * s->u[j]);
        h.value += f * s->key_g[j], h.error += fabsl(f * s->key_g[j]);
    }
    const wide u = s->u[i], g = s->key_g[i], gu = fabsl(g) * t.error + fabsl(u) * h.error;
    add(to, s->terms + 2 * s->x->width,
        s->b.value * u * t.value + s->w.value * (g * t.value + u * h.value),
        fabsl(s->b.value * u) * t.error + s->w.value * gu,
        s->b.error * fabsl(u) * t.error + s->w.error * gu);
}

static void add_covariance(const share *s, number *to)
{
    const int64_t d = s->x->width, n = factors(s->x), kind = s->x->kind;
    to += stored(s->x, s->c) - s->x->covariance;
    for (int64_t i = 0; i < d; i++) {
        if (kind == ORACLE_ISOTROPIC)
            add_entry(s, i, i, d, to);
        if (kind == ORACLE_DIAG || kind == ORACLE_LOW_RANK)
            add_entry(s, i, i, 0, to + i);
        for (int64_t j = 0; kind == ORACLE_FULL && j < d; j++)
            add_entry(s, i, j, 0, to + i * d + j);
        for (int64_t p = 0; p < n; p++)
            if (kind == ORACLE_LOW_RANK || p <= i)
                add_factor(s, i, p, to + (kind == ORACLE_LOW_RANK ? d : 0) + i * n + p);
    }
}

static void add_parameters(const share *s, const oracle_gradients *to)
{
    const int64_t c = s->c, d = s->x->width, e = s->x->value_width, terms = s->terms;
    const number b = s->b, w = s->w;
    if (to->log_weight)
        add(&to->log_weight[c], terms, b.value, fabsl(b.value), b.error);
    for (int64_t i = 0; to->mean && i < d; i++) {
        const wide u = s->u[i], g = s->key_g[i];
        add(&to->mean[c * d + i], terms, b.value * u + w.value * g,
            fabsl(b.value * u) + w.value * fabsl(g), b.error * fabsl(u) + w.error * fabsl(g));
    }
    if (to->covariance && s->x->kind != ORACLE_ZERO)
        add_covariance(s, to->covariance);
    for (int64_t i = 0; i < e; i++) {
        if (to->value_mean)
            add(&to->value_mean[c * e + i], terms, w.value * s->g[i], w.value * fabsl(s->g[i]),
                w.error * fabsl(s->g[i]));
        for (int64_t j = 0; to->cross && j < d; j++) {
            const wide gu = (wide)s->g[i] * s->u[j];
            add(&to->cross[(c * e + i) * d + j], terms, w.value * gu, w.value * fabsl(gu),
                w.error * fabsl(gu));
        }
    }
}

/* b_c (m_c + S_c u) + w_c S_c dout, or w_c X_c' dout */
static void add_tilt(const query *q, const oracle_mixture *x, const double *g, int64_t c, number b,
                     number *tilt)
{
    const int64_t d = q->d, terms = q->c * ((q->d > q->e ? q->d : q->e) + 2) + factors(x);
    for (int64_t i = 0; i < d; i++) {
        const number key = q->key[c * d + i], w = q->weight[c];
        wide h = 0, h_size = 0;
        for (int64_t j = 0; j < q->e; j++) {
            const wide y = x->value_width ? cross(x, c, j, i) : 0;
            const number s = x->value_width ? (number){y, fabsl(y)} : covariance(x, c, i, j);
            h += s.value * g[j];
            h_size += s.error * fabsl(g[j]);
        }
        add(&tilt[i], terms, b.value * key.value + w.value * h,
            fabsl(b.value) * q->key_size[c * d + i] + w.value * h_size,
            fabsl(key.value) * b.error + fabsl(b.value) * key.error + h_size * w.error);
    }
}

void oracle_backward(const oracle_mixture *x, const double *u, const double *dout, double dcgf,
                     int64_t terms, const oracle_gradients *g)
{
    query q;
    wide weights = 0;
    visit(&q, x, u);
    number *tilt = calloc((size_t)q.d + 1, sizeof *tilt);
    double *zeros = calloc((size_t)q.d + 1, sizeof *zeros);
    if (!tilt || !zeros)
        abort();
    for (int64_t c = 0; c < q.c; c++) {
        if (!is_live(x, c))
            continue;
        const number b = slope(&q, x, dout, dcgf, c);
        weights += q.weight[c].value;
        add_tilt(&q, x, dout, c, b, tilt);
        add_parameters(
            &(share){x, u, x->value_width ? zeros : dout, dout, c, terms, b, q.weight[c]}, g);
    }
    /* keys were centred: the slopes sum to dcgf */
    for (int64_t i = 0; i < q.d && weights > 0; i++)
        add(&tilt[i], 4, dcgf * q.centre[i], fabsl(dcgf * q.centre[i]), 0);
    if (g->tilt)
        memcpy(g->tilt, tilt, (size_t)q.d * sizeof *tilt);
    free(tilt);
    free(zeros);
    free(q.memory);
}
