/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SATTN_LEARN_PROMPT_H
#define SATTN_LEARN_PROMPT_H

/* Mixtures as prompts of noisy digits. */

#include "learn.h"

/* The posterior mean of x ~ sum_k exp(log_weight_k) N(m_k, S_k) given z = x + N(0, s2 I) is mixture
 * attention with tilt u = z / s2 on the mixture
 *     S~ = (I + S / s2)^-1 S,  m~ = (I + S / s2)^-1 m,
 *     log weight~ = log weight - log det (I + S / s2) / 2 - m.m~ / (2 s2).
 * A temperature divides all three. Writes component k of head h. */
void absorb(prompt *p, int64_t h, int64_t k, double log_weight, const double *mean,
            const double *covariance, double s2, double temperature);

/* Labels of k-means clusters of the digits, by the library's fit. */
void cluster(int64_t n, const float *digit, int64_t components, uint64_t seed, int32_t threads,
             int32_t *label);

/* Head h of p from labelled digits: covariances shrunk towards the pooled one of the clusters,
 * (scatter_k + shrinkage pooled) / (count_k + shrinkage) + floor I, then absorbed. Digits with
 * skip[i] = fold are left out. */
void head_of_clusters(prompt *p, int64_t h, int64_t n, const float *digit, const int32_t *label,
                      const int32_t *skip, int32_t leave_out, const settings *s);

#endif
