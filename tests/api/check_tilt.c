/* SPDX-License-Identifier: BSD-2-Clause */
/* The tilt and its gradients against sums in long double; the same bits on every row, for any
 * number of threads and for a query alone; guard pages; bad input. */
#include "../harness.h"
#include "sattn/tilt.h"

#include <math.h>
#include <string.h>

enum { QUERY, MAP, OFFSET, DTILT, TILT, DQUERY, DMAP, DOFFSET, DSCALE, ARRAYS };

typedef struct {
    sattn_tilt p;
    real *a[ARRAYS];
    int64_t n[ARRAYS];
} problem;

static problem make(int64_t b, int64_t m, int64_t n, int64_t d, int shared, int32_t flags)
{
    problem x;
    const int64_t sets = shared ? 1 : b;
    const int64_t counts[] = {b * m * n, sets * n * d, sets * d, b * m * d, b * m * d,
                              b * m * n, sets * n * d, sets * d, 1};
    rng r = seed_of((uint64_t)(b + 10 * m + 1000 * n + 100 * d));
    check(sattn_tilt_init(&x.p, sizeof x.p, b, m, n, d) == SATTN_OK && x.p.scale == 1);
    for (int i = 0; i < ARRAYS; i++) {
        x.n[i] = counts[i];
        x.a[i] = guarded((size_t)counts[i] * sizeof(real), i % 2 ? ENDS : BEGINS, 0);
        if (i < TILT)
            random_fill(&r, x.a[i], counts[i], -1, 1);
    }
    if (shared)
        x.p.map_batch = x.p.offset_batch = 0;
    x.p.flags = flags, x.p.scale = 0.375;
    x.p.query = x.a[QUERY], x.p.map = x.a[MAP], x.p.offset = x.a[OFFSET], x.p.tilt = x.a[TILT];
    x.p.dtilt = x.a[DTILT], x.p.dquery = x.a[DQUERY], x.p.dmap = x.a[DMAP];
    x.p.doffset = x.a[DOFFSET], x.p.dscale = x.a[DSCALE];
    return x;
}

static void solve(problem *x)
{
    check(FN(sattn_tilt_forward)(&x->p) == SATTN_OK);
    check(FN(sattn_tilt_backward)(&x->p) == SATTN_OK);
    check_guarded();
}

/* Entry (i, j) of A where the map of batch entry b keeps it */
static int64_t map_at(const problem *x, int64_t b, int64_t i, int64_t j)
{
    const sattn_tilt *p = &x->p;
    return b * p->map_batch +
           (p->flags & SATTN_TRANSPOSED ? j * p->query_width + i : i * p->width + j);
}

static void check_one(const char *what, int64_t i, const real *got, long double want,
                      long double size, int64_t terms, double before)
{
    check_near(what, i, (double)got[i], (double)want + before,
               (double)(EPS * (size * (terms + 6) + 2 * fabs(before))));
}

/* Every output, `before` being what the gradients held */
static void check_answers(const problem *x, double before)
{
    const sattn_tilt *p = &x->p;
    const int64_t b_n = p->batch, m = p->queries, n = p->query_width, d = p->width;
    long double dmap[2000][2] = {{0}}, doffset[200][2] = {{0}}, dscale[2] = {0};
    for (int64_t b = 0; b < b_n; b++)
        for (int64_t q = 0; q < m; q++) {
            const real *z = x->a[QUERY] + (b * m + q) * n, *du = x->a[DTILT] + (b * m + q) * d;
            for (int64_t j = 0; j < d; j++) {
                const long double u0 = x->a[OFFSET][b * p->offset_batch + j];
                long double u = 0, size = 0;
                for (int64_t i = 0; i < n; i++) {
                    const int64_t at = map_at(x, b, i, j);
                    const long double term = (long double)z[i] * x->a[MAP][at];
                    u += term, size += fabsl(term);
                    dmap[at][0] += p->scale * z[i] * du[j];
                    dmap[at][1] += fabsl(p->scale * z[i] * du[j]);
                }
                check_one("tilt", (b * m + q) * d + j, x->a[TILT], p->scale * u + u0,
                          p->scale * size + fabsl(u0), n, 0);
                doffset[b * p->offset_batch + j][0] += du[j];
                doffset[b * p->offset_batch + j][1] += fabsl((long double)du[j]);
                dscale[0] += u * du[j], dscale[1] += size * fabsl((long double)du[j]);
            }
            for (int64_t i = 0; i < n; i++) {
                long double sum = 0, size = 0;
                for (int64_t j = 0; j < d; j++) {
                    sum += p->scale * x->a[MAP][map_at(x, b, i, j)] * du[j];
                    size += fabsl(p->scale * x->a[MAP][map_at(x, b, i, j)] * du[j]);
                }
                check_one("dquery", (b * m + q) * n + i, x->a[DQUERY], sum, size, d, before);
            }
        }
    for (int64_t i = 0; i < x->n[DMAP]; i++)
        check_one("dmap", i, x->a[DMAP], dmap[i][0], dmap[i][1], b_n * m, before);
    for (int64_t i = 0; i < x->n[DOFFSET]; i++)
        check_one("doffset", i, x->a[DOFFSET], doffset[i][0], doffset[i][1], b_n * m, before);
    check_one("dscale", 0, x->a[DSCALE], dscale[0], dscale[1], b_n * m + n * d, before);
}

EACH_ROW(tilt, answers)
{
    static const int64_t shapes[][4] = {{1, 1, 1, 1},     {2, 5, 3, 4},   {2, 49, 7, 9},
                                        {1, 100, 33, 40}, {3, 0, 2, 2},   {0, 3, 2, 2},
                                        {2, 3, 0, 2},     {1, 97, 40, 1}, {1, 200, 16, 17}};
    sattn_isa_set(*isa);
    for (int i = 0; i < 9; i++)
        for (int shared = 0; shared < 2; shared++)
            for (int32_t flags = 0; flags <= SATTN_TRANSPOSED; flags += SATTN_TRANSPOSED) {
                const int64_t *s = shapes[i];
                at("B %d M %d Dq %d D %d shared %d flags %d isa %d", (int)s[0], (int)s[1],
                   (int)s[2], (int)s[3], shared, (int)flags, (int)*isa);
                problem x = make(s[0], s[1], s[2], s[3], shared, flags);
                solve(&x);
                check_answers(&x, 0);
                for (int k = DQUERY; k < ARRAYS; k++)
                    for (int64_t j = 0; j < x.n[k]; j++)
                        x.a[k][j] = 3;
                x.p.flags |= SATTN_ACCUMULATE;
                solve(&x);
                check_answers(&x, 3);
                release_guarded();
            }
}

Test(tilt, bits)
{
    for (int32_t flags = 0; flags <= SATTN_TRANSPOSED; flags += SATTN_TRANSPOSED) {
        at("flags %d", (int)flags);
        sattn_isa_set(SATTN_ISA_SCALAR);
        problem want = make(3, 300, 20, 70, 1, flags), got = make(3, 300, 20, 70, 1, flags);
        want.p.threads = 1;
        solve(&want);
        const struct criterion_test_params rows = each_row();
        for (size_t i = 0; i < rows.length; i++)
            for (int32_t threads = 1; threads <= 4; threads += 3) {
                sattn_isa_set(((const int32_t *)rows.params)[i]);
                got.p.threads = threads;
                for (int k = TILT; k < ARRAYS; k++)
                    memset(got.a[k], 0xff, (size_t)got.n[k] * sizeof(real));
                solve(&got);
                for (int k = TILT; k < ARRAYS; k++)
                    check_same(got.a[k], want.a[k], want.n[k]);
            }
        sattn_tilt one = want.p;
        real u[70], dq[20];
        one.batch = one.queries = 1;
        one.query = want.a[QUERY] + 555 * 20, one.dtilt = want.a[DTILT] + 555 * 70;
        one.tilt = u, one.dquery = dq, one.dmap = one.doffset = one.dscale = NULL;
        check(FN(sattn_tilt_forward)(&one) == SATTN_OK &&
              FN(sattn_tilt_backward)(&one) == SATTN_OK);
        check_same(u, want.a[TILT] + 555 * 70, 70);
        check_same(dq, want.a[DQUERY] + 555 * 20, 20);
        release_guarded();
    }
}

static void refuse(const problem *x, const sattn_tilt *p, int32_t forward, int32_t backward)
{
    if (forward != SATTN_OK)
        check(FN(sattn_tilt_forward)(p) == forward);
    if (backward != SATTN_OK)
        check(FN(sattn_tilt_backward)(p) == backward);
    for (int k = TILT; k < ARRAYS; k++)
        check(is_untouched(x->a[k], (size_t)x->n[k] * sizeof(real)));
}

#define REFUSE(change, forward, backward)                                                          \
    do {                                                                                           \
        sattn_tilt bad = x.p;                                                                      \
        at("%s", #change);                                                                         \
        bad.change;                                                                                \
        refuse(&x, &bad, SATTN_##forward, SATTN_##backward);                                       \
    } while (0)

Test(tilt, bad_input)
{
    problem x = make(2, 3, 4, 5, 0, 0);
    sattn_tilt p;
    at("init");
    check(sattn_tilt_init(NULL, sizeof p, 1, 1, 1, 1) == SATTN_ENULL);
    check(sattn_tilt_init(&p, 8, 1, 1, 1, 1) == SATTN_ESTRUCT);
    check(sattn_tilt_init(&p, sizeof p, 1, -1, 1, 1) == SATTN_ESIZE);
    check(sattn_tilt_init(&p, sizeof p, 1, 1, INT64_MAX, 1) == SATTN_ESIZE);
    check(FN(sattn_tilt_forward)(NULL) == SATTN_ENULL);
    REFUSE(size = 0, ESTRUCT, ESTRUCT);
    REFUSE(width = -1, ESIZE, ESIZE);
    REFUSE(queries = INT64_MAX, ESIZE, ESIZE);
    REFUSE(flags = 2, EOPTION, EOPTION);
    REFUSE(threads = -1, EVALUE, EVALUE);
    REFUSE(scale = NAN, EVALUE, EVALUE);
    REFUSE(scale = -INFINITY, EVALUE, EVALUE);
#if SATTN_REAL == 32
    REFUSE(scale = 1e300, EVALUE, EVALUE);
    REFUSE(scale = 1e-300, EVALUE, EVALUE);
#endif
    REFUSE(query = NULL, ENULL, ENULL);
    REFUSE(map = NULL, ENULL, ENULL);
    REFUSE(tilt = NULL, ENULL, OK);
    REFUSE(dtilt = NULL, OK, ENULL);
    REFUSE(query_row = 3, ESTRIDE, ESTRIDE);
    REFUSE(tilt_row = 0, ESTRIDE, OK);
    REFUSE(dquery_row = 3, OK, ESTRIDE);
    REFUSE(map_batch = 1, OK, ESTRIDE);
    REFUSE(query_batch = INT64_MAX, ESIZE, ESIZE);
    REFUSE(tilt = x.a[QUERY], EALIAS, OK);
    REFUSE(dmap = x.a[MAP] + 3, OK, EALIAS);
    REFUSE(dscale = x.a[DQUERY], OK, EALIAS);
    release_guarded();
}
