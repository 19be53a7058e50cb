/* SPDX-License-Identifier: BSD-2-Clause */
#include "sattn/base.h"

#include <stdlib.h>

#define STRING_(x) #x
#define STRING(x) STRING_(x)

static const char *const messages[] = {
    "success",
    "a required pointer is NULL",
    "a size is negative or a product of sizes overflows",
    "a stride is too small, or output elements overlap",
    "an unknown flag or option value",
    "a descriptor's size is wrong or its unknown tail is not zero",
    "a parameter is not finite or outside its range",
    "arguments overlap in a way that the function forbids",
    "out of memory",
    "the workspace is too small or misaligned",
    "cancelled by the progress callback",
    "not supported by this machine or build",
};

const char *sattn_status_string(int32_t status)
{
    const int64_t index = -(int64_t)status;
    if (index < 0 || index >= (int64_t)(sizeof messages / sizeof messages[0]))
        return "unknown status";
    return messages[index];
}

int32_t sattn_version(void)
{
    return SATTN_VERSION_MAJOR * 10000 + SATTN_VERSION_MINOR * 100 + SATTN_VERSION_PATCH;
}

const char *sattn_version_string(void)
{
    return STRING(SATTN_VERSION_MAJOR) "." STRING(SATTN_VERSION_MINOR) "." STRING(
        SATTN_VERSION_PATCH);
}

const char *sattn_build_info(void)
{
    return "libsattn " STRING(SATTN_VERSION_MAJOR) "." STRING(SATTN_VERSION_MINOR) "." STRING(
        SATTN_VERSION_PATCH) ", "
#if defined(__clang__)
                             "clang " __clang_version__
#else
                             "gcc " __VERSION__
#endif
                             ", "
#ifdef _OPENMP
                             "OpenMP " STRING(_OPENMP)
#else
                             "without OpenMP"
#endif
#if defined(__x86_64__)
                                 ", scalar avx2 avx512";
#elif defined(__aarch64__)
                             ", scalar neon";
#else
                             ", scalar";
#endif
}

void *sattn_alloc(int64_t bytes)
{
    if (bytes < 0 || bytes > INT64_MAX - 64)
        return NULL;
    /* aligned_alloc wants a multiple of the alignment; 0 bytes still give a pointer to free */
    return aligned_alloc(64, (size_t)(bytes + (bytes == 0) + 63) / 64 * 64);
}

void sattn_free(void *memory)
{
    free(memory);
}
