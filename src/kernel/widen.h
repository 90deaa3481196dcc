/*
 * Kernels of half and bfloat16 that are those of float: the inputs of the
 * narrow type are widened whole, the kernel for float runs, its outputs are
 * narrowed. For ops that keep much of what they make; what goes over elements
 * one by one does it by the piece (narrow.h).
 */
#ifndef KERNEL_WIDEN_H
#define KERNEL_WIDEN_H

#include "op/op.h"

/* `run` is the kernel for float; it returns when it has finished. */
enum mst_code widen_run(struct op_ctx *c,
                        enum mst_code (*run)(struct op_ctx *c)) MUST_USE;

/* A kernel `name` that does so. */
#define WIDEN(name, run)                                                       \
    static enum mst_code name(struct op_ctx *c)                                \
    {                                                                          \
        return widen_run(c, run);                                              \
    }

#endif
