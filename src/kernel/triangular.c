/*
 * Systems of equations with triangular matrices, whole or banded, whose
 * batches are broadcast as those of BatchMatMulV2 are. Of a whole matrix only
 * one triangle is read.
 */
#include "kernel/batches.h"
#include "kernel/dense.h"

struct triangular_state {
    bool lower, adjoint;
};

static enum mst_code triangular_init(struct op_node *n, struct status *st)
{
    struct triangular_state *s = ARENA_NEW(n->arena, struct triangular_state);

    s->lower = op_attr_bool(n, "lower");
    s->adjoint = op_attr_bool(n, "adjoint");
    n->state = s;
    return MST_OK;
}

/* One run over the batch. */
struct triangular_run {
    struct op_ctx *c;
    const struct triangular_state *how;
    struct shape batch;
    int64_t bands; /* rows of the matrix: n, or those of the bands */
    int64_t n, m;  /* rows and columns of the right-hand side */
};

#define ONE_RUN(s, T, A, DT, LD, ST, op)                                       \
    static void op##_some_##s(void *arg, int64_t begin, int64_t end)           \
    {                                                                          \
        const struct triangular_run *r = arg;                                  \
        const T *a = op_in(r->c, 0)->data, *b = op_in(r->c, 1)->data;          \
        T *x = op_out(r->c, 0)->data;                                          \
        int64_t size = r->n * r->m;                                            \
                                                                               \
        for (int64_t i = begin; i < end; i++)                                  \
            op##_one_##s(r, a + batches_at(op_in(r->c, 0), &r->batch, i),      \
                         b + batches_at(op_in(r->c, 1), &r->batch, i),         \
                         x + i * size);                                        \
    }                                                                          \
    static enum mst_code op##_##s(struct op_ctx *c)                            \
    {                                                                          \
        struct triangular_run r;                                               \
        enum mst_code rc = op##_begin(c, &r);                                  \
                                                                               \
        if (!rc && op_out(c, 0)->count)                                        \
            op_for(c, op_out(c, 0)->count / (r.n * r.m),                       \
                   10 + (double)r.n * (double)r.bands * (double)r.m / 8,       \
                   op##_some_##s, &r);                                         \
        return rc;                                                             \
    }

/* The shapes of the two, once their ranks are known to be two or more. */
static enum mst_code fill_run(struct op_ctx *c, struct triangular_run *r)
{
    const struct tensor *a = op_in(c, 0), *b = op_in(c, 1);
    char at[SHAPE_TEXT_MAX], bt[SHAPE_TEXT_MAX];
    int64_t cols = a->dims[a->ndim - 1];

    *r = (struct triangular_run){ .c = c, .how = c->node->state };
    tensor_shape_text(a, at);
    tensor_shape_text(b, bt);
    if (!batches_shape(a, b, &r->batch))
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "In[0] and In[1] must have compatible batch "
                       "dimensions: %s vs. %s",
                       at, bt);
    r->bands = a->dims[a->ndim - 2];
    r->n = b->dims[b->ndim - 2];
    r->m = b->dims[b->ndim - 1];
    if (cols != r->n)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "In[0] mismatch In[1] shape: %lld vs. %lld: %s %s %d %d",
                       (long long)cols, (long long)r->n, at, bt, r->how->lower,
                       r->how->adjoint);
    r->batch.dims[r->batch.ndim] = r->n;
    r->batch.dims[r->batch.ndim + 1] = r->m;
    return op_out_new(c, 0, r->batch.ndim + 2, r->batch.dims);
}

static enum mst_code check_ranks(struct op_ctx *c)
{
    for (int i = 0; i < 2; i++)
        if (op_in(c, i)->ndim < 2)
            return op_fail(c, MST_INVALID_ARGUMENT,
                           "In[%d] ndims must be >= 2: %d", i,
                           op_in(c, i)->ndim);
    return MST_OK;
}

/* ---- whole matrices ---- */

static enum mst_code whole_begin(struct op_ctx *c, struct triangular_run *r)
{
    const struct tensor *a = op_in(c, 0);
    enum mst_code rc = check_ranks(c);

    if (rc)
        return rc;
    if (a->dims[a->ndim - 1] != a->dims[a->ndim - 2])
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "In[0] matrices in the last dimensions must be square "
                       "(%lld =/= %lld)",
                       (long long)a->dims[a->ndim - 1],
                       (long long)a->dims[a->ndim - 2]);
    return fill_run(c, r);
}

#define WHOLE(s, T, A, DT, LD, ST)                                             \
    static void whole_one_##s(const struct triangular_run *r, const T *a,      \
                              const T *b, T *x)                                \
    {                                                                          \
        memcpy(x, b, (size_t)(r->n * r->m) * sizeof(T));                       \
        dense_solve_##s(x, r->n, r->m, a, r->how->lower, r->how->adjoint,      \
                        false);                                                \
    }
TYPES_DENSE(WHOLE)
TYPES_DENSE(ONE_RUN, whole)

#define TRIANGULAR_DEF(stem, NAME, SET, kernels)                               \
    const struct op_def def_##stem = {                                         \
        .name = NAME,                                                          \
        .in = "matrix: T, rhs: T",                                             \
        .out = "output: T",                                                    \
        .attr = "lower: bool = true; adjoint: bool = false; T: " SET,          \
        .flags = OP_EXPENSIVE,                                                 \
        .init = triangular_init,                                               \
        .kernel = KERNELS(TYPES_DENSE(ROW, kernels)),                          \
    }
TRIANGULAR_DEF(matrix_triangular_solve, "MatrixTriangularSolve",
               "{bfloat16, double, float, half, complex64, complex128}", whole);
TRIANGULAR_DEF(batch_matrix_triangular_solve, "BatchMatrixTriangularSolve",
               "{double, float}", whole);

/* ---- bands ---- */

/*
 * Row d of the bands holds, at column i, the element of row i of the matrix
 * that is d places before the diagonal (lower), or bands - 1 - d behind it.
 */
#define BANDED(s, T, A, DT, LD, ST)                                            \
    static T band_##s(const struct triangular_run *r, const T *a, int64_t i,   \
                      int64_t j)                                               \
    {                                                                          \
        int64_t row = r->how->adjoint ? j : i, col = r->how->adjoint ? i : j;  \
        int64_t d = r->how->lower ? row - col : r->bands - 1 - (col - row);    \
        T v = a[d * r->n + row];                                               \
                                                                               \
        return r->how->adjoint ? CONJ_##s(v) : v;                              \
    }                                                                          \
    static void banded_one_##s(const struct triangular_run *r, const T *a,     \
                               const T *b, T *x)                               \
    {                                                                          \
        bool forward = r->how->lower != r->how->adjoint;                       \
                                                                               \
        memcpy(x, b, (size_t)(r->n * r->m) * sizeof(T));                       \
        for (int64_t step = 0; step < r->n; step++) {                          \
            int64_t i = forward ? step : r->n - 1 - step;                      \
            int64_t near = MIN(step, r->bands - 1);                            \
            T *row = x + i * r->m, diagonal = band_##s(r, a, i, i);            \
                                                                               \
            for (int64_t d = near; d > 0; d--) {                               \
                int64_t j = forward ? i - d : i + d;                           \
                T f = band_##s(r, a, i, j);                                    \
                                                                               \
                dense_sub_##s(row, r->m, &f, 1, false, x + j * r->m, r->m, 1); \
            }                                                                  \
            for (int64_t k = 0; k < r->m; k++)                                 \
                row[k] = DIV_##s(row[k], diagonal);                            \
        }                                                                      \
    }                                                                          \
    static bool banded_zero_##s(const struct triangular_run *r)                \
    {                                                                          \
        const T *a = op_in(r->c, 0)->data;                                     \
                                                                               \
        a += r->how->lower ? 0 : (r->bands - 1) * r->n;                        \
        for (int64_t i = 0; i < r->n; i++)                                     \
            if (a[i] == 0)                                                     \
                return true;                                                   \
        return false;                                                          \
    }
TYPES_DENSE(BANDED)

static bool banded_zero(const struct triangular_run *r)
{
    switch (op_in(r->c, 0)->dtype) {
    case DT_FLOAT:
        return banded_zero_f32(r);
    case DT_DOUBLE:
        return banded_zero_f64(r);
    case DT_COMPLEX64:
        return banded_zero_c64(r);
    default:
        return banded_zero_c128(r);
    }
}

/* Only the first of a batch is looked at for zeros, as in TensorFlow. */
static enum mst_code banded_begin(struct op_ctx *c, struct triangular_run *r)
{
    char text[SHAPE_TEXT_MAX];
    enum mst_code rc = check_ranks(c);

    for (int i = 0; i < 2 && !rc; i++)
        if (!op_in(c, i)->count)
            rc = op_fail(
                c, MST_INVALID_ARGUMENT,
                "In[%d] must not be an empty tensor: Tensor<type: %s shape: "
                "%s values: >",
                i, dtype_name(op_in(c, i)->dtype),
                tensor_shape_text(op_in(c, i), text));
    if (!rc)
        rc = fill_run(c, r);
    if (!rc && banded_zero(r))
        rc =
            op_fail(c, MST_INVALID_ARGUMENT, "Input matrix is not invertible.");
    return rc;
}
TYPES_DENSE(ONE_RUN, banded)

TRIANGULAR_DEF(banded_triangular_solve, "BandedTriangularSolve",
               "{double, float, half, complex64, complex128}", banded);
