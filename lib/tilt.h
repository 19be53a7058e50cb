/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SATTN_LIB_TILT_H
#define SATTN_LIB_TILT_H

#include "sattn/tilt.h"

/* Copies the caller's descriptor to *p and checks all of it. */
int32_t sattn_tilt_check(sattn_tilt *p, const sattn_tilt *given, int backward,
                         int64_t element_bytes);

#endif
