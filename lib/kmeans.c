/* SPDX-License-Identifier: BSD-2-Clause */
/* k-means++ and Lloyd's iterations: where expectation-maximisation starts. */
#include "fit.h"
#include "par.h"
#include "sattn/random.h"

#include <math.h>
#include <string.h>

typedef sattn_em em;
typedef struct sattn_gemm_f64 gemm;

/* Squared distances of a block of tokens to `mean`; the inner loop runs over tokens */
static void distances(const em *e, int64_t block, const double *mean, double *out)
{
    const int64_t count = sattn_em_count(e, block);
    const double *x = e->column + e->first + block * SATTN_EM_BLOCK;
    memset(out, 0, (size_t)count * sizeof(double));
    for (int64_t i = 0; i < e->d; i++)
        for (int64_t n = 0; n < count; n++) {
            const double y = x[i * e->n + n] - mean[i];
            out[n] += y * y;
        }
}

/* A seed joins the `seeds` before it: distances of a block of tokens to the nearest one, kept where
 * the first responsibilities will be. */
typedef struct {
    const em *e;
    int64_t seeds;
} seeding;

static void come_nearer(void *context, int64_t block, int32_t thread)
{
    const seeding *s = context;
    double *nearest = s->e->weight + block * SATTN_EM_BLOCK;
    double *x = s->seeds ? sattn_em_scratch(s->e, thread) : nearest;
    distances(s->e, block, s->e->mean + s->seeds * s->e->d, x);
    for (int64_t n = 0; s->seeds && n < sattn_em_count(s->e, block); n++)
        nearest[n] = nearest[n] < x[n] ? nearest[n] : x[n];
}

/* Seeds: the first token uniform, each next with probability ~ its squared distance to the nearest
 * seed; uniform number k of stream 0 draws seed k. Once every token is a seed, the rest stand on
 * the first. */
static void seed_means(em *e)
{
    const double *nearest = e->weight;
    for (int64_t k = 0; k < e->c; k++) {
        double draw, total = 0;
        int64_t chosen = 0;
        sattn_random_uniform_f64(e->seed, 0, k, 1, &draw);
        for (int64_t n = 0; n < e->count; n++)
            total += k ? nearest[n] : 1;
        double left = draw * total;
        for (int64_t n = 0; n < e->count && left > 0; n++) {
            const double mass = k ? nearest[n] : 1;
            if (mass > 0)
                chosen = n;
            left -= mass;
        }
        memcpy(e->mean + k * e->d, e->token + (e->first + chosen) * e->d,
               (size_t)e->d * sizeof(double));
        sattn_par_for(e->blocks, e->threads, come_nearer, &(seeding){e, k});
    }
}

static double distance(int64_t d, const double *x, const double *y)
{
    double sum = 0;
    for (int64_t i = 0; i < d; i++)
        sum += (x[i] - y[i]) * (x[i] - y[i]);
    return sum;
}

/* Labels of one block of tokens: the largest x.m - m.m / 2, ties to the first component */
static void label_block(void *context, int64_t block, int32_t thread)
{
    const em *e = context;
    const int64_t first = e->first + block * SATTN_EM_BLOCK;
    const int64_t count = sattn_em_count(e, block);
    double *score = sattn_em_scratch(e, thread), sum = 0;
    sattn_em_row()->gemm(&(gemm){e->c, count, e->d, e->mean, e->d, 1, e->column + first, e->n,
                                 score, SATTN_EM_BLOCK, e->constant, 1, 0});
    for (int64_t n = 0; n < count; n++) {
        int32_t best = 0;
        for (int64_t k = 1; k < e->c; k++)
            if (score[k * SATTN_EM_BLOCK + n] > score[best * SATTN_EM_BLOCK + n])
                best = (int32_t)k;
        e->label[first + n] = best;
        sum += distance(e->d, e->token + (first + n) * e->d, e->mean + best * e->d);
    }
    e->partial[block] = sum;
}

static double label_tokens(em *e)
{
    for (int64_t k = 0; k < e->c; k++) {
        e->constant[k] = 0;
        for (int64_t i = 0; i < e->d; i++)
            e->constant[k] -= e->mean[k * e->d + i] * e->mean[k * e->d + i] / 2;
    }
    sattn_par_for(e->blocks, e->threads, label_block, e);
    return -sattn_em_sum(e) / 2;
}

/* Means of the labelled tokens; a component without tokens keeps its mean. */
static void move_means(em *e)
{
    const int64_t end = e->first + e->count;
    memset(e->held, 0, (size_t)e->c * sizeof(double));
    for (int64_t n = e->first; n < end; n++)
        e->held[e->label[n]]++;
    for (int64_t k = 0; k < e->c; k++)
        for (int64_t i = 0; i < e->d && e->held[k] > 0; i++)
            e->mean[k * e->d + i] = 0;
    for (int64_t n = e->first; n < end; n++) {
        const int64_t k = e->label[n];
        for (int64_t i = 0; i < e->d; i++)
            e->mean[k * e->d + i] += e->token[n * e->d + i] / e->held[k];
    }
}

int32_t sattn_kmeans(em *e)
{
    double before = -INFINITY;
    seed_means(e);
    for (int64_t i = 0; i <= e->p->lloyd_iterations; i++) {
        const double value = label_tokens(e);
        if (sattn_em_report(e, i, value) != SATTN_OK)
            return SATTN_ECANCELLED;
        if (i == e->p->lloyd_iterations || !(value > before))
            break;
        before = value;
        move_means(e);
    }
    memset(e->weight, 0, (size_t)(e->c * e->window) * sizeof(double));
    for (int64_t n = 0; n < e->count; n++)
        e->weight[e->label[e->first + n] * e->window + n] = 1;
    return SATTN_OK;
}
