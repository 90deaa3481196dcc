/*
 * Triangular systems, LU and Cholesky, each over one loop: a row minus a
 * combination of other rows, four at a time, so that the row is loaded and
 * stored once for four products. That reaches about half of what gemm.h does,
 * for every type, and needs no packing; matrices of linear algebra ops are
 * small, and come in batches that fill the cores.
 *
 * Pivots are chosen as Eigen chooses them, by the true absolute value (LAPACK
 * takes |re| + |im|), because an op shows the permutation.
 */
#include "kernel/dense.h"

/* Columns that are solved together, so that they stay in the cache. */
#define PANEL 256
/* Rows that LU eliminates before it updates the rest. */
#define BLOCK 32

#define DENSE_SUB(s, T, A, DT, LD, ST)                                         \
    CLONES_##s static void sub_four_##s(T *restrict y, int64_t n, T a, T b,    \
                                        T c, T d, const T *restrict x,         \
                                        int64_t step)                          \
    {                                                                          \
        const T *restrict x1 = x + step, *restrict x2 = x1 + step,             \
                          *restrict x3 = x2 + step;                            \
                                                                               \
        for (int64_t j = 0; j < n; j++)                                        \
            y[j] -= (MUL_##s(a, x[j]) + MUL_##s(b, x1[j])) +                   \
                    (MUL_##s(c, x2[j]) + MUL_##s(d, x3[j]));                   \
    }                                                                          \
    CLONES_##s static void sub_one_##s(T *restrict y, int64_t n, T a,          \
                                       const T *restrict x)                    \
    {                                                                          \
        for (int64_t j = 0; j < n; j++)                                        \
            y[j] -= MUL_##s(a, x[j]);                                          \
    }                                                                          \
    void dense_sub_##s(T *y, int64_t n, const T *a, int64_t a_step,            \
                       bool conj_a, const T *x, int64_t x_step, int64_t k)     \
    {                                                                          \
        int64_t p = 0;                                                         \
                                                                               \
        for (; n > 3 && p + 4 <= k; p += 4, a += 4 * a_step)                   \
            sub_four_##s(y, n, conj_a ? CONJ_##s(a[0]) : a[0],                 \
                         conj_a ? CONJ_##s(a[a_step]) : a[a_step],             \
                         conj_a ? CONJ_##s(a[2 * a_step]) : a[2 * a_step],     \
                         conj_a ? CONJ_##s(a[3 * a_step]) : a[3 * a_step],     \
                         x + p * x_step, x_step);                              \
        for (; p < k; p++, a += a_step) {                                      \
            T f = conj_a ? CONJ_##s(a[0]) : a[0];                              \
                                                                               \
            if (n > 3)                                                         \
                sub_one_##s(y, n, f, x + p * x_step);                          \
            else                                                               \
                for (int64_t j = 0; j < n; j++)                                \
                    y[j] -= MUL_##s(f, x[p * x_step + j]);                     \
        }                                                                      \
    }
TYPES_DENSE(DENSE_SUB)

#define DENSE_ADJOINT(s, T, A, DT, LD, ST)                                     \
    void dense_adjoint_##s(T *out, const T *in, int64_t m, int64_t n,          \
                           bool conj_in)                                       \
    {                                                                          \
        for (int64_t i = 0; i < m; i++)                                        \
            for (int64_t j = 0; j < n; j++)                                    \
                out[j * m + i] =                                               \
                    conj_in ? CONJ_##s(in[i * n + j]) : in[i * n + j];         \
    }
TYPES_DENSE(DENSE_ADJOINT)

/* ---- triangles ---- */

/* One row of the solution: those of it that are known, times row i of op(a),
 * from the right-hand side; then by the diagonal. */
#define DENSE_SOLVE(s, T, A, DT, LD, ST)                                       \
    static void solve_row_##s(T *x, int64_t i, int64_t n, int64_t m,           \
                              int64_t width, const T *a, bool forward,         \
                              bool adjoint, bool unit)                         \
    {                                                                          \
        int64_t from = forward ? 0 : i + 1, count = forward ? i : n - 1 - i;   \
        const T *row = adjoint ? a + from * n + i : a + i * n + from;          \
        T d = adjoint ? CONJ_##s(a[i * n + i]) : a[i * n + i];                 \
                                                                               \
        if (count)                                                             \
            dense_sub_##s(x + i * m, width, row, adjoint ? n : 1, adjoint,     \
                          x + from * m, m, count);                             \
        for (int64_t j = 0; !unit && j < width; j++)                           \
            x[i * m + j] = DIV_##s(x[i * m + j], d);                           \
    }                                                                          \
    void dense_solve_##s(T *x, int64_t n, int64_t m, const T *a, bool lower,   \
                         bool adjoint, bool unit)                              \
    {                                                                          \
        bool forward = lower != adjoint;                                       \
                                                                               \
        for (int64_t at = 0; at < m; at += PANEL)                              \
            for (int64_t i = 0; i < n; i++)                                    \
                solve_row_##s(x + at, forward ? i : n - 1 - i, n, m,           \
                              MIN(PANEL, m - at), a, forward, adjoint, unit);  \
    }
TYPES_DENSE(DENSE_SOLVE)

/* ---- LU ---- */

/*
 * Columns [k, end) below row k, of which the rows up to `end` are eliminated;
 * rows are swapped as a whole. A column of zeros is left as it is.
 */
#define DENSE_LU(s, T, A, DT, LD, ST)                                          \
    static void swap_rows_##s(T *a, T *b, int64_t n)                           \
    {                                                                          \
        for (int64_t j = 0; j < n; j++) {                                      \
            T t = a[j];                                                        \
                                                                               \
            a[j] = b[j];                                                       \
            b[j] = t;                                                          \
        }                                                                      \
    }                                                                          \
    static int64_t pivot_##s(const T *a, int64_t n, int64_t k)                 \
    {                                                                          \
        int64_t best = k;                                                      \
        real_##s most = ABS_##s(a[k * n + k]);                                 \
                                                                               \
        for (int64_t i = k + 1; i < n; i++) {                                  \
            real_##s v = ABS_##s(a[i * n + k]);                                \
                                                                               \
            if (v > most) {                                                    \
                most = v;                                                      \
                best = i;                                                      \
            }                                                                  \
        }                                                                      \
        return best;                                                           \
    }                                                                          \
    static int lu_panel_##s(T *a, int64_t n, int64_t begin, int64_t end,       \
                            int64_t *perm)                                     \
    {                                                                          \
        int sign = 1;                                                          \
                                                                               \
        for (int64_t k = begin; k < end; k++) {                                \
            int64_t p = pivot_##s(a, n, k), t = perm[k];                       \
                                                                               \
            if (p != k) {                                                      \
                swap_rows_##s(a + k * n, a + p * n, n);                        \
                perm[k] = perm[p];                                             \
                perm[p] = t;                                                   \
                sign = -sign;                                                  \
            }                                                                  \
            if (a[k * n + k] == 0)                                             \
                continue;                                                      \
            for (int64_t i = k + 1; i < n; i++) {                              \
                T *row = a + i * n;                                            \
                                                                               \
                row[k] = DIV_##s(row[k], a[k * n + k]);                        \
                dense_sub_##s(row + k + 1, end - k - 1, row + k, 1, false,     \
                              a + k * n + k + 1, n, 1);                        \
            }                                                                  \
        }                                                                      \
        return sign;                                                           \
    }                                                                          \
    int dense_lu_##s(T *a, int64_t n, int64_t *perm)                           \
    {                                                                          \
        int sign = 1;                                                          \
                                                                               \
        for (int64_t i = 0; i < n; i++)                                        \
            perm[i] = i;                                                       \
        for (int64_t k = 0; k < n; k += BLOCK) {                               \
            int64_t end = MIN(k + BLOCK, n);                                   \
                                                                               \
            sign *= lu_panel_##s(a, n, k, end, perm);                          \
            for (int64_t i = k + 1; i < n && end < n; i++)                     \
                dense_sub_##s(a + i * n + end, n - end, a + i * n + k, 1,      \
                              false, a + k * n + end, n, MIN(i, end) - k);     \
        }                                                                      \
        return sign;                                                           \
    }
TYPES_DENSE(DENSE_LU)

/* ---- Cholesky ---- */

#define DENSE_CHOLESKY(s, T, A, DT, LD, ST)                                    \
    bool dense_cholesky_##s(T *a, int64_t n)                                   \
    {                                                                          \
        for (int64_t i = 0; i < n; i++) {                                      \
            T *row = a + i * n + i;                                            \
            real_##s d;                                                        \
                                                                               \
            dense_sub_##s(row, n - i, a + i, n, true, a + i, n, i);            \
            d = REAL_##s(row[0]);                                              \
            if (d <= 0)                                                        \
                return false;                                                  \
            d = sqrt_##s(d);                                                   \
            row[0] = d;                                                        \
            for (int64_t j = 1; j < n - i; j++)                                \
                row[j] /= d;                                                   \
        }                                                                      \
        return true;                                                           \
    }
#define sqrt_f32  sqrtf
#define sqrt_c64  sqrtf
#define sqrt_f64  sqrt
#define sqrt_c128 sqrt
TYPES_DENSE(DENSE_CHOLESKY)
