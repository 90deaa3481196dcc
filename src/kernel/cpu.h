/* Which of the CPUs that the tiles are written for this one is. */
#ifndef KERNEL_CPU_H
#define KERNEL_CPU_H

enum cpu_kind { CPU_BASE, CPU_AVX2, CPU_AVX512 };

#define BASE_TARGET
#ifdef __x86_64__
#define AVX2_TARGET __attribute__((target("avx2,fma")))
#define AVX512_TARGET                                                          \
    __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")))
#endif

/* The widest vector of four-byte elements, and the most rows of a tile. */
#define LANES_MAX  16
#define HEIGHT_MAX 8

static inline enum cpu_kind cpu_kind(void)
{
#ifdef __x86_64__
    if (__builtin_cpu_supports("avx512f") &&
        __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512vl"))
        return CPU_AVX512;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return CPU_AVX2;
#endif
    return CPU_BASE;
}

#endif
