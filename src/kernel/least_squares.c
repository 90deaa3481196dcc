/*
 * MatrixSolveLs: over- and underdetermined systems, by the normal equations
 * (fast, and able to regularise), or by LAPACK's orthogonal decomposition,
 * which also takes matrices without full rank and ignores the regulariser, as
 * in TensorFlow.
 */
#include "kernel/lapack.h"
#include "kernel/linalg.h"

struct least_state {
    bool fast;
};

static enum mst_code least_init(struct op_node *n, struct status *st)
{
    struct least_state *s = ARENA_NEW(n->arena, struct least_state);

    s->fast = op_attr_bool(n, "fast");
    n->state = s;
    return MST_OK;
}

static enum mst_code least_begin(struct linalg *l, struct op_ctx *c)
{
    const struct least_state *s = c->node->state;
    const struct tensor *l2 = op_in(c, 2);
    enum mst_code rc = linalg_begin(l, c, 2);
    char text[SHAPE_TEXT_MAX];

    if (rc)
        return rc;
    if (l->rows[0] != l->rows[1])
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Input matrix and rhs are incompatible.");
    if (l->count && l2->ndim)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "l2_regularizer must be scalar, got shape %s",
                       tensor_shape_text(l2, text));
    if (l->count && !(TENSOR_DATA(l2, double)[0] >= 0))
        return op_fail(c, MST_INVALID_ARGUMENT, "l2_regularizer must be >= 0.");
    if (!s->fast && (!lapack_fits(l->rows[0], l->cols[0]) ||
                     !lapack_fits(MAX(l->rows[0], l->cols[0]), l->cols[1])))
        return op_fail(c, MST_RESOURCE_EXHAUSTED,
                       "matrices of %s are too large to be decomposed",
                       tensor_shape_text(op_in(c, 0), text));
    return linalg_out(l, 0, 2, l->cols[0], l->cols[1]);
}

static double least_cost(const struct linalg *l)
{
    double m = (double)l->rows[0], n = (double)l->cols[0];
    double k = (double)l->cols[1];

    return 100 + m * n * (MIN(m, n) + k) / 4;
}

/*
 * The fast way. `a` is m by n and `h` its adjoint; for more rows than columns
 * (A^H A + l2) X = A^H B, else (A A^H + l2) Z = B and X = A^H Z. The loop of
 * dense.h subtracts, so a product comes out with the wrong sign.
 */
#define FAST(s, T, A, DT, LD, ST)                                              \
    static void times_##s(T *out, const T *a, const T *b, int64_t m,           \
                          int64_t k, int64_t n)                                \
    {                                                                          \
        for (int64_t i = 0; i < m; i++) {                                      \
            memset(out + i * n, 0, (size_t)n * sizeof(T));                     \
            dense_sub_##s(out + i * n, n, a + i * k, 1, false, b, n, k);       \
            for (int64_t j = 0; j < n; j++)                                    \
                out[i * n + j] = -out[i * n + j];                              \
        }                                                                      \
    }                                                                          \
    static bool normal_##s(T *x, int64_t n, int64_t k, T *gram, double l2)     \
    {                                                                          \
        for (int64_t i = 0; i < n && l2 > 0; i++)                              \
            gram[i * n + i] += (real_##s)l2;                                   \
        if (!dense_cholesky_##s(gram, n))                                      \
            return false;                                                      \
        dense_solve_##s(x, n, k, gram, false, true, false);                    \
        dense_solve_##s(x, n, k, gram, false, false, false);                   \
        return true;                                                           \
    }                                                                          \
    static const char *fast_##s(const struct linalg_one *o, double l2)         \
    {                                                                          \
        int64_t m = o->l->rows[0], n = o->l->cols[0], k = o->l->cols[1];       \
        const T *a = o->in[0], *b = o->in[1];                                  \
        T *h = o->scratch, *gram = h + m * n, *x = o->out[0];                  \
        T *z = gram + MIN(m, n) * MIN(m, n);                                   \
                                                                               \
        dense_adjoint_##s(h, a, m, n, true);                                   \
        if (m >= n) {                                                          \
            times_##s(gram, h, a, n, m, n);                                    \
            times_##s(x, h, b, n, m, k);                                       \
            return normal_##s(x, n, k, gram, l2)                               \
                       ? NULL                                                  \
                       : "Input matrix was rank deficient or "                 \
                         "ill-conditioned. Try setting fast=False or provide " \
                         "a larger l2_regularizer > 0.";                       \
        }                                                                      \
        times_##s(gram, a, h, m, n, m);                                        \
        memcpy(z, b, (size_t)(m * k) * sizeof(T));                             \
        if (!normal_##s(z, m, k, gram, l2))                                    \
            return "Input matrix was rank deficient or ill-conditioned. Try "  \
                   "setting fast=False or provide an l2_regularizer > 0.";     \
        times_##s(x, h, z, n, m, k);                                           \
        return NULL;                                                           \
    }
TYPES_DENSE(FAST)

/* The other way. LAPACK wants the right-hand sides with room for the solution,
 * in columns. */
#define LEAST(s, T, A, DT, LD, ST, EPS)                                        \
    static const char *slow_##s(const struct linalg_one *o)                    \
    {                                                                          \
        int m = (int)o->l->rows[0], n = (int)o->l->cols[0];                    \
        int k = (int)o->l->cols[1], rows = MAX(m, n);                          \
        const T *b = o->in[1];                                                 \
        real_##s *more = o->scratch;                                           \
        int *pivots = (int *)(more + 2 * (int64_t)n);                          \
        T *a = (T *)o->scratch + 4 * (int64_t)n, *x = a + (int64_t)m * n;      \
        T *work = x + (int64_t)rows * k, *out = o->out[0];                     \
                                                                               \
        dense_adjoint_##s(a, o->in[0], m, n, false);                           \
        memset(x, 0, (size_t)rows *(size_t)k * sizeof(T));                     \
        for (int64_t j = 0; j < k; j++)                                        \
            for (int64_t i = 0; i < m; i++)                                    \
                x[j * rows + i] = b[i * k + j];                                \
        memset(pivots, 0, (size_t)n * sizeof(int));                            \
        lapack_least_##s(m, n, k, a, x, pivots, (real_##s)(EPS)*MIN(m, n),     \
                         more, work, (int)o->l->work_size);                    \
        for (int64_t i = 0; i < n; i++)                                        \
            for (int64_t j = 0; j < k; j++)                                    \
                out[i * k + j] = x[j * rows + i];                              \
        return NULL;                                                           \
    }                                                                          \
    static const char *least_one_##s(const struct linalg_one *o)               \
    {                                                                          \
        const struct op_ctx *c = o->l->c;                                      \
        const struct least_state *st = c->node->state;                         \
                                                                               \
        if (!o->in[0] || !o->in[1]) {                                          \
            if (o->out[0])                                                     \
                memset(o->out[0], 0, (size_t)o->l->out_size[0] * sizeof(T));   \
            return NULL;                                                       \
        }                                                                      \
        return st->fast ? fast_##s(o, TENSOR_DATA(op_in(c, 2), double)[0])     \
                        : slow_##s(o);                                         \
    }                                                                          \
    static enum mst_code least_##s(struct op_ctx *c)                           \
    {                                                                          \
        const struct least_state *st = c->node->state;                         \
        struct linalg l;                                                       \
        enum mst_code rc = least_begin(&l, c);                                 \
        int64_t m = l.rows[0], n = l.cols[0], k = l.cols[1], size;             \
        T ask = 1;                                                             \
                                                                               \
        if (rc)                                                                \
            return rc;                                                         \
        size = m * n + MIN(m, n) * MIN(m, n) + m * k;                          \
        if (!st->fast && m && n && k) {                                        \
            lapack_least_##s((int)m, (int)n, (int)k, NULL, NULL, NULL, 0,      \
                             NULL, &ask, -1);                                  \
            l.work_size = lapack_size(REAL_##s(ask));                          \
            size = m * n + MAX(m, n) * k + 4 * n + l.work_size;                \
        }                                                                      \
        return linalg_run(&l, least_cost(&l), size, sizeof(T), least_one_##s); \
    }
TYPES_FLOAT32(LEAST, 0x1p-23)
TYPES_FLOAT64(LEAST, 0x1p-52)
TYPES_COMPLEX64(LEAST, 0x1p-23)
TYPES_COMPLEX128(LEAST, 0x1p-52)

#define LEAST_DEF(stem, NAME, SET)                                             \
    const struct op_def def_##stem = {                                         \
        .name = NAME,                                                          \
        .in = "matrix: T, rhs: T, l2_regularizer: double",                     \
        .out = "output: T",                                                    \
        .attr = "T: " SET "; fast: bool = true",                               \
        .flags = OP_EXPENSIVE,                                                 \
        .init = least_init,                                                    \
        .kernel = KERNELS(TYPES_DENSE(ROW, least)),                            \
    }
LEAST_DEF(matrix_solve_ls, "MatrixSolveLs",
          "{double, float, half, complex64, complex128}");
LEAST_DEF(batch_matrix_solve_ls, "BatchMatrixSolveLs", "{double, float}");
