/* SPDX-License-Identifier: BSD-2-Clause */
/* Bad descriptors: the documented status, and not a byte written. */
#include "changes.h"
#include "problem.h"

/* A legal problem, its outputs full of 0xff; each case below changes one member. */
static problem legal(void)
{
    return make_problem(&(shape){.batch = 2,
                                 .queries = 3,
                                 .components = 2,
                                 .width = 2,
                                 .value_width = 4,
                                 .kind = SATTN_COVARIANCE_FULL,
                                 .cross = 1,
                                 .reach = 1});
}

static void check_untouched(const problem *x)
{
    for (int i = OUT; i < ARRAYS; i++)
        for (int64_t b = 0; b < x->a[i].batch; b++)
            check(is_untouched(cell(&x->a[i], b, 0, 0),
                               (size_t)(x->a[i].rows * x->a[i].cols) * sizeof(real)));
    check_guarded();
}

static void check_refused(problem *x, int32_t forward, int32_t backward)
{
    int32_t got = forward == SATTN_OK ? SATTN_OK : FN(sattn_mixture_forward)(&x->p);
    cr_assert(got == forward, "forward: %s, not %s: %s", sattn_status_string(got),
              sattn_status_string(forward), where());
    got = backward == SATTN_OK ? SATTN_OK : FN(sattn_mixture_backward)(&x->p);
    cr_assert(got == backward, "backward: %s, not %s: %s", sattn_status_string(got),
              sattn_status_string(backward), where());
    check_untouched(x);
    if (forward == SATTN_OK)
        check(FN(sattn_mixture_forward)(&x->p) == SATTN_OK);
}

#define SET(member, value, forward, backward)                                                      \
    CHANGE(sattn_mixture, member, value, forward, backward)
#define BOTH(member, value, status) SET(member, value, status, status)

static const change changes[] = {
    BOTH(size, 0, ESTRUCT),
    BOTH(size, -1, ESTRUCT),
    BOTH(size, sizeof(sattn_mixture) - 8, ESTRUCT),
    BOTH(size, INT64_MAX, ESTRUCT),
    BOTH(batch, -1, ESIZE),
    BOTH(queries, -1, ESIZE),
    BOTH(components, -1, ESIZE),
    BOTH(width, -1, ESIZE),
    BOTH(value_width, -1, ESIZE),
    BOTH(batch, INT64_MAX, ESIZE),
    BOTH(queries, INT64_MAX, ESIZE),
    BOTH(components, INT64_MAX, ESIZE),
    BOTH(width, INT64_MAX, ESIZE),
    BOTH(width, (int64_t)1 << 31, ESIZE), /* its square */
    BOTH(value_width, INT64_MAX, ESIZE),
    BOTH(covariance_kind, -1, EOPTION),
    BOTH(covariance_kind, SATTN_COVARIANCE_LOW_RANK + 1, EOPTION),
    BOTH(rank, -1, EOPTION),
    BOTH(rank, 1, EOPTION), /* kind FULL */
    BOTH(flags, 4, EOPTION),
    BOTH(flags, INT32_MIN, EOPTION),
    BOTH(threads, -1, EVALUE),
    BOTH(threads, SATTN_MAX_THREADS + 1, EVALUE),
    BOTH(tilt, 0, ENULL),
    BOTH(log_weight, 0, ENULL),
    BOTH(mean, 0, ENULL),
    BOTH(covariance, 0, ENULL),
    BOTH(value_mean, 0, ENULL),
    SET(cross, 0, OK, ENULL), /* dcross is asked for */
    SET(out, 0, OK, ENULL),
    SET(stats, 0, OK, ENULL),
    BOTH(tilt_row, 1, ESTRIDE),
    BOTH(tilt_row, -1, ESTRIDE),
    BOTH(out_row, 3, ESTRIDE),
    SET(out_row, 0, ESTRIDE, OK),
    SET(out_batch, 0, ESTRIDE, OK),
    SET(out_batch, 11, ESTRIDE, OK),
    SET(stats_batch, 5, ESTRIDE, OK),
    SET(cgf_batch, 2, ESTRIDE, OK),
    SET(weight_row, 1, ESTRIDE, OK),
    SET(weight_batch, 0, ESTRIDE, OK),
    SET(dout_row, 3, OK, ESTRIDE),
    SET(dtilt_row, 1, OK, ESTRIDE),
    SET(dtilt_batch, 0, OK, ESTRIDE),
    SET(mean_batch, 3, OK, ESTRIDE), /* means may overlap, their gradients not */
    SET(covariance_batch, 7, OK, ESTRIDE),
    SET(log_weight_batch, 1, OK, ESTRIDE),
    SET(value_mean_batch, 7, OK, ESTRIDE),
    SET(cross_batch, 15, OK, ESTRIDE),
    BOTH(tilt_batch, INT64_MAX, ESIZE),
    BOTH(tilt_row, INT64_MAX / 4, ESIZE),
    BOTH(mean_batch, INT64_MIN, ESIZE),
    BOTH(out_batch, INT64_MAX, ESIZE),
    SET(weight_batch, INT64_MAX / 2, ESIZE, OK),
    SET(dtilt_batch, INT64_MAX, OK, ESIZE),
    SET(dout_batch, INT64_MAX, OK, ESIZE),
};

Test(mixture_bad, members)
{
    for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
        const change *c = &changes[i];
        problem x = legal();
        make_change(c, &x.p);
        check_refused(&x, c->forward, c->backward);
        release_guarded();
    }
}

Test(mixture_bad, log_weights)
{
    static const real bad[] = {(real)NAN, (real)INFINITY};
    for (int i = 0; i < 2; i++)
        for (int64_t c = 0; c < 2; c++)
            for (int64_t b = 0; b < 2; b++) {
                problem x = legal();
                *cell(&x.a[LOG_WEIGHT], b, 0, c) = bad[i];
                check_refused(&x, SATTN_EVALUE, SATTN_EVALUE);
                release_guarded();
            }
}

/* Output `i` moved onto the last element of array `onto` */
static void check_alias(int i, int onto, int32_t forward, int32_t backward)
{
    problem x = legal();
    const array *a = &x.a[onto];
    at("%s in %s", array_names[i], array_names[onto]);
    *pointer_of(&x.p, i) = cell(a, a->batch - 1, a->rows - 1, a->cols - 1);
    check_refused(&x, forward, backward);
    release_guarded();
}

Test(mixture_bad, overlap)
{
    for (int i = OUT; i < DTILT; i++) {
        for (int onto = TILT; onto <= CROSS; onto++)
            check_alias(i, onto, SATTN_EALIAS, SATTN_OK);
        for (int onto = OUT; onto < DTILT; onto++)
            if (onto != i)
                check_alias(i, onto, SATTN_EALIAS, SATTN_OK);
    }
    for (int i = DTILT; i < ARRAYS; i++) {
        for (int onto = TILT; onto < CGF; onto++)
            check_alias(i, onto, SATTN_OK, SATTN_EALIAS);
        for (int onto = DTILT; onto < ARRAYS; onto++)
            if (onto != i)
                check_alias(i, onto, SATTN_OK, SATTN_EALIAS);
    }
}

/* A workspace too small, misaligned, or sharing bytes with an array; one that fits is enough. */
Test(mixture_bad, workspace)
{
    int64_t bytes = 0;
    problem x = legal();
    at("workspace");
    check(FN(sattn_mixture_workspace)(&x.p, &bytes) == SATTN_OK && bytes > 0);
    char *work = sattn_alloc(bytes + 64);
    x.p.work = work, x.p.work_bytes = 64;
    check_refused(&x, SATTN_EWORKSPACE, SATTN_EWORKSPACE);
    x.p.work = work + 8, x.p.work_bytes = bytes;
    check_refused(&x, SATTN_EWORKSPACE, SATTN_EWORKSPACE);
    x.p.work = work;
    x.p.tilt = work + bytes - 64;
    check_refused(&x, SATTN_EALIAS, SATTN_EALIAS);
    x.p.tilt = x.a[TILT].data;
    x.p.out = work;
    check_refused(&x, SATTN_EALIAS, SATTN_EALIAS);
    x.p.out = x.a[OUT].data;
    check(FN(sattn_mixture_forward)(&x.p) == SATTN_OK);
    check(FN(sattn_mixture_backward)(&x.p) == SATTN_OK);
    sattn_free(work);
    release_guarded();
}

/* A caller compiled with a later header: what this version does not know must be zero. */
Test(mixture_bad, later_descriptor)
{
    struct {
        sattn_mixture p;
        unsigned char tail[24];
    } later = {.tail = {0}};
    for (size_t i = 0; i <= sizeof later.tail; i++) {
        problem x = legal();
        later.p = x.p;
        later.p.size = sizeof later;
        if (i < sizeof later.tail) {
            at("tail byte %d", (int)i);
            later.tail[i] = 1;
            check(FN(sattn_mixture_forward)(&later.p) == SATTN_ESTRUCT);
            check(FN(sattn_mixture_backward)(&later.p) == SATTN_ESTRUCT);
            check_untouched(&x);
            later.tail[i] = 0;
        } else {
            check(FN(sattn_mixture_forward)(&later.p) == SATTN_OK);
            check(FN(sattn_mixture_backward)(&later.p) == SATTN_OK);
        }
        release_guarded();
    }
}

Test(mixture_bad, init_and_workspace)
{
    sattn_mixture p;
    const int64_t size = sizeof p, many = (int64_t)1 << 40;
    int64_t bytes = -7;
    memset(&p, 0xff, sizeof p);
    at("init");
    check(sattn_mixture_init(NULL, size, 1, 1, 1, 1, 0, 0) == SATTN_ENULL);
    check(sattn_mixture_init(&p, 0, 1, 1, 1, 1, 0, 0) == SATTN_ESTRUCT);
    check(sattn_mixture_init(&p, size - 1, 1, 1, 1, 1, 0, 0) == SATTN_ESTRUCT);
    check(sattn_mixture_init(&p, size, -1, 1, 1, 1, 0, 0) == SATTN_ESIZE);
    check(sattn_mixture_init(&p, size, 1, -1, 1, 1, 0, 0) == SATTN_ESIZE);
    check(sattn_mixture_init(&p, size, 1, 1, -1, 1, 0, 0) == SATTN_ESIZE);
    check(sattn_mixture_init(&p, size, 1, 1, 1, -1, 0, 0) == SATTN_ESIZE);
    check(sattn_mixture_init(&p, size, 1, 1, 1, 1, -1, 0) == SATTN_ESIZE);
    check(sattn_mixture_init(&p, size, many, many, 1, 1, 0, 0) == SATTN_ESIZE);
    check(sattn_mixture_init(&p, size, 1, many, many, 1, 0, 0) == SATTN_ESIZE);
    check(sattn_mixture_init(&p, size, 1, 1, 1, many, 0, 2) == SATTN_ESIZE);
    check(sattn_mixture_init(&p, size, 1, 1, 1, many, many, 0) == SATTN_ESIZE);
    check(sattn_mixture_init(&p, size, 0, many, 1, many, 0, 0) == SATTN_ESIZE);
    check(sattn_mixture_init(&p, size, 1, 1, 1, 1, 0, 6) == SATTN_EOPTION);
    check(sattn_mixture_init(&p, size, 1, 1, 1, 1, 0, -1) == SATTN_EOPTION);
    check(is_untouched(&p, sizeof p));
    check(sattn_mixture_init(&p, size, 1, 1, 1, 1, 0, 0) == SATTN_OK);
    at("workspace");
    check(FN(sattn_mixture_workspace)(NULL, &bytes) == SATTN_ENULL);
    check(FN(sattn_mixture_workspace)(&p, NULL) == SATTN_ENULL);
    p.width = -1;
    check(FN(sattn_mixture_workspace)(&p, &bytes) == SATTN_ESIZE && bytes == -7);
    p.width = 1, p.size = 8;
    check(FN(sattn_mixture_workspace)(&p, &bytes) == SATTN_ESTRUCT);
    at("wide");
    check(sattn_mixture_init(&p, size, 1, 1, 1, many, 0, 0) == SATTN_OK);
    check(FN(sattn_mixture_workspace)(&p, &bytes) == SATTN_OK && bytes > many);
    check(FN(sattn_mixture_forward)(NULL) == SATTN_ENULL);
    check(FN(sattn_mixture_backward)(NULL) == SATTN_ENULL);
}
