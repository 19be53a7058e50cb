/* SPDX-License-Identifier: BSD-2-Clause */
/* In-context classification and denoising: one set of weights for tasks drawn anew at every step,
 * trained with softmax and with linear attention on the distance from the Bayes predictor (whose
 * gradient is that of the risk, with less noise). */
#include "context.h"
#include "result.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { TASKS = 64, QUERIES = 32, TESTS = 1000, SEEDS = 64, METHODS = 4, EVERY = 10 };

static const char *const methods[METHODS] = {"Bayes", "softmax attention, trained",
                                             "best affine predictor of each task",
                                             "linear attention, trained"};

typedef struct {
    const settings *s;
    double risk[METHODS][SEEDS], error[METHODS][SEEDS]; /* error: share of wrong signs */
    result *out;
} results;

/* One training; what its callbacks know */
typedef struct {
    const world *w;
    tasks *batch;
    results *r;
    int32_t seed, method;
    int64_t done;
} training;

static int32_t draw(void *context, int64_t step)
{
    const training *t = context;
    tasks_draw(t->w, 1, step * t->batch->count, t->batch);
    return 0;
}

static int32_t watch(void *context, int64_t step, double risk)
{
    const training *t = context;
    progress(t->done + step + 1, risk);
    if (step % EVERY == 0)
        result_point(t->r->out, (double)step, risk);
    return 0;
}

static sattn_learn learner(const tasks *t, int linear, int32_t threads)
{
    sattn_learn p;
    must(sattn_learn_init(&p, sizeof p), "sattn_learn_init");
    p.tasks = t->count, p.queries = t->queries, p.heads = 1, p.components = CLUSTERS;
    p.width = t->token_width, p.input_width = SPACE, p.output_width = t->target_width;
    p.covariance_kind = SATTN_COVARIANCE_DIAG;
    p.attention = linear ? SATTN_LEARN_LINEAR : SATTN_LEARN_SOFTMAX;
    p.threads = threads;
    p.log_weight = t->log_weight, p.mean = t->mean, p.covariance = t->variance;
    p.input = t->input, p.target = t->target;
    p.trained = SATTN_LEARN_TILT | SATTN_LEARN_VALUE | SATTN_LEARN_SKIP;
    if (t->target_width == 1)
        p.trained &= ~SATTN_LEARN_SKIP;
    return p;
}

/* A small multiple of the identity as tilt, so that selection grows from uniform weights; the
 * value starts from the labels, or from half of the tokens; and noise of one percent, which differs
 * between seeds. */
static void start(const world *w, const sattn_learn *p, double *parameter, int64_t count)
{
    const int64_t d = p->width, value = d * SPACE + d;
    must(sattn_random_normal_f64(w->seed, (uint64_t)3 << 62, 0, count, parameter), "start");
    for (int64_t i = 0; i < count; i++)
        parameter[i] *= 0.01;
    for (int64_t i = d * SPACE; i < value; i++)
        parameter[i] = 0; /* the tilt's bias, not trained */
    for (int64_t i = value + p->output_width * d; i < count; i++)
        parameter[i] = 0; /* skip and bias */
    for (int64_t i = 0; i < SPACE; i++)
        parameter[i * SPACE + i] += 0.1;
    if (w->labelled)
        parameter[value + d - 1] += 1;
    for (int64_t i = 0; !w->labelled && i < SPACE; i++)
        parameter[value + i * d + i] += 0.5;
}

static double wrong(double answer, double mean)
{
    return answer > 0 ? (1 - mean) / 2 : (1 + mean) / 2;
}

/* Risk and error over all test queries: the distance from Bayes plus what Bayes leaves. */
static void measure(const tasks *t, const double *answer, int method, int32_t seed, results *r)
{
    const int64_t n = t->count * t->queries, e = t->target_width;
    double risk = 0, error = 0;
    for (int64_t q = 0; q < n; q++) {
        risk += t->uncertainty[q];
        for (int64_t i = 0; i < e; i++)
            risk += pow(answer[q * e + i] - t->target[q * e + i], 2);
        error += wrong(answer[q * e], t->target[q * e]);
    }
    r->risk[method][seed] = risk / (double)n;
    r->error[method][seed] = e == 1 ? error / (double)n : 0;
}

static void run(const world *w, const settings *s, int method, int32_t seed, tasks *test,
                results *r)
{
    tasks batch = tasks_new(w, TASKS, QUERIES, 0);
    sattn_learn p = learner(&batch, method == 3, s->threads);
    const sattn_learn exam = learner(test, method == 3, s->threads);
    int64_t count;
    must(sattn_learn_count(&p, &count), "sattn_learn_count");
    double *parameter = array(3 * count, sizeof(double));
    double *answer = array(test->count * test->queries * test->target_width, sizeof(double));
    training context = {w, &batch, r, seed, method, (2 * (int64_t)seed + (method == 3)) * s->steps};
    start(w, &p, parameter, count);
    sattn_train t;
    must(sattn_train_init(&t, sizeof t, s->steps), "sattn_train_init");
    t.optimiser = SATTN_TRAIN_ADAM;
    t.schedule = SATTN_TRAIN_COSINE;
    t.rate = s->rate;
    t.parameter = parameter;
    t.moment[0] = parameter + count;
    t.moment[1] = parameter + 2 * count;
    t.draw = draw, t.progress = watch, t.context = &context;
    must(sattn_train_f64(&t, &p), "sattn_train");
    must(sattn_learn_predict_f64(&exam, parameter, answer), "sattn_learn_predict");
    measure(test, answer, method, seed, r);
    sattn_free(parameter);
    sattn_free(answer);
    tasks_free(&batch);
}

static double mean_of(const double *x, int n)
{
    double sum = 0;
    for (int i = 0; i < n; i++)
        sum += x[i] / n;
    return sum;
}

/* Risks beside what the setting is known to give */
static void write_all(const world *w, const results *r)
{
    const int32_t seeds = r->s->seeds;
    for (int i = 0; i < METHODS; i++) {
        char what[80];
        const double bayes = mean_of(r->risk[0], seeds), risk = mean_of(r->risk[i], seeds);
        snprintf(what, sizeof what, "%s: risk", methods[i]);
        if (i == 1)
            result_number(r->out, what, risk, bayes, w->near * bayes, "Bayes risk, same queries");
        else
            result_number(r->out, what, risk, w->risk[i], w->within[i] * w->risk[i],
                          w->within[i] > 0 ? "known to three digits" : "");
        result_values(r->out, seeds, r->risk[i]);
        if (!w->labelled)
            continue;
        snprintf(what, sizeof what, "%s: share of wrong answers", methods[i]);
        result_number(r->out, what, mean_of(r->error[i], seeds), NAN, 0, "");
        result_values(r->out, seeds, r->error[i]);
    }
    result_panel(r->out, "", "squared error, mean of the seeds (lower is better)", "", "linear");
    static const char *const colour[METHODS] = {"bars grey", "bars best", "bars grey",
                                                "bars linear"};
    for (int i = 0; i < METHODS; i++) {
        result_series(r->out, methods[i], colour[i]);
        result_point(r->out, i, mean_of(r->risk[i], seeds));
    }
}

static int learn(world w, const settings *s)
{
    results *r = array(1, sizeof *r);
    r->s = s;
    r->out = result_new(s);
    result_panel(r->out, w.title, "step", "excess risk (squared distance from Bayes)", "logy");
    progress_begin(s->experiment->name, 2 * (int64_t)s->seeds * s->steps);
    for (int32_t seed = 0; seed < s->seeds; seed++) {
        w.seed = (uint64_t)seed + 1;
        tasks test = tasks_new(&w, TESTS, QUERIES, 1);
        tasks_draw(&w, 2, 0, &test);
        measure(&test, test.target, 0, seed, r);
        measure(&test, test.affine, 2, seed, r);
        result_series(r->out, seed ? "" : methods[1], "line best");
        run(&w, s, 1, seed, &test, r);
        result_series(r->out, seed ? "" : methods[3], "line linear");
        run(&w, s, 3, seed, &test, r);
        tasks_free(&test);
    }
    progress_end();
    write_all(&w, r);
    result_note(r->out, "Risks: squared error over 1000 test tasks of 32 queries a seed.");
    const int status = result_end(r->out);
    sattn_free(r);
    return status;
}

static const char defaults[] = "seeds = 5\nsteps = 1000\nrate = 0.02\n";

static int classify(const settings *s)
{
    return learn((world){.title = "Classifying clusters in context",
                         .labelled = 1,
                         .radius = 3,
                         .variance = 1,
                         .risk = {.230, 0, .581, .64},
                         .within = {.03, 0, .03, .03},
                         .near = .005},
                 s);
}

const experiment experiment_classify = {
    .name = "classify",
    .source = "in-context classification of clusters, tasks drawn anew; the setting of arXiv "
              "2610.11798, section 3",
    .about = "Each task has 8 clusters on a sphere of radius 3 in R^8, four labelled +1 and four "
             "-1; the prompt is the mixture of tokens (x, y), the query (x, 0). Softmax attention "
             "can select the cluster and so reach the Bayes predictor with one set of weights for "
             "all tasks; linear attention cannot.",
    .defaults = defaults,
    .brief = "seeds = 2\nsteps = 500\n",
    .run = classify};

static int denoise(const settings *s)
{
    return learn((world){.title = "Denoising clusters in context",
                         .radius = 4,
                         .variance = 0.5,
                         .noise = 2,
                         .risk = {5.40, 0, NAN, NAN},
                         .within = {.01, 0, 0, 0},
                         .near = .015},
                 s);
}

const experiment experiment_denoise = {
    .name = "denoise",
    .source = "in-context denoising of clusters, tasks drawn anew; arXiv 2610.11798, Prop. 4.4, "
              "has the optimal weights",
    .about = "Each task has 8 clusters of variance 0.5 on a sphere of radius 4 in R^8; noise of "
             "variance 2 is on the tokens of the prompt and on the query, which is to be freed of "
             "it by f(z) = K z + V y(U z). Softmax attention with one set of weights for all tasks "
             "reaches Bayes; linear attention and even the best affine predictor of each task do "
             "not.",
    .defaults = defaults,
    .brief = "seeds = 2\nsteps = 500\n",
    .run = denoise};
