/*
 * Rows dealt out by number, and put together again by number:
 * DynamicPartition, DynamicStitch, ParallelDynamicStitch. Embeddings that are
 * spread over several ps go through all of them.
 */
#include <string.h>

#include "kernel/args.h"
#include "kernel/rows.h"

/* The shape of t begins with that of head. */
static bool starts_with(const struct tensor *t, const struct tensor *head)
{
    return t->ndim >= head->ndim &&
           !memcmp(t->dims, head->dims,
                   (size_t)head->ndim * sizeof(t->dims[0]));
}

static enum mst_code deal_out(struct op_ctx *c, const struct tensor *which,
                              int64_t *count)
{
    const struct tensor *data = op_in(c, 0);
    const int32_t *p = which->data;
    int n = c->node->out_count, rest = data->ndim - which->ndim;
    int64_t row = args_product(data->dims, which->ndim, data->ndim);
    char place[256];

    for (int64_t i = 0; i < which->count; i++) {
        if (p[i] < 0 || p[i] >= n)
            return op_fail(
                c, MST_INVALID_ARGUMENT,
                "partitions%s%s%s = %d is not in [0, %d)",
                which->ndim ? "[" : "",
                rows_place(place, sizeof(place), which, which->ndim, i),
                which->ndim ? "]" : "", p[i], n);
        count[p[i]]++;
    }
    for (int k = 0; k < n; k++) {
        int64_t dims[TENSOR_RANK_MAX + 1] = { count[k] };
        enum mst_code rc;

        memcpy(dims + 1, data->dims + which->ndim,
               (size_t)rest * sizeof(dims[0]));
        rc = op_out_new(c, k, rest + 1, dims);
        if (rc)
            return rc;
        count[k] = 0;
    }
    for (int64_t i = 0; i < which->count && row; i++)
        tensor_copy_elems(op_out(c, p[i]), count[p[i]]++ * row, data, i * row,
                          row);
    return MST_OK;
}

static enum mst_code dynamic_partition(struct op_ctx *c)
{
    const struct tensor *data = op_in(c, 0), *which = op_in(c, 1);
    char ta[SHAPE_TEXT_MAX], tb[SHAPE_TEXT_MAX];
    struct tensor count = { 0 }, own = { 0 };
    enum mst_code rc;

    if (!starts_with(data, which))
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "data.shape must start with partitions.shape, got "
                       "data.shape = %s, partitions.shape = %s",
                       tensor_shape_text(data, ta),
                       tensor_shape_text(which, tb));
    rc = tensor_new(&count, DT_INT64, 1, (int64_t[]){ c->node->out_count },
                    c->st);
    /* The numbers are read twice, and may be a variable's that changes. */
    if (!rc)
        rc = tensor_copy(&own, which, c->st);
    if (!rc) {
        tensor_zero(&count);
        rc = deal_out(c, &own, count.data);
    }
    tensor_unref(&count);
    tensor_unref(&own);
    return rc;
}

const struct op_def def_dynamic_partition = {
    .name = "DynamicPartition",
    .in = "data: T, partitions: int32",
    .out = "outputs: num_partitions * T",
    .attr = "num_partitions: int >= 1; T: type",
    .kernel =
        (const struct op_kernel[]){ { DT_ANY, dynamic_partition }, { 0 } },
};

/* ---- together again ---- */

/* Inputs are n tensors of indices, then n of data. */
static enum mst_code stitch_check(struct op_ctx *c, int i)
{
    int n = c->node->in_count / 2;
    const struct tensor *index = op_in(c, i), *data = op_in(c, n + i);
    const struct tensor *index0 = op_in(c, 0), *data0 = op_in(c, n);
    char t[4][SHAPE_TEXT_MAX];
    int rest = data->ndim - index->ndim;

    if (!starts_with(data, index))
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "data[%d].shape = %s does not start with "
                       "indices[%d].shape = %s",
                       i, tensor_shape_text(data, t[0]), i,
                       tensor_shape_text(index, t[1]));
    if (rest != data0->ndim - index0->ndim ||
        memcmp(data->dims + index->ndim, data0->dims + index0->ndim,
               (size_t)rest * sizeof(data->dims[0])))
        return op_fail(
            c, MST_INVALID_ARGUMENT,
            "Need data[0].shape[%d:] = data[%d].shape[%d:], got "
            "data[0].shape = %s, data[%d].shape = %s, "
            "indices[0].shape = %s, indices[%d].shape = %s",
            index0->ndim, i, index->ndim, tensor_shape_text(data0, t[0]), i,
            tensor_shape_text(data, t[1]), tensor_shape_text(index0, t[2]), i,
            tensor_shape_text(index, t[3]));
    return MST_OK;
}

/* How many rows the output has, and how many are given. */
static enum mst_code stitch_size(struct op_ctx *c, int64_t *ret_rows,
                                 int64_t *ret_given)
{
    int n = c->node->in_count / 2;

    *ret_rows = *ret_given = 0;
    for (int i = 0; i < n; i++) {
        const struct tensor *t = op_in(c, i);
        const int32_t *index = t->data;
        enum mst_code rc = stitch_check(c, i);

        if (rc)
            return rc;
        for (int64_t k = 0; k < t->count; k++)
            *ret_rows = MAX(*ret_rows, (int64_t)index[k] + 1);
        *ret_given += t->count;
    }
    return MST_OK;
}

static enum mst_code dynamic_stitch(struct op_ctx *c)
{
    int n = c->node->in_count / 2, rest;
    int64_t rows, given, row, dims[TENSOR_RANK_MAX + 1];
    enum mst_code rc = stitch_size(c, &rows, &given);

    if (rc)
        return rc;
    rest = op_in(c, n)->ndim - op_in(c, 0)->ndim;
    memcpy(dims + 1, op_in(c, n)->dims + op_in(c, 0)->ndim,
           (size_t)rest * sizeof(dims[0]));
    dims[0] = rows;
    rc = op_out_new(c, 0, rest + 1, dims);
    if (rc)
        return rc;
    row = args_product(dims, 1, rest + 1);
    tensor_zero(op_out(c, 0)); /* some rows may be given twice, others never */
    for (int i = 0; i < n; i++) {
        const int32_t *index = op_in(c, i)->data;

        for (int64_t k = 0; k < op_in(c, i)->count; k++) {
            int64_t at = index[k]; /* a variable's may change meanwhile */

            if (at < 0 || at >= rows)
                return op_fail(c, MST_INVALID_ARGUMENT,
                               "indices[%lld] is out of range", (long long)k);
            tensor_copy_elems(op_out(c, 0), at * row, op_in(c, n + i), k * row,
                              row);
        }
    }
    return MST_OK;
}

const struct op_def def_dynamic_stitch = {
    .name = "DynamicStitch",
    .in = "indices: N * int32, data: N * T",
    .out = "merged: T",
    .attr = "N: int >= 1; T: type",
    .kernel = (const struct op_kernel[]){ { DT_ANY, dynamic_stitch }, { 0 } },
};

const struct op_def def_parallel_dynamic_stitch = {
    .name = "ParallelDynamicStitch",
    .in = "indices: N * int32, data: N * T",
    .out = "merged: T",
    .attr = "N: int >= 1; T: type",
    .kernel = (const struct op_kernel[]){ { DT_ANY, dynamic_stitch }, { 0 } },
};
