/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SATTN_LIB_HYBRID_H
#define SATTN_LIB_HYBRID_H

/* Hybrid attention: descriptors, checked. */

#include "sattn/hybrid.h"

typedef struct {
    sattn_hybrid p;
    sattn_attention exact;
    sattn_mixture rest; /* null where the kind or E = 0 does without */
} sattn_hybrid_given;

/* Copies the caller's descriptors and checks all of them but the values of log weights and
 * limits: as sattn_check_arguments. */
int32_t sattn_hybrid_check(sattn_hybrid_given *g, const sattn_hybrid *given, int back,
                           int64_t element_bytes);

#endif
