/* SPDX-License-Identifier: BSD-2-Clause */
/* The layout of the descriptors on LP64: what a program compiled today and a binding count on.
 * Members may be added at the end; an existing line never changes. */
#include "sattn/sattn.h"

#include <stddef.h>
#include <stdio.h>

#define MEMBER(structure, member, offset)                                                          \
    {                                                                                              \
#structure "." #member, offsetof(structure, member), offset                                \
    }

static const struct {
    const char *name;
    size_t offset, expected;
} layout[] = {
    MEMBER(sattn_mixture, size, 0),
    MEMBER(sattn_mixture, batch, 8),
    MEMBER(sattn_mixture, queries, 16),
    MEMBER(sattn_mixture, components, 24),
    MEMBER(sattn_mixture, width, 32),
    MEMBER(sattn_mixture, value_width, 40),
    MEMBER(sattn_mixture, covariance_kind, 48),
    MEMBER(sattn_mixture, flags, 52),
    MEMBER(sattn_mixture, threads, 56),
    MEMBER(sattn_mixture, reserved, 60),
    MEMBER(sattn_mixture, tilt, 64),
    MEMBER(sattn_mixture, tilt_batch, 72),
    MEMBER(sattn_mixture, tilt_row, 80),
    MEMBER(sattn_mixture, log_weight, 88),
    MEMBER(sattn_mixture, log_weight_batch, 96),
    MEMBER(sattn_mixture, mean, 104),
    MEMBER(sattn_mixture, mean_batch, 112),
    MEMBER(sattn_mixture, covariance, 120),
    MEMBER(sattn_mixture, covariance_batch, 128),
    MEMBER(sattn_mixture, value_mean, 136),
    MEMBER(sattn_mixture, value_mean_batch, 144),
    MEMBER(sattn_mixture, cross, 152),
    MEMBER(sattn_mixture, cross_batch, 160),
    MEMBER(sattn_mixture, out, 168),
    MEMBER(sattn_mixture, out_batch, 176),
    MEMBER(sattn_mixture, out_row, 184),
    MEMBER(sattn_mixture, stats, 192),
    MEMBER(sattn_mixture, stats_batch, 200),
    MEMBER(sattn_mixture, cgf, 208),
    MEMBER(sattn_mixture, cgf_batch, 216),
    MEMBER(sattn_mixture, weight, 224),
    MEMBER(sattn_mixture, weight_batch, 232),
    MEMBER(sattn_mixture, weight_row, 240),
    MEMBER(sattn_mixture, dout, 248),
    MEMBER(sattn_mixture, dout_batch, 256),
    MEMBER(sattn_mixture, dout_row, 264),
    MEMBER(sattn_mixture, dcgf, 272),
    MEMBER(sattn_mixture, dcgf_batch, 280),
    MEMBER(sattn_mixture, dtilt, 288),
    MEMBER(sattn_mixture, dtilt_batch, 296),
    MEMBER(sattn_mixture, dtilt_row, 304),
    MEMBER(sattn_mixture, dlog_weight, 312),
    MEMBER(sattn_mixture, dmean, 320),
    MEMBER(sattn_mixture, dcovariance, 328),
    MEMBER(sattn_mixture, dvalue_mean, 336),
    MEMBER(sattn_mixture, dcross, 344),
    MEMBER(sattn_mixture, work, 352),
    MEMBER(sattn_mixture, work_bytes, 360),
    MEMBER(sattn_fit, size, 0),
    MEMBER(sattn_fit, tokens, 8),
    MEMBER(sattn_fit, components, 16),
    MEMBER(sattn_fit, width, 24),
    MEMBER(sattn_fit, covariance_kind, 32),
    MEMBER(sattn_fit, flags, 36),
    MEMBER(sattn_fit, threads, 40),
    MEMBER(sattn_fit, reserved, 44),
    MEMBER(sattn_fit, lloyd_iterations, 48),
    MEMBER(sattn_fit, em_iterations, 56),
    MEMBER(sattn_fit, tolerance, 64),
    MEMBER(sattn_fit, floor, 72),
    MEMBER(sattn_fit, seed, 80),
    MEMBER(sattn_fit, token, 88),
    MEMBER(sattn_fit, token_row, 96),
    MEMBER(sattn_fit, log_weight, 104),
    MEMBER(sattn_fit, mean, 112),
    MEMBER(sattn_fit, covariance, 120),
    MEMBER(sattn_fit, trace, 128),
    MEMBER(sattn_fit, trace_length, 136),
    MEMBER(sattn_fit, iterations, 144),
    MEMBER(sattn_fit, label, 152),
    MEMBER(sattn_fit, progress, 160),
    MEMBER(sattn_fit, progress_context, 168),
    {"sizeof sattn_mixture", sizeof(sattn_mixture), 368},
    {"sizeof sattn_fit", sizeof(sattn_fit), 176},
};

int main(void)
{
    int failed = 0;
    for (size_t i = 0; i < sizeof layout / sizeof layout[0]; i++)
        if (layout[i].offset != layout[i].expected) {
            printf("%s: %zu, not %zu\n", layout[i].name, layout[i].offset, layout[i].expected);
            failed = 1;
        }
    return failed;
}
