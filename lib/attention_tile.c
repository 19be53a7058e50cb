/* SPDX-License-Identifier: BSD-2-Clause */
#include "attention_tile.h"
#include "check.h"

#include <stddef.h>
#include <string.h>

typedef FN(sattn_attention_call) call;
typedef FN(sattn_attention_scratch) scratch;
typedef FN(sattn_tile) tile;
typedef FN(sattn_key_window) key_window;
typedef FN(sattn_key_rows) key_rows;

enum { TILE = SATTN_TILE, WINDOW = SATTN_WINDOW };

#define NOTHING (-(real)__builtin_inf())

int32_t FN(sattn_attention_begin)(call *k, const sattn_attention *p,
                                  const sattn_attention_plan *plan)
{
    void *work;
    *k = (call){p, plan, NULL, NULL};
    const int32_t status = sattn_workspace(
        p->work, p->work_bytes, plan->elements * (int64_t)sizeof(real), &work, &k->owned);
    k->work = work;
    return status;
}

scratch FN(sattn_attention_scratch_of)(const call *k, int32_t thread)
{
    const int64_t d = k->p->width, e = k->p->value_width;
    real *at = k->work + k->plan->scratch + thread * k->plan->scratch_size;
    scratch s;
    s.rows = sattn_take(&at, TILE * (d + e + WINDOW));
    s.key = sattn_take(&at, WINDOW * d);
    s.value = sattn_take(&at, WINDOW * e);
    s.query = sattn_take(&at, TILE * d);
    s.score = sattn_take(&at, WINDOW * TILE);
    s.bias = sattn_take(&at, WINDOW * TILE);
    s.live = sattn_take(&at, WINDOW * TILE);
    s.low = sattn_take(&at, TILE);
    s.high = sattn_take(&at, TILE);
    s.slope = sattn_take(&at, TILE);
    s.place = sattn_take(&at, TILE);
    s.rest = at;
    return s;
}

/* Lanes q .. of a tile that belong to one head: how many; their head and first query */
static int64_t run_of(const tile *t, int64_t q, int64_t *head, int64_t *query)
{
    const int64_t row = t->first + q, left = t->lanes - q;
    *query = row % t->of.queries;
    *head = t->of.key_head * t->of.group + row / t->of.queries;
    return t->of.queries - *query < left ? t->of.queries - *query : left;
}

/* Where batch entry, head and query of an array begin; packed sequences share the batch. */
static int64_t place_of(const call *k, const tile *t, const sattn_input *x, int64_t head,
                        int64_t query)
{
    return (k->p->query_offset ? 0 : t->of.batch * x->batch) + head * x->head +
           (t->of.first_query + query) * x->row;
}

void FN(sattn_tile_get)(const call *k, const tile *t, const sattn_input *x, int64_t cols,
                        real *rows)
{
    int64_t head, query, run;
    for (int64_t q = 0; q < t->lanes; q += run) {
        run = run_of(t, q, &head, &query);
        const real *from = sattn_from(x->data, place_of(k, t, x, head, query));
        kernels()->widen(SATTN_STORAGE_OWN, run, cols, from, x->row, x->col, rows + q * cols);
    }
}

void FN(sattn_tile_put)(const call *k, const tile *t, const real *rows, int64_t cols,
                        const sattn_output *x)
{
    const sattn_input as_input = sattn_as_input(x);
    int64_t head, query, run;
    for (int64_t q = 0; q < t->lanes; q += run) {
        run = run_of(t, q, &head, &query);
        real *to = sattn_from(x->data, place_of(k, t, &as_input, head, query));
        for (int64_t i = 0; i < run; i++)
            for (int64_t j = 0; j < cols; j++)
                to[i * x->row + j * x->col] = rows[(q + i) * cols + j];
    }
}

void FN(sattn_tile_heads)(const tile *t, const sattn_input *x, real *lanes)
{
    int64_t head, query, run;
    for (int64_t q = 0; q < TILE; q++)
        lanes[q] = 0;
    for (int64_t q = 0; q < t->lanes; q += run) {
        run = run_of(t, q, &head, &query);
        for (int64_t i = 0; i < run; i++)
            lanes[q + i] = ((const real *)x->data)[t->of.batch * x->batch + head * x->head];
    }
}

static int64_t clamp(int64_t x, int64_t low, int64_t high)
{
    return x < low ? low : x > high ? high : x;
}

/* What each query sees by its place. A window of more than all keys and queries is none. */
static void look(const call *k, tile *t)
{
    const int64_t n = t->of.keys, all = n + t->of.queries;
    const int64_t left = k->p->left, right = k->p->right;
    t->low = t->all_high = n;
    for (int64_t q = 0; q < t->lanes; q++) {
        const int64_t place = (t->first + q) % t->of.queries + t->of.shift;
        const int64_t from = left < 0 || left > all ? 0 : clamp(place - left, 0, n);
        const int64_t to = right < 0 || right > all ? n : clamp(place + right + 1, 0, n);
        t->place[q] = place;
        t->from[q] = from;
        t->to[q] = to;
        t->all_low = from > t->all_low ? from : t->all_low;
        t->all_high = to < t->all_high ? to : t->all_high;
        t->low = from < to && from < t->low ? from : t->low;
        t->high = from < to && to > t->high ? to : t->high;
    }
}

tile FN(sattn_tile_of)(const call *k, int64_t segment, int64_t index, const scratch *s)
{
    tile t = {.of = sattn_segment_of(k->p, segment), .first = index * TILE};
    t.lanes = clamp(t.of.group * t.of.queries - t.first, 0, TILE);
    look(k, &t);
    FN(sattn_tile_get)(k, &t, &k->p->q, k->p->width, s->rows);
    kernels()->pack(t.lanes, k->p->width, s->rows, k->p->width, s->query);
    if (k->p->slope.data)
        FN(sattn_tile_heads)(&t, &k->p->slope, s->slope);
    return t;
}

/* Which keys of the window the queries see by their places */
static void see(const tile *t, const scratch *s, key_window *w)
{
    const int64_t n = w->count, low = t->low - w->first, high = t->high - w->first;
    w->masked = w->first < t->all_low || w->first + n > t->all_high;
    if (!w->masked) {
        memset(w->seen, 1, (size_t)n);
        return;
    }
    for (int64_t j = 0; j < n; j++)
        w->seen[j] = j >= low && j < high;
    for (int64_t q = 0; q < TILE; q++) {
        s->low[q] = (real)(q < t->lanes ? clamp(t->from[q] - w->first, 0, n) : 0);
        s->high[q] = (real)(q < t->lanes ? clamp(t->to[q] - w->first, 0, n) : n);
    }
    w->scores.low = s->low;
    w->scores.high = s->high;
}

/* An array [B][H][M][N] of numbers or bytes as a tile, keys in rows; a key that is masked for all
 * lanes is no longer seen. */
static void pair_tile(const tile *t, const scratch *s, key_window *w, const sattn_input *x,
                      int bytes, real *to)
{
    int64_t head, query, run;
    real live[WINDOW];
    for (int64_t q = 0; q < t->lanes; q += run) {
        run = run_of(t, q, &head, &query);
        const int64_t at = t->of.batch * x->batch + head * x->head + query * x->row;
        const int64_t place = at + w->first * x->col;
        real *rows = s->rows + q * w->count;
        if (bytes)
            kernels()->flags(run, w->count, (const uint8_t *)x->data + place, x->row, x->col, rows);
        else
            kernels()->widen(SATTN_STORAGE_OWN, run, w->count, sattn_from(x->data, place), x->row,
                             x->col, rows);
    }
    kernels()->live_columns(t->lanes, w->count, s->rows, bytes ? 0 : NOTHING, live);
    for (int64_t j = 0; j < w->count; j++)
        w->seen[j] &= live[j] > 0;
    kernels()->pack(t->lanes, w->count, s->rows, w->count, to);
    w->masked = 1;
}

int FN(sattn_window_of)(const call *k, const tile *t, const scratch *s, int64_t first,
                        int64_t count, key_window *w)
{
    const sattn_attention *p = k->p;
    w->first = first;
    w->count = count;
    w->scores = (struct FN(sattn_scores)){.lanes = t->lanes,
                                          .width = p->width,
                                          .query = s->query,
                                          .scale = (real)p->scale,
                                          .cap = (real)p->softcap,
                                          .score = s->score};
    if (first >= t->high || first + count <= t->low)
        return 0;
    see(t, s, w);
    if (p->bias.data) {
        pair_tile(t, s, w, &p->bias, 0, s->bias);
        w->scores.bias = s->bias;
    }
    if (p->mask.data) {
        pair_tile(t, s, w, &p->mask, 1, s->live);
        w->scores.live = s->live;
    }
    if (p->slope.data) {
        for (int64_t q = 0; q < TILE; q++)
            s->place[q] = (real)(q < t->lanes ? t->place[q] - first : 0);
        w->scores.slope = s->slope;
        w->scores.place = s->place;
    }
    w->scores.plain = !w->masked && !p->slope.data && !(p->softcap > 0) && p->scale >= 0;
    w->factor = w->scores.plain ? (real)p->scale : 1;
    int64_t seen = 0;
    for (int64_t j = 0; w->masked && j < count; j++) {
        seen += w->seen[j];
        for (int64_t q = 0; !w->seen[j] && q < TILE; q++)
            s->score[j * TILE + q] = NOTHING;
    }
    w->whole = !w->masked || seen == count;
    return w->whole || seen > 0;
}

int64_t FN(sattn_window_run)(const key_window *w, int64_t *from)
{
    if (w->whole)
        return w->count - *from;
    while (*from < w->count && !w->seen[*from])
        ++*from;
    int64_t end = *from;
    while (end < w->count && w->seen[end])
        end++;
    return end - *from;
}

key_rows FN(sattn_window_rows)(const call *k, const tile *t, const key_window *w,
                               const sattn_input *x, int64_t width, int64_t from, int64_t run,
                               int adjacent, real *copy)
{
    const sattn_attention *p = k->p;
    const int64_t key = w->first + from;
    int64_t at = t->of.key_head * x->head;
    if (p->page_size > 0) /* a window lies within one page */
        at += p->page[t->of.batch * p->page_batch + key / p->page_size] * x->batch +
              key % p->page_size * x->row;
    else
        at += (p->key_offset ? 0 : t->of.batch * x->batch) + (t->of.first_key + key) * x->row;
    const int64_t bytes = p->storage == SATTN_STORAGE_OWN ? (int64_t)sizeof(real) : 2;
    const char *from_here = (const char *)x->data + at * bytes;
    if (p->storage == SATTN_STORAGE_OWN && (!adjacent || x->col == 1))
        return (key_rows){(const real *)from_here, x->row, x->col};
    kernels()->widen(p->storage, run, width, from_here, x->row, x->col, copy);
    return (key_rows){copy, width, 1};
}

void FN(sattn_window_scores)(const key_window *w, key_rows keys, int64_t from, int64_t run,
                             real *raw, real *rate)
{
    struct FN(sattn_scores) s = w->scores;
    s.first = from;
    s.count = run;
    s.key = keys.data;
    s.key_row = keys.row;
    s.key_col = keys.col;
    s.bias = s.bias ? s.bias + from * TILE : NULL;
    s.live = s.live ? s.live + from * TILE : NULL;
    s.raw = raw ? raw + from * TILE : NULL;
    s.rate = rate ? rate + from * TILE : NULL;
    s.score += from * TILE;
    kernels()->attention_scores(&s);
}
