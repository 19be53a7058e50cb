/* SPDX-License-Identifier: BSD-2-Clause */
#include "problem.h"
#include "../oracle/mixture.h"

#include <float.h>
#include <stddef.h>
#include <stdlib.h>

const char *const array_names[ARRAYS] = {
    "tilt",  "log_weight",  "mean",  "covariance",  "value_mean",  "cross",
    "dout",  "dcgf",        "out",   "stats",       "cgf",         "weight",
    "dtilt", "dlog_weight", "dmean", "dcovariance", "dvalue_mean", "dcross"};

#define AT(member) offsetof(sattn_mixture, member)
static const size_t pointers[ARRAYS] = {
    AT(tilt),  AT(log_weight),  AT(mean),  AT(covariance),  AT(value_mean),  AT(cross),
    AT(dout),  AT(dcgf),        AT(out),   AT(stats),       AT(cgf),         AT(weight),
    AT(dtilt), AT(dlog_weight), AT(dmean), AT(dcovariance), AT(dvalue_mean), AT(dcross)};

/* The gradient of a parameter has the parameter's shape and strides. */
static int parameter_of(int i)
{
    return i >= DLOG_WEIGHT ? i - DLOG_WEIGHT + LOG_WEIGHT : i;
}

void **pointer_of(sattn_mixture *p, int i)
{
    return (void **)((char *)p + pointers[i]);
}

real *cell(const array *a, int64_t b, int64_t row, int64_t col)
{
    return a->data + (a->batch == 1 ? 0 : b) * a->batch_stride + row * a->row_stride + col;
}

/* Rows and columns of array i, 0 columns: absent */
static array form_of(const shape *s, int i)
{
    const int64_t m = s->queries, c = s->components, d = s->width,
                  e = s->value_width ? s->value_width : d;
    const int64_t layout[] = {0, d, d * d, 1, d * d, d * (1 + RANK)}, joint = s->value_width > 0;
    const int64_t covariances = s->kind < SHARED ? c : 1;
    const array forms[INPUTS + 5] = {{.rows = m, .cols = d},
                                     {.rows = 1, .cols = c},
                                     {.rows = 1, .cols = c * d},
                                     {.rows = 1, .cols = covariances * layout[s->kind % SHARED]},
                                     {.rows = 1, .cols = joint ? c * e : 0},
                                     {.rows = 1, .cols = joint && s->cross ? c * e * d : 0},
                                     {.rows = m, .cols = e},
                                     {.rows = 1, .cols = m},
                                     {.rows = m, .cols = e},
                                     {.rows = m, .cols = 2},
                                     {.rows = 1, .cols = m},
                                     {.rows = m, .cols = c},
                                     {.rows = m, .cols = d}};
    array a = forms[parameter_of(i)];
    a.row_stride = a.cols + (i == STATS ? 0 : s->gap);
    a.batch = s->shared >> parameter_of(i) & 1 ? 1 : s->batch;
    a.batch_stride = a.batch == 1 && s->batch != 1 ? 0 : a.rows * a.row_stride + s->gap;
    return a;
}

static int is_dead(const shape *s, int64_t b, int64_t c)
{
    rng r = seed_of(s->seed + 1000003 * (uint64_t)(c + (s->shared ? 0 : 1000 * b)));
    return random_in(&r, 0, 1) < s->dead;
}

/* Positive semi-definite and symmetric to the bit: A A' / D, of rank 1 for one component in four */
static void fill_full(rng *r, real *to, int64_t d, int64_t c)
{
    double factor[64 * 64];
    const int64_t rank = c % 4 == 3 ? 1 : d;
    cr_assert(d <= 64);
    random_fill(r, factor, d * rank, -1, 1);
    for (int64_t i = 0; i < d; i++)
        for (int64_t j = 0; j <= i; j++) {
            double sum = 0;
            for (int64_t k = 0; k < rank; k++)
                sum += factor[i * rank + k] * factor[j * rank + k];
            to[i * d + j] = to[j * d + i] = (real)(sum / (double)d);
        }
}

/* The triangle of a factor that is not read stays NaN. */
static void fill_covariance(rng *r, real *to, const shape *s, int64_t c)
{
    const int64_t d = s->width, kind = s->kind % SHARED;
    if (kind == SATTN_COVARIANCE_FULL)
        fill_full(r, to, d, c);
    for (int64_t i = 0; kind == SATTN_COVARIANCE_CHOLESKY && i < d; i++)
        random_fill(r, to + i * d, i + 1, -1 / sqrt((double)d), 1 / sqrt((double)d));
    if (kind == SATTN_COVARIANCE_LOW_RANK)
        random_fill(r, to + d, d * RANK, -0.5, 0.5);
    if (kind == SATTN_COVARIANCE_DIAG || kind == SATTN_COVARIANCE_LOW_RANK)
        random_fill(r, to, d, 0, 1);
    if (kind == SATTN_COVARIANCE_ISOTROPIC)
        random_fill(r, to, 1, 0, 1);
}

/* Numbers come in the order of the elements; those of dead components stay NaN. */
static void fill(const shape *s, const array *a, int i)
{
    rng r = seed_of(s->seed * 100 + (uint64_t)i);
    const int is_parameter = i >= LOG_WEIGHT && i <= CROSS;
    for (int64_t b = 0; b < a->batch; b++)
        for (int64_t row = 0; row < a->rows; row++) {
            const int one = !is_parameter || (i == COVARIANCE && s->kind >= SHARED);
            const int64_t parts = one ? 1 : s->components, width = a->cols / parts;
            for (int64_t c = 0; c < parts; c++) {
                real *to = cell(a, b, row, c * width);
                const double reach = i == TILT ? s->reach : i == LOG_WEIGHT ? 2 : 1;
                if (i == COVARIANCE)
                    fill_covariance(&r, to, s, c);
                else
                    random_fill(&r, to, width, -reach, reach);
                if (is_parameter && (one ? s->dead == 1 : is_dead(s, b, c)))
                    memset(to, 0xff, (size_t)width * sizeof *to);
                if (i == LOG_WEIGHT && is_dead(s, b, c))
                    *to = -INFINITY;
            }
        }
}

problem make_problem(const shape *s)
{
    problem x = {.shape = *s};
    sattn_mixture *p = &x.p;
    at("B %d M %d C %d D %d E %d kind %d cross %d shared %x gap %d side %d offset %d dead %g reach "
       "%g seed %d "
       "isa %d",
       (int)s->batch, (int)s->queries, (int)s->components, (int)s->width, (int)s->value_width,
       (int)s->kind, s->cross, s->shared, (int)s->gap, (int)s->side, (int)s->offset, s->dead,
       s->reach, (int)s->seed, (int)sattn_isa());
    cr_assert(sattn_mixture_init(p, sizeof *p, s->batch, s->queries, s->components, s->width,
                                 s->value_width, s->kind % SHARED) == SATTN_OK);
    p->rank = s->kind % SHARED == SATTN_COVARIANCE_LOW_RANK ? RANK : 0;
    p->flags = s->kind >= SHARED ? SATTN_SHARED_COVARIANCE : 0;
    for (int i = 0; i < ARRAYS; i++) {
        array *a = &x.a[i];
        *a = form_of(s, i);
        if (a->cols == 0 && !(i == LOG_WEIGHT || i == MEAN))
            continue;
        const int64_t entry = a->rows > 0 ? (a->rows - 1) * a->row_stride + a->cols : 0;
        const int64_t extent = a->batch > 0 ? (a->batch - 1) * a->batch_stride + entry : 0;
        a->data = guarded((size_t)extent * sizeof(real), s->side, s->offset * sizeof(real));
        *pointer_of(p, i) = a->data;
        if (i < INPUTS && a->cols > 0)
            fill(s, a, i);
    }
#define STRIDES(name, i) (p->name##_batch = x.a[i].batch_stride)
    STRIDES(tilt, TILT), STRIDES(log_weight, LOG_WEIGHT), STRIDES(mean, MEAN);
    STRIDES(covariance, COVARIANCE), STRIDES(value_mean, VALUE_MEAN), STRIDES(cross, CROSS);
    STRIDES(dout, DOUT), STRIDES(dcgf, DCGF), STRIDES(out, OUT), STRIDES(stats, STATS);
    STRIDES(cgf, CGF), STRIDES(weight, WEIGHT), STRIDES(dtilt, DTILT);
    p->tilt_row = x.a[TILT].row_stride, p->dout_row = x.a[DOUT].row_stride;
    p->out_row = x.a[OUT].row_stride, p->weight_row = x.a[WEIGHT].row_stride;
    p->dtilt_row = x.a[DTILT].row_stride;
    return x;
}

void check_gaps(const problem *x)
{
    for (int i = 0; i < ARRAYS; i++) {
        const array *a = &x->a[i];
        const size_t after_row = (size_t)(a->row_stride - a->cols) * sizeof(real);
        const size_t after_entry = (size_t)x->shape.gap * sizeof(real);
        for (int64_t b = 0; a->data && b < a->batch; b++)
            for (int64_t row = 0; row < a->rows; row++) {
                const real *end = cell(a, b, row, a->cols);
                const int last = row == a->rows - 1;
                if (last && b == a->batch - 1)
                    continue;
                check(is_untouched(end, after_row + (last ? after_entry : 0)));
            }
    }
    check_guarded();
}

void solve(problem *x)
{
    int32_t status = FN(sattn_mixture_forward)(&x->p);
    cr_assert(status == SATTN_OK, "forward: %s: %s", sattn_status_string(status), where());
    status = FN(sattn_mixture_backward)(&x->p);
    cr_assert(status == SATTN_OK, "backward: %s: %s", sattn_status_string(status), where());
    check_gaps(x);
}

void check_same_arrays(const problem *got, const problem *want, int first, int last)
{
    for (int i = first; i < last; i++) {
        const array *g = &got->a[i], *w = &want->a[i];
        for (int64_t b = 0; g->data && w->data && b < g->batch; b++)
            for (int64_t row = 0; row < g->rows; row++)
                check_same_of(array_names[i], cell(g, b, row, 0), cell(w, b, row, 0), g->cols,
                              sizeof(real));
    }
}

/* Comparison with the oracle */

typedef struct {
    double *in[INPUTS];         /* one batch entry of the inputs */
    oracle_number *out[ARRAYS]; /* all batch entries of the outputs */
} reference;

/* Two EPS for one: second-order terms, and the rounding of the oracle's value to double. The
 * smallest normal number covers weights that underflow. */
static void compare(const array *a, const oracle_number *want, int i)
{
    for (int64_t b = 0; a->data && b < a->batch; b++)
        for (int64_t row = 0; row < a->rows; row++)
            for (int64_t col = 0; col < a->cols; col++) {
                const oracle_number n = want[(b * a->rows + row) * a->cols + col];
                const double bound = 2 * EPS * (double)n.error;
                check_near(array_names[i], (b * a->rows + row) * a->cols + col,
                           *cell(a, b, row, col), (double)n.value,
                           bound + (sizeof(real) == 4 ? FLT_MIN : DBL_MIN));
            }
}

/* A gradient of batch entry b, NULL if the problem has none */
static oracle_number *entry(const problem *x, const reference *r, int i, int64_t b)
{
    const array *a = &x->a[i];
    return a->data ? r->out[i] + (a->batch == 1 ? 0 : b) * a->rows * a->cols : NULL;
}

static void refer_to_entry(const problem *x, const reference *r, int64_t b)
{
    const shape *s = &x->shape;
    const int64_t m = s->queries, c = s->components, d = s->width,
                  e = s->value_width ? s->value_width : d;
    const oracle_mixture o = {c,
                              d,
                              s->value_width,
                              s->kind % SHARED,
                              r->in[LOG_WEIGHT],
                              r->in[MEAN],
                              r->in[COVARIANCE],
                              r->in[VALUE_MEAN],
                              s->cross ? r->in[CROSS] : NULL,
                              RANK,
                              s->kind >= SHARED};
    oracle_gradients g = {NULL,
                          entry(x, r, DLOG_WEIGHT, b),
                          entry(x, r, DMEAN, b),
                          entry(x, r, DCOVARIANCE, b),
                          entry(x, r, DVALUE_MEAN, b),
                          entry(x, r, DCROSS, b)};
    for (int64_t q = 0; q < m; q++) {
        const double *tilt = r->in[TILT] + q * d;
        oracle_forward(&o, tilt, r->out[OUT] + (b * m + q) * e, r->out[CGF] + b * m + q,
                       r->out[WEIGHT] + (b * m + q) * c);
        g.tilt = r->out[DTILT] + (b * m + q) * d;
        oracle_backward(&o, tilt, r->in[DOUT] + q * e, r->in[DCGF][q], s->batch * m, &g);
    }
}

void check_against_oracle(const problem *x)
{
    reference r;
    for (int i = 0; i < ARRAYS; i++) {
        const array *a = &x->a[i];
        const size_t count = (size_t)(a->batch * a->rows * a->cols) + 1;
        if (i < INPUTS)
            r.in[i] = calloc(count, sizeof(double));
        r.out[i] = calloc(count, sizeof *r.out[i]);
    }
    for (int64_t b = 0; b < x->shape.batch; b++) {
        for (int i = 0; i < INPUTS; i++)
            for (int64_t k = 0; x->a[i].data && k < x->a[i].rows * x->a[i].cols; k++)
                r.in[i][k] = *cell(&x->a[i], b, k / x->a[i].cols, k % x->a[i].cols);
        refer_to_entry(x, &r, b);
    }
    for (int i = INPUTS; i < ARRAYS; i++)
        if (i != STATS)
            compare(&x->a[i], r.out[i], i);
    for (int i = 0; i < ARRAYS; i++) {
        if (i < INPUTS)
            free(r.in[i]);
        free(r.out[i]);
    }
}
