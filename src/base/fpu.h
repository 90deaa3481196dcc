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

/* The setting as it is, for fpu_restore(). */
static inline unsigned long fpu_control(void)
{
#if defined(__x86_64__)
    return _mm_getcsr();
#elif defined(__aarch64__)
    unsigned long control;

    __asm__ volatile("mrs %0, fpcr" : "=r"(control));
    return control;
#else
    return 0;
#endif
}

static inline void fpu_restore(unsigned long control)
{
#if defined(__x86_64__)
    _mm_setcsr((unsigned)control);
#elif defined(__aarch64__)
    __asm__ volatile("msr fpcr, %0" : : "r"(control));
#endif
}

static inline void fpu_flush_denormals(void)
{
#if defined(__x86_64__)
    fpu_restore(fpu_control() | 0x8040); /* flush to zero, denormals are zero */
#elif defined(__aarch64__)
    fpu_restore(fpu_control() | 1ul << 24);
#endif
}

#endif
