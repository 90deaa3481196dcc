/*
 * The ops of tensor arrays on many elements at once: what goes in is cut into
 * rows or pieces, which share its bytes; what comes out is put together.
 */
#include "base/mem.h"
#include "kernel/element.h"
#include "kernel/tensor_array.h"
#include "kernel/types.h"

/* ---- many elements in ---- */

static enum mst_code check_scatter(struct op_ctx *c, struct tensor_array *a,
                                   const struct tensor *index,
                                   const struct tensor *value)
{
    char text[SHAPE_TEXT_MAX];
    int64_t last = -1;

    if (index->ndim != 1)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Expected indices to be a vector, but received shape: "
                       "%s",
                       tensor_shape_text(index, text));
    if (!value->ndim)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Input value for unpack must be at least a vector but "
                       "received shape: []");
    if (index->count != value->dims[0])
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Expected len(indices) == values.shape[0], but saw: "
                       "%lld vs. %lld",
                       (long long)index->count, (long long)value->dims[0]);
    for (int64_t i = 0; i < index->count; i++)
        last = MAX(last, tensor_int(index, i));
    if (last >= a->size && !a->dynamic)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Max scatter index must be < array size (%lld vs. "
                       "%lld)",
                       (long long)last, (long long)a->size);
    return tensor_array_check_write(c, a, value);
}

static enum mst_code scatter_run(struct op_ctx *c)
{
    const struct tensor *index = op_in(c, 1), *value = op_in(c, 2);
    struct tensor_array *a;
    enum mst_code rc = tensor_array_get(c, &a);

    if (rc)
        return rc;
    pthread_mutex_lock(&a->lock);
    rc = check_scatter(c, a, index, value);
    for (int64_t i = 0; i < index->count && !rc; i++) {
        struct tensor row = { 0 };

        rc = element_row(value, i, &row, c->st);
        if (!rc)
            rc = tensor_array_write(a, c, tensor_int(index, i), &row);
        tensor_unref(&row);
    }
    pthread_mutex_unlock(&a->lock);
    object_unref(&a->o);
    if (!rc)
        op_out_same(c, 0, 3);
    return rc;
}

/* The lengths are good, and there are as many as the array has places. */
static enum mst_code check_split(struct op_ctx *c, struct tensor_array *a,
                                 const struct tensor *value,
                                 const struct tensor *lengths)
{
    char text[SHAPE_TEXT_MAX];
    int64_t total = 0, size = a->size;

    if (lengths->ndim != 1)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Expected lengths to be a vector, received shape: %s",
                       tensor_shape_text(lengths, text));
    for (int64_t i = 0; i < lengths->count; i++) {
        int64_t n = tensor_int(lengths, i);

        if (n < 0 || __builtin_add_overflow(total, n, &total))
            return op_fail(c, MST_INVALID_ARGUMENT,
                           "Length %lld of a piece is out of range",
                           (long long)n);
    }
    if (!value->ndim)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Expected value to be at least a vector, but received "
                       "shape: []");
    if (total != value->dims[0])
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Expected sum of lengths to be equal to "
                       "values.shape[0], but sum of lengths is %lld and "
                       "value's shape is: %s",
                       (long long)total, tensor_shape_text(value, text));
    if (a->dynamic)
        size = MAX(size, lengths->count);
    if (size != lengths->count)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "TensorArray's size is not equal to the size of lengths "
                       "(%lld vs. %lld), and the TensorArray is not marked as "
                       "dynamically resizeable",
                       (long long)size, (long long)lengths->count);
    return tensor_array_check_write(c, a, value);
}

static enum mst_code split_run(struct op_ctx *c)
{
    const struct tensor *value = op_in(c, 1), *lengths = op_in(c, 2);
    struct tensor_array *a;
    enum mst_code rc = tensor_array_get(c, &a);
    int64_t at = 0;

    if (rc)
        return rc;
    pthread_mutex_lock(&a->lock);
    rc = check_split(c, a, value, lengths);
    if (!rc)
        a->marked_size = lengths->count;
    for (int64_t i = 0; i < lengths->count && !rc; i++) {
        int64_t n = tensor_int(lengths, i);
        struct tensor piece = { 0 };

        rc = tensor_slice(&piece, value, at, n, c->st);
        if (!rc)
            rc = tensor_array_write(a, c, i, &piece);
        tensor_unref(&piece);
        at += n;
    }
    pthread_mutex_unlock(&a->lock);
    object_unref(&a->o);
    if (!rc)
        op_out_same(c, 0, 3);
    return rc;
}

/* ---- many elements out ---- */

static enum mst_code shape_init(struct op_node *n, const char *attr)
{
    n->state = (void *)op_attr_shape(n, attr);
    return MST_OK;
}

static enum mst_code gather_init(struct op_node *n, struct status *st)
{
    (void)st;
    return shape_init(n, "element_shape");
}

static enum mst_code concat_init(struct op_node *n, struct status *st)
{
    (void)st;
    return shape_init(n, "element_shape_except0");
}

static void release(struct tensor *values, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        tensor_unref(&values[i]);
    mem_free(values);
}

/* The elements of these indices, or the first n if there are none. */
static enum mst_code read_many(struct op_ctx *c, struct tensor_array *a,
                               const struct tensor *index, int64_t n,
                               struct tensor **ret)
{
    struct tensor *values;
    enum mst_code rc = MST_OK;

    if (n > TENSOR_ARRAY_MAX)
        return op_fail(c, MST_RESOURCE_EXHAUSTED,
                       "More than %d elements at once", TENSOR_ARRAY_MAX);
    values = mem_array((size_t)n, sizeof(*values));
    pthread_mutex_lock(&a->lock);
    for (int64_t i = 0; i < n && !rc; i++)
        rc = tensor_array_read(a, c, index ? tensor_int(index, i) : i,
                               &values[i]);
    pthread_mutex_unlock(&a->lock);
    if (rc)
        release(values, n);
    else
        *ret = values;
    return rc;
}

/* All of them one behind the other in output 0, whose shape is s. */
static enum mst_code join(struct op_ctx *c, const struct shape *s,
                          const struct tensor *values, int64_t n)
{
    enum mst_code rc = op_out_new(c, 0, s->ndim, s->dims);
    int64_t at = 0;

    for (int64_t i = 0; i < n && !rc; i++) {
        tensor_copy_elems(op_out(c, 0), at, &values[i], 0, values[i].count);
        at += values[i].count;
    }
    return rc;
}

static enum mst_code gather_nothing(struct op_ctx *c)
{
    const struct shape *s = c->node->state;
    struct shape batch;
    char text[SHAPE_TEXT_MAX];

    if (!element_shape_known(s) || !element_shape_batch(s, 0, &batch))
        return op_fail(c, MST_UNIMPLEMENTED,
                       "TensorArray has size zero, but element shape %s is not "
                       "fully defined. Currently only static shapes are "
                       "supported when packing zero-size TensorArrays.",
                       shape_text(s->ndim, s->dims, text));
    return op_out_new(c, 0, batch.ndim, batch.dims);
}

static enum mst_code check_gathered(struct op_ctx *c,
                                    const struct tensor *values, int64_t n)
{
    const struct shape *s = c->node->state;
    char a[SHAPE_TEXT_MAX], b[SHAPE_TEXT_MAX];

    if (!shape_compatible(s, &values[0]))
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "TensorArray was passed element_shape %s which does not "
                       "match the Tensor at index 0: %s",
                       shape_text(s->ndim, s->dims, a),
                       tensor_shape_text(&values[0], b));
    for (int64_t i = 1; i < n; i++)
        if (!tensor_same_shape(&values[0], &values[i]))
            return op_fail(c, MST_INVALID_ARGUMENT,
                           "TensorArray has inconsistent shapes.  Index 0 has "
                           "shape: %s but index %lld has shape: %s",
                           tensor_shape_text(&values[0], a), (long long)i,
                           tensor_shape_text(&values[i], b));
    return MST_OK;
}

static enum mst_code gather(struct op_ctx *c, struct tensor_array *a)
{
    const struct tensor *index = op_in(c, 1);
    struct tensor *values;
    struct shape one, batch;
    enum mst_code rc;

    if (!index->count)
        return gather_nothing(c);
    rc = read_many(c, a, index, index->count, &values);
    if (rc)
        return rc;
    rc = check_gathered(c, values, index->count);
    one = element_shape_of(&values[0]);
    if (!rc && !element_shape_batch(&one, index->count, &batch))
        rc = op_fail(c, MST_UNIMPLEMENTED, "A tensor of rank %d", one.ndim + 1);
    if (!rc)
        rc = join(c, &batch, values, index->count);
    release(values, index->count);
    return rc;
}

/* What the op says of the elements' shape holds for the array from now on. */
static enum mst_code merge_shape(struct op_ctx *c, struct tensor_array *a)
{
    enum mst_code rc;

    pthread_mutex_lock(&a->lock);
    rc = element_shape_join(c, &a->shape, c->node->state);
    pthread_mutex_unlock(&a->lock);
    return rc;
}

static enum mst_code gather_run(struct op_ctx *c)
{
    struct tensor_array *a;
    char text[SHAPE_TEXT_MAX];
    enum mst_code rc = tensor_array_get(c, &a);

    if (rc)
        return rc;
    rc = tensor_array_check_read(c, a);
    if (!rc)
        rc = merge_shape(c, a);
    if (!rc && op_in(c, 1)->ndim != 1)
        rc = op_fail(c, MST_INVALID_ARGUMENT,
                     "Expected indices to be a vector, but received shape: %s",
                     tensor_shape_text(op_in(c, 1), text));
    if (!rc)
        rc = gather(c, a);
    object_unref(&a->o);
    return rc;
}

static enum mst_code concat_nothing(struct op_ctx *c)
{
    const struct shape *s = c->node->state;
    struct shape batch;
    char text[SHAPE_TEXT_MAX];
    enum mst_code rc;

    if (!element_shape_known(s) || !element_shape_batch(s, 0, &batch))
        return op_fail(c, MST_UNIMPLEMENTED,
                       "TensorArray has size zero, but element_shape_except0 "
                       "%s is not fully defined. Currently only static shapes "
                       "are supported when concatenating zero-size "
                       "TensorArrays.",
                       shape_text(s->ndim, s->dims, text));
    rc = op_out_new(c, 0, batch.ndim, batch.dims);
    return rc ? rc : op_out_new(c, 1, 1, (int64_t[]){ 0 });
}

/* All go together but for their first dimension, which is summed up. */
static enum mst_code concat_shape(struct op_ctx *c, const struct tensor *values,
                                  int64_t n, struct shape *ret)
{
    struct shape all = element_shape_of(&values[0]);
    struct shape first = element_shape_tail(&all);
    char a[SHAPE_TEXT_MAX], b[SHAPE_TEXT_MAX];

    all.dims[0] = 0;
    for (int64_t i = 0; i < n; i++) {
        struct shape s = element_shape_of(&values[i]);
        struct shape tail = element_shape_tail(&s);

        if (!values[i].ndim)
            return op_fail(c, MST_INVALID_ARGUMENT,
                           "Concat saw a scalar shape at index %lld but "
                           "requires at least vectors.  Did you mean to call "
                           "pack?",
                           (long long)i);
        if (!element_shape_merge(&first, &tail, &tail))
            return op_fail(c, MST_INVALID_ARGUMENT,
                           "TensorArray has inconsistent shapes.  Index 0 has "
                           "(excepting dimension 0) shape: %s but index %lld "
                           "has (excepting dimension 0) shape: %s",
                           shape_text(first.ndim, first.dims, a), (long long)i,
                           shape_text(tail.ndim, tail.dims, b));
        if (__builtin_add_overflow(all.dims[0], s.dims[0], &all.dims[0]))
            return op_fail(c, MST_INVALID_ARGUMENT,
                           "The elements together are too large");
    }
    *ret = all;
    return MST_OK;
}

static enum mst_code concat(struct op_ctx *c, struct tensor_array *a, int64_t n)
{
    struct tensor *values;
    struct shape all;
    enum mst_code rc;

    if (!n)
        return concat_nothing(c);
    rc = read_many(c, a, NULL, n, &values);
    if (rc)
        return rc;
    rc = concat_shape(c, values, n, &all);
    if (!rc)
        rc = join(c, &all, values, n);
    if (!rc)
        rc = op_out_new(c, 1, 1, &n);
    for (int64_t i = 0; i < n && !rc; i++)
        TENSOR_DATA(op_out(c, 1), int64_t)[i] = values[i].dims[0];
    release(values, n);
    return rc;
}

static enum mst_code concat_run(struct op_ctx *c)
{
    struct tensor_array *a;
    enum mst_code rc = tensor_array_get(c, &a);
    int64_t n;

    if (rc)
        return rc;
    rc = tensor_array_check_read(c, a);
    pthread_mutex_lock(&a->lock);
    if (!rc)
        rc = tensor_array_check_open(a, c);
    n = a->is_grad && a->marked_size >= 0 ? a->marked_size : a->size;
    pthread_mutex_unlock(&a->lock);
    if (!rc)
        rc = concat(c, a, n);
    object_unref(&a->o);
    return rc;
}

TENSOR_ARRAY_OP(gather, "TensorArrayGather", ", indices: int32, flow_in: float",
                "value: dtype", "dtype: type; element_shape: shape = unknown",
                "dtype", gather_init)
TENSOR_ARRAY_OP(scatter, "TensorArrayScatter",
                ", indices: int32, value: T, flow_in: float", "flow_out: float",
                "T: type", NULL, NULL)
TENSOR_ARRAY_OP(concat, "TensorArrayConcat", ", flow_in: float",
                "value: dtype, lengths: int64",
                "dtype: type; element_shape_except0: shape = unknown", "dtype",
                concat_init)
TENSOR_ARRAY_OP(split, "TensorArraySplit",
                ", value: T, lengths: int64, flow_in: float", "flow_out: float",
                "T: type", NULL, NULL)
