/*
 * Sparse tensors: three tensors that belong together, the indices [n, ndim] of
 * the elements that are not zero, their values [n], and the dense shape [ndim].
 * Usually sorted by index, first dimension first; what is outside of the shape
 * or out of order comes from the network like anything else.
 */
#ifndef KERNEL_SPARSE_H
#define KERNEL_SPARSE_H

#include "op/op.h"

struct sparse {
    const struct tensor *indices, *values, *shape;
    int64_t n;
    int ndim;
};

/* From inputs i (indices), i + 1 (values) and i + 2 (shape), checked to fit
 * together. */
enum mst_code sparse_read(struct op_ctx *c, int i, struct sparse *ret) MUST_USE;
/* The same with the texts of the ops that make a SparseTensor of them: sets,
 * batches. */
enum mst_code sparse_create(struct op_ctx *c, int i,
                            struct sparse *ret) MUST_USE;
/* No dimension is negative and their product fits: it is *ret_count. */
enum mst_code sparse_size(struct op_ctx *c, const struct tensor *shape,
                          int64_t *ret_count) MUST_USE;

/* Every index lies inside of the shape; with `order` each is also greater than
 * the one before it. */
enum mst_code sparse_check(struct op_ctx *c, const struct sparse *s,
                           bool order) MUST_USE;

/* A copy of the indices in *own, which s uses from then on: for who reads them
 * twice, as they may be a variable's that changes. */
enum mst_code sparse_own(struct op_ctx *c, struct sparse *s,
                         struct tensor *own) MUST_USE;

static inline const int64_t *sparse_row(const struct sparse *s, int64_t i)
{
    return TENSOR_DATA(s->indices, int64_t) + i * s->ndim;
}

/* The order of rows of indices, as numbers of rows; equal ones keep theirs.
 * rows[] holds n numbers already, which are sorted. */
void sparse_sort(const int64_t *indices, int ndim, int64_t *rows, int64_t n);

/* "2 0": the first elements of a vector, as TensorFlow summarises values. */
const char *sparse_values_text(const struct tensor *t, char *text);
/* "[2,0]": any numbers, unlike shape_text(). */
const char *sparse_index_text(int ndim, const int64_t *index,
                              const char *between, char *text);

#endif
