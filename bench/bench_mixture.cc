/* SPDX-License-Identifier: BSD-2-Clause */
/* mixture-PASS/TYPE/KIND/MxCxD/threadsT/CANDIDATE, PASS forward or both (forward and backward, all
 * gradients), M queries, C components, width D; fma/TYPE/ISA is the machine's limit in the same
 * run. The items are flops of the formula, forward: full 2 M C D^2 + 6 M C D, diagonal 8 M C D,
 * zero 4 M C D, low (rank 8) 4 M C D rank + 10 M C D; both: 4 times that, for S u again, S dout and
 * the outer products of the gradient. "plain" is the C loop of peers/rows.cc. */
#include "common.h"
#include "peers/peak.h"

namespace
{

struct shape {
    int32_t kind;
    int64_t queries, components, width;
    int32_t threads;
};

const char *const kind_name[] = {"zero", "diag", "full", "", "", "low"};
const int32_t RANK = 8; /* of kind low */

int64_t layout(const shape &s)
{
    return s.kind == SATTN_COVARIANCE_FULL       ? s.width * s.width
           : s.kind == SATTN_COVARIANCE_LOW_RANK ? s.width * (1 + RANK)
           : s.kind == SATTN_COVARIANCE_DIAG     ? s.width
                                                 : 0;
}

int64_t flops(const shape &s)
{
    const int64_t product = s.queries * s.components * s.width;
    return product * (s.kind == SATTN_COVARIANCE_FULL       ? 2 * s.width + 6
                      : s.kind == SATTN_COVARIANCE_LOW_RANK ? 4 * RANK + 10
                      : s.kind == SATTN_COVARIANCE_DIAG     ? 8
                                                            : 4);
}

int32_t forward(const sattn_mixture *p, float)
{
    return sattn_mixture_forward_f32(p);
}

int32_t forward(const sattn_mixture *p, double)
{
    return sattn_mixture_forward_f64(p);
}

int32_t backward(const sattn_mixture *p, float)
{
    return sattn_mixture_backward_f32(p);
}

int32_t backward(const sattn_mixture *p, double)
{
    return sattn_mixture_backward_f64(p);
}

/* A problem with its arrays; covariances are I / 2 + a random symmetric part small beside it. */
template <class R> struct problem {
    shape s;
    array<R> tilt, log_weight, mean, covariance, out, stats, dout, dcgf, dtilt, dlog_weight, dmean,
        dcovariance;
    array<R> buffer; /* of the plain loop, and the library's workspace */
    sattn_mixture p;

    explicit problem(const shape &given, bool gradients)
        : s(given), tilt(s.queries * s.width), log_weight(s.components),
          mean(s.components * s.width), covariance(s.components * layout(s) + 1),
          out(s.queries * s.width), stats(s.queries * 2), dout(s.queries * s.width),
          dcgf(s.queries), dtilt(gradients ? s.queries * s.width : 1), dlog_weight(s.components),
          dmean(s.components * s.width), dcovariance(gradients ? s.components * layout(s) + 1 : 1),
          buffer(describe())
    {
        fill<R>(tilt, s.queries * s.width, -0.5, 0.5, 2);
        fill<R>(log_weight, s.components, -1, 0, 3);
        fill<R>(mean, s.components * s.width, -1, 1, 4);
        fill<R>(dout, s.queries * s.width, -1, 1, 5);
        fill<R>(dcgf, s.queries, -1, 1, 6);
        fill<R>(covariance, s.components * layout(s), 0, 0.1 / double(s.width), 7);
        for (int64_t c = 0; c < s.components && s.kind != SATTN_COVARIANCE_ZERO; c++)
            for (int64_t i = 0; i < s.width; i++)
                finish_row(covariance + c * layout(s), i);
        p.work = buffer;
    }

    void finish_row(R *matrix, int64_t i)
    {
        if (s.kind != SATTN_COVARIANCE_FULL) /* low: the variances come first */
            matrix[i] += R(0.5);
        else
            matrix[i * s.width + i] += R(0.5);
        for (int64_t j = 0; s.kind == SATTN_COVARIANCE_FULL && j < i; j++)
            matrix[j * s.width + i] = matrix[i * s.width + j];
    }

    /* Fills p; the elements that buffer needs */
    int64_t describe()
    {
        sattn_mixture_init(&p, sizeof p, 1, s.queries, s.components, s.width, 0, s.kind);
        p.threads = s.threads;
        if (s.kind == SATTN_COVARIANCE_LOW_RANK)
            p.rank = RANK, p.covariance_batch = s.components * layout(s);
        p.tilt = tilt, p.log_weight = log_weight, p.mean = mean;
        p.covariance = s.kind == SATTN_COVARIANCE_ZERO ? nullptr : (R *)covariance;
        p.out = out, p.stats = stats, p.dout = dout, p.dcgf = dcgf;
        p.dtilt = dtilt, p.dlog_weight = dlog_weight, p.dmean = dmean;
        p.dcovariance = s.kind == SATTN_COVARIANCE_ZERO ? nullptr : (R *)dcovariance;
        if ((sizeof(R) == 4 ? sattn_mixture_workspace_f32
                            : sattn_mixture_workspace_f64)(&p, &p.work_bytes))
            p.work_bytes = 0;
        const int64_t plain = s.components * (s.width + 1),
                      library = p.work_bytes / int64_t(sizeof(R));
        return plain > library ? plain : library;
    }
};

void count(benchmark::State &state, const shape &s, int64_t factor)
{
    state.SetItemsProcessed(state.iterations() * flops(s) * factor);
}

template <class R> void add(const shape &s)
{
    const std::string rest = std::string("/") + type_name<R> + "/" + kind_name[s.kind] + "/" +
                             std::to_string(s.queries) + "x" + std::to_string(s.components) + "x" +
                             std::to_string(s.width) + "/threads" + std::to_string(s.threads);
    const bool large = flops(s) > int64_t{1} << 26; /* the scalar row would take minutes */
    const int32_t least = large || s.threads > 1 ? SATTN_ISA_NEON : SATTN_ISA_SCALAR;
    register_rows("mixture-forward" + rest, least, [=](benchmark::State &state) {
        problem<R> k(s, false);
        measure(state, [&] { return forward(&k.p, R()); });
        count(state, s, 1);
    });
    register_rows("mixture-both" + rest, least, [=](benchmark::State &state) {
        problem<R> k(s, true);
        measure(state, [&] {
            const int32_t status = forward(&k.p, R());
            return status == SATTN_OK ? backward(&k.p, R()) : status;
        });
        count(state, s, 4);
        state.counters["work_bytes"] = double(k.p.work_bytes);
    });
#ifdef SATTN_PEER_ROWS
    const auto *row = &peer_avx512(R());
    if (!sattn_isa_available(row->isa))
        row = &peer_avx2(R());
    if (sattn_isa_available(row->isa) && s.kind == SATTN_COVARIANCE_FULL && s.threads == 1)
        benchmark::RegisterBenchmark(("mixture-forward" + rest + "/plain-" + row->name).c_str(),
                                     [=](benchmark::State &state) {
                                         problem<R> k(s, false);
                                         measure(state, [&] {
                                             row->mixture(s.queries, s.components, s.width, k.tilt,
                                                          k.log_weight, k.mean, k.covariance,
                                                          k.buffer, k.out);
                                             return SATTN_OK;
                                         });
                                         count(state, s, 1);
                                     });
#endif
}

template <class R> void add_type()
{
    for (int32_t kind : {SATTN_COVARIANCE_FULL, SATTN_COVARIANCE_LOW_RANK, SATTN_COVARIANCE_DIAG,
                         SATTN_COVARIANCE_ZERO})
        for (int32_t threads : {1, 2}) {
            add<R>({kind, 4096, 64, 64, threads});
            add<R>({kind, 1024, 512, 128, threads});
            add<R>({kind, 65536, 8, 16, threads});
            add<R>({kind, 4096, 16, 4, threads});
            add<R>({kind, 1, 4096, 64, threads});
        }
    add_peak<R>();
}

} // namespace

int main(int argc, char **argv)
{
    add_type<float>();
    add_type<double>();
    return run_benchmarks(argc, argv);
}
