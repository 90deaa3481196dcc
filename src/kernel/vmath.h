/*
 * The functions of <math.h>, for loops that the compiler turns into vectors.
 *
 * glibc has a vector form of each (libmvec, at most 4 units in the last place
 * off), but its header offers them only under -ffast-math, which would break
 * NaN and infinity everywhere else. So they are declared here, for gcc on
 * x86-64; elsewhere the loops call the scalar functions, with the same
 * meaning. exp() of float: 0.3 ns an element instead of 3. Two are written here
 * instead, to be part of a loop.
 *
 * <tgmath.h> then makes one body serve float, double and complex: exp(x) is
 * expf, exp, cexpf or cexp by the type of x.
 */
#ifndef KERNEL_VMATH_H
#define KERNEL_VMATH_H

#include <math.h>
#include <stdint.h>

#if defined(__x86_64__) && defined(__GLIBC__) && !defined(__clang__)
#if __GLIBC_PREREQ(2, 35)
#define VMATH1(name)                                                           \
    __attribute__((simd("notinbranch"))) extern double name(double);           \
    __attribute__((simd("notinbranch"))) extern float name##f(float);
#define VMATH2(name)                                                           \
    __attribute__((simd("notinbranch"))) extern double name(double, double);   \
    __attribute__((simd("notinbranch"))) extern float name##f(float, float);

VMATH1(acos)
VMATH1(acosh)
VMATH1(asin)
VMATH1(asinh)
VMATH1(atan)
VMATH1(atanh)
VMATH1(cos)
VMATH1(cosh)
VMATH1(erf)
VMATH1(erfc)
VMATH1(exp)
VMATH1(expm1)
VMATH1(log)
VMATH1(log1p)
VMATH1(sin)
VMATH1(sinh)
VMATH1(tan)
VMATH1(tanh)
VMATH2(atan2)
VMATH2(pow)
#endif
#endif

/*
 * tanh() of a float as x P(x^2) / Q(x^2), fitted to tanh on [-9.01, 9.01],
 * where it is one in float: at most 5 units in the last place off, as
 * TensorFlow's own is, and without a call.
 */
static inline float vmath_tanhf(float x)
{
    float y = x * x, r, p = -8.462367e-14f, q = 2.5454498e-4f;

    y = 81.1801f < y ? 81.1801f : y; /* NaN stays */
    p = p * y + 5.2678698e-11f;
    p = p * y - 2.0204629e-8f;
    p = p * y + 1.1149294e-5f;
    p = p * y + 3.10348e-3f;
    p = p * y + 0.13083585f;
    p = p * y + 1;
    q = q * y + 0.024493285f;
    q = q * y + 0.4641691f;
    q = q * y + 1;
    r = fabsf(x) * p / q;
    r = 1 < r ? 1 : r;
    return copysignf(r, x);
}

/*
 * exp() of a float that is not above zero: 2^n e^r with |r| <= log(2) / 2, and
 * e^r by its series, whose next term is 1/30 of the last place. What float
 * cannot hold is zero.
 */
static inline float vmath_exp_below(float x)
{
    const float shift = 0x1.8p23f; /* what is added to it is rounded */
    float c = x < -87 ? -87 : x, n = c * 0x1.715476p0f + shift, r, p;
    union {
        float f;
        int32_t i;
    } bits = { .f = n }, two;

    n -= shift;
    r = c - n * 0x1.62e4p-1f; /* log(2) in two parts */
    r = r - n * 0x1.7f7d1cp-20f;
    p = 1.f / 5040 * r + 1.f / 720;
    p = p * r + 1.f / 120;
    p = p * r + 1.f / 24;
    p = p * r + 1.f / 6;
    p = p * r + 0.5f;
    p = p * r + 1;
    p = p * r + 1;
    two.i = (int32_t)((uint32_t)(bits.i + 127) << 23);
    return x < -87 ? 0 : p * two.f;
}

#include <tgmath.h>

/* <complex.h>, which <tgmath.h> includes, has it; the tree wants it. */
#undef I

#endif
