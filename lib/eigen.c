/* SPDX-License-Identifier: BSD-2-Clause */
#include "eigen.h"

#include <math.h>
#include <string.h>

enum { SWEEPS = 60 }; /* ten are usual, quadratic convergence sees to that */

/* (x, y) := (c x - s y, s x + c y), elements `step` apart */
static void rotate(int64_t d, double c, double s, double *x, double *y, int64_t step)
{
    for (int64_t i = 0; i < d * step; i += step) {
        const double a = x[i], b = y[i];
        x[i] = c * a - s * b;
        y[i] = s * a + c * b;
    }
}

/* The rotation that makes a_pq zero, on both sides of a; v collects them. */
static void annihilate(int64_t d, double *a, double *v, int64_t p, int64_t q)
{
    const double pq = a[p * d + q], half = (a[q * d + q] - a[p * d + p]) / (2 * pq);
    /* the smaller root of t^2 + 2 half t = 1; half may be infinite, t then is 0 */
    const double t = (half < 0 ? -1 : 1) / (fabs(half) + sqrt(1 + half * half));
    const double c = 1 / sqrt(1 + t * t), s = t * c;
    rotate(d, c, s, a + p * d, a + q * d, 1);
    rotate(d, c, s, a + p, a + q, d);
    rotate(d, c, s, v + p * d, v + q * d, 1);
    a[p * d + q] = a[q * d + p] = 0;
}

/* Rotates every entry that its diagonal can tell from 0; returns their number. */
static int64_t sweep(int64_t d, double *a, double *v, double least)
{
    int64_t rotations = 0;
    for (int64_t p = 0; p < d; p++)
        for (int64_t q = p + 1; q < d; q++)
            if (fabs(a[p * d + q]) > least) {
                annihilate(d, a, v, p, q);
                rotations++;
            }
    return rotations;
}

static void swap_rows(int64_t d, double *x, double *y)
{
    for (int64_t i = 0; i < d; i++) {
        const double t = x[i];
        x[i] = y[i];
        y[i] = t;
    }
}

static void point_up(int64_t d, double *v)
{
    int64_t best = 0;
    for (int64_t i = 1; i < d; i++)
        best = fabs(v[i]) > fabs(v[best]) ? i : best;
    const int down = d > 0 && v[best] < 0;
    for (int64_t i = 0; down && i < d; i++)
        v[i] = -v[i];
}

void sattn_eigen(int64_t d, double *a, double *value, double *vector)
{
    double largest = 0;
    memset(vector, 0, (size_t)(d * d) * sizeof *vector);
    for (int64_t i = 0; i < d; i++)
        vector[i * d + i] = 1;
    for (int64_t i = 0; i < d * d; i++)
        largest = fabs(a[i]) > largest ? fabs(a[i]) : largest;
    /* d^2 entries of this size move no eigenvalue by an ULP of the largest */
    for (int i = 0; i < SWEEPS && sweep(d, a, vector, largest / (double)d * 0x1p-54) > 0; i++)
        ;
    for (int64_t i = 0; i < d; i++)
        value[i] = a[i * d + i];
    for (int64_t i = 0; i < d; i++) {
        int64_t best = i;
        for (int64_t j = i + 1; j < d; j++)
            best = value[j] > value[best] ? j : best;
        const double t = value[i];
        value[i] = value[best];
        value[best] = t;
        if (best != i)
            swap_rows(d, vector + i * d, vector + best * d);
        point_up(d, vector + i * d);
    }
}
