/*
 * One value in many places: Fill, BroadcastTo, and tensors whose elements
 * nobody has said anything about yet.
 */
#include <string.h>

#include "kernel/args.h"
#include "kernel/strided.h"

static enum mst_code fill(struct op_ctx *c)
{
    const struct tensor *dims = op_in(c, 0), *value = op_in(c, 1);
    char text[SHAPE_TEXT_MAX];
    struct shape s;
    enum mst_code rc;

    if (dims->ndim > 1)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "dims must represent a vector, got shape %s",
                       tensor_shape_text(dims, text));
    if (value->ndim && !(value->ndim == 1 && value->count == 1))
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "value must represent a scalar, got shape %s",
                       tensor_shape_text(value, text));
    rc = args_dims(c, dims, &s);
    if (!rc)
        rc = op_out_new(c, 0, s.ndim, s.dims);
    if (!rc)
        strided_fill(c, op_out(c, 0), value);
    return rc;
}

const struct op_def def_fill = {
    .name = "Fill",
    .in = "dims: index_type, value: T",
    .out = "output: T",
    .attr = "T: type; index_type: {int32, int64} = int32",
    .kernel = (const struct op_kernel[]){ { DT_ANY, fill }, { 0 } },
};

/* ---- broadcasting ---- */

static enum mst_code broadcast_to(struct op_ctx *c)
{
    const struct tensor *in = op_in(c, 0);
    char have[SHAPE_TEXT_MAX], want[SHAPE_TEXT_MAX];
    int64_t to[TENSOR_RANK_MAX], from[TENSOR_RANK_MAX];
    struct strided n = { 0 };
    struct shape s;
    enum mst_code rc = args_shape(c, 1, "shape", &s);

    if (rc)
        return rc;
    if (s.ndim == in->ndim &&
        !memcmp(s.dims, in->dims, (size_t)s.ndim * sizeof(s.dims[0]))) {
        op_out_same(c, 0, 0);
        return MST_OK;
    }
    if (in->ndim > s.ndim)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Rank of input (%d) must be no greater than rank of "
                       "output shape (%d).",
                       in->ndim, s.ndim);
    strided_of(s.ndim, s.dims, to);
    strided_of(in->ndim, in->dims, from);
    for (int i = 0; i < s.ndim; i++) {
        int k = i - (s.ndim - in->ndim);
        int64_t d = k < 0 ? 1 : in->dims[k];

        if (d != s.dims[i] && d != 1)
            return op_fail(c, MST_INVALID_ARGUMENT,
                           s.dims[i] == 1 ? "Unable to broadcast tensor of "
                                            "shape %s to tensor of shape %s"
                                          : "Incompatible shapes: %s vs. %s",
                           tensor_shape_text(in, have),
                           shape_text(s.ndim, s.dims, want));
        strided_dim(&n, s.dims[i], to[i], d == 1 ? 0 : from[k]);
    }
    rc = op_out_new(c, 0, s.ndim, s.dims);
    if (!rc)
        strided_copy(c, op_out(c, 0), in, &n);
    return rc;
}

const struct op_def def_broadcast_to = {
    .name = "BroadcastTo",
    .in = "input: T, shape: Tidx",
    .out = "output: T",
    .attr = "T: type; Tidx: {int32, int64} = int32",
    .kernel = (const struct op_kernel[]){ { DT_ANY, broadcast_to }, { 0 } },
};

/* ---- no value, and copies ---- */

static enum mst_code empty(struct op_ctx *c)
{
    char text[SHAPE_TEXT_MAX];
    struct shape s;
    enum mst_code rc;

    if (op_in(c, 0)->ndim != 1)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "shape must be a vector of int32, got shape %s",
                       tensor_shape_text(op_in(c, 0), text));
    rc = args_dims(c, op_in(c, 0), &s);
    if (!rc)
        rc = op_out_new(c, 0, s.ndim, s.dims);
    /* Without `init` the elements may be anything, so also zero: what lay in
     * that memory before is nobody's business. */
    if (!rc)
        tensor_zero(op_out(c, 0));
    return rc;
}

const struct op_def def_empty = {
    .name = "Empty",
    .in = "shape: int32",
    .out = "output: dtype",
    .attr = "dtype: type; init: bool = false",
    .flags = OP_STATEFUL,
    .kernel = (const struct op_kernel[]){ { DT_ANY, empty }, { 0 } },
};

static enum mst_code deep_copy(struct op_ctx *c)
{
    return tensor_copy(op_out(c, 0), op_in(c, 0), c->st);
}

const struct op_def def_deep_copy = {
    .name = "DeepCopy",
    .in = "x: T",
    .out = "y: T",
    .attr = "T: type",
    .flags = OP_STATEFUL,
    .kernel = (const struct op_kernel[]){ { DT_ANY, deep_copy }, { 0 } },
};

static enum mst_code guarantee_const(struct op_ctx *c)
{
    op_out_same(c, 0, 0);
    return MST_OK;
}

const struct op_def def_guarantee_const = {
    .name = "GuaranteeConst",
    .in = "input: T",
    .out = "output: T",
    .attr = "T: type",
    .flags = OP_STATEFUL,
    .kernel = (const struct op_kernel[]){ { DT_ANY, guarantee_const }, { 0 } },
};
