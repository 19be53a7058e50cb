/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SATTN_BENCH_LEARN_H
#define SATTN_BENCH_LEARN_H

/* sattn-learn: experiments on what softmax attention learns. Everything of attention comes from the
 * library's public ABI; what is here is data, small dense matrices, an optimiser and reports. */

#include <stddef.h>
#include <stdint.h>

#include "sattn/sattn.h"

/* What an experiment is told; settings.c names the members and says what they mean. */
typedef struct settings {
    const struct experiment *experiment;
    const char *data, *out, *python;
    int32_t seeds, threads, heads, components, steps, batch, folds, order, grid, tokens, queries;
    double noise, rate, temperature, shrinkage, floor;
} settings;

/* One line of `sattn-learn list`, one file of this folder (experiments.c holds the table) */
typedef struct experiment {
    const char *name, *source; /* paper, and its figure or table */
    const char *about;         /* what it shows, in a few lines */
    const char *defaults;      /* the settings it takes, "name = value" lines */
    const char *brief;         /* settings of `sattn-learn all` that differ from those, or NULL */
    int (*run)(const settings *s);
} experiment;

extern const experiment *const experiments[]; /* NULL ends them */
const experiment *experiment_named(const char *name);

/* settings.c: from the experiment's defaults, then lines "name = value", a file, and the texts of
 * the command line by their place in the table; any of the three may be NULL */
enum { SETTINGS = 19 };
typedef struct {
    const char *name;
    char key; /* of the short option, or 0 */
    const char *argument, *help;
    int kind;
    size_t place; /* in settings */
    double least, most;
} setting;
extern const setting setting_table[SETTINGS];
settings settings_read(const experiment *e, const char *lines, const char *file,
                       const char *const *given);
/* Whether the experiment takes it, and its default or NULL */
int setting_taken(const experiment *e, int i, const char **value);

/* A message and exit status 1. */
_Noreturn void fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
void must(int32_t status, const char *what);

/* data.c: n x 65 numbers of a gzipped file of comma-separated lines. Caller frees. */
float *read_digits(const char *path, int64_t *n);

/* linalg.c */
void *array(int64_t count, int64_t bytes);
/* c += a b', a' b, a b of row-major matrices (m x k, k x n or n x k) */
void multiply_bt(int64_t m, int64_t n, int64_t k, const float *a, const float *b, float *c);
void multiply_at(int64_t m, int64_t n, int64_t k, const float *a, const float *b, float *c);
void multiply(int64_t m, int64_t n, int64_t k, const float *a, const float *b, float *c);
/* inverse of the symmetric positive definite s, d x d; returns log det s */
double invert(int64_t d, const double *s, double *inverse);

/* progress.c: a bar on a terminal, else a line every tenth of the way */
void progress_begin(const char *title, int64_t total);
void progress(int64_t done, double risk);
void progress_end(void);

/* model.c: f(z) = K z + b + sum_h V_h y_h(U_h z + u0_h), y_h attention over mixture h of a prompt
 */
enum { WIDTH = 64 };
typedef struct {
    int64_t heads, components;
    float *log_weight, *mean, *covariance; /* [H][C], [H][C][D], [H][C][D][D] */
} prompt;

typedef struct {
    int64_t heads, size;
    float *tilt, *tilt_bias, *value, *skip, *bias; /* [H][D][D], [H][D], [H][D][D], [D][D], [D] */
} model;

prompt prompt_new(int64_t heads, int64_t components);
void prompt_free(prompt *p);
model model_new(int64_t heads);
void model_free(model *m);
/* [n][D] -> [n][D] */
void predict(const model *m, const prompt *p, int64_t n, const float *noisy, float *clean,
             int32_t threads);

typedef struct {
    double rate, tilt_scale;
    int64_t steps, warm_up;
    int32_t threads;
    double noise;
    uint64_t seed, stream;
} schedule;

/* One fold: digits held out of the prompt that is trained on them. */
typedef struct {
    prompt prompt;
    int64_t count;
    const float *digit; /* [count][D] */
} fold;

/* Adam on the mean squared error, an average of the path in the end; `after` is told the risk of
 * each step. */
void train(model *m, const fold *folds, int64_t fold_count, const schedule *s,
           void (*after)(double risk));

#endif
