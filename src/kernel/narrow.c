#include "kernel/narrow.h"

#include "kernel/cpu.h"

VECTOR_CLONES RACY void narrow_load(enum dtype dt, float *to, const void *from,
                                    int64_t n)
{
    const uint16_t *bits = from;

    if (dt == DT_HALF)
        for (int64_t i = 0; i < n; i++)
            to[i] = half_load(bits[i]);
    else
        for (int64_t i = 0; i < n; i++)
            to[i] = bf16_load(bits[i]);
}

#define AHEAD 8 /* rows: they may lie a page apart */

#ifdef __x86_64__
#include <immintrin.h>

AVX512_TARGET static void half_rows_avx512(float *to, int64_t to_row,
                                           const uint16_t *from,
                                           int64_t from_row, int64_t rows,
                                           int64_t n)
{
    for (; rows; rows--, to += to_row, from += from_row) {
        int64_t i = 0;

        __builtin_prefetch(from + AHEAD * from_row);
        for (; i + 16 <= n; i += 16)
            _mm512_storeu_ps(to + i, _mm512_cvtph_ps(_mm256_loadu_si256(
                                         (const __m256i *)(from + i))));
        if (i < n) {
            __mmask16 rest = (__mmask16)((1u << (n - i)) - 1);

            _mm512_mask_storeu_ps(
                to + i, rest,
                _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(rest, from + i)));
        }
    }
}
#endif

VECTOR_CLONES static void load_rows(enum dtype dt, float *to, int64_t to_row,
                                    const uint16_t *from, int64_t from_row,
                                    int64_t rows, int64_t n)
{
    for (; rows; rows--, to += to_row, from += from_row) {
        __builtin_prefetch(from + AHEAD * from_row);
        if (dt == DT_HALF)
            for (int64_t i = 0; i < n; i++)
                to[i] = half_load(from[i]);
        else
            for (int64_t i = 0; i < n; i++)
                to[i] = bf16_load(from[i]);
    }
}

void narrow_load_rows(enum dtype dt, float *to, int64_t to_row,
                      const uint16_t *from, int64_t from_row, int64_t rows,
                      int64_t n)
{
#ifdef __x86_64__
    if (dt == DT_HALF && cpu_kind() == CPU_AVX512) {
        half_rows_avx512(to, to_row, from, from_row, rows, n);
        return;
    }
#endif
    load_rows(dt, to, to_row, from, from_row, rows, n);
}

VECTOR_CLONES RACY void narrow_store(enum dtype dt, void *to, const float *from,
                                     int64_t n)
{
    uint16_t *bits = to;

    if (dt == DT_HALF)
        for (int64_t i = 0; i < n; i++)
            bits[i] = half_store(from[i]);
    else
        for (int64_t i = 0; i < n; i++)
            bits[i] = bf16_store(from[i]);
}
