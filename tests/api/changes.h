/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SATTN_TEST_CHANGES_H
#define SATTN_TEST_CHANGES_H

/* Descriptors that are legal but for one member. */

#include "../harness.h"

#include <string.h>

/* A member, its value, the status of forward and of backward */
typedef struct {
    const char *what;
    size_t offset, bytes;
    int64_t value;
    int32_t forward, backward;
} change;

#define CHANGE(structure, member, value, forward, backward)                                        \
    {                                                                                              \
#member " = " #value, offsetof(structure, member), sizeof(((structure *)0)->member),       \
            value, SATTN_##forward, SATTN_##backward                                               \
    }

/* Makes the change, which at() then names. */
static inline void make_change(const change *c, void *descriptor)
{
    unsigned char *member = (unsigned char *)descriptor + c->offset;
    const int32_t narrow = (int32_t)c->value;
    at("%s", c->what);
    memcpy(member, c->bytes == 4 ? (const void *)&narrow : (const void *)&c->value, c->bytes);
}

#endif
