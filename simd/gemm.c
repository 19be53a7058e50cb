/* SPDX-License-Identifier: BSD-2-Clause */
/* The register-tiled matrix kernel: C = start + A B (arguments.h).
 *
 * A tile of C of `rows` x `vectors` stays in registers while p runs over the inner dimension: one
 * vector load of B feeds `rows` FMAs, one broadcast of A feeds `vectors`. 8 x 3 uses 28 of 32
 * registers, 4 x 3 all 16; with at most 1 load for 2 FMAs neither A nor B needs packing. Each
 * element of C is one chain of FMAs in the order of p. */
#include "gemm_narrow.h"

enum { ROWS = V_REGISTERS == 32 ? 8 : 4, VECTORS = 3 };

static inline V load(const R *p, const int whole, int64_t tail)
{
    return whole ? v_load(p) : v_load_n(p, tail);
}

/* rows and vectors are constants at every call, so that acc lives in registers. `tail` lanes of the
 * last vector exist (VL if it is whole). */
static inline __attribute__((always_inline)) void tile(const gemm *g, int64_t i, int64_t j,
                                                       const int rows, const int vectors,
                                                       const int whole, int64_t tail)
{
    V acc[ROWS][VECTORS];
    const R *a = g->a + i * g->a_row, *b = g->b + j, *start = g->start;
    if (!start) {
        for (int r = 0; r < rows; r++)
            for (int v = 0; v < vectors; v++)
                acc[r][v] = v_set(0);
    } else if (g->s_col == 0) {
        start += i * g->s_row;
        for (int r = 0; r < rows; r++)
            for (int v = 0; v < vectors; v++)
                acc[r][v] = v_set(start[r * g->s_row]);
    } else {
        start += i * g->s_row + j;
        for (int r = 0; r < rows; r++)
            for (int v = 0; v < vectors; v++)
                acc[r][v] = load(start + r * g->s_row + v * VL, whole || v < vectors - 1, tail);
    }
    for (int64_t p = 0; p < g->k; p++, a += g->a_col, b += g->b_row) {
        V bv[VECTORS];
        for (int v = 0; v < vectors; v++)
            bv[v] = load(b + v * VL, whole || v < vectors - 1, tail);
        for (int r = 0; r < rows; r++) {
            const V ar = v_set(a[r * g->a_row]);
            for (int v = 0; v < vectors; v++)
                acc[r][v] = v_fma(ar, bv[v], acc[r][v]);
        }
    }
    for (int r = 0; r < rows; r++) {
        R *c = g->c + (i + r) * g->c_row + j;
        for (int v = 0; v < vectors; v++) {
            if (whole || v < vectors - 1)
                v_store(c + v * VL, acc[r][v]);
            else
                v_store_n(c + v * VL, acc[r][v], tail);
        }
    }
}

static inline __attribute__((always_inline)) void strip(const gemm *g, int64_t j, const int vectors,
                                                        const int whole, int64_t tail)
{
    int64_t i = 0;
    for (; i + ROWS <= g->m; i += ROWS)
        tile(g, i, j, ROWS, vectors, whole, tail);
    if (ROWS > 4 && i + 4 <= g->m) {
        tile(g, i, j, 4, vectors, whole, tail);
        i += 4;
    }
    if (i + 2 <= g->m) {
        tile(g, i, j, 2, vectors, whole, tail);
        i += 2;
    }
    if (i < g->m)
        tile(g, i, j, 1, vectors, whole, tail);
}

static void strip_of(const gemm *g, int64_t j, int64_t vectors, int64_t tail)
{
    switch (vectors * 2 + (tail == VL)) {
    case 7:
        strip(g, j, 3, 1, VL);
        break;
    case 6:
        strip(g, j, 3, 0, tail);
        break;
    case 5:
        strip(g, j, 2, 1, VL);
        break;
    case 4:
        strip(g, j, 2, 0, tail);
        break;
    case 3:
        strip(g, j, 1, 1, VL);
        break;
    default:
        strip(g, j, 1, 0, tail);
    }
}

void K(gemm)(const gemm *g)
{
    if (is_narrow(g)) {
        narrow(g);
        return;
    }
    for (int64_t j = 0; j < g->n;) {
        const int64_t left = (g->n - j + VL - 1) / VL; /* vectors, the last perhaps ragged */
        const int64_t take = left == 4        ? 2
                             : left < VECTORS ? left
                                              : VECTORS; /* 4 = 2 + 2, not 3 + 1 */
        const int64_t columns = g->n - j < take * VL ? g->n - j : take * VL;
        strip_of(g, j, take, columns - (take - 1) * VL);
        j += columns;
    }
}
