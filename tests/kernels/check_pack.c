/* SPDX-License-Identifier: BSD-2-Clause */
/* pack and unpack move numbers; bits and the untouched neighbourhood are all there is to test. */
#include "rows.h"

enum { WIDEST = 37 };

static void check_round_trip(int32_t isa, rng *r, int64_t rows, int64_t cols)
{
    const placement side = random_below(r, 2) ? ENDS : BEGINS;
    const int64_t ldx = cols + random_below(r, 3),
                  extent = rows && cols ? (rows - 1) * ldx + cols : 0;
    const int32_t accumulate = (int32_t)random_below(r, 2);
    const struct FN(sattn_kernels) *k = kernels_of(isa);
    at("isa %d rows %d cols %d ldx %d accumulate %d side %d", (int)isa, (int)rows, (int)cols,
       (int)ldx, (int)accumulate, (int)side);
    real *x = guarded((size_t)extent * sizeof *x, side, 0);
    real *y = guarded((size_t)extent * sizeof *y, side, 0);
    real *tile = guarded((size_t)cols * SATTN_TILE * sizeof *tile, side, 0);
    for (int64_t q = 0; q < rows; q++) {
        random_fill(r, x + q * ldx, cols, -1, 1);
        random_fill(r, y + q * ldx, accumulate ? cols : 0, -1, 1);
    }
    real want[SATTN_TILE * WIDEST];
    for (int64_t q = 0; q < rows; q++)
        for (int64_t i = 0; i < cols; i++)
            want[q * cols + i] = accumulate ? y[q * ldx + i] + x[q * ldx + i] : x[q * ldx + i];
    k->pack(rows, cols, x, ldx, tile);
    for (int64_t i = 0; i < cols; i++)
        for (int64_t q = 0; q < SATTN_TILE; q++)
            check(tile[i * SATTN_TILE + q] == (q < rows ? x[q * ldx + i] : 0));
    for (int64_t i = 0; i < cols; i++) /* idle lanes may hold anything: unpack must not look */
        for (int64_t q = rows; q < SATTN_TILE; q++)
            tile[i * SATTN_TILE + q] = 7;
    k->unpack(rows, cols, tile, y, ldx, accumulate);
    for (int64_t q = 0; q < rows; q++) {
        check_same(y + q * ldx, want + q * cols, cols);
        check(q == rows - 1 || !cols ||
              is_untouched(y + q * ldx + cols, (size_t)(ldx - cols) * sizeof *y));
    }
    check_guarded();
    release_guarded();
}

EACH_ROW(pack, round_trip)
{
    rng r = seed_of(1);
    for (int64_t rows = 0; rows <= SATTN_TILE; rows++)
        for (int64_t cols = 0; cols <= WIDEST; cols++)
            check_round_trip(*isa, &r, rows, cols);
}

/* A row stride of 0 repeats one row. */
EACH_ROW(pack, repeats)
{
    real x[WIDEST], tile[WIDEST * SATTN_TILE];
    rng r = seed_of(2);
    random_fill(&r, x, WIDEST, -1, 1);
    kernels_of(*isa)->pack(SATTN_TILE, WIDEST, x, 0, tile);
    for (int64_t i = 0; i < WIDEST * SATTN_TILE; i++)
        check(tile[i] == x[i / SATTN_TILE]);
}
