/* SPDX-License-Identifier: BSD-2-Clause */
/* Bad input to the random numbers: the documented status, and nothing written. */
#include "../harness.h"
#include "sattn/random.h"

#include <math.h>
#include <string.h>

static union {
    uint32_t words[16];
    float narrow[16];
    double wide[8];
    int32_t classes[16];
} out;
static double log_weight[2];

/* All functions answer alike. */
static void check_all(int64_t first, int64_t n, int has_out, int32_t status)
{
    at("first %lld n %lld", (long long)first, (long long)n);
    memset(&out, 0xff, sizeof out);
    check(sattn_random_words(1, 2, first, n, has_out ? out.words : NULL) == status);
    check(sattn_random_uniform_f64(1, 2, first, n, has_out ? out.wide : NULL) == status);
    check(sattn_random_normal_f64(1, 2, first, n, has_out ? out.wide : NULL) == status);
    check(sattn_random_normal_f32(1, 2, first, n, has_out ? out.narrow : NULL) == status);
    check(sattn_random_categorical(1, 2, first, n, 2, log_weight, has_out ? out.classes : NULL) ==
          status);
    check(sattn_random_sphere_f64(1, 2, first, n, 1, 1, has_out ? out.wide : NULL) == status);
    check(is_untouched(&out, sizeof out));
}

Test(random_bad, arguments)
{
    const int64_t end = (int64_t)1 << 62;
    check_all(0, -1, 1, SATTN_ESIZE);
    check_all(-1, 4, 1, SATTN_ESIZE);
    check_all(end, 0, 1, SATTN_ESIZE);
    check_all(end - 4, 4, 1, SATTN_ESIZE);
    check_all(INT64_MAX, INT64_MAX, 1, SATTN_ESIZE);
    check_all(INT64_MIN, INT64_MAX, 1, SATTN_ESIZE);
    check_all(0, 4, 0, SATTN_ENULL);
    check_all(0, 0, 0, SATTN_OK);
    check_all(end - 5, 0, 1, SATTN_OK);
    check(sattn_random_normal_f64(1, 2, end - 5, 4, out.wide) == SATTN_OK);
}

Test(random_bad, draws)
{
    double *x = out.wide;
    int32_t *c = out.classes;
    memset(&out, 0xff, sizeof out);
    check(sattn_random_sphere_f64(1, 2, 0, 1, 0, 1, x) == SATTN_ESIZE);
    check(sattn_random_sphere_f64(1, 2, 0, (int64_t)1 << 40, (int64_t)1 << 40, 1, x) ==
          SATTN_ESIZE);
    check(sattn_random_sphere_f64(1, 2, (int64_t)1 << 61, 1, 2, 1, x) == SATTN_ESIZE);
    check(sattn_random_sphere_f64(1, 2, 0, 1, 2, -1, x) == SATTN_EVALUE);
    check(sattn_random_sphere_f64(1, 2, 0, 1, 2, (double)INFINITY, x) == SATTN_EVALUE);
    check(sattn_random_sphere_f64(1, 2, 0, 1, 2, (double)NAN, x) == SATTN_EVALUE);
    check(sattn_random_categorical(1, 2, 0, 1, 0, log_weight, c) == SATTN_ESIZE);
    check(sattn_random_categorical(1, 2, 0, 1, (int64_t)1 << 31, log_weight, c) == SATTN_ESIZE);
    check(sattn_random_categorical(1, 2, 0, 1, 2, NULL, c) == SATTN_ENULL);
    const double bad[][2] = {
        {0, (double)NAN}, {(double)INFINITY, 0}, {-(double)INFINITY, -(double)INFINITY}};
    for (int i = 0; i < 3; i++)
        check(sattn_random_categorical(1, 2, 0, 1, 2, bad[i], c) == SATTN_EVALUE);
    check(is_untouched(&out, sizeof out));
}
