/* SPDX-License-Identifier: BSD-2-Clause */
/* How fast attention over L tokens comes near its limit: measured, and in closed form. */
#include "result.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { C = 3, D = 4, QUERIES = 3, SEED = 12, BLOCK = 1 << 20, RANDOM = 64, LENGTHS = 32 };

typedef struct {
    double log_weight[C], mean[C * D], variance[C * D], covariance[C * D * D], value[C * D];
    double tilt[QUERIES * D];
} setting_of;

static void make(setting_of *m)
{
    memset(m, 0, sizeof *m);
    must(sattn_random_normal_f64(SEED, 1, 0, C * D, m->mean), "sattn_random_normal");
    must(sattn_random_uniform_f64(SEED, 2, 0, C * D, m->variance), "sattn_random_uniform");
    must(sattn_random_normal_f64(SEED, 3, 0, QUERIES * D, m->tilt), "sattn_random_normal");
    for (int c = 0; c < C; c++) {
        m->log_weight[c] = log((c + 1.) / 6);
        for (int i = 0; i < D; i++)
            m->covariance[(c * D + i) * D + i] = m->variance[c * D + i] *= .75;
    }
    for (int q = 0; q < QUERIES; q++) {
        double length = 0;
        for (int i = 0; i < D; i++)
            length += m->tilt[q * D + i] * m->tilt[q * D + i];
        for (int i = 0; i < D; i++)
            m->tilt[q * D + i] *= .5 * (q + 1) / sqrt(length);
    }
}

static sattn_mixture limit_of(const setting_of *m, double *out)
{
    sattn_mixture p;
    must(sattn_mixture_init(&p, sizeof p, 1, QUERIES, C, D, 0, SATTN_COVARIANCE_DIAG),
         "sattn_mixture_init");
    p.tilt = m->tilt, p.log_weight = m->log_weight, p.mean = m->mean, p.covariance = m->variance;
    p.out = out;
    must(sattn_mixture_forward_f64(&p), "sattn_mixture_forward");
    return p;
}

/* Attention over `prompts` prompts of `length` tokens each, [prompts][queries][width] */
static void attend(const double *token, int64_t prompts, int64_t length, int64_t width,
                   const double *tilt, int64_t tilt_batch, int64_t queries, int32_t threads,
                   double *out)
{
    sattn_mixture p;
    double *zeros = array(length, sizeof(double));
    must(sattn_mixture_init(&p, sizeof p, prompts, queries, length, width, 0,
                            SATTN_COVARIANCE_ZERO),
         "sattn_mixture_init");
    p.tilt = tilt, p.tilt_batch = tilt_batch, p.mean = token, p.threads = threads;
    p.log_weight = zeros, p.log_weight_batch = 0, p.out = out;
    must(sattn_mixture_forward_f64(&p), "sattn_mixture_forward");
    sattn_free(zeros);
}

/* E |o_L - o|^2 of every query over so many prompts, drawn in blocks */
static void measure(const setting_of *m, const double *limit, int64_t length, int64_t prompts,
                    int32_t threads, double *square)
{
    sattn_task task;
    must(sattn_task_init(&task, sizeof task, C, D, D), "sattn_task_init");
    task.log_weight = m->log_weight, task.mean = m->mean, task.covariance = m->covariance;
    task.value_mean = m->value;
    const int64_t each = BLOCK / length > 1 ? BLOCK / length : 1;
    double *token = array(each * length * D, sizeof(double));
    double *out = array(each * QUERIES * D, sizeof(double));
    memset(square, 0, QUERIES * sizeof *square);
    for (int64_t first = 0; first < prompts; first += each) {
        const int64_t now = prompts - first < each ? prompts - first : each;
        must(sattn_task_draw_f64(&task, SEED, (uint64_t)length, first * length, now * length, token,
                                 NULL),
             "sattn_task_draw");
        attend(token, now, length, D, m->tilt, 0, QUERIES, threads, out);
        for (int64_t i = 0; i < now * QUERIES * D; i++)
            square[i / D % QUERIES] += pow(out[i] - limit[i % (QUERIES * D)], 2) / (double)prompts;
    }
    sattn_free(token);
    sattn_free(out);
}

/* Slope of log y against log x by least squares */
static double slope(int n, const double *x, const double *y)
{
    double mx = 0, my = 0, xy = 0, xx = 0;
    for (int i = 0; i < n; i++)
        mx += log(x[i]) / n, my += log(y[i]) / n;
    for (int i = 0; i < n; i++) {
        xy += (log(x[i]) - mx) * (log(y[i]) - my);
        xx += (log(x[i]) - mx) * (log(x[i]) - mx);
    }
    return xy / xx;
}

static void fixed_queries(result *r, const settings *s)
{
    setting_of m;
    double limit[QUERIES * D], theory[QUERIES], length[LENGTHS], square[QUERIES][LENGTHS];
    double constant[QUERIES] = {0};
    int n = 0;
    char what[100];
    make(&m);
    sattn_mixture p = limit_of(&m, limit);
    must(sattn_prompt_error_f64(&p, NULL, D, theory, NULL, NULL), "sattn_prompt_error");
    for (int64_t l = 64; l <= s->tokens; l *= 4, n++) {
        const int64_t prompts = l > 4096 ? s->queries * 4096 / l + 1 : s->queries;
        double at[QUERIES];
        measure(&m, limit, l, prompts, s->threads, at);
        length[n] = (double)l;
        for (int q = 0; q < QUERIES; q++) {
            square[q][n] = at[q];
            constant[q] = l <= 4096 ? (double)l * at[q] : constant[q];
        }
        progress(n + 1, at[0]);
    }
    result_panel(r, "Fixed queries", "tokens L", "E |o_L - o|^2", "loglog");
    for (int q = 0; q < QUERIES; q++) {
        snprintf(what, sizeof what, "u of length %g", .5 * (q + 1));
        result_series(r, what, "points");
        for (int i = 0; i < n; i++)
            result_point(r, length[i], square[q][i]);
        result_series(r, q ? "" : "closed form", "dashed grey");
        for (int i = 0; i < n; i++)
            result_point(r, length[i], theory[q] / length[i]);
        snprintf(what, sizeof what, "u of length %g: L times the squared error, L at most 4096",
                 .5 * (q + 1));
        result_number(r, what, constant[q], theory[q], .03 * theory[q], "closed form, 3 %");
        snprintf(what, sizeof what, "u of length %g: slope of the error", .5 * (q + 1));
        result_number(r, what, slope(n, length, square[q]), -1, .05, "theory: -1");
    }
}

/* Tokens N(0, 1) and queries N(0, tau^2) on the line, where the limit is u itself */
static double random_queries(const settings *s, double tau, int64_t l, int64_t prompts)
{
    double *token = array(l, sizeof(double)), u[RANDOM], out[RANDOM], sum = 0;
    for (int64_t i = 0; i < prompts; i++) {
        const uint64_t keys = 100 + (uint64_t)l, queries = keys + 1;
        must(sattn_random_normal_f64(SEED, keys, i * l, l, token), "sattn_random_normal");
        must(sattn_random_normal_f64(SEED, queries, i * RANDOM, RANDOM, u), "sattn_random_normal");
        for (int q = 0; q < RANDOM; q++)
            u[q] *= tau;
        attend(token, 1, l, 1, u, 0, RANDOM, s->threads, out);
        for (int q = 0; q < RANDOM; q++)
            sum += pow(out[q] - u[q], 2) / (double)(prompts * RANDOM);
    }
    sattn_free(token);
    return sum;
}

static int run(const settings *s)
{
    result *r = result_new(s);
    progress_begin("concentration", 5);
    fixed_queries(r, s);
    progress_end();
    result_panel(r, "Queries as random as the tokens", "tokens L", "mean squared error", "loglog");
    static const double square[3] = {.5, 1, 2}, known[3] = {-.857, -.632, -.431};
    for (int i = 0; i < 3; i++) {
        double length[LENGTHS], error[LENGTHS];
        int n = 0;
        char what[100];
        snprintf(what, sizeof what, "tau^2 = %g", square[i]);
        result_series(r, what, "line");
        for (int64_t l = 256; l <= 4 * (int64_t)s->tokens; l *= 4, n++) {
            length[n] = (double)l;
            error[n] = random_queries(s, sqrt(square[i]), l, s->queries / 20 + 1);
            result_point(r, length[n], error[n]);
        }
        snprintf(what, sizeof what, "random queries, tau^2 = %g: slope", square[i]);
        result_number(r, what, slope(n, length, error), known[i], .05,
                      "own Monte Carlo, L = 256 .. 65536");
    }
    result_note(r, "Random queries: for large L the heuristic exponents are -1, -0.618 and -0.366, "
                   "up to logarithms; Bayes's own scaling has tau^2 = 1.");
    return result_end(r);
}

const experiment experiment_concentration = {
    .name = "concentration",
    .source = "finite prompts: arXiv 2512.11784, Prop. 3.1; closed form of sattn_prompt_error",
    .about = "Softmax attention over L tokens of a mixture is a ratio of two sums; its squared "
             "error falls as 1 / L with a constant that is known in closed form, as long as the "
             "query is short. Over random queries the long ones dominate, and the error falls more "
             "slowly: for queries as random as the tokens as L^-0.62, not 1 / L.",
    .defaults = "tokens = 16384\nqueries = 10000\n",
    .brief = "queries = 3000\n",
    .run = run};
