/*
 * Batches of sparse tensors: one of rank n + 1 is cut into many of rank n, and
 * many are stacked into one. In between they are strings, variants, or numbers
 * in a table.
 */
#ifndef KERNEL_SPARSE_BATCH_H
#define KERNEL_SPARSE_BATCH_H

#include "kernel/sparse.h"

/* A sparse tensor with its own references. */
struct sparse_part {
    struct tensor indices, values, shape;
};

void sparse_part_done(struct sparse_part *p);

/* Inputs 0 to 2 have the ranks of a sparse tensor; texts as the ops that
 * serialise have them. */
enum mst_code sparse_batch_ranks(struct op_ctx *c) MUST_USE;
/* They are a sparse tensor of rank > 1, sorted; s->indices become *own. */
enum mst_code sparse_batch_in(struct op_ctx *c, struct sparse *s,
                              struct tensor *own) MUST_USE;
/* Row `row` of it; *at is the element to begin with, and moves on. */
enum mst_code sparse_batch_cut(struct op_ctx *c, const struct sparse *s,
                               int64_t row, int64_t *at,
                               struct sparse_part *ret) MUST_USE;

/* All of one rank and type: outputs 0 to 2 are the stack of them, with
 * `lead` dimensions in front, whose product is n. */
enum mst_code sparse_batch_stack(struct op_ctx *c,
                                 const struct sparse_part *parts, int64_t n,
                                 int lead, const int64_t *lead_dims) MUST_USE;

#endif
