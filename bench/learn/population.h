/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SATTN_LEARN_POPULATION_H
#define SATTN_LEARN_POPULATION_H

/* Population risks of one task in the plane, or on the line: queries at the points of a quadrature
 * rule, targets of Bayes, the prompt its mixture. */

#include "learn.h"

enum { MOST = 8 }; /* components */

typedef struct {
    sattn_task task;
    sattn_learn learn;
    int64_t count; /* parameters */
    double least;  /* the risk no predictor goes below, given the targets */
    double bayes;  /* Bayes risk of the squared loss */
    double log_weight[MOST], mean[2 * MOST], covariance[4 * MOST], value[2 * MOST],
        cross[4 * MOST], left[MOST], prompt[3 * MOST], variance[3 * MOST];
    double *input, *target, *weight;
} population;

/* `order` nodes of Gauss and Hermite a dimension; 0: the trapezoid rule, for steep gates. */

/* Clean tokens N(m_c, variance I), noise of a variance on tokens and query, squared loss */
population *denoising(int64_t components, const double *share, const double *mean, double variance,
                      double noise, int64_t heads, int64_t order);
/* Classes +1 and -1 of clusters N(m_c, I) in R^width, tokens (x, label). Logistic loss: targets are
 * probabilities. */
population *labelled(int64_t components, int64_t width, const double *share, const double *mean,
                     const double *label, int32_t loss, int64_t order);
void population_free(population *p);

/* The parts of a parameter array of population p */
typedef struct {
    double *tilt, *tilt_bias, *value, *skip, *bias;
} parts;
parts parts_of(const population *p, double *parameter);

/* The risk at a parameter beyond the least */
double excess(const population *p, const double *parameter);

/* The settings of the papers and of ours */
extern const double half[2], quarter[4], corner[4], square[8], xor_mean[8], xor_label[4],
    lda_share[2], lda_mean[4], lda_label[2];

#endif
