/*
 * Arithmetic of two sparse tensors, and of a sparse and a dense one.
 *
 * Two sparse ones are merged along their sorted indices: an element is in one,
 * in the other or in both. That walk (struct pairs) is the same for all types;
 * what becomes of the values is a loop over its result.
 */
#include "base/mem.h"
#include "kernel/sparse.h"
#include "kernel/types.h"

#define NUMBERS                                                                \
    "{float, double, int32, uint8, int16, int8, complex64, int64, qint8, "     \
    "quint8, qint32, bfloat16, qint16, quint16, uint16, complex128, half, "    \
    "uint32, uint64}"
#define REALS                                                                  \
    "{float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, "     \
    "half, uint32, uint64}"

/* ---- two sparse tensors ---- */

/* Numbers of elements of a and b; -1: it has none there. */
struct pair {
    int64_t a, b;
};

struct pairs {
    struct pair *p;
    size_t count, room;
};

static int compare_rows(const int64_t *x, const int64_t *y, int64_t ndim)
{
    for (int64_t d = 0; d < ndim; d++)
        if (x[d] != y[d])
            return x[d] < y[d] ? -1 : 1;
    return 0;
}

static void pair_up(struct pairs *ps, const struct tensor *a,
                    const struct tensor *b)
{
    const int64_t *x = a->data, *y = b->data;
    int64_t ndim = a->dims[1], i = 0, k = 0;

    while (i < a->dims[0] || k < b->dims[0]) {
        int way = i == a->dims[0] ? 1
                  : k == b->dims[0]
                      ? -1
                      : compare_rows(x + i * ndim, y + k * ndim, ndim);

        *MEM_PUSH(ps->p, ps->count, ps->room) =
            (struct pair){ way <= 0 ? i : -1, way >= 0 ? k : -1 };
        i += way <= 0;
        k += way >= 0;
    }
}

static enum mst_code check_values(struct op_ctx *c)
{
    const struct tensor *ai = op_in(c, 0), *bi = op_in(c, 3);
    const struct tensor *av = op_in(c, 1), *bv = op_in(c, 4);
    char x[SHAPE_TEXT_MAX], y[SHAPE_TEXT_MAX];

    if (ai->ndim != 2 || bi->ndim != 2)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Input indices should be matrices but received "
                       "shapes: %s and %s",
                       tensor_shape_text(ai, x), tensor_shape_text(bi, y));
    if (ai->dims[1] != bi->dims[1])
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Input indices must have the same dimension, got %lld "
                       "and %lld",
                       (long long)ai->dims[1], (long long)bi->dims[1]);
    if (av->ndim != 1 || bv->ndim != 1)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Input values should be vectors but received "
                       "shapes: %s and %s",
                       tensor_shape_text(av, x), tensor_shape_text(bv, y));
    if (av->count != ai->dims[0] || bv->count != bi->dims[0])
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Expected %lld and %lld non-empty input values, got "
                       "%lld and %lld",
                       (long long)ai->dims[0], (long long)bi->dims[0],
                       (long long)av->count, (long long)bv->count);
    return MST_OK;
}

static enum mst_code check_shapes(struct op_ctx *c, bool add)
{
    const struct tensor *a = op_in(c, 2), *b = op_in(c, 5);
    char x[SHAPE_TEXT_MAX], y[SHAPE_TEXT_MAX];
    long long ndim = op_in(c, 0)->dims[1];

    if (a->ndim != 1 || b->ndim != 1)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Input shapes should be a vector but received shapes "
                       "%s and %s",
                       tensor_shape_text(a, x), tensor_shape_text(b, y));
    if (add && a->count != ndim)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Second dimension of a_indices and length of a_shape "
                       "must match, got %lld and %lld",
                       ndim, (long long)a->count);
    if (add && !ndim)
        return op_fail(c, MST_INVALID_ARGUMENT, "Tensors must not be empty");
    if (a->count != b->count)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Operands do not have the same ranks; got shapes: %s "
                       "and %s",
                       sparse_values_text(a, x), sparse_values_text(b, y));
    for (int64_t d = 0; d < a->count; d++)
        if (tensor_int(a, d) != tensor_int(b, d))
            return op_fail(c, MST_INVALID_ARGUMENT,
                           "Operands' shapes do not match: got %lld and %lld "
                           "for dimension %lld",
                           (long long)tensor_int(a, d),
                           (long long)tensor_int(b, d), (long long)d);
    if (op_in(c, 3)->dims[1] != ndim)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Indices' dimensions do not match: got %lld and %lld "
                       "for the second dimension.",
                       ndim, (long long)op_in(c, 3)->dims[1]);
    return MST_OK;
}

/* Output 0 has the indices and output 1 room for the values. */
static enum mst_code pairs_put(struct op_ctx *c, const struct pairs *ps)
{
    const int64_t *a = op_in(c, 0)->data, *b = op_in(c, 3)->data;
    int64_t n = (int64_t)ps->count, ndim = op_in(c, 0)->dims[1], *to;
    enum mst_code rc = op_out_new(c, 0, 2, (int64_t[]){ n, ndim });

    if (!rc)
        rc = op_out_new(c, 1, 1, &n);
    if (rc)
        return rc;
    to = op_out(c, 0)->data;
    for (size_t i = 0; i < ps->count; i++, to += ndim)
        memcpy(to,
               ps->p[i].a >= 0 ? a + ps->p[i].a * ndim : b + ps->p[i].b * ndim,
               (size_t)ndim * sizeof(*to));
    return MST_OK;
}

static enum mst_code check_inside(struct op_ctx *c, const struct sparse *s)
{
    char text[SHAPE_TEXT_MAX];

    for (int64_t i = 0; i < s->n; i++)
        for (int d = 0; d < s->ndim; d++) {
            int64_t at = sparse_row(s, i)[d];

            if (at < 0 || at >= tensor_int(s->shape, d))
                return op_fail(
                    c, MST_INVALID_ARGUMENT,
                    "Sparse index tuple indices[%lld, :] = %s is "
                    "out of bounds",
                    (long long)i,
                    sparse_index_text(s->ndim, sparse_row(s, i), ", ", text));
        }
    return MST_OK;
}

static enum mst_code pairs_read(struct op_ctx *c, bool add, struct pairs *ps)
{
    struct sparse s;
    enum mst_code rc = add ? check_values(c) : MST_OK;

    for (int i = 0; i < 6 && !rc && !add; i += 3) {
        rc = sparse_read(c, i, &s);
        if (!rc)
            rc = check_inside(c, &s);
    }
    if (!rc)
        rc = check_shapes(c, add);
    if (!rc)
        pair_up(ps, op_in(c, 0), op_in(c, 3));
    return rc;
}

#define ABS_f32(x)      fabsf(x)
#define ABS_f64(x)      fabs(x)
#define ABS_f16(x)      fabsf(x)
#define ABS_bf16(x)     fabsf(x)
#define ABS_i8(x)       (int8_t)((x) < 0 ? -(x) : (x))
#define ABS_i16(x)      (int16_t)((x) < 0 ? -(x) : (x))
#define ABS_i32(x)      (int32_t)((x) < 0 ? 0u - (uint32_t)(x) : (uint32_t)(x))
#define ABS_i64(x)      (int64_t)((x) < 0 ? 0u - (uint64_t)(x) : (uint64_t)(x))
#define ABS_c64(x)      cabsf(x)
#define ABS_c128(x)     cabs(x)

#define PLUS_f32(x, y)  ((x) + (y))
#define PLUS_f64(x, y)  ((x) + (y))
#define PLUS_f16(x, y)  half_load(half_store((x) + (y)))
#define PLUS_bf16(x, y) bf16_load(bf16_store((x) + (y)))
#define PLUS_i8(x, y)   (int8_t)((x) + (y))
#define PLUS_i16(x, y)  (int16_t)((x) + (y))
#define PLUS_i32(x, y)  (int32_t)((uint32_t)(x) + (uint32_t)(y))
#define PLUS_i64(x, y)  (int64_t)((uint64_t)(x) + (uint64_t)(y))
#define PLUS_c64(x, y)  ((x) + (y))
#define PLUS_c128(x, y) ((x) + (y))

/* The threshold is a real number of T's kind: R, loaded by LDR. */
#define SPARSE_ADD(s, T, A, DT, LD, ST, R, LDR)                                \
    static enum mst_code sparse_add_##s(struct op_ctx *c)                      \
    {                                                                          \
        const T *a = op_in(c, 1)->data, *b = op_in(c, 4)->data;                \
        struct pairs ps = { 0 };                                               \
        size_t n = 0;                                                          \
        enum mst_code rc = pairs_read(c, true, &ps);                           \
                                                                               \
        if (!rc && op_in(c, 6)->ndim)                                          \
            rc = not_scalar(c);                                                \
        for (size_t i = 0; !rc && i < ps.count; i++) {                         \
            struct pair p = ps.p[i];                                           \
                                                                               \
            if (p.a < 0 || p.b < 0 ||                                          \
                LDR(*TENSOR_DATA(op_in(c, 6), R)) <=                           \
                    ABS_##s(PLUS_##s(LD(a[p.a]), LD(b[p.b]))))                 \
                ps.p[n++] = p;                                                 \
        }                                                                      \
        ps.count = n;                                                          \
        if (!rc)                                                               \
            rc = pairs_put(c, &ps);                                            \
        for (size_t i = 0; !rc && i < ps.count; i++) {                         \
            struct pair p = ps.p[i];                                           \
                                                                               \
            TENSOR_DATA(op_out(c, 1), T)                                       \
            [i] = p.a < 0   ? b[p.b]                                           \
                  : p.b < 0 ? a[p.a]                                           \
                            : (T)ST(PLUS_##s(LD(a[p.a]), LD(b[p.b])));         \
        }                                                                      \
        if (!rc)                                                               \
            op_out_same(c, 2, 2);                                              \
        mem_free(ps.p);                                                        \
        return rc;                                                             \
    }

static enum mst_code not_scalar(struct op_ctx *c)
{
    char text[SHAPE_TEXT_MAX];

    return op_fail(c, MST_INVALID_ARGUMENT,
                   "The magnitude threshold must be a scalar: got shape %s",
                   tensor_shape_text(op_in(c, 6), text));
}

TYPES_FLOAT32(SPARSE_ADD, float, SAME)
TYPES_FLOAT64(SPARSE_ADD, double, SAME)
TYPES_HALF(SPARSE_ADD, half_bits, half_load)
TYPES_BFLOAT16(SPARSE_ADD, bf16_bits, bf16_load)
TYPES_INT8(SPARSE_ADD, int8_t, SAME)
TYPES_INT16(SPARSE_ADD, int16_t, SAME)
SPARSE_ADD(i32, int32_t, int32_t, DT_INT32, SAME, SAME, int32_t, SAME)
SPARSE_ADD(i64, int64_t, int64_t, DT_INT64, SAME, SAME, int64_t, SAME)
TYPES_COMPLEX64(SPARSE_ADD, float, SAME)
TYPES_COMPLEX128(SPARSE_ADD, double, SAME)

#define SPARSE_PAIR(a)                                                         \
#a "_indices: int64, " #a "_values: T, " #a "_shape: int64"

/* Treal goes with T; a node that says otherwise is refused. */
static enum mst_code add_init(struct op_node *n, struct status *st)
{
    int type = op_attr_type(n, "T"), real = op_attr_type(n, "Treal");
    int want = type == DT_COMPLEX64    ? DT_FLOAT
               : type == DT_COMPLEX128 ? DT_DOUBLE
                                       : type;

    if (real != want)
        return status_set(st, MST_INVALID_ARGUMENT,
                          "SparseAdd of %s takes a threshold of %s, not %s",
                          dtype_name(type), dtype_name(want), dtype_name(real));
    return MST_OK;
}

const struct op_def def_sparse_add = {
    .name = "SparseAdd",
    .in = SPARSE_PAIR(a) ", " SPARSE_PAIR(b) ", thresh: Treal",
    .out = SPARSE_PAIR(sum),
    .attr = "T: " NUMBERS "; Treal: " REALS,
    .init = add_init,
    .kernel = KERNELS(TYPES_FLOAT(ROW, sparse_add) TYPES_SIGNED(ROW, sparse_add)
                          TYPES_COMPLEX(ROW, sparse_add)),
};

/* ---- the greater or the lesser ---- */

/* Where only one has an element it is compared with 0, and NaN stays. */
#define SPARSE_PICK(s, T, A, DT, LD, ST, name, OP)                             \
    static enum mst_code name##_##s(struct op_ctx *c)                          \
    {                                                                          \
        const T *a = op_in(c, 1)->data, *b = op_in(c, 4)->data;                \
        struct pairs ps = { 0 };                                               \
        enum mst_code rc = pairs_read(c, false, &ps);                          \
                                                                               \
        if (!rc)                                                               \
            rc = pairs_put(c, &ps);                                            \
        for (size_t i = 0; !rc && i < ps.count; i++) {                         \
            bool both = ps.p[i].a >= 0 && ps.p[i].b >= 0;                      \
            T x = ps.p[i].a < 0 ? b[ps.p[i].b] : a[ps.p[i].a];                 \
            T y = both ? b[ps.p[i].b] : (T)0;                                  \
                                                                               \
            TENSOR_DATA(op_out(c, 1), T)[i] = LD(y) OP                         \
            LD(x) ? y : x;                                                     \
        }                                                                      \
        mem_free(ps.p);                                                        \
        return rc;                                                             \
    }

TYPES_REAL(SPARSE_PICK, sparse_maximum, >)
TYPES_REAL(SPARSE_PICK, sparse_minimum, <)

const struct op_def def_sparse_sparse_maximum = {
    .name = "SparseSparseMaximum",
    .in = SPARSE_PAIR(a) ", " SPARSE_PAIR(b),
    .out = "output_indices: int64, output_values: T",
    .attr = "T: " REALS,
    .kernel = KERNELS(TYPES_REAL(ROW, sparse_maximum)),
};

const struct op_def def_sparse_sparse_minimum = {
    .name = "SparseSparseMinimum",
    .in = SPARSE_PAIR(a) ", " SPARSE_PAIR(b),
    .out = "output_indices: int64, output_values: T",
    .attr = "T: " NUMBERS,
    .kernel = KERNELS(TYPES_REAL(ROW, sparse_minimum)),
};

/* ---- gradients: where an element came from ---- */

static enum mst_code add_grad_check(struct op_ctx *c)
{
    const struct tensor *g = op_in(c, 0), *a = op_in(c, 1), *b = op_in(c, 2);
    const struct tensor *sum = op_in(c, 3);
    char x[SHAPE_TEXT_MAX], y[SHAPE_TEXT_MAX], z[SHAPE_TEXT_MAX];

    if (a->ndim != 2 || b->ndim != 2 || sum->ndim != 2)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Input indices should be matrices but received shapes: "
                       "%s and %s and %s",
                       tensor_shape_text(a, x), tensor_shape_text(b, y),
                       tensor_shape_text(sum, z));
    if (g->ndim != 1)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Input backprop_val_grad should be a vector but "
                       "received shape: %s",
                       tensor_shape_text(g, x));
    if (a->dims[1] != b->dims[1] || b->dims[1] != sum->dims[1])
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "The densified operands should have the same ndims; for "
                       "A, B, sum got: %lld%lld%lld",
                       (long long)a->dims[1], (long long)b->dims[1],
                       (long long)sum->dims[1]);
    if (g->count != sum->dims[0])
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "# elements of backprop_val_grad and # rows of "
                       "sum_indices should match (#nnz of sum): got %lld and "
                       "%lld",
                       (long long)g->count, (long long)sum->dims[0]);
    return MST_OK;
}

static enum mst_code sparse_add_grad(struct op_ctx *c)
{
    const struct tensor *sum = op_in(c, 3);
    enum mst_code rc = add_grad_check(c);

    for (int side = 0; side < 2 && !rc; side++) {
        const struct tensor *index = op_in(c, 1 + side);
        int64_t n = index->dims[0], ndim = index->dims[1];

        rc = op_out_new(c, side, 1, &n);
        if (rc)
            break;
        tensor_zero(op_out(c, side));
        for (int64_t i = 0, k = 0; i < n && k < sum->dims[0];) {
            int way = compare_rows(TENSOR_DATA(index, int64_t) + i * ndim,
                                   TENSOR_DATA(sum, int64_t) + k * ndim, ndim);

            if (!way)
                tensor_copy_elems(op_out(c, side), i, op_in(c, 0), k, 1);
            i += way <= 0;
            k += way >= 0;
        }
    }
    return rc;
}

const struct op_def def_sparse_add_grad = {
    .name = "SparseAddGrad",
    .in = "backprop_val_grad: T, a_indices: int64, b_indices: int64, "
          "sum_indices: int64",
    .out = "a_val_grad: T, b_val_grad: T",
    .attr = "T: " NUMBERS,
    .kernel = (const struct op_kernel[]){ { DT_ANY, sparse_add_grad }, { 0 } },
};

static enum mst_code slice_grad_check(struct op_ctx *c)
{
    const struct tensor *g = op_in(c, 0), *in = op_in(c, 1);
    const struct tensor *start = op_in(c, 2), *out = op_in(c, 3);
    char x[SHAPE_TEXT_MAX], y[SHAPE_TEXT_MAX];

    if (in->ndim != 2 || out->ndim != 2)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Input and output indices should be matrices but "
                       "received shapes: %s and %s",
                       tensor_shape_text(in, x), tensor_shape_text(out, y));
    if (g->ndim != 1)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Input backprop_val_grad should be a vector but "
                       "received shape: %s",
                       tensor_shape_text(g, x));
    if (in->dims[1] != out->dims[1])
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "The input and output should have the same ndims: got: "
                       "%lld and %lld",
                       (long long)in->dims[1], (long long)out->dims[1]);
    if (out->dims[0] > in->dims[0])
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "# rows of output_indices should be not greater than "
                       "of input_indices, got %lld and %lld",
                       (long long)out->dims[0], (long long)in->dims[0]);
    if (g->count != out->dims[0])
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "# elements of backprop_val_grad and # rows of "
                       "output_indices should match (#nnz of sum): got %lld "
                       "and %lld",
                       (long long)g->count, (long long)out->dims[0]);
    if (start->ndim != 1)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "The input_start should be a vector but received shape "
                       "%s",
                       tensor_shape_text(start, x));
    if (start->count != in->dims[1])
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Expected input_start to be a vector of length %lld "
                       "but got length %lld",
                       (long long)in->dims[1], (long long)start->count);
    return MST_OK;
}

static enum mst_code sparse_slice_grad(struct op_ctx *c)
{
    const int64_t *in = op_in(c, 1)->data, *start = op_in(c, 2)->data;
    const int64_t *out = op_in(c, 3)->data;
    int64_t n, ndim, used = 0;
    enum mst_code rc = slice_grad_check(c);

    if (rc)
        return rc;
    n = op_in(c, 1)->dims[0];
    ndim = op_in(c, 1)->dims[1];
    rc = op_out_new(c, 0, 1, &n);
    if (rc)
        return rc;
    tensor_zero(op_out(c, 0));
    for (int64_t i = 0; i < n && used < op_in(c, 0)->count; i++) {
        bool same = true;

        for (int64_t d = 0; d < ndim; d++)
            same &= (uint64_t)in[i * ndim + d] ==
                    (uint64_t)out[used * ndim + d] + (uint64_t)start[d];
        if (same)
            tensor_copy_elems(op_out(c, 0), i, op_in(c, 0), used++, 1);
    }
    if (used != op_in(c, 0)->count)
        return op_fail(c, MST_INTERNAL,
                       "Elements of backprop_val_grad aren't all propagated. "
                       "Num elements:%lld, used: %lld",
                       (long long)op_in(c, 0)->count, (long long)used);
    return MST_OK;
}

const struct op_def def_sparse_slice_grad = {
    .name = "SparseSliceGrad",
    .in = "backprop_val_grad: T, input_indices: int64, input_start: int64, "
          "output_indices: int64",
    .out = "val_grad: T",
    .attr = "T: " NUMBERS,
    .kernel =
        (const struct op_kernel[]){ { DT_ANY, sparse_slice_grad }, { 0 } },
};
