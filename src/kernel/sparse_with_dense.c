/*
 * A sparse tensor and a dense one, element by element: SparseTensorDenseAdd
 * gives a dense one, the rest give new values of the sparse one, for which the
 * dense one is broadcast.
 */
#include "kernel/combine.h"
#include "kernel/sparse.h"
#include "kernel/types.h"

#define NUMBERS                                                                \
    "{float, double, int32, uint8, int16, int8, complex64, int64, qint8, "     \
    "quint8, qint32, bfloat16, qint16, quint16, uint16, complex128, half, "    \
    "uint32, uint64}"

/* ---- added to a dense one ---- */

static enum mst_code dense_add_check(struct op_ctx *c)
{
    const struct tensor *index = op_in(c, 0), *values = op_in(c, 1);
    const struct tensor *shape = op_in(c, 2), *b = op_in(c, 3);
    char x[SHAPE_TEXT_MAX], y[SHAPE_TEXT_MAX];

    if (index->ndim != 2)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Input a_indices should be a matrix but received "
                       "shape: %s",
                       tensor_shape_text(index, x));
    if (values->ndim != 1 || shape->ndim != 1)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Inputs a_values and a_shape should be vectors but "
                       "received shapes: %s and %s",
                       tensor_shape_text(values, x),
                       tensor_shape_text(shape, y));
    if (index->dims[0] != values->count)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Dimensions %lld and %lld are not compatible",
                       (long long)index->dims[0], (long long)values->count);
    if (index->dims[1] != shape->count)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Number of columns in a_indices (%lld) must match "
                       "length of a_shape (%lld)",
                       (long long)index->dims[1], (long long)shape->count);
    if (shape->count != b->ndim)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Two operands have different ranks; received: %lld and "
                       "%d",
                       (long long)shape->count, b->ndim);
    for (int d = 0; d < b->ndim; d++)
        if (tensor_int(shape, d) != b->dims[d])
            return op_fail(c, MST_INVALID_ARGUMENT,
                           "Dimension %d does not equal (no broadcasting is "
                           "supported): sparse side %lld vs dense side %lld",
                           d, (long long)tensor_int(shape, d),
                           (long long)b->dims[d]);
    return MST_OK;
}

/* "4 2" */
static const char *dims_text(const struct tensor *t, char *text)
{
    sparse_index_text(t->ndim, t->dims, " ", text);
    text[strlen(text) - 1] = '\0';
    return text + 1;
}

static enum mst_code dense_add(struct op_ctx *c)
{
    const struct tensor *index = op_in(c, 0), *values = op_in(c, 1);
    size_t size = dtype_size((enum dtype)values->dtype);
    struct combiner add;
    char text[SHAPE_TEXT_MAX];
    enum mst_code rc = dense_add_check(c);

    if (rc)
        return rc;
    if (!combiner_init(&add, COMBINE_ADD, (enum dtype)values->dtype))
        return op_fail(c, MST_UNIMPLEMENTED, "SparseTensorDenseAdd of %s",
                       dtype_name(values->dtype));
    rc = tensor_copy(op_out(c, 0), op_in(c, 3), c->st);
    for (int64_t i = 0; i < values->count && !rc; i++) {
        int64_t at = 0;
        char *to;

        for (int d = 0; d < op_out(c, 0)->ndim; d++) {
            int64_t k = tensor_int(index, i * op_out(c, 0)->ndim + d);

            if (k < 0 || k >= op_out(c, 0)->dims[d])
                return op_fail(c, MST_INVALID_ARGUMENT,
                               "Sparse tensor has an invalid index on "
                               "dimension %d: a_indices(%lld,%d) = %lld, dense "
                               "tensor shape: %s",
                               d, (long long)i, d, (long long)k,
                               dims_text(op_in(c, 3), text));
            at = at * op_out(c, 0)->dims[d] + k;
        }
        to = (char *)op_out(c, 0)->data + (size_t)at * size;
        combine(&add, to, to, (const char *)values->data + (size_t)i * size, 1);
    }
    return rc;
}

const struct op_def def_sparse_tensor_dense_add = {
    .name = "SparseTensorDenseAdd",
    .in = "a_indices: Tindices, a_values: T, a_shape: Tindices, b: T",
    .out = "output: T",
    .attr = "T: " NUMBERS "; Tindices: {int32, int64}",
    .kernel = (const struct op_kernel[]){ { DT_ANY, dense_add }, { 0 } },
};

/* ---- the values of a sparse one ---- */

/* How far a step along each dimension is in the dense tensor; 0: broadcast. */
struct walk {
    int ndim;
    int64_t step[TENSOR_RANK_MAX];
};

static enum mst_code cwise_check(struct op_ctx *c)
{
    const struct tensor *index = op_in(c, 0), *values = op_in(c, 1);
    const struct tensor *shape = op_in(c, 2);
    char x[SHAPE_TEXT_MAX], y[SHAPE_TEXT_MAX];

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
    if (values->count != index->dims[0])
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "The first dimension of values and indices should "
                       "match. (%lld vs. %lld)",
                       (long long)values->count, (long long)index->dims[0]);
    if (shape->count != index->dims[1])
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Number of dimensions must match second dimension of "
                       "indices. Got %lld dimensions, indices shape: %s",
                       (long long)shape->count, tensor_shape_text(index, x));
    if (!shape->count)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "The shape argument requires at least one element.");
    return MST_OK;
}

static enum mst_code cwise_walk(struct op_ctx *c, struct walk *w)
{
    const struct tensor *shape = op_in(c, 2), *dense = op_in(c, 3);
    int64_t count, step = 1;
    char x[SHAPE_TEXT_MAX], y[SHAPE_TEXT_MAX];
    bool fits;
    enum mst_code rc = cwise_check(c);

    if (!rc)
        rc = sparse_size(c, shape, &count);
    if (rc)
        return rc;
    if (shape->count > 5)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Only tensors with ranks between 1 and 5 are currently "
                       "supported.  Tensor rank: %lld",
                       (long long)shape->count);
    w->ndim = (int)shape->count;
    fits = dense->ndim <= w->ndim;
    for (int d = w->ndim - 1, k = dense->ndim - 1; d >= 0; d--, k--) {
        int64_t have = k >= 0 ? dense->dims[k] : 1;

        fits &= have == 1 ? tensor_int(shape, d) >= 1
                          : have == tensor_int(shape, d);
        w->step[d] = have == 1 ? 0 : step;
        step *= have;
    }
    if (fits)
        return MST_OK;
    return op_fail(c, MST_INVALID_ARGUMENT,
                   "SparseDenseBinaryOpShared broadcasts dense to sparse only; "
                   "got incompatible shapes: %s vs. %s",
                   sparse_index_text(w->ndim, shape->data, ",", x),
                   tensor_shape_text(dense, y));
}

/* Where element i is in the dense tensor. */
static enum mst_code cwise_at(struct op_ctx *c, const struct walk *w, int64_t i,
                              int64_t *ret)
{
    const int64_t *index = TENSOR_DATA(op_in(c, 0), int64_t) + i * w->ndim;
    int64_t at = 0;

    for (int d = 0; d < w->ndim; d++) {
        int64_t k = index[d];

        if (k < 0 || k >= tensor_int(op_in(c, 2), d))
            return op_fail(c, MST_INVALID_ARGUMENT,
                           "Provided indices are out-of-bounds w.r.t. dense "
                           "side with broadcasted shape");
        at += k * w->step[d];
    }
    *ret = at;
    return MST_OK;
}

#define WRAP_f32(x, op, y)  (x op y)
#define WRAP_f64(x, op, y)  (x op y)
#define WRAP_f16(x, op, y)  (x op y)
#define WRAP_bf16(x, op, y) (x op y)
#define WRAP_i8(x, op, y)   (int8_t)(x op y)
#define WRAP_i16(x, op, y)  (int16_t)(x op y)
#define WRAP_i32(x, op, y)  (int32_t)((uint32_t)x op(uint32_t) y)
#define WRAP_i64(x, op, y)  (int64_t)((uint64_t)x op(uint64_t) y)
#define WRAP_u8(x, op, y)   (uint8_t)(x op y)
#define WRAP_u16(x, op, y)  (uint16_t)((uint32_t)x op(uint32_t) y)
#define WRAP_u32(x, op, y)  (x op y)
#define WRAP_u64(x, op, y)  (x op y)

#define ADD(s, x, y)        WRAP_##s(x, +, y)
#define MUL(s, x, y)        WRAP_##s(x, *, y)
/* The least whole number by -1 is the least one again. */
#define DIV_i32(x, y)   ((y) == -1 ? WRAP_i32(0, -, x) : (x) / (y))
#define DIV_i64(x, y)   ((y) == -1 ? WRAP_i64(0, -, x) : (x) / (y))
#define DIV_f32(x, y)   ((x) / (y))
#define DIV_f64(x, y)   ((x) / (y))
#define DIV_f16(x, y)   ((x) / (y))
#define DIV_bf16(x, y)  ((x) / (y))
#define DIV_i8(x, y)    (int8_t)((x) / (y))
#define DIV_i16(x, y)   (int16_t)((x) / (y))
#define DIV_u8(x, y)    (uint8_t)((x) / (y))
#define DIV_u16(x, y)   (uint16_t)((x) / (y))
#define DIV_u32(x, y)   ((x) / (y))
#define DIV_u64(x, y)   ((x) / (y))
#define DIVIDE(s, x, y) DIV_##s(x, y)

#define CWISE(s, T, A, DT, LD, ST, name, OP, divides)                          \
    static enum mst_code name##_##s(struct op_ctx *c)                          \
    {                                                                          \
        const T *v = op_in(c, 1)->data, *dense = op_in(c, 3)->data;            \
        struct walk w;                                                         \
        enum mst_code rc = cwise_walk(c, &w);                                  \
                                                                               \
        if (!rc)                                                               \
            rc = op_out_like(c, 0, op_in(c, 1));                               \
        for (int64_t i = 0; !rc && i < op_in(c, 1)->count; i++) {              \
            int64_t at = 0;                                                    \
            A x = LD(v[i]), y;                                                 \
                                                                               \
            rc = cwise_at(c, &w, i, &at);                                      \
            if (rc)                                                            \
                break;                                                         \
            y = LD(dense[at]);                                                 \
            if (divides && y == (A)0)                                          \
                return divided_by_zero(c);                                     \
            TENSOR_DATA(op_out(c, 0), T)[i] = ST(OP(s, x, y));                 \
        }                                                                      \
        return rc;                                                             \
    }

static enum mst_code divided_by_zero(struct op_ctx *c)
{
    return op_fail(c, MST_INVALID_ARGUMENT,
                   "SparseDenseCwiseDiv cannot divide by zero,but input dense "
                   "tensor contains zero ");
}

TYPES_REAL(CWISE, cwise_add, ADD, false)
TYPES_REAL(CWISE, cwise_mul, MUL, false)
TYPES_REAL(CWISE, cwise_div, DIVIDE, true)

#define CWISE_DEF(stem, text)                                                  \
    const struct op_def def_sparse_dense_##stem = {                            \
        .name = "SparseDense" text,                                            \
        .in = "sp_indices: int64, sp_values: T, sp_shape: int64, dense: T",    \
        .out = "output: T",                                                    \
        .attr = "T: " NUMBERS,                                                 \
        .kernel = KERNELS(TYPES_REAL(ROW, stem)),                              \
    };

CWISE_DEF(cwise_add, "CwiseAdd")
CWISE_DEF(cwise_mul, "CwiseMul")
CWISE_DEF(cwise_div, "CwiseDiv")
