/* SPDX-License-Identifier: BSD-2-Clause */
#include "fuzz.h"
#include "../harness.h"
#include "operations.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Memory: equal areas, each pointer at the middle of one. */
enum { AREAS = 40, AREA = 1 << 18, MIDDLE = AREA / 2, LISTED = 4, ROOM = 4096 };

typedef struct {
    const uint8_t *bytes;
    size_t left;
} source;

typedef struct {
    source in;
    const operation *op;
    size_t real_bytes;
    int oddness; /* of 256 decisions */
    int sparse;  /* of 8 arrays that are not there */
    unsigned char descriptor[ROOM];
    int written[AREAS]; /* an output may be there */
    int used;           /* areas */
    void *list[LISTED * 4];
    int lists;
} attempt;

static unsigned char areas[AREAS][AREA] __attribute__((aligned(64)));
static unsigned char first_run[AREAS][AREA] __attribute__((aligned(64)));
static unsigned char fresh[AREA] __attribute__((aligned(64)));
static int64_t lengths[AREA / 8];
static int32_t pages[AREA / 4];

static int next(source *s)
{
    if (s->left == 0)
        return 0;
    s->left--;
    return *s->bytes++;
}

static int64_t one_of(source *s, const int64_t *value, int values)
{
    return value[next(s) % values];
}
#define ONE_OF(s, ...)                                                                             \
    one_of(s, (const int64_t[]){__VA_ARGS__}, sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t))

/* Memory */

static void put(void *memory, int64_t i, double x, size_t bytes)
{
    if (bytes == 4)
        ((float *)memory)[i] = (float)x;
    else
        ((double *)memory)[i] = x;
}

static void fill(source *s, size_t bytes)
{
    static const double odd[] = {NAN, INFINITY, -INFINITY, 0, -0.0, 1e30, -1e30, 1e-40};
    rng g = seed_of((uint64_t)next(s));
    const int kind = next(s) % 4; /* calm, with a few odd numbers, many of them, all the same */
    const double same = odd[next(s) % 8];
    for (int64_t i = 0; i < (int64_t)(AREA / bytes); i++) {
        const uint64_t bits = random_bits(&g);
        const int odd_one = kind == 1 ? bits % 64 == 0 : kind == 2 && bits % 4 == 0;
        put(fresh, i,
            kind == 3 ? same
            : odd_one ? odd[bits / 64 % 8]
                      : random_in(&g, -2, 2),
            bytes);
    }
    for (int i = 0; i < AREAS; i++)
        memcpy(areas[i], fresh, AREA);
    const int pattern = next(s) % 3; /* equal, rising, any of few */
    const int64_t base = ONE_OF(s, 0, 1, 2, 3, 5, 64, -1, 1 << 20);
    for (int64_t i = 0; i < AREA / 8; i++)
        lengths[i] = pattern == 0   ? base
                     : pattern == 1 ? (i - AREA / 16) * base
                                    : (int64_t)(random_bits(&g) % 6);
    for (int64_t i = 0; i < AREA / 4; i++)
        pages[i] = (int32_t)(random_bits(&g) % 4);
}

static int is_odd(attempt *a)
{
    return next(&a->in) >= 256 - a->oddness;
}

/* A pointer to an area of its own, sometimes to another's, sometimes not to its middle */
static void *somewhere(attempt *a, int written)
{
    const int word = next(&a->in);
    const int area = is_odd(a) && a->used ? word % a->used : a->used % AREAS;
    a->used += area == a->used;
    a->written[area] |= written;
    return areas[area] + MIDDLE + (word % 8 == 2 ? word / 8 * 8 : 0);
}

static void *list_of(attempt *a, int written)
{
    if (a->lists == LISTED)
        return NULL;
    void **list = a->list + 4 * a->lists++;
    for (int i = 0; i < 4; i++)
        list[i] = is_odd(a) ? NULL : somewhere(a, written);
    return list;
}

/* Members */

static void *pointer_of(attempt *a, member_kind kind)
{
    const int optional = kind == LENGTHS || kind == PAGES;
    if (next(&a->in) % 8 < (optional ? 6 : a->sparse))
        return NULL;
    switch (kind) {
    case LENGTHS:
        return lengths + AREA / 16;
    case PAGES:
        return pages + AREA / 8;
    case LIST:
        return list_of(a, 0);
    case TARGETS:
        return list_of(a, 1);
    default:
        return somewhere(a, kind == WRITTEN);
    }
}

static void set_integer(attempt *a, member m)
{
    source *s = &a->in;
    int64_t x;
    int32_t narrow;
    if (!is_odd(a)) /* as init left it */
        return;
    if (m.kind == OPTION) {
        narrow = (int32_t)ONE_OF(s, -1, 0, 1, 2, 3, 4, 5, 8, 16, 2000, INT32_MIN, INT32_MAX);
        memcpy(a->descriptor + m.offset, &narrow, sizeof narrow);
        return;
    }
    if (m.kind == STRIDE)
        x = ONE_OF(s, 0, 1, -1, 2, 3, 7, -7, 24, INT64_MAX, INT64_MIN, INT64_MAX / 2);
    else if (m.kind == SMALL)
        x = ONE_OF(s, -2, -1, 0, 1, 2, 3, 1 << 13);
    else
        x = ONE_OF(s, -2, -1, 0, 1, 2, 3, 64, 128, INT64_MAX, INT64_MIN);
    memcpy(a->descriptor + m.offset, &x, sizeof x);
}

static void set_member(attempt *a, member m)
{
    static const double numbers[] = {0, -1, .5, 30, 1e-300, 1e300, INFINITY, -INFINITY, NAN};
    unsigned char *at_member = a->descriptor + m.offset;
    if (m.kind == NUMBER) {
        if (is_odd(a))
            memcpy(at_member, &numbers[next(&a->in) % 9], sizeof(double));
    } else if (m.kind >= STRIDE) {
        set_integer(a, m);
    } else {
        void *pointer = pointer_of(a, m.kind);
        memcpy(at_member, &pointer, sizeof pointer);
    }
}

/* Small sizes, one of them sometimes about a tile; all arrays fit into an area. */
static int32_t set_shape(attempt *a)
{
    int64_t n[8], product = 1, largest = 1;
    for (int i = 0; i < a->op->shapes; i++)
        n[i] = ONE_OF(&a->in, 1, 2, 1, 3, 4, 1, 5, 0);
    n[next(&a->in) % a->op->shapes] = ONE_OF(&a->in, 1, 2, 17, 49, 66);
    for (int i = 0; i < a->op->shapes; i++) {
        product *= n[i] > 1 ? n[i] : 1;
        largest = n[i] > largest ? n[i] : largest;
    }
    for (int i = 0; i < a->op->shapes && product * largest > MIDDLE / 16; i++)
        n[i] = n[i] > 2 ? 2 : n[i];
    return a->op->init(a->descriptor, a->op->bytes, n);
}

/* What a call may not do */

static const char *changed(const attempt *a, int32_t status)
{
    for (int i = 0; i < AREAS; i++)
        if ((status != SATTN_OK || !a->written[i]) && memcmp(areas[i], fresh, AREA) != 0)
            return status == SATTN_OK ? "memory that is no output was written"
                                      : "a failed call has written";
    return NULL;
}

static const char *run(attempt *a, int32_t (*call)(const void *), int64_t *ok)
{
    const char *wrong;
    const int32_t status = call(a->descriptor);
    if (status > SATTN_OK || status < SATTN_EUNSUPPORTED || status == SATTN_ENOMEM)
        return "no such status is expected";
    if ((wrong = changed(a, status)))
        return wrong;
    ++*(status == SATTN_OK ? ok : (int64_t[]){0});
    if (status != SATTN_OK)
        return NULL;
    for (int i = 0; i < a->used; i++) {
        memcpy(first_run[i], areas[i], AREA);
        memcpy(areas[i], fresh, AREA);
    }
    sattn_set_num_threads(3); /* where the descriptor leaves the choice */
    if (call(a->descriptor) != SATTN_OK)
        wrong = "another status from three threads";
    sattn_set_num_threads(1);
    for (int i = 0; i < a->used; i++) {
        if (memcmp(areas[i], first_run[i], AREA) != 0 &&
            !same_bits(areas[i], first_run[i], (int64_t)(AREA / a->real_bytes), a->real_bytes))
            wrong = "other bits from three threads";
        memcpy(areas[i], fresh, AREA);
    }
    return wrong;
}

const char *fuzz(const uint8_t *bytes, size_t size, int64_t *ok)
{
    static attempt a;
    a = (attempt){.in = {bytes, size}};
    const int type = next(&a.in) % 2, number = next(&a.in) % OPERATIONS;
    a.op = (type ? operations_f64 : operations_f32) + number;
    a.real_bytes = type ? sizeof(double) : sizeof(float);
    sattn_set_num_threads(1);
    a.oddness = (int)ONE_OF(&a.in, 0, 2, 8, 32);
    a.sparse = (int)ONE_OF(&a.in, 0, 1, 3);
    if (set_shape(&a) != SATTN_OK)
        return NULL;
    fill(&a.in, a.real_bytes);
    for (int i = 0; i < a.op->members; i++)
        set_member(&a, a.op->member[i]);
    for (int i = 0; i < 3 && a.op->call[i]; i++) {
        const char *wrong = run(&a, a.op->call[i], ok + 2 * number + type);
        if (wrong) {
            at("%s, call %d, type %d", a.op->name, i, type);
            return wrong;
        }
    }
    return NULL;
}
