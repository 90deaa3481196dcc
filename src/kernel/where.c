/*
 * From elements to their places and back: Where (the indices of what is not
 * zero) and OneHot (something at an index, something else beside it).
 */
#include "kernel/args.h"
#include "kernel/strided.h"
#include "kernel/types.h"

#define WHERE_RANK_MAX 8 /* TensorFlow's, which says so */

/* Writes the index of element i, counting dimensions. */
static inline void put_index(const struct tensor *t, int64_t i, int64_t *ret)
{
    for (int d = t->ndim - 1; d >= 0; d--) {
        ret[d] = i % t->dims[d];
        i /= t->dims[d];
    }
}

static enum mst_code where_check(struct op_ctx *c)
{
    int ndim = op_in(c, 0)->ndim;

    if (ndim < 1 || ndim > WHERE_RANK_MAX)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "WhereOp : Unhandled input dimensions: %d", ndim);
    return MST_OK;
}

#define WHERE(s, T, A, DT, LD, ST)                                             \
    VECTOR_CLONES static int64_t where_count_##s(const T *x, int64_t n)        \
    {                                                                          \
        int64_t count = 0;                                                     \
                                                                               \
        for (int64_t i = 0; i < n; i++)                                        \
            count += LD(x[i]) != 0;                                            \
        return count;                                                          \
    }                                                                          \
    static enum mst_code where_##s(struct op_ctx *c)                           \
    {                                                                          \
        const struct tensor *in = op_in(c, 0);                                 \
        const T *x = in->data;                                                 \
        int64_t n = where_count_##s(x, in->count), *out;                       \
        enum mst_code rc = where_check(c);                                     \
                                                                               \
        if (!rc)                                                               \
            rc = op_out_new(c, 0, 2, (int64_t[]){ n, in->ndim });              \
                                                                               \
        if (rc)                                                                \
            return rc;                                                         \
        /* A variable's elements may change between the two passes. */         \
        out = op_out(c, 0)->data;                                              \
        for (int64_t i = 0; i < in->count && n; i++)                           \
            if (LD(x[i]) != 0) {                                               \
                put_index(in, i, out);                                         \
                out += in->ndim;                                               \
                n--;                                                           \
            }                                                                  \
        if (n)                                                                 \
            memset(out, 0, (size_t)(n * in->ndim) * sizeof(*out));             \
        return MST_OK;                                                         \
    }
TYPES_NUMBER(WHERE)
TYPES_BOOL(WHERE)

const struct op_def def_where = {
    .name = "Where",
    .in = "input: T",
    .out = "index: int64",
    .attr = "T: {float, double, int32, uint8, int16, int8, complex64, int64, "
            "qint8, quint8, qint32, bfloat16, qint16, quint16, uint16, "
            "complex128, half, uint32, uint64, bool} = bool",
    .kernel = KERNELS(TYPES_NUMBER(ROW, where) TYPES_BOOL(ROW, where)),
};

/* ---- */

static enum mst_code one_hot_check(struct op_ctx *c)
{
    static const char *const names[] = { "", "depth", "on_value", "off_value" };
    int64_t axis = *(const int64_t *)c->node->state;
    int ndim = op_in(c, 0)->ndim + 1;
    char text[SHAPE_TEXT_MAX];

    if (axis < -1 || axis >= ndim)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Expected axis to be -1 or between [0, %d).  But "
                       "received: %lld",
                       ndim, (long long)axis);
    for (int i = 1; i <= 3; i++)
        if (op_in(c, i)->ndim)
            return op_fail(c, MST_INVALID_ARGUMENT,
                           "%s must be a scalar, but got: %s", names[i],
                           tensor_shape_text(op_in(c, i), text));
    if (tensor_int(op_in(c, 1), 0) < 0)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "depth must be non-negative, got: %lld",
                       (long long)tensor_int(op_in(c, 1), 0));
    return MST_OK;
}

static enum mst_code one_hot(struct op_ctx *c)
{
    const struct tensor *in = op_in(c, 0), *on = op_in(c, 2);
    int64_t axis = *(const int64_t *)c->node->state, depth, suffix;
    int64_t dims[TENSOR_RANK_MAX + 1];
    struct tensor *out = op_out(c, 0);
    enum mst_code rc = one_hot_check(c);

    if (rc)
        return rc;
    axis = axis < 0 ? in->ndim : axis;
    depth = tensor_int(op_in(c, 1), 0);
    memcpy(dims, in->dims, (size_t)axis * sizeof(dims[0]));
    dims[axis] = depth;
    memcpy(dims + axis + 1, in->dims + axis,
           (size_t)(in->ndim - axis) * sizeof(dims[0]));
    rc = op_out_new(c, 0, in->ndim + 1, dims);
    if (rc || !out->count)
        return rc;
    strided_fill(c, out, op_in(c, 3));
    suffix = args_product(in->dims, (int)axis, in->ndim);
    for (int64_t i = 0; i < in->count; i++) {
        int64_t at = tensor_int(in, i);

        if (at >= 0 && at < depth)
            tensor_copy_elems(
                out, (i / suffix * depth + at) * suffix + i % suffix, on, 0, 1);
    }
    return MST_OK;
}

static enum mst_code one_hot_init(struct op_node *n, struct status *st)
{
    (void)st;
    n->state = ARENA_NEW(n->arena, int64_t);
    *(int64_t *)n->state = op_attr_int(n, "axis");
    return MST_OK;
}

const struct op_def def_one_hot = {
    .name = "OneHot",
    .in = "indices: TI, depth: int32, on_value: T, off_value: T",
    .out = "output: T",
    .attr = "axis: int = -1; T: type; "
            "TI: {uint8, int8, int32, int64} = int64",
    .init = one_hot_init,
    .kernel = (const struct op_kernel[]){ { DT_ANY, one_hot }, { 0 } },
};
