/* SPDX-License-Identifier: BSD-2-Clause */
/* Left factors of the gradient of a low-rank covariance's F (arguments.h). With them on the left
 * side the outer products run over rank rows, not over D, and their right side is the queries' rows
 * as the caller has them. */
#include "mixture_tile.h"

void K(mixture_factors)(const components *c, int64_t lanes, const R *tilt, const R *dout,
                        const R *w, const R *b, int64_t plane_row, R *by_tilt, R *by_dout)
{
    turn(c, tilt, lanes, by_tilt);
    if (dout)
        turn(c, dout, lanes, by_dout);
    for (int64_t k = 0; k < c->count * c->rank; k++)
        for (int64_t q = 0; q < vector_lanes(lanes); q += VL) {
            const int64_t at = k / c->rank * plane_row + q;
            R *x = by_tilt + k * SATTN_TILE + q, *y = by_dout + k * SATTN_TILE + q;
            const V t = v_load(x), bt = v_mul(v_load(b + at), t), wq = v_load(w + at);
            v_store(x, dout ? v_fma(wq, v_load(y), bt) : bt);
            if (dout)
                v_store(y, v_mul(wq, t));
        }
}
