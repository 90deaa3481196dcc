/*
 * Cholesky decompositions, A = L L^H, and their gradient. Only the lower
 * triangle of A is read. A matrix that is not positive definite gives NaN in
 * the lower triangle, as TensorFlow 2 does it.
 */
#include "kernel/linalg.h"

static double cholesky_cost(int64_t n)
{
    return 20 + (double)n * (double)n * (double)n / 12;
}

#define CHOLESKY(s, T, A, DT, LD, ST)                                          \
    static const char *cholesky_one_##s(const struct linalg_one *m)            \
    {                                                                          \
        int64_t n = m->l->rows[0];                                             \
        T *u = m->scratch, *out = m->out[0];                                   \
        bool good;                                                             \
                                                                               \
        if (!n)                                                                \
            return NULL;                                                       \
        dense_adjoint_##s(u, m->in[0], n, n, true);                            \
        good = dense_cholesky_##s(u, n);                                       \
        for (int64_t i = 0; i < n; i++)                                        \
            for (int64_t j = 0; j < n; j++)                                    \
                out[i * n + j] = j > i  ? 0                                    \
                                 : good ? CONJ_##s(u[j * n + i])               \
                                        : (T)NONE_##s;                         \
        return NULL;                                                           \
    }                                                                          \
    static enum mst_code cholesky_##s(struct op_ctx *c)                        \
    {                                                                          \
        struct linalg l;                                                       \
        enum mst_code rc = linalg_begin(&l, c, 1);                             \
                                                                               \
        if (!rc)                                                               \
            rc = linalg_square(&l);                                            \
        if (!rc)                                                               \
            rc = linalg_out(&l, 0, 2, l.rows[0], l.rows[0]);                   \
        return rc ? rc                                                         \
                  : linalg_run(&l, cholesky_cost(l.rows[0]),                   \
                               l.rows[0] * l.rows[0], sizeof(T),               \
                               cholesky_one_##s);                              \
    }
TYPES_DENSE(CHOLESKY)

#define CHOLESKY_DEF(stem, NAME, SET)                                          \
    const struct op_def def_##stem = {                                         \
        .name = NAME,                                                          \
        .in = "input: T",                                                      \
        .out = "output: T",                                                    \
        .attr = "T: " SET,                                                     \
        .flags = OP_EXPENSIVE,                                                 \
        .kernel = KERNELS(TYPES_DENSE(ROW, cholesky)),                         \
    }
CHOLESKY_DEF(cholesky, "Cholesky",
             "{double, float, half, complex64, complex128}");
CHOLESKY_DEF(batch_cholesky, "BatchCholesky", "{double, float}");

/* ---- the gradient ---- */

/*
 * With G the gradient of L: S = L^-T P L^-1, where P is the lower triangle of
 * L^T G with half its diagonal, and the answer is (S + S^T) / 2. Of L and G
 * only the lower triangles are read.
 */
#define CHOLESKY_GRAD(s, T, A, DT, LD, ST)                                     \
    static const char *grad_one_##s(const struct linalg_one *m)                \
    {                                                                          \
        int64_t n = m->l->rows[0];                                             \
        const T *l = m->in[0], *g = m->in[1];                                  \
        T *p = m->scratch, *out = m->out[0];                                   \
                                                                               \
        if (!n)                                                                \
            return NULL;                                                       \
        memset(p, 0, (size_t)(n * n) * sizeof(T));                             \
        for (int64_t k = 0; k < n; k++) /* -(L^T G), rows up to k */           \
            for (int64_t i = 0; i <= k; i++)                                   \
                dense_sub_##s(p + i * n, i + 1, l + k * n + i, 1, false,       \
                              g + k * n, n, 1);                                \
        for (int64_t i = 0; i < n; i++) {                                      \
            for (int64_t j = 0; j < i; j++)                                    \
                p[i * n + j] = -p[i * n + j];                                  \
            p[i * n + i] /= -2;                                                \
        }                                                                      \
        dense_solve_##s(p, n, n, l, true, true, false);                        \
        dense_adjoint_##s(out, p, n, n, false);                                \
        dense_solve_##s(out, n, n, l, true, true, false);                      \
        for (int64_t i = 0; i < n; i++)                                        \
            for (int64_t j = 0; j <= i; j++)                                   \
                out[i * n + j] = out[j * n + i] =                              \
                    (out[i * n + j] + out[j * n + i]) / 2;                     \
        return NULL;                                                           \
    }                                                                          \
    static enum mst_code grad_##s(struct op_ctx *c)                            \
    {                                                                          \
        struct linalg l;                                                       \
        enum mst_code rc = grad_begin(&l, c);                                  \
                                                                               \
        return rc ? rc                                                         \
                  : linalg_run(&l, 6 * cholesky_cost(l.rows[0]),               \
                               l.rows[0] * l.rows[0], sizeof(T),               \
                               grad_one_##s);                                  \
    }

static enum mst_code grad_begin(struct linalg *l, struct op_ctx *c)
{
    enum mst_code rc = linalg_begin(l, c, 2);
    const char *what = NULL;

    if (rc)
        return rc;
    if (l->rows[0] != l->rows[1] || l->cols[0] != l->cols[1])
        what = "Inputs (L and grad) must have the same shape.";
    else if (l->rows[0] != l->cols[0])
        what = "Inputs must be a square matrices.";
    if (what)
        return op_fail(c, MST_INVALID_ARGUMENT, "%s", what);
    return linalg_out(l, 0, 2, l->rows[0], l->cols[0]);
}
TYPES_FLOAT_WIDE(CHOLESKY_GRAD)

#define GRAD_DEF(stem, NAME, SET)                                              \
    const struct op_def def_##stem = {                                         \
        .name = NAME,                                                          \
        .in = "l: T, grad: T",                                                 \
        .out = "output: T",                                                    \
        .attr = "T: " SET,                                                     \
        .flags = OP_EXPENSIVE,                                                 \
        .kernel = KERNELS(TYPES_FLOAT_WIDE(ROW, grad)),                        \
    }
GRAD_DEF(cholesky_grad, "CholeskyGrad", "{half, float, double}");
GRAD_DEF(batch_cholesky_grad, "BatchCholeskyGrad", "{float, double}");
