/* SPDX-License-Identifier: BSD-2-Clause */
#include "learn.h"

#include <argp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char documentation[] =
    "What softmax attention learns on mixtures of Gaussians.\v"
    "EXPERIMENT is one of `sattn-learn list`; `sattn-learn help EXPERIMENT` says what it shows and "
    "which settings it takes, with their defaults.\n\n"
    "FILE holds lines `name = value`, names as the long options, # begins a comment. Options on "
    "the command line win. Results go to DIR (build/EXPERIMENT): result.json, table.csv, curve.csv;"
    " bench/plot.py DIR PICTURE draws them.";

enum { SETTING = 256, FILES = 1024, HELP, OWN = 3 };

typedef struct {
    const char *word[2], *file, *given[SETTINGS];
    int words, help;
} command;

static error_t parse(int key, char *text, struct argp_state *state)
{
    command *c = state->input;
    if (key == ARGP_KEY_ARG) {
        if (c->words == 2)
            argp_error(state, "one experiment at a time");
        c->word[c->words++] = text;
        return 0;
    }
    if (key == FILES)
        c->file = text;
    else if (key == HELP)
        c->help = 1;
    else if (key == ARGP_KEY_END && c->words == 0)
        argp_state_help(state, c->help ? stdout : stderr,
                        c->help ? ARGP_HELP_STD_HELP : ARGP_HELP_STD_USAGE);
    for (int i = 0; i < SETTINGS; i++)
        if (key == SETTING + i || (key && key == setting_table[i].key)) {
            c->given[i] = text;
            return 0;
        }
    return key == FILES || key == HELP || key == ARGP_KEY_END ? 0 : ARGP_ERR_UNKNOWN;
}

/* Words of a text in lines of at most 78 columns, each after `margin` spaces */
static void wrap(const char *text, int margin)
{
    int column = printf("%*s", margin, "");
    while (*text) {
        const int length = (int)strcspn(text, " \n");
        if (column + length > 78 && column > margin)
            printf("\n%*s", margin, ""), column = margin;
        column += printf("%.*s ", length, text);
        text += length;
        for (; *text == ' ' || *text == '\n'; text++)
            if (*text == '\n')
                printf("\n%*s", margin, ""), column = margin;
    }
    printf("\n");
}

static int list(void)
{
    for (int i = 0; experiments[i]; i++)
        printf("%-14s%s\n", experiments[i]->name, experiments[i]->source);
    return 0;
}

static int help(const experiment *e)
{
    printf("sattn-learn %s\n\n", e->name);
    wrap(e->about, 2);
    printf("\n  Source: ");
    wrap(e->source, 0);
    printf("\n  Settings, as options or in a file (--settings FILE):\n");
    for (int i = 0; i < SETTINGS; i++) {
        const char *value;
        if (setting_taken(e, i, &value))
            printf("    --%-14s%s (%s%s)\n", setting_table[i].name, setting_table[i].help,
                   *value ? value : "build/", *value ? "" : e->name);
    }
    return 0;
}

int main(int argc, char **argv)
{
    struct argp_option options[SETTINGS + OWN + 1] = {
        {"settings", FILES, "FILE", 0, "Read settings from a file", 0},
        {"help", HELP, NULL, 0, "This; or, after an experiment, what it shows", 0}};
    for (int i = 0; i < SETTINGS; i++) {
        const setting *t = &setting_table[i];
        const int key = t->key ? t->key : SETTING + i;
        options[2 + i] = (struct argp_option){t->name, key, t->argument, 0, t->help, 1};
    }
    const struct argp argp = {options, parse, "EXPERIMENT", documentation, NULL, NULL, NULL};
    command c = {0};
    argp_parse(&argp, argc, argv, ARGP_NO_HELP, NULL, &c);
    if (strcmp(c.word[0], "list") == 0 && c.words == 1)
        return list();
    const int asked = c.words == 2 && strcmp(c.word[0], "help") == 0;
    const experiment *e = experiment_named(c.word[asked]);
    if (!e || c.words - asked > 1)
        fail("no experiment %s; see sattn-learn list", c.word[c.words - 1]);
    if (asked || c.help)
        return help(e);
    const settings s = settings_read(e, NULL, c.file, c.given);
    return e->run(&s);
}
