/*
 * Sparse tensors of another shape: reshaped, sliced, joined, split. Only
 * indices are computed; values go along.
 */
#include <string.h>

#include "kernel/args.h"
#include "kernel/sparse.h"

/* ---- reshape ---- */

struct target {
    int64_t dims[TENSOR_RANK_MAX];
    int ndim, open;
    int64_t count;
};

static enum mst_code target_read(struct op_ctx *c, struct target *t)
{
    const struct tensor *want = op_in(c, 2);
    enum mst_code rc = args_ints(c, want, t->dims);

    if (rc)
        return rc;
    t->ndim = (int)want->count;
    t->open = -1;
    t->count = 1;
    for (int i = 0; i < t->ndim; i++) {
        int64_t d = t->dims[i], before = t->count;

        if (d == -1 && t->open >= 0)
            return op_fail(c, MST_INVALID_ARGUMENT,
                           "only one output dimension may be -1, not both %d "
                           "and %d",
                           t->open, i);
        if (d == -1)
            t->open = i;
        else if (d < 0)
            return op_fail(c, MST_INVALID_ARGUMENT,
                           "size %d must be non-negative, not %lld", i,
                           (long long)d);
        else if (__builtin_mul_overflow(t->count, d, &t->count))
            return op_fail(c, MST_INVALID_ARGUMENT,
                           "Encountered overflow when multiplying %lld with "
                           "%lld, result: -1",
                           (long long)before, (long long)d);
    }
    return MST_OK;
}

static enum mst_code target_fit(struct op_ctx *c, int64_t have,
                                struct target *t)
{
    const struct tensor *shape = op_in(c, 1);
    char ta[SHAPE_TEXT_MAX], tb[SHAPE_TEXT_MAX];
    int64_t dims[TENSOR_RANK_MAX], known = t->count;

    for (int64_t i = 0; i < shape->count; i++)
        dims[i] = tensor_int(shape, i);
    shape_text((int)shape->count, dims, ta);
    if (t->open >= 0) {
        if (!known)
            return op_fail(c, MST_INVALID_ARGUMENT,
                           "reshape cannot infer the missing input size for an "
                           "empty tensor unless all specified input sizes are "
                           "non-zero");
        t->dims[t->open] = 1; /* what the text has for it */
        if (have % known)
            return op_fail(c, MST_INVALID_ARGUMENT,
                           "Input to reshape is a SparseTensor with %lld dense "
                           "values, but the requested shape requires a "
                           "multiple of %lld. input_shape=%s output_shape=%s",
                           (long long)have, (long long)known, ta,
                           shape_text(t->ndim, t->dims, tb));
        t->dims[t->open] = have / known;
        t->count *= t->dims[t->open];
    }
    if (t->count != have)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Input to reshape is a tensor with %lld dense values, "
                       "but the requested shape has %lld. input_shape=%s "
                       "output_shape=%s",
                       (long long)have, (long long)t->count, ta,
                       shape_text(t->ndim, t->dims, tb));
    return MST_OK;
}

static enum mst_code reshape_check(struct op_ctx *c)
{
    const struct tensor *index = op_in(c, 0), *shape = op_in(c, 1);
    char text[SHAPE_TEXT_MAX];

    if (index->ndim != 2)
        return op_fail(c, MST_INVALID_ARGUMENT, "Input must be a matrix.");
    if (shape->ndim != 1)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Input shape must be a vector.");
    if (index->dims[1] != shape->count)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Input tensor rank must match input shape length.");
    if (op_in(c, 2)->ndim != 1)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Target shape should be a vector but received shape %s",
                       tensor_shape_text(op_in(c, 2), text));
    if (shape->count > TENSOR_RANK_MAX)
        return op_fail(c, MST_UNIMPLEMENTED,
                       "Tensors of rank %lld are not supported, only up to %d",
                       (long long)shape->count, TENSOR_RANK_MAX);
    return MST_OK;
}

/* Indices may lie outside of the shape; then they wrap, and mean nothing. */
static void reshape_indices(struct op_ctx *c, const struct target *t)
{
    const struct tensor *in = op_in(c, 0), *shape = op_in(c, 1);
    const int64_t *from = in->data;
    int64_t *to = op_out(c, 0)->data;
    int ndim = (int)in->dims[1];

    for (int64_t i = 0; i < in->dims[0]; i++) {
        uint64_t flat = 0;
        int64_t rest;

        for (int d = 0; d < ndim; d++)
            flat = flat * (uint64_t)tensor_int(shape, d) + (uint64_t)from[d];
        rest = (int64_t)flat;
        for (int d = t->ndim - 1; d >= 0; d--) {
            int64_t n = MAX(t->dims[d], 1);

            to[d] = d ? rest % n : rest;
            rest /= n;
        }
        from += ndim;
        to += t->ndim;
    }
}

static enum mst_code sparse_reshape(struct op_ctx *c)
{
    const struct tensor *in = op_in(c, 0), *shape = op_in(c, 1);
    struct target t;
    int64_t have;
    char ta[SHAPE_TEXT_MAX], tb[SHAPE_TEXT_MAX];
    enum mst_code rc = reshape_check(c);

    if (!rc)
        rc = sparse_size(c, shape, &have);
    if (!rc)
        rc = target_read(c, &t);
    if (!rc)
        rc = target_fit(c, have, &t);
    /* The same shape again is no reshaping, and not looked at. */
    if (!rc && have == 0 && in->dims[0] &&
        (t.ndim != shape->count ||
         memcmp(t.dims, shape->data, tensor_bytes(shape))))
        rc = op_fail(c, MST_INVALID_ARGUMENT,
                     "Input tensor has %lld non zero elements but input shape "
                     "(%s) or output shape (%s) is empty",
                     (long long)in->dims[0],
                     shape_text((int)shape->count, shape->data, ta),
                     shape_text(t.ndim, t.dims, tb));
    if (!rc)
        rc = op_out_new(c, 0, 2, (int64_t[]){ in->dims[0], t.ndim });
    if (!rc)
        rc = op_out_new(c, 1, 1, (int64_t[]){ t.ndim });
    if (rc)
        return rc;
    if (t.ndim)
        memcpy(op_out(c, 1)->data, t.dims, tensor_bytes(op_out(c, 1)));
    if (t.ndim && in->dims[0])
        reshape_indices(c, &t);
    return MST_OK;
}

const struct op_def def_sparse_reshape = {
    .name = "SparseReshape",
    .in = "input_indices: int64, input_shape: int64, new_shape: int64",
    .out = "output_indices: int64, output_shape: int64",
    .kernel = (const struct op_kernel[]){ { DT_ANY, sparse_reshape }, { 0 } },
};

/* ---- slice ---- */

static enum mst_code slice_check(struct op_ctx *c, struct sparse *s)
{
    static const char *const names[] = { "", "", "", "start", "size" };
    char text[SHAPE_TEXT_MAX];
    int64_t size;
    enum mst_code rc = sparse_read(c, 0, s);

    for (int i = 3; i <= 4 && !rc; i++)
        if (op_in(c, i)->ndim != 1)
            rc = op_fail(c, MST_INVALID_ARGUMENT,
                         "Input %s should be a vector but received shape %s",
                         names[i], tensor_shape_text(op_in(c, i), text));
    for (int i = 3; i <= 4 && !rc; i++)
        if (op_in(c, i)->count != s->ndim)
            rc = op_fail(c, MST_INVALID_ARGUMENT,
                         "Expected %s to be a vector of length %d but got "
                         "length %lld",
                         names[i], s->ndim, (long long)op_in(c, i)->count);
    if (!rc)
        rc = sparse_size(c, s->shape, &size);
    for (int d = 0; d < s->ndim && !rc; d++)
        if (tensor_int(op_in(c, 4), d) < 0)
            rc = op_fail(c, MST_INVALID_ARGUMENT,
                         "Expected a non-negative size, got %lld",
                         (long long)tensor_int(op_in(c, 4), d));
    return rc;
}

static bool slice_has(const struct sparse *s, int64_t i, const int64_t *start,
                      const int64_t *size)
{
    const int64_t *index = sparse_row(s, i);

    for (int d = 0; d < s->ndim; d++) {
        __int128 off = (__int128)index[d] - start[d];

        if (off < 0 || off >= size[d])
            return false;
    }
    return true;
}

/* Outputs of the n elements whose numbers are in kept[]. */
static enum mst_code slice_put(struct op_ctx *c, const struct sparse *s,
                               const int64_t *kept, int64_t n)
{
    const int64_t *start = op_in(c, 3)->data, *size = op_in(c, 4)->data;
    int64_t *index, *dims;
    enum mst_code rc = op_out_new(c, 0, 2, (int64_t[]){ n, s->ndim });

    if (!rc)
        rc = op_out_new(c, 1, 1, &n);
    if (!rc)
        rc = op_out_like(c, 2, s->shape);
    if (rc)
        return rc;
    dims = op_out(c, 2)->data;
    for (int d = 0; d < s->ndim; d++) {
        __int128 rest = (__int128)tensor_int(s->shape, d) - start[d];

        dims[d] = rest <= 0 ? 0 : (int64_t)MIN(rest, size[d]);
    }
    index = op_out(c, 0)->data;
    for (int64_t i = 0; i < n; i++) {
        for (int d = 0; d < s->ndim; d++)
            *index++ = sparse_row(s, kept[i])[d] - start[d];
        tensor_copy_elems(op_out(c, 1), i, s->values, kept[i], 1);
    }
    return MST_OK;
}

static enum mst_code sparse_slice(struct op_ctx *c)
{
    struct tensor room = { 0 };
    struct sparse s;
    int64_t n = 0, *kept;
    enum mst_code rc = slice_check(c, &s);

    if (!rc)
        rc = tensor_new(&room, DT_INT64, 1, &s.n, c->st);
    if (rc)
        return rc;
    kept = room.data;
    for (int64_t i = 0; i < s.n; i++)
        if (slice_has(&s, i, op_in(c, 3)->data, op_in(c, 4)->data))
            kept[n++] = i;
    rc = slice_put(c, &s, kept, n);
    tensor_unref(&room);
    return rc;
}

const struct op_def def_sparse_slice = {
    .name = "SparseSlice",
    .in = "indices: int64, values: T, shape: int64, start: int64, size: int64",
    .out = "output_indices: int64, output_values: T, output_shape: int64",
    .attr = "T: type",
    .kernel = (const struct op_kernel[]){ { DT_ANY, sparse_slice }, { 0 } },
};
