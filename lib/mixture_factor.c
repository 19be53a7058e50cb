/* SPDX-License-Identifier: BSD-2-Clause */
/* The gradient of the factors of low-rank covariances, over a block of queries:
 *   dF' += sum_q (b t + w p) u' + w t dout',   t = F'u, p = F'dout   (joint: b t u')
 * which costs what the forward pass does, R rows of D a query and component. */
#include "../simd/kernels.h"
#include "mixture_call.h"

#include <stddef.h>

typedef FN(sattn_block) block;
typedef struct FN(sattn_gemm) gemm;

/* sum of n components of `run` from plane row c on, over a tile of queries */
static void sum_tile(const block *k, const struct FN(sattn_components) * run, int64_t c, int64_t q,
                     real *scratch, real *sum)
{
    const sattn_mixture *p = k->k->p;
    const int64_t d = p->width, rows = run->count * run->rank, row = k->first + q,
                  at = c * k->k->plan->block + q;
    const int64_t lanes = k->count - q < SATTN_TILE ? k->count - q : SATTN_TILE;
    const real *u = sattn_from(p->tilt, k->b * p->tilt_batch + row * p->tilt_row);
    const real *y = p->value_width ? NULL : p->dout;
    real *tilt = sattn_take(&scratch, d * SATTN_TILE), *dout = sattn_take(&scratch, d * SATTN_TILE);
    real *by_tilt = sattn_take(&scratch, rows * SATTN_TILE), *by_dout = scratch;
    kernels()->pack(lanes, d, u, p->tilt_row, tilt);
    if (y) {
        y += k->b * p->dout_batch + row * p->dout_row;
        kernels()->pack(lanes, d, y, p->dout_row, dout);
    }
    kernels()->mixture_factors(run, lanes, tilt, y ? dout : NULL, k->w + at, k->d + at,
                               k->k->plan->block, by_tilt, by_dout);
    kernels()->gemm(&(gemm){rows, d, lanes, by_tilt, SATTN_TILE, 1, u, p->tilt_row, sum, d,
                            q ? sum : NULL, d, 1});
    if (y)
        kernels()->gemm(
            &(gemm){rows, d, lanes, by_dout, SATTN_TILE, 1, y, p->dout_row, sum, d, sum, d, 1});
}

void FN(sattn_factor_sum)(const block *k, int64_t group, real *scratch)
{
    const sattn_mixture *p = k->k->p;
    const int64_t size = sattn_factor_group(k->k->plan), from = group * size;
    const int64_t end = from + size < p->components ? from + size : p->components;
    real *sum = sattn_take(&scratch, size * k->k->plan->rank * p->width);
    struct FN(sattn_components) run;
    int64_t first, count;
    for (int64_t c = from; (count = FN(sattn_call_run)(k->k, k->b, c, end, &first, &run)) > 0;
         c = first + count) {
        for (int64_t q = 0; q < k->count; q += SATTN_TILE)
            sum_tile(k, &run, first, q, scratch, sum);
        kernels()->add(count * run.rank * p->width,
                       sattn_from(p->dcovariance, FN(sattn_call_factor)(k->k, k->b, first)), sum);
    }
}
