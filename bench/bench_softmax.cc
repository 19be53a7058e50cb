/* SPDX-License-Identifier: BSD-2-Clause */
/* softmax/TYPE/SIZE/N/CANDIDATE: as many rows of N elements as fill SIZE bytes, and at least one;
 * softmax-call/TYPE/N for the smallest call. "plain" is the C loop of peers/rows.cc.
 * softmax-axis: the same numbers with the rows side by side; "last-axis" has them one after the
 * other. softmax-backward: dx from y and dy. */
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

int32_t call(const sattn_softmax &p, bool back, float)
{
    return back ? sattn_softmax_backward_f32(&p) : sattn_softmax_forward_f32(&p);
}

int32_t call(const sattn_softmax &p, bool back, double)
{
    return back ? sattn_softmax_backward_f64(&p) : sattn_softmax_forward_f64(&p);
}

template <class R> int32_t side_by_side(int64_t rows, int64_t n, const R *x, R *y)
{
    sattn_softmax p;
    sattn_softmax_init(&p, sizeof p, 1, rows, n);
    p.x = x, p.y = y, p.threads = 1;
    p.x_row = p.y_row = 1, p.x_col = p.y_col = rows;
    return call(p, false, R());
}

template <class R> int32_t gradient(int64_t rows, int64_t n, const R *y, const R *dy, R *dx)
{
    sattn_softmax p;
    sattn_softmax_init(&p, sizeof p, 1, rows, n);
    p.y = const_cast<R *>(y), p.dy = dy, p.dx = dx, p.threads = 1;
    return call(p, true, R());
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

template <class R> void add_axis(int64_t n)
{
    const int64_t rows = (256 << 10) / int64_t(n * sizeof(R));
    const std::string name =
        std::string("softmax-axis/") + type_name<R> + "/256KiB/" + std::to_string(n);
    register_rows(name, SATTN_ISA_SCALAR, [=](benchmark::State &state) {
        run<R>(state, rows, n, [=](const R *x, R *y) { return side_by_side(rows, n, x, y); });
    });
    benchmark::RegisterBenchmark((name + "/last-axis").c_str(), [=](benchmark::State &state) {
        sattn_isa_set(SATTN_ISA_COUNT - 1);
        run<R>(state, rows, n, [=](const R *x, R *y) { return library(rows, n, x, y); });
    });
}

template <class R> void add_backward(int64_t n)
{
    const int64_t rows = (256 << 10) / int64_t(n * sizeof(R));
    const std::string name =
        std::string("softmax-backward/") + type_name<R> + "/256KiB/" + std::to_string(n);
    register_rows(name, SATTN_ISA_SCALAR, [=](benchmark::State &state) {
        const array<R> dy(rows * n);
        fill<R>(dy, rows * n, -1, 1);
        run<R>(state, rows, n,
               [&](const R *y, R *dx) { return gradient(rows, n, y, (const R *)dy, dx); });
    });
#ifdef SATTN_PEER_ROWS
    for (const auto *row : {&peer_avx2(R()), &peer_avx512(R())})
        if (sattn_isa_available(row->isa))
            benchmark::RegisterBenchmark((name + "/plain-" + row->name).c_str(),
                                         [=](benchmark::State &state) {
                                             const array<R> dy(rows * n);
                                             fill<R>(dy, rows * n, -1, 1);
                                             run<R>(state, rows, n, [&](const R *y, R *dx) {
                                                 row->gradient(rows, n, y, (const R *)dy, dx);
                                                 return SATTN_OK;
                                             });
                                         });
#endif
}

template <class R> void add_type()
{
    for (int64_t n : {1, 2, 7, 16, 31, 64, 100, 128, 333, 512, 1000, 1024, 4096, 32768, 128256})
        add<R>("256KiB", 256 << 10, n);
    for (int64_t n : {16, 128, 1024, 4096, 32768})
        add<R>("64MiB", 64 << 20, n);
    for (int64_t n : {16, 100, 512, 1024, 4096})
        add_axis<R>(n), add_backward<R>(n);
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
