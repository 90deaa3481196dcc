/*
 * Sparse tensors joined along a dimension, and split along one.
 */
#include <string.h>

#include "kernel/args.h"
#include "kernel/sparse.h"

/* ---- joined ---- */

/* Inputs are n indices, n values, n shapes. */
static enum mst_code concat_check_one(struct op_ctx *c, int n, int i)
{
    const struct tensor *index = op_in(c, i), *values = op_in(c, n + i);
    const struct tensor *shape = op_in(c, 2 * n + i);
    char text[SHAPE_TEXT_MAX];

    if (index->ndim != 2)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Input indices should be a matrix but received shape %s "
                       "at position %d",
                       tensor_shape_text(index, text), i);
    if (values->ndim != 1)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Input values should be a vector but received shape %s "
                       "at position %d",
                       tensor_shape_text(values, text), i);
    if (shape->ndim != 1)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Input shapes should be a vector but received shape %s "
                       "at position %d",
                       tensor_shape_text(shape, text), i);
    if (index->dims[0] != values->count)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "indices and values rows (indexing dimension) must "
                       "match. (indices = %lld, values = %lld)",
                       (long long)index->dims[0], (long long)values->count);
    return MST_OK;
}

static enum mst_code concat_check(struct op_ctx *c, int n, int64_t wanted,
                                  int *ret_axis)
{
    const struct tensor *first = op_in(c, 2 * n);
    enum mst_code rc = MST_OK;

    for (int i = 0; i < n && !rc; i++)
        rc = concat_check_one(c, n, i);
    if (rc)
        return rc;
    if (first->count > TENSOR_RANK_MAX)
        return op_fail(c, MST_UNIMPLEMENTED,
                       "Tensors of rank %lld are not supported, only up to %d",
                       (long long)first->count, TENSOR_RANK_MAX);
    if (!args_axis(wanted, (int)first->count, ret_axis))
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Concat dimension must be in range [%lld, %lld), got "
                       "%lld",
                       (long long)-first->count, (long long)first->count,
                       (long long)wanted);
    for (int i = 0; i < n; i++) {
        const struct tensor *shape = op_in(c, 2 * n + i);

        if (shape->count != first->count ||
            op_in(c, i)->dims[1] != first->count)
            return op_fail(c, MST_INVALID_ARGUMENT,
                           "Ranks of all input tensors must match: expected "
                           "%lld but got %lld at position %d",
                           (long long)first->count, (long long)shape->count, i);
        for (int d = 0; d < shape->count; d++)
            if (d != *ret_axis && tensor_int(shape, d) != tensor_int(first, d))
                return op_fail(c, MST_INVALID_ARGUMENT,
                               "Input shapes must match: expected %lld for "
                               "dimension %d but got %lld at position %d",
                               (long long)tensor_int(first, d), d,
                               (long long)tensor_int(shape, d), i);
    }
    return MST_OK;
}

/* All indices one after the other, moved along, in ret; output 2 is the shape
 * of the whole. */
static enum mst_code concat_indices(struct op_ctx *c, int n, int axis,
                                    int64_t *ret)
{
    int64_t *dims = op_out(c, 2)->data, at = 0, size;
    int ndim = (int)op_out(c, 2)->count;

    for (int d = 0; d < ndim; d++)
        dims[d] = tensor_int(op_in(c, 2 * n), d);
    for (int i = 0; i < n; i++) {
        const struct tensor *index = op_in(c, i);
        const int64_t *from = index->data;
        enum mst_code rc = sparse_size(c, op_in(c, 2 * n + i), &size);

        if (rc)
            return rc;
        for (int64_t k = 0; k < index->count; k++)
            *ret++ = k % ndim == axis
                         ? (int64_t)((uint64_t)from[k] + (uint64_t)at)
                         : from[k];
        if (__builtin_add_overflow(at, tensor_int(op_in(c, 2 * n + i), axis),
                                   &at))
            return op_fail(c, MST_INVALID_ARGUMENT,
                           "Concatenated shape is too large");
    }
    dims[axis] = at;
    return sparse_size(c, op_out(c, 2), &size);
}

/* Outputs 0 and 1, in the order of rows[]. */
static void concat_rows(struct op_ctx *c, int n, const int64_t *indices,
                        const int64_t *rows, int64_t total)
{
    int64_t *index = op_out(c, 0)->data;
    size_t ndim = (size_t)op_out(c, 2)->count;

    for (int64_t k = 0; k < total; k++) {
        int64_t row = rows[k];
        int i = 0;

        memcpy(index + (size_t)k * ndim, indices + (size_t)row * ndim,
               ndim * sizeof(*index));
        while (row >= op_in(c, n + i)->count)
            row -= op_in(c, n + i++)->count;
        tensor_copy_elems(op_out(c, 1), k, op_in(c, n + i), row, 1);
    }
}

static enum mst_code sparse_concat(struct op_ctx *c)
{
    int n = c->node->in_count / 3, axis = 0;
    int64_t total = 0, ndim, *rows, *indices;
    struct tensor room = { 0 };
    enum mst_code rc =
        concat_check(c, n, *(const int64_t *)c->node->state, &axis);

    if (rc)
        return rc;
    ndim = op_in(c, 2 * n)->count;
    for (int i = 0; i < n; i++)
        total += op_in(c, n + i)->count;
    rc = tensor_new(&room, DT_INT64, 2, (int64_t[]){ total, ndim + 1 }, c->st);
    if (!rc)
        rc = op_out_new(c, 0, 2, (int64_t[]){ total, ndim });
    if (!rc)
        rc = op_out_new(c, 1, 1, &total);
    if (!rc)
        rc = op_out_new(c, 2, 1, &ndim);
    if (!rc) {
        rows = room.data;
        indices = rows + total;
        rc = concat_indices(c, n, axis, indices);
    }
    if (!rc) {
        for (int64_t i = 0; i < total; i++)
            rows[i] = i;
        sparse_sort(indices, (int)ndim, rows, total);
        concat_rows(c, n, indices, rows, total);
    }
    tensor_unref(&room);
    return rc;
}

static enum mst_code sparse_concat_init(struct op_node *n, struct status *st)
{
    (void)st;
    n->state = ARENA_NEW(n->arena, int64_t);
    *(int64_t *)n->state = op_attr_int(n, "concat_dim");
    return MST_OK;
}

const struct op_def def_sparse_concat = {
    .name = "SparseConcat",
    .in = "indices: N * int64, values: N * T, shapes: N * int64",
    .out = "output_indices: int64, output_values: T, output_shape: int64",
    .attr = "concat_dim: int; N: int >= 2; T: type",
    .init = sparse_concat_init,
    .kernel = (const struct op_kernel[]){ { DT_ANY, sparse_concat }, { 0 } },
};

/* ---- split ---- */

/* Pieces are equally long, but the first `longer` of them one more. */
struct pieces {
    int axis;
    int64_t dim, length, longer;
};

static int64_t piece_of(const struct pieces *p, int64_t at, int64_t *ret_inside)
{
    int64_t edge = p->longer * (p->length + 1);
    bool first = at < edge;
    int64_t length = first ? p->length + 1 : p->length;

    at -= first ? 0 : edge;
    *ret_inside = at % length;
    return at / length + (first ? 0 : p->longer);
}

static enum mst_code split_check(struct op_ctx *c)
{
    const struct tensor *axis = op_in(c, 0);
    char text[SHAPE_TEXT_MAX];

    if (axis->ndim)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Input axis should be a scalar but received shape %s",
                       tensor_shape_text(axis, text));
    if (op_in(c, 1)->ndim != 2)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Input indices should be a matrix but received shape %s",
                       tensor_shape_text(op_in(c, 1), text));
    if (op_in(c, 2)->ndim != 1) /* it does print the indices' shape */
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Input values should be a vector but received shape %s",
                       tensor_shape_text(op_in(c, 1), text));
    if (op_in(c, 3)->ndim != 1)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Input shape should be a vector but received shape %s",
                       tensor_shape_text(op_in(c, 3), text));
    return MST_OK;
}

static enum mst_code split_read(struct op_ctx *c, struct sparse *s,
                                struct pieces *p)
{
    int64_t size, axis;
    int n = c->node->out_count / 3;
    enum mst_code rc = split_check(c);

    if (rc)
        return rc;
    axis = tensor_int(op_in(c, 0), 0);
    if (!args_axis(axis, (int)MIN(op_in(c, 3)->count, TENSOR_RANK_MAX),
                   &p->axis))
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Input axis should be in range [%lld, %lld), got %lld",
                       (long long)-op_in(c, 3)->count,
                       (long long)op_in(c, 3)->count, (long long)axis);
    p->dim = tensor_int(op_in(c, 3), p->axis);
    if (n < 1 || n > p->dim)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Input num_split should be between 1 and the splitting "
                       "dimension size (%lld), got %d",
                       (long long)p->dim, n);
    p->length = p->dim / n;
    p->longer = p->dim % n;
    rc = sparse_read(c, 1, s);
    return rc ? rc : sparse_size(c, s->shape, &size);
}

/* Counts the elements of each piece, all of which are inside of the shape. */
static enum mst_code split_count(struct op_ctx *c, const struct sparse *s,
                                 const struct pieces *p, int64_t *count)
{
    char text[SHAPE_TEXT_MAX];
    int64_t inside;

    for (int64_t i = 0; i < s->n; i++) {
        const int64_t *index = sparse_row(s, i);

        for (int d = 0; d < s->ndim; d++)
            if (index[d] < 0 ||
                index[d] >= (d == p->axis ? p->dim : tensor_int(s->shape, d)))
                return op_fail(c, MST_INVALID_ARGUMENT,
                               "Sparse index tuple indices[%lld, :] = %s is "
                               "out of bounds",
                               (long long)i,
                               sparse_index_text(s->ndim, index, ", ", text));
        count[piece_of(p, index[p->axis], &inside)]++;
    }
    return MST_OK;
}

static enum mst_code split_outputs(struct op_ctx *c, const struct sparse *s,
                                   const struct pieces *p, int64_t *count)
{
    int n = c->node->out_count / 3;

    for (int k = 0; k < n; k++) {
        struct tensor *shape = op_out(c, 2 * n + k);
        enum mst_code rc =
            op_out_new(c, k, 2, (int64_t[]){ count[k], s->ndim });

        if (!rc)
            rc = op_out_new(c, n + k, 1, &count[k]);
        if (!rc)
            rc = op_out_like(c, 2 * n + k, s->shape);
        if (rc)
            return rc;
        tensor_copy_elems(shape, 0, s->shape, 0, s->ndim);
        TENSOR_DATA(shape, int64_t)[p->axis] = p->length + (k < p->longer);
        count[k] = 0;
    }
    return MST_OK;
}

static enum mst_code sparse_split(struct op_ctx *c)
{
    int n = c->node->out_count / 3;
    struct tensor room = { 0 }, own = { 0 };
    struct pieces p;
    struct sparse s;
    int64_t *count, inside;
    enum mst_code rc = split_read(c, &s, &p);

    if (!rc)
        rc = tensor_new(&room, DT_INT64, 1, (int64_t[]){ n }, c->st);
    if (rc)
        return rc;
    tensor_zero(&room);
    count = room.data;
    rc = sparse_own(c, &s, &own);
    if (!rc)
        rc = split_count(c, &s, &p, count);
    if (!rc)
        rc = split_outputs(c, &s, &p, count);
    for (int64_t i = 0; i < s.n && !rc; i++) {
        int64_t k = piece_of(&p, sparse_row(&s, i)[p.axis], &inside);
        int64_t at = count[k]++;
        int64_t *index = TENSOR_DATA(op_out(c, (int)k), int64_t) + at * s.ndim;

        memcpy(index, sparse_row(&s, i), (size_t)s.ndim * sizeof(*index));
        index[p.axis] = inside;
        tensor_copy_elems(op_out(c, n + (int)k), at, s.values, i, 1);
    }
    tensor_unref(&room);
    tensor_unref(&own);
    return rc;
}

const struct op_def def_sparse_split = {
    .name = "SparseSplit",
    .in = "split_dim: int64, indices: int64, values: T, shape: int64",
    .out = "output_indices: num_split * int64, output_values: num_split * T, "
           "output_shape: num_split * int64",
    .attr = "num_split: int >= 1; T: type",
    .kernel = (const struct op_kernel[]){ { DT_ANY, sparse_split }, { 0 } },
};
