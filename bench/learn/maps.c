/* SPDX-License-Identifier: BSD-2-Clause */
/* What predictors answer all over the plane. */
#include "population.h"
#include "result.h"

#include <math.h>

enum { REACH = 4 };

static double *grid_of(int64_t side)
{
    double *z = array(2 * side * side, sizeof(double));
    for (int64_t i = 0; i < side; i++)
        for (int64_t j = 0; j < side; j++) {
            z[2 * (i * side + j)] = REACH * (2 * (double)j / (double)(side - 1) - 1);
            z[2 * (i * side + j) + 1] = REACH * (2 * (double)i / (double)(side - 1) - 1);
        }
    return z;
}

static int64_t done;

static int32_t watch(void *context, int64_t step, double risk)
{
    (void)context, (void)step;
    progress(++done, risk);
    return 0;
}

/* Trains from a small identity (linear: a start without symmetries) and answers on the grid. */
static void train_and_answer(population *p, const settings *s, int32_t attention, const double *z,
                             double *answer)
{
    double w[16] = {0};
    const parts a = parts_of(p, w);
    a.tilt[0] = a.tilt[3] = .1, a.tilt[1] = attention == SATTN_LEARN_LINEAR ? .05 : 0;
    a.value[2] = 1, a.value[0] = attention == SATTN_LEARN_LINEAR ? .1 : 0;
    sattn_learn l = p->learn;
    l.attention = attention, l.threads = s->threads;
    sattn_train t;
    must(sattn_train_init(&t, sizeof t, s->steps), "sattn_train_init");
    t.rate = s->rate, t.parameter = w, t.progress = watch;
    must(sattn_train_f64(&t, &l), "sattn_train");
    l.queries = (int64_t)s->grid * s->grid, l.input = z, l.weight = NULL;
    must(sattn_learn_predict_f64(&l, w, answer), "sattn_learn_predict");
}

static void panel(result *r, const settings *s, const char *title, const double *answer)
{
    result_panel(r, title, "", "", "linear");
    result_map(r, -REACH, REACH, -REACH, REACH, s->grid, s->grid, answer);
    result_series(r, "", "points grey");
    for (int c = 0; c < 4; c++)
        result_point(r, xor_mean[2 * c], xor_mean[2 * c + 1]);
}

static int run(const settings *s)
{
    result *r = result_new(s);
    const int64_t n = (int64_t)s->grid * s->grid;
    population *p = labelled(4, 2, quarter, xor_mean, xor_label, SATTN_LEARN_SQUARED, 48);
    double *z = grid_of(s->grid), *bayes = array(n, sizeof(double));
    double *soft = array(n, sizeof(double)), *linear = array(n, sizeof(double));
    double apart = 0, most = 0, answer = 0;
    progress_begin("maps", 2 * (int64_t)s->steps);
    must(sattn_task_bayes_f64(&p->task, n, z, bayes, NULL), "sattn_task_bayes");
    train_and_answer(p, s, SATTN_LEARN_SOFTMAX, z, soft);
    train_and_answer(p, s, SATTN_LEARN_LINEAR, z, linear);
    progress_end();
    panel(r, s, "Bayes: E[y | z] for XOR", bayes);
    panel(r, s, "softmax attention, trained", soft);
    panel(r, s, "linear attention, trained", linear);
    for (int64_t i = 0; i < n; i++) {
        /* tanh (a z1) tanh (a z2) is this posterior mean: a second way to it */
        const double formula = tanh(1.5 * z[2 * i]) * tanh(1.5 * z[2 * i + 1]);
        answer = fmax(answer, fabs(formula - bayes[i]));
        apart = fmax(apart, fabs(soft[i] - bayes[i]));
        most = fmax(most, fabs(linear[i]));
    }
    result_number(r, "Bayes beside tanh(1.5 z1) tanh(1.5 z2), largest difference", answer, 0, 1e-12,
                  "exact");
    result_number(r, "softmax beside Bayes, largest difference on the map", apart, 0, .02,
                  "theorem: 0");
    result_number(r, "linear attention, largest answer", most, 0, 1e-3, "exact: 0 everywhere");
    population_free(p);
    double *const arrays[] = {z, bayes, soft, linear};
    for (int i = 0; i < 4; i++)
        sattn_free(arrays[i]);
    return result_end(r);
}

const experiment experiment_maps = {
    .name = "maps",
    .source = "decision maps for the setting of arXiv 2610.11798, section 3, with four clusters",
    .about = "Four clusters at the corners of a square, opposite corners of one class (XOR). The "
             "map shows the answer for every query of the plane: softmax attention learns Bayes's "
             "tanh(a z1) tanh(a z2), linear attention can answer nothing but 0.",
    .defaults = "steps = 1000\nrate = 0.1\ngrid = 121\n",
    .run = run};
