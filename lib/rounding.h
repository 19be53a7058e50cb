/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SATTN_ROUNDING_H
#define SATTN_ROUNDING_H

/* Kernels are written for rounding to nearest: in another mode exp would reduce its argument to
 * twice the range of its polynomial. A task sets the mode if its thread has another one and gives
 * that back, so that results are the same bits in every mode. Exception flags stay. */

#include <fenv.h>

static inline int sattn_round_to_nearest(void)
{
    const int mode = fegetround();
    if (mode != FE_TONEAREST)
        fesetround(FE_TONEAREST);
    return mode;
}

static inline void sattn_round_as_before(int mode)
{
    if (mode != FE_TONEAREST)
        fesetround(mode);
}

#endif
