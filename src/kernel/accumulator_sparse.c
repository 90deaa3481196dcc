/*
 * Sparse sums: rows of values, each with an index. See kernel/accumulator.h.
 *
 * A gradient's inputs are 2: indices, 3: values, 4: its dense shape, if known.
 */
#include <string.h>

#include "base/mem.h"
#include "kernel/accumulator.h"

/* ---- checks ---- */

static enum mst_code check_form(struct op_ctx *c)
{
    const struct tensor *index = op_in(c, 2), *values = op_in(c, 3);
    char text[SHAPE_TEXT_MAX];

    if (index->ndim != 1)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Input indices should be vector but received shape: %s",
                       tensor_shape_text(index, text));
    if (!values->ndim)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Values cannot be 0-dimensional.");
    if (values->dims[0] != index->dims[0])
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Expected %lld non-empty input values, got %lld",
                       (long long)index->dims[0], (long long)values->dims[0]);
    return MST_OK;
}

static enum mst_code check_known_shape(const struct shape *s, struct op_ctx *c)
{
    const struct tensor *t = op_in(c, 4);

    if (s->ndim > t->count)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Shape mismatch: expected shape rank at least %d, got "
                       "%lld",
                       s->ndim, (long long)t->count);
    for (int i = 0; i < s->ndim; i++)
        if (s->dims[i] >= 0 && s->dims[i] != tensor_int(t, i))
            return op_fail(c, MST_INVALID_ARGUMENT,
                           "Shape mismatch: expected shape dim %d to be %lld, "
                           "got %lld",
                           i, (long long)s->dims[i],
                           (long long)tensor_int(t, i));
    return MST_OK;
}

static enum mst_code check_limits(const struct shape *s, struct op_ctx *c)
{
    const struct tensor *index = op_in(c, 2);
    const int64_t *at = index->data;

    if (s->ndim <= 0 || s->dims[0] < 0)
        return MST_OK;
    for (int64_t i = 0; i < index->count; i++)
        if (at[i] >= s->dims[0])
            return op_fail(c, MST_INVALID_ARGUMENT,
                           "Shape mismatch: index of slice %lld exceeded "
                           "limits of shape; index is %lld exceeded %lld",
                           (long long)i, (long long)at[i],
                           (long long)s->dims[0]);
    return MST_OK;
}

/* The rows are like those that are there, or else like the given shape's. */
static enum mst_code check_rows(const struct accumulator *a, struct op_ctx *c)
{
    const struct tensor *values = op_in(c, 3), *sum = &a->sum.values;
    const struct shape *s = &a->config.shape;
    int ndim = a->count ? sum->ndim : s->ndim;

    if (a->count ? ndim != values->ndim : ndim > values->ndim)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       a->count
                           ? "Shape mismatch: expected values rank %d, got %d"
                           : "Shape mismatch: expected values rank at least "
                             "%d, got %d",
                       ndim, values->ndim);
    for (int i = 1; i < ndim; i++) {
        int64_t want = a->count ? sum->dims[i] : s->dims[i];

        if (want >= 0 && want != values->dims[i])
            return op_fail(c, MST_INVALID_ARGUMENT,
                           "Shape mismatch: expected values dim %d to be "
                           "%lld, got %lld",
                           i, (long long)want, (long long)values->dims[i]);
    }
    return MST_OK;
}

enum mst_code accumulator_sparse_check(struct accumulator *a, struct op_ctx *c,
                                       bool known_shape)
{
    enum mst_code rc = check_form(c);

    if (!rc && known_shape)
        rc = check_known_shape(&a->config.shape, c);
    if (!rc)
        rc = check_limits(&a->config.shape, c);
    return rc ? rc : check_rows(a, c);
}

/* ---- adding ---- */

static enum mst_code first(struct accumulator *a, struct op_ctx *c)
{
    const struct tensor *index = op_in(c, 2);
    struct tensor *values = &c->in[3].t;

    if (!tensor_unique(values)) {
        enum mst_code rc = tensor_copy(&a->sum.values, values, c->st);

        if (rc)
            return rc;
    } else {
        tensor_move(&a->sum.values, values);
    }
    a->sum.rows = mem_copy(index->data, tensor_bytes(index));
    a->sum.hits = mem_array((size_t)index->count, sizeof(*a->sum.hits));
    for (int64_t i = 0; i < index->count; i++)
        a->sum.hits[i] = 1;
    return MST_OK;
}

/* How many rows the merged list has. */
static int64_t merged_count(const int64_t *a, int64_t na, const int64_t *b,
                            int64_t nb)
{
    int64_t n = 0, i = 0, j = 0;

    while (i < na && j < nb) {
        bool from_a = a[i] <= b[j], from_b = b[j] <= a[i];

        i += from_a;
        j += from_b;
        n++;
    }
    return n + (na - i) + (nb - j);
}

/* Fills `out` with the merged rows. */
static void merge(const struct accumulator *a, const struct tensor *index,
                  const struct tensor *values, struct accumulator_sum *out)
{
    const struct accumulator_sum *sum = &a->sum;
    const int64_t *rows = index->data;
    int64_t na = sum->values.dims[0], nb = index->count, i = 0, j = 0;
    int64_t width =
        out->values.dims[0] ? out->values.count / out->values.dims[0] : 0;
    size_t bytes = (size_t)width * dtype_size((enum dtype)values->dtype);

    for (int64_t k = 0; i < na || j < nb; k++) {
        bool old = j == nb || (i < na && sum->rows[i] <= rows[j]);
        bool new = i == na || (j < nb && rows[j] <= sum->rows[i]);
        uint8_t *to = (uint8_t *)out->values.data + (size_t)k * bytes;
        const uint8_t *x = (uint8_t *)sum->values.data + (size_t)i * bytes;
        const uint8_t *y = (uint8_t *)values->data + (size_t)j * bytes;

        out->rows[k] = old ? sum->rows[i] : rows[j];
        out->hits[k] = (old ? sum->hits[i] : 0) + new;
        if (old && new)
            a->math->add(&(struct accumulator_add){ to, y, x }, 0, width);
        else if (bytes)
            memcpy(to, old ? x : y, bytes);
        i += old;
        j += new;
    }
}

enum mst_code accumulator_sparse_add(struct accumulator *a, struct op_ctx *c)
{
    const struct tensor *index = op_in(c, 2), *values = op_in(c, 3);
    struct accumulator_sum out = { 0 };
    int64_t dims[TENSOR_RANK_MAX], n;
    enum mst_code rc;

    if (!a->count)
        return first(a, c);
    n = merged_count(a->sum.rows, a->sum.values.dims[0], index->data,
                     index->count);
    memcpy(dims, values->dims, sizeof(dims));
    dims[0] = n;
    rc = tensor_new(&out.values, (enum dtype)values->dtype, values->ndim, dims,
                    c->st);
    if (rc)
        return rc;
    out.rows = mem_array((size_t)n, sizeof(*out.rows));
    out.hits = mem_array((size_t)n, sizeof(*out.hits));
    merge(a, index, values, &out);
    tensor_unref(&a->sum.values);
    mem_free(a->sum.rows);
    mem_free(a->sum.hits);
    a->sum = out;
    return MST_OK;
}

/* ---- giving ---- */

static void divide_rows(const struct accumulator *a,
                        const struct accumulator_sum *sum)
{
    int64_t n = sum->values.dims[0];
    int64_t width = n ? sum->values.count / n : 0;
    size_t bytes = (size_t)width * dtype_size((enum dtype)sum->values.dtype);

    for (int64_t i = 0; i < n; i++) {
        struct accumulator_divide v = {
            (uint8_t *)sum->values.data + (size_t)i * bytes, sum->hits[i]
        };

        if (sum->hits[i] > 1)
            a->math->divide(&v, 0, width);
    }
}

enum mst_code accumulator_sparse_give(const struct accumulator *a,
                                      struct op_ctx *c,
                                      struct accumulator_sum *sum)
{
    const struct tensor *values = &sum->values;
    int64_t n = values->dims[0], ndim = values->ndim;
    enum mst_code rc = op_out_new(c, 0, 1, &n);
    int64_t *shape;

    if (!rc)
        rc = op_out_new(c, 2, 1, &ndim);
    if (rc)
        return rc;
    if (a->config.mean)
        divide_rows(a, sum);
    if (n)
        memcpy(op_out(c, 0)->data, sum->rows, (size_t)n * sizeof(*sum->rows));
    /* How many rows there are in all only the given shape tells. */
    shape = op_out(c, 2)->data;
    memcpy(shape, values->dims, (size_t)ndim * sizeof(*shape));
    shape[0] = a->config.shape.ndim > 0 ? a->config.shape.dims[0] : -1;
    tensor_move(op_out(c, 1), &sum->values);
    return MST_OK;
}
