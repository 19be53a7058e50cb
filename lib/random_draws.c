/* SPDX-License-Identifier: BSD-2-Clause */
/* Draws that take several numbers of a stream, or a table: categories, points of a sphere. */
#include "check.h"
#include "sattn/random.h"
#include "task.h"

#include <math.h>
#include <string.h>

static const int64_t end_of_stream = (int64_t)1 << 62;

int32_t sattn_random_categorical(uint64_t seed, uint64_t stream, int64_t first, int64_t n,
                                 int64_t classes, const double *log_weight, int32_t *out)
{
    if (n < 0 || first < 0 || first >= end_of_stream || n >= end_of_stream - first || classes < 1 ||
        classes > INT32_MAX)
        return SATTN_ESIZE;
    if (!log_weight || (n > 0 && !out))
        return SATTN_ENULL;
    const int32_t status = sattn_check_weights(classes, log_weight);
    if (status != SATTN_OK)
        return status;
    double *weight = sattn_alloc(2 * classes * (int64_t)sizeof(double)), u;
    if (!weight)
        return SATTN_ENOMEM;
    sattn_weights(classes, log_weight, weight);
    sattn_weights_below(classes, weight, weight + classes);
    for (int64_t i = 0; i < n; i++) {
        sattn_random_uniform_f64(seed, stream, first + i, 1, &u);
        out[i] = (int32_t)sattn_pick(classes, weight + classes, u);
    }
    sattn_free(weight);
    return SATTN_OK;
}

int32_t sattn_random_sphere_f64(uint64_t seed, uint64_t stream, int64_t first, int64_t n,
                                int64_t width, double radius, double *out)
{
    if (n < 0 || first < 0 || width < 1 || first > end_of_stream - n - 1 ||
        first + n > (end_of_stream - 1) / width)
        return SATTN_ESIZE;
    if (!(radius >= 0) || !isfinite(radius))
        return SATTN_EVALUE;
    if (n > 0 && !out)
        return SATTN_ENULL;
    for (int64_t i = 0; i < n; i++) {
        double *x = out + i * width, squares = 0;
        sattn_random_normal_f64(seed, stream, (first + i) * width, width, x);
        for (int64_t j = 0; j < width; j++)
            squares += x[j] * x[j];
        for (int64_t j = 0; j < width; j++)
            x[j] *= radius / sqrt(squares);
    }
    return SATTN_OK;
}
