/* SPDX-License-Identifier: BSD-2-Clause */
/* The settings of all experiments: one table, from which come the options of the command line, the
 * names in files, and what is written beside results. */
#define _POSIX_C_SOURCE 200809L
#include "learn.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT, COUNT, NUMBER };
#define PLACE(member) offsetof(settings, member)

const setting setting_table[SETTINGS] = {
    {"out", 'o', "DIR", "Folder for result.json, table.csv, curve.csv", TEXT, PLACE(out), 0, 0},
    {"threads", 't', "N", "Threads (0: the library's choice)", COUNT, PLACE(threads), 0, 1024},
    {"python", 0, "FILE", "Python with Matplotlib, for the pictures", TEXT, PLACE(python), 0, 0},
    {"data", 0, "FILE", "Digits, gzipped comma-separated", TEXT, PLACE(data), 0, 0},
    {"seeds", 's', "N", "Seeds: everything drawn anew for each", COUNT, PLACE(seeds), 1, 64},
    {"steps", 0, "N", "Steps of training", COUNT, PLACE(steps), 1, 1e8},
    {"rate", 0, "X", "Rate of learning, the first if it falls", NUMBER, PLACE(rate), 0, 1e6},
    {"batch", 0, "N", "Queries a step", COUNT, PLACE(batch), 1, 1e6},
    {"order", 0, "N", "Nodes of Gauss and Hermite, a dimension", COUNT, PLACE(order), 1, 128},
    {"grid", 0, "N", "Points of a map, a side", COUNT, PLACE(grid), 2, 4096},
    {"tokens", 0, "N", "Tokens of the longest prompt", COUNT, PLACE(tokens), 2, 1e7},
    {"queries", 0, "N", "Queries, or prompts, of an average", COUNT, PLACE(queries), 1, 1e7},
    {"noise", 0, "X", "Standard deviation of the noise", NUMBER, PLACE(noise), 0, 1e6},
    {"heads", 0, "N", "Attention heads", COUNT, PLACE(heads), 1, 1e4},
    {"components", 0, "N", "Components of a head's mixture", COUNT, PLACE(components), 1, 1e5},
    {"folds", 0, "N", "Parts of the training digits", COUNT, PLACE(folds), 2, 1e4},
    {"temperature", 0, "X", "Divides the mixture's logits", NUMBER, PLACE(temperature), 0, 1e6},
    {"shrinkage", 0, "X", "Digits' worth of pooled covariance in a component", NUMBER,
     PLACE(shrinkage), 0, 1e6},
    {"floor", 0, "X", "Added to the diagonal of covariances", NUMBER, PLACE(floor), 0, 1e6},
};

/* Where `text` has been read from, for messages */
typedef struct {
    const char *file;
    int line;
} origin;

_Noreturn static void refuse(origin o, const char *what, const char *name)
{
    if (o.file)
        fail("%s:%d: %s: %s", o.file, o.line, name, what);
    fail("--%s: %s", name, what);
}

static int find(const char *name, size_t length)
{
    for (int i = 0; i < SETTINGS; i++)
        if (strlen(setting_table[i].name) == length &&
            memcmp(setting_table[i].name, name, length) == 0)
            return i;
    return -1;
}

/* Takes "name = value" apart: the setting's number, and a copy of its value. -1: an empty line. */
static int split(char *line, origin o, const char **value)
{
    line[strcspn(line, "#\n")] = 0;
    line += strspn(line, " \t\r");
    if (!*line)
        return -1;
    char *equal = strchr(line, '='), *end = line + strcspn(line, " =\t\r");
    const int i = find(line, (size_t)(end - line));
    *end = end == equal ? '=' : 0;
    if (!equal || i < 0)
        refuse(o, equal ? "no such setting" : "a line is name = value", line);
    char *text = strdup(equal + 1 + strspn(equal + 1, " \t"));
    for (size_t n = strlen(text); n > 0 && isspace((unsigned char)text[n - 1]); n--)
        text[n - 1] = 0;
    *value = text;
    return i;
}

static void each_line(FILE *file, origin o, const char **text, const experiment *e)
{
    char line[1024];
    while (fgets(line, sizeof line, file)) {
        const char *value;
        o.line++;
        const int i = split(line, o, &value);
        if (i >= 0 && e && !setting_taken(e, i, NULL))
            refuse(o, "not a setting of this experiment", setting_table[i].name);
        if (i >= 0)
            text[i] = value;
    }
}

static void read_lines(const char *lines, const char **text)
{
    FILE *file = lines && *lines ? fmemopen((void *)(uintptr_t)lines, strlen(lines), "r") : NULL;
    if (file) {
        each_line(file, (origin){"defaults", 0}, text, NULL);
        fclose(file);
    }
}

int setting_taken(const experiment *e, int i, const char **value)
{
    static const char common[] = "threads = 0\nout = ";
    const char *text[SETTINGS] = {0};
    read_lines(common, text);
    read_lines(e->defaults, text);
    if (value)
        *value = text[i];
    return text[i] != NULL;
}

static void convert(const setting *t, const char *text, settings *s)
{
    char *to = (char *)s + t->place, *end;
    if (t->kind == TEXT) {
        *(const char **)(void *)to = text;
        return;
    }
    const double x = strtod(text, &end);
    const int whole = t->kind == COUNT;
    if (end == text || *end || !(whole ? x >= t->least : x > t->least) || x > t->most ||
        (whole && x != (double)(int32_t)x))
        fail("%s = %s: not a %s from %g to %g", t->name, text, whole ? "whole number" : "number",
             t->least, t->most);
    if (whole)
        *(int32_t *)(void *)to = (int32_t)x;
    else
        *(double *)(void *)to = x;
}

settings settings_read(const experiment *e, const char *lines, const char *file,
                       const char *const *given)
{
    settings s = {.experiment = e};
    const char *text[SETTINGS];
    for (int i = 0; i < SETTINGS; i++)
        setting_taken(e, i, &text[i]);
    read_lines(lines, text);
    FILE *f = file ? fopen(file, "r") : NULL;
    if (file && !f)
        fail("cannot read %s: %s", file, strerror(errno));
    if (f) {
        each_line(f, (origin){file, 0}, text, e);
        fclose(f);
    }
    for (int i = 0; given && i < SETTINGS; i++) {
        if (given[i] && !text[i])
            refuse((origin){0}, "not a setting of this experiment", setting_table[i].name);
        text[i] = given[i] ? given[i] : text[i];
    }
    for (int i = 0; i < SETTINGS; i++)
        if (text[i])
            convert(&setting_table[i], text[i], &s);
    if (!*s.out) {
        const size_t size = strlen(e->name) + sizeof "build/";
        char *out = array((int64_t)size, 1);
        snprintf(out, size, "build/%s", e->name);
        s.out = out;
    }
    return s;
}
