/* SPDX-License-Identifier: BSD-2-Clause */
#define _POSIX_C_SOURCE 200809L
#include "learn.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

static struct {
    const char *title;
    int64_t total, shown;
    double start, last;
    int bar;
} state;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void progress_begin(const char *title, int64_t total)
{
    state.title = title;
    state.total = total;
    state.shown = 0;
    state.start = now();
    state.last = 0;
    state.bar = isatty(STDERR_FILENO);
}

void progress(int64_t done, double risk)
{
    enum { CELLS = 30 };
    const double t = now(), rate = (double)done / (t - state.start + 1e-9);
    const double left = (double)(state.total - done) / (rate + 1e-9);
    const int64_t tenth = done * 10 / state.total;
    if (state.bar ? t - state.last < 0.1 && done < state.total : tenth == state.shown)
        return;
    state.last = t;
    state.shown = tenth;
    if (state.bar) {
        const int filled = (int)(done * CELLS / state.total);
        fprintf(stderr, "\r%s [", state.title);
        for (int i = 0; i < CELLS; i++)
            fputc(i < filled ? '#' : '.', stderr);
        fprintf(stderr, "] %3d %%  %.0f steps/s  %.0f s left  risk %.3f ",
                (int)(done * 100 / state.total), rate, left, risk);
    } else {
        fprintf(stderr, "%s %d %%, %.0f steps/s, %.0f s left, risk %.3f\n", state.title,
                (int)(done * 100 / state.total), rate, left, risk);
    }
    fflush(stderr);
}

void progress_end(void)
{
    if (state.bar)
        fputc('\n', stderr);
}
