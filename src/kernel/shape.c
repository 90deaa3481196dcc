/*
 * Shapes as values, and the same elements under another shape. No element is
 * touched here but by Fill and BroadcastTo.
 */
#include <string.h>

#include "kernel/args.h"
#include "kernel/strided.h"

/* ---- looking ---- */

/* Writes numbers into output i, a new vector (or scalar, if n is -1) of int32
 * or int64. */
static enum mst_code put_ints(struct op_ctx *c, int i, int n, const int64_t *v)
{
    bool wide = c->node->out_types[i] == DT_INT64;
    enum mst_code rc =
        op_out_new(c, i, n < 0 ? 0 : 1, (int64_t[]){ n < 0 ? 1 : n });

    for (int k = 0; k < (n < 0 ? 1 : n) && !rc; k++) {
        if (wide)
            TENSOR_DATA(op_out(c, i), int64_t)[k] = v[k];
        else if (v[k] > INT32_MAX)
            rc = op_fail(c, MST_INVALID_ARGUMENT,
                         "Shape output type is 32-bit  but dim %d is %lld", k,
                         (long long)v[k]);
        else
            TENSOR_DATA(op_out(c, i), int32_t)[k] = (int32_t)v[k];
    }
    return rc;
}

static enum mst_code shape(struct op_ctx *c)
{
    enum mst_code rc = MST_OK;

    for (int i = 0; i < c->node->in_count && !rc; i++)
        rc = put_ints(c, i, op_in(c, i)->ndim, op_in(c, i)->dims);
    return rc;
}

const struct op_def def_shape = {
    .name = "Shape",
    .in = "input: T",
    .out = "output: out_type",
    .attr = "T: type; out_type: {int32, int64} = int32",
    .flags = OP_LIGHT,
    .kernel = (const struct op_kernel[]){ { DT_ANY, shape }, { 0 } },
};

const struct op_def def_shape_n = {
    .name = "ShapeN",
    .in = "input: N * T",
    .out = "output: N * out_type",
    .attr = "N: int >= 1; T: type; out_type: {int32, int64} = int32",
    .flags = OP_LIGHT,
    .kernel = (const struct op_kernel[]){ { DT_ANY, shape }, { 0 } },
};

static enum mst_code size(struct op_ctx *c)
{
    int64_t n = op_in(c, 0)->count;

    if (c->node->out_types[0] == DT_INT32 && n > INT32_MAX)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Number of elements was larger than representable by "
                       "32-bit output type");
    return put_ints(c, 0, -1, &n);
}

const struct op_def def_size = {
    .name = "Size",
    .in = "input: T",
    .out = "output: out_type",
    .attr = "T: type; out_type: {int32, int64} = int32",
    .flags = OP_LIGHT,
    .kernel = (const struct op_kernel[]){ { DT_ANY, size }, { 0 } },
};

static enum mst_code rank(struct op_ctx *c)
{
    return put_ints(c, 0, -1, (int64_t[]){ op_in(c, 0)->ndim });
}

const struct op_def def_rank = {
    .name = "Rank",
    .in = "input: T",
    .out = "output: int32",
    .attr = "T: type",
    .flags = OP_LIGHT,
    .kernel = (const struct op_kernel[]){ { DT_ANY, rank }, { 0 } },
};

static enum mst_code ensure_shape(struct op_ctx *c)
{
    const struct shape *s = c->node->state;
    char have[SHAPE_TEXT_MAX], want[SHAPE_TEXT_MAX];

    if (!shape_compatible(s, op_in(c, 0)))
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Shape of tensor %s %s is not compatible with expected "
                       "shape %s.",
                       c->node->in_name ? c->node->in_name : "input",
                       tensor_shape_text(op_in(c, 0), have),
                       shape_text(s->ndim, s->dims, want));
    op_out_same(c, 0, 0);
    return MST_OK;
}

static enum mst_code ensure_shape_init(struct op_node *n, struct status *st)
{
    (void)st;
    n->state = (void *)op_attr_shape(n, "shape");
    return MST_OK;
}

const struct op_def def_ensure_shape = {
    .name = "EnsureShape",
    .in = "input: T",
    .out = "output: T",
    .attr = "shape: shape; T: type",
    .init = ensure_shape_init,
    .kernel = (const struct op_kernel[]){ { DT_ANY, ensure_shape }, { 0 } },
};

/* ---- the same elements ---- */

/* What Reshape is asked for: at most one dimension is open (-1). Zeros stay
 * out of the product, so that the open dimension can be had beside them. */
struct wanted {
    struct shape s;
    int open; /* -1: none */
    int64_t product;
    bool zero;
};

static enum mst_code reshape_too_many(struct op_ctx *c, const struct shape *s)
{
    char text[SHAPE_TEXT_MAX], *at, *part;

    shape_text(s->ndim, s->dims, text);
    at = text;
    status_set(c->st, MST_INVALID_ARGUMENT, "Shape ");
    while ((part = strsep(&at, ",")))
        status_append(c->st, "%s%s", part, at ? ", " : "");
    status_append(c->st, " has too many elements");
    return MST_INVALID_ARGUMENT;
}

static enum mst_code reshape_read(struct op_ctx *c, struct wanted *w)
{
    const struct tensor *t = op_in(c, 1);
    char text[SHAPE_TEXT_MAX];
    enum mst_code rc;

    if (t->ndim > 1)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "sizes input must be 1-D, not %s",
                       tensor_shape_text(t, text));
    rc = args_ints(c, t, w->s.dims);
    if (rc)
        return rc;
    *w = (struct wanted){ .s = w->s, .open = -1, .product = 1 };
    w->s.ndim = (int)t->count;
    for (int i = 0; i < w->s.ndim; i++) {
        int64_t d = w->s.dims[i];

        if (d == -1 && w->open >= 0)
            return op_fail(c, MST_INVALID_ARGUMENT,
                           "Only one input size may be -1, not both %d and %d",
                           w->open, i);
        if (d == -1)
            w->open = i;
        else if (d < 0)
            return op_fail(c, MST_INVALID_ARGUMENT,
                           "Size %d must be non-negative, not %lld", i,
                           (long long)d);
        else if (d == 0)
            w->zero = true;
        else if (__builtin_mul_overflow(w->product, d, &w->product))
            return reshape_too_many(c, &w->s);
    }
    return MST_OK;
}

static enum mst_code reshape_close(struct op_ctx *c, struct wanted *w)
{
    const struct tensor *in = op_in(c, 0);
    int64_t have = 1;
    bool skipped = false;

    for (int i = 0; i < in->ndim; i++) {
        if (in->dims[i] || !w->zero)
            have *= in->dims[i];
        else
            skipped = true;
    }
    w->s.dims[w->open] = have / w->product;
    if (!skipped && have % w->product)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Input to reshape is a tensor with %lld values, but the "
                       "requested shape requires a multiple of %lld",
                       (long long)in->count, (long long)w->product);
    return MST_OK;
}

static enum mst_code reshape(struct op_ctx *c)
{
    const struct tensor *in = op_in(c, 0);
    struct wanted w;
    int64_t count;
    enum mst_code rc = reshape_read(c, &w);

    if (!rc && w.open >= 0)
        rc = reshape_close(c, &w);
    if (rc)
        return rc;
    if (!shape_count(w.s.ndim, w.s.dims, 1, &count))
        return reshape_too_many(c, &w.s);
    if (count != in->count)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Input to reshape is a tensor with %lld values, but the "
                       "requested shape has %lld",
                       (long long)in->count, (long long)count);
    tensor_reshape(op_out(c, 0), in, w.s.ndim, w.s.dims);
    return MST_OK;
}

const struct op_def def_reshape = {
    .name = "Reshape",
    .in = "tensor: T, shape: Tshape",
    .out = "output: T",
    .attr = "T: type; Tshape: {int32, int64} = int32",
    .flags = OP_LIGHT,
    .kernel = (const struct op_kernel[]){ { DT_ANY, reshape }, { 0 } },
};

static enum mst_code expand_dims(struct op_ctx *c)
{
    const struct tensor *in = op_in(c, 0), *dim = op_in(c, 1);
    int64_t dims[TENSOR_RANK_MAX + 1];
    int at;

    if (dim->count != 1)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "'dim' must be a tensor with a single value");
    if (!args_axis(tensor_int(dim, 0), in->ndim + 1, &at))
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Tried to expand dim index %lld for tensor with %d "
                       "dimensions.",
                       (long long)tensor_int(dim, 0), in->ndim);
    if (in->ndim == TENSOR_RANK_MAX)
        return op_fail(c, MST_UNIMPLEMENTED,
                       "Tensors of rank %d are not supported, only up to %d",
                       in->ndim + 1, TENSOR_RANK_MAX);
    memcpy(dims, in->dims, (size_t)at * sizeof(dims[0]));
    dims[at] = 1;
    memcpy(dims + at + 1, in->dims + at,
           (size_t)(in->ndim - at) * sizeof(dims[0]));
    tensor_reshape(op_out(c, 0), in, in->ndim + 1, dims);
    return MST_OK;
}

const struct op_def def_expand_dims = {
    .name = "ExpandDims",
    .in = "input: T, dim: Tdim",
    .out = "output: T",
    .attr = "T: type; Tdim: {int32, int64} = int32",
    .flags = OP_LIGHT,
    .kernel = (const struct op_kernel[]){ { DT_ANY, expand_dims }, { 0 } },
};

static enum mst_code squeeze(struct op_ctx *c)
{
    const struct tensor *in = op_in(c, 0);
    const struct attr *which = c->node->state;
    bool drop[TENSOR_RANK_MAX] = { false };
    int64_t dims[TENSOR_RANK_MAX];
    int n = 0, at;

    for (int i = 0; i < which->count; i++) {
        if (!args_axis(which->value[i].i, in->ndim, &at))
            return op_fail(c, MST_INVALID_ARGUMENT,
                           "Tried to squeeze dim index %lld for tensor with %d "
                           "dimensions.",
                           (long long)which->value[i].i, in->ndim);
        drop[at] = true;
    }
    for (int i = 0; i < in->ndim; i++) {
        if (drop[i] && in->dims[i] != 1)
            return op_fail(c, MST_INVALID_ARGUMENT,
                           "Can not squeeze dim[%d], expected a dimension of "
                           "1, got %lld",
                           i, (long long)in->dims[i]);
        if (which->count ? !drop[i] : in->dims[i] != 1)
            dims[n++] = in->dims[i];
    }
    tensor_reshape(op_out(c, 0), in, n, dims);
    return MST_OK;
}

static enum mst_code squeeze_init(struct op_node *n, struct status *st)
{
    (void)st;
    n->state = (void *)op_attr(n, "squeeze_dims");
    return MST_OK;
}

const struct op_def def_squeeze = {
    .name = "Squeeze",
    .in = "input: T",
    .out = "output: T",
    .attr = "T: type; squeeze_dims: list(int) >= 0 = []",
    .flags = OP_LIGHT,
    .init = squeeze_init,
    .kernel = (const struct op_kernel[]){ { DT_ANY, squeeze }, { 0 } },
};
