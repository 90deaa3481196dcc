/*
 * One kernel body for many element types: the one pattern of the tree.
 *
 * A body is written once as a macro over (s, T, A, DT, LD, ST):
 *   s  suffix of the function's name: f32
 *   T  how an element is stored: float, uint16_t for half
 *   A  in what it is computed: float, also for half
 *   DT the dtype
 *   LD, ST  from T to A and back
 * and expanded over a list of types; the same list makes the op's kernel
 * table:
 *
 *   #define NEG(s, T, A, DT, LD, ST) static enum mst_code neg_##s(…) { … }
 *   TYPES_NUMBER(NEG)
 *   #define NEG_ROW(s, T, A, DT, LD, ST) { DT, neg_##s },
 *   static const struct op_kernel neg_kernels[] = { TYPES_NUMBER(NEG_ROW)
 *                                                   { 0 } };
 */
#ifndef KERNEL_TYPES_H
#define KERNEL_TYPES_H

#include <complex.h>
#include <string.h>

#include "op/op.h"

#define SAME(x) (x)

/* <complex.h> has `I`, which the tree wants for itself. */
#undef I

#define TYPES_FLOAT32(X) X(f32, float, float, DT_FLOAT, SAME, SAME)
#define TYPES_FLOAT64(X) X(f64, double, double, DT_DOUBLE, SAME, SAME)
#define TYPES_FLOAT16(X)                                                       \
    X(f16, half_bits, float, DT_HALF, half_load, half_store)                   \
    X(bf16, bf16_bits, float, DT_BFLOAT16, bf16_load, bf16_store)
#define TYPES_FLOAT(X) TYPES_FLOAT32(X) TYPES_FLOAT64(X) TYPES_FLOAT16(X)

#define TYPES_SIGNED(X)                                                        \
    X(i8, int8_t, int8_t, DT_INT8, SAME, SAME)                                 \
    X(i16, int16_t, int16_t, DT_INT16, SAME, SAME)                             \
    X(i32, int32_t, int32_t, DT_INT32, SAME, SAME)                             \
    X(i64, int64_t, int64_t, DT_INT64, SAME, SAME)
#define TYPES_UNSIGNED(X)                                                      \
    X(u8, uint8_t, uint8_t, DT_UINT8, SAME, SAME)                              \
    X(u16, uint16_t, uint16_t, DT_UINT16, SAME, SAME)                          \
    X(u32, uint32_t, uint32_t, DT_UINT32, SAME, SAME)                          \
    X(u64, uint64_t, uint64_t, DT_UINT64, SAME, SAME)
#define TYPES_INT(X) TYPES_SIGNED(X) TYPES_UNSIGNED(X)
#define TYPES_INDEX(X)                                                         \
    X(i32, int32_t, int32_t, DT_INT32, SAME, SAME)                             \
    X(i64, int64_t, int64_t, DT_INT64, SAME, SAME)

#define TYPES_REAL(X) TYPES_FLOAT(X) TYPES_INT(X)
#define TYPES_COMPLEX(X)                                                       \
    X(c64, float complex, float complex, DT_COMPLEX64, SAME, SAME)             \
    X(c128, double complex, double complex, DT_COMPLEX128, SAME, SAME)
#define TYPES_NUMBER(X) TYPES_REAL(X) TYPES_COMPLEX(X)
#define TYPES_BOOL(X)   X(b, bool, bool, DT_BOOL, SAME, SAME)

#endif
