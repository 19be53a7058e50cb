/* SPDX-License-Identifier: BSD-2-Clause */
/* The complete table of this row and type: a kernel that is missing is a link error. */
#include "vec.h"

extern const struct T(sattn_kernels) K(kernels);

#define KERNEL(type, name, arguments) .name = K(name),
const struct T(sattn_kernels) K(kernels) = {
#include "kernels.def"
};
