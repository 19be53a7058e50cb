/* SPDX-License-Identifier: BSD-2-Clause */
/* gemm promises bits: each element of C is one chain of FMAs that begins with the start. So the
 * oracle is that chain, and the comparison exact, on every row, for every way a matrix can be cut.
 */
#include "rows.h"

enum { ZEROS, PER_ROW, PER_ELEMENT, ACCUMULATE, STARTS };

typedef struct FN(sattn_gemm) gemm;

/* Element (i, j) of a matrix of given strides */
static real chain(const gemm *g, int64_t i, int64_t j)
{
    real c = g->start ? g->start[i * g->s_row + j * g->s_col] : 0;
    for (int64_t p = 0; p < g->k; p++)
        c = fused(g->a[i * g->a_row + p * g->a_col], g->b[p * g->b_row + j], c);
    return c;
}

/* A rows x cols matrix with `gap` elements between its rows; gaps hold 0xff, hence NaN. */
static real *matrix(rng *g, int64_t rows, int64_t cols, int64_t gap, placement side)
{
    const int64_t row = cols + gap, last = rows > 0 && cols > 0 ? (rows - 1) * row + cols : 0;
    real *x = guarded((size_t)last * sizeof *x, side, 0);
    for (int64_t i = 0; i < rows; i++)
        random_fill(g, x + i * row, cols, -1, 1);
    return x;
}

static void check_product(int32_t isa, rng *r, int64_t m, int64_t n, int64_t k, int start)
{
    const placement side = random_below(r, 2) ? ENDS : BEGINS;
    const int64_t gap = random_below(r, 3), c_row = n + gap;
    const int transposed = (int)random_below(r, 2);
    at("isa %d m %d n %d k %d start %d gap %d transposed %d side %d", (int)isa, (int)m, (int)n,
       (int)k, start, (int)gap, transposed, (int)side);
    real want[17 * 140];
    gemm g = {.m = m, .n = n, .k = k, .b_row = n + gap, .c_row = c_row};
    g.a = transposed ? matrix(r, k, m, gap, side) : matrix(r, m, k, gap, side);
    g.a_row = transposed ? 1 : k + gap;
    g.a_col = transposed ? m + gap : 1;
    g.b = matrix(r, k, n, gap, side);
    g.c = matrix(r, m, n, gap, side);
    g.s_row = c_row;
    g.s_col = start != PER_ROW;
    if (start == ACCUMULATE)
        g.start = g.c;
    else if (start != ZEROS)
        g.start = matrix(r, m, start == PER_ROW ? 1 : n, start == PER_ROW ? c_row - 1 : gap, side);
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++)
            want[i * n + j] = chain(&g, i, j);
    kernels_of(isa)->gemm(&g);
    for (int64_t i = 0; i < m; i++) {
        check_same(g.c + i * c_row, want + i * n, n);
        check(i == m - 1 || n == 0 ||
              is_untouched(g.c + i * c_row + n, (size_t)gap * sizeof(real)));
    }
    check_guarded();
    release_guarded();
}

EACH_ROW(gemm, chain)
{
    static const int64_t inner[] = {0, 1, 2, 3, 9};
    rng r = seed_of(1);
    for (int64_t m = 0; m <= 17; m++)
        for (int64_t n = 0; n <= 68; n++)
            check_product(*isa, &r, m, n, inner[(m + n) % 5], (int)random_below(&r, STARTS));
}

EACH_ROW(gemm, starts)
{
    rng r = seed_of(2);
    for (int start = 0; start < STARTS; start++)
        for (int64_t m = 1; m <= 9; m++)
            for (int64_t n = 95; n <= 140; n += 3)
                for (int64_t k = 0; k <= 40; k += 13)
                    check_product(*isa, &r, m, n, k, start);
}

/* Few columns, squares of A whole and ragged, in both directions */
EACH_ROW(gemm, narrow)
{
    rng r = seed_of(3);
    for (int start = 0; start < STARTS; start++)
        for (int64_t m = 7; m <= 17; m++)
            for (int64_t n = 1; n <= SATTN_NARROW + 1; n++)
                for (int64_t k = 7; k <= 35; k += 1 + random_below(&r, 5))
                    check_product(*isa, &r, m, n, k, start);
}

/* A NaN or infinity in one element of A reaches that row of C alone, in B that column alone. */
EACH_ROW(gemm, nan_stays)
{
    enum { SIDE = 49 };
    static real a[SIDE * SIDE], b[SIDE * SIDE], c[SIDE * SIDE];
    for (int64_t bad = 0; bad < SIDE; bad++) {
        at("isa %d bad %d", (int)*isa, (int)bad);
        for (int64_t i = 0; i < SIDE * SIDE; i++)
            a[i] = b[i] = 1;
        a[bad * SIDE] = b[bad] = NAN;
        kernels_of(*isa)->gemm(&(gemm){SIDE, SIDE, SIDE, a, SIDE, 1, b, SIDE, c, SIDE, NULL, 0, 0});
        for (int64_t i = 0; i < SIDE * SIDE; i++)
            check(i / SIDE == bad || i % SIDE == bad ? isnan(c[i]) : c[i] == SIDE);
    }
}
