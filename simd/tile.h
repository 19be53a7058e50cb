/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SATTN_TILE_H
#define SATTN_TILE_H

/* What every tile has in common, whatever its rows are: lanes are queries. */

#include "elementary.h"

/* Lanes that are computed: whole vectors. */
static inline int64_t vector_lanes(int64_t lanes)
{
    return (lanes + VL - 1) / VL * VL;
}

/* exp's argument must not be -inf - (-inf): a reference of -inf is replaced by 0. */
static inline V reference(V largest)
{
    return v_select(v_lt(v_set(-R_INF), largest), largest, v_set(0));
}

#endif
