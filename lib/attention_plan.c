/* SPDX-License-Identifier: BSD-2-Clause */
#include "attention.h"
#include "check.h"
#include "par.h"

/* Multiply-adds below which a team of threads costs more than it saves. */
enum { SERIAL = 1 << 19 };

sattn_segment sattn_segment_of(const sattn_attention *p, int64_t index)
{
    const int64_t b = index / p->key_heads, *q = p->query_offset, *k = p->key_offset;
    sattn_segment s = {.batch = b,
                       .key_head = index % p->key_heads,
                       .group = p->heads / p->key_heads,
                       .queries = q ? q[b + 1] - q[b] : p->queries,
                       .first_query = q ? q[b] : 0,
                       .first_key = k ? k[b] : 0,
                       .array_keys = k ? k[b + 1] - k[b] : p->keys};
    s.keys = p->key_length ? p->key_length[b] : s.array_keys;
    s.shift = p->diagonal == SATTN_BOTTOM_RIGHT ? s.keys - s.queries : 0;
    return s;
}

/* Places for `count` times `each` elements at the end of the workspace, on a cache line */
static int reserve(int64_t *elements, int64_t *place, int64_t count, int64_t each)
{
    *place = *elements;
    if (!sattn_grow(&count, each) || count > INT64_MAX / 32 - *elements)
        return 0;
    *elements += (count + 15) / 16 * 16;
    return 1;
}

/* A thread's scratch: see attention_tile.h. */
static int64_t scratch_size(int64_t d, int64_t e, int direction)
{
    const int64_t window = SATTN_WINDOW, tile = SATTN_TILE;
    const int64_t rows = tile * (d + e) + window * (d + e) + tile * window;
    const int64_t forward = tile * (d + 3 * (e + 2)) + 4 * window * tile + 8 * tile;
    const int64_t backward =
        tile * (3 * d + 3 * e) + window * (d + e) + 8 * window * tile + 16 * tile;
    return rows + (direction == SATTN_ATTEND ? forward : backward);
}

int32_t sattn_attention_plan_make(sattn_attention_plan *plan, const sattn_attention *p,
                                  int direction, int64_t element_bytes)
{
    const int64_t e = p->value_width, group = p->key_heads > 0 ? p->heads / p->key_heads : 0;
    const double work = (double)p->batch * (double)p->heads * (double)p->queries * (double)p->keys *
                        (double)(p->width + e);
    sattn_attention_plan q = {0};
    int64_t tiles = group, counts = 1;
    if (!sattn_grow(&tiles, p->queries) || !sattn_grow(&counts, p->batch) ||
        !sattn_grow(&counts, p->key_heads))
        return SATTN_ESIZE;
    q.threads = work < SERIAL ? 1 : sattn_par_threads(p->threads);
    q.segments = counts;
    q.tiles = (tiles + SATTN_TILE - 1) / SATTN_TILE;
    q.blocks = (p->keys + SATTN_SPLIT - 1) / SATTN_SPLIT;
    q.stripes = (p->keys + SATTN_STRIPE - 1) / SATTN_STRIPE;
    q.state = (e + 2) * SATTN_TILE;
    q.scratch_size = (scratch_size(p->width, e, direction) + 15) / 16 * 16;
    int64_t all = q.segments, stripes = q.segments;
    if (!sattn_grow(&all, q.tiles) || !sattn_grow(&stripes, q.stripes + 1))
        return SATTN_ESIZE;
    q.split = direction == SATTN_ATTEND && q.blocks > 1 && all < 2 * (int64_t)q.threads;
    const int64_t wide = (int64_t)sizeof(double) / element_bytes; /* elements of 64 bits */
    int fits = reserve(&q.elements, &q.scratch, q.threads, q.scratch_size);
    if (q.split)
        fits = fits && sattn_grow(&all, q.blocks) && reserve(&q.elements, &q.states, all, q.state);
    if (direction == SATTN_ATTEND_BACK)
        fits = fits && reserve(&q.elements, &q.offsets, all, SATTN_TILE) &&
               reserve(&q.elements, &q.sinks, all, SATTN_TILE) &&
               reserve(&q.elements, &q.sums, stripes, wide) &&
               reserve(&q.elements, &q.passed, stripes, wide);
    *plan = q;
    return fits ? SATTN_OK : SATTN_ESIZE;
}
