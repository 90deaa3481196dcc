/*
 * Conversion of elements from one plain type to another.
 */
#ifndef KERNEL_CAST_H
#define KERNEL_CAST_H

#include "op/op.h"

/* The loop that converts; NULL when there is none between the two. */
void (*cast_loop(enum dtype from, enum dtype to))(void *out, const void *in,
                                                  int64_t n);
/* dst becomes src converted, of the same shape. */
enum mst_code cast_tensor(struct op_ctx *c, struct tensor *dst, enum dtype to,
                          const struct tensor *src) MUST_USE;

#endif
