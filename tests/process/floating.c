/* SPDX-License-Identifier: BSD-2-Clause */
/* floating LIBRARY: loading and calling leave the floating-point environment of the host alone;
 * finite and masked data raise no exception, also on the library's threads, with traps enabled. */
#define _GNU_SOURCE
#include "process.h"
#include "sattn/sattn.h"

#include <dlfcn.h>
#include <fenv.h>
#include <math.h>
#include <string.h>

enum { TRAPS = FE_INVALID | FE_DIVBYZERO | FE_OVERFLOW };

/* What of the word of `environment` is flags, which calls may raise; the rest is rounding, traps,
 * flush to zero. */
#if defined(__x86_64__)
static const uint64_t flags = 0x3f;
static uint64_t environment(void)
{
    uint32_t word;
    __asm__ volatile("stmxcsr %0" : "=m"(word));
    return word;
}
#elif defined(__aarch64__)
static const uint64_t flags = UINT32_MAX;
static uint64_t environment(void)
{
    uint64_t control, status;
    __asm__ volatile("mrs %0, fpcr" : "=r"(control));
    __asm__ volatile("mrs %0, fpsr" : "=r"(status));
    return control << 32 | status;
}
#else
static const uint64_t flags = UINT32_MAX;
static uint64_t environment(void)
{
    return (uint64_t)fegetround() << 32 | (uint64_t)fetestexcept(FE_ALL_EXCEPT);
}
#endif

static struct {
    int32_t (*exp)(int64_t, const float *, int64_t, float *, int64_t, int32_t);
    int32_t (*softmax)(int64_t, int64_t, const float *, int64_t, float *, int64_t, int32_t);
    int32_t (*init)(sattn_mixture *, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int32_t);
    int32_t (*forward)(const sattn_mixture *), (*backward)(const sattn_mixture *);
    int32_t (*isa_set)(int32_t);
} sattn;

static void load(const char *path)
{
    const struct {
        const char *name;
        void *function;
    } symbols[] = {
        {"sattn_exp_f32", &sattn.exp},
        {"sattn_softmax_f32", &sattn.softmax},
        {"sattn_mixture_init", &sattn.init},
        {"sattn_mixture_forward_f32", &sattn.forward},
        {"sattn_mixture_backward_f32", &sattn.backward},
        {"sattn_isa_set", &sattn.isa_set},
    };
    void *library = dlopen(path, RTLD_NOW);
    EXPECT(library, "%s", dlerror());
    for (size_t i = 0; i < sizeof symbols / sizeof symbols[0]; i++) {
        void *symbol = dlsym(library, symbols[i].name);
        EXPECT(symbol, "%s", dlerror());
        memcpy(symbols[i].function, &symbol, sizeof symbol);
    }
}

/* Forward and backward of four components of width D, one of them absent: its parameters are NaN.
 */
enum { B = 2, M = 67, C = 4, D = 5 };
static void mixture(int32_t kind)
{
    static float tilt[B * M * D], mean[C * D], covariance[C * D * D], out[B * M * D];
    static float stats[B * M * 2], dtilt[B * M * D], dmean[C * D], dcovariance[C * D * D];
    static const float log_weight[C] = {0, -INFINITY, -1, -100};
    sattn_mixture p;
    for (int i = 0; i < B * M * D; i++)
        tilt[i] = (float)(i * 37 % 101) / 5 - 10;
    for (int i = 0; i < C * D; i++)
        mean[i] = i / D == 1 ? NAN : (float)(i % 7);
    for (int i = 0; i < C * D * D; i++)
        covariance[i] = i / (D * D) == 1 ? NAN : i / D % D == i % D;
    if (kind == SATTN_COVARIANCE_DIAG)
        for (int i = 0; i < C * D; i++)
            covariance[i] = i / D == 1 ? NAN : 1;
    EXPECT(sattn.init(&p, sizeof p, B, M, C, D, 0, kind) == SATTN_OK, "init");
    p.threads = 4;
    p.log_weight_batch = p.mean_batch = p.covariance_batch = 0;
    p.tilt = tilt, p.log_weight = log_weight, p.mean = mean;
    p.out = out, p.stats = stats, p.dout = tilt, p.dtilt = dtilt, p.dmean = dmean;
    if (kind != SATTN_COVARIANCE_ZERO)
        p.covariance = covariance, p.dcovariance = dcovariance;
    EXPECT(sattn.forward(&p) == SATTN_OK && sattn.backward(&p) == SATTN_OK, "mixture");
}

/* Finite numbers of every size, -inf among them; the rows 0 and 1 of softmax: all -inf, one finite.
 */
static void call_all(const float *x, float *y)
{
    EXPECT(sattn.exp(ELEMENTS, x, 1, y, 1, 4) == SATTN_OK, "exp");
    EXPECT(sattn.exp(67, x, 1, y, 1, 1) == SATTN_OK, "exp");
    EXPECT(sattn.softmax(ROWS, COLUMNS, x, COLUMNS, y, COLUMNS, 4) == SATTN_OK, "softmax");
    EXPECT(sattn.softmax(1, 67, x, 67, y, 67, 1) == SATTN_OK, "softmax");
    for (int32_t kind = SATTN_COVARIANCE_ZERO; kind <= SATTN_COVARIANCE_FULL; kind++)
        mixture(kind);
}

int main(int count, char **arguments)
{
    float *x = floats(), *y = floats();
    EXPECT(count == 2, "which library?");
    fill(x);
    for (int64_t i = 0; i < ELEMENTS; i++)
        x[i] = i <= COLUMNS || i % 64 == 7 ? -INFINITY : i % 5 ? 80 * x[i] : -3e38f;
    feclearexcept(FE_ALL_EXCEPT);
    const uint64_t before = environment();
    load(arguments[1]);
    EXPECT(environment() == before, "loading made %#jx of %#jx", (uintmax_t)environment(),
           (uintmax_t)before);

    feenableexcept(TRAPS); /* a processor without traps still has the flags */
    const uint64_t trapping = environment();
    for (int32_t isa = 0; isa < SATTN_ISA_COUNT; isa++) {
        EXPECT(sattn.isa_set(isa) == SATTN_OK, "cap");
        call_all(x, y);
        EXPECT(!fetestexcept(TRAPS), "cap %d: flags %#x", isa, (unsigned)fetestexcept(TRAPS));
    }
    EXPECT((environment() & ~flags) == (trapping & ~flags), "calls made %#jx of %#jx",
           (uintmax_t)environment(), (uintmax_t)trapping);
    free(x);
    free(y);
    return 0;
}
