/* SPDX-License-Identifier: BSD-2-Clause */
/* The two manifolds of minima of linear discriminant analysis: the Hessian's kernel on each, and
 * how gradient descent approaches them. */
#include "population.h"
#include "result.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { P = 9, EVERY = 50 }; /* U [3][2] and V [3]: the trained parameters */

typedef struct {
    const population *p;
    const double *parameter;
    result *r;
    int manifold;
    int64_t before, steps;
    double first, middle, last;
} path;

static int64_t index_of(const population *p, int64_t i)
{
    double base = 0;
    const parts a = parts_of(p, &base);
    return i < 6 ? i : a.value - &base + i - 6;
}

/* Eigenvalues of a symmetric matrix by Jacobi's rotations, ascending */
static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void rotate(double a[P][P], int i, int j)
{
    const double angle = atan2(2 * a[i][j], a[j][j] - a[i][i]) / 2, c = cos(angle), s = sin(angle);
    for (int k = 0; k < P; k++) {
        const double x = a[k][i], y = a[k][j];
        a[k][i] = c * x - s * y, a[k][j] = s * x + c * y;
    }
    for (int k = 0; k < P; k++) {
        const double x = a[i][k], y = a[j][k];
        a[i][k] = c * x - s * y, a[j][k] = s * x + c * y;
    }
}

static void eigenvalues(double a[P][P], double *value)
{
    for (int sweep = 0; sweep < 20; sweep++)
        for (int i = 0; i < P; i++)
            for (int j = i + 1; j < P; j++)
                if (a[i][j] != 0)
                    rotate(a, i, j);
    for (int i = 0; i < P; i++)
        value[i] = a[i][i];
    qsort(value, P, sizeof *value, ascending);
}

/* The start on a manifold: E1 (the gate does nothing, its slope is free), E2 (the gate is flat) */
static void start(const population *p, int manifold, double gate, double *w)
{
    const double b = log(1.5), one[6] = {1 / (2 * b), -1 / (2 * b), 0, 0, gate, gate};
    const double two[6] = {1, 0, 0, 1, -.5, .5};
    const double value[2][3] = {{2 * b, 0, -b}, {1, -1, b / .2 - 1}};
    const parts a = parts_of(p, w);
    memset(w, 0, (size_t)p->count * sizeof(double));
    memcpy(a.tilt, manifold ? two : one, sizeof one);
    memcpy(a.value, value[manifold], sizeof value[0]);
}

static void kernel_dimension(result *r, const settings *s, int manifold)
{
    population *p =
        labelled(2, 2, lda_share, lda_mean, lda_label, SATTN_LEARN_LOGISTIC, s->order);
    double w[16], direction[16], product[16], hessian[P][P], value[P];
    char what[80];
    start(p, manifold, 10, w);
    for (int i = 0; i < P; i++) {
        memset(direction, 0, sizeof direction);
        direction[index_of(p, i)] = 1;
        must(sattn_learn_hessian_f64(&p->learn, w, direction, product), "sattn_learn_hessian");
        for (int j = 0; j < P; j++)
            hessian[i][j] = product[index_of(p, j)];
    }
    eigenvalues(hessian, value);
    int flat = 0;
    result_series(r, manifold ? "at E2" : "at E1", "points");
    for (int i = 0; i < P; i++) {
        flat += fabs(value[i]) < 1e-9 * value[P - 1];
        result_point(r, i + 1, fmax(fabs(value[i]), 1e-18));
    }
    snprintf(what, sizeof what, "E%d: dimension of the Hessian's kernel", manifold + 1);
    result_number(r, what, flat, manifold ? 6 : 5, .5, "theory: 9 - (d + 2) and 4 + d, d = 2");
    snprintf(what, sizeof what, "E%d: excess risk at the point", manifold + 1);
    result_number(r, what, excess(p, w), 0, 1e-9, "theorem: 0");
    population_free(p);
}

/* Distance from E1 = {(w*, b*, 0, s)} or E2 = {(w*, b* - sigma(s0) r, r, 0)} of (w, b, r, s) */
static double distance(const population *p, const double *parameter, int manifold)
{
    double copy[16];
    memcpy(copy, parameter, (size_t)p->count * sizeof(double));
    const parts a = parts_of(p, copy);
    const double *u = a.tilt, *v = a.value, b = log(1.5);
    /* the library's U is U^T of the paper: rows of u are columns of U11; the last row is u12 */
    const double w0 = u[0] * v[0] + u[2] * v[1] - 1, w1 = u[1] * v[0] + u[3] * v[1] + 1;
    const double offset = v[1] - v[2] - b, gate = v[0] - v[1] + 2 * v[2];
    const double s0 = 2 * u[4] + u[0] - u[2], s1 = 2 * u[5] + u[1] - u[3];
    const double common = w0 * w0 + w1 * w1;
    if (manifold == 0)
        return sqrt(common + offset * offset + gate * gate);
    return sqrt(common + pow(offset + .6 * gate, 2) / 1.36 + s0 * s0 + s1 * s1);
}

static int32_t watch(void *context, int64_t step, double risk)
{
    path *t = context;
    t->last = distance(t->p, t->parameter, t->manifold);
    if (step == 0)
        t->first = t->last;
    if (step == t->steps / 2)
        t->middle = t->last;
    if (step % EVERY == 0)
        result_point(t->r, (double)step, t->last);
    progress(t->before + step + 1, risk);
    return 0;
}

static double approach(result *r, const settings *s, int manifold)
{
    population *p =
        labelled(2, 2, lda_share, lda_mean, lda_label, SATTN_LEARN_LOGISTIC, s->order);
    double w[16], noise[16];
    path context = {.p = p, .parameter = w, .r = r, .manifold = manifold, .steps = s->steps,
                    .before = (int64_t)manifold * s->steps};
    sattn_train t;
    start(p, manifold, 1, w);
    must(sattn_random_normal_f64(3, 0, 0, P, noise), "sattn_random_normal");
    for (int i = 0; i < P; i++)
        w[index_of(p, i)] += s->noise * noise[i];
    p->learn.threads = s->threads;
    must(sattn_train_init(&t, sizeof t, s->steps), "sattn_train_init");
    t.rate = s->rate, t.parameter = w, t.progress = watch, t.context = &context;
    result_series(r, manifold ? "to E2" : "to E1", "line");
    must(sattn_train_f64(&t, &p->learn), "sattn_train");
    char what[80];
    snprintf(what, sizeof what, "E%d: distance at the end", manifold + 1);
    result_number(r, what, context.last, NAN, 0, "");
    snprintf(what, sizeof what, "E%d: excess risk at the end", manifold + 1);
    result_number(r, what, excess(p, w), 0, 1e-7, "theorem: 0");
    population_free(p);
    return context.last / (manifold ? context.middle : context.first);
}

static int run(const settings *s)
{
    result *r = result_new(s);
    result_panel(r, "Eigenvalues of the Hessian", "number", "absolute value", "logy");
    kernel_dimension(r, s, 0);
    kernel_dimension(r, s, 1);
    result_panel(r, "Fig. 1: distance from the manifold", "step", "distance", "logy");
    progress_begin("kernel", 2 * (int64_t)s->steps);
    const double one = approach(r, s, 0), two = approach(r, s, 1);
    progress_end();
    result_number(r, "E1: distance at the end, of that at the start", one, 0, .1,
                  "Fig. 1: to 0");
    result_number(r, "E2: distance at the end, of that half way", two, 1, .05,
                  "Fig. 1: stays");
    result_note(r, "The paper's Fig. 1 has rate 1e-4 and noise 1e-6; rate, noise and number of "
                   "steps are ours, and the start near E1 has the gate u12 = (1, 1), so that the "
                   "contrast shows within seconds.");
    return result_end(r);
}

const experiment experiment_kernel = {
    .name = "kernel",
    .source = "arXiv 2610.11798, Fig. 1, Thm 3.5 and section B.8",
    .about = "Linear discriminant analysis in context has two manifolds of minima: E1, where the "
             "softmax gate is switched off, and E2, where it does not depend on the query. At E1 "
             "the Hessian is as degenerate as the manifold's dimension (kernel 5), so that "
             "gradient descent converges exponentially; at E2 it has more flat directions (kernel "
             "6): there the risk vanishes but the distance hardly falls.",
    .defaults = "order = 48\nsteps = 8000\nrate = 0.05\nnoise = 0.01\n",
    .brief = "order = 24\n",
    .run = run};
