/*
 * The innermost loops of matrix products, one for each height and width of a
 * tile of C that is kept in registers, for each kind of CPU.
 *
 * A tile of R rows and V vectors is the sum over p of a column of A, each
 * element spread over a vector, times V vectors of a row of B. R and V are
 * constants, so that the compiler unrolls them and keeps the tile in registers:
 * 8 x 2 of AVX-512's 32, 6 x 2 of AVX2's 16, 4 x 2 of SSE's 16.
 */
#ifndef KERNEL_GEMM_TILE_H
#define KERNEL_GEMM_TILE_H

#include "base/base.h"

/* c[r * c_row + j] (+)= sum over p of a[r * a_row + p * a_col] *
 * b[p * b_row + j]. */
#define GEMM_TILE_ARGS                                                         \
    int64_t k, const void *a, int64_t a_row, int64_t a_col, const void *b,     \
        int64_t b_row, void *c, int64_t c_row, bool add

#define GEMM_HEIGHTS 4

/* The loops for one type on one kind of CPU. */
struct gemm_tiles {
    int lanes;                                 /* elements of a vector */
    int height[GEMM_HEIGHTS];                  /* falling, the last is 1 */
    void (*one[GEMM_HEIGHTS])(GEMM_TILE_ARGS); /* one vector wide */
    void (*two[GEMM_HEIGHTS])(GEMM_TILE_ARGS); /* two */
    void (*eight)(GEMM_TILE_ARGS);             /* one row of eight vectors */
};

#ifdef __clang__
#define GEMM_UNROLL _Pragma("clang loop unroll(full)")
#else
#define GEMM_UNROLL _Pragma("GCC unroll 16")
#endif

/* A loop that is unrolled whole. */
#define GEMM_EACH(v, n) GEMM_UNROLL for (int v = 0; v < n; v++)

#define GEMM_TILE(name, TARGET, T, BYTES, R, V)                                \
    TARGET static void name##_##R##x##V(GEMM_TILE_ARGS)                        \
    {                                                                          \
        typedef T vec __attribute__((vector_size(BYTES), aligned(sizeof(T)),   \
                                     may_alias));                              \
        enum { N = BYTES / (int)sizeof(T) };                                   \
        const T *x = a, *y = b;                                                \
        T *z = c;                                                              \
        vec acc[R][V], row[V];                                                 \
                                                                               \
        GEMM_EACH (i, R)                                                       \
            GEMM_EACH (j, V) {                                                 \
                acc[i][j] = (vec){ 0 };                                        \
                __builtin_prefetch(z + i * c_row + j * N, 1);                  \
            }                                                                  \
        for (int64_t p = 0; p < k; p++, x += a_col, y += b_row) {              \
            GEMM_EACH (j, V) {                                                 \
                row[j] = *(const vec *)(y + j * N);                            \
            }                                                                  \
            GEMM_EACH (i, R)                                                   \
                GEMM_EACH (j, V) {                                             \
                    acc[i][j] += x[i * a_row] * row[j];                        \
                }                                                              \
        }                                                                      \
        if (add)                                                               \
            GEMM_EACH (i, R)                                                   \
                GEMM_EACH (j, V) {                                             \
                    acc[i][j] += *(const vec *)(z + i * c_row + j * N);        \
                }                                                              \
        GEMM_EACH (i, R)                                                       \
            GEMM_EACH (j, V) {                                                 \
                *(vec *)(z + i * c_row + j * N) = acc[i][j];                   \
            }                                                                  \
    }

/* All tiles of a type for one kind of CPU whose highest has R rows, and S, Q,
 * 1 as the lower ones. */
#define GEMM_TILES(name, TARGET, T, BYTES, R, S, Q)                            \
    GEMM_TILE(name, TARGET, T, BYTES, R, 1)                                    \
    GEMM_TILE(name, TARGET, T, BYTES, S, 1)                                    \
    GEMM_TILE(name, TARGET, T, BYTES, Q, 1)                                    \
    GEMM_TILE(name, TARGET, T, BYTES, 1, 1)                                    \
    GEMM_TILE(name, TARGET, T, BYTES, R, 2)                                    \
    GEMM_TILE(name, TARGET, T, BYTES, S, 2)                                    \
    GEMM_TILE(name, TARGET, T, BYTES, Q, 2)                                    \
    GEMM_TILE(name, TARGET, T, BYTES, 1, 2)                                    \
    GEMM_TILE(name, TARGET, T, BYTES, 1, 8)                                    \
    static const struct gemm_tiles name##_tiles = {                            \
        BYTES / (int)sizeof(T),                                                \
        { R, S, Q, 1 },                                                        \
        { name##_##R##x1, name##_##S##x1, name##_##Q##x1, name##_1x1 },        \
        { name##_##R##x2, name##_##S##x2, name##_##Q##x2, name##_1x2 },        \
        name##_1x8,                                                            \
    };

#endif
