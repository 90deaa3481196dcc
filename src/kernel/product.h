/*
 * Matrix products of tensors of any number type, over gemm.h, which knows four.
 */
#ifndef KERNEL_PRODUCT_H
#define KERNEL_PRODUCT_H

#include "kernel/gemm.h"

/*
 * out = a b, with the shapes, strides and offsets in g (whose pointers are
 * ignored). All three are dense, so that an offset means the same in a tensor
 * of another type. conj_*: take the conjugate of a complex input.
 */
enum mst_code product_run(struct op_ctx *c, const struct gemm *g,
                          const struct tensor *a, bool conj_a,
                          const struct tensor *b, bool conj_b,
                          struct tensor *out) MUST_USE;

#endif
