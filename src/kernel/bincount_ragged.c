/*
 * Counts of whole numbers a row, where rows are ragged or sparse:
 * RaggedBincount and SparseBincount. Numbers past the last bin are left out.
 */
#include "kernel/types.h"

struct counts {
    const struct tensor *values, *weights;
    int64_t rows, bins;
    bool flat; /* one row, and a vector as output */
    bool binary;
};

static enum mst_code counts_read(struct op_ctx *c, int values, struct counts *n)
{
    const struct tensor *size =
        op_in(c, values + 1 + (values == 1 && c->node->in_count == 5));
    char x[SHAPE_TEXT_MAX], y[SHAPE_TEXT_MAX];

    n->values = op_in(c, values);
    n->weights = op_in(c, c->node->in_count - 1);
    n->binary = c->node->state != NULL;
    if (size->ndim)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Shape must be rank 0 but is rank %d", size->ndim);
    n->bins = tensor_int(size, 0);
    if (n->bins < 0)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "size (%lld) must be non-negative", (long long)n->bins);
    if (n->weights->count && !tensor_same_shape(n->weights, n->values))
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "`weights` must be the same shape as `values` or a "
                       "length-0 `Tensor`, in which case it acts as all "
                       "weights equal to 1. Received %s vs %s",
                       tensor_shape_text(n->weights, x),
                       tensor_shape_text(n->values, y));
    return MST_OK;
}

static enum mst_code counts_new(struct op_ctx *c, const struct counts *n)
{
    enum mst_code rc =
        n->flat ? op_out_new(c, 0, 1, &n->bins)
                : op_out_new(c, 0, 2, (int64_t[]){ n->rows, n->bins });

    if (!rc)
        tensor_zero(op_out(c, 0));
    return rc;
}

#define COUNT_ONE(s, T, A, DT, LD, ST)                                         \
    case DT: {                                                                 \
        T *to = TENSOR_DATA(op_out(c, 0), T) + row * n->bins + bin;            \
                                                                               \
        *to = n->binary           ? (T)1                                       \
              : n->weights->count ? (T)(*to + TENSOR_DATA(n->weights, T)[i])   \
                                  : (T)(*to + 1);                              \
        return MST_OK;                                                         \
    }

/* Value i counts in that row. */
static enum mst_code count(struct op_ctx *c, const struct counts *n, int64_t i,
                           int64_t row)
{
    int64_t bin = tensor_int(n->values, i);

    if (bin < 0)
        return op_fail(c, MST_INVALID_ARGUMENT, "Input must be non-negative");
    if (bin >= n->bins)
        return MST_OK;
    switch (op_out(c, 0)->dtype) {
        TYPES_FLOAT_WIDE(COUNT_ONE)
        TYPES_INDEX_WRAP(COUNT_ONE)
    }
    return MST_OK;
}

static enum mst_code ragged_bincount(struct op_ctx *c)
{
    const struct tensor *splits = op_in(c, 0);
    struct counts n = { 0 };
    enum mst_code rc = counts_read(c, 1, &n);

    if (rc)
        return rc;
    if (splits->ndim != 1 || !splits->count)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Splits must be a non-empty vector");
    if (tensor_int(splits, 0))
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Splits must start with 0, not with %lld",
                       (long long)tensor_int(splits, 0));
    if (tensor_int(splits, splits->count - 1) != n.values->count)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Splits must end with the number of values, got %lld "
                       "instead of %lld",
                       (long long)tensor_int(splits, splits->count - 1),
                       (long long)n.values->count);
    n.rows = splits->count - 1;
    rc = counts_new(c, &n);
    for (int64_t i = 0, row = 0; i < n.values->count && !rc; i++) {
        while (row + 1 < n.rows && tensor_int(splits, row + 1) <= i)
            row++;
        rc = count(c, &n, i, row);
    }
    return rc;
}

static enum mst_code sparse_bincount(struct op_ctx *c)
{
    const struct tensor *index = op_in(c, 0), *shape = op_in(c, 2);
    struct counts n = { 0 };
    enum mst_code rc = counts_read(c, 1, &n);

    if (rc)
        return rc;
    if (shape->ndim != 1 || shape->count < 1 || shape->count > 2)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "`dense_shape` must be a vector of one or two elements");
    n.flat = shape->count == 1;
    n.rows = n.flat ? 1 : tensor_int(shape, 0);
    if (n.rows < 0 || (!n.flat && (index->ndim != 2 || index->dims[1] != 2)) ||
        (!n.flat && index->dims[0] != n.values->count))
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Indices, values and shape do not go together");
    rc = counts_new(c, &n);
    for (int64_t i = 0; i < n.values->count && !rc; i++) {
        int64_t row = n.flat ? 0 : tensor_int(index, 2 * i);

        if (row < 0 || row >= n.rows)
            return op_fail(c, MST_INVALID_ARGUMENT,
                           "Index out of bound. `batch` (%lld) must be less "
                           "than the dimension size (%lld).",
                           (long long)row, (long long)n.rows);
        rc = count(c, &n, i, row);
    }
    return rc;
}

static enum mst_code counts_init(struct op_node *n, struct status *st)
{
    (void)st;
    if (op_attr_bool(n, "binary_output")) /* only whether it is set */
        n->state = n;
    return MST_OK;
}

#define BINCOUNT(stem, text, in_)                                              \
    const struct op_def def_##stem = {                                         \
        .name = text,                                                          \
        .in = in_ ", size: Tidx, weights: T",                                  \
        .out = "output: T",                                                    \
        .attr = "Tidx: {int32, int64}; T: {int32, int64, float, double}; "     \
                "binary_output: bool = false",                                 \
        .init = counts_init,                                                   \
        .kernel = (const struct op_kernel[]){ { DT_ANY, stem }, { 0 } },       \
    };

BINCOUNT(ragged_bincount, "RaggedBincount", "splits: int64, values: Tidx")
BINCOUNT(sparse_bincount, "SparseBincount",
         "indices: int64, values: Tidx, dense_shape: int64")
