/* SPDX-License-Identifier: BSD-2-Clause */
/* Bad descriptors of softmax: the documented status, and no output written. */
#include "lines.h"

static real x[64], y[64], other[64], stats[16], lse[8], bias[64], sink[8];
static union {
    real numbers[2048];
    char bytes[sizeof(real[2048])];
} work __attribute__((aligned(64)));

/* B = 2, M = 3, N = 4 with everything that there is */
static sattn_softmax good(void)
{
    sattn_softmax p;
    memset(x, 0, sizeof x);
    memset(bias, 0, sizeof bias);
    memset(sink, 0, sizeof sink);
    memset(other, 0, sizeof other);
    memset(stats, 0, sizeof stats);
    memset(y, 0xff, sizeof y);
    memset(lse, 0xff, sizeof lse);
    check(sattn_softmax_init(&p, sizeof p, 2, 3, 4) == SATTN_OK);
    p.x = x, p.y = y, p.lse = lse;
    return p;
}

static sattn_softmax good_backward(void)
{
    sattn_softmax p = good();
    p.lse = NULL, p.stats = stats, p.bias = bias, p.sink = sink, p.bias_batch = p.bias_row = 0;
    p.y = other, p.dy = other, p.dx = y, p.dbias = lse, p.dscale = lse + 4, p.dsink = lse + 5;
    p.sink_batch = p.sink_row = 0;
    return p;
}

#define REFUSED(status, make, function, change)                                                    \
    do {                                                                                           \
        sattn_softmax p = make();                                                                  \
        change;                                                                                    \
        at("%s", #change);                                                                         \
        const int32_t got = FN(function)(&p);                                                      \
        cr_assert(got == (status), "%s, not %s: %s", sattn_status_string(got),                     \
                  sattn_status_string(status), where());                                           \
        check(is_untouched(y, sizeof y) && is_untouched(lse, sizeof lse));                         \
    } while (0)
#define FORWARD(status, change) REFUSED(status, good, sattn_softmax_forward, change)
#define BACKWARD(status, change) REFUSED(status, good_backward, sattn_softmax_backward, change)

Test(softmax_bad, init)
{
    sattn_softmax p;
    memset(&p, 0xff, sizeof p);
    check(sattn_softmax_init(NULL, sizeof p, 1, 1, 1) == SATTN_ENULL);
    check(sattn_softmax_init(&p, sizeof p - 8, 1, 1, 1) == SATTN_ESTRUCT);
    check(sattn_softmax_init(&p, sizeof p, -1, 1, 1) == SATTN_ESIZE);
    check(sattn_softmax_init(&p, sizeof p, 1, -1, 1) == SATTN_ESIZE);
    check(sattn_softmax_init(&p, sizeof p, 1, 1, INT64_MIN) == SATTN_ESIZE);
    check(sattn_softmax_init(&p, sizeof p, (int64_t)1 << 31, (int64_t)1 << 31, 2) == SATTN_ESIZE);
    check(is_untouched(&p, sizeof p));
}

Test(softmax_bad, shape_and_options)
{
    FORWARD(SATTN_ESTRUCT, p.size = 8);
    FORWARD(SATTN_ESIZE, p.batch = -1);
    FORWARD(SATTN_ESIZE, p.rows = INT64_MAX / 2);
    FORWARD(SATTN_ESIZE, p.width = -4);
    FORWARD(SATTN_ESIZE, p.x_batch = INT64_MAX / 2);
    FORWARD(SATTN_ESIZE, p.y_col = INT64_MIN);
    FORWARD(SATTN_EOPTION, p.form = 2);
    FORWARD(SATTN_EOPTION, p.form = -1);
    FORWARD(SATTN_EOPTION, p.flags = 1);
    FORWARD(SATTN_EOPTION, p.reserved = 1);
    FORWARD(SATTN_EOPTION, p.x_storage = 3);
    FORWARD(SATTN_EOPTION, p.y_storage = -1);
    if (sizeof(real) == 8)
        FORWARD(SATTN_EOPTION, p.x_storage = SATTN_STORAGE_BF16);
    FORWARD(SATTN_EVALUE, p.scale = (double)NAN);
    FORWARD(SATTN_EVALUE, p.scale = -(double)INFINITY);
    if (sizeof(real) == 4)
        FORWARD(SATTN_EVALUE, p.scale = 1e39);
    if (sizeof(real) == 4)
        FORWARD(SATTN_EVALUE, p.scale = 1e-300);
    FORWARD(SATTN_EVALUE, p.threads = -1);
    FORWARD(SATTN_EVALUE, p.threads = SATTN_MAX_THREADS + 1);
    check(FN(sattn_softmax_forward)(NULL) == SATTN_ENULL);
    check(FN(sattn_softmax_backward)(NULL) == SATTN_ENULL);
}

Test(softmax_bad, arrays)
{
    static const int64_t lengths[] = {0, 4, 5, 0, 0, 0}, negative[] = {0, 1, 2, 3, 4, -1};
    FORWARD(SATTN_ENULL, p.x = NULL);
    FORWARD(SATTN_ESTRIDE, p.y_col = 0);
    FORWARD(SATTN_ESTRIDE, p.y_row = 3);
    FORWARD(SATTN_ESTRIDE, p.lse_batch = 2);
    FORWARD(SATTN_ESTRIDE, p.stats = stats; p.stats_batch = 5);
    FORWARD(SATTN_EALIAS, p.x = y + 1);
    FORWARD(SATTN_EALIAS, p.x = y; p.x_row = 8; p.x_batch = 24);
    FORWARD(SATTN_EALIAS, p.bias = y + 3; p.bias_batch = p.bias_row = 0);
    FORWARD(SATTN_EALIAS, p.mask = (const uint8_t *)y + 5; p.mask_batch = p.mask_row = 0);
    FORWARD(SATTN_EALIAS, p.lse = y + 23);
    FORWARD(SATTN_EVALUE, p.length = lengths);
    FORWARD(SATTN_EVALUE, p.length = negative);
    if (sizeof(real) == 4)
        FORWARD(SATTN_EALIAS, p.x = y; p.x_storage = SATTN_STORAGE_BF16);
}

Test(softmax_bad, backward)
{
    int64_t bytes = -1;
    BACKWARD(SATTN_ENULL, p.y = NULL; p.stats = NULL);
    BACKWARD(SATTN_ENULL, p.y = NULL; p.x = NULL; p.dscale = NULL);
    BACKWARD(SATTN_ENULL, p.x = NULL);
    BACKWARD(SATTN_ENULL, p.bias = NULL);
    BACKWARD(SATTN_ENULL, p.sink = NULL);
    BACKWARD(SATTN_ENULL, p.stats = NULL);
    BACKWARD(SATTN_ESTRIDE, p.dx_row = 2);
    BACKWARD(SATTN_EALIAS, p.x = y);
    BACKWARD(SATTN_EALIAS, p.dbias = y);
    BACKWARD(SATTN_EALIAS, p.dy = y + 1);
    BACKWARD(SATTN_EWORKSPACE, p.work = work.bytes; p.work_bytes = 63);
    BACKWARD(SATTN_EWORKSPACE, p.work = work.bytes + 8; p.work_bytes = sizeof work - 8);
    BACKWARD(SATTN_EALIAS, p.work = other; p.work_bytes = sizeof other);
    sattn_softmax p = good_backward();
    check(FN(sattn_softmax_workspace)(&p, NULL) == SATTN_ENULL);
    p.form = 9;
    check(FN(sattn_softmax_workspace)(&p, &bytes) == SATTN_EOPTION && bytes == -1);
    p.form = 0;
    check(FN(sattn_softmax_workspace)(&p, &bytes) == SATTN_OK && bytes > 0);
    p.work = work.bytes, p.work_bytes = bytes;
    check(bytes <= (int64_t)sizeof work && FN(sattn_softmax_backward)(&p) == SATTN_OK);
    check(lse[0] == 0 && lse[4] == 0 && lse[5] == 0 && y[23] == 0);
}

/* Sizes of 0 are legal, arrays without elements may be NULL. */
Test(softmax_bad, empty)
{
    static const int64_t sizes[][3] = {{0, 3, 4}, {2, 0, 4}, {2, 3, 0}};
    for (int i = 0; i < 3; i++) {
        sattn_softmax p = good();
        check(sattn_softmax_init(&p, sizeof p, sizes[i][0], sizes[i][1], sizes[i][2]) == SATTN_OK);
        check(FN(sattn_softmax_forward)(&p) == SATTN_OK);
        check(FN(sattn_softmax_backward)(&p) == (i == 2 ? SATTN_ENULL : SATTN_OK));
        p.lse = lse, p.stats = stats;
        check(FN(sattn_softmax_forward)(&p) == SATTN_OK);
        check(i < 2 || (lse[5] == -(real)INFINITY && stats[10] == -(real)INFINITY));
        p.bias = bias, p.bias_batch = p.bias_row = 0, p.dbias = y, p.dscale = y + 10;
        check(FN(sattn_softmax_backward)(&p) == SATTN_OK && y[10] == 0);
        check(i == 2 || (y[0] == 0 && y[3] == 0));
    }
}
