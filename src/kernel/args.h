/*
 * Whole numbers that ops take as small tensors: shapes, axes, permutations,
 * sizes; int32 or int64, always from the network. Texts as TensorFlow has them.
 */
#ifndef KERNEL_ARGS_H
#define KERNEL_ARGS_H

#include "op/op.h"

/* A shape out of a vector of dimensions, none of them negative and together
 * not too many. `name` is what the error calls the input. */
enum mst_code args_shape(struct op_ctx *c, int i, const char *name,
                         struct shape *ret) MUST_USE;
/* The same without the check that it is a vector. */
enum mst_code args_dims(struct op_ctx *c, const struct tensor *t,
                        struct shape *ret) MUST_USE;
/* The dimensions are fit for a tensor: not negative, few enough elements. */
enum mst_code args_check_dims(struct op_ctx *c, int ndim,
                              const int64_t *dims) MUST_USE;
/* All elements of a tensor, at most TENSOR_RANK_MAX of them. */
enum mst_code args_ints(struct op_ctx *c, const struct tensor *t,
                        int64_t *ret) MUST_USE;

/* An axis in [-ndim, ndim) as one in [0, ndim); false outside of that. */
static inline bool args_axis(int64_t axis, int ndim, int *ret)
{
    if (axis < -ndim || axis >= ndim)
        return false;
    *ret = (int)(axis < 0 ? axis + ndim : axis);
    return true;
}

/* The product of dims[begin..end). */
static inline int64_t args_product(const int64_t *dims, int begin, int end)
{
    int64_t n = 1;

    for (int i = begin; i < end; i++)
        n *= dims[i];
    return n;
}

#endif
