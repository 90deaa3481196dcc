/*
 * A tensor cut along a dimension: Split, SplitV, Unpack. A piece of a cut
 * along the first dimension shares the input's bytes.
 */
#include <string.h>

#include "kernel/args.h"
#include "kernel/strided.h"

/* Output i is `length` of dimension axis, from `at` on; without that
 * dimension, if drop is set (then length is 1). */
static enum mst_code cut(struct op_ctx *c, int i, const struct tensor *in,
                         int axis, int64_t at, int64_t length, bool drop)
{
    int64_t dims[TENSOR_RANK_MAX], step[TENSOR_RANK_MAX];
    size_t rest = (size_t)(in->ndim - axis - 1) * sizeof(dims[0]);

    memcpy(dims, in->dims, sizeof(dims));
    strided_of(in->ndim, in->dims, step);
    dims[axis] = length;
    at *= step[axis];
    if (drop) {
        memmove(dims + axis, dims + axis + 1, rest);
        memmove(step + axis, step + axis + 1, rest);
    }
    return strided_view(c, i, in, in->ndim - drop, dims, step, at);
}

static enum mst_code check_axis(struct op_ctx *c, const struct tensor *in,
                                const struct tensor *dim, int *ret)
{
    if (!args_axis(tensor_int(dim, 0), in->ndim, ret))
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "-input rank(-%d) <= split_dim < input rank (%d), but "
                       "got %lld",
                       in->ndim, in->ndim, (long long)tensor_int(dim, 0));
    return MST_OK;
}

static enum mst_code split(struct op_ctx *c)
{
    const struct tensor *dim = op_in(c, 0), *in = op_in(c, 1);
    int n = c->node->out_count, axis;
    enum mst_code rc;

    if (dim->ndim)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "split_dim must be a scalar but has rank %d", dim->ndim);
    rc = check_axis(c, in, dim, &axis);
    if (rc)
        return rc;
    if (in->dims[axis] % n)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Number of ways to split should evenly divide the split "
                       "dimension, but got split_dim %d (size = %lld) and "
                       "num_split %d",
                       axis, (long long)in->dims[axis], n);
    if (n == 1) {
        op_out_same(c, 0, 1);
        return MST_OK;
    }
    for (int i = 0; i < n && !rc; i++)
        rc = cut(c, i, in, axis, in->dims[axis] / n * i, in->dims[axis] / n,
                 false);
    return rc;
}

const struct op_def def_split = {
    .name = "Split",
    .in = "split_dim: int32, value: T",
    .out = "output: num_split * T",
    .attr = "num_split: int >= 1; T: type",
    .kernel = (const struct op_kernel[]){ { DT_ANY, split }, { 0 } },
};

/* The lengths in ret, with the open one (-1) computed. */
static enum mst_code split_sizes(struct op_ctx *c, int axis, int64_t *ret)
{
    const struct tensor *in = op_in(c, 0), *sizes = op_in(c, 1);
    int64_t total = 0;
    int open = -1, n = c->node->out_count;

    for (int i = 0; i < n; i++) {
        ret[i] = tensor_int(sizes, i);
        if (ret[i] == -1 && open >= 0)
            return op_fail(c, MST_INVALID_ARGUMENT,
                           "There can only be one -1 in the input.");
        if (ret[i] == -1)
            open = i;
        else if (__builtin_add_overflow(total, ret[i], &total))
            total = INT64_MAX;
    }
    if (open < 0 ? total != in->dims[axis] : total > in->dims[axis])
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Determined shape must either match input shape along "
                       "split_dim exactly if fully specified, or be less than "
                       "the size of the input along split_dim if not fully "
                       "specified.  Got: %lld",
                       (long long)total);
    if (open >= 0)
        ret[open] = in->dims[axis] - total;
    for (int i = 0; i < n; i++)
        if (ret[i] < 0)
            return op_fail(c, MST_INVALID_ARGUMENT,
                           "Split size at index %d must be >= 0. Got: %lld", i,
                           (long long)ret[i]);
    return MST_OK;
}

static enum mst_code split_v(struct op_ctx *c)
{
    const struct tensor *in = op_in(c, 0), *sizes = op_in(c, 1);
    const struct tensor *dim = op_in(c, 2);
    int n = c->node->out_count, axis;
    struct tensor room = { 0 };
    int64_t *length, at = 0;
    enum mst_code rc;

    if (dim->count != 1)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "split_dim_tensor must have exactly one element.");
    rc = check_axis(c, in, dim, &axis);
    if (rc)
        return rc;
    if (sizes->ndim != 1 || sizes->count != n)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "size of the split_tensor must be 1-D and have the same "
                       "elements as outputs got %d -D and %lld elements",
                       sizes->ndim, (long long)sizes->count);
    if (n == 1 && tensor_int(sizes, 0) != in->dims[axis])
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "If there is only one output, it must have the same "
                       "size as the input. Input size: %lld output size: %lld",
                       (long long)in->dims[axis],
                       (long long)tensor_int(sizes, 0));
    rc = tensor_new(&room, DT_INT64, 1, (int64_t[]){ n }, c->st);
    if (rc)
        return rc;
    length = room.data;
    rc = split_sizes(c, axis, length);
    for (int i = 0; i < n && !rc; i++) {
        rc = cut(c, i, in, axis, at, length[i], false);
        at += length[i];
    }
    tensor_unref(&room);
    return rc;
}

const struct op_def def_split_v = {
    .name = "SplitV",
    .in = "value: T, size_splits: Tlen, split_dim: int32",
    .out = "output: num_split * T",
    .attr = "num_split: int >= 1; T: type; Tlen: {int8, int32, int64} = int64",
    .kernel = (const struct op_kernel[]){ { DT_ANY, split_v }, { 0 } },
};

static enum mst_code unpack(struct op_ctx *c)
{
    const struct tensor *in = op_in(c, 0);
    int64_t axis = *(const int64_t *)c->node->state;
    char text[SHAPE_TEXT_MAX];
    int n = c->node->out_count, at;
    enum mst_code rc = MST_OK;

    if (!args_axis(axis, in->ndim, &at))
        return op_fail(c, MST_INVALID_ARGUMENT, "axis = %lld not in [%d, %d)",
                       (long long)axis, -in->ndim, in->ndim);
    if (in->dims[at] != n)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Input shape axis %d must equal %d, got shape %s", at, n,
                       tensor_shape_text(in, text));
    for (int i = 0; i < n && !rc; i++)
        rc = cut(c, i, in, at, i, 1, true);
    return rc;
}

static enum mst_code unpack_init(struct op_node *n, struct status *st)
{
    (void)st;
    n->state = ARENA_NEW(n->arena, int64_t);
    *(int64_t *)n->state = op_attr_int(n, "axis");
    return MST_OK;
}

const struct op_def def_unpack = {
    .name = "Unpack",
    .in = "value: T",
    .out = "output: num * T",
    .attr = "num: int >= 0; T: type; axis: int = 0",
    .init = unpack_init,
    .kernel = (const struct op_kernel[]){ { DT_ANY, unpack }, { 0 } },
};
