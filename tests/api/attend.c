/* SPDX-License-Identifier: BSD-2-Clause */
#include "attend.h"
#include "../oracle/attention.h"

#include <stdlib.h>

const char *const attend_names[ARRAYS] = {"q",    "k",    "v",     "bias",  "slope", "sink",
                                          "dout", "dlse", "out",   "stats", "lse",   "dq",
                                          "dk",   "dv",   "dbias", "dsink", "dscale"};

int64_t attend_queries(const attend *x, int64_t b)
{
    return x->p.query_offset ? x->query_offset[b + 1] - x->query_offset[b] : x->shape.queries;
}

int64_t attend_keys(const attend *x, int64_t b)
{
    return x->p.key_length   ? x->key_length[b]
           : x->p.key_offset ? x->key_offset[b + 1] - x->key_offset[b]
                             : x->shape.keys;
}

static int is_packed(const attend *x, int i)
{
    return x->shape.lengths == 2 && i != BIAS && i != SLOPE && i != SINK && i != DBIAS &&
           i != DSINK && i != DSCALE;
}

static int64_t first_row(const attend *x, int i, int64_t b)
{
    const int keys = i == K || i == V || i == DK || i == DV;
    return !is_packed(x, i) ? 0 : keys ? x->key_offset[b] : x->query_offset[b];
}

real *attend_cell(const attend *x, int i, int64_t b, int64_t h, int64_t row, int64_t col)
{
    const attend_array *a = &x->a[i];
    return a->data + (is_packed(x, i) ? 0 : b) * a->stride[0] + h * a->stride[1] +
           (first_row(x, i, b) + row) * a->stride[2] + col * a->stride[3];
}

/* Strides of a layout, with a gap after the second slowest dimension's elements */
static int64_t lay_out(attend_array *a, int layout, int64_t gap, unsigned repeat)
{
    static const int orders[3][4] = {{3, 2, 1, 0}, {3, 1, 2, 0}, {2, 3, 1, 0}};
    int64_t extent = 1;
    for (int i = 0; i < 4; i++) {
        const int dimension = orders[layout][i];
        a->stride[dimension] = repeat >> dimension & 1 ? 0 : extent;
        if (!(repeat >> dimension & 1))
            extent *= a->count[dimension];
        if (i == 0)
            extent += gap;
    }
    return extent;
}

static void fill(attend *x, int i, rng *r)
{
    attend_array *a = &x->a[i];
    const double reach = x->shape.reach;
    for (int64_t b = 0; b < a->count[0]; b++)
        for (int64_t h = 0; h < a->count[1]; h++)
            for (int64_t m = 0; m < a->count[2]; m++)
                for (int64_t d = 0; d < a->count[3]; d++) {
                    real *to = a->data + b * a->stride[0] + h * a->stride[1] + m * a->stride[2] +
                               d * a->stride[3];
                    *to = (real)random_in(r, i == SLOPE ? 0 : -reach, i == SLOPE ? 0.5 : reach);
                    if (i == BIAS && random_in(r, 0, 1) < x->shape.dead)
                        *to = -(real)INFINITY;
                }
}

static void make_array(attend *x, int i, int64_t b, int64_t h, int64_t rows, int64_t cols, rng *r)
{
    const attend_shape *s = &x->shape;
    attend_array *a = &x->a[i];
    const int pairs = i == BIAS || i == DBIAS;
    *a = (attend_array){.count = {b, h, rows, cols}};
    const int64_t n =
        lay_out(a, pairs || i == STATS ? 0 : s->layout, pairs ? 0 : s->gap, pairs ? s->repeat : 0);
    a->extent = n;
    a->data = guarded((size_t)n * sizeof(real), s->side, s->offset * sizeof(real));
    if (i < INPUTS)
        fill(x, i, r);
}

static void make_lengths(attend *x, rng *r)
{
    const attend_shape *s = &x->shape;
    const size_t bytes = (size_t)s->batch * sizeof(int64_t);
    x->key_length = guarded(bytes, s->side, 0);
    x->query_offset = guarded(bytes + sizeof(int64_t), s->side, 0);
    x->key_offset = guarded(bytes + sizeof(int64_t), s->side, 0);
    x->query_offset[0] = x->key_offset[0] = 0;
    for (int64_t b = 0; b < s->batch; b++) {
        x->key_length[b] = random_below(r, s->keys + 1);
        x->query_offset[b + 1] = x->query_offset[b] + random_below(r, s->queries + 1);
        x->key_offset[b + 1] = x->key_offset[b] + random_below(r, s->keys + 1);
    }
    x->p.key_length = s->lengths == 1 ? x->key_length : NULL;
    x->p.query_offset = s->lengths == 2 ? x->query_offset : NULL;
    x->p.key_offset = s->lengths == 2 ? x->key_offset : NULL;
}

static void set(const attend_array *a, void *descriptor)
{
    sattn_output o = {a->data, a->stride[0], a->stride[1], a->stride[2], a->stride[3]};
    memcpy(descriptor, &o, sizeof o);
}

attend make_attend(const attend_shape *s)
{
    const int64_t b = s->batch, h = s->heads, hk = s->key_heads, m = s->queries, n = s->keys,
                  d = s->width, e = s->value_width;
    rng r = seed_of(s->seed);
    attend x = {.shape = *s};
    at("seed %llu: B %d H %d/%d M %d N %d D %d E %d scale %g cap %g window %d %d diagonal %d bias "
       "%d "
       "mask %d slope %d sink %d lengths %d repeat %u layout %d gap %d",
       (unsigned long long)s->seed, (int)b, (int)h, (int)hk, (int)m, (int)n, (int)d, (int)e,
       s->scale, s->softcap, (int)s->left, (int)s->right, (int)s->diagonal, s->bias, s->mask,
       s->slope, s->sink, s->lengths, s->repeat, s->layout, (int)s->gap);
    check(sattn_attention_init(&x.p, sizeof x.p, b, h, hk, m, n, d, e) == SATTN_OK);
    make_lengths(&x, &r);
    const int packed = s->lengths == 2;
    const int64_t qb = packed ? 1 : b, qm = packed ? x.query_offset[b] : m;
    const int64_t kn = packed ? x.key_offset[b] : n;
    make_array(&x, Q, qb, h, qm, d, &r);
    make_array(&x, K, qb, hk, kn, d, &r);
    make_array(&x, V, qb, hk, kn, e, &r);
    make_array(&x, DOUT, qb, h, qm, e, &r);
    make_array(&x, DLSE, qb, h, qm, 1, &r);
    if (s->bias)
        make_array(&x, BIAS, b, h, m, n, &r), make_array(&x, DBIAS, b, h, m, n, &r);
    if (s->slope)
        make_array(&x, SLOPE, b, h, 1, 1, &r);
    if (s->sink)
        make_array(&x, SINK, b, h, 1, 1, &r), make_array(&x, DSINK, b, h, 1, 1, &r);
    make_array(&x, OUT, qb, h, qm, e, &r);
    make_array(&x, STATS, qb, h, qm, 2, &r);
    make_array(&x, LSE, qb, h, qm, 1, &r);
    make_array(&x, DQ, qb, h, qm, d, &r);
    make_array(&x, DK, qb, hk, kn, d, &r);
    make_array(&x, DV, qb, hk, kn, e, &r);
    make_array(&x, DSCALE, 1, 1, 1, 1, &r);
    void *const members[ARRAYS] = {
        &x.p.q,   &x.p.k,     &x.p.v,   &x.p.bias, &x.p.slope, &x.p.sink, &x.p.dout,  &x.p.dlse,
        &x.p.out, &x.p.stats, &x.p.lse, &x.p.dq,   &x.p.dk,    &x.p.dv,   &x.p.dbias, &x.p.dsink};
    for (int i = 0; i < DSCALE; i++)
        if (x.a[i].data || (i != BIAS && i != DBIAS))
            set(&x.a[i], members[i]);
    x.p.dscale = x.a[DSCALE].data;
    if (s->mask) {
        const size_t pairs = (size_t)(b * h * m * n);
        x.mask = guarded(pairs, s->side, s->offset);
        for (size_t i = 0; i < pairs; i++)
            x.mask[i] = random_in(&r, 0, 1) >= s->dead ? 1 + (unsigned char)(i % 255) : 0;
        x.p.mask = (sattn_input){x.mask, h * m * n, m * n, n, 1};
    }
    x.p.scale = s->scale;
    x.p.softcap = s->softcap;
    x.p.left = s->left;
    x.p.right = s->right;
    x.p.diagonal = s->diagonal;
    return x;
}

/* What lies between the elements of an array was not written. */
static void check_gaps(const attend_array *a)
{
    unsigned char *mine = calloc((size_t)a->extent + 1, 1);
    check(mine != NULL);
    for (int64_t b = 0; b < a->count[0]; b++)
        for (int64_t h = 0; h < a->count[1]; h++)
            for (int64_t m = 0; m < a->count[2]; m++)
                for (int64_t d = 0; d < a->count[3]; d++)
                    mine[b * a->stride[0] + h * a->stride[1] + m * a->stride[2] +
                         d * a->stride[3]] = 1;
    for (int64_t i = 0; i < a->extent; i++)
        check(mine[i] || is_untouched(a->data + i, sizeof(real)));
    free(mine);
}

void solve_attend(attend *x)
{
    check(FN(sattn_attention_forward)(&x->p) == SATTN_OK);
    check(FN(sattn_attention_backward)(&x->p) == SATTN_OK);
    check_guarded();
    for (int i = INPUTS; i < ARRAYS; i++)
        if (x->a[i].data)
            check_gaps(&x->a[i]);
}

void check_same_attend(const attend *got, const attend *want, int first, int last)
{
    for (int i = first; i < last; i++) {
        const attend_array *a = &got->a[i], *w = &want->a[i];
        for (int64_t b = 0; a->data && b < a->count[0]; b++)
            for (int64_t h = 0; h < a->count[1]; h++)
                for (int64_t m = 0; m < a->count[2]; m++)
                    for (int64_t d = 0; d < a->count[3]; d++)
                        check_same_of(attend_names[i],
                                      a->data + b * a->stride[0] + h * a->stride[1] +
                                          m * a->stride[2] + d * a->stride[3],
                                      w->data + b * w->stride[0] + h * w->stride[1] +
                                          m * w->stride[2] + d * w->stride[3],
                                      1, sizeof(real));
    }
}
