/* SPDX-License-Identifier: BSD-2-Clause */
/* Linear attention: random problems against the long double oracle, the same bits everywhere, parts
 * of a sequence joined by their state, guard pages, bad input. */
#include "../harness.h"
#include "../oracle/linear.h"
#include "sattn/linear.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    Q,
    K,
    V,
    SUM,
    KEY_SUM,
    DOUT,
    DSUM_OUT,
    DKEY_SUM_OUT,
    INPUTS,
    OUT = INPUTS,
    DEN,
    SUM_OUT,
    KEY_SUM_OUT,
    DQ,
    DK,
    DV,
    DSUM,
    DKEY_SUM,
    ARRAYS
};
static const char *const names[ARRAYS] = {
    "q",   "k",       "v",           "sum", "key sum", "dout", "dsum out", "dkey sum out", "out",
    "den", "sum out", "key sum out", "dq",  "dk",      "dv",   "dsum",     "dkey sum"};

typedef struct {
    int64_t heads, queries, keys, width, value_width;
    int feature, flags, state;
    placement side;
    int transposed; /* columns outermost */
    uint64_t seed;
} shape;

typedef struct {
    shape shape;
    sattn_linear p;
    int64_t rows[ARRAYS], cols[ARRAYS];
    real *data[ARRAYS];
    sattn_input *place[ARRAYS];
} problem;

static real *cell(const problem *x, int i, int64_t h, int64_t r, int64_t c)
{
    return x->data[i] + h * x->place[i]->head + r * x->place[i]->row + c * x->place[i]->col;
}

static void lay_out(problem *x, sattn_linear *p)
{
    const shape *s = &x->shape;
    const int64_t m = s->queries, n = s->keys, d = s->width, e = s->value_width;
    const int64_t rows[ARRAYS] = {m, n, n, d, d, m, d, d, m, m, d, d, m, n, n, d, d};
    const int64_t cols[ARRAYS] = {d, d, e, e, 1, e, e, 1, e, 1, e, 1, d, d, e, e, 1};
    void *const places[ARRAYS] = {&p->q,       &p->k,    &p->v,        &p->sum,
                                  &p->key_sum, &p->dout, &p->dsum_out, &p->dkey_sum_out,
                                  &p->out,     &p->den,  &p->sum_out,  &p->key_sum_out,
                                  &p->dq,      &p->dk,   &p->dv,       &p->dsum,
                                  &p->dkey_sum};
    for (int i = 0; i < ARRAYS; i++) { /* sattn_output has the members of sattn_input */
        x->rows[i] = rows[i];
        x->cols[i] = cols[i];
        x->place[i] = places[i];
    }
}

static problem *make(const shape *s)
{
    problem *x = guarded(sizeof *x, ROOMY, 0);
    rng r = seed_of(s->seed);
    x->shape = *s;
    at("seed %llu: H %d M %d N %d D %d E %d feature %d flags %d state %d transposed %d",
       (unsigned long long)s->seed, (int)s->heads, (int)s->queries, (int)s->keys, (int)s->width,
       (int)s->value_width, s->feature, s->flags, s->state, s->transposed);
    check(sattn_linear_init(&x->p, sizeof x->p, 1, s->heads, s->queries, s->keys, s->width,
                            s->value_width) == SATTN_OK);
    lay_out(x, &x->p);
    const int normalised = (s->flags & SATTN_NORMALISED) != 0;
    for (int i = 0; i < ARRAYS; i++) {
        const int64_t size = x->rows[i] * x->cols[i];
        const int sums =
            i == KEY_SUM || i == DKEY_SUM_OUT || i == DEN || i == KEY_SUM_OUT || i == DKEY_SUM;
        x->data[i] = guarded((size_t)(s->heads * size) * sizeof(real), s->side, 0);
        *x->place[i] = (sattn_input){NULL, s->heads * size, size, x->cols[i], 1};
        if (s->transposed)
            x->place[i]->row = 1, x->place[i]->col = x->rows[i];
        for (int64_t h = 0; i < INPUTS && h < s->heads; h++)
            for (int64_t row = 0; row < x->rows[i]; row++)
                for (int64_t col = 0; col < x->cols[i]; col++)
                    *cell(x, i, h, row, col) = (real)random_in(&r, i == KEY_SUM ? 0.1 : -1, 1);
        if ((sums && !normalised) || ((i == SUM || i == KEY_SUM) && !s->state))
            continue;
        x->place[i]->data = x->data[i];
    }
    x->p.feature = s->feature;
    x->p.flags = s->flags;
    x->p.scale = 0.5;
    x->p.seen = s->state ? 7 : 0;
    x->p.eps = s->seed % 2 ? 0.25 : 0;
    return x;
}

static void solve(problem *x)
{
    check(FN(sattn_linear_forward)(&x->p) == SATTN_OK);
    check(FN(sattn_linear_backward)(&x->p) == SATTN_OK);
    check_guarded();
}

/* Errors: sums of N pairs of D products, and what quotients and features add; twice over */
static void check_oracle(const problem *x)
{
    const shape *s = &x->shape;
    const double units = 4 * (double)(s->keys + s->queries + s->width + s->value_width + 40);
    for (int64_t h = 0; h < s->heads; h++) {
        double *in[INPUTS];
        oracle_term *out[ARRAYS];
        for (int i = 0; i < ARRAYS; i++) {
            const int64_t n = x->rows[i] * x->cols[i];
            if (i < INPUTS) {
                in[i] = x->place[i]->data ? calloc((size_t)n + 1, sizeof *in[i]) : NULL;
                for (int64_t j = 0; in[i] && j < n; j++)
                    in[i][j] = (double)*cell(x, i, h, j / x->cols[i], j % x->cols[i]);
            } else {
                out[i] = calloc((size_t)n + 1, sizeof *out[i]);
            }
        }
        oracle_linear_attend(
            &(oracle_linear){s->queries, s->keys, s->width, s->value_width, s->feature,
                             (s->flags & SATTN_CAUSAL) != 0, (s->flags & SATTN_NORMALISED) != 0,
                             (s->flags & SATTN_MEAN) != 0, x->p.scale, x->p.eps, x->p.seen, in[Q],
                             in[K], in[V], in[SUM], in[KEY_SUM], in[DOUT], in[DSUM_OUT],
                             in[DKEY_SUM_OUT]},
            &(oracle_linear_results){out[OUT], out[DEN], out[SUM_OUT], out[KEY_SUM_OUT], out[DQ],
                                     out[DK], out[DV], out[DSUM], out[DKEY_SUM]});
        for (int i = 0; i < ARRAYS; i++) {
            for (int64_t j = 0; i >= OUT && x->place[i]->data && j < x->rows[i] * x->cols[i]; j++)
                check_near(names[i], j, (double)*cell(x, i, h, j / x->cols[i], j % x->cols[i]),
                           (double)out[i][j].value, units * EPS * (double)out[i][j].size + 1e-30);
            free(i < INPUTS ? (void *)in[i] : (void *)out[i]);
        }
    }
}

static shape random_shape(uint64_t seed)
{
    static const int64_t tokens[] = {1, 3, 47, 48, 49, 100, 150};
    rng r = seed_of(seed);
    shape s = {.seed = seed, .heads = 1 + random_below(&r, 3)};
    s.flags = random_below(&r, 2) ? SATTN_CAUSAL : 0;
    s.queries = tokens[random_below(&r, 7)];
    s.keys = s.flags ? s.queries : tokens[random_below(&r, 7)];
    s.width = 1 + random_below(&r, 20);
    s.value_width = 1 + random_below(&r, 20);
    s.feature = (int)random_below(&r, 4);
    s.flags |= random_below(&r, 2) && s.feature ? SATTN_NORMALISED
               : random_below(&r, 2)            ? SATTN_MEAN
                                                : 0;
    s.state = (int)random_below(&r, 2);
    s.transposed = (int)random_below(&r, 2);
    return s;
}

EACH_ROW(linear, random)
{
    sattn_isa_set(*isa);
    for (uint64_t seed = 1; seed <= 80; seed++) {
        const shape s = random_shape(seed);
        if (is_left_out((int64_t)seed))
            continue;
        problem *x = make(&s);
        solve(x);
        check_oracle(x);
        release_guarded();
    }
}

static void check_same_problem(const problem *got, const problem *want, int first, int last)
{
    for (int i = first; i < last; i++)
        for (int64_t j = 0; want->place[i]->data && j < got->shape.heads * got->rows[i]; j++)
            for (int64_t c = 0; c < got->cols[i]; c++)
                check_same_of(names[i], cell(got, i, j / got->rows[i], j % got->rows[i], c),
                              cell(want, i, j / got->rows[i], j % got->rows[i], c), 1,
                              sizeof(real));
}

/* Two blocks of tokens, with one head, where blocks are tasks, and with several */
Test(linear, rows_threads_and_places)
{
    static const placement sides[] = {ENDS, BEGINS};
    const struct criterion_test_params rows = each_row();
    for (int v = 0; v < 6; v++) {
        if (is_left_out(v))
            continue;
        shape s = {.seed = (uint64_t)v,
                   .heads = v % 2 ? 4 : 1,
                   .queries = 3100,
                   .keys = 3100,
                   .width = 7,
                   .value_width = 11,
                   .feature = v / 2 + 1,
                   .state = 1,
                   .flags = (v / 2 == 1 ? 0 : SATTN_CAUSAL) | (v / 2 == 2 ? 0 : SATTN_NORMALISED)};
        sattn_isa_set(SATTN_ISA_SCALAR);
        problem *want = make(&s);
        want->p.threads = 1;
        solve(want);
        for (size_t i = 0; i < rows.length; i++)
            for (int t = 1; t <= 3; t++) {
                s.side = sides[t % 2];
                s.transposed = t == 3;
                problem *got = make(&s);
                sattn_isa_set(((const int32_t *)rows.params)[i]);
                got->p.threads = t;
                solve(got);
                check_same_problem(got, want, OUT, ARRAYS);
            }
        release_guarded();
    }
}

/* A sequence in two parts, the second given the state that the first left */
EACH_ROW(linear, stream)
{
    enum { N = 200, CUT = 77 };
    sattn_isa_set(*isa);
    for (int normalised = 0; normalised < 2; normalised++) {
        const shape s = {.seed = 3,
                         .heads = 2,
                         .queries = N,
                         .keys = N,
                         .width = 5,
                         .value_width = 4,
                         .feature = SATTN_FEATURE_EXP,
                         .flags = SATTN_CAUSAL | (normalised ? SATTN_NORMALISED : SATTN_MEAN)};
        problem *whole = make(&s), *parts = make(&s);
        solve(whole);
        for (int second = 0; second < 2; second++) {
            sattn_linear p = parts->p;
            const int64_t from = second ? CUT : 0;
            p.queries = p.keys = second ? N - CUT : CUT;
            p.seen = from;
            p.q.data = parts->data[Q] + from * 5, p.k.data = parts->data[K] + from * 5;
            p.v.data = parts->data[V] + from * 4, p.out.data = parts->data[OUT] + from * 4;
            p.den.data = normalised ? parts->data[DEN] + from : NULL;
            if (second) { /* in place would be an alias */
                memcpy(parts->data[SUM], parts->data[SUM_OUT], 2 * 5 * 4 * sizeof(real));
                memcpy(parts->data[KEY_SUM], parts->data[KEY_SUM_OUT], 2 * 5 * sizeof(real));
                p.sum.data = parts->data[SUM];
                p.key_sum.data = normalised ? parts->data[KEY_SUM] : NULL;
            }
            check(FN(sattn_linear_forward)(&p) == SATTN_OK);
        }
        for (int64_t j = 0; j < 2 * N * 4; j++)
            check_near("out", j, (double)parts->data[OUT][j], (double)whole->data[OUT][j],
                       400 * EPS);
        for (int64_t j = 0; j < 2 * 5 * 4; j++)
            check_near("sum", j, (double)parts->data[SUM_OUT][j], (double)whole->data[SUM_OUT][j],
                       400 * EPS * N);
        release_guarded();
    }
}

EACH_ROW(linear, special_values)
{
    sattn_isa_set(*isa);
    shape s = {.seed = 2,
               .heads = 1,
               .queries = 60,
               .keys = 60,
               .width = 2,
               .value_width = 2,
               .feature = SATTN_FEATURE_RELU,
               .flags = SATTN_CAUSAL | SATTN_NORMALISED};
    problem *x = make(&s);
    for (int64_t i = 0; i < 20; i++) /* no query meets a key: 0 / 0 */
        *cell(x, K, 0, i, 0) = *cell(x, K, 0, i, 1) = -1;
    *cell(x, V, 0, 50, 0) = (real)NAN;
    solve(x);
    for (int64_t i = 0; i < 60; i++) {
        const real out = *cell(x, OUT, 0, i, 0);
        at("query %d", (int)i);
        check(i < 20 ? out == 0 : i < 50 ? !isnan(out) : 1);
        check(i < 20 ? *cell(x, DQ, 0, i, 0) == 0 : 1);
    }
    check(isnan(*cell(x, OUT, 0, 59, 0)) || *cell(x, DEN, 0, 59, 0) == 0);
    release_guarded();
}

#define REFUSE(change, status)                                                                     \
    do {                                                                                           \
        problem *x = make(&s);                                                                     \
        x->p.change;                                                                               \
        at("%s", #change);                                                                         \
        check(FN(sattn_linear_forward)(&x->p) == SATTN_##status);                                  \
        for (int i = OUT; i < DQ; i++)                                                             \
            check(is_untouched(x->data[i], (size_t)(x->rows[i] * x->cols[i]) * sizeof(real)));     \
        release_guarded();                                                                         \
    } while (0)

Test(linear, bad_input)
{
    const shape s = {.seed = 1,
                     .heads = 1,
                     .queries = 4,
                     .keys = 4,
                     .width = 2,
                     .value_width = 3,
                     .feature = 1,
                     .flags = SATTN_NORMALISED | SATTN_CAUSAL,
                     .state = 1};
    sattn_linear p;
    check(sattn_linear_init(NULL, sizeof p, 1, 1, 1, 1, 1, 1) == SATTN_ENULL);
    check(sattn_linear_init(&p, 8, 1, 1, 1, 1, 1, 1) == SATTN_ESTRUCT);
    check(sattn_linear_init(&p, sizeof p, 1, 1, -1, 1, 1, 1) == SATTN_ESIZE);
    check(sattn_linear_init(&p, sizeof p, 1, 1, INT64_MAX / 8, 1, 64, 1) == SATTN_ESIZE);
    check(FN(sattn_linear_forward)(NULL) == SATTN_ENULL);
    REFUSE(size = 16, ESTRUCT);
    REFUSE(flags = 64, EOPTION);
    REFUSE(flags |= SATTN_MEAN, EOPTION);
    REFUSE(feature = 4, EOPTION);
    REFUSE(reserved = 1, EOPTION);
    REFUSE(scale = NAN, EVALUE);
#if SATTN_REAL == 32
    REFUSE(scale = 1e300, EVALUE);
    REFUSE(eps = 1e300, EVALUE);
    REFUSE(eps = 1e-300, EVALUE); /* would be 0: none */
#endif
    REFUSE(eps = -1, EVALUE);
    REFUSE(seen = -1, EVALUE);
    REFUSE(threads = -1, EVALUE);
    REFUSE(queries = 3, ESIZE);
    REFUSE(keys = -1, ESIZE);
    REFUSE(q.data = NULL, ENULL);
    REFUSE(v.data = NULL, ENULL);
    REFUSE(out.row = 0, ESTRIDE);
    REFUSE(out.data = x->data[V], EALIAS);
    REFUSE(sum_out.data = x->data[SUM], EALIAS);
    REFUSE(den.data = x->data[OUT], EALIAS);
    problem *x = make(&s);
    x->p.den.data = NULL;
    check(FN(sattn_linear_backward)(&x->p) == SATTN_ENULL);
    int64_t bytes;
    check(FN(sattn_linear_workspace)(&x->p, &bytes) == SATTN_OK);
    x->p.work = guarded((size_t)(bytes + 63) / 64 * 64, ROOMY, 0);
    x->p.work_bytes = 64;
    check(FN(sattn_linear_forward)(&x->p) == SATTN_EWORKSPACE);
    release_guarded();
    for (int side = ENDS; side <= BEGINS; side++) {
        problem *y = make(&s), *want = make(&s);
        y->p.work = guarded((size_t)(bytes + 63) / 64 * 64, (placement)side, 0);
        y->p.work_bytes = bytes;
        solve(y);
        solve(want);
        check_same_problem(y, want, OUT, ARRAYS);
        release_guarded();
    }
}
