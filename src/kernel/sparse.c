#include "kernel/sparse.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum mst_code sparse_read(struct op_ctx *c, int i, struct sparse *ret)
{
    const struct tensor *t[3] = { op_in(c, i), op_in(c, i + 1),
                                  op_in(c, i + 2) };
    static const struct {
        const char *name;
        int ndim;
    } want[] = { { "indices", 2 }, { "values", 1 }, { "shape", 1 } };

    for (int k = 0; k < 3; k++)
        if (t[k]->ndim != want[k].ndim)
            return op_fail(c, MST_INVALID_ARGUMENT,
                           "Sparse %s must be rank %d but is rank %d",
                           want[k].name, want[k].ndim, t[k]->ndim);
    if (t[0]->dims[0] != t[1]->count)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Number of elements in indices (%lld) and values (%lld) "
                       "do not match",
                       (long long)t[0]->dims[0], (long long)t[1]->count);
    if (t[0]->dims[1] != t[2]->count)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Index rank (%lld) and shape rank (%lld) do not match",
                       (long long)t[0]->dims[1], (long long)t[2]->count);
    if (t[2]->count > TENSOR_RANK_MAX)
        return op_fail(c, MST_UNIMPLEMENTED,
                       "Tensors of rank %lld are not supported, only up to %d",
                       (long long)t[2]->count, TENSOR_RANK_MAX);
    *ret = (struct sparse){ t[0], t[1], t[2], t[1]->count, (int)t[2]->count };
    return MST_OK;
}

enum mst_code sparse_create(struct op_ctx *c, int i, struct sparse *ret)
{
    const struct tensor *index = op_in(c, i), *values = op_in(c, i + 1);
    char text[SHAPE_TEXT_MAX];

    if (values->ndim != 1)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "vals must be a vec, but got: %s",
                       tensor_shape_text(values, text));
    if (index->ndim != 2)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "indices must be a matrix, but got: %s",
                       tensor_shape_text(index, text));
    if (index->dims[0] != values->count)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "indices and values rows (indexing dimension) must "
                       "match. (indices = %lld, values = %lld)",
                       (long long)index->dims[0], (long long)values->count);
    if (op_in(c, i + 2)->ndim == 1 && index->dims[1] != op_in(c, i + 2)->count)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Order length must be SparseTensor rank.");
    return sparse_read(c, i, ret);
}

enum mst_code sparse_own(struct op_ctx *c, struct sparse *s, struct tensor *own)
{
    enum mst_code rc = tensor_copy(own, s->indices, c->st);

    if (!rc)
        s->indices = own;
    return rc;
}

enum mst_code sparse_size(struct op_ctx *c, const struct tensor *shape,
                          int64_t *ret_count)
{
    int64_t count = 1;

    for (int64_t i = 0; i < shape->count; i++) {
        int64_t d = tensor_int(shape, i), before = count;

        if (d < 0)
            return op_fail(c, MST_INVALID_ARGUMENT,
                           "Expected shape dimensions to be non-negative, got "
                           "%lld",
                           (long long)d);
        if (__builtin_mul_overflow(count, d, &count))
            return op_fail(c, MST_INVALID_ARGUMENT,
                           "Encountered overflow when multiplying %lld with "
                           "%lld, result: -1",
                           (long long)before, (long long)d);
    }
    *ret_count = count;
    return MST_OK;
}

/* Where i does not come after the row before it. */
static bool disordered(const struct sparse *s, int64_t i, bool *ret_same)
{
    const int64_t *a = sparse_row(s, i - 1), *b = sparse_row(s, i);

    for (int d = 0; d < s->ndim; d++)
        if (a[d] != b[d]) {
            *ret_same = false;
            return a[d] > b[d];
        }
    *ret_same = true;
    return true;
}

enum mst_code sparse_check(struct op_ctx *c, const struct sparse *s, bool order)
{
    char ta[SHAPE_TEXT_MAX], tb[SHAPE_TEXT_MAX];
    bool same;

    for (int64_t i = 0; i < s->n; i++) {
        const int64_t *index = sparse_row(s, i);

        for (int d = 0; d < s->ndim; d++)
            if (index[d] < 0 || index[d] >= tensor_int(s->shape, d))
                return op_fail(
                    c, MST_INVALID_ARGUMENT,
                    "indices[%lld] = %s is out of bounds: need 0 "
                    "<= index < %s",
                    (long long)i, sparse_index_text(s->ndim, index, ",", ta),
                    sparse_index_text(s->ndim, TENSOR_DATA(s->shape, int64_t),
                                      ",", tb));
        if (order && i && disordered(s, i, &same))
            return op_fail(c, MST_INVALID_ARGUMENT,
                           same ? "indices[%lld] = %s is repeated"
                                : "indices[%lld] = %s is out of order. Many "
                                  "sparse ops require sorted indices.\n    Use "
                                  "`tf.sparse.reorder` to create a correctly "
                                  "ordered copy.\n\n",
                           (long long)i,
                           sparse_index_text(s->ndim, index, ",", ta));
    }
    return MST_OK;
}

struct order {
    const int64_t *indices;
    int ndim;
};

static int compare(const void *a, const void *b, void *arg)
{
    const struct order *o = arg;
    int64_t i = *(const int64_t *)a, k = *(const int64_t *)b;
    const int64_t *x = o->indices + i * o->ndim, *y = o->indices + k * o->ndim;

    for (int d = 0; d < o->ndim; d++)
        if (x[d] != y[d])
            return x[d] < y[d] ? -1 : 1;
    return i < k ? -1 : i > k;
}

void sparse_sort(const int64_t *indices, int ndim, int64_t *rows, int64_t n)
{
    struct order o = { indices, ndim };
    bool sorted = true;

    for (int64_t i = 1; i < n && sorted; i++)
        sorted = compare(&rows[i - 1], &rows[i], &o) < 0;
    if (!sorted)
        qsort_r(rows, (size_t)n, sizeof(*rows), compare, &o);
}

const char *sparse_index_text(int ndim, const int64_t *index,
                              const char *between, char *text)
{
    size_t n = 0;

    text[n++] = '[';
    for (int i = 0; i < ndim && n < SHAPE_TEXT_MAX - 26; i++)
        n += (size_t)snprintf(text + n, 24, "%s%lld", i ? between : "",
                              (long long)index[i]);
    strcpy(text + n, "]");
    return text;
}

const char *sparse_values_text(const struct tensor *t, char *text)
{
    sparse_index_text((int)MIN(t->count, 10), t->data, " ", text);
    text[strlen(text) - 1] = '\0';
    return text + 1;
}
