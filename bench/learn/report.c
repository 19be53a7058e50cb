/* SPDX-License-Identifier: BSD-2-Clause */
#define _POSIX_C_SOURCE 200809L
#include "report.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { ROWS = 16, SEEDS = 64, EXAMPLES = 12, AFFINE = 1 };

struct report {
    const settings *s;
    int32_t seed, rows;
    const char *method[ROWS];
    double error[ROWS][SEEDS], seconds[ROWS];
    float centre[WIDTH];
    FILE *examples;
};

static FILE *create(const settings *s, const char *name)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", s->out, name);
    FILE *file = fopen(path, "w");
    if (!file)
        fail("cannot write %s: %s", path, strerror(errno));
    return file;
}

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
    if (s->seeds > SEEDS)
        fail("at most %d seeds", SEEDS);
    if (mkdir(s->out, 0777) != 0 && errno != EEXIST)
        fail("cannot make the folder %s: %s", s->out, strerror(errno));
    r->s = s;
    r->examples = create(s, "examples.csv");
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

/* Mean and standard error over the seeds of an error, or of its gain over the affine predictor in %
 */
static void summary(const report *r, int row, int gain, double *mean, double *deviation)
{
    const int n = r->s->seeds;
    double sum = 0, square = 0;
    for (int i = 0; i < n; i++) {
        const double x =
            gain ? 100 * (1 - r->error[row][i] / r->error[AFFINE][i]) : r->error[row][i];
        sum += x;
        square += x * x;
    }
    *mean = sum / n;
    *deviation = n > 1 ? sqrt(fmax(0, square / n - *mean * *mean) / (n - 1)) : 0;
}

static void print(const report *r, FILE *csv, FILE *json)
{
    const settings *s = r->s;
    printf("\nSquared error of denoised digits (sum over 64 pixels, mean over held-out digits), "
           "noise %g, %d seeds\n\n"
           "%-36s %8s %8s %8s %9s\n",
           s->noise, s->seeds, "", "error", "+-", "gain", "seconds");
    fprintf(csv, "method,error,standard_error,gain_percent,gain_standard_error,seconds\n");
    fprintf(json,
            "{\n  \"experiment\": \"digits\",\n  \"library\": \"%s\",\n  \"isa\": \"%s\",\n"
            "  \"settings\": {\"seeds\": %d, \"noise\": %g, \"heads\": %d, \"components\": %d, "
            "\"steps\": %d,"
            " \"batch\": %d, \"folds\": %d, \"rate\": %g, \"temperature\": %g, \"shrinkage\": %g,"
            " \"floor\": %g},\n  \"rows\": [",
            sattn_build_info(), sattn_isa_name(sattn_isa()), s->seeds, s->noise, s->heads,
            s->components, s->steps, s->batch, s->folds, s->rate, s->temperature, s->shrinkage,
            s->floor);
    for (int i = 0; i < r->rows; i++) {
        double error, error_se, gain, gain_se;
        summary(r, i, 0, &error, &error_se);
        summary(r, i, 1, &gain, &gain_se);
        printf("%-36s %8.4f %8.4f %7.1f%% %9.2f\n", r->method[i], error, error_se, gain,
               r->seconds[i] / s->seeds);
        fprintf(csv, "\"%s\",%.6f,%.6f,%.4f,%.4f,%.3f\n", r->method[i], error, error_se, gain,
                gain_se, r->seconds[i] / s->seeds);
        fprintf(json,
                "%s\n    {\"method\": \"%s\", \"error\": %.6f, \"standard_error\": %.6f, "
                "\"gain_percent\": %.4f,"
                " \"seconds\": %.3f, \"errors\": [",
                i ? "," : "", r->method[i], error, error_se, gain, r->seconds[i] / s->seeds);
        for (int k = 0; k < s->seeds; k++)
            fprintf(json, "%s%.6f", k ? ", " : "", r->error[i][k]);
        fprintf(json, "]}");
    }
    fprintf(json, "\n  ]\n}\n");
    printf("\nerror: mean over the seeds (each a new split and new noise) and its standard error\n"
           "gain: how far the error is below that of the best affine predictor\n"
           "seconds: of training and prediction, per seed\n");
}

void report_end(report *r)
{
    FILE *csv = create(r->s, "table.csv"), *json = create(r->s, "result.json");
    print(r, csv, json);
    if (fclose(csv) | fclose(json) | fclose(r->examples))
        fail("cannot write to %s", r->s->out);
    sattn_free(r);
}
