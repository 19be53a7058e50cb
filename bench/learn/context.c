/* SPDX-License-Identifier: BSD-2-Clause */
/* In-context classification and denoising: one set of weights for tasks drawn anew at every step,
 * trained with softmax and with linear attention on the distance from the Bayes predictor (whose
 * gradient is that of the risk, with less noise). */
#define _POSIX_C_SOURCE 200809L
#include "context.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { TASKS = 64, QUERIES = 32, TESTS = 1000, SEEDS = 64, METHODS = 4, EVERY = 10 };

static const char *const methods[METHODS] = {"Bayes", "softmax attention, trained",
                                             "best affine predictor of each task",
                                             "linear attention, trained"};

typedef struct {
    const settings *s;
    double risk[METHODS][SEEDS], error[METHODS][SEEDS]; /* error: share of wrong signs */
    FILE *curve;
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
        fprintf(t->r->curve, "\"%s\",%d,%lld,%.9g\n", methods[t->method], t->seed, (long long)step,
                risk);
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

static FILE *create(const settings *s, const char *name)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", s->out, name);
    FILE *file = fopen(path, "w");
    if (!file)
        fail("cannot write %s: %s", path, strerror(errno));
    return file;
}

static void summary(const double *x, int n, double *mean, double *most)
{
    *mean = 0, *most = x[0];
    for (int i = 0; i < n; i++) {
        *mean += x[i] / n;
        *most = fmax(*most, x[i]);
    }
}

static void write_all(const world *w, const results *r)
{
    const settings *s = r->s;
    FILE *csv = create(s, "table.csv"), *json = create(s, "result.json");
    printf("\n%-36s %10s %10s %10s\n", "", "risk", "worst seed", w->labelled ? "error" : "");
    fprintf(csv, "method,risk,worst_risk,error\n");
    fprintf(json,
            "{\n  \"experiment\": \"%s\",\n  \"library\": \"%s\",\n  \"isa\": \"%s\",\n"
            "  \"settings\": {\"seeds\": %d, \"steps\": %d, \"rate\": %g, \"tasks\": %d, "
            "\"queries\": %d, \"test_tasks\": %d},\n  \"rows\": [",
            w->name, sattn_build_info(), sattn_isa_name(sattn_isa()), s->seeds, s->steps, s->rate,
            TASKS, QUERIES, TESTS);
    for (int i = 0; i < METHODS; i++) {
        double risk, error, worst, ignored;
        summary(r->risk[i], s->seeds, &risk, &worst);
        summary(r->error[i], s->seeds, &error, &ignored);
        printf("%-36s %10.5f %10.5f", methods[i], risk, worst);
        if (w->labelled)
            printf(" %8.2f %%", 100 * error);
        printf("\n");
        fprintf(csv, "\"%s\",%.9g,%.9g,%.9g\n", methods[i], risk, worst, error);
        fprintf(json, "%s\n    {\"method\": \"%s\", \"risk\": %.9g, \"error\": %.9g, \"risks\": [",
                i ? "," : "", methods[i], risk, error);
        for (int k = 0; k < s->seeds; k++)
            fprintf(json, "%s%.9g", k ? ", " : "", r->risk[i][k]);
        fprintf(json, "]}");
    }
    fprintf(json, "\n  ]\n}\n");
    printf("\nrisk: squared error over %d test tasks of %d queries, mean of %d seeds\n", TESTS,
           QUERIES, s->seeds);
    if (fclose(csv) | fclose(json) | fclose(r->curve))
        fail("cannot write to %s", s->out);
}

static int learn(world w, const settings *s)
{
    if (s->seeds > SEEDS)
        fail("at most %d seeds", SEEDS);
    if (mkdir(s->out, 0777) != 0 && errno != EEXIST)
        fail("cannot make the folder %s: %s", s->out, strerror(errno));
    results *r = array(1, sizeof *r);
    r->s = s;
    r->curve = create(s, "curve.csv");
    fprintf(r->curve, "method,seed,step,excess\n");
    progress_begin(w.name, 2 * (int64_t)s->seeds * s->steps);
    for (int32_t seed = 0; seed < s->seeds; seed++) {
        w.seed = (uint64_t)seed + 1;
        tasks test = tasks_new(&w, TESTS, QUERIES, 1);
        tasks_draw(&w, 2, 0, &test);
        measure(&test, test.target, 0, seed, r);
        measure(&test, test.affine, 2, seed, r);
        run(&w, s, 1, seed, &test, r);
        run(&w, s, 3, seed, &test, r);
        tasks_free(&test);
    }
    progress_end();
    write_all(&w, r);
    sattn_free(r);
    return 0;
}

int classify(const settings *s)
{
    return learn((world){"classify", 1, 3, 1, 0, 0}, s);
}

int denoise(const settings *s)
{
    return learn((world){"denoise", 0, 4, 0.5, 2, 0}, s);
}
