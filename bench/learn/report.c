/* SPDX-License-Identifier: BSD-2-Clause */
#include "report.h"
#include "result.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { ROWS = 16, SEEDS = 64, EXAMPLES = 12, AFFINE = 1 };

struct report {
    const settings *s;
    int32_t seed, rows;
    const char *method[ROWS];
    double error[ROWS][SEEDS], seconds[ROWS];
    float centre[WIDTH];
    FILE *examples;
    result *out;
};

static void example(const report *r, const char *method, const float *digits)
{
    for (int i = 0; r->seed == 0 && i < EXAMPLES; i++) {
        fprintf(r->examples, "\"%s\",%d", method, i);
        for (int j = 0; j < WIDTH; j++)
            fprintf(r->examples, ",%.4f", digits[i * WIDTH + j] + r->centre[j]);
        fputc('\n', r->examples);
    }
}

report *report_new(const settings *s)
{
    report *r = array(1, sizeof *r);
    r->s = s;
    r->out = result_new(s);
    r->examples = result_file(s, "examples.csv");
    return r;
}

void report_seed(report *r, int32_t seed, int64_t tests, const float *centre, const float *test)
{
    (void)tests;
    r->seed = seed;
    r->rows = 0;
    memcpy(r->centre, centre, sizeof r->centre);
    example(r, "clean", test);
}

void report_row(report *r, const char *method, double error, double seconds, const float *predicted)
{
    r->method[r->rows] = method;
    r->error[r->rows][r->seed] = error;
    r->seconds[r->rows] += seconds;
    example(r, method, predicted);
    r->rows++;
}

/* Mean and standard error over the seeds */
static void summary(const report *r, const double *x, double *mean, double *deviation)
{
    const int n = r->s->seeds;
    double sum = 0, square = 0;
    for (int i = 0; i < n; i++) {
        sum += x[i];
        square += x[i] * x[i];
    }
    *mean = sum / n;
    *deviation = n > 1 ? sqrt(fmax(0, square / n - *mean * *mean) / (n - 1)) : 0;
}

static void write_row(const report *r, int row)
{
    double gain[SEEDS], mean, deviation;
    char text[200];
    for (int k = 0; k < r->s->seeds; k++)
        gain[k] = 100 * (1 - r->error[row][k] / r->error[AFFINE][k]);
    summary(r, r->error[row], &mean, &deviation);
    result_number(r->out, r->method[row], mean, NAN, 0, "");
    result_values(r->out, r->s->seeds, r->error[row]);
    snprintf(text, sizeof text, "%s: +- %.4f, %.2f s a seed", r->method[row], deviation,
             r->seconds[row] / r->s->seeds);
    result_note(r->out, text);
    if (row <= AFFINE)
        return;
    summary(r, gain, &mean, &deviation);
    snprintf(text, sizeof text, "%s: %% below the affine predictor", r->method[row]);
    result_number(r->out, text, mean, NAN, 0, "");
    result_values(r->out, r->s->seeds, gain);
}

int report_end(report *r)
{
    for (int i = 0; i < r->rows; i++)
        write_row(r, i);
    result_note(r->out, "Squared error of denoised digits: sum over 64 pixels, mean over held-out "
                        "digits and seeds (each a new split and new noise), +- its standard error; "
                        "seconds of training and prediction.");
    if (fclose(r->examples))
        fail("cannot write to %s", r->s->out);
    const int status = result_end(r->out);
    sattn_free(r);
    return status;
}
