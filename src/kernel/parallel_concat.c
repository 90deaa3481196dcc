/*
 * ParallelConcat: rows that come at different times, each put in its place as
 * it comes. TensorFlow's master rewrites the op to a _ParallelConcatStart,
 * which makes the tensor, an _ParallelConcatUpdate for each row, and an
 * Identity of the tensor that waits for them. So here, and only here, an op
 * writes to a tensor that others have, too: each update its own row.
 *
 * A graph of another make may read meanwhile, and sees the row before, after
 * or in between. For strings that would be no matter of taste, so they are
 * refused.
 *
 * Our own master leaves the op as it is: it waits for all rows, and then they
 * are put together.
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

/* ---- the op itself ---- */

static enum mst_code row_check(struct op_ctx *c, const struct tensor *row)
{
    const struct tensor *out = op_out(c, 0);
    char ta[SHAPE_TEXT_MAX], tb[SHAPE_TEXT_MAX];

    if (row->ndim == out->ndim && row->ndim && row->dims[0] == 1 &&
        !memcmp(out->dims + 1, row->dims + 1,
                (size_t)(out->ndim - 1) * sizeof(out->dims[0])))
        return MST_OK;
    return op_fail(c, MST_INVALID_ARGUMENT,
                   "value and update shape doesn't match: %s vs. %s",
                   tensor_shape_text(out, ta), tensor_shape_text(row, tb));
}

static enum mst_code parallel_concat(struct op_ctx *c)
{
    const struct shape *s = c->node->state;
    enum mst_code rc = op_out_new(c, 0, s->ndim, s->dims);

    if (rc)
        return rc;
    if (!s->ndim || s->dims[0] != c->node->in_count)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "The first dimension of the shape is not the number of "
                       "values, %d",
                       c->node->in_count);
    for (int i = 0; i < c->node->in_count; i++) {
        const struct tensor *row = op_in(c, i);

        rc = row_check(c, row);
        if (rc)
            return rc;
        if (row->dtype != DT_STRING)
            put_row(op_out(c, 0), i, row);
        for (int64_t k = 0; row->dtype == DT_STRING && k < row->count; k++) {
            const struct str *from = tensor_str(row, k);

            str_set(tensor_str(op_out(c, 0), i * row->count + k), from->data,
                    from->len);
        }
    }
    return MST_OK;
}

static enum mst_code concat_init(struct op_node *n, struct status *st)
{
    if (op_attr_type(n, "T") != DT_STRING &&
        !dtype_is_plain((enum dtype)op_attr_type(n, "T")))
        return status_set(st, MST_UNIMPLEMENTED,
                          "ParallelConcat of type %s is not supported",
                          dtype_name(op_attr_type(n, "T")));
    return start_init(n, st);
}

const struct op_def def_parallel_concat = {
    .name = "ParallelConcat",
    .in = "values: N * T",
    .out = "output: T",
    .attr = "N: int >= 1; T: type; shape: shape",
    .init = concat_init,
    .kernel = (const struct op_kernel[]){ { DT_ANY, parallel_concat }, { 0 } },
};
