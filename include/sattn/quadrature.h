/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SATTN_QUADRATURE_H
#define SATTN_QUADRATURE_H

/* Rules for expectations over a standard normal X:  E f(X) = sum_i weight_i f(node_i), about.
 * sattn_task_quadrature (task.h) makes tensor rules over Gaussian mixtures of them. Since: 0.2 */

#include "base.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SATTN_QUADRATURE_MAX_ORDER 128

/* Gauss and Hermite: exact for polynomials of a degree below 2 order.
 *
 *   The nodes are the zeros of the Hermite polynomial He_order, found by counting the eigenvalues
 *   of its Jacobi matrix in an interval and Newton's steps. With orthonormal polynomials h_k the
 *   weight of x is 1 / sum_{k < order} h_k(x)^2, a sum of positive terms.
 * Shapes:  node, weight [order], nodes ascending; node i is exactly -node (order - 1 - i).
 * Errors:  SATTN_ESIZE order < 1 or > SATTN_QUADRATURE_MAX_ORDER; SATTN_ENULL.
 * Numbers: nodes within 1e-14, weights within 1e-14 (and 1e-12 of themselves); they sum to 1.
 * Threads: serial. Memory: none.
 * Source:  Golub, Welsch, "Calculation of Gauss quadrature rules", Math. Comp. 23, 1969.
 * Since:   0.2 */
SATTN_API int32_t sattn_quadrature_hermite(int64_t order, double *node, double *weight);

/* The trapezoid rule:  n equidistant nodes from -reach to reach, weights
 * h exp(-x^2 / 2) / sqrt(2 pi) with the step h = 2 reach / (n - 1). For a smooth f its error falls
 * faster than any power of h: the rule to check others with (reach 9, 451 nodes), and where a gate
 * is steep.
 *
 * Shapes:  node, weight [n].
 * Errors:  SATTN_ESIZE n < 2; SATTN_EVALUE reach is not positive and finite; SATTN_ENULL.
 * Numbers: nodes and weights are rounded from the formula; the end nodes are exact.
 * Threads: serial. Memory: none. Since: 0.2 */
SATTN_API int32_t sattn_quadrature_trapezoid(int64_t n, double reach, double *node, double *weight);

#ifdef __cplusplus
}
#endif
#endif
