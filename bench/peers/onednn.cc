/* SPDX-License-Identifier: BSD-2-Clause */
#include "onednn.h"

#include <dnnl.hpp>

softmax_of_shape onednn_softmax(int64_t rows, int64_t n)
{
    using namespace dnnl;
    static engine cpu(engine::kind::cpu, 0);
    static stream queue(cpu);
    const memory::desc shape({rows, n}, memory::data_type::f32, memory::format_tag::ab);
    const softmax_forward::desc operation(prop_kind::forward_inference, shape, 1);
    const softmax_forward forward(softmax_forward::primitive_desc(operation, cpu));
    const memory in(shape, cpu, nullptr), out(shape, cpu, nullptr);
    return [=](const float *x, float *y) {
        in.set_data_handle(const_cast<float *>(x));
        out.set_data_handle(y);
        forward.execute(queue, {{DNNL_ARG_SRC, in}, {DNNL_ARG_DST, out}});
        queue.wait();
        return 0;
    };
}

attention_of_shape onednn_attention(int64_t heads, int64_t queries, int64_t keys, int64_t width,
                                    float scale)
{
    using namespace dnnl;
    using tag = memory::format_tag;
    static engine cpu(engine::kind::cpu, 0);
    static stream queue(cpu);
    const auto describe = [](int64_t h, int64_t rows, int64_t cols, tag order) {
        return memory::desc({h, rows, cols}, memory::data_type::f32, order);
    };
    const memory::desc q = describe(heads, queries, width, tag::abc);
    const memory::desc k = describe(heads, width, keys, tag::acb);
    const memory::desc v = describe(heads, keys, width, tag::abc);
    const memory::desc scores = describe(heads, queries, keys, tag::abc);
    primitive_attr scaled;
    scaled.set_output_scales(0, {scale});
    const matmul first(matmul::primitive_desc(matmul::desc(q, k, scores), scaled, cpu));
    const matmul second(matmul::primitive_desc(matmul::desc(scores, v, q), cpu));
    const softmax_forward middle(softmax_forward::primitive_desc(
        softmax_forward::desc(prop_kind::forward_inference, scores, 2), cpu));
    const memory a(q, cpu, nullptr), b(k, cpu, nullptr), c(v, cpu, nullptr), d(q, cpu, nullptr);
    const memory s(scores, cpu);
    return [=](const float *qx, const float *kx, const float *vx, float *out) {
        a.set_data_handle(const_cast<float *>(qx));
        b.set_data_handle(const_cast<float *>(kx));
        c.set_data_handle(const_cast<float *>(vx));
        d.set_data_handle(out);
        first.execute(queue, {{DNNL_ARG_SRC, a}, {DNNL_ARG_WEIGHTS, b}, {DNNL_ARG_DST, s}});
        middle.execute(queue, {{DNNL_ARG_SRC, s}, {DNNL_ARG_DST, s}});
        second.execute(queue, {{DNNL_ARG_SRC, s}, {DNNL_ARG_WEIGHTS, c}, {DNNL_ARG_DST, d}});
        queue.wait();
        return 0;
    };
}
