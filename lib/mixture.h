/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SATTN_LIB_MIXTURE_H
#define SATTN_LIB_MIXTURE_H

/* What forward and backward of mixture attention share: checks, and the plan of a call. */

#include "sattn/mixture.h"

enum {
    SATTN_FORWARD = 0,
    SATTN_BACKWARD = 1,
    SATTN_SHAPE = 2,          /* shapes and options alone */
    SATTN_LINEAR_BACKWARD = 3 /* neither out nor stats is needed; no factor is kept */
};

/* Copies the caller's descriptor to *p and checks all of it but the values of the log weights. */
int32_t sattn_mixture_check(sattn_mixture *p, const sattn_mixture *given, int direction,
                            int64_t element_bytes);

/* E of the output: D when the values are the keys. */
static inline int64_t sattn_value_width(const sattn_mixture *p)
{
    return p->value_width ? p->value_width : p->width;
}

/* Elements of `covariance` for one component. */
static inline int64_t sattn_covariance_width(const sattn_mixture *p)
{
    /* a factor for each kind: the product of another kind might overflow */
    const int64_t d = p->width, factors[] = {0, 1, d, 1, d, 1 + (int64_t)p->rank};
    return p->covariance_kind == SATTN_COVARIANCE_ISOTROPIC ? 1 : d * factors[p->covariance_kind];
}

static inline int sattn_is_shared(const sattn_mixture *p)
{
    return (p->flags & SATTN_SHARED_COVARIANCE) != 0;
}

/* Covariances of one batch entry. */
static inline int64_t sattn_covariance_count(const sattn_mixture *p)
{
    return sattn_is_shared(p) ? 1 : p->components;
}

/* Whether S = diag(s) + F F' is worked with as it is: where two products with F are less than one
 * with S. A shared S is multiplied with once a query, not once a component. */
static inline int sattn_keeps_factor(const sattn_mixture *p)
{
    return p->covariance_kind == SATTN_COVARIANCE_LOW_RANK && !sattn_is_shared(p) &&
           2 * (int64_t)p->rank < p->width;
}

/* The kind a covariance is multiplied out to: ZERO, DIAG or FULL; LOW_RANK unless kept. */
static inline int32_t sattn_expanded_kind(const sattn_mixture *p)
{
    static const int32_t kinds[] = {
        [SATTN_COVARIANCE_ZERO] = SATTN_COVARIANCE_ZERO,
        [SATTN_COVARIANCE_DIAG] = SATTN_COVARIANCE_DIAG,
        [SATTN_COVARIANCE_FULL] = SATTN_COVARIANCE_FULL,
        [SATTN_COVARIANCE_ISOTROPIC] = SATTN_COVARIANCE_DIAG,
        [SATTN_COVARIANCE_CHOLESKY] = SATTN_COVARIANCE_FULL,
        [SATTN_COVARIANCE_LOW_RANK] = SATTN_COVARIANCE_FULL,
    };
    return kinds[p->covariance_kind];
}

/* Columns of the factor F of S = diag(s) + F F'; 0: the kind has none. */
static inline int64_t sattn_factor_width(const sattn_mixture *p)
{
    return p->covariance_kind == SATTN_COVARIANCE_CHOLESKY ? p->width : p->rank;
}

/* How a call is cut, and where things are in its workspace (offsets and sizes in elements). Every
 * cut depends on the shape alone; the number of threads only decides who does what. */
typedef struct sattn_mixture_plan {
    int32_t threads;
    int64_t tiles;       /* of SATTN_TILE queries, per batch entry */
    int64_t windows;     /* of SATTN_WINDOW components */
    int64_t mixtures;    /* batch entries with a mixture of their own: B or 1 */
    int split;           /* forward: windows are tasks of their own */
    int64_t block;       /* backward: queries whose weights are kept at once */
    int32_t lanes;       /* backward: batch entries worked on at once, each by threads / lanes */
    int64_t covariances; /* batch entries with covariances of their own: B or 1 */
    int64_t centred;     /* [mixtures][C + 1][D]: centred means, then the centre */
    int32_t kind;        /* that covariances are multiplied out to: ZERO, DIAG or FULL */
    int32_t kernel_kind; /* what the kernels see of it: a shared covariance is not their business */
    int64_t rank;        /* of the factor beside DIAG, 0 = none */
    int64_t expanded;    /* elements of one expanded covariance, 0 = they are used as given */
    int64_t matrices;    /* [covariances][C or 1][expanded], or s [C][D], F' [C][rank][D] */
    int64_t slopes;      /* backward: their gradients, likewise */
    int64_t states, state; /* forward, split: [B][tiles][windows] states of `state` elements */
    int64_t planes, plane; /* backward: [lanes] planes of `plane` elements */
    int64_t scratch, scratch_size; /* [threads] */
    int64_t elements;              /* of all */
} sattn_mixture_plan;

/* SATTN_OK, or SATTN_ESIZE if the workspace overflows. */
int32_t sattn_mixture_plan_make(sattn_mixture_plan *plan, const sattn_mixture *p, int direction,
                                int64_t element_bytes);

/* Rows of a covariance or cross block whose gradient one task forms, and queries per product. */
enum { SATTN_PANEL = 32, SATTN_CHUNK = 192 };

/* Components whose vectors' gradients one task forms, and those of whose factors: their F' fill
 * about SATTN_BATCH_ROWS rows. */
enum { SATTN_GROUP = 16 };
int64_t sattn_factor_group(const sattn_mixture_plan *plan);

#endif
