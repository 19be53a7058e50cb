/* SPDX-License-Identifier: BSD-2-Clause */
#include "sattn/random.h"
