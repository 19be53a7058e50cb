/* SPDX-License-Identifier: BSD-2-Clause */
/* v_log of the scalar row, whose bits the others must have (the tests of mixture_finish compare
 * them). */
#define SATTN_ROW_SCALAR
#include "../../simd/elementary.h"
#include "../harness.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define LIMIT 0.95L /* ULP; the maximum found is 0.899 */

static real witness;

static void check_log(real x, long double *most)
{
    const long double want = logl((long double)x);
    const real got = v_log(x);
    int exponent;
    frexpl(want, &exponent);
    const long double error =
        fabsl((long double)got - want) / ldexpl(1, exponent - (sizeof x == 4 ? 24 : 53));
    if (error > *most) {
        *most = error;
        witness = x;
    }
    const int good = want == 0 ? got == 0 : error <= LIMIT;
    if (!good)
        at("log(%a) = %a", (double)x, (double)got);
    check(good);
}

Test(log, error)
{
    rng g = seed_of(1);
    long double most = 0;
    const char *rounds =
        getenv("SATTN_ROUNDS"); /* of 65536; the maxima of docs/accuracy.md took 1000 */
    for (int i = 0; i < (rounds ? atoi(rounds) : 16) << 16; i++)
        check_log((real)(i % 2 ? random_in(&g, 1, 3) : exp(random_in(&g, 0, 80))), &most);
    real x = 1;
    for (int i = 0; i < 100000;
         i++, x = (real)nextafter((double)x, 2) + (real)(EPS * 2)) /* close to 1 */
        check_log(x, &most);
    printf("log: %.4Lf at %a\n", most, (double)witness);
    check(most > 0.5L);
}

Test(log, specials)
{
    check(v_log(1) == 0 && !signbit(v_log(1)));
    check(isnan(v_log((real)NAN)));
    check(v_log((real)INFINITY) == (real)INFINITY);
}
