/*
 * Sparse tensors with other rows: SparseReorder sorts them,
 * SparseFillEmptyRows gives each row of the dense tensor at least one.
 */
#include <string.h>

#include "kernel/sparse.h"
#include "kernel/types.h"

/* Copies row `from` of s to row `to` of outputs 0 and 1. */
static void copy_row(struct op_ctx *c, const struct sparse *s, int64_t from,
                     int64_t to)
{
    tensor_copy_elems(op_out(c, 0), to * s->ndim, s->indices, from * s->ndim,
                      s->ndim);
    tensor_copy_elems(op_out(c, 1), to, s->values, from, 1);
}

static enum mst_code sparse_reorder(struct op_ctx *c)
{
    struct tensor room = { 0 };
    struct sparse s;
    int64_t *rows;
    enum mst_code rc = sparse_read(c, 0, &s);

    if (!rc)
        rc = tensor_new(&room, DT_INT64, 1, &s.n, c->st);
    if (!rc)
        rc = op_out_like(c, 0, s.indices);
    if (!rc)
        rc = op_out_like(c, 1, s.values);
    if (!rc) {
        rows = room.data;
        for (int64_t i = 0; i < s.n; i++)
            rows[i] = i;
        sparse_sort(s.indices->data, s.ndim, rows, s.n);
        for (int64_t i = 0; i < s.n; i++)
            copy_row(c, &s, rows[i], i);
    }
    tensor_unref(&room);
    return rc;
}

const struct op_def def_sparse_reorder = {
    .name = "SparseReorder",
    .in = "input_indices: int64, input_values: T, input_shape: int64",
    .out = "output_indices: int64, output_values: T",
    .attr = "T: type",
    .kernel = (const struct op_kernel[]){ { DT_ANY, sparse_reorder }, { 0 } },
};

/* ---- no empty rows ---- */

static enum mst_code fill_check(struct op_ctx *c, struct sparse *s)
{
    const struct tensor *index = op_in(c, 0), *values = op_in(c, 1);
    const struct tensor *shape = op_in(c, 2), *fill = op_in(c, 3);
    char text[SHAPE_TEXT_MAX];

    if (shape->ndim != 1)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "dense_shape must be a vector, saw: %s",
                       tensor_shape_text(shape, text));
    if (index->ndim != 2)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "indices must be a matrix, saw: %s",
                       tensor_shape_text(index, text));
    if (values->ndim != 1)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "values must be a vector, saw: %s",
                       tensor_shape_text(values, text));
    if (values->count != index->dims[0])
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "The length of `values` (%lld) must match the first "
                       "dimension of `indices` (%lld).",
                       (long long)values->count, (long long)index->dims[0]);
    if (shape->count != index->dims[1])
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "The length of `dense_shape` (%lld) must match the "
                       "second dimension of `indices` (%lld).",
                       (long long)shape->count, (long long)index->dims[1]);
    if (fill->ndim)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "default_value must be a scalar, saw: %s",
                       tensor_shape_text(fill, text));
    if (!shape->count)
        return op_fail(c, MST_INVALID_ARGUMENT, "Dense shape cannot be empty.");
    return sparse_read(c, 0, s);
}

/* Counts the elements of each dense row. */
static enum mst_code count_rows(struct op_ctx *c, const struct sparse *s,
                                int64_t rows, int64_t *count)
{
    memset(count, 0, (size_t)rows * sizeof(*count));
    for (int64_t i = 0; i < s->n; i++) {
        int64_t row = sparse_row(s, i)[0];

        if (row < 0 || row >= rows)
            return op_fail(c, MST_INVALID_ARGUMENT,
                           "indices(%lld, 0) is invalid: %lld >= %lld",
                           (long long)i, (long long)row, (long long)rows);
        count[row]++;
    }
    return MST_OK;
}

/* Makes the outputs: count[] becomes where each row's elements go. */
static enum mst_code fill_rows(struct op_ctx *c, const struct sparse *s,
                               int64_t rows, int64_t *count)
{
    bool *empty = op_out(c, 2)->data;
    int64_t *map = op_out(c, 3)->data, total = 0;
    enum mst_code rc;

    for (int64_t r = 0; r < rows; r++) {
        int64_t n = count[r];

        empty[r] = !n;
        count[r] = total;
        total += n ? n : 1;
    }
    rc = op_out_new(c, 0, 2, (int64_t[]){ total, s->ndim });
    if (!rc)
        rc = op_out_new(c, 1, 1, &total);
    if (rc)
        return rc;
    for (int64_t r = 0; r < rows; r++)
        if (empty[r]) {
            int64_t *index =
                TENSOR_DATA(op_out(c, 0), int64_t) + count[r] * s->ndim;

            memset(index, 0, (size_t)s->ndim * sizeof(*index));
            index[0] = r;
            tensor_copy_elems(op_out(c, 1), count[r], op_in(c, 3), 0, 1);
        }
    for (int64_t i = 0; i < s->n; i++) {
        map[i] = count[sparse_row(s, i)[0]]++;
        copy_row(c, s, i, map[i]);
    }
    return MST_OK;
}

static enum mst_code sparse_fill_empty_rows(struct op_ctx *c)
{
    struct tensor count = { 0 }, own = { 0 };
    int64_t rows, size;
    struct sparse s;
    enum mst_code rc = fill_check(c, &s);

    if (!rc)
        rc = sparse_size(c, s.shape, &size);
    if (rc)
        return rc;
    rows = tensor_int(s.shape, 0);
    if (!rows && s.n)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Received SparseTensor with dense_shape[0] = 0 but "
                       "indices.shape[0] = %lld",
                       (long long)s.n);
    rc = sparse_own(c, &s, &own);
    if (!rc)
        rc = op_out_new(c, 2, 1, &rows);
    if (!rc)
        rc = op_out_new(c, 3, 1, &s.n);
    if (!rc)
        rc = tensor_new(&count, DT_INT64, 1, &rows, c->st);
    if (!rc)
        rc = count_rows(c, &s, rows, count.data);
    if (!rc)
        rc = fill_rows(c, &s, rows, count.data);
    tensor_unref(&count);
    tensor_unref(&own);
    return rc;
}

const struct op_def def_sparse_fill_empty_rows = {
    .name = "SparseFillEmptyRows",
    .in = "indices: int64, values: T, dense_shape: int64, default_value: T",
    .out = "output_indices: int64, output_values: T, "
           "empty_row_indicator: bool, reverse_index_map: int64",
    .attr = "T: type",
    .kernel =
        (const struct op_kernel[]){ { DT_ANY, sparse_fill_empty_rows }, { 0 } },
};

/* ---- their gradient ---- */

/* Output 0: the gradients of the given values; seen[] marks where they came
 * from. */
static enum mst_code gather_grads(struct op_ctx *c, bool *seen)
{
    const struct tensor *map = op_in(c, 0), *grads = op_in(c, 1);

    for (int64_t i = 0; i < map->count; i++) {
        int64_t at = tensor_int(map, i);

        if (at < 0 || at >= grads->count)
            return op_fail(c, MST_INVALID_ARGUMENT,
                           "Elements in reverse index must be in [0, %lld) but "
                           "got %lld",
                           (long long)grads->count, (long long)at);
        tensor_copy_elems(op_out(c, 0), i, grads, at, 1);
        seen[at] = true;
    }
    return MST_OK;
}

static enum mst_code fill_grad(struct op_ctx *c,
                               void (*sum)(const struct tensor *grads,
                                           const bool *seen, void *ret))
{
    const struct tensor *map = op_in(c, 0), *grads = op_in(c, 1);
    struct tensor seen = { 0 };
    char text[SHAPE_TEXT_MAX];
    enum mst_code rc;

    if (map->ndim != 1)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "reverse_index_map must be a vector, saw: %s",
                       tensor_shape_text(map, text));
    if (grads->ndim != 1)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "grad_values must be a vector, saw: %s",
                       tensor_shape_text(grads, text));
    rc = op_out_new(c, 0, 1, &map->count);
    if (!rc)
        rc = op_out_new(c, 1, 0, NULL);
    if (!rc)
        rc = tensor_new(&seen, DT_BOOL, 1, &grads->count, c->st);
    if (!rc) {
        tensor_zero(&seen);
        rc = gather_grads(c, seen.data);
    }
    if (!rc)
        sum(grads, seen.data, op_out(c, 1)->data);
    tensor_unref(&seen);
    return rc;
}

#define FILL_GRAD(s, T, A, DT, LD, ST)                                         \
    static void sum_##s(const struct tensor *grads, const bool *seen,          \
                        void *ret)                                             \
    {                                                                          \
        const T *g = grads->data;                                              \
        A total = 0;                                                           \
                                                                               \
        for (int64_t i = 0; i < grads->count; i++)                             \
            if (!seen[i])                                                      \
                total = LD(ST((A)(total + LD(g[i]))));                         \
        *(T *)ret = (T)ST(total);                                              \
    }                                                                          \
    static enum mst_code fill_grad_##s(struct op_ctx *c)                       \
    {                                                                          \
        return fill_grad(c, sum_##s);                                          \
    }
TYPES_FLOAT(FILL_GRAD)
TYPES_UNSIGNED(FILL_GRAD)
TYPES_COMPLEX(FILL_GRAD)

const struct op_def def_sparse_fill_empty_rows_grad = {
    .name = "SparseFillEmptyRowsGrad",
    .in = "reverse_index_map: int64, grad_values: T",
    .out = "d_values: T, d_default_value: T",
    .attr = "T: type",
    .kernel = KERNELS(TYPES_FLOAT(ROW, fill_grad) TYPES_UNSIGNED(ROW, fill_grad)
                          TYPES_SIGNED_WRAP(ROW, fill_grad)
                              TYPES_COMPLEX(ROW, fill_grad)),
};
