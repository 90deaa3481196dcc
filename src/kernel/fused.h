/*
 * Several element-wise float ops as one: a tree of them, run block by block, so
 * that what lies between them never leaves the cache and is never a tensor.
 *
 * Every element goes through the same operations in the same order as in the
 * ops by themselves, so results are equal to the bit. Whatever the tree cannot
 * do in blocks (shapes that do not fit, operands broadcast in some rarer way)
 * it does op by op, with the ops' own kernels; so errors are theirs too.
 */
#ifndef KERNEL_FUSED_H
#define KERNEL_FUSED_H

#include "kernel/pointwise.h"

#define FUSED_OPS_MAX   24
#define FUSED_SLOTS_MAX 6

struct fused_op {
    const struct op_node *node; /* as it was before */
    struct pointwise_op loop;
    bool bias;  /* BiasAdd: y is a vector, of x's last dimension */
    int arg[2]; /* an input, or ~k: what op k gives */
    int slot;   /* where its block lies: ops are in the order of a stack */
};

struct fused {
    int count;
    struct fused_op ops[]; /* the last gives the result */
};

/* What a node does that can be part of a tree; false: it can not. */
bool fused_find(const struct op_node *n, struct fused_op *ret);
/* Numbers the slots; false when there would be too many. */
bool fused_lay_out(struct fused *f);

/* Inputs and output 0 of c. On failure c->node is the op's that failed. */
enum mst_code fused_run(struct op_ctx *c, const struct fused *f) MUST_USE;

#endif
