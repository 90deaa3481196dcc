/*
 * The decompositions that are LAPACK's: QR, singular values, eigenvalues,
 * least squares, through LAPACKE. Matrices are in column-major order, without
 * gaps between columns. Each function returns LAPACK's info: 0, or more when it
 * did not converge.
 *
 * Work space comes from the caller: each function, called with work_size < 0,
 * touches nothing and says in *work how many elements it wants (at least 1).
 */
#ifndef KERNEL_LAPACK_H
#define KERNEL_LAPACK_H

#include "kernel/dense.h"

/* LAPACK counts in 32 bits, also the elements of its work space. */
bool lapack_fits(int64_t m, int64_t n);

/* The answer to a question for work space, which was rounded to a float. */
static inline int64_t lapack_size(double asked)
{
    return (int64_t)(asked * (1 + 0x1p-20)) + 1;
}

/*
 * lapack_qr_: a (m by n) becomes R, and below it the reflectors, with tau
 * (min(m, n) of them).
 * lapack_q_: a (m by k) becomes the first k columns of the orthogonal matrix
 * of the `reflectors` first reflectors in it.
 * lapack_svd_: a (m by n) = u diag(s) vt; job 'N' computes s only, 'S' as many
 * vectors as there are values, 'A' all. a is destroyed. `more` is room for
 * lapack_svd_more() bytes.
 * lapack_eigh_: the upper triangle of a hermitian a (n by n); job 'V' turns a
 * into the vectors, 'N' destroys it. The values w rise. `more` as above.
 * lapack_least_: x (max(m, n) by k) becomes the least of all solutions of the
 * least squares problem a x = b. pivots is room for n, more for 2 n numbers.
 */
#define LAPACK_DECL(s, T, A, DT, LD, ST)                                       \
    int lapack_qr_##s(int m, int n, T *a, T *tau, T *work, int work_size);     \
    int lapack_q_##s(int m, int k, int reflectors, T *a, const T *tau,         \
                     T *work, int work_size);                                  \
    int lapack_svd_##s(char job, int m, int n, T *a, real_##s *values, T *u,   \
                       T *vt, void *more, T *work, int work_size);             \
    int lapack_eigh_##s(char job, int n, T *a, real_##s *w, void *more,        \
                        T *work, int work_size);                               \
    int lapack_least_##s(int m, int n, int k, T *a, T *x, int *pivots,         \
                         real_##s rcond, real_##s *more, T *work,              \
                         int work_size);
TYPES_DENSE(LAPACK_DECL)

/* Bytes of `more`, enough for every type. */
size_t lapack_svd_more(int64_t m, int64_t n);
size_t lapack_eigh_more(int64_t n);

/* Eigenvalues w and, if v is not NULL, vectors v of any matrix a (n by n),
 * which is destroyed. Of real numbers, w has the real parts and then the
 * imaginary ones, v pairs of columns; see LAPACK's DGEEV. more: 2 n. */
int lapack_eig_f64(int n, double *a, double *w, double *v, double *more,
                   double *work, int work_size);
int lapack_eig_c128(int n, double complex *a, double complex *w,
                    double complex *v, double *more, double complex *work,
                    int work_size);
/* a = q t q^H: a becomes the triangle t. more: n numbers. */
int lapack_schur_c128(int n, double complex *a, double complex *w,
                      double complex *q, double *more, double complex *work,
                      int work_size);

#endif
