/*
 * Arithmetic of dense matrices of float, double and complex numbers: what the
 * decompositions of linear algebra are made of. Matrices lie in row-major
 * order; a row is what loops run along.
 *
 * For each type there are the functions below, with the type's suffix: T is
 * the element, R the type of its absolute value.
 */
#ifndef KERNEL_DENSE_H
#define KERNEL_DENSE_H

#include "kernel/pointwise.h"

#define TYPES_DENSE(X, ...)                                                    \
    TYPES_FLOAT_WIDE(X, ##__VA_ARGS__) TYPES_COMPLEX(X, ##__VA_ARGS__)

/* ---- one number, by suffix ---- */

typedef float real_f32, real_c64;
typedef double real_f64, real_c128;

#define ABS_f32(x)   fabsf(x)
#define ABS_f64(x)   fabs(x)
#define ABS_c64(x)   cabsf(x)
#define ABS_c128(x)  cabs(x)
#define CONJ_f32(x)  (x)
#define CONJ_f64(x)  (x)
#define CONJ_c64(x)  conjf(x)
#define CONJ_c128(x) conj(x)
#define REAL_f32(x)  (x)
#define REAL_f64(x)  (x)
#define REAL_c64(x)  crealf(x)
#define REAL_c128(x) creal(x)

/* What TensorFlow fills a matrix with that cannot be had: NaN, but for complex
 * numbers that of std::numeric_limits, which is 0. */
#define NONE_f32  NAN
#define NONE_f64  NAN
#define NONE_c64  0
#define NONE_c128 0

/* The plain formula: C's own looks after infinities, which Eigen does not. */
#define COMPLEX_MUL(x, y)                                                      \
    ({                                                                         \
        __typeof__((x) + (y)) m_ = (x), n_ = (y);                              \
                                                                               \
        __builtin_complex(                                                     \
            __real__ m_ *__real__ n_ - __imag__ m_ * __imag__ n_,              \
            __real__ m_ * __imag__ n_ + __imag__ m_ * __real__ n_);            \
    })
#define MUL_f32(x, y)  ((x) * (y))
#define MUL_f64(x, y)  ((x) * (y))
#define MUL_c64(x, y)  COMPLEX_MUL(x, y)
#define MUL_c128(x, y) COMPLEX_MUL(x, y)
#define DIV_f32(x, y)  ((x) / (y))
#define DIV_f64(x, y)  ((x) / (y))
#define DIV_c64(x, y)  COMPLEX_DIV(x, y)
#define DIV_c128(x, y) COMPLEX_DIV(x, y)

/* ---- rows ---- */

/*
 * dense_sub_: y[j] -= sum over p < k of a[p * a_step] * x[p * x_step + j], for
 * j < n. conj_a takes the conjugates of a.
 */
#define DENSE_SUB_DECL(s, T, A, DT, LD, ST)                                    \
    void dense_sub_##s(T *y, int64_t n, const T *a, int64_t a_step,            \
                       bool conj_a, const T *x, int64_t x_step, int64_t k);

/* ---- whole matrices ---- */

/*
 * dense_adjoint_: out (n by m) becomes the transposed of in (m by n), or with
 * conj_in its adjoint.
 * dense_solve_: x (n by m) becomes op(a)^-1 x, of which a (n by n) only one
 * triangle is read; `unit` says that its diagonal is all ones.
 * dense_lu_: a becomes its factors, row i of which was row perm[i]; returns
 * the sign of the permutation. The diagonal has a zero when a is singular.
 * dense_cholesky_: a becomes the upper triangle of U, a = U^H U, and below it
 * stays what it was; false when a is not positive. Its upper triangle is read.
 */
#define DENSE_DECL(s, T, A, DT, LD, ST)                                        \
    void dense_adjoint_##s(T *out, const T *in, int64_t m, int64_t n,          \
                           bool conj_in);                                      \
    void dense_solve_##s(T *x, int64_t n, int64_t m, const T *a, bool lower,   \
                         bool adjoint, bool unit);                             \
    int dense_lu_##s(T *a, int64_t n, int64_t *perm);                          \
    bool dense_cholesky_##s(T *a, int64_t n);

TYPES_DENSE(DENSE_SUB_DECL)
TYPES_DENSE(DENSE_DECL)

#endif
