/* SPDX-License-Identifier: BSD-2-Clause */
#include "sattn/quadrature.h"

#include <math.h>
#include <stddef.h>

/* Eigenvalues below x of the Jacobi matrix of the Hermite polynomials, which has zeros on its
 * diagonal and sqrt(k) beside it: as many as negative pivots of its LDL' less x (Sturm). A pivot of
 * 0 counts as a tiny one. */
static int64_t count_below(int64_t order, double x)
{
    int64_t count = 0;
    double pivot = 1;
    for (int64_t k = 0; k < order; k++) {
        pivot = -x - (k ? (double)k / pivot : 0);
        if (pivot == 0)
            pivot = 0x1p-1000;
        count += pivot < 0;
    }
    return count;
}

/* Orthonormal polynomials at x: sqrt(k + 1) h_{k+1} = x h_k - sqrt(k) h_{k-1}. The Newton step
 * towards the zero of h_order, and the sum of h_k^2 below it. At the largest zero for the largest
 * order the sum stays below 1e110. */
static double newton_step(int64_t order, double x, double *squares)
{
    double before = 0, now = 1, sum = 1;
    for (int64_t k = 0; k < order; k++) {
        const double next = (x * now - sqrt((double)k) * before) / sqrt((double)k + 1);
        before = now;
        now = next;
        sum += k + 1 < order ? now * now : 0;
    }
    *squares = sum;
    return now / (sqrt((double)order) * before);
}

int32_t sattn_quadrature_hermite(int64_t order, double *node, double *weight)
{
    if (order < 1 || order > SATTN_QUADRATURE_MAX_ORDER)
        return SATTN_ESIZE;
    if (!node || !weight)
        return SATTN_ENULL;
    for (int64_t i = 0; i <= (order - 1) / 2; i++) {
        /* Zero i, the i-th from below, is not above 0 and above -2 sqrt(order). */
        double low = -2 * sqrt((double)order), high = 0, squares, x = 0;
        if (2 * i + 1 < order) {
            while (high - low > 0x1p-20) {
                const double middle = low / 2 + high / 2;
                if (count_below(order, middle) > i)
                    high = middle;
                else
                    low = middle;
            }
            x = low / 2 + high / 2;
            for (int step = 0; step < 4; step++)
                x -= newton_step(order, x, &squares);
        }
        newton_step(order, x, &squares);
        node[order - 1 - i] = -x;
        node[i] = x;
        weight[i] = weight[order - 1 - i] = 1 / squares;
    }
    return SATTN_OK;
}

int32_t sattn_quadrature_trapezoid(int64_t n, double reach, double *node, double *weight)
{
    if (n < 2)
        return SATTN_ESIZE;
    if (!(reach > 0) || !isfinite(reach))
        return SATTN_EVALUE;
    if (!node || !weight)
        return SATTN_ENULL;
    const double step = 2 * (reach / (double)(n - 1)), density = 0.39894228040143267794;
    for (int64_t i = 0; i < n; i++) {
        /* from the middle outwards: the rule is symmetric to the bit */
        const double x = reach * ((double)(2 * i - (n - 1)) / (double)(n - 1));
        node[i] = x;
        weight[i] = step * density * exp(-x * x / 2);
    }
    return SATTN_OK;
}
