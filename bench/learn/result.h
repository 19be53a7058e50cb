/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SATTN_LEARN_RESULT_H
#define SATTN_LEARN_RESULT_H

/* What an experiment finds: numbers beside their references, and curves, bars and maps for a
 * picture. result_end prints the numbers and writes to the folder of the settings
 *   result.json  settings, "numbers" and "panels": all that bench/plot.py needs
 *   table.csv    what,ours,reference,tolerance,origin
 *   curve.csv    panel,series,x,y */

#include <stdio.h>

#include "learn.h"

typedef struct result result;

/* Makes the folder. */
result *result_new(const settings *s);

/* A number and what it is held against: a reference (NAN = none), how far it may be off (0 = no
 * claim), and where the reference comes from ("exact", "paper", "theory", ...). */
void result_number(result *r, const char *what, double ours, double reference, double tolerance,
                   const char *origin);
/* The values of each seed that the last number is the mean of */
void result_values(result *r, int64_t n, const double *value);
/* A sentence below the table: what was chosen by us, what is reduced */
void result_note(result *r, const char *text);

/* Begins a panel; axes: "linear", "logx", "logy" or "loglog". */
void result_panel(result *r, const char *title, const char *x, const char *y, const char *axes);
/* Begins a series of points in it. style: one word of line, dashed, dotted, points, bars (a bar a
 * series) and any of best, grey, linear (colours), faint. A label of "" is not in the legend. */
void result_series(result *r, const char *label, const char *style);
void result_point(result *r, double x, double y);
/* The panel is a map: z [rows][columns] over [x0, x1] x [y0, y1]; series lie on it. */
void result_map(result *r, double x0, double x1, double y0, double y1, int64_t columns,
                int64_t rows, const double *z);

/* A file of the folder, for writing */
FILE *result_file(const settings *s, const char *name);

/* Makes it. */
void result_folder(const settings *s);

/* How many numbers of all results were off by more than their tolerance */
int result_all_off(void);
/* Prints, writes, frees; 0. */
int result_end(result *r);
/* Also write a section of Markdown at every result_end (NULL = no more) */
void result_page(FILE *page);

#endif
