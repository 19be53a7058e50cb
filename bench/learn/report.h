/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SATTN_LEARN_REPORT_H
#define SATTN_LEARN_REPORT_H

/* The table of an experiment: a row a method, an error a seed; examples of the first seed for a
 * picture. Prints it and writes, beside the files of result.h, examples.csv. */

#include "learn.h"

typedef struct report report;

report *report_new(const settings *s);
/* A new seed: its clean test digits (the first of which become examples), and what was taken from
 * them */
void report_seed(report *r, int32_t seed, int64_t tests, const float *centre, const float *test);
void report_row(report *r, const char *method, double error, double seconds,
                const float *predicted);
int report_end(report *r);

#endif
