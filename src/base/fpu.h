/*
 * How this thread's floating-point unit treats denormal numbers.
 *
 * Threads that run kernels take them for zero and make none, as TensorFlow's
 * threads do: results agree also there, and arithmetic on them, many times
 * slower than on others, does not happen. The setting is a thread's own, and
 * is inherited by the threads that it starts.
 */
#ifndef BASE_FPU_H
#define BASE_FPU_H

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

static inline void fpu_flush_denormals(void)
{
#if defined(__x86_64__)
    _mm_setcsr(_mm_getcsr() | 0x8040); /* flush to zero, denormals are zero */
#elif defined(__aarch64__)
    unsigned long control;

    __asm__ volatile("mrs %0, fpcr" : "=r"(control));
    __asm__ volatile("msr fpcr, %0" : : "r"(control | 1ul << 24));
#endif
}

#endif
