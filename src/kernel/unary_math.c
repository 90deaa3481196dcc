/*
 * Element-wise functions of one input, as <math.h> has them.
 *
 * Each body is written once for all floating-point and complex types; half and
 * bfloat16 are computed in float. lgamma and digamma have no vector form.
 */
#include "kernel/pointwise.h"
#include "kernel/special.h"
#include "kernel/vmath.h"

#define MATH_DEF(stem, NAME, SET, ...)                                         \
    const struct op_def def_##stem = {                                         \
        .name = NAME,                                                          \
        .in = "x: T",                                                          \
        .out = "y: T",                                                         \
        .attr = "T: " SET,                                                     \
        .kernel = KERNELS(__VA_ARGS__),                                        \
    }

/* Of floating-point numbers and complex ones alike. */
#define MATH(stem, NAME, cost, EXPR)                                           \
    TYPES_FLOAT(UNARY, stem, cost, EXPR)                                       \
    TYPES_COMPLEX(UNARY, stem, 20 * (cost), EXPR)                              \
    MATH_DEF(stem, NAME, SET_MATH,                                             \
             TYPES_FLOAT(ROW, stem) TYPES_COMPLEX(ROW, stem))

#define MATH_REAL(stem, NAME, cost, EXPR)                                      \
    TYPES_FLOAT(UNARY, stem, cost, EXPR)                                       \
    MATH_DEF(stem, NAME, SET_FLOAT, TYPES_FLOAT(ROW, stem))

MATH(sqrt, "Sqrt", 0.5, sqrt(x));
MATH(rsqrt, "Rsqrt", 0.5, 1 / sqrt(x));
MATH(exp, "Exp", 1, exp(x));
MATH(sin, "Sin", 1, sin(x));
MATH(cos, "Cos", 1, cos(x));
MATH(tan, "Tan", 2, tan(x));
MATH(asin, "Asin", 2, asin(x));
MATH(acos, "Acos", 2, acos(x));
MATH(atan, "Atan", 2, atan(x));
MATH(sinh, "Sinh", 2, sinh(x));
MATH(cosh, "Cosh", 2, cosh(x));
MATH(asinh, "Asinh", 2, asinh(x));
MATH(acosh, "Acosh", 2, acosh(x));
MATH(atanh, "Atanh", 2, atanh(x));
MATH_REAL(erf, "Erf", 2, erf(x));
MATH_REAL(erfc, "Erfc", 2, erfc(x));

TYPES_FLOAT32(UNARY, tanh, 1, vmath_tanhf(x))
TYPES_FLOAT16(UNARY, tanh, 1, vmath_tanhf(x))
TYPES_FLOAT64(UNARY, tanh, 2, tanh(x))
TYPES_COMPLEX(UNARY, tanh, 40, tanh(x))
MATH_DEF(tanh, "Tanh", SET_MATH,
         TYPES_FLOAT(ROW, tanh) TYPES_COMPLEX(ROW, tanh));

/* The comparison holds for denormals, which are zero here; log() looks at bits
 * and is misled by them. */
TYPES_FLOAT(UNARY, log, 1, x == 0 ? -INFINITY : log(x))
TYPES_COMPLEX(UNARY, log, 20, log(x))
MATH_DEF(log, "Log", SET_MATH, TYPES_FLOAT(ROW, log) TYPES_COMPLEX(ROW, log));

/* In 16 bits TensorFlow takes the other form and rounds at each step. */
#define SIGMOID_R(R, x)                                                        \
    ({                                                                         \
        __typeof__(x + 0) e_ = R(exp(x));                                      \
        e_ == INFINITY ? 1 : e_ / R(1 + e_);                                   \
    })
TYPES_FLOAT_WIDE(UNARY, sigmoid, 1, 1 / (1 + exp(-x)))
TYPES_FLOAT16(UNARY_R, sigmoid, 2, SIGMOID_R)
TYPES_COMPLEX(UNARY, sigmoid, 20, 1 / (1 + exp(-x)))
MATH_DEF(sigmoid, "Sigmoid", SET_MATH,
         TYPES_FLOAT(ROW, sigmoid) TYPES_COMPLEX(ROW, sigmoid));

/* C has neither for complex numbers; near zero the plain formulas lose all
 * digits, so each part is found in a way that does not. */
#define COMPLEX_EXPM1(s, R, C)                                                 \
    static C cexpm1_##s(C z)                                                   \
    {                                                                          \
        R half = sin(cimag(z) / 2), e = expm1(creal(z));                       \
        R re = e * cos(cimag(z)) - 2 * half * half;                            \
                                                                               \
        return CMPLX_##s(re, (e + 1) * sin(cimag(z)));                         \
    }                                                                          \
    static C clog1p_##s(C z)                                                   \
    {                                                                          \
        R x = creal(z), y = cimag(z);                                          \
        R re = fabs(x) + fabs(y) < (R)0.5 ? log1p(x * (2 + x) + y * y) / 2     \
                                          : log(hypot(1 + x, y));              \
                                                                               \
        return CMPLX_##s(re, atan2(y, 1 + x));                                 \
    }
#define CMPLX_c64(re, im)  CMPLXF(re, im)
#define CMPLX_c128(re, im) CMPLX(re, im)
#ifndef CMPLX
#define CMPLX(re, im)  __builtin_complex((double)(re), (double)(im))
#define CMPLXF(re, im) __builtin_complex((float)(re), (float)(im))
#endif
COMPLEX_EXPM1(c64, float, float complex)
COMPLEX_EXPM1(c128, double, double complex)

#define COMPLEX_UNARY(s, T, A, DT, LD, ST, op, fn)                             \
    UNARY(s, T, A, DT, LD, ST, op, 40, fn##_##s(x))

TYPES_FLOAT(UNARY, expm1, 2, expm1(x))
TYPES_COMPLEX(COMPLEX_UNARY, expm1, cexpm1)
MATH_DEF(expm1, "Expm1", SET_MATH,
         TYPES_FLOAT(ROW, expm1) TYPES_COMPLEX(ROW, expm1));

TYPES_FLOAT(UNARY, log1p, 2, log1p(x))
TYPES_COMPLEX(COMPLEX_UNARY, log1p, clog1p)
MATH_DEF(log1p, "Log1p", SET_MATH,
         TYPES_FLOAT(ROW, log1p) TYPES_COMPLEX(ROW, log1p));

/* ---- the gamma function and its kin ---- */

/* The sign that lgamma() leaves in a global is nobody's; _r keeps threads
 * apart. */
static float lgamma_of_f32(float x)
{
    int sign;

    return lgammaf_r(x, &sign);
}

static double lgamma_of_f64(double x)
{
    int sign;

    return lgamma_r(x, &sign);
}

static double digamma_of_f64(double x)
{
    return special_digamma(x);
}

static float digamma_of_f32(float x)
{
    return (float)special_digamma(x);
}

#define SLOW(s, T, A, DT, LD, ST, op, fn)                                      \
    UNARY(s, T, A, DT, LD, ST, op, 40, fn(x))
#define SLOW_REAL(op)                                                          \
    TYPES_FLOAT32(SLOW, op, op##_of_f32)                                       \
    TYPES_HALF(SLOW, op, op##_of_f32) TYPES_FLOAT64(SLOW, op, op##_of_f64)
SLOW_REAL(lgamma)
MATH_DEF(lgamma, "Lgamma", SET_FLOAT,
         TYPES_FLOAT_WIDE(ROW, lgamma) TYPES_HALF(ROW, lgamma));

SLOW_REAL(digamma)
MATH_DEF(digamma, "Digamma", SET_FLOAT,
         TYPES_FLOAT_WIDE(ROW, digamma) TYPES_HALF(ROW, digamma));
