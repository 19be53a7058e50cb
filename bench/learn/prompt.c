/* SPDX-License-Identifier: BSD-2-Clause */
#include "prompt.h"

#include <math.h>
#include <string.h>

enum { D = WIDTH };

void absorb(prompt *p, int64_t h, int64_t k, double log_weight, const double *mean,
            const double *covariance, double s2, double temperature)
{
    double t[D * D], inverse[D * D], dot = 0;
    const int64_t at = h * p->components + k;
    memcpy(t, covariance, sizeof t);
    for (int64_t i = 0; i < D; i++)
        t[i * D + i] += s2;
    /* with T = S + s2 I: (I + S / s2)^-1 = s2 T^-1, and times S it is s2 I - s2^2 T^-1 */
    const double log_det = invert(D, t, inverse) - D * log(s2);
    for (int64_t i = 0; i < D; i++) {
        double m = 0;
        for (int64_t j = 0; j < D; j++) {
            m += s2 * inverse[i * D + j] * mean[j];
            p->covariance[(at * D + i) * D + j] =
                (float)(((i == j) - s2 * (inverse[i * D + j] + inverse[j * D + i]) / 2) * s2 /
                        temperature);
        }
        p->mean[at * D + i] = (float)(m / temperature);
        dot += m * mean[i];
    }
    p->log_weight[at] = (float)((log_weight - log_det / 2 - dot / (2 * s2)) / temperature);
}

void cluster(int64_t n, const float *digit, int64_t components, uint64_t seed, int32_t threads,
             int32_t *label)
{
    sattn_fit f;
    must(sattn_fit_init(&f, sizeof f, n, components, D, SATTN_COVARIANCE_ZERO), "sattn_fit_init");
    f.log_weight = array(components, sizeof(float));
    f.mean = array(components * D, sizeof(float));
    f.token = digit;
    f.label = label;
    f.seed = seed;
    f.threads = threads;
    must(sattn_fit_f32(&f), "sattn_fit");
    sattn_free(f.log_weight);
    sattn_free(f.mean);
}

void head_of_clusters(prompt *p, int64_t h, int64_t n, const float *digit, const int32_t *label,
                      const int32_t *skip, int32_t leave_out, const settings *s)
{
    const int64_t c = p->components;
    double *mean = array(c * D, sizeof(double)), *scatter = array((c + 1) * D * D, sizeof(double));
    double *count = array(c, sizeof(double)), *pooled = scatter + c * D * D, all = 0, x[D];
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = -1; skip[i] != leave_out && j < D; j++) {
            if (j < 0)
                count[label[i]]++;
            else
                mean[label[i] * D + j] += digit[i * D + j];
        }
    for (int64_t k = 0; k < c; k++) {
        all += count[k];
        for (int64_t j = 0; j < D && count[k] > 0; j++)
            mean[k * D + j] /= count[k];
    }
    for (int64_t i = 0; i < n; i++) {
        if (skip[i] == leave_out)
            continue;
        double *w = scatter + label[i] * D * D;
        for (int64_t j = 0; j < D; j++)
            x[j] = digit[i * D + j] - mean[label[i] * D + j];
        for (int64_t j = 0; j < D; j++)
            for (int64_t l = 0; l < D; l++)
                w[j * D + l] += x[j] * x[l];
    }
    for (int64_t k = 0; k < c; k++)
        for (int64_t j = 0; j < D * D; j++)
            pooled[j] += scatter[k * D * D + j] / all;
    for (int64_t k = 0; k < c; k++) {
        double *w = scatter + k * D * D;
        for (int64_t j = 0; j < D * D; j++)
            w[j] = (w[j] + s->shrinkage * pooled[j]) / (count[k] + s->shrinkage) +
                   (j % (D + 1) == 0 ? s->floor : 0);
        absorb(p, h, k, count[k] > 0 ? log(count[k] / all) : -30, mean + k * D, w,
               s->noise * s->noise, s->temperature);
    }
    sattn_free(mean);
    sattn_free(scatter);
    sattn_free(count);
}
