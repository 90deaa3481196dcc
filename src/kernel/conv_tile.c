/*
 * The tiles of convolutions for each type and kind of CPU.
 */
#include "tensor/dtype.h"

#include "kernel/conv_tile.h"
#include "kernel/cpu.h"

#include <string.h>

CONV_TILES(f32_base, BASE_TARGET, float, 16, 4, 3, 2)
CONV_TILES(f64_base, BASE_TARGET, double, 16, 4, 3, 2)
CONV_TILES(u32_base, BASE_TARGET, uint32_t, 16, 4, 3, 2)

#ifdef __x86_64__
CONV_TILES(f32_avx2, AVX2_TARGET, float, 32, 6, 4, 2)
CONV_TILES(f64_avx2, AVX2_TARGET, double, 32, 6, 4, 2)
CONV_TILES(u32_avx2, AVX2_TARGET, uint32_t, 32, 6, 4, 2)
CONV_TILES(f32_avx512, AVX512_TARGET, float, 64, 8, 4, 2)
CONV_TILES(f64_avx512, AVX512_TARGET, double, 64, 8, 4, 2)
CONV_TILES(u32_avx512, AVX512_TARGET, uint32_t, 64, 8, 4, 2)
#endif

const struct conv_tiles *conv_tiles_of(enum dtype dt)
{
#ifdef __x86_64__
    enum cpu_kind kind = cpu_kind();

    if (kind == CPU_AVX512)
        return dt == DT_FLOAT    ? &f32_avx512_tiles
               : dt == DT_DOUBLE ? &f64_avx512_tiles
                                 : &u32_avx512_tiles;
    if (kind == CPU_AVX2)
        return dt == DT_FLOAT    ? &f32_avx2_tiles
               : dt == DT_DOUBLE ? &f64_avx2_tiles
                                 : &u32_avx2_tiles;
#endif
    return dt == DT_FLOAT    ? &f32_base_tiles
           : dt == DT_DOUBLE ? &f64_base_tiles
                             : &u32_base_tiles;
}

void conv_tile(const struct conv_tiles *t, size_t size, int i, int64_t n,
               CONV_TILE_ARGS)
{
    _Alignas(64) char copy[HEIGHT_MAX * 2 * LANES_MAX * 4];
    bool two = n > t->lanes;
    void (*tile)(CONV_TILE_ARGS) = two ? t->two[i] : t->one[i];
    int w = two ? 2 * t->lanes : t->lanes;
    int64_t at[HEIGHT_MAX];
    size_t bytes = (size_t)n * size;

    if (n == w) {
        tile(s, segments, a, a_at, a_col, b, b_row, c, c_at, add);
        return;
    }
    for (int r = 0; r < t->height[i]; r++) {
        at[r] = (int64_t)r * w;
        if (add)
            memcpy(copy + (size_t)at[r] * size,
                   (char *)c + (size_t)c_at[r] * size, bytes);
    }
    tile(s, segments, a, a_at, a_col, b, b_row, copy, at, add);
    for (int r = 0; r < t->height[i]; r++)
        memcpy((char *)c + (size_t)c_at[r] * size, copy + (size_t)at[r] * size,
               bytes);
}
