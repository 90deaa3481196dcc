/*
 * Tensors joined along a dimension: Concat, ConcatV2, Pack, ParallelConcat. To
 * a join, an input is rows of some length, and the output the same rows with
 * all lengths in each.
 */
#include <string.h>

#include "kernel/args.h"
#include "kernel/strided.h"

/* Copies input i to column `at` of the output's rows. */
static void join(struct op_ctx *c, int i, int64_t rows, int64_t at)
{
    const struct tensor *in = op_in(c, i);
    struct tensor *out = op_out(c, 0);
    int64_t length = rows ? in->count / rows : 0;
    struct strided s = { .to_at = at };

    if (!length)
        return;
    strided_dim(&s, rows, out->count / rows, length);
    strided_dim(&s, length, 1, 1);
    strided_copy(c, out, in, &s);
}

static enum mst_code check_axis(struct op_ctx *c, int i, const char *name,
                                int first, int *ret)
{
    const struct tensor *t = op_in(c, i);
    int ndim = op_in(c, first)->ndim;
    char text[SHAPE_TEXT_MAX];

    if (t->count != 1 || t->ndim > 1)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "%s tensor should be a scalar integer, but got shape %s",
                       name, tensor_shape_text(t, text));
    if (!ndim && tensor_int(t, 0) == 0)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "ConcatOp : Can't concatenate scalars (use tf.stack "
                       "instead)");
    if (!args_axis(tensor_int(t, 0), ndim, ret))
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "ConcatOp : Expected concatenating dimensions in the "
                       "range [%d, %d), but got %lld",
                       -ndim, ndim, (long long)tensor_int(t, 0));
    return MST_OK;
}

static enum mst_code check_same(struct op_ctx *c, int first, int i, int axis)
{
    const struct tensor *a = op_in(c, first), *b = op_in(c, i);
    char ta[SHAPE_TEXT_MAX], tb[SHAPE_TEXT_MAX];

    if (a->ndim != b->ndim)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "ConcatOp : Ranks of all input tensors should match: "
                       "shape[0] = %s vs. shape[%d] = %s",
                       tensor_shape_text(a, ta), i - first,
                       tensor_shape_text(b, tb));
    for (int d = 0; d < a->ndim; d++)
        if (d != axis && a->dims[d] != b->dims[d])
            return op_fail(c, MST_INVALID_ARGUMENT,
                           "ConcatOp : Dimension %d in both shapes must be "
                           "equal: shape[0] = %s vs. shape[%d] = %s",
                           d, tensor_shape_text(a, ta), i - first,
                           tensor_shape_text(b, tb));
    return MST_OK;
}

/* Values are inputs [first, first + n). */
static enum mst_code concat_values(struct op_ctx *c, int first, int n, int axis)
{
    int64_t dims[TENSOR_RANK_MAX], at = 0, rows;
    enum mst_code rc = MST_OK;

    memcpy(dims, op_in(c, first)->dims, sizeof(dims));
    for (int i = first + 1; i < first + n && !rc; i++) {
        rc = check_same(c, first, i, axis);
        /* The same tensor may come many times. */
        if (!rc && __builtin_add_overflow(dims[axis], op_in(c, i)->dims[axis],
                                          &dims[axis]))
            rc = op_fail(c, MST_INVALID_ARGUMENT, "ConcatOp : too large");
    }
    if (!rc)
        rc = op_out_new(c, 0, op_in(c, first)->ndim, dims);
    if (rc)
        return rc;
    rows = args_product(dims, 0, axis);
    for (int i = first; i < first + n; i++) {
        join(c, i, rows, at);
        at += rows ? op_in(c, i)->count / rows : 0;
    }
    return MST_OK;
}

static enum mst_code concat(struct op_ctx *c)
{
    int axis;
    enum mst_code rc = check_axis(c, 0, "concat_dim", 1, &axis);

    return rc ? rc : concat_values(c, 1, c->node->in_count - 1, axis);
}

static enum mst_code concat_v2(struct op_ctx *c)
{
    int n = c->node->in_count - 1, axis;
    enum mst_code rc = check_axis(c, n, "axis", 0, &axis);

    return rc ? rc : concat_values(c, 0, n, axis);
}

const struct op_def def_concat = {
    .name = "Concat",
    .in = "concat_dim: int32, values: N * T",
    .out = "output: T",
    .attr = "N: int >= 2; T: type",
    .kernel = (const struct op_kernel[]){ { DT_ANY, concat }, { 0 } },
};

const struct op_def def_concat_v2 = {
    .name = "ConcatV2",
    .in = "values: N * T, axis: Tidx",
    .out = "output: T",
    .attr = "N: int >= 2; T: type; Tidx: {int32, int64} = int32",
    .kernel = (const struct op_kernel[]){ { DT_ANY, concat_v2 }, { 0 } },
};

/* ---- a new dimension ---- */

static enum mst_code pack(struct op_ctx *c)
{
    const struct tensor *first = op_in(c, 0);
    int64_t axis = *(const int64_t *)c->node->state;
    int64_t dims[TENSOR_RANK_MAX + 1], rows, length;
    char ta[SHAPE_TEXT_MAX], tb[SHAPE_TEXT_MAX];
    int n = c->node->in_count, ndim = first->ndim + 1, at;
    enum mst_code rc;

    if (!args_axis(axis, ndim, &at))
        return op_fail(c, MST_INVALID_ARGUMENT, "axis = %lld not in [%d, %d)",
                       (long long)axis, -ndim, ndim);
    for (int i = 1; i < n; i++)
        if (!tensor_same_shape(first, op_in(c, i)))
            return op_fail(c, MST_INVALID_ARGUMENT,
                           "Shapes of all inputs must match: values[0].shape = "
                           "%s != values[%d].shape = %s",
                           tensor_shape_text(first, ta), i,
                           tensor_shape_text(op_in(c, i), tb));
    memcpy(dims, first->dims, (size_t)at * sizeof(dims[0]));
    dims[at] = n;
    memcpy(dims + at + 1, first->dims + at,
           (size_t)(first->ndim - at) * sizeof(dims[0]));
    if (n == 1 && ndim <= TENSOR_RANK_MAX) {
        tensor_reshape(op_out(c, 0), first, ndim, dims);
        return MST_OK;
    }
    rc = op_out_new(c, 0, ndim, dims);
    if (rc)
        return rc;
    rows = args_product(dims, 0, at);
    length = rows ? first->count / rows : 0;
    for (int i = 0; i < n; i++)
        join(c, i, rows, i * length);
    return MST_OK;
}

static enum mst_code pack_init(struct op_node *n, struct status *st)
{
    (void)st;
    n->state = ARENA_NEW(n->arena, int64_t);
    *(int64_t *)n->state = op_attr_int(n, "axis");
    return MST_OK;
}

const struct op_def def_pack = {
    .name = "Pack",
    .in = "values: N * T",
    .out = "output: T",
    .attr = "N: int >= 1; T: type; axis: int = 0",
    .init = pack_init,
    .kernel = (const struct op_kernel[]){ { DT_ANY, pack }, { 0 } },
};

/* ---- where each piece begins ---- */

static enum mst_code offset_check(struct op_ctx *c, int *ret_axis)
{
    const struct tensor *dim = op_in(c, 0), *first = op_in(c, 1);
    char text[SHAPE_TEXT_MAX];
    int64_t axis;

    if (dim->ndim)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Concat dim tensor should be a scalar integer, but got "
                       "shape %s",
                       tensor_shape_text(dim, text));
    for (int i = 1; i < c->node->in_count; i++)
        if (op_in(c, i)->ndim != 1)
            return op_fail(c, MST_INVALID_ARGUMENT,
                           "input %d should be a vector, but got shape %s", i,
                           tensor_shape_text(op_in(c, i), text));
    axis = tensor_int(dim, 0);
    if (axis < -first->count || axis >= first->count)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Concat dim is out of range: %lld vs. %lld",
                       (long long)axis, (long long)first->count);
    *ret_axis = (int)(axis < 0 ? axis + first->count : axis);
    return MST_OK;
}

/* "[2 3]", as this op's text has shapes. */
static const char *spaced(const struct tensor *t, char *text)
{
    int64_t dims[TENSOR_RANK_MAX];
    int n = (int)MIN(t->count, TENSOR_RANK_MAX);

    for (int i = 0; i < n; i++)
        dims[i] = tensor_int(t, i);
    shape_text(n, dims, text);
    for (char *p = text; *p; p++)
        if (*p == ',')
            *p = ' ';
    return text;
}

static enum mst_code offset_same(struct op_ctx *c, int i, int axis)
{
    const struct tensor *first = op_in(c, 1), *in = op_in(c, i);
    char ta[SHAPE_TEXT_MAX], tb[SHAPE_TEXT_MAX];

    if (in->count != first->count)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "input %d should contain %lld elements, but got %lld",
                       i - 1, (long long)first->count, (long long)in->count);
    for (int64_t k = 0; k < in->count; k++)
        if (k != axis && tensor_int(in, k) != tensor_int(first, k))
            return op_fail(c, MST_INVALID_ARGUMENT,
                           "All dimensions except %d must match. Input %d has "
                           "shape %s and doesn't match input 0 with shape %s.",
                           axis, i - 1, spaced(in, ta), spaced(first, tb));
    return MST_OK;
}

static enum mst_code concat_offset(struct op_ctx *c)
{
    uint64_t at = 0;
    int axis;
    enum mst_code rc = offset_check(c, &axis);

    for (int i = 1; i < c->node->in_count && !rc; i++) {
        struct tensor *out = op_out(c, i - 1);

        rc = offset_same(c, i, axis);
        if (!rc)
            rc = op_out_like(c, i - 1, op_in(c, i));
        if (rc)
            break;
        tensor_zero(out);
        if (out->dtype == DT_INT32)
            TENSOR_DATA(out, int32_t)[axis] = (int32_t)at;
        else
            TENSOR_DATA(out, int64_t)[axis] = (int64_t)at;
        at += (uint64_t)tensor_int(op_in(c, i), axis);
    }
    return rc;
}

const struct op_def def_concat_offset = {
    .name = "ConcatOffset",
    .in = "concat_dim: int32, shape: N * shape_type",
    .out = "offset: N * shape_type",
    .attr = "N: int >= 2; shape_type: {int32, int64} = int32",
    .kernel = (const struct op_kernel[]){ { DT_ANY, concat_offset }, { 0 } },
};
