/*
 * The functions of <math.h>, for loops that the compiler turns into vectors.
 *
 * glibc has a vector form of each (libmvec, at most 4 units in the last place
 * off), but its header offers them only under -ffast-math, which would break
 * NaN and infinity everywhere else. So they are declared here, for gcc on
 * x86-64; elsewhere the loops call the scalar functions, with the same
 * meaning. exp() of float: 0.3 ns an element instead of 3.
 *
 * <tgmath.h> then makes one body serve float, double and complex: exp(x) is
 * expf, exp, cexpf or cexp by the type of x.
 */
#ifndef KERNEL_VMATH_H
#define KERNEL_VMATH_H

#include <math.h>

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

#include <tgmath.h>

/* <complex.h>, which <tgmath.h> includes, has it; the tree wants it. */
#undef I

#endif
