/*
 * The Levenshtein distance of sequences: the last dimension of two sparse
 * tensors. Groups of elements that stand together are walked side by side; a
 * group that only one of them has is compared with nothing.
 */
#include "base/mem.h"
#include "kernel/sparse.h"
#include "kernel/types.h"

struct side {
    const struct tensor *indices, *values, *shape;
    int64_t at, end; /* the group that the walk is at */
};

static enum mst_code side_check(struct op_ctx *c, const char *name,
                                const struct side *e)
{
    char x[SHAPE_TEXT_MAX], y[SHAPE_TEXT_MAX];

    if (e->indices->ndim != 2)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "%s_indices should be a matrix, but got shape: %s", name,
                       tensor_shape_text(e->indices, x));
    if (e->values->ndim != 1)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "%s_values should be a vector, but got shape: %s", name,
                       tensor_shape_text(e->values, x));
    if (e->shape->ndim != 1)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "%s_shape should be a vector, but got shape: %s", name,
                       tensor_shape_text(e->shape, x));
    if (e->shape->count != e->indices->dims[1])
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Expected %s_shape.NumElements == #cols(%s_indices), "
                       "their shapes are: %s and %s",
                       name, name, tensor_shape_text(e->shape, x),
                       tensor_shape_text(e->indices, y));
    return MST_OK;
}

static enum mst_code both_check(struct op_ctx *c, const struct side *h,
                                const struct side *t, struct shape *out)
{
    const struct side *sides[] = { h, t };
    const char *const names[] = { "hypothesis", "truth" };
    char x[SHAPE_TEXT_MAX], y[SHAPE_TEXT_MAX];
    enum mst_code rc = side_check(c, names[0], h);

    if (!rc)
        rc = side_check(c, names[1], t);
    if (rc)
        return rc;
    if (t->shape->count < 2)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Input SparseTensors must have rank at least 2, but "
                       "truth_shape rank is: %lld",
                       (long long)t->shape->count);
    for (int i = 0; i < 2; i++)
        if (sides[i]->values->count != sides[i]->indices->dims[0])
            return op_fail(c, MST_INVALID_ARGUMENT,
                           "Expected %s_values.NumElements == "
                           "#rows(%s_indices), their shapes are: %s and %s",
                           names[i], names[i],
                           tensor_shape_text(sides[i]->values, x),
                           tensor_shape_text(sides[i]->indices, y));
    if (t->shape->count != h->shape->count)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Expected truth and hypothesis to have matching ranks, "
                       "but their shapes are: %s and %s",
                       tensor_shape_text(t->shape, x),
                       tensor_shape_text(h->shape, y));
    if (t->shape->count > TENSOR_RANK_MAX)
        return op_fail(c, MST_UNIMPLEMENTED,
                       "Tensors of rank %lld are not supported, only up to %d",
                       (long long)t->shape->count, TENSOR_RANK_MAX);
    for (int64_t i = 0; i < 2 * t->shape->count; i++) {
        int64_t n = tensor_int(sides[i % 2]->shape, i / 2);

        if (n < 0)
            return op_fail(c, MST_INVALID_ARGUMENT,
                           "Dimension %lld must be >= 0", (long long)n);
    }
    for (int i = 0; i < 2; i++)
        if (!shape_count((int)t->shape->count, sides[i]->shape->data, 0,
                         &(int64_t){ 0 }))
            return op_fail(
                c, MST_INVALID_ARGUMENT,
                "Shape %s would have more than 2**63 - 1 elements",
                shape_text((int)t->shape->count, sides[i]->shape->data, x));
    out->ndim = (int)t->shape->count - 1;
    for (int d = 0; d < out->ndim; d++)
        out->dims[d] = MAX(tensor_int(t->shape, d), tensor_int(h->shape, d));
    return op_out_new(c, 0, out->ndim, out->dims);
}

/* Where group rows i of x and k of y stand to each other. */
static int compare(const struct side *x, int64_t i, const struct side *y,
                   int64_t k, int ndim)
{
    const int64_t *a = TENSOR_DATA(x->indices, int64_t) + i * (ndim + 1);
    const int64_t *b = TENSOR_DATA(y->indices, int64_t) + k * (ndim + 1);

    for (int d = 0; d < ndim; d++)
        if (a[d] != b[d])
            return a[d] < b[d] ? -1 : 1;
    return 0;
}

static void side_next(struct side *e, int ndim)
{
    e->at = e->end;
    while (e->end < e->values->count && !compare(e, e->at, e, e->end, ndim))
        e->end++;
}

static bool same(const struct tensor *x, int64_t i, const struct tensor *y,
                 int64_t k)
{
    size_t size = dtype_size((enum dtype)x->dtype);

    switch (x->dtype) {
    case DT_STRING: {
        const struct str *a = tensor_str(x, i), *b = tensor_str(y, k);

        return a->len == b->len && !memcmp(a->data, b->data, a->len);
    }
    case DT_FLOAT:
        return TENSOR_DATA(x, float)[i] == TENSOR_DATA(y, float)[k];
    case DT_DOUBLE:
        return TENSOR_DATA(x, double)[i] == TENSOR_DATA(y, double)[k];
    default:
        return !memcmp((const char *)x->data + (size_t)i * size,
                       (const char *)y->data + (size_t)k * size, size);
    }
}

static int64_t distance(const struct side *h, const struct side *t)
{
    int64_t n = t->end - t->at, m = h->end - h->at, last, diagonal, *row;

    row = mem_array((size_t)n + 1, sizeof(*row));
    for (int64_t k = 0; k <= n; k++)
        row[k] = k;
    for (int64_t i = 1; i <= m; i++) {
        diagonal = row[0];
        row[0] = i;
        for (int64_t k = 1; k <= n; k++) {
            int64_t up = row[k];

            row[k] = same(h->values, h->at + i - 1, t->values, t->at + k - 1)
                         ? diagonal
                         : 1 + MIN(diagonal, MIN(up, row[k - 1]));
            diagonal = up;
        }
    }
    last = row[n];
    mem_free(row);
    return last;
}

static enum mst_code put(struct op_ctx *c, const struct side *e,
                         const struct shape *out, float x)
{
    const int64_t *index =
        TENSOR_DATA(e->indices, int64_t) + e->at * (out->ndim + 1);
    __int128 at = 0;
    int64_t step = 1;

    for (int d = out->ndim - 1; d >= 0; d--) {
        at += (__int128)index[d] * step;
        step *= out->dims[d];
    }
    if (at < 0 || at >= op_out(c, 0)->count)
        return op_fail(c, MST_INTERNAL,
                       "Got an inner product %lld which would require writing "
                       "to outside of the buffer for the output tensor (max "
                       "elements %lld)",
                       (long long)at, (long long)op_out(c, 0)->count);
    TENSOR_DATA(op_out(c, 0), float)[at] = x;
    return MST_OK;
}

static enum mst_code edit_distance(struct op_ctx *c)
{
    struct side h = { op_in(c, 0), op_in(c, 1), op_in(c, 2), 0, 0 };
    struct side t = { op_in(c, 3), op_in(c, 4), op_in(c, 5), 0, 0 };
    bool normalize = c->node->state != NULL;
    struct shape out;
    enum mst_code rc = both_check(c, &h, &t, &out);

    if (rc)
        return rc;
    tensor_zero(op_out(c, 0));
    side_next(&h, out.ndim);
    side_next(&t, out.ndim);
    while (!rc && (h.at < h.end || t.at < t.end)) {
        int way = h.at == h.end   ? 1
                  : t.at == t.end ? -1
                                  : compare(&h, h.at, &t, t.at, out.ndim);
        float n = (float)(t.end - t.at);

        if (way < 0)
            rc = put(c, &h, &out, normalize ? INFINITY : (float)(h.end - h.at));
        else if (way > 0)
            rc = put(c, &t, &out, normalize ? 1.0f : n);
        else
            rc = put(c, &t, &out,
                     (float)distance(&h, &t) / (normalize ? n : 1.0f));
        if (way <= 0)
            side_next(&h, out.ndim);
        if (way >= 0)
            side_next(&t, out.ndim);
    }
    return rc;
}

static enum mst_code edit_init(struct op_node *n, struct status *st)
{
    (void)st;
    if (op_attr_bool(n, "normalize")) /* only whether it is set */
        n->state = n;
    return MST_OK;
}

const struct op_def def_edit_distance = {
    .name = "EditDistance",
    .in = "hypothesis_indices: int64, hypothesis_values: T, "
          "hypothesis_shape: int64, truth_indices: int64, truth_values: T, "
          "truth_shape: int64",
    .out = "output: float",
    .attr = "normalize: bool = true; T: type",
    .init = edit_init,
    .kernel = (const struct op_kernel[]){ { DT_ANY, edit_distance }, { 0 } },
};
