/* SPDX-License-Identifier: BSD-2-Clause */
/* Seeded draws of a task: queries, and tokens (z, y). */
#include "check.h"
#include "sattn/random.h"
#include "task.h"

#include <math.h>
#include <string.h>

typedef struct {
    sattn_task t;
    double *below, *factor, *x;   /* [C] for sattn_pick, [C][N][N], [N] */
    double *gain, *spread, *rest; /* [C][E][N] X L'^-1, [C], [E]; of tokens alone */
} draws;

/* Of y given z and c: gain, and spread^2 = (t - |gain|^2) / E, a residue of rounding size being 0.
 * Returns 0 if it is negative. */
static int prepare(const draws *s, int64_t c)
{
    const sattn_task *t = &s->t;
    const int64_t d = t->width, e = t->value_width;
    const double all = t->value_variance ? t->value_variance[c] : 0;
    double known = 0;
    for (int64_t i = 0; t->cross && i < e; i++) {
        double *gain = s->gain + (c * e + i) * d;
        memcpy(gain, t->cross + (c * e + i) * d, (size_t)d * sizeof(double));
        sattn_solve_lower(d, s->factor + c * d * d, gain);
        for (int64_t j = 0; j < d; j++)
            known += gain[j] * gain[j];
    }
    const double rest = all - known, rounding = 0x1p-40 * known;
    if (!(rest >= -rounding) || !isfinite(all))
        return 0;
    s->spread[c] = e > 0 && rest > rounding ? sqrt(rest / (double)e) : 0;
    return 1;
}

static int32_t begin(draws *s, int tokens)
{
    const sattn_task *t = &s->t;
    const int64_t c = t->components, d = t->width, e = t->value_width;
    double *weight;
    int32_t status = sattn_task_begin(t, &weight, &s->factor);
    if (status != SATTN_OK)
        return status;
    s->below = sattn_alloc((c + d + (tokens ? c * e * d + c + e : 0)) * (int64_t)sizeof(double));
    if (!s->below) {
        sattn_free(weight);
        return SATTN_ENOMEM;
    }
    s->x = s->below + c;
    s->gain = s->x + d;
    s->spread = s->gain + c * e * d;
    s->rest = s->spread + c;
    sattn_weights_below(c, weight, s->below);
    for (int64_t k = 0; status == SATTN_OK && tokens && k < c; k++)
        status = weight[k] == 0 || prepare(s, k) ? SATTN_OK : SATTN_EVALUE;
    return status;
}

static void end(const draws *s)
{
    if (s->below)
        sattn_free(s->factor - s->t.components);
    sattn_free(s->below);
}

/* Draw i of z; its component */
static int64_t draw(const draws *s, uint64_t seed, uint64_t stream, int64_t i, double *z)
{
    const int64_t d = s->t.width;
    double u;
    sattn_random_uniform_f64(seed, 2 * stream, i, 1, &u);
    sattn_random_normal_f64(seed, 2 * stream + 1, i * d, d, s->x);
    const int64_t c = sattn_pick(s->t.components, s->below, u);
    sattn_task_place(d, s->t.mean + c * d, s->factor + c * d * d, s->x, z);
    return c;
}

/* y of draw i, whose component is c and whose normals are x */
static void value(const draws *s, uint64_t seed, uint64_t stream, int64_t i, int64_t c, double *y)
{
    const sattn_task *t = &s->t;
    const int64_t d = t->width, e = t->value_width;
    if (s->spread[c] > 0)
        sattn_random_normal_f64(seed, ((uint64_t)1 << 63) + stream, i * e, e, s->rest);
    for (int64_t j = 0; j < e; j++) {
        const double *gain = s->gain + (c * e + j) * d;
        y[j] = t->value_mean[c * e + j];
        for (int64_t k = 0; t->cross && k < d; k++)
            y[j] += gain[k] * s->x[k];
        y[j] += s->spread[c] > 0 ? s->spread[c] * s->rest[j] : 0;
    }
}

static int32_t check(draws *s, const sattn_task *given, int tokens, uint64_t stream, int64_t first,
                     int64_t n, const double *out)
{
    const int32_t status = sattn_task_check(&s->t, given, tokens);
    if (status != SATTN_OK)
        return status;
    const int64_t e = tokens ? s->t.value_width : 0, last = (int64_t)1 << 62,
                  wide = e > s->t.width ? e : s->t.width;
    if (n < 0 || first < 0 || first > last - n - 1 || first + n > (last - 1) / wide)
        return SATTN_ESIZE;
    if (stream >> (tokens ? 62 : 63))
        return SATTN_EVALUE;
    return n > 0 && !out ? SATTN_ENULL : SATTN_OK;
}

int32_t sattn_task_draw_f64(const sattn_task *given, uint64_t seed, uint64_t stream, int64_t first,
                            int64_t n, double *point, int32_t *component)
{
    draws s = {.below = NULL};
    int32_t status = check(&s, given, 0, stream, first, n, point);
    if (status != SATTN_OK)
        return status;
    status = begin(&s, 0);
    for (int64_t i = 0; status == SATTN_OK && i < n; i++) {
        const int64_t c = draw(&s, seed, stream, first + i, point + i * s.t.width);
        if (component)
            component[i] = (int32_t)c;
    }
    end(&s);
    return status;
}

int32_t sattn_task_prompt_f64(const sattn_task *given, uint64_t seed, uint64_t stream,
                              int64_t first, int64_t n, double *token, int32_t *component)
{
    draws s = {.below = NULL};
    int32_t status = check(&s, given, 1, stream, first, n, token);
    if (status != SATTN_OK)
        return status;
    const int64_t d = s.t.width, e = s.t.value_width;
    status = begin(&s, 1);
    for (int64_t i = 0; status == SATTN_OK && i < n; i++) {
        double *z = token + i * (d + e);
        const int64_t c = draw(&s, seed, stream, first + i, z);
        value(&s, seed, stream, first + i, c, z + d);
        if (component)
            component[i] = (int32_t)c;
    }
    end(&s);
    return status;
}
