/*
 * The innermost loops of convolutions: tiles as in gemm_tile.h, whose sum runs
 * over pieces that lie apart.
 *
 * A tile of R rows and V vectors is the sum over segments of k products each.
 * Row r of A is a + a_at[r], wherever that is; a segment adds its own place to
 * all of them. So the pixels under a window are multiplied where they lie, and
 * no matrix is made of them.
 */
#ifndef KERNEL_CONV_TILE_H
#define KERNEL_CONV_TILE_H

#include "kernel/gemm_tile.h"

struct conv_segment {
    int64_t a; /* added to the place of each row of A, in elements */
    int64_t b; /* the first row of B */
    int64_t k;
};

/* c[c_at[r] + j] (+)= sum over segments s and p < s.k of
 * a[a_at[r] + s.a + p * a_col] * b[(s.b + p) * b_row + j]. */
#define CONV_TILE_ARGS                                                         \
    const struct conv_segment *s, int64_t segments, const void *a,             \
        const int64_t *a_at, int64_t a_col, const void *b, int64_t b_row,      \
        void *c, const int64_t *c_at, bool add

struct conv_tiles {
    int lanes;
    int height[GEMM_HEIGHTS]; /* falling, the last is 1 */
    void (*one[GEMM_HEIGHTS])(CONV_TILE_ARGS);
    void (*two[GEMM_HEIGHTS])(CONV_TILE_ARGS);
};

#define CONV_TILE(name, TARGET, T, BYTES, R, V)                                \
    TARGET static void name##_##R##x##V(CONV_TILE_ARGS)                        \
    {                                                                          \
        typedef T vec __attribute__((vector_size(BYTES), aligned(sizeof(T)),   \
                                     may_alias));                              \
        enum { N = BYTES / (int)sizeof(T) };                                   \
        T *z = c;                                                              \
        vec acc[R][V], row[V];                                                 \
                                                                               \
        GEMM_EACH (i, R)                                                       \
            GEMM_EACH (j, V) {                                                 \
                acc[i][j] = (vec){ 0 };                                        \
                __builtin_prefetch(z + c_at[i] + j * N, 1);                    \
            }                                                                  \
        for (const struct conv_segment *end = s + segments; s < end; s++) {    \
            const T *x[R], *y = (const T *)b + s->b * b_row;                   \
            int64_t last = s->k * a_col;                                       \
                                                                               \
            GEMM_EACH (i, R) {                                                 \
                x[i] = (const T *)a + a_at[i] + s->a;                          \
            }                                                                  \
            for (int64_t p = 0; p < last; p += a_col, y += b_row) {            \
                GEMM_EACH (j, V) {                                             \
                    row[j] = *(const vec *)(y + j * N);                        \
                }                                                              \
                GEMM_EACH (i, R)                                               \
                    GEMM_EACH (j, V) {                                         \
                        acc[i][j] += x[i][p] * row[j];                         \
                    }                                                          \
            }                                                                  \
        }                                                                      \
        if (add)                                                               \
            GEMM_EACH (i, R)                                                   \
                GEMM_EACH (j, V) {                                             \
                    acc[i][j] += *(const vec *)(z + c_at[i] + j * N);          \
                }                                                              \
        GEMM_EACH (i, R)                                                       \
            GEMM_EACH (j, V) {                                                 \
                *(vec *)(z + c_at[i] + j * N) = acc[i][j];                     \
            }                                                                  \
    }

#define CONV_TILES(name, TARGET, T, BYTES, R, S, Q)                            \
    CONV_TILE(name, TARGET, T, BYTES, R, 1)                                    \
    CONV_TILE(name, TARGET, T, BYTES, S, 1)                                    \
    CONV_TILE(name, TARGET, T, BYTES, Q, 1)                                    \
    CONV_TILE(name, TARGET, T, BYTES, 1, 1)                                    \
    CONV_TILE(name, TARGET, T, BYTES, R, 2)                                    \
    CONV_TILE(name, TARGET, T, BYTES, S, 2)                                    \
    CONV_TILE(name, TARGET, T, BYTES, Q, 2)                                    \
    CONV_TILE(name, TARGET, T, BYTES, 1, 2)                                    \
    static const struct conv_tiles name##_tiles = {                            \
        BYTES / (int)sizeof(T),                                                \
        { R, S, Q, 1 },                                                        \
        { name##_##R##x1, name##_##S##x1, name##_##Q##x1, name##_1x1 },        \
        { name##_##R##x2, name##_##S##x2, name##_##Q##x2, name##_1x2 },        \
    };

/* float, double or int32. */
const struct conv_tiles *conv_tiles_of(enum dtype dt);

static inline int conv_height_index(const struct conv_tiles *t, int64_t rows)
{
    int i = 0;

    while (t->height[i] > rows)
        i++;
    return i;
}

/* One tile, of the i-th height and n columns, at the edge on a copy. */
void conv_tile(const struct conv_tiles *t, size_t size, int i, int64_t n,
               CONV_TILE_ARGS);

#endif
