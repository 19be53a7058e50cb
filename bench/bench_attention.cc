/* SPDX-License-Identifier: BSD-2-Clause */
/* attention-PASS/TYPE/VARIANT/HxMxNxD/threadsT/CANDIDATE, PASS forward or backward (alone), H
 * heads, M queries, N keys, width D = E. The items are flops: 4 H M N D forward, 10 H M N D
 * backward, of the pairs that are live. Variants: full; causal; mask (an array, 1 in 10 pairs
 * masked); bias; grouped (4 heads to a key head); bf16 (keys and values). fma/TYPE/ISA is the
 * machine's limit in the same run; read/TYPE/SIZE reads as many bytes as the keys and values of a
 * decode step have. */
#include "common.h"
#include "peers/peak.h"
#ifdef SATTN_PEER_ONEDNN
#include "peers/onednn.h"
#endif

#include <cmath>

namespace
{

struct shape {
    const char *variant;
    int64_t heads, queries, keys, width;
    int32_t threads;

    bool is(const char *name) const
    {
        return std::strcmp(variant, name) == 0;
    }
};

/* Live pairs of a head */
double pairs(const shape &s)
{
    const double all = double(s.queries) * double(s.keys);
    return s.is("causal") ? all / 2 + double(s.keys) / 2 : s.is("mask") ? 0.9 * all : all;
}

int32_t forward(const sattn_attention *p, float)
{
    return sattn_attention_forward_f32(p);
}

int32_t forward(const sattn_attention *p, double)
{
    return sattn_attention_forward_f64(p);
}

int32_t backward(const sattn_attention *p, float)
{
    return sattn_attention_backward_f32(p);
}

int32_t backward(const sattn_attention *p, double)
{
    return sattn_attention_backward_f64(p);
}

template <class R> struct problem {
    shape s;
    int64_t key_heads, q_size, k_size;
    array<R> q, k, v, out, stats, dout, dq, dk, dv, bias;
    array<uint8_t> mask;
    array<uint16_t> half;
    array<char> work;
    sattn_attention p;

    problem(const shape &given, bool gradients)
        : s(given), key_heads(s.is("grouped") ? (s.heads + 3) / 4 : s.heads),
          q_size(s.heads * s.queries * s.width), k_size(key_heads * s.keys * s.width), q(q_size),
          k(k_size), v(k_size), out(q_size), stats(s.heads * s.queries * 2), dout(q_size),
          dq(gradients ? q_size : 1), dk(gradients ? k_size : 1), dv(gradients ? k_size : 1),
          bias(s.is("bias") ? s.queries * s.keys : 1), mask(s.is("mask") ? s.queries * s.keys : 1),
          half(s.is("bf16") ? k_size : 1), work(describe())
    {
        p.work = work;
        fill<R>(q, q_size, -1, 1, 1);
        fill<R>(k, k_size, -1, 1, 2);
        fill<R>(v, k_size, -1, 1, 3);
        fill<R>(dout, q_size, -1, 1, 4);
        if (s.is("bias"))
            fill<R>(bias, s.queries * s.keys, -1, 1, 5);
        for (int64_t i = 0; s.is("mask") && i < s.queries * s.keys; i++)
            mask[i] = i % 10 != 3;
        for (int64_t i = 0; s.is("bf16") && i < k_size; i++) {
            const float x = float(k[i]);
            uint32_t bits;
            std::memcpy(&bits, &x, 4);
            half[i] = uint16_t(bits >> 16);
        }
    }

    int64_t describe()
    {
        sattn_attention_init(&p, sizeof p, 1, s.heads, key_heads, s.queries, s.keys, s.width,
                             s.width);
        p.threads = s.threads;
        p.q.data = q, p.k.data = k, p.v.data = v, p.dout.data = dout;
        p.out.data = out, p.stats.data = stats;
        p.dq.data = dq, p.dk.data = dk, p.dv.data = dv;
        if (s.is("causal"))
            p.right = 0;
        if (s.is("bias"))
            p.bias.data = bias;
        if (s.is("mask"))
            p.mask.data = mask;
        if (s.is("bf16")) {
            p.storage = SATTN_STORAGE_BF16;
            p.k.data = p.v.data = half;
        }
        if ((sizeof(R) == 4 ? sattn_attention_workspace_f32
                            : sattn_attention_workspace_f64)(&p, &p.work_bytes))
            p.work_bytes = 0;
        return p.work_bytes;
    }
};

template <class R> void add(const shape &s, bool with_backward)
{
    const std::string rest = std::string("/") + type_name<R> + "/" + s.variant + "/" +
                             std::to_string(s.heads) + "x" + std::to_string(s.queries) + "x" +
                             std::to_string(s.keys) + "x" + std::to_string(s.width) + "/threads" +
                             std::to_string(s.threads);
    const double flops = 4 * pairs(s) * double(s.heads) * double(s.width);
    register_rows("attention-forward" + rest, SATTN_ISA_NEON, [=](benchmark::State &state) {
        problem<R> k(s, false);
        measure(state, [&] { return forward(&k.p, R()); });
        state.SetItemsProcessed(int64_t(double(state.iterations()) * flops));
    });
    if (with_backward)
        register_rows("attention-backward" + rest, SATTN_ISA_NEON, [=](benchmark::State &state) {
            problem<R> k(s, true);
            if (forward(&k.p, R()) != SATTN_OK)
                state.SkipWithError("forward");
            measure(state, [&] { return backward(&k.p, R()); });
            state.SetItemsProcessed(int64_t(double(state.iterations()) * flops * 2.5));
            state.counters["work_bytes"] = double(k.p.work_bytes);
        });
#ifdef SATTN_PEER_ONEDNN
    if (sizeof(R) == 4 && s.threads == 1 && s.is("full"))
        benchmark::RegisterBenchmark(
            ("attention-forward" + rest + "/onednn").c_str(), [=](benchmark::State &state) {
                problem<float> k(s, false);
                const auto run = onednn_attention(s.heads, s.queries, s.keys, s.width,
                                                  1 / std::sqrt(float(s.width)));
                measure(state, [&] { return run(k.q, k.k, k.v, k.out); });
                state.SetItemsProcessed(int64_t(double(state.iterations()) * flops));
            });
#endif
}

template <class R> void add_limits()
{
    add_peak<R>();
    for (int64_t bytes : {int64_t{8} << 20, int64_t{64} << 20})
        benchmark::RegisterBenchmark(
            (std::string("read/") + type_name<R> + "/" + size_name(bytes) + "/loop").c_str(),
            [=](benchmark::State &state) {
                const array<int64_t> x(bytes / 8);
                measure(state, [&] {
                    int64_t sum[8] = {}; /* integers: the compiler may use full vectors */
                    for (int64_t i = 0; i < bytes / 8; i += 8)
                        for (int j = 0; j < 8; j++)
                            sum[j] += x[i + j];
                    for (int j = 0; j < 8; j++)
                        benchmark::DoNotOptimize(sum[j]);
                    return SATTN_OK;
                });
                state.SetBytesProcessed(state.iterations() * bytes);
            });
}

template <class R> void add_type()
{
    for (int32_t threads : {1, 2}) {
        for (int64_t d : {64, 128}) {
            add<R>({"full", 8, 128, 128, d, threads}, true);
            add<R>({"full", 8, 512, 512, d, threads}, true);
            add<R>({"full", 1, 2048, 2048, d, threads}, true);
            add<R>({"full", 1, 8192, 8192, d, threads}, false);
        }
        for (const char *variant : {"causal", "mask", "bias", "grouped"})
            add<R>({variant, 4, 2048, 2048, 64, threads}, true);
        add<R>({"full", 4, 2048, 2048, 64, threads}, false);
        add<R>({"full", 4, 2048, 2000, 61, threads}, false);
        for (int64_t m : {1, 16})
            for (const char *variant : {"full", "bf16", "grouped"})
                add<R>({variant, 8, m, 16384, 64, threads}, false);
    }
    add_limits<R>();
}

} // namespace

int main(int argc, char **argv)
{
    add_type<float>();
    add_type<double>();
    return run_benchmarks(argc, argv);
}
