/*
 * Rows of a tensor replaced, added to or subtracted from: in the input's own
 * bytes if nobody else has them.
 */
#include "kernel/types.h"

static enum mst_code inplace_check(struct op_ctx *c)
{
    const struct tensor *x = op_in(c, 0), *i = op_in(c, 1), *v = op_in(c, 2);
    char ta[SHAPE_TEXT_MAX], tb[SHAPE_TEXT_MAX];

    if (i->ndim != 1)
        return op_fail(c, MST_INVALID_ARGUMENT, "i must be a vector. %s",
                       tensor_shape_text(i, ta));
    if (x->ndim != v->ndim)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "x and v shape doesn't match (ranks differ): %s vs. %s",
                       tensor_shape_text(x, ta), tensor_shape_text(v, tb));
    for (int d = 1; d < x->ndim; d++)
        if (x->dims[d] != v->dims[d])
            return op_fail(c, MST_INVALID_ARGUMENT,
                           "x and v shape doesn't match at index %d : %s vs. "
                           "%s",
                           d, tensor_shape_text(x, ta),
                           tensor_shape_text(v, tb));
    if (!x->ndim || i->dims[0] != v->dims[0])
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "i and x shape doesn't match at index 0: %s vs. %s",
                       tensor_shape_text(i, ta), tensor_shape_text(v, tb));
    return MST_OK;
}

/* Output 0 with x's elements, to be written to. */
static enum mst_code inplace_out(struct op_ctx *c)
{
    const struct tensor *x = op_in(c, 0);
    enum mst_code rc = inplace_check(c);

    if (!rc)
        rc = op_out_forward(c, 0, 0);
    if (!rc && op_out(c, 0)->data != x->data)
        tensor_copy_elems(op_out(c, 0), 0, x, 0, x->count);
    return rc;
}

/* Where row k of v goes: indices are taken round the number of rows. */
static int64_t row_at(const struct op_ctx *c, int64_t k)
{
    int64_t rows = op_in(c, 0)->dims[0];
    int64_t i = TENSOR_DATA(op_in(c, 1), int32_t)[k];

    return (i % rows + rows) % rows;
}

static enum mst_code inplace_update(struct op_ctx *c)
{
    const struct tensor *v = op_in(c, 2);
    enum mst_code rc = inplace_out(c);
    int64_t row;

    if (rc || !v->count || !op_in(c, 0)->count)
        return rc;
    row = v->count / v->dims[0];
    for (int64_t k = 0; k < v->dims[0]; k++)
        tensor_copy_elems(op_out(c, 0), row_at(c, k) * row, v, k * row, row);
    return MST_OK;
}

#define INPLACE(op, s, T, A, LD, ST, SIGN)                                     \
    static enum mst_code op##_##s(struct op_ctx *c)                            \
    {                                                                          \
        const struct tensor *v = op_in(c, 2);                                  \
        enum mst_code rc = inplace_out(c);                                     \
        int64_t row;                                                           \
                                                                               \
        if (rc || !v->count || !op_in(c, 0)->count)                            \
            return rc;                                                         \
        row = v->count / v->dims[0];                                           \
        for (int64_t k = 0; k < v->dims[0]; k++) {                             \
            T *to = TENSOR_DATA(op_out(c, 0), T) + row_at(c, k) * row;         \
            const T *from = TENSOR_DATA(v, T) + k * row;                       \
                                                                               \
            for (int64_t i = 0; i < row; i++)                                  \
                to[i] = (T)ST((A)(LD(to[i]) SIGN LD(from[i])));                \
        }                                                                      \
        return MST_OK;                                                         \
    }
#define ADD(s, T, A, DT, LD, ST) INPLACE(inplace_add, s, T, A, LD, ST, +)
#define SUB(s, T, A, DT, LD, ST) INPLACE(inplace_sub, s, T, A, LD, ST, -)
TYPES_FLOAT(ADD)
TYPES_UNSIGNED(ADD)
TYPES_COMPLEX(ADD)
TYPES_FLOAT(SUB)
TYPES_UNSIGNED(SUB)
TYPES_COMPLEX(SUB)
/* Signed numbers wrap, as unsigned ones. */
#define INPLACE_KERNELS(op)                                                    \
    KERNELS(TYPES_FLOAT(ROW, op) TYPES_UNSIGNED(ROW, op)                       \
                TYPES_SIGNED_WRAP(ROW, op) TYPES_COMPLEX(ROW, op))

const struct op_def def_inplace_update = {
    .name = "InplaceUpdate",
    .in = "x: T, i: int32, v: T",
    .out = "y: T",
    .attr = "T: type",
    .kernel = (const struct op_kernel[]){ { DT_ANY, inplace_update }, { 0 } },
};

const struct op_def def_inplace_add = {
    .name = "InplaceAdd",
    .in = "x: T, i: int32, v: T",
    .out = "y: T",
    .attr = "T: type",
    .kernel = INPLACE_KERNELS(inplace_add),
};

const struct op_def def_inplace_sub = {
    .name = "InplaceSub",
    .in = "x: T, i: int32, v: T",
    .out = "y: T",
    .attr = "T: type",
    .kernel = INPLACE_KERNELS(inplace_sub),
};
