/* SPDX-License-Identifier: BSD-2-Clause */
/* Four trainings without random numbers: gradient descent on population risks, whose curves are
 * known to ten digits. */
#include "population.h"
#include "result.h"

#include <math.h>
#include <stdio.h>

enum { CURVES = 4, MARKS = 7 };

static const int32_t mark[MARKS] = {0, 1, 10, 100, 1000, 3000, 10000};

static population *d1(double *w)
{
    population *p = denoising(4, quarter, square, .25, 1, 1, 48);
    p->learn.trained = SATTN_LEARN_TILT | SATTN_LEARN_VALUE | SATTN_LEARN_SKIP;
    const parts a = parts_of(p, w);
    a.tilt[0] = a.tilt[3] = .1;
    a.value[0] = a.value[3] = .5;
    return p;
}

static population *d2(double *w)
{
    population *p = labelled(4, 2, quarter, xor_mean, xor_label, SATTN_LEARN_SQUARED, 48);
    const parts a = parts_of(p, w);
    a.tilt[0] = a.tilt[3] = .1;
    a.value[2] = 1;
    return p;
}

static population *d3(double *w)
{
    population *p = labelled(2, 2, lda_share, lda_mean, lda_label, SATTN_LEARN_LOGISTIC, 48);
    const parts a = parts_of(p, w);
    a.value[0] = a.value[1] = 1;
    return p;
}

static population *d4(double *w)
{
    population *p = denoising(2, half, corner, 1, 4, 2, 48);
    p->learn.trained = SATTN_LEARN_TILT | SATTN_LEARN_VALUE;
    const parts a = parts_of(p, w);
    a.tilt[0] = a.tilt[3] = a.tilt[4] = a.tilt[7] = .1;
    a.value[0] = a.value[7] = .5;
    return p;
}

static const struct {
    const char *name;
    population *(*make)(double *w);
    double rate, clip, want[MARKS]; /* 0: below what rounding leaves */
} curve[CURVES] = {
    {"D1: denoising a square, residual head", d1, .003, 0,
     {6.056061783e0, 2.797043745e0, 2.507810784e-1, 1.355108675e-1, 1.820843902e-2, 3.650180608e-3,
      3.545087378e-4}},
    {"D2: classifying XOR", d2, .1, 0,
     {5.549238561e-1, 4.140192184e-1, 2.631672324e-2, 3.108320169e-3, 2.865659971e-7,
      3.105127e-15, 0}},
    {"D3: LDA, C1, logistic", d3, .1, 0,
     {2.345654117e-1, 2.120807185e-1, 9.934347979e-2, 1.185779984e-2, 4.326874331e-5,
      1.387931121e-5, 5.033817563e-6}},
    {"D4: denoising Fig. 2, two heads", d4, .002, 10,
     {6.000908020e-1, 3.913819279e-1, 1.915515512e-1, 4.665294290e-2, 3.248985500e-3,
      6.131042316e-4, 4.446607555e-5}},
};

typedef struct {
    int64_t before;
} place;

static int32_t watch(void *context, int64_t step, double risk)
{
    progress(((const place *)context)->before + step + 1, risk);
    return 0;
}

/* Ten-digit references: 1e-8 of themselves over the first 1000 steps, looser beyond and where the
 * least risk that is taken off leaves only some digits. */
static double tolerance(double want, int i, double least)
{
    return want * (mark[i] <= 1000 ? 1e-8 : 1e-6) + (mark[i] <= 1000 ? 0 : 1e-14 * (1 + least));
}

static void one(result *r, const settings *s, int i)
{
    double w[32] = {0}, *trace = array(s->steps, sizeof(double));
    population *p = curve[i].make(w);
    sattn_train t;
    place at = {(int64_t)i * s->steps};
    must(sattn_train_init(&t, sizeof t, s->steps), "sattn_train_init");
    p->learn.threads = s->threads;
    t.rate = curve[i].rate, t.clip = curve[i].clip;
    t.parameter = w, t.trace = trace, t.progress = watch, t.context = &at;
    must(sattn_train_f64(&t, &p->learn), "sattn_train");
    for (int m = 0; m < MARKS && mark[m] < s->steps; m++) {
        char what[100];
        const double want = curve[i].want[m] > 0 ? curve[i].want[m] : NAN;
        snprintf(what, sizeof what, "%s: excess at step %d", curve[i].name, (int)mark[m]);
        result_number(r, what, trace[mark[m]] - p->least, want,
                      want > 1e-10 ? tolerance(want, m, p->least) : 0, "own, ten digits");
    }
    result_series(r, curve[i].name, "line");
    for (double x = 0; x < s->steps; x = floor(fmax(x + 1, 1.03 * x)))
        if (trace[(int64_t)x] - p->least > 1e-16)
            result_point(r, x + 1, trace[(int64_t)x] - p->least);
    population_free(p);
    sattn_free(trace);
}

static int run(const settings *s)
{
    result *r = result_new(s);
    result_panel(r, "Gradient descent on the population risk", "step + 1", "excess risk", "loglog");
    progress_begin("descent", (int64_t)CURVES * s->steps);
    for (int i = 0; i < CURVES; i++)
        one(r, s, i);
    progress_end();
    result_note(r, "References: an independent program in another language, same quadrature. The "
                   "paper's Fig. 2 has the setting of D4 with fresh draws.");
    return result_end(r);
}

const experiment experiment_descent = {
    .name = "descent",
    .source = "settings of arXiv 2610.11798, sections 3 and 4 (D4: Fig. 2), without random numbers",
    .about = "Gradient descent on exact population risks finds the Bayes predictor: exponentially "
             "where the minimum is regular (XOR), slowly along the flat directions of a manifold "
             "of minima (LDA). Four deterministic curves, so that a program can be held against "
             "them to ten digits: D1 a residual head on a square of clusters, D2 XOR, D3 LDA with "
             "unequal classes, D4 two heads on the mixture of Fig. 2.",
    .defaults = "steps = 10001\n",
    .run = run};
