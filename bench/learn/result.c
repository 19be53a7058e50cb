/* SPDX-License-Identifier: BSD-2-Clause */
#define _POSIX_C_SOURCE 200809L
#include "result.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { BUFFERS = 6 };

/* Parts grow in memory; what is open in the panels says how to close them. */
struct result {
    const settings *s;
    FILE *numbers, *panels, *table, *curve, *text, *notes;
    char *buffer[BUFFERS];
    size_t size[BUFFERS];
    int64_t count, panel_count, series_count, points;
    char panel[200], series[200];
};

static FILE *page;
static int all_off;

void result_page(FILE *to)
{
    page = to;
}

FILE *result_file(const settings *s, const char *name)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", s->out, name);
    FILE *file = fopen(path, "w");
    if (!file)
        fail("cannot write %s: %s", path, strerror(errno));
    return file;
}

void result_folder(const settings *s)
{
    if (mkdir(s->out, 0777) != 0 && errno != EEXIST)
        fail("cannot make the folder %s: %s", s->out, strerror(errno));
}

result *result_new(const settings *s)
{
    result *r = array(1, sizeof *r);
    result_folder(s);
    r->s = s;
    FILE **const parts[BUFFERS] = {&r->numbers, &r->panels, &r->table,
                                     &r->curve,   &r->text,   &r->notes};
    for (int i = 0; i < BUFFERS; i++)
        if (!(*parts[i] = open_memstream(&r->buffer[i], &r->size[i])))
            fail("out of memory");
    fprintf(r->table, "what,ours,reference,tolerance,origin\n");
    fprintf(r->curve, "panel,series,x,y\n");
    return r;
}

static void quote(FILE *file, const char *text)
{
    fputc('"', file);
    for (; *text; text++) {
        if (*text == '"' || *text == '\\')
            fputc('\\', file);
        if (*text == '\n')
            fputs("\\n", file);
        else
            fputc(*text, file);
    }
    fputc('"', file);
}

static void member(FILE *file, const char *name, double x)
{
    fprintf(file, isfinite(x) ? ", \"%s\": %.17g" : ", \"%s\": null", name, x);
}

void result_number(result *r, const char *what, double ours, double reference, double tolerance,
                   const char *origin)
{
    const double far = fabs(ours - reference);
    const int known = isfinite(reference), claim = known && tolerance > 0;
    fprintf(r->numbers, "%s%s\n    {\"what\": ", r->count ? "}" : "", r->count ? "," : "");
    quote(r->numbers, what);
    member(r->numbers, "ours", ours);
    member(r->numbers, "reference", reference);
    member(r->numbers, "tolerance", tolerance);
    fprintf(r->numbers, ", \"origin\": ");
    quote(r->numbers, origin);
    if (claim)
        fprintf(r->numbers, ", \"holds\": %s", far <= tolerance ? "true" : "false");
    all_off += claim && !(far <= tolerance);
    r->count++;
    fprintf(r->table, "\"%s\",%.17g,%.17g,%.3g,\"%s\"\n", what, ours, reference, tolerance, origin);
    char beside[3][32] = {"", "", ""};
    if (known) {
        snprintf(beside[0], sizeof beside[0], "%.12g", reference);
        snprintf(beside[1], sizeof beside[1], "%.1e", far);
    }
    if (claim)
        snprintf(beside[2], sizeof beside[2], "%.0e%s", tolerance, far <= tolerance ? "" : " OFF");
    fprintf(r->text, "| %-60s | %16.12g | %16s | %8s | %9s | %s |\n", what, ours, beside[0],
            beside[1], beside[2], origin);
}

void result_values(result *r, int64_t n, const double *value)
{
    fprintf(r->numbers, ", \"values\": [");
    for (int64_t i = 0; i < n; i++)
        fprintf(r->numbers, "%s%.17g", i ? ", " : "", value[i]);
    fprintf(r->numbers, "]");
}

static void end_series(result *r)
{
    if (r->series_count)
        fprintf(r->panels, "]}");
    r->points = 0;
}

static void end_panel(result *r)
{
    end_series(r);
    if (r->panel_count)
        fprintf(r->panels, "]}");
    r->series_count = 0;
}

void result_panel(result *r, const char *title, const char *x, const char *y, const char *axes)
{
    end_panel(r);
    fprintf(r->panels, "%s\n    {\"title\": ", r->panel_count++ ? "," : "");
    quote(r->panels, title);
    fprintf(r->panels, ", \"x\": ");
    quote(r->panels, x);
    fprintf(r->panels, ", \"y\": ");
    quote(r->panels, y);
    fprintf(r->panels, ", \"axes\": \"%s\", \"series\": [", axes);
    snprintf(r->panel, sizeof r->panel, "%s", title);
}

void result_series(result *r, const char *label, const char *style)
{
    end_series(r);
    fprintf(r->panels, "%s\n      {\"label\": ", r->series_count++ ? "," : "");
    quote(r->panels, label);
    fprintf(r->panels, ", \"style\": \"%s\", \"points\": [", style);
    snprintf(r->series, sizeof r->series, "%s", label);
}

void result_point(result *r, double x, double y)
{
    if (!isfinite(x) || !isfinite(y))
        return;
    fprintf(r->panels, "%s[%.9g, %.9g]", r->points++ ? ", " : "", x, y);
    fprintf(r->curve, "\"%s\",\"%s\",%.17g,%.17g\n", r->panel, r->series, x, y);
}

void result_map(result *r, double x0, double x1, double y0, double y1, int64_t columns,
                int64_t rows, const double *z)
{
    end_series(r);
    fprintf(r->panels,
            "%s\n      {\"label\": \"\", \"style\": \"map\", \"box\": [%.9g, %.9g, %.9g, %.9g], "
            "\"columns\": %lld, \"points\": [",
            r->series_count++ ? "," : "", x0, x1, y0, y1, (long long)columns);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++) {
            const double v = z[i * columns + j];
            fprintf(r->panels, isfinite(v) ? "%s%.6g" : "%snull", i + j ? ", " : "", v);
            fprintf(r->curve, "\"%s\",\"map %lld %lld\",%.17g,%.17g\n", r->panel, (long long)i,
                    (long long)j, x0 + (x1 - x0) * (double)j / (double)(columns - 1), v);
        }
}

void result_note(result *r, const char *text)
{
    fprintf(r->notes, "\n%s\n", text); /* below the table, which they would cut */
}

int result_all_off(void)
{
    return all_off;
}

static void write_settings(FILE *json, const settings *s)
{
    int count = 0;
    for (int i = 0; i < SETTINGS; i++) {
        const setting *t = &setting_table[i];
        const char *place = (const char *)s + t->place;
        /* what is not about the numbers stays out, so that files can be compared */
        if (strcmp(t->name, "out") == 0 || strcmp(t->name, "threads") == 0 ||
            strcmp(t->name, "python") == 0 || strcmp(t->name, "data") == 0 ||
            !setting_taken(s->experiment, i, NULL))
            continue;
        fprintf(json, "%s\"%s\": ", count++ ? ", " : "", t->name);
        if (t->place >= offsetof(settings, noise))
            fprintf(json, "%.17g", *(const double *)(const void *)place);
        else
            fprintf(json, "%d", *(const int32_t *)(const void *)place);
    }
}

static void put(const settings *s, const char *name, const char *text, size_t size)
{
    FILE *file = result_file(s, name);
    const size_t written = fwrite(text, 1, size, file);
    if ((fclose(file) != 0) | (written != size))
        fail("cannot write to %s", s->out);
}

static void show(FILE *to, const result *r)
{
    fprintf(to,
            "\n| %-60s | %16s | %16s | %8s | %9s | origin |\n|---|---:|---:|---:|---:|---|\n%s%s\n",
            "", "ours", "reference", "apart", "tolerance", r->buffer[4], r->buffer[5]);
}

int result_end(result *r)
{
    const experiment *e = r->s->experiment;
    end_panel(r);
    FILE *const parts[BUFFERS] = {r->numbers, r->panels, r->table, r->curve, r->text, r->notes};
    for (int i = 0; i < BUFFERS; i++)
        if (fclose(parts[i]) != 0)
            fail("out of memory");
    FILE *json = result_file(r->s, "result.json");
    fprintf(json, "{\n  \"experiment\": \"%s\",\n  \"source\": ", e->name);
    quote(json, e->source);
    fprintf(json, ",\n  \"library\": \"%s\",\n  \"isa\": \"%s\",\n  \"settings\": {",
            sattn_build_info(), sattn_isa_name(sattn_isa()));
    write_settings(json, r->s);
    fprintf(json, "},\n  \"numbers\": [%s%s\n  ],\n  \"panels\": [%s\n  ]\n}\n", r->buffer[0],
            r->count ? "}" : "", r->buffer[1]);
    if (fclose(json) != 0)
        fail("cannot write to %s", r->s->out);
    put(r->s, "table.csv", r->buffer[2], r->size[2]);
    put(r->s, "curve.csv", r->buffer[3], r->size[3]);
    show(stdout, r);
    if (page)
        show(page, r);
    for (int i = 0; i < BUFFERS; i++)
        free(r->buffer[i]);
    sattn_free(r);
    return 0;
}
