/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SATTN_BENCH_COMMON_H
#define SATTN_BENCH_COMMON_H

/* What the benchmarks share. A benchmark's name is operation/type/shape.../candidate; candidates
 * that differ in the last part alone are compared with each other by table.py. The program runs
 * them in random order (compare passes --benchmark_enable_random_interleaving), so that a
 * disturbance of the machine hits all alike. */

#include "sattn/sattn.h"

#include <benchmark/benchmark.h>

#include <cstdio>
#include <cstring>
#include <limits>
#include <memory>
#include <random>
#include <string>

template <class R> constexpr const char *type_name = sizeof(R) == 4 ? "f32" : "f64";

/* Memory of the library's, 64-byte aligned, touched before it is timed */
template <class R> struct array {
    std::unique_ptr<R[], void (*)(void *)> data;
    explicit array(int64_t n)
        : data(static_cast<R *>(sattn_alloc(n * int64_t{sizeof(R)})), sattn_free)
    {
        std::memset(static_cast<void *>(data.get()), 0, n * sizeof(R));
    }
    operator R *() const
    {
        return data.get();
    }
};

/* low .. high, uniform; the values repeat after 64 Ki, which no kernel can notice. */
template <class R> void fill(R *x, int64_t n, double low, double high, uint64_t seed = 1)
{
    const int64_t period = 65536;
    std::mt19937_64 draw(seed);
    std::uniform_real_distribution<double> uniform(low, high);
    for (int64_t i = 0; i < n; i++)
        x[i] = i < period ? R(uniform(draw)) : x[i - period];
}

/* One run: calls `body`, which returns a status, until Google Benchmark has enough. */
template <class Body> void measure(benchmark::State &state, Body body)
{
    for (auto _ : state) {
        const int32_t status = body();
        benchmark::ClobberMemory();
        if (status != SATTN_OK) {
            state.SkipWithError(sattn_status_string(status));
            break;
        }
    }
}

/* Registers name/sattn-ISA for each instruction set from `least` on; run(state) is to call the
 * library. */
template <class Run> void register_rows(const std::string &name, int32_t least, Run run)
{
    for (int32_t isa = least; isa < SATTN_ISA_COUNT; isa++)
        if (sattn_isa_available(isa))
            benchmark::RegisterBenchmark((name + "/sattn-" + sattn_isa_name(isa)).c_str(),
                                         [=](benchmark::State &state) {
                                             sattn_isa_set(isa);
                                             run(state);
                                         });
}

/* The scalar row needs 20 ns an element: it is left out where it would hold up the rest. */
inline int32_t slowest_row(int64_t elements)
{
    return elements > 1 << 20 ? SATTN_ISA_NEON : SATTN_ISA_SCALAR;
}

inline std::string size_name(int64_t bytes)
{
    return bytes >= 1 << 20 ? std::to_string(bytes >> 20) + "MiB"
                            : std::to_string(bytes >> 10) + "KiB";
}

inline int run_benchmarks(int argc, char **argv)
{
    benchmark::Initialize(&argc, argv);
    if (benchmark::ReportUnrecognizedArguments(argc, argv))
        return 1;
    std::string cpu = "unknown", line;
    if (std::FILE *info = std::fopen("/proc/cpuinfo", "r")) {
        char text[512];
        while (std::fgets(text, sizeof text, info))
            if (std::strncmp(text, "model name", 10) == 0 && std::strchr(text, ':'))
                cpu = std::strtok(std::strchr(text, ':') + 2, "\n");
        std::fclose(info);
    }
    benchmark::AddCustomContext("cpu", cpu);
    benchmark::AddCustomContext("library",
                                std::string(sattn_version_string()) + ", " + sattn_build_info());
    benchmark::AddCustomContext("benchmark_compiler", __VERSION__);
    return benchmark::RunSpecifiedBenchmarks() == 0;
}

#endif
