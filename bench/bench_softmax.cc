/* SPDX-License-Identifier: BSD-2-Clause */
/* softmax/TYPE/SIZE/N/CANDIDATE: as many rows of N elements as fill SIZE bytes, and at least one;
 * softmax-call/TYPE/N for the smallest call. "plain" is the C loop of peers/rows.cc. */
#include "common.h"
#include "peers/onednn.h"
#include "peers/rows.h"

namespace
{

int32_t library(int64_t rows, int64_t n, const float *x, float *y)
{
    return sattn_softmax_f32(rows, n, x, n, y, n, 1);
}

int32_t library(int64_t rows, int64_t n, const double *x, double *y)
{
    return sattn_softmax_f64(rows, n, x, n, y, n, 1);
}

template <class R, class Body> void run(benchmark::State &state, int64_t rows, int64_t n, Body body)
{
    const array<R> x(rows * n), y(rows * n);
    fill<R>(x, rows * n, -5, 5);
    measure(state, [&] { return body((const R *)x, (R *)y); });
    state.SetItemsProcessed(state.iterations() * rows * n);
}

void add_onednn(const std::string &name, int64_t rows, int64_t n, float)
{
#ifdef SATTN_PEER_ONEDNN
    benchmark::RegisterBenchmark((name + "/onednn").c_str(), [=](benchmark::State &state) {
        run<float>(state, rows, n, onednn_softmax(rows, n));
    });
#else
    (void)name, (void)rows, (void)n;
#endif
}

void add_onednn(const std::string &, int64_t, int64_t, double)
{
}

template <class R> void add(const std::string &size, int64_t bytes, int64_t n)
{
    const std::string name =
        std::string("softmax/") + type_name<R> + "/" + size + "/" + std::to_string(n);
    const int64_t fit = bytes / int64_t(n * sizeof(R)), rows = fit > 1 ? fit : 1;
    register_rows(name, slowest_row(rows * n), [=](benchmark::State &state) {
        run<R>(state, rows, n, [=](const R *x, R *y) { return library(rows, n, x, y); });
    });
    benchmark::RegisterBenchmark((name + "/copy").c_str(), [=](benchmark::State &state) {
        run<R>(state, rows, n, [=](const R *x, R *y) {
            std::memcpy(y, x, rows * n * sizeof(R));
            return SATTN_OK;
        });
    });
#ifdef SATTN_PEER_ROWS
    for (const auto *row : {&peer_avx2(R()), &peer_avx512(R())})
        if (sattn_isa_available(row->isa))
            benchmark::RegisterBenchmark((name + "/plain-" + row->name).c_str(),
                                         [=](benchmark::State &state) {
                                             run<R>(state, rows, n, [=](const R *x, R *y) {
                                                 row->softmax(rows, n, x, y);
                                                 return SATTN_OK;
                                             });
                                         });
#endif
    add_onednn(name, rows, n, R());
}

template <class R> void add_type()
{
    for (int64_t n : {1, 2, 7, 16, 31, 64, 100, 128, 333, 512, 1000, 1024, 4096, 32768, 128256})
        add<R>("256KiB", 256 << 10, n);
    for (int64_t n : {16, 128, 1024, 4096, 32768})
        add<R>("64MiB", 64 << 20, n);
    for (int64_t n : {1, 8})
        register_rows(std::string("softmax-call/") + type_name<R> + "/" + std::to_string(n),
                      SATTN_ISA_SCALAR, [=](benchmark::State &state) {
                          run<R>(state, 1, n,
                                 [=](const R *x, R *y) { return library(1, n, x, y); });
                      });
}

} // namespace

int main(int argc, char **argv)
{
    add_type<float>();
    add_type<double>();
    return run_benchmarks(argc, argv);
}
