/*
 * What x[begin:end:step, …, newaxis, 3] means: the five masks of StridedSlice
 * and its relatives, worked out once for a given shape.
 */
#ifndef KERNEL_SLICE_SPEC_H
#define KERNEL_SLICE_SPEC_H

#include "op/op.h"

/* The attributes; the same for all ops of the family. */
struct slice_masks {
    uint32_t begin, end, ellipsis, new_axis, shrink;
};

/* The slice as a view of the sliced tensor: its shape, the step of each
 * dimension and the place of its first element, in elements. */
struct slice_spec {
    struct shape shape;
    int64_t step[TENSOR_RANK_MAX];
    int64_t at;
};

/* init() of the family: node->state is a struct slice_masks. */
enum mst_code slice_masks_init(struct op_node *n, struct status *st);

/* Of a tensor of those dimensions; begin, end and strides are the inputs from
 * `first` on. */
enum mst_code slice_spec(struct op_ctx *c, int first, int ndim,
                         const int64_t *dims, struct slice_spec *ret) MUST_USE;

#endif
