/* SPDX-License-Identifier: BSD-2-Clause */
/* Bad descriptors of softmax attention: the documented status, and not a byte written. */
#include "attend.h"
#include "changes.h"

/* A legal problem, its outputs full of 0xff; each case below changes one member. */
static attend legal(void)
{
    return make_attend(&(attend_shape){.seed = 1,
                                       .batch = 2,
                                       .heads = 4,
                                       .key_heads = 2,
                                       .queries = 3,
                                       .keys = 5,
                                       .width = 2,
                                       .value_width = 6,
                                       .scale = 1,
                                       .left = -1,
                                       .right = -1,
                                       .bias = 1,
                                       .mask = 1,
                                       .sink = 1,
                                       .slope = 1,
                                       .repeat = 3,
                                       .reach = 1});
}

static void check_untouched(const attend *x)
{
    for (int i = OUT; i < ARRAYS; i++)
        check(is_untouched(x->a[i].data, (size_t)x->a[i].extent * sizeof(real)));
    check_guarded();
}

static void check_refused(attend *x, int32_t forward, int32_t backward)
{
    int32_t got = forward == SATTN_OK ? SATTN_OK : FN(sattn_attention_forward)(&x->p);
    cr_assert(got == forward, "forward: %s, not %s: %s", sattn_status_string(got),
              sattn_status_string(forward), where());
    got = backward == SATTN_OK ? SATTN_OK : FN(sattn_attention_backward)(&x->p);
    cr_assert(got == backward, "backward: %s, not %s: %s", sattn_status_string(got),
              sattn_status_string(backward), where());
    check_untouched(x);
    if (forward == SATTN_OK)
        check(FN(sattn_attention_forward)(&x->p) == SATTN_OK);
}

#define SET(member, value, forward, backward)                                                      \
    CHANGE(sattn_attention, member, value, forward, backward)
#define BOTH(member, value, status) SET(member, value, status, status)

static const change changes[] = {
    BOTH(size, 0, ESTRUCT),
    BOTH(size, -1, ESTRUCT),
    BOTH(size, sizeof(sattn_attention) - 8, ESTRUCT),
    BOTH(size, INT64_MAX, ESTRUCT),
    BOTH(batch, -1, ESIZE),
    BOTH(batch, INT64_MAX / 2, ESIZE),
    BOTH(heads, -4, ESIZE),
    BOTH(heads, 3, ESIZE),
    BOTH(key_heads, 0, ESIZE),
    BOTH(key_heads, 3, ESIZE),
    BOTH(queries, -1, ESIZE),
    BOTH(queries, INT64_MAX / 2, ESIZE),
    BOTH(keys, -1, ESIZE),
    BOTH(keys, INT64_MAX / 2, ESIZE),
    BOTH(width, INT64_MIN, ESIZE),
    BOTH(value_width, INT64_MAX, ESIZE),
    BOTH(left, -2, EVALUE),
    BOTH(left, INT64_MIN, EVALUE),
    BOTH(right, -2, EVALUE),
    BOTH(diagonal, 2, EOPTION),
    BOTH(diagonal, -1, EOPTION),
    BOTH(storage, 3, EOPTION),
    BOTH(storage, -1, EOPTION),
    BOTH(flags, 2, EOPTION),
    BOTH(threads, -1, EVALUE),
    BOTH(threads, SATTN_MAX_THREADS + 1, EVALUE),
    SET(page_size, 32, EVALUE, EOPTION),
    SET(page_size, -64, EVALUE, EOPTION),
    SET(page_size, 64, ENULL, EOPTION),
    SET(page_size, INT64_MAX / 64 * 64, ENULL, EOPTION),
    BOTH(q.data, 0, ENULL),
    BOTH(k.data, 0, ENULL),
    BOTH(v.data, 0, ENULL),
    BOTH(q.row, INT64_MAX / 2, ESIZE),
    BOTH(k.batch, INT64_MIN, ESIZE),
    SET(out.data, 0, OK, ENULL),
    SET(stats.data, 0, OK, ENULL),
    SET(bias.data, 0, OK, ENULL),
    SET(sink.data, 0, OK, ENULL),
    SET(out.row, 0, ESTRIDE, OK),
    SET(out.row, 5, ESTRIDE, OK),
    SET(out.head, 0, ESTRIDE, OK),
    SET(stats.row, 1, ESTRIDE, OK),
    SET(lse.batch, 0, ESTRIDE, OK),
    SET(dq.row, 1, OK, ESTRIDE),
    SET(dk.head, 0, OK, ESTRIDE),
    SET(dv.col, 0, OK, ESTRIDE),
    SET(work_bytes, -1, OK, OK),
};

Test(attention_bad, members)
{
    for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
        const change *c = &changes[i];
        attend x = legal();
        make_change(c, &x.p);
        check_refused(&x, c->forward, c->backward);
        release_guarded();
    }
}

/* Members that are no integers, and pointers into other arrays */
#define REFUSE(change, forward, backward)                                                          \
    do {                                                                                           \
        attend x = legal();                                                                        \
        x.p.change;                                                                                \
        at("%s", #change);                                                                         \
        check_refused(&x, SATTN_##forward, SATTN_##backward);                                      \
        release_guarded();                                                                         \
    } while (0)

Test(attention_bad, values_and_aliases)
{
    REFUSE(scale = NAN, EVALUE, EVALUE);
    REFUSE(scale = INFINITY, EVALUE, EVALUE);
    REFUSE(softcap = NAN, EVALUE, EVALUE);
    REFUSE(softcap = -1, EVALUE, EVALUE);
#if SATTN_REAL == 32
    REFUSE(scale = 1e39, EVALUE, EVALUE);
    REFUSE(softcap = 1e300, EVALUE, EVALUE);
    REFUSE(softcap = 1e-46, EVALUE, EVALUE); /* would be 0: none */
#endif
    REFUSE(out.data = x.a[V].data, EALIAS, OK);
    REFUSE(out.data = x.a[BIAS].data, EALIAS, OK);
    REFUSE(out.data = x.mask, EALIAS, OK);
    REFUSE(lse.data = x.a[OUT].data, EALIAS, OK);
    REFUSE(dq.data = x.a[Q].data, OK, EALIAS);
    REFUSE(dk.data = x.a[DQ].data, OK, EALIAS);
    REFUSE(dbias.data = x.a[BIAS].data, OK, EALIAS);
    REFUSE(dsink.data = x.a[SINK].data, OK, EALIAS);
    REFUSE(dscale = x.a[DV].data, OK, EALIAS);
    int64_t lists[2 * 6] = {3, 3, 3}, *offsets = lists + 6;
    offsets[1] = 1, offsets[2] = 3;
    int32_t pages[] = {0, 0};
    REFUSE(key_length = x.p.out.data = lists, EALIAS, OK);
    REFUSE(key_length = x.p.lse.data = lists, EALIAS, OK);
    REFUSE(key_length = x.p.dq.data = lists, OK, EALIAS);
    REFUSE(query_offset = x.p.stats.data = offsets, EALIAS, OK);
    REFUSE(key_offset = x.p.dk.data = offsets, OK, EALIAS);
    attend x = legal();
    x.p.page_size = 64, x.p.page_batch = 1, x.p.page = x.p.out.data = pages;
    at("pages");
    check_refused(&x, SATTN_EALIAS, SATTN_OK);
    x = legal();
    x.p.work = (unsigned char *)x.a[OUT].data;
    x.p.work_bytes = 1 << 20;
    check_refused(&x, SATTN_EALIAS, SATTN_EALIAS);
    check(FN(sattn_attention_forward)(NULL) == SATTN_ENULL);
    check(FN(sattn_attention_backward)(NULL) == SATTN_ENULL);
    release_guarded();
}

Test(attention_bad, lengths)
{
    static const int64_t lengths[][3] = {{-1, 2}, {2, 6}}, offsets[][3] = {{-1, 2, 3}, {0, 3, 2}};
    for (int i = 0; i < 2; i++) {
        REFUSE(key_length = lengths[i], EVALUE, EVALUE);
        REFUSE(query_offset = offsets[i], EVALUE, EVALUE);
        REFUSE(key_offset = offsets[i], EVALUE, EVALUE);
    }
    static const int64_t long_queries[] = {0, 4, 5}, long_keys[] = {0, 1, 7};
    REFUSE(query_offset = long_queries, EVALUE, EVALUE);
    REFUSE(key_offset = long_keys, EVALUE, EVALUE);
    static const int32_t pages[] = {0, -1};
    attend x = legal();
    x.p.page = pages, x.p.page_batch = 1, x.p.page_size = 64;
    check_refused(&x, SATTN_EVALUE, SATTN_EOPTION);
    release_guarded();
}

Test(attention_bad, workspace)
{
    attend x = legal();
    int64_t bytes = 0;
    check(FN(sattn_attention_workspace)(&x.p, NULL) == SATTN_ENULL);
    check(FN(sattn_attention_workspace)(&x.p, &bytes) == SATTN_OK && bytes > 0);
    unsigned char *work = guarded((size_t)bytes + 64, ENDS, 0);
    work += (64 - (uintptr_t)work % 64) % 64;
    x.p.work = work, x.p.work_bytes = bytes - 1;
    check_refused(&x, SATTN_OK, SATTN_EWORKSPACE); /* forward needs less */
    x = legal();
    x.p.work = work, x.p.work_bytes = 64;
    check_refused(&x, SATTN_EWORKSPACE, SATTN_EWORKSPACE);
    x.p.work = work + 8, x.p.work_bytes = bytes;
    check_refused(&x, SATTN_EWORKSPACE, SATTN_EWORKSPACE);
    release_guarded();
    /* exactly as much as was asked for, at a guard page */
    for (int side = ENDS; side <= BEGINS; side++) {
        attend y = legal(), want = legal();
        y.p.work = guarded((size_t)(bytes + 63) / 64 * 64, (placement)side, 0);
        y.p.work_bytes = bytes;
        solve_attend(&y);
        solve_attend(&want);
        check_same_attend(&y, &want, OUT, ARRAYS);
        release_guarded();
    }
}

Test(attention_bad, init)
{
    sattn_attention p;
    check(sattn_attention_init(NULL, sizeof p, 1, 1, 1, 1, 1, 1, 1) == SATTN_ENULL);
    check(sattn_attention_init(&p, sizeof p - 8, 1, 1, 1, 1, 1, 1, 1) == SATTN_ESTRUCT);
    check(sattn_attention_init(&p, sizeof p, 1, 4, 3, 1, 1, 1, 1) == SATTN_ESIZE);
    check(sattn_attention_init(&p, sizeof p, 1, 1, 1, INT64_MAX, 2, 1, 1) == SATTN_ESIZE);
    const int64_t huge = (int64_t)1 << 40;
    check(sattn_attention_init(&p, sizeof p, 0, 1, 1, huge, 1, huge, 1) == SATTN_ESIZE);
    check(sattn_attention_init(&p, sizeof p, 1, 0, huge, 1, huge, huge, 1) == SATTN_ESIZE);
    check(sattn_attention_init(&p, sizeof p, 0, 2, 1, 3, 4, 5, 6) == SATTN_OK);
    check(FN(sattn_attention_forward)(&p) == SATTN_OK);
    check(FN(sattn_attention_backward)(&p) == SATTN_OK);
    check(sattn_attention_init(&p, sizeof p, 0, 0, 0, 0, 0, 0, 0) == SATTN_OK);
    check(FN(sattn_attention_forward)(&p) == SATTN_OK);
    check(FN(sattn_attention_backward)(&p) == SATTN_OK);
}
