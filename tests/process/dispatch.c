/* SPDX-License-Identifier: BSD-2-Clause */
/* dispatch [ISA]: prints the instruction set that the library chose; fails if it is not ISA or,
 * without an argument, the best of this machine up to the cap in SATTN_ISA. Then computes: a table
 * of exp, and a mixture against the scalar row. Under a processor or operating system that lacks a
 * feature, a wrong choice is an illegal instruction. */
#include "process.h"
#include "sattn/sattn.h"

#include <math.h>
#include <string.h>

static float from_bits(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static uint32_t bits_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

/* exp(x) correctly rounded, and by how many ULP a result may differ */
static const struct {
    uint32_t x, exp, ulps;
} table[] = {
    {0x00000000, 0x3f800000, 0}, /* 0 */
    {0x80000000, 0x3f800000, 0}, /* -0 */
    {0x000116c2, 0x3f800000, 0}, /* 1e-40 */
    {0x3f800000, 0x402df854, 1}, /* 1 */
    {0xc0bacb9c, 0x3b3f238d, 1}, /* -5.83735466 */
    {0x42b170a4, 0x7f7f4648, 1}, /* 88.72 */
    {0x42b17217, 0x7f7fff84, 1}, /* 88.7228317, the last that is finite */
    {0x42b17218, 0x7f800000, 0}, /* 88.7228394 */
    {0x7f800000, 0x7f800000, 0}, /* inf */
    {0xc2aeae14, 0x007f8f18, 1}, /* -87.34, the first results that are subnormal */
    {0xc2b00000, 0x0041edc4, 1}, /* -88 */
    {0xc2c80000, 0x0000001b, 1}, /* -100 */
    {0xc2cfcccd, 0x00000001, 1}, /* -103.9 */
    {0xc2cff0a4, 0x00000001, 1}, /* -103.97 */
    {0xc2cff1b4, 0x00000001, 0}, /* -103.972076, the last that is not 0 */
    {0xc2cff1b5, 0x00000000, 0}, /* -103.972084 */
    {0xc2cff5c3, 0x00000000, 0}, /* -103.98 */
    {0xf149f2ca, 0x00000000, 0}, /* -1e30 */
    {0xff7fffff, 0x00000000, 0}, /* -FLT_MAX */
    {0xff800000, 0x00000000, 0}, /* -inf */
};
enum { CASES = sizeof table / sizeof table[0], N = 67 };

/* Each case at each place among neighbours of 1/2, which must not notice. */
static void exp_table(void)
{
    float x[N], y[N], half = 0.5f, neighbour;
    EXPECT(sattn_exp_f32(1, &half, 1, &neighbour, 1, 1) == SATTN_OK, "exp");
    EXPECT(abs((int)(bits_of(neighbour) - 0x3fd3094c)) <= 1, "exp(1/2) = %a", (double)neighbour);
    for (int i = 0; i < CASES * N; i++) {
        const int c = i / N, place = i % N;
        for (int j = 0; j < N; j++)
            x[j] = j == place ? from_bits(table[c].x) : half;
        EXPECT(sattn_exp_f32(N, x, 1, y, 1, 1) == SATTN_OK, "exp");
        EXPECT(bits_of(y[place]) - table[c].exp + table[c].ulps <= 2 * table[c].ulps,
               "exp(%a) = %a at %d", (double)x[place], (double)y[place], place);
        for (int j = 0; j < N; j++)
            EXPECT(j == place || bits_of(y[j]) == bits_of(neighbour), "case %d at %d, %d", c, place,
                   j);
        x[place] = NAN;
        EXPECT(sattn_exp_f32(N, x, 1, y, 1, 1) == SATTN_OK && isnan(y[place]), "exp(NaN)");
    }
}

/* Every output of forward and backward of one mixture of full covariances, end to end */
enum { B = 2, M = 50, C = 5, D = 7, TILT = B * M * D, CC = B * C * D * D };
typedef struct {
    float out[TILT], stats[B * M * 2], cgf[B * M], weight[B * M * C];
    float dtilt[TILT], dlog_weight[B * C], dmean[B * C * D], dcovariance[CC];
} outputs;

static void mixture(int32_t isa, outputs *o)
{
    static float tilt[TILT], log_weight[B * C], mean[B * C * D], covariance[CC], dout[TILT];
    sattn_mixture p;
    for (int i = 0; i < TILT; i++) {
        tilt[i] = (float)(i * 37 % 101) / 50 - 1;
        dout[i] = (float)(i * 29 % 97) / 48 - 1;
    }
    for (int i = 0; i < B * C * D; i++)
        mean[i] = (float)(i * 31 % 89) / 44 - 1;
    for (int i = 0; i < CC; i++)
        covariance[i] = i / D % D == i % D ? 1 : 0.125f;
    EXPECT(sattn_mixture_init(&p, sizeof p, B, M, C, D, 0, SATTN_COVARIANCE_FULL) == 0, "init");
    p.tilt = tilt, p.log_weight = log_weight, p.mean = mean, p.covariance = covariance;
    p.out = o->out, p.stats = o->stats, p.cgf = o->cgf, p.weight = o->weight, p.dout = dout;
    p.dtilt = o->dtilt, p.dlog_weight = o->dlog_weight, p.dmean = o->dmean;
    p.dcovariance = o->dcovariance;
    EXPECT(sattn_isa_set(isa) == SATTN_OK && sattn_isa() == isa, "%d, not %d", sattn_isa(), isa);
    EXPECT(sattn_mixture_forward_f32(&p) == SATTN_OK, "forward");
    EXPECT(sattn_mixture_backward_f32(&p) == SATTN_OK, "backward");
}

static const char *best_up_to(const char *cap)
{
    int32_t best = SATTN_ISA_SCALAR, most = SATTN_ISA_COUNT;
    for (int32_t isa = 0; cap && isa < SATTN_ISA_COUNT; isa++)
        if (strcmp(cap, sattn_isa_name(isa)) == 0)
            most = isa;
    for (int32_t isa = 0; isa < SATTN_ISA_COUNT && isa <= most; isa++)
        if (sattn_isa_available(isa))
            best = isa;
    return sattn_isa_name(best);
}

int main(int count, char **arguments)
{
    static outputs chosen, scalar;
    const int32_t isa = sattn_isa();
    printf("%s\n", sattn_isa_name(isa));
    const char *expected = count > 1 ? arguments[1] : best_up_to(getenv("SATTN_ISA"));
    EXPECT(strcmp(sattn_isa_name(isa), expected) == 0, "not %s", expected);
    exp_table();
    mixture(isa, &chosen);
    mixture(SATTN_ISA_SCALAR, &scalar);
    EXPECT(memcmp(&chosen, &scalar, sizeof chosen) == 0, "differs from the scalar row");
    return 0;
}
