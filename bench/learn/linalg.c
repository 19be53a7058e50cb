/* SPDX-License-Identifier: BSD-2-Clause */
#include "learn.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void fail(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fputs("sattn-learn: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    exit(1);
}

void must(int32_t status, const char *what)
{
    if (status != SATTN_OK)
        fail("%s: %s", what, sattn_status_string(status));
}

void *array(int64_t count, int64_t bytes)
{
    void *memory = sattn_alloc(count * bytes);
    if (!memory)
        fail("out of memory");
    return memset(memory, 0, (size_t)(count * bytes));
}

/* Sums stay in registers for 32 columns at a time. The same operations in each clone: no fused
 * ones. */
#ifdef __x86_64__
__attribute__((target_clones("avx512f", "avx2", "default")))
#endif
static void
product(int64_t m, int64_t n, int64_t k, const float *a, int64_t a_row, int64_t a_col,
        const float *b, float *restrict c)
{
    enum { COLUMNS = 32 };
    for (int64_t j = 0; j < n; j += COLUMNS)
        for (int64_t i = 0; i < m; i++) {
            const int64_t width = n - j < COLUMNS ? n - j : COLUMNS;
            float sum[COLUMNS] = {0};
            for (int64_t p = 0; p < k; p++) {
                const float x = a[i * a_row + p * a_col], *y = b + p * n + j;
                if (width == COLUMNS)
                    for (int64_t l = 0; l < COLUMNS; l++)
                        sum[l] += x * y[l];
                else
                    for (int64_t l = 0; l < width; l++)
                        sum[l] += x * y[l];
            }
            for (int64_t l = 0; l < width; l++)
                c[i * n + j + l] += sum[l];
        }
}

void multiply(int64_t m, int64_t n, int64_t k, const float *a, const float *b, float *c)
{
    product(m, n, k, a, k, 1, b, c);
}

void multiply_at(int64_t m, int64_t n, int64_t k, const float *a, const float *b, float *c)
{
    product(m, n, k, a, 1, m, b, c);
}

void multiply_bt(int64_t m, int64_t n, int64_t k, const float *a, const float *b, float *c)
{
    float *transposed = array(k * n, sizeof(float));
    for (int64_t j = 0; j < n; j++)
        for (int64_t p = 0; p < k; p++)
            transposed[p * n + j] = b[j * k + p];
    multiply(m, n, k, a, transposed, c);
    sattn_free(transposed);
}

/* s = L L', then L^-1, then s^-1 = L^-T L^-1 */
double invert(int64_t d, const double *s, double *inverse)
{
    double *l = array(d * d, sizeof(double)), *w = array(d * d, sizeof(double)), log_det = 0;
    for (int64_t i = 0; i < d; i++) {
        for (int64_t j = 0; j <= i; j++) {
            double x = s[i * d + j];
            for (int64_t k = 0; k < j; k++)
                x -= l[i * d + k] * l[j * d + k];
            l[i * d + j] = i == j ? sqrt(x) : x / l[j * d + j];
        }
        log_det += 2 * log(l[i * d + i]);
        w[i * d + i] = 1 / l[i * d + i];
        for (int64_t k = 0; k < i; k++) /* row i of L^-1 from the rows above it */
            for (int64_t j = 0; j <= k; j++)
                w[i * d + j] -= l[i * d + k] * w[k * d + j] * w[i * d + i];
    }
    memset(inverse, 0, (size_t)(d * d) * sizeof(double));
    for (int64_t k = 0; k < d; k++)
        for (int64_t i = 0; i <= k; i++)
            for (int64_t j = 0; j <= k; j++)
                inverse[i * d + j] += w[k * d + i] * w[k * d + j];
    sattn_free(l);
    sattn_free(w);
    return log_det;
}
