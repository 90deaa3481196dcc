/*
 * Parts of tensors: Slice, and StridedSlice with what writes to such parts,
 * in a tensor or in a variable.
 */
#include "kernel/args.h"
#include "kernel/slice_spec.h"
#include "kernel/strided.h"

static enum mst_code slice(struct op_ctx *c)
{
    const struct tensor *in = op_in(c, 0), *begin = op_in(c, 1);
    const struct tensor *size = op_in(c, 2);
    char ta[SHAPE_TEXT_MAX], tb[SHAPE_TEXT_MAX];
    int64_t dims[TENSOR_RANK_MAX], step[TENSOR_RANK_MAX], at = 0;

    if (begin->ndim != 1 || size->ndim != 1 || begin->count != in->ndim ||
        size->count != in->ndim)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Expected begin and size arguments to be 1-D tensors of "
                       "size %d, but got shapes %s and %s instead.",
                       in->ndim, tensor_shape_text(begin, ta),
                       tensor_shape_text(size, tb));
    strided_of(in->ndim, in->dims, step);
    for (int i = 0; i < in->ndim; i++) {
        int64_t b = tensor_int(begin, i), n = tensor_int(size, i);

        if (b < 0 || b > in->dims[i])
            return op_fail(c, MST_INVALID_ARGUMENT,
                           "Expected begin[%d] in [0, %lld], but got %lld", i,
                           (long long)in->dims[i], (long long)b);
        if (n < -1 || n > in->dims[i] - b)
            return op_fail(c, MST_INVALID_ARGUMENT,
                           "Expected size[%d] in [0, %lld], but got %lld", i,
                           (long long)(in->dims[i] - b), (long long)n);
        dims[i] = n == -1 ? in->dims[i] - b : n;
        at += b * step[i];
    }
    return strided_view(c, 0, in, in->ndim, dims, step, at);
}

const struct op_def def_slice = {
    .name = "Slice",
    .in = "input: T, begin: Index, size: Index",
    .out = "output: T",
    .attr = "T: type; Index: {int32, int64}",
    .kernel = (const struct op_kernel[]){ { DT_ANY, slice }, { 0 } },
};

/* ---- strided ---- */

#define MASKS                                                                  \
    "begin_mask: int = 0; end_mask: int = 0; ellipsis_mask: int = 0; "         \
    "new_axis_mask: int = 0; shrink_axis_mask: int = 0"

static enum mst_code strided_slice(struct op_ctx *c)
{
    const struct tensor *in = op_in(c, 0);
    struct slice_spec s;
    enum mst_code rc = slice_spec(c, 1, in->ndim, in->dims, &s);

    return rc ? rc
              : strided_view(c, 0, in, s.shape.ndim, s.shape.dims, s.step,
                             s.at);
}

const struct op_def def_strided_slice = {
    .name = "StridedSlice",
    .in = "input: T, begin: Index, end: Index, strides: Index",
    .out = "output: T",
    .attr = "T: type; Index: {int16, int32, int64}; " MASKS,
    .init = slice_masks_init,
    .kernel = (const struct op_kernel[]){ { DT_ANY, strided_slice }, { 0 } },
};

/* Writes value to the slice of t, as broadcast as it has to be. */
static enum mst_code write_slice(struct op_ctx *c, struct tensor *t,
                                 const struct slice_spec *s,
                                 const struct tensor *value)
{
    struct strided n = { .to_at = s->at };
    int64_t step[TENSOR_RANK_MAX];
    char ta[SHAPE_TEXT_MAX], tb[SHAPE_TEXT_MAX];
    bool good = value->ndim <= s->shape.ndim;

    strided_of(value->ndim, value->dims, step);
    for (int i = 0; i < s->shape.ndim && good; i++) {
        int k = i - (s->shape.ndim - value->ndim);
        int64_t d = k < 0 ? 1 : value->dims[k];

        good = d == 1 || d == s->shape.dims[i];
        strided_dim(&n, s->shape.dims[i], s->step[i], d == 1 ? 0 : step[k]);
    }
    if (!good)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Cannot broadcast input shape %s into final shape %s",
                       tensor_shape_text(value, ta),
                       shape_text(s->shape.ndim, s->shape.dims, tb));
    strided_copy(c, t, value, &n);
    return MST_OK;
}

static enum mst_code strided_slice_grad(struct op_ctx *c)
{
    const struct tensor *dims = op_in(c, 0), *dy = op_in(c, 4);
    char ta[SHAPE_TEXT_MAX], tb[SHAPE_TEXT_MAX];
    struct slice_spec s;
    struct shape shape;
    enum mst_code rc;

    if (dims->ndim != 1)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "shape must be 1-D, got shape.shape = %s",
                       tensor_shape_text(dims, ta));
    rc = args_dims(c, dims, &shape);
    if (!rc)
        rc = slice_spec(c, 1, shape.ndim, shape.dims, &s);
    if (rc)
        return rc;
    if (!shape_compatible(&s.shape, dy))
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "shape of dy was %s instead of %s",
                       tensor_shape_text(dy, ta),
                       shape_text(s.shape.ndim, s.shape.dims, tb));
    rc = op_out_new(c, 0, shape.ndim, shape.dims);
    if (rc)
        return rc;
    tensor_zero(op_out(c, 0));
    return write_slice(c, op_out(c, 0), &s, dy);
}

const struct op_def def_strided_slice_grad = {
    .name = "StridedSliceGrad",
    .in = "shape: Index, begin: Index, end: Index, strides: Index, dy: T",
    .out = "output: T",
    .attr = "T: type; Index: {int32, int64}; " MASKS,
    .init = slice_masks_init,
    .kernel =
        (const struct op_kernel[]){ { DT_ANY, strided_slice_grad }, { 0 } },
};

/* ---- written to ---- */

static enum mst_code tensor_strided_slice_update(struct op_ctx *c)
{
    const struct tensor *in = op_in(c, 0);
    struct slice_spec s;
    enum mst_code rc = slice_spec(c, 1, in->ndim, in->dims, &s);

    if (!rc)
        rc = op_out_forward(c, 0, 0);
    if (rc)
        return rc;
    if (op_out(c, 0)->data != in->data)
        tensor_copy_elems(op_out(c, 0), 0, in, 0, in->count);
    /* What nothing is written to takes a value of any shape. */
    for (int i = 0; i < s.shape.ndim; i++)
        if (s.shape.dims[i] == 0)
            return MST_OK;
    return write_slice(c, op_out(c, 0), &s, op_in(c, 4));
}

const struct op_def def_tensor_strided_slice_update = {
    .name = "TensorStridedSliceUpdate",
    .in = "input: T, begin: Index, end: Index, strides: Index, value: T",
    .out = "output: T",
    .attr = "T: type; Index: {int32, int64}; " MASKS,
    .init = slice_masks_init,
    .kernel =
        (const struct op_kernel[]){ { DT_ANY, tensor_strided_slice_update },
                                    { 0 } },
};

static enum mst_code strided_slice_assign(struct op_ctx *c)
{
    struct tensor value = { 0 };
    struct slice_spec s;
    struct variable *v;
    enum mst_code rc = op_variable(c, 0, true, &v);

    if (rc)
        return rc;
    pthread_mutex_lock(&v->lock);
    rc = slice_spec(c, 1, v->t.ndim, v->t.dims, &s);
    if (!rc)
        rc = variable_prepare_rows(v, c->st);
    /* The value may be a part of the variable itself. */
    if (!rc && op_in(c, 4)->buf == v->t.buf)
        rc = tensor_copy(&value, op_in(c, 4), c->st);
    else if (!rc)
        value = tensor_ref(op_in(c, 4));
    if (!rc)
        rc = write_slice(c, &v->t, &s, &value);
    tensor_unref(&value);
    pthread_mutex_unlock(&v->lock);
    if (!rc && c->node->out_count)
        op_out_ref(c, 0, 0);
    return rc;
}

const struct op_def def_strided_slice_assign = {
    .name = "StridedSliceAssign",
    .in = "ref: Ref(T), begin: Index, end: Index, strides: Index, value: T",
    .out = "output_ref: Ref(T)",
    .attr = "T: type; Index: {int32, int64}; " MASKS,
    .init = slice_masks_init,
    .kernel =
        (const struct op_kernel[]){ { DT_ANY, strided_slice_assign }, { 0 } },
};

const struct op_def def_resource_strided_slice_assign = {
    .name = "ResourceStridedSliceAssign",
    .in = "ref: resource, begin: Index, end: Index, strides: Index, value: T",
    .attr = "T: type; Index: {int32, int64}; " MASKS,
    .flags = OP_STATEFUL,
    .init = slice_masks_init,
    .kernel =
        (const struct op_kernel[]){ { DT_ANY, strided_slice_assign }, { 0 } },
};
