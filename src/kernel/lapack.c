/*
 * LAPACKE has each routine four times under names that differ in a letter;
 * here they become functions that differ in their suffix. The middle level of
 * LAPACKE is used (*_work): it neither allocates nor looks for NaN, which the
 * callers do.
 *
 * An optimised BLAS behind LAPACK may want threads of its own. The work is
 * already spread over ours, so it is told to use one. Denormals are needed by
 * these algorithms, and are switched on around each call.
 */
#include "kernel/lapack.h"

#include <lapacke.h>
#include <pthread.h>
#ifdef __SSE2__
#include <xmmintrin.h>
#endif

/* Of OpenBLAS and BLIS, if that is what Debian's alternatives have chosen. */
extern void openblas_set_num_threads(int) __attribute__((weak));
extern void bli_thread_set_num_threads(long) __attribute__((weak));

static pthread_once_t once = PTHREAD_ONCE_INIT;

static void one_thread(void)
{
    if (openblas_set_num_threads)
        openblas_set_num_threads(1);
    if (bli_thread_set_num_threads)
        bli_thread_set_num_threads(1);
}

static unsigned enter(void)
{
    unsigned was = 0;

    pthread_once(&once, one_thread);
#ifdef __SSE2__
    was = _mm_getcsr();
    _mm_setcsr(was & ~0x8040u); /* no flush to zero */
#endif
    return was;
}

static int leave(unsigned was, lapack_int info)
{
#ifdef __SSE2__
    _mm_setcsr(was);
#endif
    return (int)info;
}

#define CALL(name, ...)                                                        \
    ({                                                                         \
        unsigned was_ = enter();                                               \
                                                                               \
        leave(was_, LAPACKE_##name##_work(LAPACK_COL_MAJOR, __VA_ARGS__));     \
    })

bool lapack_fits(int64_t m, int64_t n)
{
    int64_t least = MIN(m, n), most = MAX(m, n);

    return most < INT32_MAX / 8 && (!least || most < INT32_MAX / 8 / least) &&
           least < 16384;
}

size_t lapack_svd_more(int64_t m, int64_t n)
{
    size_t least = (size_t)MIN(m, n), most = (size_t)MAX(m, n);
    size_t reals = MAX(5 * least * least + 7 * least,
                       2 * most * least + 2 * least * least + least);

    return (reals + 1) * sizeof(double) + 8 * (least + 1) * sizeof(int);
}

size_t lapack_eigh_more(int64_t n)
{
    size_t k = (size_t)n;

    return (1 + 5 * k + 2 * k * k) * sizeof(double) + (3 + 5 * k) * sizeof(int);
}

/* ---- all four types ---- */

#define QR(s, T, geqrf, ungqr)                                                 \
    int lapack_qr_##s(int m, int n, T *a, T *tau, T *work, int work_size)      \
    {                                                                          \
        return CALL(geqrf, m, n, a, MAX(m, 1), tau, work, work_size);          \
    }                                                                          \
    int lapack_q_##s(int m, int k, int reflectors, T *a, const T *tau,         \
                     T *work, int work_size)                                   \
    {                                                                          \
        return CALL(ungqr, m, k, reflectors, a, MAX(m, 1), tau, work,          \
                    work_size);                                                \
    }
QR(f32, float, sgeqrf, sorgqr)
QR(f64, double, dgeqrf, dorgqr)
QR(c64, float complex, cgeqrf, cungqr)
QR(c128, double complex, zgeqrf, zungqr)

/* `more` begins with whole numbers: eight for each singular value, three and
 * five for each eigenvalue; complex types have real numbers behind them. */
static void *reals_after(void *more, int64_t ints)
{
    return (uint8_t *)more + (size_t)(ints + (ints & 1)) * sizeof(int);
}

#define SVD(s, T, gesdd, ...)                                                  \
    int lapack_svd_##s(char job, int m, int n, T *a, real_##s *values, T *u,   \
                       T *vt, void *more, T *work, int work_size)              \
    {                                                                          \
        int rows = job == 'A' ? n : MIN(m, n);                                 \
                                                                               \
        return CALL(gesdd, job, m, n, a, m, values, u, m, vt, rows, work,      \
                    work_size, ##__VA_ARGS__, more);                           \
    }
SVD(f32, float, sgesdd)
SVD(f64, double, dgesdd)
SVD(c64, float complex, cgesdd, reals_after(more, 8 * MIN(m, n)))
SVD(c128, double complex, zgesdd, reals_after(more, 8 * MIN(m, n)))

#define EIGH_REAL(s, T, syevd)                                                 \
    int lapack_eigh_##s(char job, int n, T *a, T *w, void *more, T *work,      \
                        int work_size)                                         \
    {                                                                          \
        int ints;                                                              \
                                                                               \
        if (work_size < 0)                                                     \
            return CALL(syevd, job, 'U', n, a, n, w, work, -1, &ints, -1);     \
        return CALL(syevd, job, 'U', n, a, n, w, work, work_size, more,        \
                    3 + 5 * n);                                                \
    }
EIGH_REAL(f32, float, ssyevd)
EIGH_REAL(f64, double, dsyevd)

#define EIGH_COMPLEX(s, T, heevd)                                              \
    int lapack_eigh_##s(char job, int n, T *a, real_##s *w, void *more,        \
                        T *work, int work_size)                                \
    {                                                                          \
        real_##s reals;                                                        \
        int ints;                                                              \
                                                                               \
        if (work_size < 0)                                                     \
            return CALL(heevd, job, 'U', n, a, n, w, work, -1, &reals, -1,     \
                        &ints, -1);                                            \
        return CALL(heevd, job, 'U', n, a, n, w, work, work_size,              \
                    reals_after(more, 3 + 5 * n), 1 + 5 * n + 2 * n * n, more, \
                    3 + 5 * n);                                                \
    }
EIGH_COMPLEX(c64, float complex, cheevd)
EIGH_COMPLEX(c128, double complex, zheevd)

#define LEAST(s, T, gelsy, ...)                                                \
    int lapack_least_##s(int m, int n, int k, T *a, T *x, int *pivots,         \
                         real_##s rcond, real_##s *more, T *work,              \
                         int work_size)                                        \
    {                                                                          \
        int rank;                                                              \
                                                                               \
        return CALL(gelsy, m, n, k, a, m, x, MAX(m, n), pivots, rcond, &rank,  \
                    work, work_size, ##__VA_ARGS__);                           \
    }
LEAST(f32, float, sgelsy)
LEAST(f64, double, dgelsy)
LEAST(c64, float complex, cgelsy, more)
LEAST(c128, double complex, zgelsy, more)

/* ---- matrices that are not symmetric ---- */

int lapack_eig_f64(int n, double *a, double *w, double *v, double *more,
                   double *work, int work_size)
{
    return CALL(dgeev, 'N', v ? 'V' : 'N', n, a, n, w, w + n, NULL, 1, v, n,
                work, work_size);
}

int lapack_eig_c128(int n, double complex *a, double complex *w,
                    double complex *v, double *more, double complex *work,
                    int work_size)
{
    double one; /* is written when it only asks */

    return CALL(zgeev, 'N', v ? 'V' : 'N', n, a, n, w, NULL, 1, v, n, work,
                work_size, more ? more : &one);
}

int lapack_schur_c128(int n, double complex *a, double complex *w,
                      double complex *q, double *more, double complex *work,
                      int work_size)
{
    int sorted;

    return CALL(zgees, 'V', 'N', NULL, n, a, n, &sorted, w, q, n, work,
                work_size, more, NULL);
}
