/* SPDX-License-Identifier: BSD-2-Clause */
#include "check.h"
#include "task.h"

#include <math.h>

enum { DRAWS = 4096 }; /* at a time */

/* Welford's update of the mean and the sum of squares about it by one number */
static void count_in(double x, int64_t number, double *mean, double *squares)
{
    const double off = x - *mean;
    *mean += off / (double)number;
    *squares += off * (x - *mean);
}

int32_t sattn_task_risk_f64(const sattn_task *given, uint64_t seed, uint64_t stream, int64_t first,
                            int64_t n, double *risk, double *error)
{
    sattn_task t;
    int32_t status = sattn_task_check(&t, given, 1);
    if (status != SATTN_OK)
        return status;
    if (n < 1 || first < 0 || first > INT64_MAX - n)
        return SATTN_ESIZE;
    int64_t bytes = (int64_t)sizeof(double);
    if (!sattn_grow(&bytes, DRAWS) || !sattn_grow(&bytes, t.width + 1))
        return SATTN_ESIZE;
    double *point = sattn_alloc(bytes), mean = 0, squares = 0;
    if (!point)
        return SATTN_ENOMEM;
    double *variance = point + DRAWS * t.width;
    for (int64_t done = 0; status == SATTN_OK && done < n; done += DRAWS) {
        const int64_t count = n - done < DRAWS ? n - done : DRAWS;
        status = sattn_task_draw_f64(&t, seed, stream, first + done, count, point, NULL);
        if (status == SATTN_OK)
            status = sattn_task_bayes_f64(&t, count, point, NULL, variance);
        for (int64_t i = 0; status == SATTN_OK && i < count; i++)
            count_in(variance[i], done + i + 1, &mean, &squares);
    }
    sattn_free(point);
    if (status == SATTN_OK && risk)
        *risk = mean;
    if (status == SATTN_OK && error)
        *error = sqrt(squares / (double)(n - 1) / (double)n);
    return status;
}
