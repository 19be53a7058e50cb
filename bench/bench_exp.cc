/* SPDX-License-Identifier: BSD-2-Clause */
/* exp/TYPE/SIZE/DATA/CANDIDATE: sizes in bytes of the input, and exp-call/TYPE/N for the smallest
 * calls. DATA: plain; masked = 1 in 64 is -inf; tiny = 1 in 64 has a subnormal result; subnormal =
 * all have. */
#include "common.h"
#include "peers/rows.h"

#include <cmath>

namespace
{

int32_t library_exp(int64_t n, const float *x, float *y)
{
    return sattn_exp_f32(n, x, 1, y, 1, 1);
}

int32_t library_exp(int64_t n, const double *x, double *y)
{
    return sattn_exp_f64(n, x, 1, y, 1, 1);
}

template <class R> void libm_exp(int64_t n, const R *x, R *y)
{
    for (int64_t i = 0; i < n; i++)
        y[i] = std::exp(x[i]);
}

template <class R> void fill_with(R *x, int64_t n, const std::string &data)
{
    /* The least normal number is exp(-87.3) or exp(-708.4), the least subnormal exp(-103.3) or
     * exp(-744.4). */
    const double low = sizeof(R) == 4 ? -103 : -744, high = sizeof(R) == 4 ? -88 : -709;
    if (data == "subnormal")
        return fill(x, n, low, high);
    fill(x, n, -20, 20);
    for (int64_t i = 7; i < n && data != "plain"; i += 64)
        x[i] = data == "tiny" ? R((low + high) / 2) : -std::numeric_limits<R>::infinity();
}

/* Times body(n, x, y) and reports nanoseconds per element by its throughput. */
template <class R, class Body>
void run(benchmark::State &state, int64_t n, const std::string &data, Body body)
{
    const array<R> x(n), y(n);
    fill_with<R>(x, n, data);
    measure(state, [&] { return body(n, x, y); });
    state.SetItemsProcessed(state.iterations() * n);
}

template <class R> void add(const std::string &name, int64_t n, const std::string &data)
{
    const auto peer = [=](const std::string &candidate, void (*f)(int64_t, const R *, R *)) {
        benchmark::RegisterBenchmark(
            (name + "/" + candidate).c_str(), [=](benchmark::State &state) {
                run<R>(state, n, data, [f](int64_t count, const R *x, R *y) {
                    f(count, x, y);
                    return SATTN_OK;
                });
            });
    };
    register_rows(name, slowest_row(n), [=](benchmark::State &state) {
        run<R>(state, n, data,
               [](int64_t count, const R *x, R *y) { return library_exp(count, x, y); });
    });
    peer("libm", libm_exp<R>);
    peer("copy", [](int64_t count, const R *x, R *y) { std::memcpy(y, x, count * sizeof(R)); });
#ifdef SATTN_PEER_ROWS
    for (const auto *row : {&peer_avx2(R()), &peer_avx512(R())})
        if (sattn_isa_available(row->isa)) {
            peer(std::string("sleef-") + row->name, row->sleef);
            peer(std::string("libmvec-") + row->name, row->libmvec);
        }
#endif
}

template <class R> void add_type()
{
    const std::string type = type_name<R>;
    for (int64_t bytes : {int64_t{4} << 10, int64_t{128} << 10, int64_t{64} << 20})
        for (const char *data : {"plain", "masked", "tiny", "subnormal"})
            if (bytes == 128 << 10 || std::string(data) == "plain")
                add<R>("exp/" + type + "/" + size_name(bytes) + "/" + data, bytes / sizeof(R),
                       data);
    for (int64_t n : {1, 8})
        register_rows("exp-call/" + type + "/" + std::to_string(n), SATTN_ISA_SCALAR,
                      [=](benchmark::State &state) {
                          run<R>(state, n, "plain", [](int64_t count, const R *x, R *y) {
                              return library_exp(count, x, y);
                          });
                      });
}

} // namespace

int main(int argc, char **argv)
{
    add_type<float>();
    add_type<double>();
    return run_benchmarks(argc, argv);
}
