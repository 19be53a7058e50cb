/* SPDX-License-Identifier: BSD-2-Clause */
#include "mixture.h"
#include "../simd/kernels.h"
#include "check.h"
#include "par.h"

#include <stddef.h>
#include <string.h>

/* The size of the first release's descriptor; it may only grow. */
enum { LEAST_SIZE = offsetof(sattn_mixture, work_bytes) + sizeof(int64_t) };

/* Multiply-adds below which a team of threads costs more than it saves. */
enum { SERIAL = 1 << 18 };

/* Memory for the weights of a block of queries in backward, about. */
enum { PLANE_BYTES = 1 << 20, LEAST_BLOCK = 4 * SATTN_TILE, MOST_BLOCK = 16 * SATTN_TILE };

static int32_t check_shape(const sattn_mixture *p)
{
    if (p->covariance_kind < SATTN_COVARIANCE_ZERO ||
        p->covariance_kind > SATTN_COVARIANCE_LOW_RANK)
        return SATTN_EOPTION;
    if (p->rank && p->covariance_kind != SATTN_COVARIANCE_LOW_RANK)
        return SATTN_EOPTION;
    if (p->batch < 0 || p->queries < 0 || p->components < 0 || p->width < 0 || p->value_width < 0 ||
        p->rank < 0)
        return SATTN_ESIZE;
    const int64_t e = sattn_value_width(p), wide = p->width > e ? p->width : e;
    const int64_t full = sattn_expanded_kind(p) == SATTN_COVARIANCE_FULL ? p->width : 1;
    const int64_t covariance = full > p->rank ? full : (int64_t)p->rank + 1;
    const int64_t b = p->batch;
    if (!sattn_fits(b, p->queries, wide, 1) || !sattn_fits(b, p->queries, p->components, 1) ||
        !sattn_fits(b, p->components, p->width, covariance) ||
        !sattn_fits(b, p->components, e, p->value_width ? p->width : 1) ||
        !sattn_fits(sattn_plus(p->components, wide), 4 * MOST_BLOCK, 1, 1) || /* scratch */
        !sattn_fits(sattn_plus(wide, 2), 32 * SATTN_TILE, 1, 1))
        return SATTN_ESIZE;
    return SATTN_OK;
}

int32_t sattn_mixture_init(sattn_mixture *p, int64_t size, int64_t batch, int64_t queries,
                           int64_t components, int64_t width, int64_t value_width,
                           int32_t covariance_kind)
{
    int32_t status = sattn_check_init(p, size, LEAST_SIZE);
    if (status != SATTN_OK)
        return status;
    sattn_mixture q = {.size = size,
                       .batch = batch,
                       .queries = queries,
                       .components = components,
                       .width = width,
                       .value_width = value_width,
                       .covariance_kind = covariance_kind};
    status = check_shape(&q);
    if (status != SATTN_OK)
        return status;
    const int64_t e = sattn_value_width(&q);
    q.tilt_row = q.dtilt_row = width;
    q.tilt_batch = q.dtilt_batch = queries * width;
    q.out_row = q.dout_row = e;
    q.out_batch = q.dout_batch = queries * e;
    q.stats_batch = 2 * queries;
    q.cgf_batch = q.dcgf_batch = queries;
    q.weight_row = components;
    q.weight_batch = queries * components;
    q.log_weight_batch = components;
    q.mean_batch = components * width;
    q.covariance_batch = components * sattn_covariance_width(&q);
    q.value_mean_batch = components * value_width;
    q.cross_batch = components * value_width * width;
    sattn_fill(p, size, &q, sizeof q);
    return SATTN_OK;
}

/* Every array of the descriptor as a view; a parameter is one row per batch entry. */
enum { INPUTS = 10, FORWARD_INPUTS = 6, OUTPUTS = 6 };
typedef struct {
    sattn_view in[INPUTS], out[OUTPUTS];
    int required[INPUTS];
} views;

static int is_backward(int direction)
{
    return direction == SATTN_BACKWARD || direction == SATTN_LINEAR_BACKWARD;
}

static void list_views(views *v, const sattn_mixture *p, int direction)
{
    const int64_t b = p->batch, m = p->queries, c = p->components, d = p->width,
                  e = sattn_value_width(p);
    const int64_t joint = p->value_width != 0;
    const int64_t s = sattn_covariance_width(p), all = sattn_covariance_count(p) * s;
    const int back = is_backward(direction), whole = direction == SATTN_BACKWARD;
    const sattn_view in[INPUTS] = {
        {p->tilt, {b, m, d}, {p->tilt_batch, p->tilt_row, 1}},
        {p->log_weight, {b, 1, c}, {p->log_weight_batch, 0, 1}},
        {p->mean, {b, 1, c * d}, {p->mean_batch, 0, 1}},
        {p->covariance, {b, 1, all}, {p->covariance_batch, 0, 1}},
        {joint ? p->value_mean : NULL, {b, joint, c * e}, {p->value_mean_batch, 0, 1}},
        {joint ? p->cross : NULL, {b, joint, c * p->value_width * d}, {p->cross_batch, 0, 1}},
        {p->out, {b, m, e}, {p->out_batch, p->out_row, 1}},
        {p->stats, {b, m, 2}, {p->stats_batch, 2, 1}},
        {p->dout, {b, m, e}, {p->dout_batch, p->dout_row, 1}},
        {p->dcgf, {b, 1, m}, {p->dcgf_batch, 0, 1}},
    };
    const sattn_view forward[OUTPUTS] = {
        in[6],
        in[7],
        {p->cgf, {b, 1, m}, {p->cgf_batch, 0, 1}},
        {p->weight, {b, m, c}, {p->weight_batch, p->weight_row, 1}},
    };
    const sattn_view backward[OUTPUTS] = {
        {p->dtilt, {b, m, d}, {p->dtilt_batch, p->dtilt_row, 1}},
        {p->dlog_weight, {b, 1, c}, {p->log_weight_batch, 0, 1}},
        {p->dmean, {b, 1, c * d}, {p->mean_batch, 0, 1}},
        {p->dcovariance, {b, 1, all}, {p->covariance_batch, 0, 1}},
        {joint ? p->dvalue_mean : NULL, {b, joint, c * e}, {p->value_mean_batch, 0, 1}},
        {joint ? p->dcross : NULL, {b, joint, c * p->value_width * d}, {p->cross_batch, 0, 1}},
    };
    const int required[INPUTS] = {1,     1,     1, s > 0, (int)joint, back && p->dcross && joint,
                                  whole, whole, 0, 0};
    memcpy(v->in, in, sizeof in);
    memcpy(v->out, back ? backward : forward, sizeof backward);
    memcpy(v->required, required, sizeof required);
}

static int32_t check_views(const views *v, const sattn_mixture *p, int direction, int64_t bytes)
{
    sattn_argument in[INPUTS], out[OUTPUTS];
    for (int i = 0; i < INPUTS; i++)
        in[i] = (sattn_argument){
            .view = v->in[i], .bytes = bytes, .required = v->required[i], .rows = 1};
    for (int i = 0; i < OUTPUTS; i++) /* a shared parameter has one gradient */
        out[i] = (sattn_argument){
            .view = v->out[i], .bytes = bytes, .summed = is_backward(direction) && i > 0};
    return sattn_check_arguments(in, direction == SATTN_FORWARD ? FORWARD_INPUTS : INPUTS, out,
                                 OUTPUTS, p->work, p->work_bytes);
}

int32_t sattn_mixture_check(sattn_mixture *p, const sattn_mixture *given, int direction,
                            int64_t element_bytes)
{
    int32_t status = sattn_check_struct(p, given, sizeof *p, LEAST_SIZE);
    if (status == SATTN_OK)
        status = check_shape(p);
    if (status == SATTN_OK)
        status = sattn_par_check(p->threads);
    if (status != SATTN_OK)
        return status;
    if ((p->flags & ~(SATTN_ACCUMULATE | SATTN_SHARED_COVARIANCE)) != 0)
        return SATTN_EOPTION;
    views v;
    list_views(&v, p, direction);
    if (!v.required[3])
        p->covariance = p->dcovariance = NULL;
    if (!p->value_width)
        p->value_mean = p->cross = p->dvalue_mean = p->dcross = NULL;
    if (direction == SATTN_SHAPE)
        return SATTN_OK;
    return check_views(&v, p, direction, element_bytes);
}

static int64_t block_of(int64_t components, int64_t queries, int64_t element_bytes)
{
    int64_t block = PLANE_BYTES / (2 * element_bytes * (components ? components : 1));
    block = block / SATTN_TILE * SATTN_TILE;
    block = block < LEAST_BLOCK ? LEAST_BLOCK : block > MOST_BLOCK ? MOST_BLOCK : block;
    const int64_t all = (queries + SATTN_TILE - 1) / SATTN_TILE * SATTN_TILE;
    return all < block ? all : block;
}

/* Whether nothing that backward sums over queries is shared between batch entries. */
static int is_independent(const sattn_mixture *p)
{
    return (!p->dlog_weight || p->log_weight_batch) && (!p->dmean || p->mean_batch) &&
           (!p->dcovariance || p->covariance_batch) && (!p->dvalue_mean || p->value_mean_batch) &&
           (!p->dcross || p->cross_batch);
}

int64_t sattn_factor_group(const sattn_mixture_plan *plan)
{
    const int64_t group = SATTN_BATCH_ROWS / (plan->rank ? plan->rank : 1);
    return group < 1 ? 1 : group < SATTN_GROUP ? group : SATTN_GROUP;
}

/* What covariances are multiplied out to */
static void plan_covariances(sattn_mixture_plan *q, const sattn_mixture *p, int direction)
{
    const int64_t d = p->width;
    q->kind = sattn_expanded_kind(p);
    if (sattn_keeps_factor(p) && direction != SATTN_LINEAR_BACKWARD) {
        q->kind = SATTN_COVARIANCE_DIAG;
        q->rank = p->rank;
    }
    q->kernel_kind = sattn_is_shared(p) ? SATTN_COVARIANCE_ZERO : q->kind;
    if (q->kind != p->covariance_kind)
        q->expanded = q->kind == SATTN_COVARIANCE_FULL ? d * d : d * (1 + q->rank);
}

/* Elements of a thread's scratch for its widest user: the tiles of either pass, a panel of an outer
 * product, the factors of a group of low-rank covariances, a factor that is multiplied out. */
static int64_t scratch_of(const sattn_mixture_plan *q, const sattn_mixture *p)
{
    const int64_t d = p->width, e = sattn_value_width(p), wide = d > e ? d : e;
    const int64_t keys = d + e > 2 * SATTN_BATCH_ROWS ? d + e : 2 * SATTN_BATCH_ROWS;
    const int64_t rows = q->rank * sattn_factor_group(q), factor = sattn_factor_width(p);
    const int64_t users[] = {
        SATTN_TILE * (2 * SATTN_WINDOW + 4 * d + 2 * e + keys + 10),
        SATTN_PANEL * (SATTN_CHUNK + wide) + SATTN_PANEL,
        rows * (2 * SATTN_TILE + d) + 2 * d * SATTN_TILE,
        q->kind == SATTN_COVARIANCE_FULL ? 2 * d * factor : 0,
    };
    int64_t most = 0;
    for (int i = 0; i < 4; i++)
        most = users[i] > most ? users[i] : most;
    return most;
}

int32_t sattn_mixture_plan_make(sattn_mixture_plan *plan, const sattn_mixture *p, int direction,
                                int64_t element_bytes)
{
    const int64_t c = p->components, d = p->width, e = sattn_value_width(p);
    sattn_mixture_plan q = {0};
    plan_covariances(&q, p, direction);
    const int64_t matrix =
        (q.kernel_kind == SATTN_COVARIANCE_FULL ? d : 4 + 2 * q.rank) + (p->cross ? e : 0);
    const double work =
        (double)p->batch * (double)p->queries * (double)c * (double)d * (double)matrix;
    q.threads = work < SERIAL ? 1 : sattn_par_threads(p->threads);
    q.tiles = (p->queries + SATTN_TILE - 1) / SATTN_TILE;
    q.windows = (c + SATTN_WINDOW - 1) / SATTN_WINDOW;
    q.mixtures = p->log_weight_batch || p->mean_batch ? p->batch : p->batch > 0;
    q.covariances = p->covariance_batch ? p->batch : p->batch > 0;
    q.block = block_of(c, p->queries, element_bytes);
    q.state = (e + 2) * SATTN_TILE;
    q.lanes =
        direction == SATTN_BACKWARD && is_independent(p) && p->batch >= q.threads ? q.threads : 1;
    q.split = direction == SATTN_FORWARD && q.windows > 1 && p->batch * q.tiles < 2 * q.threads;
    q.plane = q.block * (2 * c + 1 + (q.kernel_kind == SATTN_COVARIANCE_DIAG ? 2 * d : 0));
    int64_t states = 0, planes = 0;
    q.scratch_size = scratch_of(&q, p);
    int64_t scratch = q.scratch_size, centred = q.mixtures, matrices = q.covariances;
    if (!sattn_grow(&scratch, q.threads) || !sattn_grow(&centred, c + 1) ||
        !sattn_grow(&centred, d) || !sattn_grow(&matrices, sattn_covariance_count(p)) ||
        !sattn_grow(&matrices, q.expanded))
        return SATTN_ESIZE;
    if (q.split) {
        states = q.state;
        if (!sattn_grow(&states, p->batch * q.tiles) || !sattn_grow(&states, q.windows))
            return SATTN_ESIZE;
    }
    if (direction == SATTN_BACKWARD) {
        planes = q.plane;
        if (!sattn_grow(&planes, q.lanes))
            return SATTN_ESIZE;
    }
    /* multiples of 16 elements keep every part on a cache line */
    q.centred = 0;
    q.matrices = (centred + 15) / 16 * 16;
    q.slopes = q.matrices + (matrices + 15) / 16 * 16;
    q.states = q.slopes + (is_backward(direction) ? (matrices + 15) / 16 * 16 : 0);
    q.planes = q.states + (states + 15) / 16 * 16;
    q.scratch = q.planes + (planes + 15) / 16 * 16;
    q.elements = q.scratch + scratch;
    *plan = q;
    return q.elements <= INT64_MAX / 16 ? SATTN_OK : SATTN_ESIZE;
}
