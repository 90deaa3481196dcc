/*
 * The ops that make tensor lists out of tensors: rows (from-tensor, scatter)
 * or pieces (split), which share the tensor's bytes.
 */
#include "base/mem.h"
#include "kernel/element.h"
#include "kernel/tensor_list.h"
#include "kernel/types.h"

static enum mst_code check_vector(struct op_ctx *c, const struct tensor *t)
{
    if (t->ndim)
        return MST_OK;
    return op_fail(c, MST_INVALID_ARGUMENT,
                   "Tensor must be at least a vector, but saw shape: []");
}

/* The rows of t are like the given shape. */
static enum mst_code check_rows(struct op_ctx *c, const struct tensor *t,
                                const struct shape *shape)
{
    char want[SHAPE_TEXT_MAX], got[SHAPE_TEXT_MAX];
    enum mst_code rc = check_vector(c, t);
    struct shape row, both;

    if (rc)
        return rc;
    row = element_shape_of(t);
    row = element_shape_tail(&row);
    if (!element_shape_merge(shape, &row, &both))
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Specified a list with shape %s from a tensor with "
                       "shape %s",
                       shape_text(shape->ndim, shape->dims, want),
                       shape_text(row.ndim, row.dims, got));
    return MST_OK;
}

static enum mst_code from_tensor_run(struct op_ctx *c)
{
    const struct tensor *t = op_in(c, 0);
    struct tensor_list *l;
    struct shape shape;
    enum mst_code rc = tensor_list_shape_in(c, 1, &shape);

    if (!rc)
        rc = check_rows(c, t, &shape);
    if (!rc)
        rc = tensor_list_check_count(c, t->dims[0]);
    if (rc)
        return rc;
    l = tensor_list_new(t->dtype, &shape, -1);
    tensor_list_resize(l, t->dims[0]);
    for (int64_t i = 0; i < t->dims[0] && !rc; i++)
        rc = element_row(t, i, &l->items[i], c->st);
    if (!rc)
        return tensor_list_out(c, l);
    object_unref(&l->o);
    return rc;
}

const struct op_def def_tensor_list_from_tensor = {
    .name = "TensorListFromTensor",
    .in = "tensor: element_dtype, element_shape: shape_type",
    .out = "output_handle: variant",
    .attr = "element_dtype: type; shape_type: {int32, int64}",
    .key = "element_dtype",
    .kernel = (const struct op_kernel[]){ { DT_ANY, from_tensor_run }, { 0 } },
};

/* Row k of t becomes element index[k]; all are within the list. */
static enum mst_code scatter(struct op_ctx *c, const struct tensor *t,
                             const struct tensor *index, struct tensor_list *l)
{
    enum mst_code rc = MST_OK;

    for (int64_t k = 0; k < index->count && !rc; k++) {
        struct tensor row;

        rc = element_row(t, k, &row, c->st);
        if (rc)
            break;
        tensor_unref(&l->items[tensor_int(index, k)]);
        l->items[tensor_int(index, k)] = row;
    }
    return rc;
}

/* How long the list must be; size is -1 or what it will have. */
static enum mst_code check_indices(struct op_ctx *c, const struct tensor *index,
                                   int64_t size, int64_t *ret)
{
    int64_t count = MAX(size, 0);

    for (int64_t k = 0; k < index->count; k++) {
        int64_t i = tensor_int(index, k);

        if (i < 0)
            return op_fail(c, MST_INVALID_ARGUMENT,
                           "Indices in TensorListScatter must all be "
                           "non-negative.");
        if (size != -1 && i >= size)
            return op_fail(c, MST_INVALID_ARGUMENT,
                           "TensorListScatter: Trying to scatter at index "
                           "%lld in list with size %lld",
                           (long long)i, (long long)size);
        count = MAX(count, i + 1);
    }
    *ret = count;
    return tensor_list_check_count(c, count);
}

static enum mst_code check_scatter(struct op_ctx *c, struct shape *shape,
                                   int64_t *ret_count)
{
    const struct tensor *t = op_in(c, 0), *index = op_in(c, 1);
    int64_t size = -1;
    enum mst_code rc = tensor_list_shape_in(c, 2, shape);

    if (!rc && c->node->in_count > 3)
        rc = tensor_list_number(c, 3, "num_elements", &size);
    if (!rc && size < -1)
        rc = op_fail(c, MST_INVALID_ARGUMENT,
                     "TensorListScatter expects num_elements >= -1, found: "
                     "%lld",
                     (long long)size);
    if (!rc)
        rc = check_rows(c, t, shape);
    if (!rc && index->count != t->dims[0])
        rc = op_fail(c, MST_INVALID_ARGUMENT,
                     "Invalid number of rows in input tensor. Expected: %lld "
                     "Actual: %lld",
                     (long long)index->count, (long long)t->dims[0]);
    return rc ? rc : check_indices(c, index, size, ret_count);
}

static enum mst_code scatter_run(struct op_ctx *c)
{
    struct tensor_list *l;
    struct shape shape;
    int64_t count;
    enum mst_code rc = check_scatter(c, &shape, &count);

    if (rc)
        return rc;
    l = tensor_list_new(op_in(c, 0)->dtype, &shape, -1);
    tensor_list_resize(l, count);
    rc = scatter(c, op_in(c, 0), op_in(c, 1), l);
    if (!rc)
        return tensor_list_out(c, l);
    object_unref(&l->o);
    return rc;
}

const struct op_def def_tensor_list_scatter = {
    .name = "TensorListScatter",
    .in = "tensor: element_dtype, indices: int32, element_shape: shape_type",
    .out = "output_handle: variant",
    .attr = "element_dtype: type; shape_type: {int32, int64}",
    .key = "element_dtype",
    .kernel = (const struct op_kernel[]){ { DT_ANY, scatter_run }, { 0 } },
};

const struct op_def def_tensor_list_scatter_v2 = {
    .name = "TensorListScatterV2",
    .in = "tensor: element_dtype, indices: int32, element_shape: shape_type, "
          "num_elements: int32",
    .out = "output_handle: variant",
    .attr = "element_dtype: type; shape_type: {int32, int64}",
    .key = "element_dtype",
    .kernel = (const struct op_kernel[]){ { DT_ANY, scatter_run }, { 0 } },
};

static enum mst_code check_scatter_into(struct op_ctx *c, int64_t *ret_count)
{
    const struct tensor *t = op_in(c, 1), *index = op_in(c, 2);
    const struct tensor_list *l;
    char text[SHAPE_TEXT_MAX];
    enum mst_code rc = tensor_list_in(c, 0, &l);

    if (!rc && t->dtype != l->dtype)
        rc = op_fail(c, MST_INVALID_ARGUMENT,
                     "Invalid data types; input tensor type: %s list "
                     "element_type: %s",
                     dtype_name(t->dtype), dtype_name(l->dtype));
    if (!rc)
        rc = check_vector(c, t);
    if (!rc && index->ndim != 1)
        rc = op_fail(c, MST_INVALID_ARGUMENT,
                     "Expected indices to be a vector, but received shape: %s",
                     tensor_shape_text(index, text));
    if (!rc && index->count != t->dims[0])
        rc = op_fail(c, MST_INVALID_ARGUMENT,
                     "Expected len(indices) == tensor.shape[0], but saw: %lld "
                     "vs. %lld",
                     (long long)index->count, (long long)t->dims[0]);
    if (!rc)
        rc = check_rows(c, t, &l->shape);
    if (!rc)
        rc = check_indices(c, index, -1, ret_count);
    if (!rc)
        *ret_count = MAX(*ret_count, l->count);
    return rc;
}

static enum mst_code scatter_into_run(struct op_ctx *c)
{
    struct tensor_list *l;
    int64_t count;
    enum mst_code rc = check_scatter_into(c, &count);

    if (!rc)
        rc = tensor_list_change(c, &l);
    if (rc)
        return rc;
    tensor_list_resize(l, count);
    return scatter(c, op_in(c, 1), op_in(c, 2), l);
}

const struct op_def def_tensor_list_scatter_into_existing_list = {
    .name = "TensorListScatterIntoExistingList",
    .in = "input_handle: variant, tensor: element_dtype, indices: int32",
    .out = "output_handle: variant",
    .attr = "element_dtype: type",
    .key = "element_dtype",
    .kernel = (const struct op_kernel[]){ { DT_ANY, scatter_into_run }, { 0 } },
};

static enum mst_code check_split(struct op_ctx *c, struct shape *shape)
{
    const struct tensor *t = op_in(c, 0), *lengths = op_in(c, 2);
    struct shape rows = element_shape_of(t), want;
    char a[SHAPE_TEXT_MAX], b[SHAPE_TEXT_MAX];
    enum mst_code rc = tensor_list_shape_in(c, 1, shape);

    if (!rc && !shape->ndim)
        rc = op_fail(c, MST_INVALID_ARGUMENT,
                     "TensorListSplit requires element_shape to be at least of "
                     "rank 1, but saw: []");
    if (!rc)
        rc = check_vector(c, t);
    if (rc)
        return rc;
    rows = element_shape_tail(&rows);
    want = element_shape_tail(shape);
    if (!element_shape_merge(&want, &rows, &want))
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "tensor shape %s is not compatible with element_shape "
                       "%s",
                       tensor_shape_text(t, a),
                       shape_text(shape->ndim, shape->dims, b));
    if (lengths->ndim != 1)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Expected lengths to be a vector, received shape: %s",
                       tensor_shape_text(lengths, a));
    return tensor_list_check_count(c, lengths->count);
}

static enum mst_code split(struct op_ctx *c, struct tensor_list *l)
{
    const struct tensor *t = op_in(c, 0), *lengths = op_in(c, 2);
    int64_t at = 0;

    for (int64_t i = 0; i < lengths->count; i++) {
        int64_t n = tensor_int(lengths, i);
        enum mst_code rc;

        if (n < 0)
            return op_fail(c, MST_INVALID_ARGUMENT,
                           "Invalid value in lengths: %lld", (long long)n);
        if (n > t->dims[0] - at)
            return op_fail(c, MST_INVALID_ARGUMENT,
                           "Attempting to slice [%lld, %llu] from tensor with "
                           "length %lld",
                           (long long)at,
                           (unsigned long long)at + (unsigned long long)n,
                           (long long)t->dims[0]);
        rc = tensor_slice(&l->items[i], t, at, n, c->st);
        if (rc)
            return rc;
        at += n;
    }
    if (at != t->dims[0])
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Unused values in tensor. Length of tensor: %lld Values "
                       "used: %lld",
                       (long long)t->dims[0], (long long)at);
    return MST_OK;
}

static enum mst_code split_run(struct op_ctx *c)
{
    struct tensor_list *l;
    struct shape shape;
    enum mst_code rc = check_split(c, &shape);

    if (rc)
        return rc;
    l = tensor_list_new(op_in(c, 0)->dtype, &shape, -1);
    tensor_list_resize(l, op_in(c, 2)->count);
    rc = split(c, l);
    if (!rc)
        return tensor_list_out(c, l);
    object_unref(&l->o);
    return rc;
}

const struct op_def def_tensor_list_split = {
    .name = "TensorListSplit",
    .in = "tensor: element_dtype, element_shape: shape_type, lengths: int64",
    .out = "output_handle: variant",
    .attr = "element_dtype: type; shape_type: {int32, int64}",
    .key = "element_dtype",
    .kernel = (const struct op_kernel[]){ { DT_ANY, split_run }, { 0 } },
};
