/*
 * ParallelConcat: rows that come at different times, each put in its place as
 * it comes. A master rewrites the op to a _ParallelConcatStart, which makes the
 * tensor, an _ParallelConcatUpdate for each row, and an Identity of the tensor
 * that waits for them. So here, and only here, an op writes to a tensor that
 * others have, too: each update its own row.
 *
 * A graph of another make may read meanwhile, and sees the row before, after
 * or in between. For strings that would be no matter of taste, so they are
 * refused.
 */
#include <string.h>

#include "op/op.h"

static enum mst_code parallel_concat_start(struct op_ctx *c)
{
    const struct shape *s = c->node->state;
    enum mst_code rc = op_out_new(c, 0, s->ndim, s->dims);

    if (!rc)
        tensor_zero(op_out(c, 0));
    return rc;
}

static enum mst_code start_init(struct op_node *n, struct status *st)
{
    const struct shape *s = op_attr_shape(n, "shape");
    char text[SHAPE_TEXT_MAX];
    bool whole = s->ndim >= 0;

    for (int i = 0; i < s->ndim; i++)
        whole &= s->dims[i] >= 0;
    if (!whole)
        return status_set(st, MST_INVALID_ARGUMENT,
                          "Shape %s is not fully defined",
                          shape_text(s->ndim, s->dims, text));
    n->state = (void *)s;
    return MST_OK;
}

const struct op_def def_parallel_concat_start = {
    .name = "_ParallelConcatStart",
    .out = "output: dtype",
    .attr = "shape: shape; dtype: type",
    .flags = OP_STATEFUL,
    .key = "dtype",
    .init = start_init,
    .kernel =
        (const struct op_kernel[]){ { DT_ANY, parallel_concat_start }, { 0 } },
};

static enum mst_code update_check(struct op_ctx *c, int64_t at)
{
    const struct tensor *value = op_in(c, 0), *row = op_in(c, 1);
    char ta[SHAPE_TEXT_MAX], tb[SHAPE_TEXT_MAX];

    tensor_shape_text(value, ta);
    tensor_shape_text(row, tb);
    if (!value->ndim)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "value should be at least rank 1.");
    if (value->dims[0] <= at)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "0th dimension of value = %lld must be greater than "
                       "loc_ = %lld",
                       (long long)value->dims[0], (long long)at);
    if (value->ndim != row->ndim)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "value and update shape doesn't match: %s vs. %s", ta,
                       tb);
    if (memcmp(value->dims + 1, row->dims + 1,
               (size_t)(value->ndim - 1) * sizeof(value->dims[0])))
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "value and update shape doesn't match %s vs. %s", ta,
                       tb);
    if (row->dims[0] != 1)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "update shape doesn't match: %s", tb);
    if (!dtype_is_plain((enum dtype)value->dtype))
        return op_fail(c, MST_UNIMPLEMENTED,
                       "ParallelConcat of type %s is not supported",
                       dtype_name(value->dtype));
    return MST_OK;
}

/* Other rows are written at the same time. */
RACY static void put_row(struct tensor *to, int64_t at,
                         const struct tensor *row)
{
    if (row->count)
        memcpy((uint8_t *)to->data + (size_t)at * tensor_bytes(row), row->data,
               tensor_bytes(row));
}

static enum mst_code parallel_concat_update(struct op_ctx *c)
{
    int64_t at = *(const int64_t *)c->node->state, rows;
    enum mst_code rc = update_check(c, at);

    if (rc)
        return rc;
    rows = op_in(c, 0)->dims[0];
    op_out_same(c, 0, 0);
    if (rows)
        put_row(op_out(c, 0), (at % rows + rows) % rows, op_in(c, 1));
    return MST_OK;
}

static enum mst_code update_init(struct op_node *n, struct status *st)
{
    (void)st;
    n->state = ARENA_NEW(n->arena, int64_t);
    *(int64_t *)n->state = op_attr_int(n, "loc");
    return MST_OK;
}

const struct op_def def_parallel_concat_update = {
    .name = "_ParallelConcatUpdate",
    .in = "value: T, update: T",
    .out = "output: T",
    .attr = "T: type; loc: int",
    .init = update_init,
    .kernel =
        (const struct op_kernel[]){ { DT_ANY, parallel_concat_update }, { 0 } },
};
