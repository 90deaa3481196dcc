/*
 * Each value once: Unique and its versions along an axis, and ListDiff, what
 * is in one list and not in another. Values keep the order of their first
 * appearance.
 */
#include <string.h>

#include "kernel/args.h"
#include "kernel/row_set.h"
#include "kernel/strided.h"

/* The input as [before, n, after], n being the dimension whose slices are
 * compared. */
struct axis {
    int dim;
    int64_t before, n, after;
};

static enum mst_code read_axis(struct op_ctx *c, struct axis *a)
{
    const struct tensor *in = op_in(c, 0);
    const struct tensor *axis = c->node->in_count > 1 ? op_in(c, 1) : NULL;

    if (axis && axis->ndim != 1)
        return op_fail(c, MST_INVALID_ARGUMENT, "axis expects a 1D vector.");
    if (axis && axis->count > 1)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "axis does not support input tensors larger than 1 "
                       "elements");
    if (!axis || !axis->count) {
        if (in->ndim != 1)
            return op_fail(c, MST_INVALID_ARGUMENT,
                           "unique expects a 1D vector.");
        *a = (struct axis){ 0, 1, in->count, 1 };
        return MST_OK;
    }
    if (!args_axis(tensor_int(axis, 0), in->ndim, &a->dim))
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "axis has to be between [0, %d)", in->ndim);
    a->before = args_product(in->dims, 0, a->dim);
    a->n = in->dims[a->dim];
    a->after = args_product(in->dims, a->dim + 1, in->ndim);
    return MST_OK;
}

/* The input's slices one after the other: itself, if they lie so. */
static enum mst_code as_rows(struct op_ctx *c, const struct axis *a,
                             struct tensor *ret)
{
    const struct tensor *in = op_in(c, 0);
    int64_t length = a->before * a->after;
    struct strided s = { 0 };
    enum mst_code rc;

    if (a->before == 1 || !in->count) {
        *ret = tensor_ref(in);
        return MST_OK;
    }
    rc = tensor_new(ret, (enum dtype)in->dtype, 2, (int64_t[]){ a->n, length },
                    c->st);
    if (rc)
        return rc;
    strided_dim(&s, a->n, length, a->after);
    strided_dim(&s, a->before, a->after, a->n * a->after);
    strided_dim(&s, a->after, 1, 1);
    strided_copy(c, ret, in, &s);
    return MST_OK;
}

static void put(const struct tensor *t, int64_t at, int64_t v)
{
    if (t->dtype == DT_INT32)
        TENSOR_DATA(t, int32_t)[at] = (int32_t)v;
    else
        TENSOR_DATA(t, int64_t)[at] = v;
}

/* Fills output 1 with the number of each row's value, first[] with the row
 * that each value was first seen in, and counts[] if it is there. */
static int64_t number_rows(struct op_ctx *c, struct row_set *set, int64_t n,
                           int64_t *number, int64_t *first, int64_t *counts)
{
    int64_t values = 0;

    for (int64_t i = 0; i < n; i++) {
        int64_t same = row_set_find(set, set->rows, i, true);

        if (same < 0) {
            number[i] = values;
            first[values] = i;
            counts[values++] = 0;
        } else {
            number[i] = number[same];
        }
        counts[number[i]]++;
        put(op_out(c, 1), i, number[i]);
    }
    return values;
}

/* Output 0: the slices in which values were first seen. */
static enum mst_code put_values(struct op_ctx *c, const struct axis *a,
                                const struct tensor *rows, int64_t values,
                                const int64_t *first)
{
    const struct tensor *in = op_in(c, 0);
    struct tensor *out = op_out(c, 0);
    int64_t dims[TENSOR_RANK_MAX];
    enum mst_code rc;

    memcpy(dims, in->dims, sizeof(dims));
    dims[a->dim] = values;
    rc = op_out_new(c, 0, in->ndim, dims);
    if (rc || !out->count)
        return rc;
    for (int64_t v = 0; v < values; v++)
        for (int64_t b = 0; b < a->before; b++)
            tensor_copy_elems(out, (b * values + v) * a->after, rows,
                              (first[v] * a->before + b) * a->after, a->after);
    return MST_OK;
}

static enum mst_code unique(struct op_ctx *c)
{
    struct tensor rows = { 0 }, room = { 0 };
    struct row_set set = { 0 };
    int64_t values = 0, *scratch;
    struct axis a;
    enum mst_code rc = read_axis(c, &a);

    if (rc)
        return rc;
    rc = as_rows(c, &a, &rows);
    if (!rc)
        rc = row_set_init(&set, &rows, a.before * a.after, a.n, c->st);
    if (!rc)
        rc = tensor_new(&room, DT_INT64, 1, (int64_t[]){ 3 * a.n }, c->st);
    if (!rc)
        rc = op_out_new(c, 1, 1, &a.n);
    if (rc)
        goto out;
    scratch = room.data;
    values =
        number_rows(c, &set, a.n, scratch, scratch + a.n, scratch + 2 * a.n);
    rc = put_values(c, &a, &rows, values, scratch + a.n);
    if (!rc && c->node->out_count == 3)
        rc = op_out_new(c, 2, 1, &values);
    for (int64_t v = 0; v < values && !rc && c->node->out_count == 3; v++)
        put(op_out(c, 2), v, scratch[2 * a.n + v]);
out:
    row_set_done(&set);
    tensor_unref(&rows);
    tensor_unref(&room);
    return rc;
}

const struct op_def def_unique = {
    .name = "Unique",
    .in = "x: T",
    .out = "y: T, idx: out_idx",
    .attr = "T: type; out_idx: {int32, int64} = int32",
    .kernel = (const struct op_kernel[]){ { DT_ANY, unique }, { 0 } },
};

const struct op_def def_unique_with_counts = {
    .name = "UniqueWithCounts",
    .in = "x: T",
    .out = "y: T, idx: out_idx, count: out_idx",
    .attr = "T: type; out_idx: {int32, int64} = int32",
    .kernel = (const struct op_kernel[]){ { DT_ANY, unique }, { 0 } },
};

const struct op_def def_unique_v2 = {
    .name = "UniqueV2",
    .in = "x: T, axis: Taxis",
    .out = "y: T, idx: out_idx",
    .attr = "T: type; Taxis: {int32, int64} = int64; "
            "out_idx: {int32, int64} = int32",
    .kernel = (const struct op_kernel[]){ { DT_ANY, unique }, { 0 } },
};

const struct op_def def_unique_with_counts_v2 = {
    .name = "UniqueWithCountsV2",
    .in = "x: T, axis: Taxis",
    .out = "y: T, idx: out_idx, count: out_idx",
    .attr = "T: type; Taxis: {int32, int64} = int64; "
            "out_idx: {int32, int64} = int32",
    .kernel = (const struct op_kernel[]){ { DT_ANY, unique }, { 0 } },
};

/* ---- one list without another ---- */

static enum mst_code list_diff(struct op_ctx *c)
{
    const struct tensor *x = op_in(c, 0), *y = op_in(c, 1);
    struct tensor room = { 0 };
    struct row_set set = { 0 };
    int64_t n = 0, *kept;
    enum mst_code rc;

    if (x->ndim != 1 || y->ndim != 1)
        return op_fail(c, MST_INVALID_ARGUMENT, "%c should be a 1D vector.",
                       x->ndim != 1 ? 'x' : 'y');
    rc = row_set_init(&set, y, 1, y->count, c->st);
    if (!rc)
        rc = tensor_new(&room, DT_INT64, 1, &x->count, c->st);
    if (rc)
        goto out;
    kept = room.data;
    for (int64_t i = 0; i < y->count; i++)
        (void)row_set_find(&set, y, i, true);
    for (int64_t i = 0; i < x->count; i++)
        if (row_set_find(&set, x, i, false) < 0)
            kept[n++] = i;
    rc = op_out_new(c, 0, 1, &n);
    if (!rc)
        rc = op_out_new(c, 1, 1, &n);
    for (int64_t i = 0; i < n && !rc; i++) {
        tensor_copy_elems(op_out(c, 0), i, x, kept[i], 1);
        put(op_out(c, 1), i, kept[i]);
    }
out:
    row_set_done(&set);
    tensor_unref(&room);
    return rc;
}

const struct op_def def_list_diff = {
    .name = "ListDiff",
    .in = "x: T, y: T",
    .out = "out: T, idx: out_idx",
    .attr = "T: type; out_idx: {int32, int64} = int32",
    .kernel = (const struct op_kernel[]){ { DT_ANY, list_diff }, { 0 } },
};
