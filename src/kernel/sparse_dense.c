/*
 * Sparse tensors that become dense: SparseToDense, and the product of a sparse
 * matrix and a dense one.
 */
#include "kernel/args.h"
#include "kernel/sparse.h"
#include "kernel/strided.h"
#include "kernel/types.h"
#include "kernel/widen.h"

/* ---- written out ---- */

struct scatter {
    int64_t n;
    int ndim;
    struct shape shape;
    bool check; /* order and repetition too */
};

static enum mst_code dense_check(struct op_ctx *c, struct scatter *s)
{
    const struct tensor *index = op_in(c, 0), *shape = op_in(c, 1);
    const struct tensor *values = op_in(c, 2);
    char text[SHAPE_TEXT_MAX];

    if (index->ndim > 2)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "sparse_indices should be a scalar, vector, or matrix, "
                       "got shape %s",
                       tensor_shape_text(index, text));
    s->n = index->ndim ? index->dims[0] : 1;
    if (shape->ndim != 1)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "output_shape must be rank 1, got shape %s",
                       tensor_shape_text(shape, text));
    if (shape->count != (index->ndim == 2 ? index->dims[1] : 1))
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "output_shape has incorrect number of elements: %lld "
                       "should be: %lld",
                       (long long)shape->count,
                       (long long)(index->ndim == 2 ? index->dims[1] : 1));
    if (values->ndim && !(values->ndim == 1 && values->count == s->n))
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "sparse_values has incorrect shape %s, should be [] or "
                       "[%lld]",
                       tensor_shape_text(values, text), (long long)s->n);
    if (op_in(c, 3)->ndim)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "default_value should be a scalar.");
    s->ndim = (int)MIN(shape->count, TENSOR_RANK_MAX);
    return args_dims(c, shape, &s->shape);
}

/* Compares with the index before: positive when it is greater. */
static int order(int ndim, const int64_t *index, const int64_t *before)
{
    for (int d = 0; d < ndim; d++)
        if (index[d] != before[d])
            return index[d] > before[d] ? 1 : -1;
    return 0;
}

/* Where element i goes. `before` is the index of the one before it. */
static enum mst_code place(struct op_ctx *c, const struct scatter *s, int64_t i,
                           int64_t *before, int64_t *ret)
{
    int64_t index[TENSOR_RANK_MAX], at = 0;
    char ta[SHAPE_TEXT_MAX], tb[SHAPE_TEXT_MAX];
    bool inside = true;
    int ahead;

    for (int d = 0; d < s->ndim; d++) {
        index[d] = tensor_int(op_in(c, 0), i * s->ndim + d);
        inside &= index[d] >= 0 && index[d] < s->shape.dims[d];
        at = inside ? at * s->shape.dims[d] + index[d] : 0;
    }
    shape_text(s->shape.ndim, s->shape.dims, tb);
    if (!inside && !s->check)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Indices are not valid (out of bounds).  Shape: %s", tb);
    if (!inside)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "indices[%lld] = %s is out of bounds: need 0 <= index < "
                       "%s",
                       (long long)i, sparse_index_text(s->ndim, index, ",", ta),
                       tb);
    ahead = i ? order(s->ndim, index, before) : 1;
    if (s->check && ahead <= 0)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       ahead ? "indices[%lld] = %s is out of order. Many "
                               "sparse ops require sorted indices.\n    Use "
                               "`tf.sparse.reorder` to create a correctly "
                               "ordered copy.\n\n"
                             : "indices[%lld] = %s is repeated",
                       (long long)i,
                       sparse_index_text(s->ndim, index, ",", ta));
    memcpy(before, index, sizeof(index));
    *ret = at;
    return MST_OK;
}

static enum mst_code sparse_to_dense(struct op_ctx *c)
{
    const struct tensor *values = op_in(c, 2);
    struct scatter s = { .check = c->node->state != NULL };
    int64_t before[TENSOR_RANK_MAX], at = 0;
    enum mst_code rc = dense_check(c, &s);

    if (!rc)
        rc = op_out_new(c, 0, s.shape.ndim, s.shape.dims);
    if (rc)
        return rc;
    strided_fill(c, op_out(c, 0), op_in(c, 3));
    for (int64_t i = 0; i < s.n && !rc; i++) {
        rc = place(c, &s, i, before, &at);
        if (!rc)
            tensor_copy_elems(op_out(c, 0), at, values, values->ndim ? i : 0,
                              1);
    }
    return rc;
}

static enum mst_code sparse_to_dense_init(struct op_node *n, struct status *st)
{
    (void)st;
    if (op_attr_bool(n, "validate_indices")) /* only whether it is set */
        n->state = n;
    return MST_OK;
}

const struct op_def def_sparse_to_dense = {
    .name = "SparseToDense",
    .in = "sparse_indices: Tindices, output_shape: Tindices, "
          "sparse_values: T, default_value: T",
    .out = "dense: T",
    .attr = "validate_indices: bool = true; T: type; Tindices: {int32, int64}",
    .init = sparse_to_dense_init,
    .kernel = (const struct op_kernel[]){ { DT_ANY, sparse_to_dense }, { 0 } },
};

/* ---- times a matrix ---- */

struct adjoints {
    bool a, b;
};

/* a is [m, k] sparse, b [k, n] dense, after they were adjoined. */
struct product {
    int64_t m, k, n;
    bool adjoint_a, adjoint_b;
};

static enum mst_code product_check(struct op_ctx *c)
{
    const struct tensor *index = op_in(c, 0), *values = op_in(c, 1);
    const struct tensor *shape = op_in(c, 2), *b = op_in(c, 3);

    if (b->ndim != 2)
        return op_fail(c, MST_INVALID_ARGUMENT, "Tensor 'b' is not a matrix");
    if (shape->ndim != 1)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Tensor 'a_shape' is not a vector");
    if (shape->count != 2)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Tensor 'a_shape' must have 2 elements");
    if (values->ndim != 1)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Tensor 'a_values' is not a vector");
    if (index->ndim != 2)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Tensor 'a_indices' is not a matrix");
    if (index->dims[0] != values->count)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Number of rows of a_indices does not match number of "
                       "entries in a_values");
    if (index->dims[1] != 2)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Number of columns of a_indices does not match number "
                       "of entries in a_shape");
    return MST_OK;
}

static enum mst_code product_read(struct op_ctx *c, struct product *p)
{
    const struct adjoints *adjoint = c->node->state;
    const struct tensor *shape = op_in(c, 2), *b = op_in(c, 3);
    char text[SHAPE_TEXT_MAX];
    int64_t inner;
    enum mst_code rc = product_check(c);

    if (rc)
        return rc;
    p->adjoint_a = adjoint->a;
    p->adjoint_b = adjoint->b;
    p->m = tensor_int(shape, p->adjoint_a);
    p->k = tensor_int(shape, !p->adjoint_a);
    p->n = b->dims[!p->adjoint_b];
    inner = b->dims[p->adjoint_b];
    if (p->k != inner)
        return op_fail(
            c, MST_INVALID_ARGUMENT,
            "Cannot multiply A and B because inner dimension does "
            "not match: %lld vs. %lld.  Did you forget a transpose? "
            " Dimensions of A: [%lld, %lld).  Dimensions of B: %s",
            (long long)p->k, (long long)inner, (long long)tensor_int(shape, 0),
            (long long)tensor_int(shape, 1), tensor_shape_text(b, text));
    return args_check_dims(c, 2, (int64_t[]){ p->m, p->n });
}

/* Row and column of element i of a. */
static enum mst_code product_index(struct op_ctx *c, const struct product *p,
                                   int64_t i, int64_t *ret_m, int64_t *ret_k)
{
    int64_t m = tensor_int(op_in(c, 0), 2 * i + p->adjoint_a);
    int64_t k = tensor_int(op_in(c, 0), 2 * i + !p->adjoint_a);

    if (k < 0 || k >= p->k)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "k (%lld) from index[%lld,%d] out of bounds (>=%lld)",
                       (long long)k, (long long)i, !p->adjoint_a,
                       (long long)p->k);
    if (m < 0 || m >= p->m)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "m (%lld) from index[%lld,%d] out of bounds (>=%lld)",
                       (long long)m, (long long)i, p->adjoint_a,
                       (long long)p->m);
    *ret_m = m;
    *ret_k = k;
    return MST_OK;
}

#define CONJ_f32(x)  (x)
#define CONJ_f64(x)  (x)
#define CONJ_u32(x)  (x)
#define CONJ_c64(x)  conjf(x)
#define CONJ_c128(x) conj(x)

#define PRODUCT(s, T, A, DT, LD, ST)                                           \
    static enum mst_code product_##s(struct op_ctx *c)                         \
    {                                                                          \
        const T *av = op_in(c, 1)->data, *bv = op_in(c, 3)->data;              \
        struct product p;                                                      \
        enum mst_code rc = product_read(c, &p);                                \
                                                                               \
        if (!rc)                                                               \
            rc = op_out_new(c, 0, 2, (int64_t[]){ p.m, p.n });                 \
        if (rc)                                                                \
            return rc;                                                         \
        tensor_zero(op_out(c, 0));                                             \
        for (int64_t i = 0; i < op_in(c, 1)->count; i++) {                     \
            int64_t m, k;                                                      \
            T *out, a;                                                         \
                                                                               \
            rc = product_index(c, &p, i, &m, &k);                              \
            if (rc)                                                            \
                return rc;                                                     \
            out = TENSOR_DATA(op_out(c, 0), T) + m * p.n;                      \
            a = p.adjoint_a ? CONJ_##s(av[i]) : av[i];                         \
            if (p.adjoint_b)                                                   \
                for (int64_t j = 0; j < p.n; j++)                              \
                    out[j] += a * CONJ_##s(bv[j * p.k + k]);                   \
            else                                                               \
                for (int64_t j = 0; j < p.n; j++)                              \
                    out[j] += a * bv[k * p.n + j];                             \
        }                                                                      \
        return MST_OK;                                                         \
    }
TYPES_FLOAT_WIDE(PRODUCT)
TYPES_COMPLEX(PRODUCT)
PRODUCT(u32, uint32_t, uint32_t, DT_INT32, SAME, SAME)
WIDEN(product_narrow, product_f32)

static enum mst_code product_init(struct op_node *n, struct status *st)
{
    struct adjoints *a = ARENA_NEW(n->arena, struct adjoints);

    (void)st;
    a->a = op_attr_bool(n, "adjoint_a");
    a->b = op_attr_bool(n, "adjoint_b");
    n->state = a;
    return MST_OK;
}

const struct op_def def_sparse_tensor_dense_mat_mul = {
    .name = "SparseTensorDenseMatMul",
    .in = "a_indices: Tindices, a_values: T, a_shape: int64, b: T",
    .out = "product: T",
    .attr = "T: type; Tindices: {int32, int64} = int64; "
            "adjoint_a: bool = false; adjoint_b: bool = false",
    .init = product_init,
    .kernel =
        KERNELS(TYPES_FLOAT_WIDE(ROW, product)
                    TYPES_COMPLEX(ROW, product){ DT_INT32, product_u32 },
                { DT_HALF, product_narrow }, { DT_BFLOAT16, product_narrow }, ),
};
