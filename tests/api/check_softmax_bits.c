/* SPDX-License-Identifier: BSD-2-Clause */
/* The same bits of softmax from every instruction set, thread count, layout, batch and place, in
 * place too; 16-bit results are the own type's, rounded. */
#include "lines.h"

#include <stdlib.h>

enum { SHAPES = 40 };

static shape numbered(uint64_t seed)
{
    shape s = random_shape(seed + 5000);
    s.batch += s.batch == 0;
    s.rows += s.rows == 0;
    return s;
}

EACH_ROW(softmax, rows_threads_layouts)
{
    for (uint64_t seed = 0; seed < SHAPES; seed++) {
        shape s = numbered(seed);
        sattn_isa_set(SATTN_ISA_SCALAR);
        s.order = 0, s.gap = 0, s.side = ROOMY, s.offset = 0;
        problem want = make_problem(&s);
        want.p.threads = 1;
        solve(&want);
        sattn_isa_set(*isa);
        for (int layout = 0; layout < 4; layout++) {
            s.order = (int)((seed + 5 * (uint64_t)layout) % 6);
            s.gap = (int64_t)(seed % 5) * layout;
            s.side = (placement)(layout % 3);
            s.offset = (size_t)layout;
            problem got = make_problem(&s);
            got.p.threads = layout + 1;
            solve(&got);
            check_same_outputs(&got, &want);
        }
        release_guarded();
    }
}

/* Enough rows for several tasks and slabs, in more than one team */
EACH_ROW(softmax, threads)
{
    static const unsigned repeats[] = {0, 1, 2, 3, 4, 7};
    for (uint64_t i = 0; i < 6; i++) {
        shape s = {.seed = 77 + i, .batch = 3, .rows = 150, .width = 333, .scale = 0.5, .reach = 5};
        s.has = 1u << BIAS | 1u << SINK | 1u << DY | 1u << DLSE;
        s.repeats[BIAS] = repeats[i];
        s.repeats[SINK] = repeats[i] & 3;
        s.form = (int32_t)i % 2;
        sattn_isa_set(SATTN_ISA_SCALAR);
        problem want = make_problem(&s), got = make_problem(&s);
        want.p.threads = 1;
        solve(&want);
        sattn_isa_set(*isa);
        for (int32_t threads = 1; threads < 6; threads += 2) {
            got.p.threads = threads;
            clear_outputs(&got);
            solve(&got);
            check_same_outputs(&got, &want);
        }
        release_guarded();
    }
}

/* A row does not know which others there are: each alone, as batch and as row. */
EACH_ROW(softmax, one_row)
{
    sattn_isa_set(*isa);
    for (uint64_t seed = 0; seed < SHAPES; seed++) {
        shape s = numbered(seed);
        s.has &= ~(1u << SINK | 1u << BIAS);
        problem all = make_problem(&s);
        solve(&all);
        for (int64_t b = 0; b < s.batch; b++)
            for (int64_t m = 0; m < s.rows; m += 5) {
                problem one = all;
                sattn_softmax *p = &one.p;
#define MOVE(i, member)                                                                            \
    if (p->member)                                                                                 \
    p->member = (void *)(all.a[i].data + (b * all.a[i].stride[0] + m * all.a[i].stride[1]) *       \
                                             (int64_t)all.a[i].bytes)
                MOVE(X, x);
                MOVE(MASK, mask);
                MOVE(LENGTH, length);
                MOVE(DY, dy);
                MOVE(DLSE, dlse);
#undef MOVE
                p->batch = p->rows = 1;
                p->dscale = NULL;
                real y[2600], dx[2600], stats[2];
                p->y_storage = p->x_storage = all.p.x_storage;
                if (all.p.x_storage || all.p.y_storage)
                    continue;
                p->y = y, p->dx = dx, p->stats = stats, p->lse = NULL;
                p->y_col = p->dx_col = 1;
                check(FN(sattn_softmax_forward)(p) == SATTN_OK);
                if (s.from_x)
                    p->y = NULL;
                check(FN(sattn_softmax_backward)(p) == SATTN_OK);
                for (int64_t j = 0; j < s.width; j++) {
                    const real want[] = {(real)get(&all.a[Y], b, m, j),
                                         (real)get(&all.a[DX], b, m, j)};
                    check_same(&y[j], &want[0], 1);
                    check_same(&dx[j], &want[1], 1);
                }
            }
        release_guarded();
    }
}

/* y = x, dx = dy and dx = y */
EACH_ROW(softmax, in_place)
{
    sattn_isa_set(*isa);
    for (uint64_t seed = 0; seed < SHAPES; seed++) {
        shape s = numbered(seed);
        s.y_storage = s.x_storage;
        problem want = make_problem(&s);
        s.from_x = 0;
        solve(&want);
        problem got = make_problem(&s);
        sattn_softmax p = got.p;
        p.y = got.a[X].data;
        p.y_batch = p.x_batch, p.y_row = p.x_row, p.y_col = p.x_col;
        check(FN(sattn_softmax_forward)(&p) == SATTN_OK);
        array y = got.a[X];
        for (int64_t b = 0; b < s.batch; b++)
            for (int64_t m = 0; m < s.rows; m++)
                for (int64_t j = 0; j < s.width; j++) {
                    const double g = get(&y, b, m, j), w = get(&want.a[Y], b, m, j);
                    check_same(&g, &w, 1);
                }
        for (int on_y = 0; on_y < 2; on_y++) {
            got = make_problem(&s);
            check(FN(sattn_softmax_forward)(&got.p) == SATTN_OK);
            p = want.p; /* backward from its y with the x that is not overwritten */
            p.x = want.a[X].data;
            p.dy = got.a[DY].data;
            p.y = got.a[Y].data;
            p.dx = on_y ? got.a[Y].data : got.a[DY].data;
            if (s.from_x || want.shape.from_x)
                continue;
            check(FN(sattn_softmax_backward)(&p) == SATTN_OK);
            array dx = on_y ? got.a[Y] : got.a[DY];
            for (int64_t b = 0; b < s.batch; b++)
                for (int64_t m = 0; m < s.rows; m++)
                    for (int64_t j = 0; j < s.width; j++) {
                        const double g = get(&dx, b, m, j), w = get(&want.a[DX], b, m, j);
                        check_same(&g, &w, 1);
                    }
        }
        release_guarded();
    }
}

#if SATTN_REAL == 32
/* Stores round to nearest even: y and dx are those of float, rounded; reads are exact. */
EACH_ROW(softmax, storage)
{
    enum { N = 777 };
    static const double scales[] = {1, 1e-3, 1e-6, 3e4};
    static uint16_t half[N], bits[65536];
    static float whole[N], x[N], dy[N], zeros[N], got[65536];
    rng g = seed_of(9);
    sattn_isa_set(*isa);
    for (int32_t storage = SATTN_STORAGE_BF16; storage <= SATTN_STORAGE_F16; storage++)
        for (int round = 0; round < 8; round++) {
            at("storage %d round %d", (int)storage, round);
            sattn_softmax p;
            sattn_softmax_init(&p, sizeof p, 1, 1, N);
            random_fill(&g, x, N, -20 * (round + 1), 20);
            random_fill(&g, dy, N, -1, 1);
            p.x = x, p.y = whole, p.form = round % 2;
            check(sattn_softmax_forward_f32(&p) == SATTN_OK);
            p.y = half, p.y_storage = storage;
            check(sattn_softmax_forward_f32(&p) == SATTN_OK);
            for (int j = 0; j < N; j++)
                check(of_storage(storage, half[j]) == rounded_to(storage, whole[j]));
            /* gradients of any size, ties among them */
            p.y = NULL, p.y_storage = SATTN_STORAGE_OWN, p.form = SATTN_FORM_LOG_SOFTMAX;
            float stats[] = {0, 1000}; /* weights 0: dx = scale dy */
            p.dy = dy, p.stats = stats, p.scale = scales[round % 4];
            for (int j = 0; j < N && round % 2; j++) /* half way between two numbers of 16 bits */
                dy[j] = (float)((rounded_to(storage, dy[j]) * (1 + (j % 2 ? 0x1p-8 : 0x1p-11))));
            p.dx = whole, p.x = zeros;
            check(sattn_softmax_backward_f32(&p) == SATTN_OK);
            p.dx = half, p.x = memset(bits, 0, N * sizeof *bits), p.x_storage = storage;
            check(sattn_softmax_backward_f32(&p) == SATTN_OK);
            for (int j = 0; j < N; j++)
                check(of_storage(storage, half[j]) == rounded_to(storage, whole[j]));
        }
    /* every 16-bit number, by log-softmax of rows of one whose weight is 0 */
    for (int32_t storage = SATTN_STORAGE_BF16; storage <= SATTN_STORAGE_F16; storage++) {
        sattn_softmax p;
        float stats[] = {0, 1000};
        for (int i = 0; i < 65536; i++)
            bits[i] = (uint16_t)i;
        sattn_softmax_init(&p, sizeof p, 65536, 1, 1);
        p.form = SATTN_FORM_LOG_SOFTMAX, p.x = x, p.x_batch = 0, p.stats = stats, p.stats_batch = 0;
        p.dy = bits, p.y_storage = storage, p.dx = got;
        check(sattn_softmax_backward_f32(&p) == SATTN_OK);
        for (int i = 0; i < 65536; i++) {
            const float want = (float)of_storage(storage, (uint16_t)i);
            at("storage %d bits %x", (int)storage, i);
            check_near("dx", i, got[i], want, 0);
        }
    }
}
#endif
