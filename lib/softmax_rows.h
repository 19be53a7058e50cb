/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SATTN_LIB_SOFTMAX_ROWS_H
#define SATTN_LIB_SOFTMAX_ROWS_H

/* From a checked descriptor to the arguments of a kernel: rows m .. m+rows-1 of batch entry b. */

#include "real.h"
#include "softmax.h"

static inline struct FN(sattn_softmax_rows)
    FN(sattn_softmax_rows_of)(const sattn_softmax_call *k, int64_t b, int64_t m, int64_t rows)
{
    const sattn_softmax *p = &k->p;
    const int64_t own = sizeof(real), x = sattn_storage_bytes(p->x_storage, own);
    const int64_t y = sattn_storage_bytes(p->y_storage, own);
#define PLACE(name, bytes) sattn_softmax_at(p->name, b, p->name##_batch, m, p->name##_row, bytes)
#define OPERAND(name, bytes)                                                                       \
    {                                                                                              \
        PLACE(name, bytes), p->name##_row, p->name##_col                                           \
    }
    const struct FN(sattn_softmax_rows) s = {
        .rows = rows,
        .n = p->width,
        .logarithm = p->form == SATTN_FORM_LOG_SOFTMAX,
        .x_storage = p->x_storage,
        .y_storage = p->y_storage,
        .scale = (real)p->scale,
        .x = OPERAND(x, x),
        .y = OPERAND(y, y),
        .bias = OPERAND(bias, own),
        .mask = OPERAND(mask, 1),
        .length = PLACE(length, (int64_t)sizeof(int64_t)),
        .length_row = p->length_row,
        .sink = PLACE(sink, own),
        .sink_row = p->sink_row,
        .stats = sattn_softmax_at(p->stats, b, p->stats_batch, m, k->stats_row, own),
        .stats_row = k->stats_row,
        .lse = sattn_softmax_at(p->lse, b, p->lse_batch, m, k->lse_row, own),
        .lse_row = k->lse_row,
        .dx = OPERAND(dx, x),
        .dy = OPERAND(dy, y),
        .dlse = sattn_softmax_at(p->dlse, b, p->dlse_batch, m, k->dlse_row, own),
        .dlse_row = k->dlse_row,
    };
#undef OPERAND
#undef PLACE
    return s;
}

#endif
