/* SPDX-License-Identifier: BSD-2-Clause */
/* unload LIBRARY: a plugin's life, a hundred times: load, compute with threads, unload. */
#include "process.h"
#include "sattn/softmax.h"

#include <dlfcn.h>
#include <string.h>

int main(int count, char **arguments)
{
    float *x = floats(), *y = floats(), *first = floats();
    EXPECT(count == 2, "which library?");
    fill(x);
    for (int i = 0; i < 100; i++) {
        void *library = dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL);
        EXPECT(library, "%s", dlerror());
        int32_t (*softmax)(int64_t, int64_t, const float *, int64_t, float *, int64_t, int32_t);
        void *symbol = dlsym(library, "sattn_softmax_f32");
        EXPECT(symbol, "%s", dlerror());
        memcpy(&softmax, &symbol, sizeof softmax); /* ISO C has no cast from object to function */
        EXPECT(softmax(ROWS, COLUMNS, x, COLUMNS, i ? y : first, COLUMNS, 4) == SATTN_OK, "%d", i);
        EXPECT(i == 0 || memcmp(y, first, ELEMENTS * sizeof *y) == 0, "other bits in load %d", i);
        EXPECT(dlclose(library) == 0, "%s", dlerror());
    }
    free(x);
    free(y);
    free(first);
    return 0;
}
