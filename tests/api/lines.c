/* SPDX-License-Identifier: BSD-2-Clause */
#include "lines.h"

#include <stddef.h>
#include <stdlib.h>

const char *const array_names[ARRAYS] = {"x",  "bias",  "mask",  "length", "sink",
                                         "dy", "dlse",  "y",     "stats",  "lse",
                                         "dx", "dbias", "dsink", "dscale"};

/* The member that points to the array; its strides, as many as there are, follow it. */
#define AT(member) offsetof(sattn_softmax, member)
static const size_t pointers[ARRAYS] = {AT(x),  AT(bias),  AT(mask),  AT(length), AT(sink),
                                        AT(dy), AT(dlse),  AT(y),     AT(stats),  AT(lse),
                                        AT(dx), AT(dbias), AT(dsink), AT(dscale)};
static const int strides[ARRAYS] = {3, 3, 3, 2, 2, 3, 1, 3, 1, 1, 3};

double of_storage(int storage, uint16_t bits)
{
    const int mantissa = storage == SATTN_STORAGE_BF16 ? 7 : 10, sign = bits >> 15;
    const int bias = storage == SATTN_STORAGE_BF16 ? 127 : 15, all = 2 * bias + 1;
    const int exponent = bits >> mantissa & all, fraction = bits & ((1 << mantissa) - 1);
    double x = exponent == 0 ? ldexp(fraction, 1 - bias - mantissa)
                             : ldexp(fraction + (1 << mantissa), exponent - bias - mantissa);
    if (exponent == all)
        x = fraction ? (double)NAN : (double)INFINITY;
    return sign ? -x : x;
}

static int unit_of(int storage, double x) /* the last bit of x stored is 2^unit */
{
    const int mantissa = storage == SATTN_STORAGE_BF16 ? 7 : 10;
    const int least = storage == SATTN_STORAGE_BF16 ? -126 : -14;
    int exponent;
    frexp(x, &exponent); /* |x| = f 2^exponent, 1/2 <= f < 1 */
    return (exponent - 1 < least ? least : exponent - 1) - mantissa;
}

double rounded_to(int storage, double x)
{
    if (!isfinite(x) || x == 0)
        return x;
    const int unit = unit_of(storage, x);
    const double y = ldexp(nearbyint(ldexp(x, -unit)), unit);
    const double beyond = storage == SATTN_STORAGE_BF16 ? 0x1p128 : 0x1p16;
    return fabs(y) >= beyond ? copysign((double)INFINITY, x) : y;
}

static uint16_t to_storage(int storage, double x)
{
    const int bf16 = storage == SATTN_STORAGE_BF16;
    const double y = fabs(rounded_to(storage, x));
    const int sign = signbit(x) ? 0x8000 : 0;
    if (isnan(x))
        return 0x7fff;
    if (isinf(y))
        return (uint16_t)(sign | (bf16 ? 0x7f80 : 0x7c00));
    if (y == 0)
        return (uint16_t)sign;
    /* the bits count the numbers below: 2^mantissa of each exponent above the least */
    const int unit = unit_of(storage, y), least = bf16 ? -133 : -24;
    return (uint16_t)(sign | ((int)ldexp(y, -unit) + ((unit - least) << (bf16 ? 7 : 10))));
}

static char *address(const array *a, int64_t b, int64_t m, int64_t j)
{
    return a->data + (b * a->stride[0] + m * a->stride[1] + j * a->stride[2]) * (int64_t)a->bytes;
}

double get(const array *a, int64_t b, int64_t m, int64_t j)
{
    const char *p = address(a, b, m, j);
    uint16_t bits;
    int64_t whole;
    if (a->storage == SATTN_STORAGE_OWN)
        return element(p, 0, a->bytes);
    if (a->bytes == 1)
        return (unsigned char)*p;
    if (a->bytes == 8) {
        memcpy(&whole, p, sizeof whole);
        return (double)whole;
    }
    memcpy(&bits, p, sizeof bits);
    return of_storage(a->storage, bits);
}

static void put(const array *a, int64_t b, int64_t m, int64_t j, double value)
{
    char *p = address(a, b, m, j);
    const int64_t whole = a->storage < 0 ? (int64_t)value : 0;
    const real own = (real)value;
    if (a->storage == SATTN_STORAGE_OWN)
        memcpy(p, &own, sizeof own);
    else if (a->bytes == 1)
        *p = (char)whole;
    else if (a->bytes == 8)
        memcpy(p, &whole, sizeof whole);
    else
        memcpy(p, &(uint16_t){to_storage(a->storage, value)}, 2);
}

int is_live(const problem *x, int64_t b, int64_t m, int64_t j)
{
    return (!x->a[MASK].data || get(&x->a[MASK], b, m, j) != 0) &&
           (!x->a[LENGTH].data || j < get(&x->a[LENGTH], b, m, 0));
}

/* Counts and strides of array i; elements of an axis that repeats are one. */
static array form_of(const shape *s, int i)
{
    static const int orders[6][3] = {{2, 1, 0}, {1, 2, 0}, {2, 0, 1},
                                     {0, 1, 2}, {1, 0, 2}, {0, 2, 1}};
    const int like = i == DBIAS ? BIAS : i == DSINK ? SINK : i;
    const int wide =
        like == X || like == Y || like == DX || like == DY || like == BIAS || i == MASK;
    const int packed = i == STATS || i == LSE || i == DLSE || i == DSCALE;
    array a = {.count = {s->batch, s->rows,
                         wide         ? s->width
                         : i == STATS ? 2
                                      : 1},
               .bytes = sizeof(real)};
    a.storage = i == X || i == DX ? s->x_storage : i == Y || i == DY ? s->y_storage : 0;
    a.bytes = i == MASK ? 1 : i == LENGTH ? 8 : a.storage ? 2 : sizeof(real);
    if (i == MASK || i == LENGTH)
        a.storage = -1;
    int64_t reach = !packed && s->gap % 3 == 2 ? 2 : 1;
    for (int k = 0; k < 3; k++) {
        const int axis = orders[packed ? 0 : s->order][k];
        if (like < INPUTS && s->repeats[like] >> axis & 1)
            a.count[axis] = a.stride[axis] = 0;
        if (i == DSCALE)
            a.count[axis] = 1;
        a.stride[axis] = like < INPUTS && s->repeats[like] >> axis & 1 ? 0 : reach;
        if (a.stride[axis])
            reach = reach * (a.count[axis] ? a.count[axis] : 1) + (packed && axis ? 0 : s->gap);
        else
            a.count[axis] = 1;
    }
    a.size = (size_t)reach * a.bytes;
    return a;
}

static void place_arrays(problem *x)
{
    const shape *s = &x->shape;
    for (int i = 0; i < ARRAYS; i++) {
        array *a = &x->a[i];
        const int of = i == DLSE ? DLSE : i == DBIAS ? BIAS : i == DSINK ? SINK : i;
        *a = form_of(s, i);
        if (of >= BIAS && of < INPUTS && !(s->has >> of & 1))
            continue;
        a->data = guarded(a->size, s->side, s->offset * a->bytes);
        void **pointer = (void **)(void *)((char *)&x->p + pointers[i]);
        *pointer = a->data;
        for (int k = 0; k < strides[i]; k++)
            ((int64_t *)(void *)(pointer + 1))[k] = a->stride[k];
    }
}

#define EACH(a, b, m, j)                                                                           \
    for (int64_t b = 0; b < (a).count[0]; b++)                                                     \
        for (int64_t m = 0; m < (a).count[1]; m++)                                                 \
            for (int64_t j = 0; j < (a).count[2]; j++)

/* Dead elements, and cotangents of logits -inf, stay NaN. */
static void fill(problem *x, int i)
{
    const shape *s = &x->shape;
    const array *a = &x->a[i];
    rng g = seed_of(s->seed * ARRAYS + (uint64_t)i);
    if (!a->data)
        return;
    EACH(*a, b, m, j)
    {
        const double u = random_in(&g, -1, 1);
        const int hide = random_in(&g, 0, 1) < s->hidden && s->scale > 0;
        double value = i == X || i == SINK ? u * s->reach : u;
        if ((i == X || i == SINK || i == BIAS) && hide)
            value = -(double)INFINITY;
        if (i == MASK)
            value = fabs(u) >= s->dead && (s->dead == 0 || m != 1) ? 1 + 100 * fabs(u) : 0;
        if (i == LENGTH)
            value = floor(fabs(u) * (double)(s->width + 1));
        const int per_element = i == X || i == DY || (i == BIAS && s->repeats[BIAS] == 0);
        if (per_element && !is_live(x, b, m, j))
            continue;
        if (i == DY && (get(&x->a[X], b, m, j) == -(double)INFINITY ||
                        (x->a[BIAS].data && get(&x->a[BIAS], b, m, j) == -(double)INFINITY)))
            continue;
        put(a, b, m, j, value);
    }
}

problem make_problem(const shape *s)
{
    static const int order[] = {LENGTH, MASK, SINK, BIAS, X, DY, DLSE};
    problem x = {.shape = *s};
    at("seed %llu B %d M %d N %d form %d storage %d %d scale %g has %x repeats %x %x %x %x "
       "from_x %d order %d gap %d side %d offset %d",
       (unsigned long long)s->seed, (int)s->batch, (int)s->rows, (int)s->width, (int)s->form,
       (int)s->x_storage, (int)s->y_storage, s->scale, s->has, s->repeats[BIAS], s->repeats[MASK],
       s->repeats[LENGTH], s->repeats[SINK], s->from_x, s->order, (int)s->gap, (int)s->side,
       (int)s->offset);
    check(sattn_softmax_init(&x.p, sizeof x.p, s->batch, s->rows, s->width) == SATTN_OK);
    x.p.form = s->form;
    x.p.scale = s->scale;
    x.p.x_storage = s->x_storage;
    x.p.y_storage = s->y_storage;
    place_arrays(&x);
    for (int i = 0; i < INPUTS; i++)
        fill(&x, order[i]);
    return x;
}

static void check_gaps(const problem *x)
{
    check_guarded();
    for (int i = INPUTS; i < ARRAYS; i++) {
        const array *a = &x->a[i];
        if (!a->data)
            continue;
        char *used = calloc(a->size + 1, 1);
        cr_assert(used, "no memory");
        EACH(*a, b, m, j)
        memset(used + (address(a, b, m, j) - a->data), 1, a->bytes);
        for (size_t k = 0; k < a->size; k++)
            check(used[k] || is_untouched(a->data + k, 1));
        free(used);
    }
}

void clear_outputs(problem *x)
{
    for (int i = INPUTS; i < ARRAYS; i++)
        if (x->a[i].data)
            memset(x->a[i].data, 0xff, x->a[i].size);
}

void solve(problem *x)
{
    check(FN(sattn_softmax_forward)(&x->p) == SATTN_OK);
    sattn_softmax back = x->p;
    if (x->shape.from_x)
        back.y = NULL;
    check(FN(sattn_softmax_backward)(&back) == SATTN_OK);
    check_gaps(x);
}

void check_same_outputs(const problem *got, const problem *want)
{
    for (int i = INPUTS; i < ARRAYS; i++)
        if (want->a[i].data)
            EACH(want->a[i], b, m, j)
            {
                const double g = get(&got->a[i], b, m, j), w = get(&want->a[i], b, m, j);
                if (!same_bits(&g, &w, 1, sizeof g))
                    cr_assert(0, "%s[%d][%d][%d] = %a, not %a: %s", array_names[i], (int)b, (int)m,
                              (int)j, g, w, where());
            }
}

shape random_shape(uint64_t seed)
{
    rng g = seed_of(seed + 1000);
    static const int64_t widths[] = {1, 2, 7, 16, 17, 40, 64, 100, 130, 513, 700, 2049, 2600};
    shape s = {.seed = seed, .batch = random_below(&g, 4), .rows = random_below(&g, 6)};
    s.width = widths[random_below(&g, random_below(&g, 4) ? 9 : 13)];
    if (random_below(&g, 20) == 0)
        s.width = 0;
    if (random_below(&g, 4) == 0)
        s.rows = 1 + random_below(&g, s.width > 200 ? 10 : 150);
    s.form = (int32_t)random_below(&g, 2);
    if (sizeof(real) == 4 && random_below(&g, 3) == 0)
        s.x_storage = (int32_t)random_below(&g, 3), s.y_storage = (int32_t)random_below(&g, 3);
    s.scale = (double[]){1, 1, 0.5, -0.7, 0}[random_below(&g, 5)];
    s.reach = (double[]){1, 5, 30}[random_below(&g, 3)];
    s.has = (unsigned)random_bits(&g) & (unsigned)random_bits(&g) & 0x1e;
    s.has |= 1u << DY | (unsigned)random_below(&g, 2) << DLSE;
    for (int i = BIAS; i <= SINK; i++)
        s.repeats[i] = (unsigned)random_below(&g, i <= MASK ? 8 : 4);
    s.hidden = random_below(&g, 2) ? 0.2 : 0;
    s.dead = random_below(&g, 2) ? 0.3 : 0.9;
    s.from_x = (int)random_below(&g, 2);
    s.order = (int)random_below(&g, 6);
    s.gap = random_below(&g, 6);
    s.side = (placement)random_below(&g, 3);
    s.offset = (size_t)random_below(&g, 3);
    return s;
}
