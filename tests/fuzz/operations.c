/* SPDX-License-Identifier: BSD-2-Clause */
#include "operations.h"
#include "../harness.h"
#include "sattn/sattn.h"

#define MEMBER(kind, structure, name)                                                              \
    {                                                                                              \
        kind, offsetof(sattn_##structure, name)                                                    \
    }
#define LENGTH(table) (int)(sizeof(table) / sizeof(table)[0])

#define INIT(name, ...)                                                                            \
    static int32_t init_##name(void *p, int64_t bytes, const int64_t *n)                           \
    {                                                                                              \
        return sattn_##name##_init(p, bytes, __VA_ARGS__);                                         \
    }
INIT(softmax, n[0], n[1], n[2])
INIT(attention, n[0], n[1] * n[2], n[2], n[3], n[4], n[5], n[6])
INIT(linear, n[0], n[1], n[2], n[3], n[4], n[5])
INIT(merge, n[0] > 4 ? 4 : n[0], n[1], n[2])
INIT(mixture, n[0], n[1], n[2], n[3], n[4], (int32_t)(n[5] % 6))
INIT(tilt, n[0], n[1], n[2], n[3])
INIT(fit, n[0], n[1], n[2], (int32_t)(n[3] % 3))

#define CALL(name)                                                                                 \
    static int32_t call_##name(const void *p)                                                      \
    {                                                                                              \
        return FN(sattn_##name)(p);                                                                \
    }
CALL(softmax_forward)
CALL(softmax_backward)
CALL(attention_forward)
CALL(attention_backward)
CALL(linear_forward)
CALL(linear_backward)
CALL(merge_forward)
CALL(merge_backward)
CALL(mixture_forward)
CALL(mixture_backward)
CALL(mixture_linear_forward)
CALL(mixture_linear_backward)
CALL(tilt_forward)
CALL(tilt_backward)
CALL(fit)

/* Pointer and strides of the arrays of a descriptor */
#define STRIDED(kind, structure, name)                                                             \
    MEMBER(kind, structure, name.data), MEMBER(STRIDE, structure, name.batch),                     \
        MEMBER(STRIDE, structure, name.head), MEMBER(STRIDE, structure, name.row),                 \
        MEMBER(STRIDE, structure, name.col)
#define CUBE(kind, name)                                                                           \
    MEMBER(kind, softmax, name), MEMBER(STRIDE, softmax, name##_batch),                            \
        MEMBER(STRIDE, softmax, name##_row), MEMBER(STRIDE, softmax, name##_col)
#define ROWS(kind, structure, name)                                                                \
    MEMBER(kind, structure, name), MEMBER(STRIDE, structure, name##_batch),                        \
        MEMBER(STRIDE, structure, name##_row)
#define BATCH(kind, structure, name)                                                               \
    MEMBER(kind, structure, name), MEMBER(STRIDE, structure, name##_batch)
#define FLAT(kind, structure, name)                                                                \
    MEMBER(kind, structure, name), MEMBER(STRIDE, structure, name##_row)
#define WORK(structure)                                                                            \
    MEMBER(WRITTEN, structure, work), MEMBER(SMALL, structure, work_bytes),                        \
        MEMBER(OPTION, structure, flags), MEMBER(OPTION, structure, threads)

static const member softmax[] = {
    CUBE(READ, x),
    CUBE(READ, bias),
    CUBE(READ, mask),
    ROWS(LENGTHS, softmax, length),
    ROWS(READ, softmax, sink),
    CUBE(WRITTEN, y),
    BATCH(WRITTEN, softmax, stats),
    BATCH(WRITTEN, softmax, lse),
    CUBE(READ, dy),
    BATCH(READ, softmax, dlse),
    CUBE(WRITTEN, dx),
    MEMBER(WRITTEN, softmax, dbias),
    MEMBER(WRITTEN, softmax, dsink),
    MEMBER(WRITTEN, softmax, dscale),
    MEMBER(OPTION, softmax, form),
    MEMBER(OPTION, softmax, x_storage),
    MEMBER(OPTION, softmax, y_storage),
    MEMBER(NUMBER, softmax, scale),
    WORK(softmax),
};
static const member attention[] = {
    STRIDED(READ, attention, q),
    STRIDED(READ, attention, k),
    STRIDED(READ, attention, v),
    STRIDED(READ, attention, bias),
    STRIDED(READ, attention, mask),
    STRIDED(READ, attention, slope),
    STRIDED(READ, attention, sink),
    STRIDED(WRITTEN, attention, out),
    STRIDED(WRITTEN, attention, stats),
    STRIDED(WRITTEN, attention, lse),
    STRIDED(READ, attention, dout),
    STRIDED(READ, attention, dlse),
    STRIDED(WRITTEN, attention, dq),
    STRIDED(WRITTEN, attention, dk),
    STRIDED(WRITTEN, attention, dv),
    STRIDED(WRITTEN, attention, dbias),
    STRIDED(WRITTEN, attention, dsink),
    MEMBER(WRITTEN, attention, dscale),
    MEMBER(LENGTHS, attention, key_length),
    MEMBER(LENGTHS, attention, query_offset),
    MEMBER(LENGTHS, attention, key_offset),
    BATCH(PAGES, attention, page),
    MEMBER(COUNT, attention, page_size),
    MEMBER(COUNT, attention, left),
    MEMBER(COUNT, attention, right),
    MEMBER(OPTION, attention, diagonal),
    MEMBER(OPTION, attention, storage),
    MEMBER(NUMBER, attention, scale),
    MEMBER(NUMBER, attention, softcap),
    WORK(attention),
};
static const member linear[] = {
    STRIDED(READ, linear, q),
    STRIDED(READ, linear, k),
    STRIDED(READ, linear, v),
    STRIDED(READ, linear, sum),
    STRIDED(READ, linear, key_sum),
    STRIDED(WRITTEN, linear, out),
    STRIDED(WRITTEN, linear, den),
    STRIDED(WRITTEN, linear, sum_out),
    STRIDED(WRITTEN, linear, key_sum_out),
    STRIDED(READ, linear, dout),
    STRIDED(READ, linear, dsum_out),
    STRIDED(READ, linear, dkey_sum_out),
    STRIDED(WRITTEN, linear, dq),
    STRIDED(WRITTEN, linear, dk),
    STRIDED(WRITTEN, linear, dv),
    STRIDED(WRITTEN, linear, dsum),
    STRIDED(WRITTEN, linear, dkey_sum),
    MEMBER(NUMBER, linear, scale),
    MEMBER(NUMBER, linear, eps),
    MEMBER(COUNT, linear, seen),
    MEMBER(OPTION, linear, feature),
    WORK(linear),
};
static const member merge[] = {
    FLAT(LIST, merge, part_out),     FLAT(LIST, merge, part_stats),
    FLAT(WRITTEN, merge, out),       FLAT(WRITTEN, merge, stats),
    FLAT(READ, merge, dout),         MEMBER(READ, merge, dlse),
    FLAT(TARGETS, merge, part_dout), MEMBER(TARGETS, merge, part_dlse),
    MEMBER(OPTION, merge, flags),    MEMBER(OPTION, merge, threads),
};
static const member mixture[] = {
    ROWS(READ, mixture, tilt),
    BATCH(READ, mixture, log_weight),
    BATCH(READ, mixture, mean),
    BATCH(READ, mixture, covariance),
    BATCH(READ, mixture, value_mean),
    BATCH(READ, mixture, cross),
    ROWS(WRITTEN, mixture, out),
    BATCH(WRITTEN, mixture, stats),
    BATCH(WRITTEN, mixture, cgf),
    ROWS(WRITTEN, mixture, weight),
    ROWS(READ, mixture, dout),
    BATCH(READ, mixture, dcgf),
    ROWS(WRITTEN, mixture, dtilt),
    MEMBER(WRITTEN, mixture, dlog_weight),
    MEMBER(WRITTEN, mixture, dmean),
    MEMBER(WRITTEN, mixture, dcovariance),
    MEMBER(WRITTEN, mixture, dvalue_mean),
    MEMBER(WRITTEN, mixture, dcross),
    MEMBER(OPTION, mixture, rank),
    WORK(mixture),
};
static const member tilt[] = {
    ROWS(READ, tilt, query),       BATCH(READ, tilt, map),         BATCH(READ, tilt, offset),
    ROWS(WRITTEN, tilt, tilt),     ROWS(READ, tilt, dtilt),        ROWS(WRITTEN, tilt, dquery),
    MEMBER(WRITTEN, tilt, dmap),   MEMBER(WRITTEN, tilt, doffset), MEMBER(NUMBER, tilt, scale),
    MEMBER(WRITTEN, tilt, dscale), MEMBER(OPTION, tilt, flags),    MEMBER(OPTION, tilt, threads),
};
static const member fit[] = {
    FLAT(READ, fit, token),
    MEMBER(WRITTEN, fit, log_weight),
    MEMBER(WRITTEN, fit, mean),
    MEMBER(WRITTEN, fit, covariance),
    MEMBER(WRITTEN, fit, trace),
    MEMBER(SMALL, fit, trace_length),
    MEMBER(WRITTEN, fit, label),
    MEMBER(WRITTEN, fit, iterations),
    MEMBER(NUMBER, fit, tolerance),
    MEMBER(NUMBER, fit, floor),
    MEMBER(SMALL, fit, lloyd_iterations),
    MEMBER(SMALL, fit, em_iterations),
    MEMBER(OPTION, fit, flags),
    MEMBER(OPTION, fit, threads),
};

#define OPERATION(name, shapes, ...)                                                               \
    {                                                                                              \
#name, sizeof(sattn_##name), shapes, init_##name, LENGTH(name), name,                      \
        {                                                                                          \
            __VA_ARGS__                                                                            \
        }                                                                                          \
    }
const operation FN(operations)[OPERATIONS] = {
    OPERATION(softmax, 3, call_softmax_forward, call_softmax_backward),
    OPERATION(attention, 7, call_attention_forward, call_attention_backward),
    OPERATION(linear, 6, call_linear_forward, call_linear_backward),
    OPERATION(merge, 3, call_merge_forward, call_merge_backward),
    OPERATION(mixture, 6, call_mixture_forward, call_mixture_backward),
    OPERATION(mixture, 6, call_mixture_linear_forward, call_mixture_linear_backward),
    OPERATION(tilt, 4, call_tilt_forward, call_tilt_backward),
    OPERATION(fit, 4, call_fit),
};
