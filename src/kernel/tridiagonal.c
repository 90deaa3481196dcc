/*
 * Matrices with three diagonals: systems of equations, and products.
 *
 * A system is solved by elimination, with or without exchange of neighbouring
 * rows; a matrix that turns out not to be invertible gives NaN everywhere, as
 * in TensorFlow. With perturb_singular tiny pivots are moved away from zero,
 * which is meant for inverse iteration: the answer is then large, not wrong.
 */
#include "kernel/linalg.h"

struct tridiagonal_state {
    bool pivoting, perturb;
};

static enum mst_code tridiagonal_init(struct op_node *n, struct status *st)
{
    struct tridiagonal_state *s = ARENA_NEW(n->arena, struct tridiagonal_state);

    s->pivoting = op_attr_bool(n, "partial_pivoting");
    s->perturb = op_attr_bool(n, "perturb_singular");
    n->state = s;
    if (s->perturb && !s->pivoting)
        return status_set(st, MST_INVALID_ARGUMENT,
                          "Setting perturb_singular requires also setting "
                          "partial_pivoting.");
    return MST_OK;
}

static enum mst_code tridiagonal_begin(struct linalg *l, struct op_ctx *c)
{
    enum mst_code rc = linalg_begin(l, c, 2);

    if (rc)
        return rc;
    if (l->rows[0] != 3)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Expected diagonals to be provided as a matrix with 3 "
                       "rows, got %lld rows.",
                       (long long)l->rows[0]);
    if (l->cols[0] != l->rows[1])
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Expected the same number of left-hand sides and "
                       "right-hand sides, got %lld and %lld.",
                       (long long)l->cols[0], (long long)l->rows[1]);
    return linalg_out(l, 0, 2, l->rows[1], l->cols[1]);
}

/* ---- rows of the right-hand side ---- */

#define ROWS(s, T, A, DT, LD, ST)                                              \
    static void row_div_##s(T *x, int64_t m, T d)                              \
    {                                                                          \
        for (int64_t j = 0; j < m; j++)                                        \
            x[j] = DIV_##s(x[j], d);                                           \
    }                                                                          \
    static void row_sub_##s(T *x, int64_t m, T f, const T *y)                  \
    {                                                                          \
        for (int64_t j = 0; j < m; j++)                                        \
            x[j] -= MUL_##s(f, y[j]);                                          \
    }                                                                          \
    static void row_swap_##s(T *x, T *y, int64_t m)                            \
    {                                                                          \
        for (int64_t j = 0; j < m; j++) {                                      \
            T t = x[j];                                                        \
                                                                               \
            x[j] = y[j];                                                       \
            y[j] = t;                                                          \
        }                                                                      \
    }
TYPES_DENSE(ROWS)

/* ---- without exchanges ---- */

/* u: what is left above the diagonal, once that is all ones. */
#define THOMAS(s, T, A, DT, LD, ST)                                            \
    static bool thomas_##s(const T *above, const T *diag, const T *below,      \
                           int64_t n, T *x, int64_t m, T *u)                   \
    {                                                                          \
        for (int64_t i = 0; i < n; i++) {                                      \
            T d = diag[i];                                                     \
                                                                               \
            if (i) {                                                           \
                d -= MUL_##s(below[i], u[i - 1]);                              \
                row_sub_##s(x + i * m, m, below[i], x + (i - 1) * m);          \
            }                                                                  \
            if (d == 0)                                                        \
                return false;                                                  \
            u[i] = DIV_##s(above[i], d);                                       \
            row_div_##s(x + i * m, m, d);                                      \
        }                                                                      \
        for (int64_t i = n - 2; i >= 0; i--)                                   \
            row_sub_##s(x + i * m, m, u[i], x + (i + 1) * m);                  \
        return true;                                                           \
    }
TYPES_DENSE(THOMAS)

/* ---- with exchanges ---- */

/*
 * U has two diagonals above its own: u, v, w are the three. Step i removes
 * below[i + 1], by the row that has the greater element there, or, when pivots
 * are to be perturbed, the greater share of its row.
 */
#define ELIMINATE(s, T, A, DT, LD, ST)                                         \
    static bool exchange_##s(bool scaled, T pivot, T next, real_##s *scale,    \
                             real_##s next_scale)                              \
    {                                                                          \
        real_##s a = ABS_##s(pivot), b = ABS_##s(next);                        \
                                                                               \
        if (!scaled)                                                           \
            return a < b;                                                      \
        if (next != 0 && !((b / next_scale) <= (a == 0 ? 0 : a / *scale)))     \
            return true;                                                       \
        *scale = next_scale;                                                   \
        return false;                                                          \
    }                                                                          \
    static bool eliminate_##s(const T *above, const T *diag, const T *below,   \
                              int64_t n, bool scaled, T *x, int64_t m, T *u,   \
                              T *v, T *w)                                      \
    {                                                                          \
        real_##s scale = ABS_##s(diag[0]) + ABS_##s(above[0]);                 \
                                                                               \
        u[0] = diag[0];                                                        \
        v[0] = above[0];                                                       \
        for (int64_t i = 0; i < n - 1; i++) {                                  \
            T b = below[i + 1], d = diag[i + 1], f;                            \
            T o = i < n - 2 ? above[i + 1] : 0;                                \
            T *row = x + i * m;                                                \
                                                                               \
            w[i] = 0;                                                          \
            if (exchange_##s(scaled, u[i], b, &scale,                          \
                             ABS_##s(b) + ABS_##s(d) + ABS_##s(o))) {          \
                f = DIV_##s(u[i], b);                                          \
                u[i] = b;                                                      \
                u[i + 1] = v[i] - MUL_##s(f, d);                               \
                v[i] = d;                                                      \
                w[i] = o;                                                      \
                v[i + 1] = -MUL_##s(f, o);                                     \
                row_swap_##s(row, row + m, m);                                 \
            } else {                                                           \
                if (u[i] == 0 && !scaled)                                      \
                    return false;                                              \
                f = b == 0 ? 0 : DIV_##s(b, u[i]);                             \
                u[i + 1] = d - MUL_##s(f, v[i]);                               \
                v[i + 1] = o;                                                  \
            }                                                                  \
            if (f != 0)                                                        \
                row_sub_##s(row + m, m, f, row);                               \
        }                                                                      \
        return scaled || u[n - 1] != 0;                                        \
    }
TYPES_DENSE(ELIMINATE)

/*
 * A pivot that neither overflows as a divisor nor makes a row overflow: as in
 * LAPACK's xLAGTS it is moved by twice as much each time until it is so.
 */
#define PERTURB(s, T, A, DT, LD, ST, TINY)                                     \
    static T perturb_##s(T pivot, real_##s by, T *row, int64_t m)              \
    {                                                                          \
        const real_##s tiny = TINY, big = 1 / tiny;                            \
        real_##s most = 0, size = ABS_##s(pivot);                              \
                                                                               \
        for (int64_t j = 0; j < m; j++)                                        \
            if (ABS_##s(row[j]) > most)                                        \
                most = ABS_##s(row[j]);                                        \
        by = by < tiny ? tiny : by;                                            \
        by = signbit(REAL_##s(pivot)) ? -by : by;                              \
        for (; size < 1; size = ABS_##s(pivot)) {                              \
            if (size < tiny ? size == 0 || most * tiny > size                  \
                            : most > size * big) {                             \
                pivot += by;                                                   \
                by *= 2;                                                       \
                continue;                                                      \
            }                                                                  \
            for (int64_t j = 0; size < tiny && j < m; j++)                     \
                row[j] *= big;                                                 \
            return size < tiny ? pivot * big : pivot;                          \
        }                                                                      \
        return pivot;                                                          \
    }                                                                          \
    static real_##s tolerance_##s(const T *u, const T *v, const T *w,          \
                                  int64_t n, real_##s eps)                     \
    {                                                                          \
        real_##s most = ABS_##s(u[n - 1]);                                     \
                                                                               \
        for (int64_t i = 0; i < MAX(n - 2, 1); i++) {                          \
            most = ABS_##s(u[i]) > most ? ABS_##s(u[i]) : most;                \
            most = n > 1 && ABS_##s(v[i]) > most ? ABS_##s(v[i]) : most;       \
            most = n > 1 && ABS_##s(w[i]) > most ? ABS_##s(w[i]) : most;       \
        }                                                                      \
        return eps * most;                                                     \
    }
TYPES_FLOAT32(PERTURB, 0x1p-126f)
TYPES_COMPLEX64(PERTURB, 0x1p-126f)
TYPES_FLOAT64(PERTURB, 0x1p-1022)
TYPES_COMPLEX128(PERTURB, 0x1p-1022)

#define PIVOTED(s, T, A, DT, LD, ST, EPS)                                      \
    static bool pivoted_##s(const T *above, const T *diag, const T *below,     \
                            int64_t n, bool perturb, T *x, int64_t m, T *u)    \
    {                                                                          \
        T *v = u + n, *w = v + n;                                              \
        real_##s by = 0;                                                       \
                                                                               \
        if (!eliminate_##s(above, diag, below, n, perturb, x, m, u, v, w))     \
            return false;                                                      \
        if (perturb)                                                           \
            by = tolerance_##s(u, v, w, n, (real_##s)EPS);                     \
        for (int64_t i = n - 1; i >= 0; i--) {                                 \
            T *row = x + i * m;                                                \
                                                                               \
            if (i < n - 1)                                                     \
                row_sub_##s(row, m, v[i], row + m);                            \
            if (i < n - 2)                                                     \
                row_sub_##s(row, m, w[i], row + 2 * m);                        \
            row_div_##s(row, m,                                                \
                        perturb ? perturb_##s(u[i], by, row, m) : u[i]);       \
        }                                                                      \
        return true;                                                           \
    }                                                                          \
    static const char *tri_one_##s(const struct linalg_one *o)                 \
    {                                                                          \
        const struct tridiagonal_state *st = o->l->c->node->state;             \
        int64_t n = o->l->cols[0], m = o->l->cols[1];                          \
        const T *d = o->in[0];                                                 \
        T *x = o->out[0];                                                      \
        bool good;                                                             \
                                                                               \
        if (!n || !m)                                                          \
            return NULL;                                                       \
        memcpy(x, o->in[1], (size_t)(n * m) * sizeof(T));                      \
        good = st->pivoting                                                    \
                   ? pivoted_##s(d, d + n, d + 2 * n, n, st->perturb, x, m,    \
                                 o->scratch)                                   \
                   : thomas_##s(d, d + n, d + 2 * n, n, x, m, o->scratch);     \
        for (int64_t i = 0; !good && i < n * m; i++)                           \
            x[i] = (T)NONE_##s;                                                \
        return NULL;                                                           \
    }                                                                          \
    static enum mst_code tridiagonal_##s(struct op_ctx *c)                     \
    {                                                                          \
        struct linalg l;                                                       \
        enum mst_code rc = tridiagonal_begin(&l, c);                           \
                                                                               \
        return rc ? rc                                                         \
                  : linalg_run(&l, 5 * (double)(l.out_size[0] + l.cols[0]),    \
                               3 * l.cols[0], sizeof(T), tri_one_##s);         \
    }
TYPES_FLOAT32(PIVOTED, 0x1p-23)
TYPES_COMPLEX64(PIVOTED, 0x1p-23)
TYPES_FLOAT64(PIVOTED, 0x1p-52)
TYPES_COMPLEX128(PIVOTED, 0x1p-52)

const struct op_def def_tridiagonal_solve = {
    .name = "TridiagonalSolve",
    .in = "diagonals: T, rhs: T",
    .out = "output: T",
    .attr = "partial_pivoting: bool = true; perturb_singular: bool = false; "
            "T: {double, float, complex64, complex128}",
    .init = tridiagonal_init,
    .kernel = KERNELS(TYPES_DENSE(ROW, tridiagonal)),
};

/* ---- products ---- */

#define PRODUCT(s, T, A, DT, LD, ST)                                           \
    static const char *product_one_##s(const struct linalg_one *o)             \
    {                                                                          \
        const T *above = o->in[0], *diag = o->in[1], *below = o->in[2];        \
        int64_t n = o->l->rows[3], m = o->l->cols[3];                          \
        const T *x = o->in[3];                                                 \
        T *y = o->out[0];                                                      \
                                                                               \
        if (!m)                                                                \
            return NULL;                                                       \
        for (int64_t i = 0; i < n; i++, x += m, y += m) {                      \
            for (int64_t j = 0; j < m; j++)                                    \
                y[j] = MUL_##s(x[j], diag[i]);                                 \
            for (int64_t j = 0; i > 0 && j < m; j++)                           \
                y[j] += MUL_##s(x[j - m], below[i]);                           \
            for (int64_t j = 0; i < n - 1 && j < m; j++)                       \
                y[j] += MUL_##s(x[j + m], above[i]);                           \
        }                                                                      \
        return NULL;                                                           \
    }                                                                          \
    static enum mst_code product_##s(struct op_ctx *c)                         \
    {                                                                          \
        struct linalg l;                                                       \
        enum mst_code rc = product_begin(&l, c);                               \
                                                                               \
        return rc ? rc                                                         \
                  : linalg_run(&l, 2 * (double)l.out_size[0], 0, sizeof(T),    \
                               product_one_##s);                               \
    }

static enum mst_code product_begin(struct linalg *l, struct op_ctx *c)
{
    static const char *const names[] = { "superdiagonal", "main diagonal",
                                         "subdiagonal" };
    enum mst_code rc = linalg_begin(l, c, 4);

    for (int i = 0; i < 3 && !rc; i++)
        if (l->rows[i] != 1 || l->cols[i] != l->rows[3])
            rc =
                op_fail(c, MST_INVALID_ARGUMENT, "Invalid %s shape.", names[i]);
    return rc ? rc : linalg_out(l, 0, 2, l->rows[3], l->cols[3]);
}
TYPES_DENSE(PRODUCT)

const struct op_def def_tridiagonal_mat_mul = {
    .name = "TridiagonalMatMul",
    .in = "superdiag: T, maindiag: T, subdiag: T, rhs: T",
    .out = "output: T",
    .attr = "T: {double, float, complex64, complex128}",
    .kernel = KERNELS(TYPES_DENSE(ROW, product)),
};
