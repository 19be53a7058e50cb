/* SPDX-License-Identifier: BSD-2-Clause */
/* Random descriptors of softmax, forward and backward, against the long double oracle. */
#include "lines.h"

#include <stdio.h>

enum { SHAPES = 250 };

EACH_ROW(softmax, oracle)
{
    double most = 0;
    sattn_isa_set(*isa);
    for (uint64_t seed = 0; seed < SHAPES; seed++) {
        const shape s = random_shape(seed);
        if (is_left_out((int64_t)seed))
            continue;
        problem x = make_problem(&s);
        solve(&x);
        most = fmax(most, check_against_oracle(&x));
        release_guarded();
    }
    printf("softmax %s: %.2f of the bound\n", sattn_isa_name(*isa), most);
    check(most > 0.05); /* or else nothing was measured */
}
