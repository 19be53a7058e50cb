/* SPDX-License-Identifier: BSD-2-Clause */
/* What holds of every descriptor: init serves callers that were compiled with a later header,
 * refuses sizes that are none, and shapes that cannot be counted even where another size is 0. */
#include "../harness.h"
#include "sattn/sattn.h"

#include <string.h>

typedef struct {
    const char *name;
    int64_t size;
    int shapes; /* numbers after the size */
    int32_t (*init)(void *p, int64_t size, const int64_t *n);
} descriptor;

static int32_t attention(void *p, int64_t size, const int64_t *n)
{
    return sattn_attention_init(p, size, n[0], n[1], n[1], n[2], n[3], n[4], n[5]);
}

static int32_t fit(void *p, int64_t size, const int64_t *n)
{
    return sattn_fit_init(p, size, n[0], n[1], n[2], SATTN_COVARIANCE_FULL);
}

static int32_t learn(void *p, int64_t size, const int64_t *n)
{
    (void)n;
    return sattn_learn_init(p, size);
}

static int32_t linear(void *p, int64_t size, const int64_t *n)
{
    return sattn_linear_init(p, size, n[0], n[1], n[2], n[3], n[4], n[5]);
}

static int32_t merge(void *p, int64_t size, const int64_t *n)
{
    return sattn_merge_init(p, size, n[0], n[1], n[2]);
}

static int32_t mixture(void *p, int64_t size, const int64_t *n)
{
    return sattn_mixture_init(p, size, n[0], n[1], n[2], n[3], n[4], SATTN_COVARIANCE_FULL);
}

static int32_t softmax(void *p, int64_t size, const int64_t *n)
{
    return sattn_softmax_init(p, size, n[0], n[1], n[2]);
}

static int32_t task(void *p, int64_t size, const int64_t *n)
{
    return sattn_task_init(p, size, n[0], n[1], n[2]);
}

static int32_t tilt(void *p, int64_t size, const int64_t *n)
{
    return sattn_tilt_init(p, size, n[0], n[1], n[2], n[3]);
}

static int32_t train(void *p, int64_t size, const int64_t *n)
{
    return sattn_train_init(p, size, n[0]);
}

static const descriptor descriptors[] = {
    {"attention", sizeof(sattn_attention), 6, attention},
    {"fit", sizeof(sattn_fit), 3, fit},
    {"learn", sizeof(sattn_learn), 0, learn},
    {"linear", sizeof(sattn_linear), 6, linear},
    {"merge", sizeof(sattn_merge), 3, merge},
    {"mixture", sizeof(sattn_mixture), 5, mixture},
    {"softmax", sizeof(sattn_softmax), 3, softmax},
    {"task", sizeof(sattn_task), 3, task},
    {"tilt", sizeof(sattn_tilt), 4, tilt},
    {"train", sizeof(sattn_train), 1, train},
};
enum { DESCRIPTORS = sizeof descriptors / sizeof descriptors[0], ROOM = 4096 };

Test(descriptors, sizes)
{
    static const int64_t ones[] = {1, 1, 1, 1, 1, 1};
    static unsigned char p[ROOM], later[ROOM];
    for (int i = 0; i < DESCRIPTORS; i++) {
        const descriptor *d = &descriptors[i];
        const int64_t wrong[] = {INT64_MIN, -1, 0, 8, 1 << 17, INT64_MAX};
        at("%s", d->name);
        memset(p, 0xff, sizeof p);
        check(d->init(NULL, d->size, ones) == SATTN_ENULL);
        for (int j = 0; j < 6; j++)
            check(d->init(p, wrong[j], ones) == SATTN_ESTRUCT && is_untouched(p, sizeof p));
        check(d->init(p, d->size, ones) == SATTN_OK);
        check(is_untouched(p + d->size, (size_t)(ROOM - d->size)));
        memset(later, 0xff, sizeof later);
        check(d->init(later, d->size + 64, ones) == SATTN_OK);
        check(memcmp(p + sizeof(int64_t), later + sizeof(int64_t),
                     (size_t)d->size - sizeof(int64_t)) == 0);
        for (int64_t k = d->size; k < d->size + 64; k++)
            check(later[k] == 0);
        check(is_untouched(later + d->size + 64, (size_t)(ROOM - d->size - 64)));
    }
}

/* Each size in turn is hopeless or negative while the others are 0, 1 or large. */
Test(descriptors, shapes)
{
    static const int64_t others[] = {0, 1, 1 << 20, INT64_MAX / 3};
    static const int64_t hopeless[] = {INT64_MAX, INT64_MAX - 1, INT64_MAX / 2, -1, INT64_MIN};
    static unsigned char p[ROOM];
    memset(p, 0xff, sizeof p);
    for (int i = 0; i < DESCRIPTORS; i++)
        for (int j = 0; j < descriptors[i].shapes; j++)
            for (int k = 0; k < 4; k++)
                for (int l = 0; l < 5; l++) {
                    int64_t n[6];
                    for (int m = 0; m < 6; m++)
                        n[m] = m == j ? hopeless[l] : others[k];
                    at("%s: number %d is %lld, the others %lld", descriptors[i].name, j,
                       (long long)hopeless[l], (long long)others[k]);
                    check(descriptors[i].init(p, descriptors[i].size, n) == SATTN_ESIZE);
                    check(is_untouched(p, sizeof p));
                }
}

/* A call without an element to write is over at once, however many rows it counts. */
Test(descriptors, nothing)
{
    const int64_t many = (int64_t)1 << 48;
    const double none = 0;
    sattn_attention attention;
    check(sattn_attention_init(&attention, sizeof attention, 1, 1, 1, many, 0, 0, 0) == SATTN_OK);
    check(sattn_attention_forward_f64(&attention) == SATTN_OK);
    sattn_linear linear;
    check(sattn_linear_init(&linear, sizeof linear, 1, 1, many, many, 0, 0) == SATTN_OK);
    check(sattn_linear_forward_f64(&linear) == SATTN_OK);
    check(sattn_linear_backward_f64(&linear) == SATTN_OK);
    sattn_merge merge;
    check(sattn_merge_init(&merge, sizeof merge, 0, many, 0) == SATTN_OK);
    check(sattn_merge_forward_f64(&merge) == SATTN_OK);
    sattn_mixture mixture;
    check(sattn_mixture_init(&mixture, sizeof mixture, 1, many, 1, 0, 0, SATTN_COVARIANCE_ZERO) ==
          SATTN_OK);
    mixture.log_weight = &none;
    check(sattn_mixture_forward_f64(&mixture) == SATTN_OK);
    check(sattn_mixture_linear_forward_f64(&mixture) == SATTN_OK);
    sattn_softmax softmax;
    check(sattn_softmax_init(&softmax, sizeof softmax, 1, many, 0) == SATTN_OK);
    check(sattn_softmax_forward_f64(&softmax) == SATTN_OK);
    sattn_tilt tilt;
    check(sattn_tilt_init(&tilt, sizeof tilt, 1, many, 0, 0) == SATTN_OK);
    check(sattn_tilt_forward_f64(&tilt) == SATTN_OK);
    check(sattn_tilt_backward_f64(&tilt) == SATTN_OK);
}

/* Shapes whose scratch cannot be counted: refused, without an overflow on the way. */
Test(descriptors, scratch)
{
    sattn_mixture p;
    check(sattn_mixture_init(&p, sizeof p, 1, 1, (int64_t)1 << 58, 0, 0, SATTN_COVARIANCE_ZERO) ==
          SATTN_ESIZE);
    check(sattn_mixture_init(&p, sizeof p, 1, 1, 1, 1, (int64_t)1 << 58, SATTN_COVARIANCE_ZERO) ==
          SATTN_ESIZE);
}
