/* SPDX-License-Identifier: BSD-2-Clause */
/* Softmax attention: cases with known answers from public bug reports, and identities. */
#include "attend.h"

#define NOTHING (-(real)INFINITY)

static sattn_attention packed(int64_t heads, int64_t key_heads, int64_t m, int64_t n, int64_t d,
                              int64_t e, double scale)
{
    sattn_attention p;
    at("H %d/%d M %d N %d D %d E %d", (int)heads, (int)key_heads, (int)m, (int)n, (int)d, (int)e);
    check(sattn_attention_init(&p, sizeof p, 1, heads, key_heads, m, n, d, e) == SATTN_OK);
    p.scale = scale;
    return p;
}

static void forward(const sattn_attention *p)
{
    check(FN(sattn_attention_forward)(p) == SATTN_OK);
}

static void near_all(const char *what, int64_t n, const real *got, const double *want, double bound)
{
    for (int64_t i = 0; i < n; i++)
        check_near(what, i, (double)got[i], want[i], bound * (1 + fabs(want[i])));
}

/* A row without a live key, forward and backward, its cotangent large or NaN; the mask as booleans
 * and as a bias of -inf; the empty row first, in the middle and last. */
EACH_ROW(attention, empty_row)
{
    static const double out[] = {3, 4, 3.51046953, 4.51046953};
    static const double lse[] = {1.40025396, 2.1004053};
    static const double dq[] = {0, 0, 0.22402319, 1.10173744};
    static const double dk[] = {-1.10173744, -1.10173744, -0.22402319,
                                -0.22402319, 1.32576063,  1.32576063};
    static const double dv[] = {0.624127539, -0.00348984348, 0.124127539,
                                0.496510157, 0.751744922,    0.506979687};
    sattn_isa_set(*isa);
    const real k[] = {1, 0, 0, 1, 1, 1}, v[] = {1, 2, 3, 4, 5, 6};
    for (int empty = 0; empty < 3; empty++)
        for (int form = 0; form < 4; form++) {
            const int rows[2] = {empty == 0, empty == 2 ? 1 : 2};
            const double large = form / 2 ? NAN : 7;
            real q[6] = {0}, dout[6], o[6], l[3], stats[6], gq[6], gk[6], gv[6], bias[9];
            unsigned char mask[9] = {0};
            const real live_q[2][2] = {{1, 0}, {1, 1}}, live_dout[2][2] = {{1, -1}, {0.5, 2}};
            for (int i = 0; i < 2; i++) {
                q[2 * empty + i] = (real)i;
                dout[2 * empty + i] = (real)large;
                for (int j = 0; j < 2; j++) {
                    q[2 * rows[i] + j] = live_q[i][j];
                    dout[2 * rows[i] + j] = live_dout[i][j];
                }
            }
            for (int j = 0; j < 3; j++) {
                mask[3 * rows[0] + j] = j != 1;
                mask[3 * rows[1] + j] = 1;
            }
            for (int i = 0; i < 9; i++)
                bias[i] = mask[i] ? 0 : NOTHING;
            sattn_attention p = packed(1, 1, 3, 3, 2, 2, sqrt(0.5));
            p.q.data = q, p.k.data = k, p.v.data = v, p.dout.data = dout;
            p.out.data = o, p.lse.data = l, p.stats.data = stats;
            p.dq.data = gq, p.dk.data = gk, p.dv.data = gv;
            if (form % 2)
                p.bias.data = bias;
            else
                p.mask.data = mask;
            at("empty row %d form %d", empty, form);
            forward(&p);
            check(FN(sattn_attention_backward)(&p) == SATTN_OK);
            check(o[2 * empty] == 0 && o[2 * empty + 1] == 0 && l[empty] == NOTHING);
            check(gq[2 * empty] == 0 && gq[2 * empty + 1] == 0);
            const double bound = sizeof(real) == 4 ? 1e-6 : 3e-9; /* digits given */
            for (int i = 0; i < 2; i++) {
                near_all("out", 2, o + 2 * rows[i], out + 2 * i, bound);
                near_all("lse", 1, l + rows[i], lse + i, bound);
                near_all("dq", 2, gq + 2 * rows[i], dq + 2 * i, bound);
            }
            near_all("dk", 6, gk, dk, bound);
            near_all("dv", 6, gv, dv, bound);
        }
}

/* Key j is seen by queries j .. j + 9: the first windows of most tiles are empty. As a window and
 * as an array, bit for bit. */
EACH_ROW(attention, band)
{
    static const int64_t sizes[] = {63, 64, 65, 127, 128, 129, 512, 513, 640, 1025};
    sattn_isa_set(*isa);
    for (int i = 0; i < 10; i++) {
        const int64_t n = sizes[i], row = n * 4;
        const size_t bytes = (size_t)row * sizeof(real);
        real *ones = guarded(bytes, ROOMY, 0), *grads[2][6], *outs[2][3];
        unsigned char *mask = guarded((size_t)(n * n), ROOMY, 0);
        for (int64_t j = 0; j < row; j++)
            ones[j] = 1;
        for (int64_t q = 0; q < n; q++)
            for (int64_t k = 0; k < n; k++)
                mask[q * n + k] = q - k >= 0 && q - k <= 9;
        for (int form = 0; form < 2; form++) {
            sattn_attention p = packed(1, 1, n, n, 4, 4, 0.5);
            for (int j = 0; j < 3; j++) {
                outs[form][j] = guarded(bytes, ROOMY, 0);
                grads[form][j] = guarded(bytes, ROOMY, 0);
            }
            p.q.data = p.k.data = p.v.data = p.dout.data = ones;
            p.out.data = outs[form][0], p.stats.data = outs[form][1], p.lse.data = outs[form][2];
            p.dq.data = grads[form][0], p.dk.data = grads[form][1], p.dv.data = grads[form][2];
            if (form)
                p.mask.data = mask;
            else
                p.left = 9, p.right = 0;
            forward(&p);
            check(FN(sattn_attention_backward)(&p) == SATTN_OK);
        }
        check_same(outs[0][0], outs[1][0], row);
        check_same(outs[0][1], outs[1][1], 2 * n);
        for (int j = 0; j < 3; j++)
            check_same(grads[0][j], grads[1][j], row);
        for (int64_t q = 0; q < n; q++) {
            const double seen = (double)(q < 9 ? q + 1 : 10);
            double dv = 0;
            for (int64_t later = q; later < n && later <= q + 9; later++)
                dv += 1 / (double)(later < 9 ? later + 1 : 10);
            check_near("out", q, (double)outs[0][0][4 * q], 1, 8 * EPS);
            check_near("lse", q, (double)outs[0][2][q], 2 + log(seen), 8 * EPS);
            check_near("dq", q, (double)grads[0][0][4 * q], 0, 100 * EPS);
            check_near("dv", q, (double)grads[0][2][4 * q], dv, 40 * EPS);
        }
        release_guarded();
    }
}

/* Weights of equal scores show which keys each query sees. */
static void check_weights(int64_t m, int64_t n, int32_t diagonal, int kill_first,
                          const double *want)
{
    real zero[32] = {0}, identity[32] = {0}, out[32];
    unsigned char mask[32];
    sattn_attention p = packed(1, 1, m, n, 2, n, 1);
    for (int64_t i = 0; i < n; i++)
        identity[i * n + i] = 1;
    for (int64_t i = 0; i < m * n; i++)
        mask[i] = i % n != 0;
    p.q.data = p.k.data = zero, p.v.data = identity, p.out.data = out;
    p.right = 0, p.diagonal = diagonal;
    if (kill_first)
        p.mask.data = mask;
    forward(&p);
    for (int64_t i = 0; i < m * n; i++)
        check_near("weight", i, (double)out[i], want[i], want[i] == 0 ? 0 : 2 * EPS);
}

EACH_ROW(attention, diagonals)
{
    sattn_isa_set(*isa);
    check_weights(2, 5, SATTN_BOTTOM_RIGHT, 0,
                  (double[]){.25, .25, .25, .25, 0, .2, .2, .2, .2, .2});
    check_weights(2, 5, SATTN_TOP_LEFT, 0, (double[]){1, 0, 0, 0, 0, .5, .5, 0, 0, 0});
    check_weights(5, 2, SATTN_BOTTOM_RIGHT, 0, (double[]){0, 0, 0, 0, 0, 0, 1, 0, .5, .5});
    check_weights(5, 2, SATTN_TOP_LEFT, 0, (double[]){1, 0, .5, .5, .5, .5, .5, .5, .5, .5});
    check_weights(2, 5, SATTN_BOTTOM_RIGHT, 1,
                  (double[]){0, 1. / 3, 1. / 3, 1. / 3, 0, 0, .25, .25, .25, .25});
}

EACH_ROW(attention, grouped_heads)
{
    sattn_isa_set(*isa);
    real q[4] = {1, -2, 3, 0.5}, k[6] = {1, 2, 3, 4, 5, 6}, v[6] = {10, 10, 10, 20, 20, 20}, out[4];
    sattn_attention p = packed(4, 2, 1, 3, 1, 1, 1);
    p.q.data = q, p.k.data = k, p.v.data = v, p.out.data = out;
    forward(&p);
    for (int h = 0; h < 4; h++)
        check_near("out", h, (double)out[h], h < 2 ? 10 : 20, 40 * EPS);
    check(sattn_attention_init(&p, sizeof p, 1, 4, 3, 1, 3, 1, 1) == SATTN_ESIZE);
}

/* A cap, with lengths around those of the windows: what lies beyond takes no weight. */
EACH_ROW(attention, softcap)
{
    static const struct {
        int64_t n;
        double cap, step, from, out, lse;
    } cases[] = {
        {1, 2, 1, -3, 0, -1.81029651},           {63, 2, 1, -3, 32.9141006, 4.90510677},
        {65, 2, 1, -3, 33.0005333, 4.90793008},  {129, 2, 1, -3, 64.5949194, 5.60113346},
        {63, 30, 10, 0, 33.6522894, 31.4788503}, {64, 30, 10, 0, 33.6522894, 31.4788503},
        {65, 30, 10, 0, 33.6522894, 31.4788503}, {129, 30, 10, 0, 65.1523156, 32.1719979},
    };
    sattn_isa_set(*isa);
    for (int i = 0; i < 8; i++) {
        real q = 1, k[200], v[200], out, lse;
        for (int64_t j = 0; j < 200; j++) {
            k[j] = (real)(cases[i].step * (double)(j % 7) + cases[i].from);
            v[j] = j < cases[i].n ? (real)j : (real)NAN;
        }
        sattn_attention p = packed(1, 1, 1, 200, 1, 1, 1);
        const int64_t length = cases[i].n;
        p.key_length = &length;
        p.softcap = cases[i].cap;
        p.q.data = &q, p.k.data = k, p.v.data = v, p.out.data = &out, p.lse.data = &lse;
        forward(&p);
        const double bound = sizeof(real) == 4 ? 3e-6 : 1e-8;
        check_near("out", i, (double)out, cases[i].out, bound * (1 + cases[i].out));
        check_near("lse", i, (double)lse, cases[i].lse, bound * (1 + fabs(cases[i].lse)));
    }
}

/* No keys, no queries, no width: empty rows are 0 and -inf, and nothing else is touched. */
EACH_ROW(attention, empty_sizes)
{
    sattn_isa_set(*isa);
    real q[6] = {1, 2, 3, 4, 5, 6}, out[6], stats[6], lse[3];
    sattn_attention p = packed(1, 1, 3, 0, 2, 2, 1);
    p.q.data = q, p.out.data = out, p.stats.data = stats, p.lse.data = lse;
    forward(&p);
    for (int i = 0; i < 3; i++)
        check(out[2 * i] == 0 && out[2 * i + 1] == 0 && lse[i] == NOTHING &&
              stats[2 * i] == NOTHING && stats[2 * i + 1] == 0);
    p = packed(1, 1, 0, 3, 2, 2, 1);
    p.k.data = p.v.data = q;
    forward(&p);
    p = packed(1, 1, 3, 2, 0, 2, 1);
    p.v.data = q, p.out.data = out;
    forward(&p);
    check(out[0] == (real)2 && out[1] == (real)3); /* no width: all scores 0, the mean */
}
