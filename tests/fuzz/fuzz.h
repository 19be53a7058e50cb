/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SATTN_TEST_FUZZ_H
#define SATTN_TEST_FUZZ_H

/* Descriptors of any content. The bytes choose the operation, the type, the shape and what becomes
 * of every member: left as init set it, NULL, another array, odd strides, unknown options. Pointers
 * lead to memory that such a descriptor can describe. Then of every call
 *   - the status is one that base.h names;
 *   - a status other than SATTN_OK has written nothing, SATTN_OK nothing but outputs;
 *   - three threads give the status and the bits of one.
 * What a call must not do besides (read or write elsewhere, overflow) is a sanitiser's to see. */

#include <stddef.h>
#include <stdint.h>

/* NULL, or what was wrong. Adds 1 to ok[2 * operation + type] where a call had SATTN_OK. */
const char *fuzz(const uint8_t *bytes, size_t size, int64_t *ok);

#endif
