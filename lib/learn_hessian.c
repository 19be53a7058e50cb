/* SPDX-License-Identifier: BSD-2-Clause */
/* Hessian-vector products: the gradient's computation differentiated along a direction, which `d`
 * of a name means below. With values x_c = m_c + S_c u of the components, weights w_c, deviations
 * under the weights written ~, and for a fixed g = V' loss':
 *   H(u) g  = sum w_c [ b~_c x_c + S_c g ],        b_c = x_c.g      (the tilt's gradient)
 *   dy      = H(u) du,                             a_c = x_c.du
 *   d(H g)  = H dg + sum w_c [ a~_c (b~_c x_c + S_c g) + (s_c - s) x_c + b~_c S_c du ],
 *             s_c = g'S_c du,  s = sum w_c (s_c + a~_c b_c)
 * One query at a time, in double. */
#include "check.h"
#include "learn.h"
#include "par.h"

#include <math.h>
#include <string.h>

typedef struct {
    sattn_learn_job job;
    const double *parameter, *direction;
    double *parts, *scratch;
    int64_t scratch_size;
} pass;

/* A query's arrays. Of all heads: w [H][C]; x, S du [H][C][D]; y, dy [H][D]. The rest serves one
 * head after the other. */
typedef struct {
    double *w, *x, *su, *y, *dy, *u, *du, *g, *dg, *sum, *sg, *f, *slope, *curvature;
} arrays;

static int64_t scratch_size(const sattn_learn *p)
{
    const int64_t d = p->width;
    return p->heads * (p->components * (1 + 2 * d) + 2 * d) + 6 * d + 3 * p->output_width;
}

static arrays place(const pass *s, int32_t thread)
{
    const sattn_learn *p = &s->job.p;
    const int64_t d = p->width, hc = p->heads * p->components;
    arrays a = {.w = s->scratch + thread * s->scratch_size};
    a.x = a.w + hc;
    a.su = a.x + hc * d;
    a.y = a.su + hc * d;
    a.dy = a.y + p->heads * d;
    a.u = a.dy + p->heads * d;
    a.du = a.u + d;
    a.g = a.du + d;
    a.dg = a.g + d;
    a.sum = a.dg + d;
    a.sg = a.sum + d;
    a.f = a.sg + d;
    a.slope = a.f + p->output_width;
    a.curvature = a.slope + p->output_width;
    return a;
}

static double dot(int64_t n, const double *x, const double *y)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += x[i] * y[i];
    return sum;
}

static void add(int64_t n, double scale, const double *x, double *y)
{
    for (int64_t i = 0; i < n; i++)
        y[i] += scale * x[i];
}

/* y = M x + c of rows x columns; turned: M is columns x rows and y = M' x + c. NULL c = 0 */
static void map(int64_t rows, int64_t columns, const double *m, int turned, const double *x,
                const double *c, double *y)
{
    for (int64_t i = 0; i < rows; i++) {
        double sum = c ? c[i] : 0;
        for (int64_t j = 0; j < columns; j++)
            sum += (turned ? m[j * rows + i] : m[i * columns + j]) * x[j];
        y[i] = sum;
    }
}

static void add_outer(int64_t rows, int64_t columns, const double *x, const double *y, double *m)
{
    for (int64_t i = 0; i < rows; i++)
        add(columns, x[i], y, m + i * columns);
}

/* y = S_c x of a component of the task */
static void spread(const sattn_learn_job *job, const double *covariance, const double *x, double *y)
{
    const int64_t d = job->p.width;
    if (job->p.covariance_kind == SATTN_COVARIANCE_FULL)
        map(d, d, covariance, 0, x, NULL, y);
    else
        for (int64_t i = 0; i < d; i++)
            y[i] = job->p.covariance_kind == SATTN_COVARIANCE_DIAG ? covariance[i] * x[i] : 0;
}

static const double *covariance_of(const sattn_learn_job *job, int64_t component)
{
    return job->covariance_width ? job->p.covariance + component * job->covariance_width : NULL;
}

/* w, x and S du of the head's components at the tilt u moving by du; y and dy */
static void attend(const pass *s, const arrays *a, int64_t task, int64_t h)
{
    const sattn_learn *p = &s->job.p;
    const int64_t d = p->width, n = p->components, first = p->shared ? 0 : task * n;
    double *w = a->w + h * n, *x = a->x + h * n * d, *su = a->su + h * n * d;
    double *y = a->y + h * d, *dy = a->dy + h * d, most = -(double)INFINITY, sum = 0, mean = 0;
    for (int64_t c = 0; c < n; c++, x += d, su += d) {
        w[c] = p->log_weight[first + c];
        if (w[c] == -(double)INFINITY)
            continue;
        const double *m = p->mean + (first + c) * d, *cov = covariance_of(&s->job, first + c);
        spread(&s->job, cov, a->u, x);
        w[c] += dot(d, m, a->u) + dot(d, x, a->u) / 2;
        add(d, 1, m, x);
        spread(&s->job, cov, a->du, su);
        most = w[c] > most || isnan(w[c]) ? w[c] : most;
    }
    for (int64_t c = 0; c < n; c++)
        sum += w[c] = w[c] == -(double)INFINITY ? 0 : exp(w[c] - most);
    memset(y, 0, (size_t)d * sizeof(double));
    memset(dy, 0, (size_t)d * sizeof(double));
    x = a->x + h * n * d, su = a->su + h * n * d;
    for (int64_t c = 0; c < n; c++)
        if (w[c] != 0) {
            w[c] /= sum;
            add(d, w[c], x + c * d, y);
            mean += w[c] * dot(d, x + c * d, a->du);
        }
    for (int64_t c = 0; c < n; c++)
        if (w[c] != 0) {
            add(d, w[c] * (dot(d, x + c * d, a->du) - mean), x + c * d, dy);
            add(d, w[c], su + c * d, dy);
        }
}

/* sum = d(H g), from g, dg, du and what attend left of the head */
static void bend(const pass *s, const arrays *a, int64_t task, int64_t h)
{
    const sattn_learn *p = &s->job.p;
    const int64_t d = p->width, n = p->components, first = p->shared ? 0 : task * n;
    const double *w = a->w + h * n, *x = a->x + h * n * d, *su = a->su + h * n * d;
    double means[4] = {0}; /* of a, b, x.dg, and s */
    for (int64_t c = 0; c < n; c++)
        if (w[c] != 0) {
            means[0] += w[c] * dot(d, x + c * d, a->du);
            means[1] += w[c] * dot(d, x + c * d, a->g);
            means[2] += w[c] * dot(d, x + c * d, a->dg);
        }
    for (int64_t c = 0; c < n; c++)
        if (w[c] != 0)
            means[3] += w[c] * (dot(d, su + c * d, a->g) +
                                (dot(d, x + c * d, a->du) - means[0]) * dot(d, x + c * d, a->g));
    memset(a->sum, 0, (size_t)d * sizeof(double));
    for (int64_t c = 0; c < n; c++) {
        if (w[c] == 0)
            continue;
        const double alpha = dot(d, x + c * d, a->du) - means[0],
                     beta = dot(d, x + c * d, a->g) - means[1],
                     gamma =
                         dot(d, x + c * d, a->dg) - means[2] + dot(d, su + c * d, a->g) - means[3];
        add(d, w[c] * (alpha * beta + gamma), x + c * d, a->sum);
        add(d, w[c] * beta, su + c * d, a->sum);
        spread(&s->job, covariance_of(&s->job, first + c), a->g, a->sg);
        add(d, w[c] * alpha, a->sg, a->sum);
        spread(&s->job, covariance_of(&s->job, first + c), a->dg, a->sg);
        add(d, w[c], a->sg, a->sum);
    }
}

static void query(const pass *s, const arrays *a, int64_t task, int64_t q, double *out)
{
    const sattn_learn *p = &s->job.p;
    const int64_t d = p->width, n = p->input_width, e = p->output_width, *part = s->job.part;
    const double *z = p->input + q * n, *at = s->parameter, *along = s->direction;
    map(e, n, at + part[SKIP], 0, z, at + part[BIAS], a->f);
    map(e, n, along + part[SKIP], 0, z, along + part[BIAS], a->curvature);
    for (int64_t h = 0; h < p->heads; h++) {
        const int64_t tilt = part[TILT] + h * d * n, value = part[VALUE] + h * e * d;
        map(d, n, at + tilt, 0, z, at + part[TILT_BIAS] + h * d, a->u);
        map(d, n, along + tilt, 0, z, along + part[TILT_BIAS] + h * d, a->du);
        attend(s, a, task, h);
        map(e, d, at + value, 0, a->y + h * d, a->f, a->f);
        map(e, d, along + value, 0, a->y + h * d, a->curvature, a->curvature);
        map(e, d, at + value, 0, a->dy + h * d, a->curvature, a->curvature);
    }
    sattn_learn_loss(&s->job, q, a->f, a->slope, a->curvature);
    for (int64_t h = 0; h < p->heads; h++) {
        const int64_t tilt = part[TILT] + h * d * n, value = part[VALUE] + h * e * d;
        map(d, n, along + tilt, 0, z, along + part[TILT_BIAS] + h * d, a->du);
        map(d, e, at + value, 1, a->slope, NULL, a->g);
        map(d, e, along + value, 1, a->slope, NULL, a->dg);
        map(d, e, at + value, 1, a->curvature, a->dg, a->dg);
        bend(s, a, task, h);
        add_outer(d, n, a->sum, z, out + tilt);
        add(d, 1, a->sum, out + part[TILT_BIAS] + h * d);
        add_outer(e, d, a->curvature, a->y + h * d, out + value);
        add_outer(e, d, a->slope, a->dy + h * d, out + value);
    }
    add_outer(e, n, a->curvature, z, out + part[SKIP]);
    add(e, 1, a->curvature, out + part[BIAS]);
}

static void block(void *context, int64_t number, int32_t thread)
{
    const pass *s = context;
    const sattn_learn_run run = sattn_learn_block(&s->job, number);
    const arrays a = place(s, thread);
    double *out = s->parts + number * s->job.part[PARTS];
    memset(out, 0, (size_t)s->job.part[PARTS] * sizeof(double));
    for (int64_t q = run.first; q < run.first + run.count; q++)
        query(s, &a, q / s->job.p.queries, q, out);
}

int32_t sattn_learn_hessian_f64(const sattn_learn *given, const double *parameter,
                                const double *direction, double *product)
{
    pass s = {.parameter = parameter};
    int32_t inner, status = sattn_learn_begin(&s.job, given, 1);
    if (status != SATTN_OK)
        return status;
    const int64_t count = s.job.part[PARTS];
    const int32_t threads = sattn_learn_threads(&s.job, &inner);
    status = SATTN_ENULL;
    if (count > 0 && (!parameter || !direction || !product))
        goto end;
    s.scratch_size = scratch_size(&s.job.p);
    double *along = sattn_alloc((count + s.job.blocks * count + threads * s.scratch_size) *
                                (int64_t)sizeof(double));
    status = SATTN_ENOMEM;
    if (!along)
        goto end;
    for (int i = 0; i < PARTS; i++)
        for (int64_t j = s.job.part[i]; j < s.job.part[i + 1]; j++)
            along[j] = s.job.p.trained >> i & 1 ? direction[j] : 0;
    s.direction = along;
    s.parts = along + count;
    s.scratch = s.parts + s.job.blocks * count;
    sattn_par_for(s.job.blocks, threads, block, &s);
    sattn_learn_sum(&s.job, s.parts, product);
    sattn_free(along);
    status = SATTN_OK;
end:
    sattn_learn_end(&s.job);
    return status;
}
