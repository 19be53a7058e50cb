/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SATTN_LIB_MERGE_H
#define SATTN_LIB_MERGE_H

#include "sattn/merge.h"

/* Copies the caller's descriptor to *p and checks all of it; back = 1 for backward. */
int32_t sattn_merge_check(sattn_merge *p, const sattn_merge *given, int back,
                          int64_t element_bytes);

#endif
