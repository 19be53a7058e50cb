/* SPDX-License-Identifier: BSD-2-Clause */
/* Attention over blocks of keys, merged, is attention over all of them, forward and backward; and
 * what merge does with empty parts, places and bad input. */
#include "attend.h"
#include "sattn/merge.h"

enum { M = 50, N = 300, D = 8, E = 21, PARTS = 4 };
static const int64_t cuts[PARTS + 1] = {0, 1, 1, 130, N}; /* the second block has no key */

typedef struct {
    real out[PARTS][M][E], stats[PARTS][M][2], dout[PARTS][M][E], dlse[PARTS][M];
    real merged[M][E], total[M][2], dq[M][D], dk[N][D], dv[N][E];
    const void *outs[PARTS], *statistics[PARTS];
    void *douts[PARTS], *dlses[PARTS];
    sattn_merge p;
} split;

static split *set_up(void)
{
    split *s = guarded(sizeof *s, ROOMY, 0);
    for (int i = 0; i < PARTS; i++) {
        s->outs[i] = s->out[i], s->statistics[i] = s->stats[i];
        s->douts[i] = s->dout[i], s->dlses[i] = s->dlse[i];
    }
    at("merge");
    check(sattn_merge_init(&s->p, sizeof s->p, PARTS, M, E) == SATTN_OK);
    s->p.part_out = s->outs, s->p.part_stats = s->statistics;
    s->p.out = s->merged, s->p.stats = s->total;
    return s;
}

static attend whole(void)
{
    attend x = make_attend(&(attend_shape){.seed = 3,
                                           .batch = 1,
                                           .heads = 1,
                                           .key_heads = 1,
                                           .queries = M,
                                           .keys = N,
                                           .width = D,
                                           .value_width = E,
                                           .scale = 0.5,
                                           .left = -1,
                                           .right = -1,
                                           .reach = 2});
    solve_attend(&x);
    return x;
}

/* The problem of one block of keys */
static sattn_attention block(const attend *x, split *s, int i)
{
    sattn_attention p = x->p;
    p.keys = cuts[i + 1] - cuts[i];
    p.k.data = attend_cell(x, K, 0, 0, cuts[i], 0);
    p.v.data = attend_cell(x, V, 0, 0, cuts[i], 0);
    p.out = (sattn_output){s->out[i], 0, 0, E, 1};
    p.stats = (sattn_output){s->stats[i], 0, 0, 2, 1};
    p.lse.data = NULL;
    p.dout = (sattn_input){s->dout[i], 0, 0, E, 1};
    p.dlse = (sattn_input){s->dlse[i], 0, 0, 1, 0};
    p.dq.data = s->dq;
    p.dk = (sattn_output){s->dk[cuts[i]], 0, 0, D, 1};
    p.dv = (sattn_output){s->dv[cuts[i]], 0, 0, E, 1};
    p.dscale = NULL;
    return p;
}

EACH_ROW(merge, blocks_make_the_whole)
{
    sattn_isa_set(*isa);
    attend x = whole();
    split *s = set_up();
    for (int i = 0; i < PARTS; i++) {
        const sattn_attention p = block(&x, s, i);
        check(FN(sattn_attention_forward)(&p) == SATTN_OK);
    }
    for (int64_t i = 0; i < M * E; i++)
        s->out[1][i / E][i % E] = (real)NAN; /* of weight 0: never read */
    check(FN(sattn_merge_forward)(&s->p) == SATTN_OK);
    s->p.dout = x.a[DOUT].data, s->p.dlse = x.a[DLSE].data;
    s->p.part_dout = s->douts, s->p.part_dlse = s->dlses;
    check(FN(sattn_merge_backward)(&s->p) == SATTN_OK);
    memset(s->dq, 0, sizeof s->dq);
    for (int i = 0; i < PARTS; i++) {
        sattn_attention p = block(&x, s, i);
        if (i == 1)
            for (int64_t j = 0; j < M * E; j++)
                check(s->dout[1][j / E][j % E] == 0 && s->dlse[1][j / E] == 0);
        p.dk.data = p.keys ? p.dk.data : NULL, p.dv.data = p.keys ? p.dv.data : NULL;
        /* dq adds up over the blocks, dk and dv are each block's own */
        p.flags = SATTN_ACCUMULATE;
        for (int64_t n = cuts[i]; n < cuts[i + 1]; n++) {
            memset(s->dk[n], 0, sizeof s->dk[n]);
            memset(s->dv[n], 0, sizeof s->dv[n]);
        }
        check(FN(sattn_attention_backward)(&p) == SATTN_OK);
    }
    /* scores up to 16 here: errors of 100 or so EPS in weights */
    for (int64_t m = 0; m < M; m++) {
        const double lse = (double)*attend_cell(&x, LSE, 0, 0, m, 0);
        check_near("lse", m, (double)s->total[m][0] + (double)s->total[m][1], lse,
                   10 * EPS * fabs(lse));
        for (int64_t i = 0; i < E; i++)
            check_near("out", m, (double)s->merged[m][i], (double)*attend_cell(&x, OUT, 0, 0, m, i),
                       100 * EPS);
        for (int64_t i = 0; i < D; i++)
            check_near("dq", m, (double)s->dq[m][i], (double)*attend_cell(&x, DQ, 0, 0, m, i),
                       2000 * EPS);
    }
    for (int64_t n = 0; n < N; n++) {
        for (int64_t i = 0; i < D; i++)
            check_near("dk", n, (double)s->dk[n][i], (double)*attend_cell(&x, DK, 0, 0, n, i),
                       4000 * EPS);
        for (int64_t i = 0; i < E; i++)
            check_near("dv", n, (double)s->dv[n][i], (double)*attend_cell(&x, DV, 0, 0, n, i),
                       1000 * EPS);
    }
    release_guarded();
}

/* Parts with statistics that need no attention to make */
static split *given(void)
{
    split *s = set_up();
    rng r = seed_of(9);
    random_fill(&r, &s->out[0][0][0], PARTS * M * E, -1, 1);
    random_fill(&r, &s->dout[0][0][0], PARTS * M * E, -1, 1);
    for (int64_t i = 0; i < PARTS * M; i++) {
        s->stats[i / M][i % M][0] = (real)random_in(&r, -3, 3);
        s->stats[i / M][i % M][1] = (real)random_in(&r, 0, 2);
    }
    return s;
}

EACH_ROW(merge, formula)
{
    sattn_isa_set(*isa);
    split *s = given();
    check(FN(sattn_merge_forward)(&s->p) == SATTN_OK);
    for (int64_t m = 0; m < M; m++) {
        long double sum = 0, out = 0;
        for (int i = 0; i < PARTS; i++) {
            const long double w =
                expl((long double)s->stats[i][m][0] + (long double)s->stats[i][m][1]);
            sum += w;
            out += w * (long double)s->out[i][m][3];
        }
        check_near("out", m, (double)s->merged[m][3], (double)(out / sum), 20 * EPS);
        check_near("lse", m, (double)s->total[m][0] + (double)s->total[m][1], (double)logl(sum),
                   20 * EPS);
    }
    release_guarded();
}

Test(merge, rows_threads_places)
{
    const struct criterion_test_params rows = each_row();
    split *want = given();
    sattn_isa_set(SATTN_ISA_SCALAR);
    check(FN(sattn_merge_forward)(&want->p) == SATTN_OK);
    for (size_t i = 0; i < rows.length; i++)
        for (int in_place = 0; in_place < 2; in_place++) {
            split *s = given();
            sattn_isa_set(((const int32_t *)rows.params)[i]);
            s->p.threads = 3;
            if (in_place)
                s->p.out = s->out[0], s->p.stats = s->stats[0];
            check(FN(sattn_merge_forward)(&s->p) == SATTN_OK);
            check_same((real *)s->p.out, &want->merged[0][0], M * E);
            check_same((real *)s->p.stats, &want->total[0][0], M * 2);
        }
    release_guarded();
}

EACH_ROW(merge, nothing_to_merge)
{
    sattn_isa_set(*isa);
    split *s = given();
    for (int64_t i = 0; i < PARTS; i++)
        s->stats[i][4][0] = -(real)INFINITY;
    s->out[0][7][0] = (real)NAN;
    check(FN(sattn_merge_forward)(&s->p) == SATTN_OK);
    check(s->merged[4][0] == 0 && s->total[4][0] == -(real)INFINITY && s->total[4][1] == 0);
    check(isnan(s->merged[7][0]) && !isnan(s->merged[7][1]) && !isnan(s->merged[8][0]));
    s->p.parts = 0;
    check(FN(sattn_merge_forward)(&s->p) == SATTN_OK);
    for (int64_t i = 0; i < M * E; i++)
        check(s->merged[i / E][i % E] == 0 && s->total[i / E][0] == -(real)INFINITY);
    release_guarded();
}

Test(merge, bad_input)
{
    split *s = given();
    const sattn_merge good = s->p;
    check(sattn_merge_init(NULL, sizeof s->p, 1, 1, 1) == SATTN_ENULL);
    check(sattn_merge_init(&s->p, 8, 1, 1, 1) == SATTN_ESTRUCT);
    check(sattn_merge_init(&s->p, sizeof s->p, -1, 1, 1) == SATTN_ESIZE);
    check(sattn_merge_init(&s->p, sizeof s->p, 1, INT64_MAX / 4, 8) == SATTN_ESIZE);
    check(sattn_merge_init(&s->p, sizeof s->p, 1, 1, INT64_MAX) == SATTN_ESIZE);
#define EXPECT(change, status)                                                                     \
    s->p = good;                                                                                   \
    s->p.change;                                                                                   \
    check(FN(sattn_merge_forward)(&s->p) == status);                                               \
    check(is_untouched(s->merged, sizeof s->merged) && is_untouched(s->total, sizeof s->total))
    check(FN(sattn_merge_forward)(NULL) == SATTN_ENULL);
    EXPECT(part_out = NULL, SATTN_ENULL);
    EXPECT(part_stats = NULL, SATTN_ENULL);
    EXPECT(flags = 1, SATTN_EOPTION);
    EXPECT(threads = -1, SATTN_EVALUE);
    EXPECT(out_row = E - 1, SATTN_ESTRIDE);
    EXPECT(out = s->out[1], SATTN_EALIAS);
    EXPECT(stats = s->out[0], SATTN_EALIAS);
    s->outs[2] = NULL;
    EXPECT(rows = M, SATTN_ENULL);
    s->outs[2] = s->out[2];
    s->p = good;
    s->p.part_dout = s->douts;
    s->p.out = NULL;
    check(FN(sattn_merge_backward)(&s->p) == SATTN_ENULL);
    s->p.out = s->merged;
    s->douts[1] = s->dout[0];
    check(FN(sattn_merge_backward)(&s->p) == SATTN_EALIAS);
    release_guarded();
}
