/* SPDX-License-Identifier: BSD-2-Clause */
/* floating LIBRARY: loading and calling leave the floating-point environment of the host alone;
 * finite and masked data raise no exception, also on the library's threads, with traps enabled; the
 * host's rounding mode and flush to zero change no result, in whichever of its threads. */
#define _GNU_SOURCE
#include "process.h"
#include "sattn/sattn.h"

#include <dlfcn.h>
#include <fenv.h>
#include <math.h>
#include <pthread.h>
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
static void flush_to_zero(void) /* results and operands */
{
    const uint32_t word = (uint32_t)environment() | 0x8040;
    __asm__ volatile("ldmxcsr %0" : : "m"(word));
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
static void flush_to_zero(void)
{
    const uint64_t control = environment() >> 32 | 1 << 24;
    __asm__ volatile("msr fpcr, %0" : : "r"(control));
}
#else
static const uint64_t flags = UINT32_MAX;
static uint64_t environment(void)
{
    return (uint64_t)fegetround() << 32 | (uint64_t)fetestexcept(FE_ALL_EXCEPT);
}
static void flush_to_zero(void)
{
}
#endif

static struct {
    int32_t (*exp)(int64_t, const float *, int64_t, float *, int64_t, int32_t);
    int32_t (*exp64)(int64_t, const double *, int64_t, double *, int64_t, int32_t);
    int32_t (*softmax)(int64_t, int64_t, const float *, int64_t, float *, int64_t, int32_t);
    int32_t (*softmax64)(int64_t, int64_t, const double *, int64_t, double *, int64_t, int32_t);
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
        {"sattn_exp_f64", &sattn.exp64},
        {"sattn_softmax_f32", &sattn.softmax},
        {"sattn_softmax_f64", &sattn.softmax64},
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

static float *x32, *y32;
static double *x64, *y64;

/* Finite numbers of every size, -inf among them; the rows 0 and 1 of softmax: all -inf, one finite.
 */
static void make_data(void)
{
    x32 = floats(), y32 = floats();
    x64 = malloc(ELEMENTS * sizeof *x64), y64 = malloc(ELEMENTS * sizeof *y64);
    EXPECT(x64 && y64, "no memory");
    fill(x32);
    for (int64_t i = 0; i < ELEMENTS; i++) {
        x64[i] = i <= COLUMNS || i % 64 == 7 ? -INFINITY : i % 5 ? 700 * (double)x32[i] : -1e308;
        x32[i] = i <= COLUMNS || i % 64 == 7 ? -INFINITY : i % 5 ? 80 * x32[i] : -3e38f;
    }
}

static void call_all(void)
{
    const float *x = x32;
    float *y = y32;
    EXPECT(sattn.exp64(ELEMENTS, x64, 1, y64, 1, 4) == SATTN_OK, "exp");
    EXPECT(sattn.softmax64(ROWS, COLUMNS, x64, COLUMNS, y64, COLUMNS, 4) == SATTN_OK, "softmax");
    EXPECT(sattn.exp(ELEMENTS, x, 1, y, 1, 4) == SATTN_OK, "exp");
    EXPECT(sattn.exp(67, x, 1, y, 1, 1) == SATTN_OK, "exp");
    EXPECT(sattn.softmax(ROWS, COLUMNS, x, COLUMNS, y, COLUMNS, 4) == SATTN_OK, "softmax");
    EXPECT(sattn.softmax(1, 67, x, 67, y, 67, 1) == SATTN_OK, "softmax");
    for (int32_t kind = SATTN_COVARIANCE_ZERO; kind <= SATTN_COVARIANCE_FULL; kind++)
        mixture(kind);
}

/* Arguments of all kinds, subnormal ones and results too; rows of 256 that sum to 1 by normal
 * numbers alone, so that flushing has nothing to take. */
enum { FEW = 4096, ROW = 256 };
typedef struct {
    float exp[FEW], softmax[FEW];
    double exp64[FEW], softmax64[FEW];
} results;

static float few[FEW], logit[FEW];
static double few64[FEW], logit64[FEW];
static void make_few(void)
{
    for (int i = 0; i < FEW; i++) {
        few[i] = i % 61 ? (float)i * 190 / FEW - 104 : 1e-40f;
        few64[i] = i % 61 ? (double)i * 1454 / FEW - 745 : 1e-310;
        logit64[i] = logit[i] = i % 64 ? (float)(i * 37 % 101) / 3 : -INFINITY;
    }
}

static void compute(results *r, int32_t threads)
{
    memset(r, 0, sizeof *r);
    EXPECT(sattn.exp(FEW, few, 1, r->exp, 1, threads) == SATTN_OK, "exp");
    EXPECT(sattn.exp64(FEW, few64, 1, r->exp64, 1, threads) == SATTN_OK, "exp");
    EXPECT(sattn.softmax(FEW / ROW, ROW, logit, ROW, r->softmax, ROW, threads) == SATTN_OK &&
               sattn.softmax64(FEW / ROW, ROW, logit64, ROW, r->softmax64, ROW, threads) ==
                   SATTN_OK,
           "softmax");
}

static const struct {
    int rounding, flush;
} modes[] = {
    {FE_UPWARD, 0}, {FE_DOWNWARD, 0}, {FE_TOWARDZERO, 0}, {FE_TONEAREST, 1}, {FE_UPWARD, 1}};
enum { MODES = sizeof modes / sizeof *modes };
static results expected;

/* A thread of the host's that chose its mode before it calls. */
static void *in_mode(void *context)
{
    const int mode = (int)(intptr_t)context;
    results *got = malloc(sizeof *got);
    EXPECT(got, "no memory");
    fesetround(modes[mode].rounding);
    if (modes[mode].flush)
        flush_to_zero();
    const uint64_t before = environment();
    for (int32_t threads = 1; threads <= 4; threads += 3) {
        compute(got, threads);
        EXPECT((environment() & ~flags) == (before & ~flags), "mode %d: calls made %#jx of %#jx",
               mode, (uintmax_t)environment(), (uintmax_t)before);
        EXPECT(memcmp(got, &expected, sizeof *got) == 0, "mode %d changes a result", mode);
    }
    free(got);
    return NULL;
}

static void check_modes(void)
{
    pthread_t thread[MODES];
    make_few();
    compute(&expected, 1);
    for (int mode = 0; mode < MODES; mode++)
        EXPECT(pthread_create(thread + mode, NULL, in_mode, (void *)(intptr_t)mode) == 0, "thread");
    for (int mode = 0; mode < MODES; mode++)
        pthread_join(thread[mode], NULL);
}

int main(int count, char **arguments)
{
    EXPECT(count == 2, "which library?");
    make_data();
    feclearexcept(FE_ALL_EXCEPT);
    const uint64_t before = environment();
    load(arguments[1]);
    EXPECT(environment() == before, "loading made %#jx of %#jx", (uintmax_t)environment(),
           (uintmax_t)before);

    feenableexcept(TRAPS); /* a processor without traps still has the flags */
    const uint64_t trapping = environment();
    for (int32_t isa = 0; isa < SATTN_ISA_COUNT; isa++) {
        EXPECT(sattn.isa_set(isa) == SATTN_OK, "cap");
        call_all();
        EXPECT(!fetestexcept(TRAPS), "cap %d: flags %#x", isa, (unsigned)fetestexcept(TRAPS));
    }
    EXPECT((environment() & ~flags) == (trapping & ~flags), "calls made %#jx of %#jx",
           (uintmax_t)environment(), (uintmax_t)trapping);
    fedisableexcept(TRAPS);
    for (int32_t isa = 0; isa < SATTN_ISA_COUNT; isa++) {
        EXPECT(sattn.isa_set(isa) == SATTN_OK, "cap");
        check_modes();
    }
    free(x32);
    free(y32);
    free(x64);
    free(y64);
    return 0;
}
