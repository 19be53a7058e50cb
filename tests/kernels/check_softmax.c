/* SPDX-License-Identifier: BSD-2-Clause */
/* softmax of every row: closed forms, error bound, equal bits, NaN, memory. */
#include "rows.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WIDEST = 1100 };

static const int64_t lengths[] = {1,   2,   3,   4,   5,   7,   8,   9,    15,   16,
                                  17,  31,  32,  33,  48,  63,  64,  65,   95,   96,
                                  100, 127, 128, 129, 130, 191, 192, 200,  255,  256,
                                  257, 333, 511, 512, 513, 576, 640, 1000, 1024, WIDEST};
enum { LENGTHS = sizeof lengths / sizeof *lengths };

/* y against long double. The bound is derived in simd/softmax.c. Returns the largest share of it.
 */
static double check_row(int64_t n, const real *x, const real *y)
{
    double most = 0;
    long double top = -INFINITY, sum = 0, spread = 0;
    for (int64_t j = 0; j < n; j++)
        top = x[j] > top ? x[j] : top;
    for (int64_t j = 0; j < n; j++)
        sum += expl(x[j] - top);
    for (int64_t j = 0; j < n; j++)
        spread += isinf(x[j]) ? 0 : expl(x[j] - top) / sum * (top - x[j]);
    for (int64_t j = 0; j < n; j++) {
        const long double want = expl(x[j] - top) / sum;
        const long double factor = isinf(x[j]) ? 0 : (top - x[j]) + spread + 19;
        /* and two roundings to a whole number of the least subnormal */
        const double bound =
            (double)(want * factor) * EPS + 2 * (sizeof(real) == 4 ? 0x1p-149 : 0x1p-1074);
        check_near("y", j, y[j], (double)want, bound);
        most = fmax(most, (double)fabsl(y[j] - want) / bound);
    }
    return most;
}

EACH_ROW(softmax, closed_forms)
{
    const struct FN(sattn_kernels) *k = kernels_of(*isa);
    const real inf = (real)INFINITY,
               big = sizeof(real) == 4 ? (real)3.40282347e38 : (real)1.7976931348623157e308;
    const real rows[][4] = {{-big, -big, -big, -big},
                            {0, -big, -inf, -inf},
                            {big, -big, -inf, -big},
                            {-inf, 0, -inf, -inf},
                            {-inf, -inf, -inf, -inf}};
    const real want[][4] = {{(real)0.25, (real)0.25, (real)0.25, (real)0.25},
                            {1, 0, 0, 0},
                            {1, 0, 0, 0},
                            {0, 1, 0, 0},
                            {0, 0, 0, 0}};
    real y[5][4];
    at("isa %d", (int)*isa);
    k->softmax(5, 4, rows[0], 4, y[0], 4);
    check_same(y[0], want[0], 20);
    const real far[] = {-100000, -100001, -100003};
    const double weights[] = {0.7053845127, 0.2594964603, 0.0351190270};
    k->softmax(1, 3, far, 3, y[0], 3);
    for (int j = 0; j < 3; j++)
        check_near("y", j, y[0][j], weights[j], 1e-6 * weights[j]);
}

EACH_ROW(softmax, error)
{
    static real x[WIDEST], y[WIDEST];
    rng g = seed_of(1);
    double most = 0, off = 0;
    for (int l = 0; l < LENGTHS; l++)
        for (int round = 0; round < 12; round++) {
            const int64_t n = lengths[l];
            const double spread = (double[]){0.01, 1, 5, 30, 100, 1000}[round % 6];
            random_fill(&g, x, n, -spread, spread);
            for (int64_t j = 0; j < n && round >= 6; j++)
                x[j] = random_below(&g, 3) ? x[j] : -(real)INFINITY;
            x[random_below(&g, n)] = (real)spread;
            at("isa %d n %d spread %g round %d", (int)*isa, (int)n, spread, round);
            kernels_of(*isa)->softmax(1, n, x, n, y, n);
            most = fmax(most, check_row(n, x, y));
            long double sum = -1;
            for (int64_t j = 0; j < n; j++)
                sum += y[j];
            check_near("sum", 0, (double)sum, 0, 4 * EPS);
            off = fmax(off, fabs((double)sum) / EPS);
        }
    printf("softmax %s: %.2f of the bound, sum off by %.2f u\n", sattn_isa_name(*isa), most, off);
    check(most > 0.05); /* or else nothing was measured */
}

/* Bits of the scalar row, one row at a time; many rows, padded rows, in place, one row for all. */
EACH_ROW(softmax, same_bits)
{
    enum { ROWS = 37 };
    static real x[ROWS * (WIDEST + 3)], y[ROWS * (WIDEST + 5)], want[ROWS * WIDEST];
    rng g = seed_of(2);
    const struct FN(sattn_kernels) *k = kernels_of(*isa), *first = kernels_of(SATTN_ISA_SCALAR);
    for (int l = 0; l < LENGTHS; l++) {
        const int64_t n = lengths[l], rows = 1 + random_below(&g, n < 200 ? ROWS : 3), ldx = n + 3,
                      ldy = n + 5;
        random_fill(&g, x, rows * ldx, -60, 60);
        for (int64_t r = 0; r < rows; r++) /* rows with masks, and empty ones */
            for (int64_t j = 0; j < n && r % 4; j++)
                x[r * ldx + j] =
                    random_below(&g, r % 4) && r % 8 != 5 ? x[r * ldx + j] : -(real)INFINITY;
        for (int64_t r = 0; r < rows; r++)
            first->softmax(1, n, x + r * ldx, n, want + r * n, n);
        memset(y, 0xff, sizeof y);
        k->softmax(rows, n, x, ldx, y, ldy);
        for (int64_t r = 0; r < rows; r++) {
            at("isa %d n %d row %d", (int)*isa, (int)n, (int)r);
            check_same(y + r * ldy, want + r * n, n);
            check(is_untouched(y + r * ldy + n, 5 * sizeof *y));
        }
        k->softmax(rows, n, x, 0, y, ldy);
        for (int64_t r = 0; r < rows; r++)
            check_same(y + r * ldy, want, n);
        k->softmax(rows, n, x, ldx, x, ldx);
        for (int64_t r = 0; r < rows; r++)
            check_same(x + r * ldx, want + r * n, n);
    }
}

/* A NaN or +inf at any place: that row is NaN, its neighbours are 1/n. */
EACH_ROW(softmax, nan)
{
    static real x[3 * 130], y[3 * 130];
    const struct FN(sattn_kernels) *k = kernels_of(*isa);
    for (int64_t n = 1; n <= 130; n++)
        for (int64_t i = 0; i < n; i++)
            for (int infinite = 0; infinite < 2; infinite++) {
                memset(x, 0, sizeof x);
                x[n + i] = infinite ? (real)INFINITY : (real)NAN;
                at("isa %d n %d at %d infinite %d", (int)*isa, (int)n, (int)i, infinite);
                k->softmax(3, n, x, n, y, n);
                for (int64_t j = 0; j < 3 * n; j++)
                    check(j / n == 1 ? isnan(y[j]) : ulps(y[j], 1 / (double)n, sizeof *y) <= 1);
            }
}

EACH_ROW(softmax, memory)
{
    rng g = seed_of(3);
    static real want[3 * 131];
    for (int64_t n = 1; n <= 131; n++)
        for (placement side = ROOMY; side <= BEGINS; side++) {
            at("isa %d n %d side %d", (int)*isa, (int)n, (int)side);
            real *x = guarded((size_t)(3 * n) * sizeof *x, side, (size_t)(n % 3) * sizeof *x);
            real *y = guarded((size_t)(3 * n) * sizeof *y, side, 0);
            random_fill(&g, x, 3 * n, -1, 1);
            for (int64_t r = 0; r < 3; r++)
                kernels_of(SATTN_ISA_SCALAR)->softmax(1, n, x + r * n, n, want + r * n, n);
            kernels_of(*isa)->softmax(3, n, x, n, y, n);
            check_same(y, want, 3 * n);
            check_guarded();
            release_guarded();
        }
}

/* Sums that saturate: 2^25 equal values, and one value before 2^24 that are 2^-25 of it. In place
 * too. */
EACH_ROW(softmax, long_rows)
{
    const int64_t n = 1 << 25, m = (1 << 24) + 1;
    real *x = malloc((size_t)n * sizeof *x);
    cr_assert(x, "no memory");
    for (int64_t j = 0; j < n; j++)
        x[j] = (real)0.25;
    at("isa %d equal", (int)*isa);
    kernels_of(*isa)->softmax(1, n, x, n, x, n);
    for (int64_t j = 0; j < n; j++)
        check(x[j] == (real)0x1p-25);
    x[0] = 0;
    for (int64_t j = 1; j < m; j++)
        x[j] = (real)-17.32868003845215;
    at("isa %d one and many", (int)*isa);
    kernels_of(*isa)->softmax(1, m, x, m, x, m);
    double sum = 0;
    for (int64_t j = 0; j < m; j++) {
        const double want = j == 0 ? 0.66666678321188 : 1.98682079784940e-08;
        if (fabs(x[j] - want) > 1e-6 * want)
            check_near("y", j, x[j], want, 1e-6 * want);
        sum += x[j];
    }
    check_near("sum", 0, sum, 1, 4 * 0x1p-24);
    free(x);
}
