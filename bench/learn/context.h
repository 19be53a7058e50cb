/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SATTN_LEARN_CONTEXT_H
#define SATTN_LEARN_CONTEXT_H

/* Tasks drawn anew: clusters uniform on a sphere, which a model has to read from its prompt. */

#include "learn.h"

enum { CLUSTERS = 8, SPACE = 8 };

typedef struct {
    const char *title;
    int labelled; /* 1: half of the clusters are +1, half -1, tokens (x, label); 0: denoising */
    double radius, variance, noise; /* of the clusters; of a cluster; of what is added to it */
    uint64_t seed;
    double risk[4], within[4], near; /* known risks of Bayes, -, affine, linear; relative limits */
} world;

/* `count` tasks, with `queries` queries each. Packed arrays, as learn.h wants them; uncertainty
 * [count][queries] is E[|y - target|^2 | z], affine [count][queries][E] what the best affine
 * predictor of each task answers, or NULL. tasks_draw fills them with tasks `first` and on. */
typedef struct {
    int64_t count, queries, token_width, target_width;
    double *log_weight, *mean, *variance, *input, *target, *uncertainty, *affine;
} tasks;

tasks tasks_new(const world *w, int64_t count, int64_t queries, int affine);
void tasks_free(tasks *t);
void tasks_draw(const world *w, uint64_t stream, int64_t first, tasks *t);

#endif
