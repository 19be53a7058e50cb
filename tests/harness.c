/* SPDX-License-Identifier: BSD-2-Clause */
#define _GNU_SOURCE
#include "harness.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static char place[400];

void at(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(place, sizeof place, format, arguments);
    va_end(arguments);
}

const char *where(void)
{
    return place;
}

/* Rows */

static int32_t rows[SATTN_ISA_COUNT];

struct criterion_test_params each_row(void)
{
    size_t count = 0;
    for (int32_t isa = 0; isa < SATTN_ISA_COUNT; isa++)
        if (sattn_isa_available(isa))
            rows[count++] = isa;
    return cr_make_param_array(int32_t, rows, count);
}

/* Green means "ran": the rows that EACH_ROW tests visit are those the runner found in the
 * processor. */
Test(harness, rows)
{
    const struct criterion_test_params found = each_row();
    const char *expected = getenv("SATTN_EXPECT_ROWS");
    char names[100] = "";
    cr_assert(found.length > 0, "no row of kernels can run");
    for (size_t i = 0; i < found.length; i++) {
        strcat(names, i ? " " : "");
        strcat(names, sattn_isa_name(rows[i]));
    }
    cr_assert(!expected || strcmp(names, expected) == 0, "rows are \"%s\", expected \"%s\"", names,
              expected);
}

/* Workers of the framework are not forked children, in which the library would be serial. */
Test(harness, threads)
{
    const int32_t wanted = strstr(sattn_build_info(), "without OpenMP") ? 1 : 8;
    cr_assert(sattn_set_num_threads(8) == SATTN_OK);
    cr_assert(sattn_get_num_threads() == wanted, "%d threads", (int)sattn_get_num_threads());
    cr_assert(sattn_set_num_threads(0) == SATTN_OK);
}

/* Numbers */

double element(const void *x, int64_t i, size_t bytes)
{
    return bytes == 4 ? (double)((const float *)x)[i] : ((const double *)x)[i];
}

static int same(double a, double b)
{
    return (a == b && signbit(a) == signbit(b)) || (isnan(a) && isnan(b));
}

int same_bits(const void *a, const void *b, int64_t n, size_t bytes)
{
    for (int64_t i = 0; i < n; i++)
        if (!same(element(a, i, bytes), element(b, i, bytes)))
            return 0;
    return 1;
}

/* The number's place in the order of all numbers of its type */
static int64_t rank_of(double x, size_t bytes)
{
    int64_t bits = 0;
    if (bytes == 4) {
        const float narrow = (float)fabs(x);
        int32_t bits32;
        memcpy(&bits32, &narrow, 4);
        bits = bits32;
    } else {
        const double positive = fabs(x);
        memcpy(&bits, &positive, 8);
    }
    return signbit(x) ? -bits : bits;
}

int64_t ulps(double a, double b, size_t bytes)
{
    if (isnan(a) || isnan(b))
        return isnan(a) && isnan(b) ? 0 : INT64_MAX;
    const int64_t distance = rank_of(a, bytes) / 2 - rank_of(b, bytes) / 2;
    if (llabs(distance) > INT64_MAX / 4) /* the exact one might overflow */
        return INT64_MAX;
    return llabs(rank_of(a, bytes) - rank_of(b, bytes));
}

void check_same_of(const char *what, const void *got, const void *want, int64_t n, size_t bytes)
{
    for (int64_t i = 0; i < n; i++) {
        const double g = element(got, i, bytes), w = element(want, i, bytes);
        cr_assert(same(g, w), "%s[%lld] = %.17g = %a, not %.17g = %a: %s", what, (long long)i, g, g,
                  w, w, where());
    }
}

void check_near(const char *what, int64_t index, double got, double want, double bound)
{
    const int equal = got == want || (isnan(got) && isnan(want));
    cr_assert(equal || fabs(got - want) <= bound,
              "%s[%lld] = %.17g, not %.17g: off by %.3g > %.3g: %s", what, (long long)index, got,
              want, fabs(got - want), bound, where());
}

/* Random numbers */

int is_left_out(int64_t number)
{
    const char *word = getenv("SATTN_TEST_SHARE");
    const int64_t share = word ? strtoll(word, NULL, 10) : 1;
    return share > 1 && number % share != 0;
}

rng seed_of(uint64_t n)
{
    const char *word = getenv("SATTN_TEST_SEED");
    return (rng){(word ? strtoull(word, NULL, 10) : 0) * 0x9e3779b97f4a7c15u +
                 n * 0xd1342543de82ef95u};
}

uint64_t random_bits(rng *g)
{
    uint64_t z = g->state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

int64_t random_below(rng *g, int64_t n)
{
    return (int64_t)(random_bits(g) % (uint64_t)n);
}

double random_in(rng *g, double low, double high)
{
    return low + (high - low) * (double)(random_bits(g) >> 11) * 0x1p-53;
}

void random_fill_of(rng *g, void *x, int64_t n, size_t bytes, double low, double high)
{
    for (int64_t i = 0; i < n; i++) {
        if (bytes == 4)
            ((float *)x)[i] = (float)random_in(g, low, high);
        else
            ((double *)x)[i] = random_in(g, low, high);
    }
}

/* Guarded memory: a mapping of inaccessible page, open pages, inaccessible page */

typedef struct {
    unsigned char *map, *open, *data;
    size_t mapped, room, bytes;
} region;

enum { REGIONS = 1024 };
static region regions[REGIONS];
static int region_count;

int is_untouched(const void *memory, size_t bytes)
{
    const unsigned char *byte = memory;
    return bytes == 0 || (byte[0] == 0xff && memcmp(byte, byte + 1, bytes - 1) == 0);
}

void *guarded(size_t bytes, placement side, size_t offset)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), slack = side == ROOMY ? 2 * page : 0;
    region r = {.bytes = bytes, .room = (bytes + offset + slack + page - 1) / page * page};
    r.mapped = r.room + 2 * page;
    r.map = mmap(NULL, r.mapped, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    cr_assert(r.map != MAP_FAILED && region_count < REGIONS, "no memory");
    r.open = r.map + page;
    cr_assert(r.room == 0 || mprotect(r.open, r.room, PROT_READ | PROT_WRITE) == 0, "no memory");
    memset(r.open, 0xff, r.room);
    r.data = side == ROOMY    ? r.open + page + offset
             : side == BEGINS ? r.open + offset
                              : r.open + r.room - bytes - offset;
    regions[region_count++] = r;
    return r.data;
}

void check_guarded(void)
{
    for (int i = 0; i < region_count; i++) {
        const region *r = &regions[i];
        const size_t before = (size_t)(r->data - r->open), after = before + r->bytes;
        cr_assert(is_untouched(r->open, before) && is_untouched(r->open + after, r->room - after),
                  "a byte outside was written: array %d, %s", i, where());
    }
}

void release_guarded(void)
{
    while (region_count > 0) {
        region_count--;
        munmap(regions[region_count].map, regions[region_count].mapped);
    }
}
