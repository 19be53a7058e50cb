/* SPDX-License-Identifier: BSD-2-Clause */
#include "learn.h"

#include <stdlib.h>
#include <zlib.h>

float *read_digits(const char *path, int64_t *n)
{
    enum { FIELDS = 65, MOST = 100000 };
    char line[1024];
    float *data = array((int64_t)FIELDS * MOST, sizeof(float));
    gzFile file = gzopen(path, "rb");
    if (!file)
        fail("cannot read %s", path);
    for (*n = 0; *n < MOST && gzgets(file, line, sizeof line); ++*n) {
        char *at = line, *end;
        for (int i = 0; i < FIELDS; i++, at = end + 1) {
            data[*n * FIELDS + i] = strtof(at, &end);
            if (end == at || (*end != ',' && i < FIELDS - 1))
                fail("%s: line %d: not %d numbers", path, (int)*n + 1, FIELDS);
        }
    }
    gzclose(file);
    if (*n == 0)
        fail("%s: no data", path);
    return data;
}
