/* SPDX-License-Identifier: BSD-2-Clause */
/* Rules against what defines them, in long double: moments of a normal, zeros of the Hermite
 * polynomial, the trapezoid's formula. Bad input leaves memory alone. */
#include "../harness.h"

#include <math.h>

#include "sattn/quadrature.h"

enum { MOST = SATTN_QUADRATURE_MAX_ORDER };

/* E X^(2 k) = 1 3 5 ... (2 k - 1), for every degree that the rule is exact for. Terms are positive:
 * a relative error of a node counts 2 k times. */
Test(quadrature, moments)
{
    double node[MOST], weight[MOST];
    for (int64_t n = 1; n <= MOST; n++) {
        check(sattn_quadrature_hermite(n, node, weight) == SATTN_OK);
        long double moment = 1;
        for (int64_t k = 0; k < n && k < 100; k++) {
            long double sum = 0;
            for (int64_t i = 0; i < n; i++)
                sum += weight[i] * powl(node[i], 2 * k);
            at("order %d degree %d", (int)n, (int)(2 * k));
            check_near("moment", k, (double)(sum / moment), 1, 2e-14 + 1e-15 * (double)(2 * k));
            moment *= (long double)(2 * k + 1);
        }
    }
}

/* Every node is within 1e-14 of a zero (the sign of He_n changes there), and nodes ascend: they
 * are all of the zeros. */
Test(quadrature, nodes_are_zeros)
{
    double node[MOST], weight[MOST];
    for (int64_t n = 1; n <= MOST; n++) {
        check(sattn_quadrature_hermite(n, node, weight) == SATTN_OK);
        for (int64_t i = 0; i < n; i++) {
            long double value[2];
            for (int side = 0; side < 2; side++) {
                const long double x = node[i] + (side ? 1e-14L : -1e-14L);
                long double before = 0, now = 1;
                for (int64_t k = 0; k < n; k++) {
                    const long double next =
                        (x * now - sqrtl((long double)k) * before) / sqrtl((long double)k + 1);
                    before = now;
                    now = next;
                }
                value[side] = now;
            }
            at("order %d node %d = %.17g", (int)n, (int)i, node[i]);
            check(value[0] * value[1] < 0);
            check(node[i] == -node[n - 1 - i] && weight[i] == weight[n - 1 - i]);
            check(i == 0 || node[i] > node[i - 1]);
        }
    }
}

Test(quadrature, trapezoid)
{
    enum { N = 451 };
    double node[N], weight[N], sum = 0, cosine = 0;
    check(sattn_quadrature_trapezoid(N, 9, node, weight) == SATTN_OK);
    check(node[0] == -9 && node[N - 1] == 9 && node[N / 2] == 0);
    for (int i = 0; i < N; i++) {
        const long double x = -9 + 18 * (long double)i / (N - 1);
        at("node %d", i);
        check_near("node", i, node[i], (double)x, 2e-15);
        check_near("weight", i, weight[i],
                   (double)(18.0L / (N - 1) * expl(-x * x / 2) / sqrtl(2 * acosl(-1))), 1e-17);
        sum += weight[i];
        cosine += weight[i] * cos(3 * node[i]);
    }
    check_near("sum", 0, sum, 1, 1e-15);
    check_near("E cos 3 X", 0, cosine, exp(-4.5), 1e-15);
}

Test(quadrature, bad_input)
{
    double node[4], weight[4];
    for (int i = 0; i < 4; i++)
        node[i] = weight[i] = 7;
    check(sattn_quadrature_hermite(0, node, weight) == SATTN_ESIZE);
    check(sattn_quadrature_hermite(-1, node, weight) == SATTN_ESIZE);
    check(sattn_quadrature_hermite(MOST + 1, node, weight) == SATTN_ESIZE);
    check(sattn_quadrature_hermite(4, NULL, weight) == SATTN_ENULL);
    check(sattn_quadrature_hermite(4, node, NULL) == SATTN_ENULL);
    check(sattn_quadrature_trapezoid(1, 9, node, weight) == SATTN_ESIZE);
    check(sattn_quadrature_trapezoid(4, 0, node, weight) == SATTN_EVALUE);
    check(sattn_quadrature_trapezoid(4, -1, node, weight) == SATTN_EVALUE);
    check(sattn_quadrature_trapezoid(4, (double)NAN, node, weight) == SATTN_EVALUE);
    check(sattn_quadrature_trapezoid(4, (double)INFINITY, node, weight) == SATTN_EVALUE);
    check(sattn_quadrature_trapezoid(4, 9, NULL, weight) == SATTN_ENULL);
    check(sattn_quadrature_trapezoid(4, 9, node, NULL) == SATTN_ENULL);
    for (int i = 0; i < 4; i++)
        check(node[i] == 7 && weight[i] == 7);
}
