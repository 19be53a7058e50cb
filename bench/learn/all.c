/* SPDX-License-Identifier: BSD-2-Clause */
/* Every experiment with its brief settings, and one page of Markdown with their pictures. */
#define _POSIX_C_SOURCE 200809L
#include "result.h"

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Runs `python bench/plot.py folder picture`; 0 if it drew. */
static int draw(const char *python, const char *folder, const char *picture)
{
    const pid_t child = fork();
    if (child == 0) {
        execlp(python, python, "bench/plot.py", folder, picture, (char *)NULL);
        _exit(127);
    }
    int status;
    return child < 0 || waitpid(child, &status, 0) < 0 || status != 0;
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void section(FILE *page, const experiment *e, const settings *all)
{
    char folder[2048], picture[4096], out[4096];
    const char *given[SETTINGS] = {0};
    snprintf(folder, sizeof folder, "%s/%s", all->out, e->name);
    snprintf(picture, sizeof picture, "%s.png", folder);
    snprintf(out, sizeof out, "threads = %d\n%s", all->threads, e->brief ? e->brief : "");
    for (int i = 0; i < SETTINGS; i++)
        if (strcmp(setting_table[i].name, "out") == 0)
            given[i] = folder;
    const settings s = settings_read(e, out, NULL, given);
    fprintf(page, "\n## %s\n\n%s\n\nSource: %s.\n", e->name, e->about, e->source);
    if (e->brief) {
        fprintf(page, "\nReduced for this page:");
        for (const char *at = e->brief; *at;) {
            const size_t length = strcspn(at, "\n");
            fprintf(page, "%s %.*s", at == e->brief ? "" : ",", (int)length, at);
            at += length + (at[length] != 0);
        }
        fprintf(page, ".\n");
    }
    fflush(page);
    const double start = now();
    e->run(&s);
    if (draw(all->python, folder, picture) == 0)
        fprintf(page, "\n![%s](%s.png)\n", e->name, e->name);
    else
        fprintf(page, "\nNo picture: `%s bench/plot.py` failed.\n", all->python);
    printf("%s: %.1f s\n", e->name, now() - start);
    fprintf(page, "\n`sattn-learn %s`, %.1f s here.\n", e->name, now() - start);
}

static int run(const settings *s)
{
    result_folder(s);
    FILE *page = result_file(s, "page.md");
    const double start = now();
    fprintf(page,
            "# What softmax attention learns\n\nWritten by `sattn-learn all`: %s, %s. `ours` "
            "beside what is published, proven or computed elsewhere; `tolerance` is how far "
            "apart they may be.\n",
            sattn_build_info(), sattn_isa_name(sattn_isa()));
    result_page(page);
    for (int i = 0; experiments[i]; i++)
        if (strcmp(experiments[i]->name, s->experiment->name) != 0)
            section(page, experiments[i], s);
    result_page(NULL);
    fprintf(page, "\n%d numbers are off by more than their tolerance. %.0f s in all.\n",
            result_all_off(), now() - start);
    if (fclose(page) != 0)
        fail("cannot write to %s", s->out);
    printf("%s/page.md: %d numbers off, %.0f s\n", s->out, result_all_off(), now() - start);
    return result_all_off() > 0;
}

const experiment experiment_all = {
    .name = "all",
    .source = "all of the above on one page, under ten minutes on two cores",
    .about = "Runs every experiment, some of them with fewer repetitions (the page says so), and "
             "writes DIR/page.md: each number beside the published or exact one, with pictures. To "
             "be run from the root of the source tree. Exit status 1 if a number is off.",
    .defaults = "python = python3\n",
    .run = run};
