/* SPDX-License-Identifier: BSD-2-Clause */
/* Risks that are known exactly, and weights that the theory says are optimal. */
#include "population.h"
#include "result.h"

#include <math.h>
#include <string.h>

static const char exact_number[] = "exact", theorem[] = "theorem: 0";
static const double near = 1e-9, zero = 1e-24; /* squared distances: 1e-12 each */

static double normal_cdf(double x)
{
    return erfc(-x / sqrt(2)) / 2;
}

static double best(const population *p, int affine)
{
    double risk;
    must(sattn_task_affine_f64(&p->task, affine, NULL, NULL, &risk), "sattn_task_affine");
    return risk;
}

static void bars(result *r, const char *title, const population *p)
{
    result_panel(r, title, "risk", "", "linear");
    result_series(r, "Bayes", "bars best");
    result_point(r, 0, p->bayes);
    result_series(r, "best affine", "bars grey");
    result_point(r, 1, best(p, 1));
    result_series(r, "best linear", "bars linear");
    result_point(r, 2, best(p, 0));
}

static void denoising_risks(result *r, int64_t order)
{
    population *p = denoising(2, half, corner, 1, 4, 1, order);
    result_number(r, "Fig. 2 mixture: Bayes risk", p->bayes, 2.990055219850, near, exact_number);
    result_number(r, "Fig. 2 mixture: best linear", best(p, 0), 4.631578947368, near, exact_number);
    result_number(r, "Fig. 2 mixture: best affine", best(p, 1), 3.115789473684, near, exact_number);
    result_number(r, "Fig. 2 mixture: % below the best linear", 100 * (1 - p->bayes / best(p, 0)),
                  35.44, .005, exact_number);
    bars(r, "Denoising, the mixture of Fig. 2", p);
    population_free(p);
    p = denoising(4, quarter, square, .25, 1, 1, 0);
    result_number(r, "square of 4 clusters: Bayes risk", p->bayes, 0.578424991524, near,
                  exact_number);
    result_number(r, "square of 4 clusters: best linear", best(p, 0), 1.783783783784, near,
                  exact_number);
    result_number(r, "square of 4 clusters: best affine", best(p, 1), 1.783783783784, near,
                  exact_number);
    result_number(r, "square of 4 clusters: % below both", 100 * (1 - p->bayes / best(p, 0)),
                  67.57, .005, exact_number);
    bars(r, "Denoising, a square of 4 clusters", p);
    population_free(p);
}

/* The best w.x for the logistic loss, by Newton's method on the skip of a model without heads */
static double best_linear(const population *p, double w[2])
{
    sattn_learn l = p->learn;
    double k[3] = {0}, g[3], a[3], b[3], risk;
    l.heads = 0, l.trained = SATTN_LEARN_SKIP;
    for (int step = 0; step < 20; step++) {
        const double e1[3] = {1, 0, 0}, e2[3] = {0, 1, 0};
        must(sattn_learn_risk_f64(&l, k, &risk, g, NULL), "sattn_learn_risk");
        must(sattn_learn_hessian_f64(&l, k, e1, a), "sattn_learn_hessian");
        must(sattn_learn_hessian_f64(&l, k, e2, b), "sattn_learn_hessian");
        const double determinant = a[0] * b[1] - a[1] * b[0];
        k[0] -= (b[1] * g[0] - b[0] * g[1]) / determinant;
        k[1] -= (a[0] * g[1] - a[1] * g[0]) / determinant;
    }
    must(sattn_learn_risk_f64(&l, k, &risk, NULL, NULL), "sattn_learn_risk");
    w[0] = k[0], w[1] = k[1];
    return risk;
}

static void classification_risks(result *r, int64_t order)
{
    population *p =
        labelled(2, 2, lda_share, lda_mean, lda_label, SATTN_LEARN_LOGISTIC, order);
    double w[2];
    const double risk = best_linear(p, w), length = hypot(w[0], w[1]), b = log(1.5), root = sqrt(2);
    result_number(r, "LDA, C1: Bayes risk", p->least, 0.478696275812, near, exact_number);
    result_number(r, "LDA, C1: Bayes error",
                  .6 * normal_cdf(-(1 + b) / root) + .4 * normal_cdf(-(1 - b) / root), 0.230932746,
                  near, exact_number);
    result_number(r, "LDA, C1: best linear attention, risk", risk, 0.487439892846, near,
                  exact_number);
    result_number(r, "LDA, C1: best linear attention, error",
                  .6 * normal_cdf(-w[0] / length) + .4 * normal_cdf(w[1] / length), 0.236806, 1e-6,
                  exact_number);
    population_free(p);
    static const double line[2] = {1, -1}; /* what matters of the 20 dimensions */
    p = labelled(2, 1, half, line, lda_label, SATTN_LEARN_LOGISTIC, 96);
    result_number(r, "LDA, C2: Bayes risk", p->least, 0.356316360213, near, exact_number);
    population_free(p);
    p = labelled(4, 2, quarter, xor_mean, xor_label, SATTN_LEARN_SQUARED, 0);
    result_number(r, "XOR: Bayes risk", p->bayes, 0.355580399725, near, exact_number);
    result_number(r, "XOR: best affine risk", best(p, 1), 1, near, exact_number);
    bars(r, "Classifying XOR", p);
    population_free(p);
}

/* Theorem 4.1 on the mixture of Fig. 2: U_i = g / (n s) I + (n - g) / (n s) m_j D' / <m_j, D>,
 * V_i m_i = n / s m_i, V_i m_j = 0, for m = (3, 0), (0, 3) and D their difference */
static double two_heads(double g, double n, int64_t order)
{
    population *p = denoising(2, half, corner, g, n, 2, order);
    double *w = array(p->count, sizeof(double));
    const parts a = parts_of(p, w);
    const double s = g + n;
    for (int64_t i = 0; i < 2; i++) {
        const int64_t j = 1 - i;
        double *u = a.tilt + 4 * i;
        u[0] = u[3] = g / (n * s);
        /* row j of m_j D' / <m_j, D> is D / D_j: 1 at j, -1 at i */
        u[j * 2 + j] += (n - g) / (n * s);
        u[j * 2 + i] -= (n - g) / (n * s);
        a.value[4 * i + i * 3] = n / s;
    }
    const double apart = excess(p, w);
    sattn_free(w);
    population_free(p);
    return apart;
}

/* One head U = I / s, V = v I, skip k I */
static double one_head(population *p, double s, double v, double k)
{
    double *w = array(p->count, sizeof(double));
    const parts a = parts_of(p, w);
    a.tilt[0] = a.tilt[3] = 1 / s;
    a.value[0] = a.value[3] = v;
    a.skip[0] = a.skip[3] = k;
    const double apart = excess(p, w);
    sattn_free(w);
    population_free(p);
    return apart;
}

/* Lemma B.3 for C1: U11 = I, u12 = -D / 2, v21 = w*, v22 = (b* - v21.mbar) / (2 pi - 1) */
static double lda_weights(int64_t order)
{
    population *p =
        labelled(2, 2, lda_share, lda_mean, lda_label, SATTN_LEARN_LOGISTIC, order);
    double *w = array(p->count, sizeof(double));
    const parts a = parts_of(p, w);
    const double tilt[6] = {1, 0, 0, 1, -.5, .5}, value[3] = {1, -1, (log(1.5) - .2) / .2};
    memcpy(a.tilt, tilt, sizeof tilt);
    memcpy(a.value, value, sizeof value);
    const double apart = excess(p, w);
    sattn_free(w);
    population_free(p);
    return apart;
}

static int run(const settings *s)
{
    result *r = result_new(s);
    const int64_t order = s->order;
    denoising_risks(r, order);
    classification_risks(r, order);
    result_number(r, "Thm 4.1, two heads on Fig. 2: excess risk", two_heads(1, 4, order), 0, zero,
                  theorem);
    result_number(r, "Prop. C.3, clusters of points, two heads: excess risk",
                  two_heads(0, 4, order), 0, zero, theorem);
    result_number(r, "Thm 4.1, one head, variance = noise: excess risk",
                  one_head(denoising(2, half, corner, 2, 2, 1, order), 4, .5, 0), 0, zero, theorem);
    result_number(r, "Prop. 4.4, residual head on the square: excess risk",
                  one_head(denoising(4, quarter, square, .25, 1, 1, 0), 1.25, .8, -.6), 0, zero,
                  theorem);
    result_number(r, "Lemma B.3, LDA C1: excess risk", lda_weights(order), 0, 1e-14, theorem);
    return result_end(r);
}

const experiment experiment_exact = {
    .name = "exact",
    .source = "arXiv 2610.11798: Theorem 4.1, Propositions C.3 and 4.4, Lemma B.3, the mixtures of "
              "Tables 1-3 and Fig. 2; exact risks by quadrature",
    .about = "What can be known without training. The risk of the Bayes predictor, of the best "
             "linear predictor (all that linear attention of any depth can be on one task) and of "
             "the best affine one; and weights for softmax attention that the theorems say are "
             "exactly Bayes: their risk beyond Bayes is 0 up to rounding.",
    .defaults = "order = 64\n",
    .run = run};
