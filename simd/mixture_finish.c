/* SPDX-License-Identifier: BSD-2-Clause */
/* From a partial result to what the caller sees, and from that to what backward needs. */
#include "mixture_tile.h"

typedef struct T(sattn_finish) finish;

static void write_out(const finish *f, const R *sum)
{
    for (int64_t q = 0; q < SATTN_TILE; q += VL) {
        /* A sum is 0 or at least 1. An empty one is taken as 1 and loses the centre, which leaves
         * 0; NaN passes. (A select would not do: clang divides first, which flags a division by 0.)
         * One division a lane: on AVX-512 it costs as much as 16 products, which is a value of half
         * an ULP more. */
        const V s = v_load(sum + q), zero = v_set(0);
        const M empty = v_le(s, zero);
        const V inverse = v_div(v_set(1), v_max(v_set(1), s));
        for (int64_t i = 0; i < f->value_width; i++) {
            const V x = v_mul(v_load(f->state + i * SATTN_TILE + q), inverse);
            const V c = f->joint ? zero : v_select(empty, zero, v_set(f->centre[i]));
            v_store(f->scratch + i * SATTN_TILE + q, v_add(x, c));
        }
    }
    K(unpack)(f->lanes, f->value_width, f->scratch, f->out, f->out_row, 0);
}

void K(mixture_finish)(const finish *f)
{
    const R *largest = f->state + f->value_width * SATTN_TILE, *sum = largest + SATTN_TILE;
    R *log_sum = f->scratch + f->value_width * SATTN_TILE, *cgf = log_sum + SATTN_TILE;
    if (f->out)
        write_out(f, sum);
    for (int64_t q = 0; q < SATTN_TILE; q += VL) {
        const V s = v_load(sum + q), top = v_load(largest + q);
        /* 0 stays 0, without a logarithm of it; NaN stays NaN */
        const V l = v_select(v_lt(v_set(0), s), v_log(v_max(v_set(1), s)), s);
        V shift = v_set(0);
        for (int64_t i = 0; i < f->width; i++)
            shift = v_fma(v_load(f->tilt + i * SATTN_TILE + q), v_set(f->centre[i]), shift);
        v_store(log_sum + q, l);
        v_store(cgf + q, v_add(v_add(top, l), v_select(v_le(s, v_set(0)), v_set(0), shift)));
    }
    for (int64_t q = 0; f->stats && q < f->lanes; q++) {
        f->stats[2 * q] = largest[q];
        f->stats[2 * q + 1] = log_sum[q];
    }
    for (int64_t q = 0; f->cgf && q < f->lanes; q++)
        f->cgf[q] = cgf[q];
}

void K(mixture_weights)(int64_t n, R *logits, R largest, R log_sum)
{
    const V next = reference(v_set(largest)), l = v_set(log_sum);
    for (int64_t i = 0; i < n; i += VL) {
        const int64_t left = n - i < VL ? n - i : VL;
        v_store_n(logits + i, v_exp(v_sub(v_sub(v_load_n(logits + i, left), next), l)), left);
    }
}

void K(mixture_offset)(int64_t width, const R *dout, const R *out, const R *centre, const R *dcgf,
                       R *offset)
{
    for (int64_t q = 0; q < SATTN_TILE; q += VL) {
        V x = dcgf ? v_load(dcgf + q) : v_set(0);
        for (int64_t i = 0; dout && i < width; i++) {
            const V c = v_set(centre ? centre[i] : 0), y = v_load(out + i * SATTN_TILE + q);
            x = v_fnma(v_load(dout + i * SATTN_TILE + q), v_sub(y, c), x);
        }
        v_store(offset + q, x);
    }
}
