/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef ORACLE_ATTENTION_H
#define ORACLE_ATTENTION_H

/* Softmax attention over a finite prompt in long double, written from the formulas alone, pair by
 * pair. Arrays are dense. Beside each number stands a bound of the error of an implementation in
 * arithmetic of unit roundoff e, in units of e and of first order (mixture.h). */

#include "mixture.h"

typedef struct {
    int64_t batch, heads, key_heads, queries, keys, width, value_width;
    double scale, softcap;      /* softcap 0 = none */
    int64_t left, right;        /* < 0 = all */
    int bottom_right;           /* which key stands opposite a query */
    const int64_t *query_count; /* [B] or NULL = all */
    const int64_t *key_count;
    const double *q, *k, *v;    /* [B][H][M][D], [B][Hk][N][D], [B][Hk][N][E] */
    const double *bias;         /* [B][H][M][N] or NULL */
    const unsigned char *mask;  /* [B][H][M][N] or NULL */
    const double *slope, *sink; /* [B][H] or NULL */
    const double *dout, *dlse;  /* [B][H][M][E], [B][H][M] */
} oracle_attention;

/* Shapes as above; all of them are set. dsink [B][H], dscale [1] */
typedef struct {
    oracle_number *out, *lse, *dq, *dk, *dv, *dbias, *dsink, *dscale;
} oracle_attention_results;

void oracle_attend(const oracle_attention *x, const oracle_attention_results *y);

#endif
