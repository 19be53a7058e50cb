/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SATTN_SATTN_H
#define SATTN_SATTN_H

/* libsattn: softmax attention on the CPU, exact, reproducible, and its infinite-prompt limit on
 * Gaussian mixtures. This header includes the rest. */

#include "attention.h"
#include "base.h"
#include "exp.h"
#include "fit.h"
#include "hybrid.h"
#include "isa.h"
#include "learn.h"
#include "linear.h"
#include "merge.h"
#include "mixture.h"
#include "prompt.h"
#include "quadrature.h"
#include "random.h"
#include "softmax.h"
#include "tilt.h"
#include "task.h"
#include "train.h"

#endif
