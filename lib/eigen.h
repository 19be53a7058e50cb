/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SATTN_LIB_EIGEN_H
#define SATTN_LIB_EIGEN_H

#include <stdint.h>

/* Eigenvalues and eigenvectors of the symmetric a [d][d], by cyclic Jacobi rotations:
 * a = sum_i value[i] v_i v_i', values falling, v_i = row i of vector [d][d], its largest entry in
 * magnitude (the first of them) positive. Both triangles of a are read, and overwritten. Values are
 * within some d 2^-52 of the largest in magnitude. Rotations are exact in order: the same bits
 * everywhere. a must be finite. O(d^3), about ten sweeps.
 * Source: Golub, Van Loan, "Matrix Computations", section 8.5 (4th edition). */
void sattn_eigen(int64_t d, double *a, double *value, double *vector);

#endif
