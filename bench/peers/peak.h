/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SATTN_BENCH_PEAK_H
#define SATTN_BENCH_PEAK_H

/* fma/TYPE/ISA: the machine's limit, for the benchmarks that are measured against it. */

#include "../common.h"
#include "rows.h"

template <class R> void add_peak()
{
#ifdef SATTN_PEER_ROWS
    for (const auto *row : {&peer_avx2(R()), &peer_avx512(R())})
        if (sattn_isa_available(row->isa))
            benchmark::RegisterBenchmark(
                (std::string("fma/") + type_name<R> + "/" + row->name).c_str(),
                [=](benchmark::State &state) {
                    const int64_t steps = 10000;
                    measure(state, [&] {
                        benchmark::DoNotOptimize(row->fma(steps));
                        return SATTN_OK;
                    });
                    state.SetItemsProcessed(state.iterations() * steps * row->fma_flops);
                });
#endif
}

#endif
