/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SATTN_CPU_H
#define SATTN_CPU_H

#include <stdint.h>

/* 1 if processor and operating system both offer all that the row of kernels `isa` uses, else 0. */
int sattn_cpu_can(int32_t isa);

#endif
