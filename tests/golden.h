/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SATTN_TEST_GOLDEN_H
#define SATTN_TEST_GOLDEN_H

/* Three queries on three Gaussians in the plane, values = keys, with all results, computed in f64
 * by NumPy and checked by automatic differentiation. The tilts are u = U z, the cotangents of the
 * output V'T, of V = [1, 2; -1, .5], U = [.5, -.2; .1, .8], z = (1,2), (-1,.5), (0,0), T = (1,-1),
 * (.5,2), (0,1). */

#include <math.h>

static const struct {
    double weight[3], mean[6], covariance[12], tilt[6], dout[6], dcgf[3];
    double first_weight[3], first_out[2], cgf[3];
    double dtilt[6], dlog_weight[3], dmean[6], dcovariance[12];
} golden = {
    .weight = {.2, .3, .5},
    .mean = {1, 0, -.5, 2, 0, -1.5},
    .covariance = {1, .3, .3, .5, .2, 0, 0, .8, .6, -.2, -.2, .4},
    .tilt = {.1, 1.7, -.6, .3, 0, 0},
    .dout = {2, 1.5, -1.5, 2, -1, .5},
    .dcgf = {.1, -.2, .3},
    .first_weight = {0.01735371130287907, 0.9802145728372615, 0.0024317158598593713},
    .first_out = {-0.4432444002050109, 3.306749589357451},
    .cgf = {3.323010975083291, 0.25865197451261274, 0},
    .dtilt = {0.4065148873534502, 1.5709681971389018, -1.2027803002855366, 6.565142820296652,
              -0.98375, 1.70875},
    .dlog_weight = {-0.4671665037154203, 2.226430656579404, -1.5592641528639828},
    .dmean = {-0.09458355368849458, 0.23076834454364142, -0.17431291918257097, 3.4854525030179224,
              -0.10110352712893467, 0.39377915243843636},
    .dcovariance = {0.026843287226527054, -0.016891150451464335, -0.016891150451464335,
                    0.10115274384882819, 1.0256243232828548, 1.1046214989919898, 1.1046214989919898,
                    3.087059226259308, 0.012032389490618217, -0.11123034854052544,
                    -0.11123034854052544, 0.09728802989186448},
};

static inline const double *golden_log_weight(void)
{
    static double log_weight[3];
    for (int c = 0; c < 3; c++)
        log_weight[c] = log(golden.weight[c]);
    return log_weight;
}

#endif
