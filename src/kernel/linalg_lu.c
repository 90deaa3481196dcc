/*
 * What an LU decomposition with partial pivoting answers: Lu itself, systems
 * of equations, inverses, determinants. A pivot of exactly zero is an error for
 * all but the determinants, as in TensorFlow; nothing looks at the condition.
 *
 * The Batch* names are those of TensorFlow before 1.0; their kernels are the
 * same.
 */
#include "kernel/linalg.h"

struct lu_state {
    bool adjoint;
};

static enum mst_code lu_init(struct op_node *n, struct status *st)
{
    struct lu_state *s = ARENA_NEW(n->arena, struct lu_state);

    s->adjoint = op_attr_bool(n, "adjoint");
    n->state = s;
    return MST_OK;
}

static bool is_adjoint(const struct linalg_one *m)
{
    return ((const struct lu_state *)m->l->c->node->state)->adjoint;
}

/* Elements of scratch for n by n numbers of size `elem` and n places. */
static int64_t lu_scratch(int64_t n, size_t elem)
{
    return n * n + n * (int64_t)(sizeof(int64_t) / MIN(elem, 8)) + 2;
}

/* About n^3 / 3 steps of two nanoseconds over four lanes. */
static double lu_cost(int64_t n)
{
    return 20 + (double)n * (double)n * (double)n / 6;
}

static enum mst_code check_system(struct linalg *l, bool square)
{
    const char *what = NULL;

    if (square && l->rows[0] != l->cols[0])
        what = "First input (lhs) must be a square matrix.";
    else if (l->rows[0] != l->rows[1])
        what = "Input matrix and rhs are incompatible.";
    return what ? op_fail(l->c, MST_INVALID_ARGUMENT, "%s", what) : MST_OK;
}

/* The copy of an input that is decomposed, in the scratch, and its places. */
#define FACTOR(s, T, A, DT, LD, ST)                                            \
    static T *lu_of_##s(const struct linalg_one *m, bool adjoint,              \
                        int64_t **ret_perm, int *ret_sign)                     \
    {                                                                          \
        int64_t n = m->l->rows[0];                                             \
        int64_t *perm = m->scratch;                                            \
        T *a = (T *)(perm + n + (n & 1));                                      \
                                                                               \
        if (adjoint)                                                           \
            dense_adjoint_##s(a, m->in[0], n, n, true);                        \
        else                                                                   \
            memcpy(a, m->in[0], (size_t)(n * n) * sizeof(T));                  \
        *ret_sign = dense_lu_##s(a, n, perm);                                  \
        *ret_perm = perm;                                                      \
        return a;                                                              \
    }                                                                          \
    static bool singular_##s(const T *a, int64_t n)                            \
    {                                                                          \
        for (int64_t i = 0; i < n; i++)                                        \
            if (a[i * n + i] == 0)                                             \
                return true;                                                   \
        return false;                                                          \
    }
TYPES_DENSE(FACTOR)

/* ---- Lu ---- */

#define LU(s, T, A, DT, LD, ST)                                                \
    static const char *lu_one_##s(const struct linalg_one *m)                  \
    {                                                                          \
        int64_t n = m->l->rows[0], *perm;                                      \
        bool wide = op_out(m->l->c, 1)->dtype == DT_INT64;                     \
        int sign;                                                              \
        T *a;                                                                  \
                                                                               \
        if (!n)                                                                \
            return NULL;                                                       \
        a = lu_of_##s(m, false, &perm, &sign);                                 \
        memcpy(m->out[0], a, (size_t)(n * n) * sizeof(T));                     \
        for (int64_t i = 0; i < n; i++)                                        \
            if (wide)                                                          \
                ((int64_t *)m->out[1])[i] = perm[i];                           \
            else                                                               \
                ((int32_t *)m->out[1])[i] = (int32_t)perm[i];                  \
        return singular_##s(a, n) ? "Input is not invertible." : NULL;         \
    }                                                                          \
    static enum mst_code lu_##s(struct op_ctx *c)                              \
    {                                                                          \
        struct linalg l;                                                       \
        enum mst_code rc = lu_begin(&l, c);                                    \
                                                                               \
        return rc ? rc                                                         \
                  : linalg_run(&l, lu_cost(l.rows[0]),                         \
                               lu_scratch(l.rows[0], sizeof(T)), sizeof(T),    \
                               lu_one_##s);                                    \
    }

static enum mst_code lu_begin(struct linalg *l, struct op_ctx *c)
{
    enum mst_code rc;

    if (op_in(c, 0)->ndim < 2) /* its own words */
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Input tensor must have rank >= 2, got %d",
                       op_in(c, 0)->ndim);
    rc = linalg_begin(l, c, 1);
    if (!rc)
        rc = linalg_square(l);
    if (!rc)
        rc = linalg_out(l, 0, 2, l->rows[0], l->rows[0]);
    return rc ? rc : linalg_out(l, 1, 1, l->rows[0], 0);
}
TYPES_DENSE(LU)

const struct op_def def_lu = {
    .name = "Lu",
    .in = "input: T",
    .out = "lu: T, p: output_idx_type",
    .attr = "T: {double, float, half, complex64, complex128}; "
            "output_idx_type: {int32, int64} = int32",
    .flags = OP_EXPENSIVE,
    .kernel = KERNELS(TYPES_DENSE(ROW, lu)),
};

/* ---- MatrixSolve, MatrixInverse ---- */

#define SOLVE(s, T, A, DT, LD, ST)                                             \
    static void lu_solve_##s(T *x, const T *a, int64_t n, int64_t m)           \
    {                                                                          \
        dense_solve_##s(x, n, m, a, true, false, true);                        \
        dense_solve_##s(x, n, m, a, false, false, false);                      \
    }                                                                          \
    static const char *solve_one_##s(const struct linalg_one *m)               \
    {                                                                          \
        int64_t n = m->l->rows[0], k = m->l->cols[1], *perm;                   \
        const T *b = m->in[1];                                                 \
        T *x = m->out[0], *a;                                                  \
        int sign;                                                              \
                                                                               \
        if (!n || !k)                                                          \
            return NULL;                                                       \
        a = lu_of_##s(m, is_adjoint(m), &perm, &sign);                         \
        if (singular_##s(a, n))                                                \
            return "Input matrix is not invertible.";                          \
        for (int64_t i = 0; i < n; i++)                                        \
            memcpy(x + i * k, b + perm[i] * k, (size_t)k * sizeof(T));         \
        lu_solve_##s(x, a, n, k);                                              \
        return NULL;                                                           \
    }                                                                          \
    static enum mst_code solve_##s(struct op_ctx *c)                           \
    {                                                                          \
        struct linalg l;                                                       \
        enum mst_code rc = linalg_begin(&l, c, 2);                             \
                                                                               \
        if (!rc)                                                               \
            rc = check_system(&l, true);                                       \
        if (!rc)                                                               \
            rc = linalg_out(&l, 0, 2, l.cols[0], l.cols[1]);                   \
        return rc ? rc                                                         \
                  : linalg_run(&l, lu_cost(l.rows[0]),                         \
                               lu_scratch(l.rows[0], sizeof(T)), sizeof(T),    \
                               solve_one_##s);                                 \
    }                                                                          \
    static const char *inverse_one_##s(const struct linalg_one *m)             \
    {                                                                          \
        int64_t n = m->l->rows[0], *perm;                                      \
        T *x = m->out[0], *a;                                                  \
        int sign;                                                              \
                                                                               \
        if (!n)                                                                \
            return NULL;                                                       \
        a = lu_of_##s(m, is_adjoint(m), &perm, &sign);                         \
        if (singular_##s(a, n))                                                \
            return "Input is not invertible.";                                 \
        memset(x, 0, (size_t)(n * n) * sizeof(T));                             \
        for (int64_t i = 0; i < n; i++)                                        \
            x[i * n + perm[i]] = 1;                                            \
        lu_solve_##s(x, a, n, n);                                              \
        return NULL;                                                           \
    }                                                                          \
    static enum mst_code inverse_##s(struct op_ctx *c)                         \
    {                                                                          \
        struct linalg l;                                                       \
        enum mst_code rc = linalg_begin(&l, c, 1);                             \
                                                                               \
        if (!rc)                                                               \
            rc = linalg_square(&l);                                            \
        if (!rc)                                                               \
            rc = linalg_out(&l, 0, 2, l.rows[0], l.rows[0]);                   \
        return rc ? rc                                                         \
                  : linalg_run(&l, 3 * lu_cost(l.rows[0]),                     \
                               lu_scratch(l.rows[0], sizeof(T)), sizeof(T),    \
                               inverse_one_##s);                               \
    }
TYPES_DENSE(SOLVE)

static enum mst_code inverse_f16(struct op_ctx *c)
{
    return linalg_half(c, inverse_f32);
}

#define SOLVE_DEF(stem, NAME, SET)                                             \
    const struct op_def def_##stem = {                                         \
        .name = NAME,                                                          \
        .in = "matrix: T, rhs: T",                                             \
        .out = "output: T",                                                    \
        .attr = "adjoint: bool = false; T: " SET,                              \
        .flags = OP_EXPENSIVE,                                                 \
        .init = lu_init,                                                       \
        .kernel = KERNELS(TYPES_DENSE(ROW, solve)),                            \
    }
SOLVE_DEF(matrix_solve, "MatrixSolve",
          "{double, float, half, complex64, complex128}");
SOLVE_DEF(batch_matrix_solve, "BatchMatrixSolve", "{double, float}");

#define INVERSE_DEF(stem, NAME, SET)                                           \
    const struct op_def def_##stem = {                                         \
        .name = NAME,                                                          \
        .in = "input: T",                                                      \
        .out = "output: T",                                                    \
        .attr = "adjoint: bool = false; T: " SET,                              \
        .flags = OP_EXPENSIVE,                                                 \
        .init = lu_init,                                                       \
        .kernel = KERNELS(TYPES_DENSE(ROW, inverse) TYPES_HALF(ROW, inverse)), \
    }
INVERSE_DEF(matrix_inverse, "MatrixInverse",
            "{double, float, half, complex64, complex128}");
INVERSE_DEF(batch_matrix_inverse, "BatchMatrixInverse", "{double, float}");

/* ---- determinants ---- */

/* The logarithm of the absolute value, and what it is to be multiplied with.
 * A determinant of zero (or of infinity) has no sign. */
#define DETERMINANT(s, T, A, DT, LD, ST, LOG, EXP)                             \
    static real_##s log_det_##s(const struct linalg_one *m, T *ret_sign)       \
    {                                                                          \
        int64_t n = m->l->rows[0], *perm;                                      \
        real_##s sum = 0;                                                      \
        int flips;                                                             \
        T *a;                                                                  \
                                                                               \
        *ret_sign = 1;                                                         \
        if (!n)                                                                \
            return 0;                                                          \
        a = lu_of_##s(m, false, &perm, &flips);                                \
        *ret_sign = flips;                                                     \
        for (int64_t i = 0; i < n; i++) {                                      \
            T d = a[i * n + i];                                                \
            real_##s v = ABS_##s(d);                                           \
                                                                               \
            sum += LOG(v);                                                     \
            *ret_sign = MUL_##s(*ret_sign, d / v);                             \
        }                                                                      \
        if (isfinite(sum))                                                     \
            return sum;                                                        \
        *ret_sign = 0;                                                         \
        return sum > 0 ? (real_##s)INFINITY : -(real_##s)INFINITY;             \
    }                                                                          \
    static const char *det_one_##s(const struct linalg_one *m)                 \
    {                                                                          \
        T sign;                                                                \
        real_##s log_abs = log_det_##s(m, &sign);                              \
                                                                               \
        *(T *)m->out[0] = sign * EXP(log_abs);                                 \
        return NULL;                                                           \
    }                                                                          \
    static const char *sign_one_##s(const struct linalg_one *m)                \
    {                                                                          \
        *(T *)m->out[1] = log_det_##s(m, m->out[0]);                           \
        return NULL;                                                           \
    }                                                                          \
    static enum mst_code determinant_##s(struct op_ctx *c)                     \
    {                                                                          \
        return det_run(c, sizeof(T), det_one_##s);                             \
    }                                                                          \
    static enum mst_code log_determinant_##s(struct op_ctx *c)                 \
    {                                                                          \
        return det_run(c, sizeof(T), sign_one_##s);                            \
    }

static enum mst_code det_run(struct op_ctx *c, size_t elem,
                             const char *(*fn)(const struct linalg_one *m))
{
    struct linalg l;
    enum mst_code rc = linalg_begin(&l, c, 1);

    if (!rc)
        rc = linalg_square(&l);
    for (int i = 0; i < c->node->out_count && !rc; i++)
        rc = linalg_out(&l, i, 0, 0, 0);
    return rc ? rc
              : linalg_run(&l, lu_cost(l.rows[0]), lu_scratch(l.rows[0], elem),
                           elem, fn);
}
TYPES_FLOAT32(DETERMINANT, logf, expf)
TYPES_FLOAT64(DETERMINANT, log, exp)
TYPES_COMPLEX64(DETERMINANT, logf, expf)
TYPES_COMPLEX128(DETERMINANT, log, exp)

#define DETERMINANT_DEF(stem, NAME, OUT, SET, kernels)                         \
    const struct op_def def_##stem = {                                         \
        .name = NAME,                                                          \
        .in = "input: T",                                                      \
        .out = OUT,                                                            \
        .attr = "T: " SET,                                                     \
        .flags = OP_EXPENSIVE,                                                 \
        .kernel = KERNELS(TYPES_DENSE(ROW, kernels)),                          \
    }
DETERMINANT_DEF(matrix_determinant, "MatrixDeterminant", "output: T",
                "{half, float, double, complex64, complex128}", determinant);
DETERMINANT_DEF(batch_matrix_determinant, "BatchMatrixDeterminant", "output: T",
                "{float, double, complex64, complex128}", determinant);
DETERMINANT_DEF(log_matrix_determinant, "LogMatrixDeterminant",
                "sign: T, log_abs_determinant: T",
                "{half, float, double, complex64, complex128}",
                log_determinant);
