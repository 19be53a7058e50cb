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
