/*
 * Arithmetic of any float type, one number at a time, for kernels whose cost
 * is not in the arithmetic: computed in double and rounded to the type after
 * each operation. For + - * / and the square root that gives the bits of the
 * type's own arithmetic (a double has more than twice a float's digits, and 16
 * bit floats are computed in float everywhere).
 */
#ifndef KERNEL_REAL_H
#define KERNEL_REAL_H

#include <math.h>

#include "tensor/tensor.h"

static inline double real_load(const struct tensor *t, int64_t at)
{
    switch (t->dtype) {
    case DT_FLOAT:
        return TENSOR_DATA(t, float)[at];
    case DT_DOUBLE:
        return TENSOR_DATA(t, double)[at];
    case DT_HALF:
        return half_load(TENSOR_DATA(t, half_bits)[at]);
    default:
        return bf16_load(TENSOR_DATA(t, bf16_bits)[at]);
    }
}

static inline void real_store(const struct tensor *t, int64_t at, double x)
{
    switch (t->dtype) {
    case DT_FLOAT:
        TENSOR_DATA(t, float)[at] = (float)x;
        break;
    case DT_DOUBLE:
        TENSOR_DATA(t, double)[at] = x;
        break;
    case DT_HALF:
        TENSOR_DATA(t, half_bits)[at] = half_store((float)x);
        break;
    default:
        TENSOR_DATA(t, bf16_bits)[at] = bf16_store((float)x);
    }
}

static inline double real_round(enum dtype dt, double x)
{
    switch (dt) {
    case DT_FLOAT:
        return (float)x;
    case DT_HALF:
        return half_load(half_store((float)x));
    case DT_BFLOAT16:
        return bf16_load(bf16_store((float)x));
    default:
        return x;
    }
}

static inline double real_exp(enum dtype dt, double x)
{
    return dt == DT_DOUBLE ? exp(x) : real_round(dt, expf((float)x));
}

static inline double real_log(enum dtype dt, double x)
{
    return dt == DT_DOUBLE ? log(x) : real_round(dt, logf((float)x));
}

#endif
