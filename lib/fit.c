/* SPDX-License-Identifier: BSD-2-Clause */
#include "real.h"
#include "sattn/fit.h"
int32_t FN(sattn_fit)(const sattn_fit *p) { (void)p; return SATTN_EUNSUPPORTED; }
