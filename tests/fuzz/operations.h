/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SATTN_TEST_OPERATIONS_H
#define SATTN_TEST_OPERATIONS_H

/* The operations that take a descriptor, and what the members of each are. Compiled once a type. */

#include "sattn/base.h"

#include <stddef.h>

typedef enum {
    READ,    /* pointer to reals, 16-bit storage or bytes that the call reads */
    WRITTEN, /* pointer to memory that the call may write */
    LENGTHS, /* pointer to int64_t: lengths or offsets, of any value */
    PAGES,   /* pointer to int32_t: numbers of pages, small (what they point at must be there) */
    LIST,    /* pointer to four pointers that the call reads through */
    TARGETS, /* pointer to four pointers that the call writes through */
    STRIDE,
    COUNT,  /* int64_t: an option, of any value */
    SMALL,  /* int64_t that says how much memory or time there is */
    OPTION, /* int32_t */
    NUMBER  /* double */
} member_kind;

typedef struct {
    member_kind kind;
    size_t offset;
} member;

typedef struct {
    const char *name;
    int64_t bytes;
    int shapes; /* numbers that init takes */
    int32_t (*init)(void *p, int64_t bytes, const int64_t *shape);
    int members;
    const member *member;
    int32_t (*call[3])(const void *p); /* NULL = no more */
} operation;

enum { OPERATIONS = 8 };
extern const operation operations_f32[OPERATIONS], operations_f64[OPERATIONS];

#endif
