/*
 * Reductions of sparse tensors, to dense or sparse ones, and the softmax of
 * their last dimension. Elements are put in the order of the dimensions that
 * stay, so that what is reduced together stands together.
 */
#include "base/mem.h"
#include "kernel/args.h"
#include "kernel/sparse.h"
#include "kernel/types.h"

#define NUMBERS                                                                \
    "{float, double, int32, uint8, int16, int8, complex64, int64, qint8, "     \
    "quint8, qint32, bfloat16, qint16, quint16, uint16, complex128, half, "    \
    "uint32, uint64}"
#define REALS                                                                  \
    "{float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, "     \
    "half, uint32, uint64}"

struct groups {
    struct sparse in;
    struct tensor own;
    int ndim, dims[TENSOR_RANK_MAX]; /* that stay */
    struct tensor room;
    int64_t *rows, *keys; /* elements in order, and what stays of indices */
    struct shape out;
};

static void groups_done(struct groups *g)
{
    tensor_unref(&g->own);
    tensor_unref(&g->room);
}

/* Sorts the elements. */
static enum mst_code groups_sort(struct op_ctx *c, struct groups *g)
{
    int64_t size;
    enum mst_code rc = sparse_size(c, g->in.shape, &size);

    if (!rc)
        rc = sparse_own(c, &g->in, &g->own);
    if (!rc)
        rc = sparse_check(c, &g->in, false);
    if (!rc)
        rc = tensor_new(&g->room, DT_INT64, 2,
                        (int64_t[]){ g->in.n, g->ndim + 1 }, c->st);
    if (rc)
        return rc;
    g->rows = g->room.data;
    g->keys = g->rows + g->in.n;
    for (int64_t i = 0; i < g->in.n; i++) {
        g->rows[i] = i;
        for (int d = 0; d < g->ndim; d++)
            g->keys[i * g->ndim + d] = sparse_row(&g->in, i)[g->dims[d]];
    }
    sparse_sort(g->keys, g->ndim, g->rows, g->in.n);
    return MST_OK;
}

/* The end of the group that begins at i, in the order of rows[]. */
static int64_t group_end(const struct groups *g, int64_t i)
{
    const int64_t *key = g->keys + g->rows[i] * g->ndim;
    int64_t end = i + 1;

    while (end < g->in.n && !memcmp(key, g->keys + g->rows[end] * g->ndim,
                                    (size_t)g->ndim * sizeof(*key)))
        end++;
    return end;
}

/* ---- reductions ---- */

static enum mst_code reduce_axes(struct op_ctx *c, struct groups *g, bool keep)
{
    const struct tensor *shape = op_in(c, 2), *axes = op_in(c, 3);
    bool gone[TENSOR_RANK_MAX] = { false };

    for (int64_t i = 0; i < axes->count; i++) {
        int axis;

        if (!args_axis(tensor_int(axes, i), g->in.ndim, &axis))
            return op_fail(c, MST_INVALID_ARGUMENT,
                           "Invalid reduction dimension %lld, for input with "
                           "%lld dimensions.",
                           (long long)tensor_int(axes, i),
                           (long long)shape->count);
        gone[axis] = true;
    }
    for (int d = 0; d < g->in.ndim; d++) {
        if (!gone[d])
            g->dims[g->ndim++] = d;
        if (!gone[d] || keep)
            g->out.dims[g->out.ndim++] = gone[d] ? 1 : tensor_int(shape, d);
    }
    return MST_OK;
}

static enum mst_code reduce_read(struct op_ctx *c, struct groups *g)
{
    const struct tensor *shape = op_in(c, 2), *axes = op_in(c, 3);
    char text[SHAPE_TEXT_MAX];
    enum mst_code rc;

    if (shape->ndim != 1)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Expected input_shape to be a vector; got shape: %s",
                       tensor_shape_text(shape, text));
    if (axes->ndim > 1)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Expected reduction_axes to be a scalar or a vector; "
                       "got shape: %s",
                       tensor_shape_text(axes, text));
    for (int64_t i = 0; i < axes->count; i++)
        if (tensor_int(axes, i) < -shape->count ||
            tensor_int(axes, i) >= shape->count)
            return op_fail(c, MST_INVALID_ARGUMENT,
                           "Invalid reduction dimension %lld, for input with "
                           "%lld dimensions.",
                           (long long)tensor_int(axes, i),
                           (long long)shape->count);
    rc = sparse_create(c, 0, &g->in);
    if (!rc)
        rc = reduce_axes(c, g, c->node->state != NULL);
    return rc ? rc : groups_sort(c, g);
}

/* Output 0 is dense. */
static enum mst_code dense_new(struct op_ctx *c, struct groups *g)
{
    enum mst_code rc = op_out_new(c, 0, g->out.ndim, g->out.dims);

    if (!rc)
        tensor_zero(op_out(c, 0));
    return rc;
}

static int64_t dense_at(const struct groups *g, int64_t i)
{
    const int64_t *key = g->keys + g->rows[i] * g->ndim;
    int64_t at = 0;

    for (int d = 0; d < g->ndim; d++)
        at = at * tensor_int(g->in.shape, g->dims[d]) + key[d];
    return at;
}

/* Outputs 0 to 2 are sparse; all but the values are filled in. */
static enum mst_code sparse_new(struct op_ctx *c, struct groups *g)
{
    int64_t n = 0, ndim = g->out.ndim, *index;
    bool keep = g->out.ndim != g->ndim;
    enum mst_code rc;

    for (int64_t i = 0; i < g->in.n; i = group_end(g, i))
        n++;
    rc = op_out_new(c, 0, 2, (int64_t[]){ n, ndim });
    if (!rc)
        rc = op_out_new(c, 1, 1, &n);
    if (!rc)
        rc = op_out_new(c, 2, 1, &ndim);
    if (rc)
        return rc;
    tensor_zero(op_out(c, 0));
    index = op_out(c, 0)->data;
    for (int64_t i = 0; i < g->in.n; i = group_end(g, i), index += ndim)
        for (int d = 0; d < g->ndim; d++)
            index[keep ? g->dims[d] : d] = g->keys[g->rows[i] * g->ndim + d];
    for (int d = 0; d < g->out.ndim; d++)
        TENSOR_DATA(op_out(c, 2), int64_t)[d] = g->out.dims[d];
    return MST_OK;
}

#define PLUS(x, y)    ((x) + (y))
#define GREATER(x, y) ((x) < (y) ? (y) : (x))

#define REDUCE(s, T, A, DT, LD, ST, name, OP)                                  \
    static enum mst_code name##_##s(struct op_ctx *c)                          \
    {                                                                          \
        struct groups g = { 0 };                                               \
        bool dense = c->node->out_count == 1;                                  \
        const T *v = op_in(c, 1)->data;                                        \
        int64_t end, n = 0;                                                    \
        enum mst_code rc = reduce_read(c, &g);                                 \
                                                                               \
        if (!rc)                                                               \
            rc = dense ? dense_new(c, &g) : sparse_new(c, &g);                 \
        for (int64_t i = 0; !rc && i < g.in.n; i = end) {                      \
            A x = LD(v[g.rows[i]]);                                            \
                                                                               \
            end = group_end(&g, i);                                            \
            for (int64_t k = i + 1; k < end; k++)                              \
                x = (A)OP(x, LD(v[g.rows[k]]));                                \
            TENSOR_DATA(op_out(c, !dense), T)                                  \
            [dense ? dense_at(&g, i) : n++] = ST(x);                           \
        }                                                                      \
        groups_done(&g);                                                       \
        return rc;                                                             \
    }

TYPES_FLOAT(REDUCE, sparse_sum, PLUS)
TYPES_UNSIGNED(REDUCE, sparse_sum, PLUS)
TYPES_COMPLEX(REDUCE, sparse_sum, PLUS)
TYPES_REAL(REDUCE, sparse_max, GREATER)

static enum mst_code reduce_init(struct op_node *n, struct status *st)
{
    (void)st;
    if (op_attr_bool(n, "keep_dims")) /* only whether it is set */
        n->state = n;
    return MST_OK;
}

#define REDUCE_DEF(stem, text, out_, types, rows)                              \
    const struct op_def def_##stem = {                                         \
        .name = text,                                                          \
        .in = "input_indices: int64, input_values: T, input_shape: int64, "    \
              "reduction_axes: int32",                                         \
        .out = out_,                                                           \
        .attr = "keep_dims: bool = false; T: " types,                          \
        .init = reduce_init,                                                   \
        .kernel = KERNELS(rows),                                               \
    };
#define SUM_ROWS                                                               \
    TYPES_FLOAT(ROW, sparse_sum)                                               \
    TYPES_UNSIGNED(ROW, sparse_sum)                                            \
    TYPES_SIGNED_WRAP(ROW, sparse_sum) TYPES_COMPLEX(ROW, sparse_sum)
#define SPARSE_OUT                                                             \
    "output_indices: int64, output_values: T, output_shape: int64"

REDUCE_DEF(sparse_reduce_sum, "SparseReduceSum", "output: T", NUMBERS, SUM_ROWS)
REDUCE_DEF(sparse_reduce_sum_sparse, "SparseReduceSumSparse", SPARSE_OUT,
           NUMBERS, SUM_ROWS)
REDUCE_DEF(sparse_reduce_max, "SparseReduceMax", "output: T", REALS,
           TYPES_REAL(ROW, sparse_max))
REDUCE_DEF(sparse_reduce_max_sparse, "SparseReduceMaxSparse", SPARSE_OUT, REALS,
           TYPES_REAL(ROW, sparse_max))

/* ---- softmax ---- */

static enum mst_code softmax_read(struct op_ctx *c, struct groups *g)
{
    const struct tensor *index = op_in(c, 0), *values = op_in(c, 1);
    const struct tensor *shape = op_in(c, 2);
    char x[SHAPE_TEXT_MAX], y[SHAPE_TEXT_MAX];
    enum mst_code rc;

    if (index->ndim != 2)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Input sp_indices should be a matrix but received "
                       "shape: %s",
                       tensor_shape_text(index, x));
    if (values->ndim != 1 || shape->ndim != 1)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Inputs sp_values and sp_shape should be vectors but "
                       "received shapes: %s and %s",
                       tensor_shape_text(values, x),
                       tensor_shape_text(shape, y));
    if (shape->count < 2)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Input should have rank >= 2, but received shape: %s",
                       sparse_values_text(shape, x));
    rc = sparse_create(c, 0, &g->in);
    if (rc)
        return rc;
    g->ndim = g->in.ndim - 1;
    for (int d = 0; d < g->ndim; d++)
        g->dims[d] = d;
    return groups_sort(c, g);
}

#define EXP_f32(x) expf(x)
#define EXP_f64(x) exp(x)
#define EXP_f16(x) expf(x)

#define SOFTMAX(s, T, A, DT, LD, ST)                                           \
    static enum mst_code sparse_softmax_##s(struct op_ctx *c)                  \
    {                                                                          \
        struct groups g = { 0 };                                               \
        const T *v = op_in(c, 1)->data;                                        \
        int64_t end;                                                           \
        enum mst_code rc = softmax_read(c, &g);                                \
                                                                               \
        if (!rc)                                                               \
            rc = op_out_like(c, 0, op_in(c, 1));                               \
        for (int64_t i = 0; !rc && i < g.in.n; i = end) {                      \
            T *to = op_out(c, 0)->data;                                        \
            A most = LD(v[g.rows[i]]), sum = 0;                                \
                                                                               \
            end = group_end(&g, i);                                            \
            for (int64_t k = i; k < end; k++)                                  \
                most = MAX(most, LD(v[g.rows[k]]));                            \
            for (int64_t k = i; k < end; k++)                                  \
                sum += EXP_##s(LD(v[g.rows[k]]) - most);                       \
            for (int64_t k = i; k < end; k++)                                  \
                to[k] = ST(EXP_##s(LD(v[g.rows[k]]) - most) / sum);            \
        }                                                                      \
        groups_done(&g);                                                       \
        return rc;                                                             \
    }

TYPES_FLOAT_WIDE(SOFTMAX)
TYPES_HALF(SOFTMAX)

const struct op_def def_sparse_softmax = {
    .name = "SparseSoftmax",
    .in = "sp_indices: int64, sp_values: T, sp_shape: int64",
    .out = "output: T",
    .attr = "T: {half, float, double}",
    .kernel = KERNELS(TYPES_FLOAT_WIDE(ROW, sparse_softmax)
                          TYPES_HALF(ROW, sparse_softmax)),
};
