/* SPDX-License-Identifier: BSD-2-Clause */
/* add, squares and mixture_outer: a fixed expression per element, so the comparison is exact. */
#include "rows.h"

static real *numbers(rng *r, int64_t n)
{
    real *x = guarded((size_t)n * sizeof *x, random_below(r, 2) ? ENDS : BEGINS, 0);
    random_fill(r, x, n, -1, 1);
    return x;
}

EACH_ROW(outer, add_and_squares)
{
    const struct FN(sattn_kernels) *k = kernels_of(*isa);
    rng r = seed_of(1);
    for (int64_t n = 0; n <= 130; n++) {
        real *u = numbers(&r, n), *y = numbers(&r, n), *half = numbers(&r, n),
             *product = numbers(&r, n);
        real *into = numbers(&r, n), before[130];
        at("isa %d n %d", (int)*isa, (int)n);
        for (int64_t i = 0; i < n; i++)
            before[i] = into[i];
        k->add(n, into, u);
        k->squares(n, u, y, half, product);
        for (int64_t i = 0; i < n; i++)
            check(into[i] == before[i] + u[i] && half[i] == u[i] * u[i] / 2 &&
                  product[i] == u[i] * y[i]);
        k->squares(n, y, NULL, half, NULL);
        for (int64_t i = 0; i < n; i++)
            check(half[i] == y[i] * y[i] / 2);
        check_guarded();
        release_guarded();
    }
}

/* parts: 1 = x, 2 = y, 3 = both */
static void check_outer(int32_t isa, rng *r, int64_t queries, int64_t width, int parts)
{
    const int64_t gap = random_below(r, 3), row = width + gap,
                  extent = queries ? (queries - 1) * row + width : 0;
    const real scale = (real)0.5;
    real *b = numbers(r, queries), *w = numbers(r, queries), *x = numbers(r, extent),
         *y = numbers(r, extent);
    real *z = guarded((size_t)(queries * width) * sizeof *z, ENDS, 0);
    at("isa %d queries %d width %d gap %d parts %d", (int)isa, (int)queries, (int)width, (int)gap,
       parts);
    kernels_of(isa)->mixture_outer(&(struct FN(sattn_outer)){
        queries, width, b, w, scale, parts & 1 ? x : NULL, row, parts & 2 ? y : NULL, row, z});
    for (int64_t q = 0; q < queries; q++)
        for (int64_t i = 0; i < width; i++) {
            const real left = parts & 1 ? b[q] * scale * x[q * row + i] : 0;
            check(z[q * width + i] == (parts & 2 ? fused(w[q], y[q * row + i], left) : left));
        }
    check_guarded();
    release_guarded();
}

EACH_ROW(outer, outer)
{
    rng r = seed_of(2);
    for (int64_t width = 0; width <= 67; width++)
        for (int64_t queries = 0; queries <= 3; queries++)
            for (int parts = 1; parts <= 3; parts++)
                check_outer(*isa, &r, queries, width, parts);
}
