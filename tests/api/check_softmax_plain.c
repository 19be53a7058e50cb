/* SPDX-License-Identifier: BSD-2-Clause */
/* Rows without options have kernels of their own: the bits are those of the descriptor's general
 * way, whatever function, layout or place. */
#include "lines.h"

#include <math.h>
#include <stdlib.h>

EACH_ROW(softmax, plain_functions)
{
    static real x[20 * 700], y[20 * 700], want[20 * 700], lse[20], want_lse[20];
    rng g = seed_of(11);
    sattn_isa_set(*isa);
    for (int64_t n = 1; n < 700; n += 1 + n / 3) {
        sattn_softmax p;
        random_fill(&g, x, 20 * n, -9, 9);
        at("n %d", (int)n);
        check(sattn_softmax_init(&p, sizeof p, 1, 20, n) == SATTN_OK);
        p.x = x, p.y = want, p.lse = want_lse;
        check(FN(sattn_softmax_forward)(&p) == SATTN_OK);
        check(FN(sattn_softmax)(20, n, x, n, y, n, 0) == SATTN_OK);
        check_same(y, want, 20 * n);
        check(FN(sattn_log_sum_exp)(20, n, x, n, lse, 0) == SATTN_OK);
        check_same(lse, want_lse, 20);
        p.form = SATTN_FORM_LOG_SOFTMAX;
        check(FN(sattn_softmax_forward)(&p) == SATTN_OK);
        check(FN(sattn_log_softmax)(20, n, x, n, y, n, 0) == SATTN_OK);
        check_same(y, want, 20 * n);
    }
}

/* Rows side by side, which have a kernel of their own: the bits of rows one after the other */
EACH_ROW(softmax, side_by_side)
{
    static const int64_t widths[] = {1, 2, 3, 15, 16, 17, 31, 64, 65, 100, 513, 1100};
    static const int64_t rows[] = {2, 3, 8, 16, 17, 64, 70, 131};
    rng g = seed_of(12);
    sattn_isa_set(*isa);
    for (int i = 0; i < 12; i++)
        for (int k = 0; k < 8; k++) {
            const int64_t n = widths[i], m = rows[k], gap = (i + k) % 3;
            const size_t bytes = (size_t)(m * n + (n - 1) * gap) * sizeof(real);
            real *x = guarded(bytes, (placement)(k % 3), 0), *y = guarded(bytes, ENDS, 0);
            real *packed = guarded((size_t)(m * n) * sizeof(real), ROOMY, 0);
            at("isa %d n %d rows %d gap %d", (int)*isa, (int)n, (int)m, (int)gap);
            for (int64_t r = 0; r < m; r++)
                for (int64_t j = 0; j < n; j++) {
                    real v = (real)random_in(&g, -90, 9);
                    v = random_below(&g, 9) && r != 1 ? v : -(real)INFINITY;
                    v = r == 2 && j == n / 2 ? (real)NAN : v;
                    x[j * (m + gap) + r] = packed[r * n + j] = v;
                }
            check(FN(sattn_softmax)(m, n, packed, n, packed, n, 1) == SATTN_OK);
            sattn_softmax p;
            check(sattn_softmax_init(&p, sizeof p, 1, m, n) == SATTN_OK);
            p.x = x, p.y = y, p.x_row = p.y_row = 1, p.x_col = p.y_col = m + gap;
            p.threads = 1 + k % 3;
            for (int in_place = 0; in_place < 2; in_place++, p.y = x) {
                check(FN(sattn_softmax_forward)(&p) == SATTN_OK);
                for (int64_t r = 0; r < m; r++)
                    for (int64_t j = 0; j < n; j++)
                        check_same((real *)p.y + j * (m + gap) + r, packed + r * n + j, 1);
            }
            check_guarded();
            for (int64_t j = 1; j < n; j++)
                check(is_untouched(y + j * (m + gap) - gap, (size_t)gap * sizeof(real)));
            release_guarded();
        }
}

/* dx of adjacent rows against dx of elements two apart, which the general way computes; with
 * weights of 0 where dy may be NaN, and a row whose dy is NaN where it counts */
EACH_ROW(softmax, gradient)
{
    enum { ROWS = 5 };
    rng g = seed_of(13);
    sattn_isa_set(*isa);
    for (int64_t n = 1; n < 1200; n += n < 140 ? 1 : 131) {
        const size_t bytes = (size_t)(ROWS * n) * sizeof(real);
        const placement side = (placement)(n % 3);
        real *y = guarded(bytes, side, 0), *dy = guarded(bytes, side, 0);
        real *dx = guarded(bytes, side, 0), *spread = guarded(6 * bytes, ROOMY, 0), dlse[ROWS];
        at("isa %d n %d", (int)*isa, (int)n);
        random_fill(&g, y, ROWS * n, -9, 9);
        random_fill(&g, dy, ROWS * n, -1, 1);
        random_fill(&g, dlse, ROWS, -1, 1);
        for (int64_t j = 0; j < n; j += 3)
            y[n + j] = -(real)INFINITY;
        check(FN(sattn_softmax)(ROWS, n, y, n, y, n, 1) == SATTN_OK);
        for (int64_t j = 0; j < n; j++) {
            if (y[n + j] == 0 && n % 2)
                dy[n + j] = j % 2 ? (real)NAN : (real)INFINITY;
            if (j == n / 2)
                dy[3 * n + j] = (real)NAN;
        }
        for (int64_t i = 0; i < ROWS * n; i++)
            spread[2 * i] = y[i], spread[2 * i + 1] = dy[i];
        sattn_softmax p;
        check(sattn_softmax_init(&p, sizeof p, 1, ROWS, n) == SATTN_OK);
        p.y = y, p.dy = dy, p.dx = dx, p.dlse = n % 4 ? dlse : NULL;
        check(FN(sattn_softmax_backward)(&p) == SATTN_OK);
        p.y = spread, p.dy = spread + 1, p.dx = spread + 2 * ROWS * n;
        p.y_col = p.dy_col = p.dx_col = 2;
        p.y_row = p.dy_row = p.dx_row = 2 * n;
        check(FN(sattn_softmax_backward)(&p) == SATTN_OK);
        for (int64_t i = 0; i < ROWS * n; i++) {
            check_same(dx + i, spread + 2 * ROWS * n + 2 * i, 1);
            check((i / n == 3) == (isnan(dx[i]) != 0) && (y[i] != 0 || dx[i] == 0));
        }
        check_guarded();
        p.y = y, p.dy = dy, p.dx = n % 2 ? y : dy; /* in place */
        p.y_col = p.dy_col = p.dx_col = 1;
        p.y_row = p.dy_row = p.dx_row = n;
        check(FN(sattn_softmax_backward)(&p) == SATTN_OK);
        check_same((real *)p.dx, dx, ROWS * n);
        release_guarded();
    }
}

/* A row whose largest element is a zero has +0 for it, whichever zero came first. */
EACH_ROW(softmax, signed_zeros)
{
    static real x[200], y[200], stats[2], lse;
    rng g = seed_of(13);
    sattn_isa_set(*isa);
    for (int64_t n = 1; n <= 200; n++) {
        sattn_softmax p;
        for (int64_t j = 0; j < n; j++)
            x[j] = random_below(&g, 2) ? (real)0 : (real)-0.0;
        at("n %d", (int)n);
        check(sattn_softmax_init(&p, sizeof p, 1, 1, n) == SATTN_OK);
        p.x = x, p.y = y, p.stats = stats, p.lse = &lse;
        check(FN(sattn_softmax_forward)(&p) == SATTN_OK);
        check(stats[0] == 0 && !signbit(stats[0]));
        check(n > 1 || !signbit(lse));
    }
}
