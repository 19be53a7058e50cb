/* SPDX-License-Identifier: BSD-2-Clause */
/* A program of someone else's, built against an installed library or a subproject. */
#include <math.h>
#include <sattn/sattn.h>
#include <stdio.h>

int main(void)
{
    const float x[3] = {0, 0, -INFINITY};
    float y[3];
    if (sattn_softmax_f32(1, 3, x, 3, y, 3, 0) != SATTN_OK)
        return 1;
    printf("libsattn %s: %g %g %g\n", sattn_version_string(), (double)y[0], (double)y[1],
           (double)y[2]);
    return !(y[0] == 0.5f && y[1] == 0.5f && y[2] == 0);
}
