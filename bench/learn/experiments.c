/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of experiments: a line here, a file of this folder that defines it. */
#include "learn.h"

#include <string.h>

#define EXPERIMENTS(X)                                                                             \
    X(exact)                                                                                       \
    X(descent)                                                                                     \
    X(kernel)                                                                                      \
    X(iterate)                                                                                     \
    X(maps)                                                                                        \
    X(concentration)                                                                               \
    X(digits)                                                                                      \
    X(classify)                                                                                    \
    X(denoise)                                                                                     \
    X(all)

#define DECLARE(name) extern const experiment experiment_##name;
#define POINT(name) &experiment_##name,

EXPERIMENTS(DECLARE)
const experiment *const experiments[] = {EXPERIMENTS(POINT) NULL};

const experiment *experiment_named(const char *name)
{
    for (int i = 0; experiments[i]; i++)
        if (strcmp(experiments[i]->name, name) == 0)
            return experiments[i];
    return NULL;
}
