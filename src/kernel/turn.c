/*
 * Transposing by squares, for each kind of CPU.
 *
 * A square is as wide as a vector, so that each line of the cache that it
 * touches is read or written whole, once: strides that are a power of two put
 * all lines of a square into one set of the cache, which would not keep them.
 * In registers a square takes log2 steps: elements of two rows are
 * interleaved, then pairs of them, then quarters of vectors are exchanged.
 * What is left at the edges goes by smaller squares, and then one by one.
 */
#include "kernel/turn.h"

#include "base/base.h"
#include "kernel/cpu.h"
#include "kernel/gemm_tile.h"

/* ---- four by four of 32 bits, two by two of 64 ---- */

typedef uint32_t quad __attribute__((vector_size(16), aligned(4), may_alias));
typedef uint64_t pair __attribute__((vector_size(16), aligned(8), may_alias));

static inline void square_32_base(uint32_t *to, int64_t a, const uint32_t *from,
                                  int64_t b)
{
    quad r0 = *(const quad *)from, r1 = *(const quad *)(from + b);
    quad r2 = *(const quad *)(from + 2 * b), r3 = *(const quad *)(from + 3 * b);
    quad t0 = __builtin_shufflevector(r0, r1, 0, 4, 1, 5);
    quad t1 = __builtin_shufflevector(r2, r3, 0, 4, 1, 5);
    quad t2 = __builtin_shufflevector(r0, r1, 2, 6, 3, 7);
    quad t3 = __builtin_shufflevector(r2, r3, 2, 6, 3, 7);

    *(quad *)to = __builtin_shufflevector(t0, t1, 0, 1, 4, 5);
    *(quad *)(to + a) = __builtin_shufflevector(t0, t1, 2, 3, 6, 7);
    *(quad *)(to + 2 * a) = __builtin_shufflevector(t2, t3, 0, 1, 4, 5);
    *(quad *)(to + 3 * a) = __builtin_shufflevector(t2, t3, 2, 3, 6, 7);
}

static inline void square_64_base(uint64_t *to, int64_t a, const uint64_t *from,
                                  int64_t b)
{
    pair r0 = *(const pair *)from, r1 = *(const pair *)(from + b);

    *(pair *)to = __builtin_shufflevector(r0, r1, 0, 2);
    *(pair *)(to + a) = __builtin_shufflevector(r0, r1, 1, 3);
}

/* ---- a vector's width ---- */

#ifdef __x86_64__
#include <immintrin.h>

AVX512_TARGET static inline void
square_32_avx512(uint32_t *to, int64_t a, const uint32_t *from, int64_t b)
{
    __m512i r[16], t[16];

    GEMM_EACH (i, 16)
        r[i] = _mm512_loadu_si512(from + i * b);
    GEMM_EACH (i, 8) {
        t[2 * i] = _mm512_unpacklo_epi32(r[2 * i], r[2 * i + 1]);
        t[2 * i + 1] = _mm512_unpackhi_epi32(r[2 * i], r[2 * i + 1]);
    }
    /* Quarter q of r[4 * g + k] becomes column 4 * q + k of rows 4 * g… */
    GEMM_EACH (g, 4) {
        r[4 * g] = _mm512_unpacklo_epi64(t[4 * g], t[4 * g + 2]);
        r[4 * g + 1] = _mm512_unpackhi_epi64(t[4 * g], t[4 * g + 2]);
        r[4 * g + 2] = _mm512_unpacklo_epi64(t[4 * g + 1], t[4 * g + 3]);
        r[4 * g + 3] = _mm512_unpackhi_epi64(t[4 * g + 1], t[4 * g + 3]);
    }
    GEMM_EACH (k, 4) {
        __m512i lo0 = _mm512_shuffle_i32x4(r[k], r[4 + k], 0x44);
        __m512i hi0 = _mm512_shuffle_i32x4(r[k], r[4 + k], 0xee);
        __m512i lo1 = _mm512_shuffle_i32x4(r[8 + k], r[12 + k], 0x44);
        __m512i hi1 = _mm512_shuffle_i32x4(r[8 + k], r[12 + k], 0xee);

        _mm512_storeu_si512(to + k * a, _mm512_shuffle_i32x4(lo0, lo1, 0x88));
        _mm512_storeu_si512(to + (4 + k) * a,
                            _mm512_shuffle_i32x4(lo0, lo1, 0xdd));
        _mm512_storeu_si512(to + (8 + k) * a,
                            _mm512_shuffle_i32x4(hi0, hi1, 0x88));
        _mm512_storeu_si512(to + (12 + k) * a,
                            _mm512_shuffle_i32x4(hi0, hi1, 0xdd));
    }
}

AVX512_TARGET static inline void
square_64_avx512(uint64_t *to, int64_t a, const uint64_t *from, int64_t b)
{
    __m512i r[8];

    GEMM_EACH (g, 4) {
        __m512i even = _mm512_loadu_si512(from + 2 * g * b);
        __m512i odd = _mm512_loadu_si512(from + (2 * g + 1) * b);

        r[2 * g] = _mm512_unpacklo_epi64(even, odd);
        r[2 * g + 1] = _mm512_unpackhi_epi64(even, odd);
    }
    GEMM_EACH (k, 2) {
        __m512i lo0 = _mm512_shuffle_i64x2(r[k], r[2 + k], 0x44);
        __m512i hi0 = _mm512_shuffle_i64x2(r[k], r[2 + k], 0xee);
        __m512i lo1 = _mm512_shuffle_i64x2(r[4 + k], r[6 + k], 0x44);
        __m512i hi1 = _mm512_shuffle_i64x2(r[4 + k], r[6 + k], 0xee);

        _mm512_storeu_si512(to + k * a, _mm512_shuffle_i64x2(lo0, lo1, 0x88));
        _mm512_storeu_si512(to + (2 + k) * a,
                            _mm512_shuffle_i64x2(lo0, lo1, 0xdd));
        _mm512_storeu_si512(to + (4 + k) * a,
                            _mm512_shuffle_i64x2(hi0, hi1, 0x88));
        _mm512_storeu_si512(to + (6 + k) * a,
                            _mm512_shuffle_i64x2(hi0, hi1, 0xdd));
    }
}

AVX2_TARGET static inline void square_32_avx2(uint32_t *to, int64_t a,
                                              const uint32_t *from, int64_t b)
{
    __m256i r[8], t[8];

    GEMM_EACH (i, 8)
        r[i] = _mm256_loadu_si256((const __m256i *)(from + i * b));
    GEMM_EACH (i, 4) {
        t[2 * i] = _mm256_unpacklo_epi32(r[2 * i], r[2 * i + 1]);
        t[2 * i + 1] = _mm256_unpackhi_epi32(r[2 * i], r[2 * i + 1]);
    }
    GEMM_EACH (g, 2) {
        r[4 * g] = _mm256_unpacklo_epi64(t[4 * g], t[4 * g + 2]);
        r[4 * g + 1] = _mm256_unpackhi_epi64(t[4 * g], t[4 * g + 2]);
        r[4 * g + 2] = _mm256_unpacklo_epi64(t[4 * g + 1], t[4 * g + 3]);
        r[4 * g + 3] = _mm256_unpackhi_epi64(t[4 * g + 1], t[4 * g + 3]);
    }
    GEMM_EACH (k, 4) {
        _mm256_storeu_si256((__m256i *)(to + k * a),
                            _mm256_permute2x128_si256(r[k], r[4 + k], 0x20));
        _mm256_storeu_si256((__m256i *)(to + (4 + k) * a),
                            _mm256_permute2x128_si256(r[k], r[4 + k], 0x31));
    }
}

AVX2_TARGET static inline void square_64_avx2(uint64_t *to, int64_t a,
                                              const uint64_t *from, int64_t b)
{
    __m256i r[4];

    GEMM_EACH (g, 2) {
        const uint64_t *row = from + 2 * g * b;
        __m256i even = _mm256_loadu_si256((const __m256i *)row);
        __m256i odd = _mm256_loadu_si256((const __m256i *)(row + b));

        r[2 * g] = _mm256_unpacklo_epi64(even, odd);
        r[2 * g + 1] = _mm256_unpackhi_epi64(even, odd);
    }
    GEMM_EACH (k, 2) {
        _mm256_storeu_si256((__m256i *)(to + k * a),
                            _mm256_permute2x128_si256(r[k], r[2 + k], 0x20));
        _mm256_storeu_si256((__m256i *)(to + (2 + k) * a),
                            _mm256_permute2x128_si256(r[k], r[2 + k], 0x31));
    }
}
#endif

/* ---- all squares ---- */

#define REST(bits)                                                             \
    static void rest_##bits(uint##bits##_t *to, int64_t a,                     \
                            const uint##bits##_t *from, int64_t b,             \
                            int64_t rows, int64_t cols)                        \
    {                                                                          \
        for (int64_t i = 0; i < rows; i++)                                     \
            for (int64_t j = 0; j < cols; j++)                                 \
                to[i * a + j] = from[i + j * b];                               \
    }
REST(32)
REST(64)

/* Whole squares of SIDE; LESS takes the strips that are left. The rows of `to`
 * are followed: going down its columns instead, 1024 by 1024 took a seventh
 * longer. */
#define SQUARES(bits, kind, TARGET, SIDE, LESS)                                \
    TARGET static void turn_##bits##_##kind(                                   \
        uint##bits##_t *to, int64_t a, const uint##bits##_t *from, int64_t b,  \
        int64_t rows, int64_t cols)                                            \
    {                                                                          \
        int64_t r = rows / SIDE * SIDE, c = cols / SIDE * SIDE;                \
                                                                               \
        for (int64_t i = 0; i < r; i += SIDE)                                  \
            for (int64_t j = 0; j < c; j += SIDE)                              \
                square_##bits##_##kind(to + i * a + j, a, from + i + j * b,    \
                                       b);                                     \
        if (c < cols)                                                          \
            LESS(to + c, a, from + c * b, b, r, cols - c);                     \
        if (r < rows)                                                          \
            LESS(to + r * a, a, from + r, b, rows - r, cols);                  \
    }
SQUARES(32, base, BASE_TARGET, 4, rest_32)
SQUARES(64, base, BASE_TARGET, 2, rest_64)
#ifdef __x86_64__
SQUARES(32, avx2, AVX2_TARGET, 8, turn_32_base)
SQUARES(64, avx2, AVX2_TARGET, 4, turn_64_base)
SQUARES(32, avx512, AVX512_TARGET, 16, turn_32_avx2)
SQUARES(64, avx512, AVX512_TARGET, 8, turn_64_avx2)
#endif

#ifdef __x86_64__
#define TURN(bits)                                                             \
    void turn_##bits(uint##bits##_t *to, int64_t a,                            \
                     const uint##bits##_t *from, int64_t b, int64_t rows,      \
                     int64_t cols)                                             \
    {                                                                          \
        enum cpu_kind kind = cpu_kind();                                       \
                                                                               \
        (kind == CPU_AVX512 ? turn_##bits##_avx512                             \
         : kind == CPU_AVX2 ? turn_##bits##_avx2                               \
                            : turn_##bits##_base)(to, a, from, b, rows, cols); \
    }
#else
#define TURN(bits)                                                             \
    void turn_##bits(uint##bits##_t *to, int64_t a,                            \
                     const uint##bits##_t *from, int64_t b, int64_t rows,      \
                     int64_t cols)                                             \
    {                                                                          \
        turn_##bits##_base(to, a, from, b, rows, cols);                        \
    }
#endif
TURN(32)
TURN(64)
