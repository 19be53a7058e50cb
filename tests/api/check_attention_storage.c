/* SPDX-License-Identifier: BSD-2-Clause */
/* Keys and values as others store them: in 16 bits, in pages, as views into one array, shared by
 * heads, added up in place. The answer is that of the plain arrays, bit for bit. */
#include "attend.h"

#include <stdlib.h>

static attend_shape plain(int64_t keys)
{
    return (attend_shape){.seed = 4,
                          .batch = 2,
                          .heads = 4,
                          .key_heads = 2,
                          .queries = 5,
                          .keys = keys,
                          .width = 6,
                          .value_width = 4,
                          .scale = 1,
                          .left = -1,
                          .right = -1,
                          .reach = 1};
}

/* The upper half of a float; inputs are rounded to it first, so that nothing is lost. */
static uint16_t brain(real *x)
{
    const float f = (float)*x;
    uint32_t bits;
    memcpy(&bits, &f, 4);
    bits &= 0xffff0000u;
    float g;
    memcpy(&g, &bits, 4);
    *x = (real)g;
    return (uint16_t)(bits >> 16);
}

/* A multiple of 1/64 in [-1, 1] as binary16 */
static uint16_t half(real *x)
{
    const int n = (int)(*x * 64), size = abs(n);
    *x = (real)n / 64;
    if (size == 0)
        return 0;
    int e = 0;
    while (size >> (e + 1))
        e++;
    return (uint16_t)((n < 0 ? 0x8000 : 0) | (e + 9) << 10 | ((size << (10 - e)) & 1023));
}

EACH_ROW(attention_storage, sixteen_bits)
{
    sattn_isa_set(*isa);
    for (int32_t storage = SATTN_STORAGE_BF16; storage <= SATTN_STORAGE_F16; storage++) {
        const attend_shape s = plain(150);
        attend want = make_attend(&s), got = make_attend(&s);
        uint16_t *stored[2];
        for (int i = 0; i < 2; i++) {
            const attend_array *a = &want.a[i ? V : K];
            stored[i] = guarded((size_t)a->extent * 2, ENDS, 0);
            for (int64_t j = 0; j < a->extent; j++)
                stored[i][j] =
                    storage == SATTN_STORAGE_F16 ? half(&a->data[j]) : brain(&a->data[j]);
        }
        got.p.storage = storage;
        got.p.k.data = stored[0], got.p.v.data = stored[1];
        at("storage %d", (int)storage);
        solve_attend(&want);
        solve_attend(&got);
        check_same_attend(&got, &want, OUT, ARRAYS);
        release_guarded();
    }
}

EACH_ROW(attention_storage, pages)
{
    enum { PAGES = 3, PAGE = 64 };
    static const int32_t table[2][PAGES] = {{5, 0, 3}, {1, 4, 5}};
    sattn_isa_set(*isa);
    const attend_shape s = plain(PAGES * PAGE - 20);
    attend want = make_attend(&s), got = make_attend(&s);
    for (int i = 0; i < 2; i++) {
        sattn_input *x = i ? &got.p.v : &got.p.k;
        const int64_t width = i ? 4 : 6, row = 2 * width, page = PAGE * row;
        real *cache = guarded((size_t)(6 * page) * sizeof(real), ENDS, 0);
        *x = (sattn_input){cache, page, width, row, 1};
        for (int64_t n = 0; n < s.keys * s.batch * 2; n++) { /* [page][key][head][width] */
            const int64_t b = n % 2, h = n / 2 % 2, j = n / 4;
            real *to = cache + table[b][j / PAGE] * page + j % PAGE * row + h * width;
            /* both entries share page 5: it must hold the same keys */
            for (int64_t d = 0; d < width; d++) {
                real *from = attend_cell(&want, i ? V : K, b, h, j, d);
                if (table[b][j / PAGE] == 5 && b == 1 && j % PAGE < PAGE)
                    *from = *attend_cell(&want, i ? V : K, 0, h, j % PAGE, d);
                to[d] = *from;
            }
        }
    }
    got.p.page = &table[0][0], got.p.page_batch = PAGES, got.p.page_size = PAGE;
    check(FN(sattn_attention_forward)(&want.p) == SATTN_OK);
    check(FN(sattn_attention_forward)(&got.p) == SATTN_OK);
    check_same_attend(&got, &want, OUT, DQ);
    release_guarded();
}

/* q, k, v as views of [B][M][3][H][D], gradients into an array like it; and cotangents of one
 * number with strides of 0. */
EACH_ROW(attention_storage, interleaved)
{
    enum { B = 2, S = 70, H = 3, D = 6 };
    sattn_isa_set(*isa);
    attend_shape s = plain(S);
    s.heads = s.key_heads = H, s.queries = S, s.value_width = D;
    attend want = make_attend(&s);
    real *in = guarded(B * S * 3 * H * D * sizeof *in, ENDS, 0), one = 1;
    real *grad = guarded(B * S * 3 * H * D * sizeof *in, ENDS, 0);
    sattn_attention p = want.p;
    const sattn_input view = {NULL, S * 3 * H * D, D, 3 * H * D, 1};
    const int inputs[] = {Q, K, V}, grads[] = {DQ, DK, DV};
    sattn_input *ins[] = {&p.q, &p.k, &p.v};
    sattn_output *outs[] = {&p.dq, &p.dk, &p.dv};
    for (int i = 0; i < 3; i++) {
        *ins[i] = view, ins[i]->data = in + i * H * D;
        *outs[i] = (sattn_output){grad + i * H * D, view.batch, view.head, view.row, 1};
        for (int64_t n = 0; n < B * H * S * D; n++) {
            const int64_t b = n / (H * S * D), h = n / (S * D) % H, m = n / D % S, d = n % D;
            in[b * view.batch + h * D + m * view.row + d + i * H * D] =
                *attend_cell(&want, inputs[i], b, h, m, d);
        }
    }
    want.p.dout = p.dout = (sattn_input){&one, 0, 0, 0, 0};
    solve_attend(&want);
    check(FN(sattn_attention_forward)(&p) == SATTN_OK);
    check(FN(sattn_attention_backward)(&p) == SATTN_OK);
    for (int i = 0; i < 3; i++)
        for (int64_t n = 0; n < B * H * S * D; n++) {
            const int64_t b = n / (H * S * D), h = n / (S * D) % H, m = n / D % S, d = n % D;
            check_same(&grad[b * view.batch + h * D + m * view.row + d + i * H * D],
                       attend_cell(&want, grads[i], b, h, m, d), 1);
        }
    /* dk shifted onto dq's elements */
    p.dk.data = grad + 1;
    check(FN(sattn_attention_backward)(&p) == SATTN_EALIAS);
    release_guarded();
}

/* Keys shared by heads with a stride of 0; gradients that are added to. */
EACH_ROW(attention_storage, shared_and_accumulated)
{
    sattn_isa_set(*isa);
    attend_shape s = plain(40);
    attend x = make_attend(&s), twice = make_attend(&s);
    solve_attend(&x);
    solve_attend(&twice);
    twice.p.flags = SATTN_ACCUMULATE;
    check(FN(sattn_attention_backward)(&twice.p) == SATTN_OK);
    for (int i = DQ; i <= DV; i++)
        for (int64_t j = 0; j < x.a[i].extent; j++)
            check_near(attend_names[i], j, (double)twice.a[i].data[j], 2 * (double)x.a[i].data[j],
                       100 * EPS);
    attend one = make_attend(&s), shared = make_attend(&s);
    for (int64_t b = 0; b < 2; b++)
        for (int64_t j = 0; j < 40 * 6; j++) {
            *attend_cell(&one, K, b, 1, j / 6, j % 6) = *attend_cell(&one, K, b, 0, j / 6, j % 6);
            *attend_cell(&shared, K, b, 1, j / 6, j % 6) = (real)NAN;
        }
    shared.p.k.head = 0;
    solve_attend(&one);
    solve_attend(&shared);
    check_same_attend(&shared, &one, OUT, ARRAYS);
    release_guarded();
}
