/* SPDX-License-Identifier: BSD-2-Clause */
#include "learn.h"

#include <argp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *argp_program_version = "sattn-learn";

static const char documentation[] =
    "What softmax attention learns on mixtures of Gaussians.\v"
    "EXPERIMENT is one of\n"
    "  digits   Denoise handwritten digits. Attention whose prompt "
    "is a Gaussian mixture selects, for each "
    "query, the components that it may have come from, and answers "
    "with their affine predictions; with one component it "
    "can only be affine. The prompt digits are clustered "
    "(k-means++), each cluster gives a Gaussian, and the matrices "
    "of f(z) = K z + b + sum_h V_h y_h(U_h z + u_h) are trained by "
    "Adam from the best affine predictor on, each step "
    "on digits held out of the mixture it attends to. The rest of "
    "the table is what this is measured against. "
    "Settings were chosen on validation parts of the training "
    "digits; seeds share the 1,797 digits.\n"
    "  classify In-context classification. Each task has 8 clusters on a sphere of "
    "radius 3 in R^8, four labelled +1 and four -1; the prompt is "
    "the mixture of tokens (x, y), the query (x, 0). Softmax attention "
    "can select the cluster and so reach the Bayes predictor with one "
    "set of weights for all tasks; linear attention cannot.\n"
    "  denoise  In-context denoising, the same with clusters of radius 4 and "
    "variance 0.5, noise of variance 2 on tokens and query, and f(z) = "
    "K z + V y(U z).\n"
    "  list     Name the experiments and their sources.\n";

enum {
    NOISE = 256,
    HEADS,
    COMPONENTS,
    STEPS,
    BATCH,
    FOLDS,
    RATE,
    TEMPERATURE,
    SHRINKAGE,
    FLOOR,
    DATA
};

static const struct argp_option options[] = {
    {"out", 'o', "DIR", 0, "Folder for table.csv, result.json, ... (build/EXPERIMENT)", 0},
    {"data", DATA, "FILE", 0, "Digits, gzipped comma-separated (bench/data/digits.csv.gz)", 0},
    {"seeds", 's', "N", 0, "Seeds: each a new split and new noise (5)", 0},
    {"threads", 't', "N", 0, "Threads (0: the library's choice)", 0},
    {"noise", NOISE, "X", 0, "Standard deviation of the noise (0.4)", 1},
    {"heads", HEADS, "N", 0, "Attention heads, each with clusters of its own (3)", 1},
    {"components", COMPONENTS, "N", 0, "Components of a head's mixture (60)", 1},
    {"temperature", TEMPERATURE, "X", 0, "Divides the mixture's logits (1.5)", 1},
    {"shrinkage", SHRINKAGE, "X", 0, "Digits' worth of pooled covariance in each component (5)", 1},
    {"floor", FLOOR, "X", 0, "Added to the diagonal of covariances (0.001)", 1},
    {"steps", STEPS, "N", 0, "Adam's steps (digits 400, others 1000)", 2},
    {"batch", BATCH, "N", 0, "Digits a step, at most those of a fold (140)", 2},
    {"folds", FOLDS, "N", 0, "Parts of the training digits, held out in turn (10)", 2},
    {"rate", RATE, "X", 0,
     "Adam's first rate; falls to 0 along a cosine (digits 0.01, others 0.02)", 2},
    {0}};

typedef struct {
    settings s;
    const char *experiment;
} command;

static int32_t count_of(struct argp_state *state, const char *text, long least)
{
    char *end;
    const long x = strtol(text, &end, 10);
    if (end == text || *end || x < least || x > 100000)
        argp_error(state, "%s is not a whole number from %ld to 100000", text, least);
    return (int32_t)x;
}

static double number_of(struct argp_state *state, const char *text)
{
    char *end;
    const double x = strtod(text, &end);
    if (end == text || *end || !(x > 0 && x < 1e6))
        argp_error(state, "%s is not a positive number", text);
    return x;
}

static error_t parse(int key, char *text, struct argp_state *state)
{
    command *c = state->input;
    switch (key) {
    case 'o':
        c->s.out = text;
        break;
    case DATA:
        c->s.data = text;
        break;
    case 's':
        c->s.seeds = count_of(state, text, 1);
        break;
    case 't':
        c->s.threads = count_of(state, text, 0);
        break;
    case HEADS:
        c->s.heads = count_of(state, text, 1);
        break;
    case COMPONENTS:
        c->s.components = count_of(state, text, 1);
        break;
    case STEPS:
        c->s.steps = count_of(state, text, 1);
        break;
    case BATCH:
        c->s.batch = count_of(state, text, 1);
        break;
    case FOLDS:
        c->s.folds = count_of(state, text, 2);
        break;
    case NOISE:
        c->s.noise = number_of(state, text);
        break;
    case RATE:
        c->s.rate = number_of(state, text);
        break;
    case TEMPERATURE:
        c->s.temperature = number_of(state, text);
        break;
    case SHRINKAGE:
        c->s.shrinkage = number_of(state, text);
        break;
    case FLOOR:
        c->s.floor = number_of(state, text);
        break;
    case ARGP_KEY_ARG:
        if (c->experiment)
            argp_error(state, "one experiment at a time");
        c->experiment = text;
        break;
    case ARGP_KEY_END:
        if (!c->experiment)
            argp_usage(state);
        break;
    default:
        return ARGP_ERR_UNKNOWN;
    }
    return 0;
}

static int list(const settings *s);

static const struct {
    const char *name;
    int (*run)(const settings *);
    const char *out; /* defaults */
    int32_t steps;
    double rate;
    const char *source;
} experiments[] = {
    {"digits", digits, "build/digits", 400, 0.01,
     "denoising handwritten digits; operator: Gabet, Boursier, Boyer, arXiv 2610.11798, Prop. 2.1"},
    {"classify", classify, "build/classify", 1000, 0.02,
     "in-context classification of clusters; the setting of section 3 there, for tasks drawn anew"},
    {"denoise", denoise, "build/denoise", 1000, 0.02,
     "in-context denoising of clusters; Prop. 4.4 there has the optimal weights"},
    {"list", list, NULL, 0, 0, NULL},
};

static int list(const settings *s)
{
    (void)s;
    for (size_t i = 0; i < sizeof experiments / sizeof experiments[0]; i++)
        if (experiments[i].source)
            printf("%-9s%s\n", experiments[i].name, experiments[i].source);
    return 0;
}

int main(int argc, char **argv)
{
    command c = {.s = {.data = "bench/data/digits.csv.gz",
                       .seeds = 5,
                       .heads = 3,
                       .components = 60,
                       .batch = 140,
                       .folds = 10,
                       .noise = 0.4,
                       .temperature = 1.5,
                       .shrinkage = 5,
                       .floor = 1e-3}};
    const struct argp argp = {options, parse, "EXPERIMENT", documentation, NULL, NULL, NULL};
    argp_parse(&argp, argc, argv, 0, NULL, &c);
    for (size_t i = 0; i < sizeof experiments / sizeof experiments[0]; i++)
        if (strcmp(c.experiment, experiments[i].name) == 0) {
            c.s.out = c.s.out ? c.s.out : experiments[i].out;
            c.s.steps = c.s.steps ? c.s.steps : experiments[i].steps;
            c.s.rate = c.s.rate > 0 ? c.s.rate : experiments[i].rate;
            return experiments[i].run(&c.s);
        }
    fail("no experiment %s; see sattn-learn list", c.experiment);
}
