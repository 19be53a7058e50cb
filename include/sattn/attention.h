/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SATTN_ATTENTION_H
#define SATTN_ATTENTION_H

/* Softmax attention over a finite prompt, exact, in memory O(M + N), forward and backward.
 *
 *   For query i of head h and key j of key head h / (H / Hk), whole division, of one batch entry:
 *     r_ij = q_i . k_j
 *     s_ij = cap(scale r_ij) + bias_ij - slope |p_i - j|      cap(x) = softcap tanh(x / softcap)
 *     j is live for i if  j < key length,  p_i - left <= j <= p_i + right,  mask_ij is not 0  and
 *       bias_ij > -inf;  p_i = i (SATTN_TOP_LEFT) or i + N - M (SATTN_BOTTOM_RIGHT)
 *     m_i = max s_ij,  z_i = sum_j exp(s_ij - m_i) over the live keys and the sink
 *     w_ij = exp(s_ij - m_i) / z_i,   out_i = sum_j w_ij v_j,   lse_i = m_i + log z_i
 *   The sink is one more logit that takes weight and has the value 0.
 *   Source: arXiv 1706.03762 (the operator), 2205.14135 (one pass over blocks of keys), 1805.02867
 *   (online softmax), 2309.17453 (sinks), 2108.12409 (slopes: ALiBi). Since: 0.2 */

#include "base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* An array [B][H][rows][columns] of the caller's, by its strides in elements. A stride of 0 repeats
 * an input; k and v have Hk heads. data = NULL: not there. */
typedef struct sattn_input {
    const void *data;
    int64_t batch, head, row, col;
} sattn_input;

typedef struct sattn_output {
    void *data;
    int64_t batch, head, row, col;
} sattn_output;

/* Diagonal: which key stands opposite query i */
#define SATTN_TOP_LEFT 0     /* key i */
#define SATTN_BOTTOM_RIGHT 1 /* key i + N - M: the last query opposite the last key */

/* One problem. Fill it with sattn_attention_init, set the pointers that you have, change strides if
 * your arrays are not packed. Arrays hold float (_f32) or double (_f64) unless said otherwise. */
typedef struct sattn_attention {
    int64_t size;                                 /* sizeof (sattn_attention) */
    int64_t batch, heads, key_heads;              /* B, H, Hk; H a multiple of Hk */
    int64_t queries, keys, width, value_width;    /* M, N, D, E */
    double scale;                                 /* of r; init: 1 / sqrt(D); of any sign */
    double softcap;                               /* 0 = none */
    int64_t left, right; /* keys before and after the diagonal that a query sees; -1 = all.
                          * Causal: right = 0 */
    int32_t diagonal;    /* SATTN_TOP_LEFT or SATTN_BOTTOM_RIGHT */
    int32_t storage;     /* SATTN_STORAGE_... of k and v */
    int32_t flags;       /* SATTN_ACCUMULATE: backward adds to the gradients; or 0 */
    int32_t threads;     /* as in base.h */

    /* Sequences of their own length; each NULL = all alike. Packed sequences: rows of batch entry b
     * are query_offset[b] .. query_offset[b + 1] - 1 of one array (the strides `batch` of q, out,
     * dout, dq, stats, lse and dlse are not used), likewise keys; M and N bound the lengths. */
    const int64_t *key_length;   /* [B] keys that count; the rest is never read */
    const int64_t *query_offset; /* [B + 1] */
    const int64_t *key_offset;   /* [B + 1] */

    /* A key cache in pages of page_size keys (a multiple of 64), 0 = none: key j of batch entry b
     * is key j % page_size of page t = page[b page_batch + j / page_size], which begins t times the
     * stride `batch` of k (v) after its data. Forward only. */
    const int32_t *page;
    int64_t page_batch, page_size;

    sattn_input q, k, v; /* [B][H][M][D], [B][Hk][N][D], [B][Hk][N][E] */
    sattn_input bias;    /* [B][H][M][N] or NULL; -inf masks */
    sattn_input mask;    /* [B][H][M][N] uint8_t or NULL; 0 masks */
    sattn_input slope;   /* [B][H] or NULL; row and col are not used */
    sattn_input sink;    /* [B][H] or NULL; likewise; -inf = none */

    /* Outputs of forward, each may be NULL. Backward reads out and stats. */
    sattn_output out;   /* [B][H][M][E] */
    sattn_output stats; /* [B][H][M][2]: m, log z */
    sattn_output lse;   /* [B][H][M]; col is not used */

    /* Cotangents; each may be NULL (zero). */
    sattn_input dout; /* [B][H][M][E] */
    sattn_input dlse; /* [B][H][M] */

    /* Outputs of backward, each may be NULL. A stride of 0 in dbias and dsink sums over that axis:
     * they have the strides of bias and sink unless the caller gives others. */
    sattn_output dq, dk, dv; /* shapes of q, k, v */
    sattn_output dbias;      /* [B][H][M][N] */
    sattn_output dsink;      /* [B][H] */
    void *dscale;            /* one number */

    /* Workspace: at least sattn_attention_workspace bytes at a multiple of 64 that share nothing
     * with an array, or NULL and the library allocates and frees it within the call. */
    void *work;
    int64_t work_bytes;
} sattn_attention;

/* Fills *p with the packed strides of the shape ([B][H][M][D] and so on; a bias or mask [M][N] for
 * every head, sinks and slopes [H]), scale = 1 / sqrt(D), left = right = -1, all else 0 or NULL.
 * `size` is sizeof (sattn_attention).
 * Errors: SATTN_ENULL, SATTN_ESTRUCT (size), SATTN_ESIZE (a negative or overflowing shape, or heads
 *         not a multiple of key_heads). */
SATTN_API int32_t sattn_attention_init(sattn_attention *p, int64_t size, int64_t batch,
                                       int64_t heads, int64_t key_heads, int64_t queries,
                                       int64_t keys, int64_t width, int64_t value_width);

/* Bytes of workspace that forward and backward of this shape need for p->threads threads. */
SATTN_API int32_t sattn_attention_workspace_f32(const sattn_attention *p, int64_t *bytes);
SATTN_API int32_t sattn_attention_workspace_f64(const sattn_attention *p, int64_t *bytes);

/* out, stats, lse from q, k, v.
 *
 * Units:   scale r, bias, slope and sink are pure numbers.
 * Errors:  SATTN_ENULL q, k or v is NULL while its size is not 0; SATTN_ESTRUCT; SATTN_ESIZE;
 *          SATTN_EOPTION an unknown flag, storage or diagonal; SATTN_EVALUE scale or softcap is not
 *          finite (f32: or overflows or vanishes as float), softcap < 0, left or right < -1,
 *          lengths or offsets that decrease or exceed N or M, threads out of range; SATTN_ESTRIDE
 *          elements of an output overlap; SATTN_EALIAS an output shares memory with an input or
 *          another output (by spans; interleaved outputs of equal strides are told apart);
 *          SATTN_EWORKSPACE; SATTN_ENOMEM.
 * Numbers: an error of s_ij is a relative one of w_ij, D u scale sum |q||k| + 2 u |s - m| at worst;
 *          weights below e^-87 (f64: e^-708) of the largest are 0; docs/accuracy.md. A key that is
 *          not live for any query is never read; one that is not live for this query never reaches
 *          it, whatever it holds. No live key: out = 0, stats {-inf, 0}, lse = -inf. NaN in live
 *          data makes the rows that see it NaN and no others; so does a logit of +inf.
 * Threads: over tiles of queries, or over blocks of 2048 keys when there are few queries.
 * Memory:  some tiles of 48 x D and 64 x D elements a thread. */
SATTN_API int32_t sattn_attention_forward_f32(const sattn_attention *p);
SATTN_API int32_t sattn_attention_forward_f64(const sattn_attention *p);

/* Gradients of  <dout, out> + <dlse, lse>,  given out and stats as forward left them.
 *
 *   e_ij = w_ij (dout_i . v_j - dout_i . out_i + dlse_i),   g_ij = scale cap'(scale r_ij) e_ij
 *   dv_j = sum w_ij dout_i    dq_i = sum g_ij k_j    dk_j = sum g_ij q_i    dbias_ij = e_ij
 *   dscale = sum cap'(scale r_ij) r_ij e_ij          dsink = sum w_i,sink (dlse_i - dout_i . out_i)
 *
 * Errors:  as forward; SATTN_ENULL also if out or stats is NULL, or dbias (dsink) is asked for
 *          without bias (sink).
 * Numbers: every gradient is summed in a fixed order. Masked keys and rows without a live key have
 *          gradients of exactly 0.
 * Threads: over blocks of 512 keys, each of which follows its predecessor through the queries; no
 *          atomics on numbers. A dbias that sums over batch or heads runs these one after another.
 * Memory:  some tiles of 64 x D a thread and M numbers a head. */
SATTN_API int32_t sattn_attention_backward_f32(const sattn_attention *p);
SATTN_API int32_t sattn_attention_backward_f64(const sattn_attention *p);

#ifdef __cplusplus
}
#endif
#endif
