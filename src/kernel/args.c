#include "kernel/args.h"

enum mst_code args_ints(struct op_ctx *c, const struct tensor *t, int64_t *ret)
{
    if (t->count > TENSOR_RANK_MAX)
        return op_fail(c, MST_UNIMPLEMENTED,
                       "Tensors of rank %lld are not supported, only up to %d",
                       (long long)t->count, TENSOR_RANK_MAX);
    for (int64_t k = 0; k < t->count; k++)
        ret[k] = tensor_int(t, k);
    return MST_OK;
}

enum mst_code args_check_dims(struct op_ctx *c, int ndim, const int64_t *dims)
{
    char text[SHAPE_TEXT_MAX];
    int64_t count = 1;

    for (int i = 0; i < ndim; i++) {
        if (dims[i] < 0)
            return op_fail(c, MST_INVALID_ARGUMENT,
                           "Dimension %lld must be >= 0", (long long)dims[i]);
        if (__builtin_mul_overflow(count, dims[i], &count))
            return op_fail(c, MST_INVALID_ARGUMENT,
                           "Shape %s would have more than 2**63 - 1 elements",
                           shape_text(ndim, dims, text));
    }
    return MST_OK;
}

enum mst_code args_dims(struct op_ctx *c, const struct tensor *t,
                        struct shape *ret)
{
    enum mst_code rc;

    if (t->count > 254)
        return op_fail(c, MST_INVALID_ARGUMENT, "Too many dimensions");
    rc = args_ints(c, t, ret->dims);
    if (rc)
        return rc;
    ret->ndim = (int)t->count;
    return args_check_dims(c, ret->ndim, ret->dims);
}

enum mst_code args_shape(struct op_ctx *c, int i, const char *name,
                         struct shape *ret)
{
    const struct tensor *t = op_in(c, i);
    char text[SHAPE_TEXT_MAX];

    if (t->ndim != 1)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "%s must be a vector of {int32,int64}, got shape %s",
                       name, tensor_shape_text(t, text));
    return args_dims(c, t, ret);
}
