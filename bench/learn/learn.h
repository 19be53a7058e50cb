/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SATTN_BENCH_LEARN_H
#define SATTN_BENCH_LEARN_H

/* sattn-learn: experiments on what softmax attention learns. Everything of attention comes from the
 * library's public ABI; what is here is data, small dense matrices, an optimiser and reports. */

#include <stdint.h>

#include "sattn/sattn.h"

typedef struct {
    const char *data, *out;
    int32_t seeds, threads, heads, components, steps, batch, folds;
    double noise, rate, temperature, shrinkage, floor;
} settings;

int digits(const settings *s);
int classify(const settings *s);
int denoise(const settings *s);

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
