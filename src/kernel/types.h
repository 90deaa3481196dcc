/*
 * One kernel body for many element types: the one pattern of the tree.
 *
 * A body is written once as a macro over (s, T, A, DT, LD, ST, …):
 *   s  suffix of the function's name: f32
 *   T  how an element is stored: float, uint16_t for half
 *   A  in what it is computed: float, also for half
 *   DT the dtype
 *   LD, ST  from T to A and back
 *   …  whatever else the list was given
 * and expanded over a list of types; the same list makes the op's kernel
 * table:
 *
 *   #define NEG(s, T, A, DT, LD, ST) static enum mst_code neg_##s(…) { … }
 *   TYPES_NUMBER(NEG)
 *   … .kernel = (const struct op_kernel[]){ TYPES_NUMBER(ROW, neg) { 0 } },
 *
 * Whole numbers wrap. Where signed and unsigned give the same bits, a body is
 * expanded for the unsigned types only and TYPES_SIGNED_WRAP makes the rows of
 * the signed ones, which also keeps the overflow defined.
 */
#ifndef KERNEL_TYPES_H
#define KERNEL_TYPES_H

#include <complex.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "op/op.h"

#define SAME(x) (x)

/*
 * Before a loop over elements that reads old values and writes new ones, which
 * may be the same memory: one element never depends on another, and the
 * compiler may take several at once.
 */
#if defined(__clang__)
#pragma clang diagnostic ignored "-Wpass-failed" /* it need not succeed */
#define IN_PLACE _Pragma("clang loop vectorize(assume_safety)")
#else
#define IN_PLACE _Pragma("GCC ivdep")
#endif

/* <complex.h> has `I`, which the tree wants for itself. */
#undef I

#define TYPES_FLOAT32(X, ...)                                                  \
    X(f32, float, float, DT_FLOAT, SAME, SAME, ##__VA_ARGS__)
#define TYPES_FLOAT64(X, ...)                                                  \
    X(f64, double, double, DT_DOUBLE, SAME, SAME, ##__VA_ARGS__)
#define TYPES_HALF(X, ...)                                                     \
    X(f16, half_bits, float, DT_HALF, half_load, half_store, ##__VA_ARGS__)
#define TYPES_BFLOAT16(X, ...)                                                 \
    X(bf16, bf16_bits, float, DT_BFLOAT16, bf16_load, bf16_store, ##__VA_ARGS__)
#define TYPES_FLOAT16(X, ...)                                                  \
    TYPES_HALF(X, ##__VA_ARGS__) TYPES_BFLOAT16(X, ##__VA_ARGS__)
#define TYPES_FLOAT_WIDE(X, ...)                                               \
    TYPES_FLOAT32(X, ##__VA_ARGS__) TYPES_FLOAT64(X, ##__VA_ARGS__)
#define TYPES_FLOAT(X, ...)                                                    \
    TYPES_FLOAT_WIDE(X, ##__VA_ARGS__) TYPES_FLOAT16(X, ##__VA_ARGS__)

#define TYPES_INT8(X, ...)                                                     \
    X(i8, int8_t, int8_t, DT_INT8, SAME, SAME, ##__VA_ARGS__)
#define TYPES_INT16(X, ...)                                                    \
    X(i16, int16_t, int16_t, DT_INT16, SAME, SAME, ##__VA_ARGS__)
#define TYPES_INDEX(X, ...)                                                    \
    X(i32, int32_t, int32_t, DT_INT32, SAME, SAME, ##__VA_ARGS__)              \
    X(i64, int64_t, int64_t, DT_INT64, SAME, SAME, ##__VA_ARGS__)
#define TYPES_SIGNED(X, ...)                                                   \
    TYPES_INT8(X, ##__VA_ARGS__)                                               \
    TYPES_INT16(X, ##__VA_ARGS__) TYPES_INDEX(X, ##__VA_ARGS__)
#define TYPES_UNSIGNED(X, ...)                                                 \
    X(u8, uint8_t, uint8_t, DT_UINT8, SAME, SAME, ##__VA_ARGS__)               \
    X(u16, uint16_t, uint16_t, DT_UINT16, SAME, SAME, ##__VA_ARGS__)           \
    X(u32, uint32_t, uint32_t, DT_UINT32, SAME, SAME, ##__VA_ARGS__)           \
    X(u64, uint64_t, uint64_t, DT_UINT64, SAME, SAME, ##__VA_ARGS__)
/* The signed types, handled as the unsigned ones of their width. */
#define TYPES_INDEX_WRAP(X, ...)                                               \
    X(u32, uint32_t, uint32_t, DT_INT32, SAME, SAME, ##__VA_ARGS__)            \
    X(u64, uint64_t, uint64_t, DT_INT64, SAME, SAME, ##__VA_ARGS__)
#define TYPES_SIGNED_WRAP(X, ...)                                              \
    X(u8, uint8_t, uint8_t, DT_INT8, SAME, SAME, ##__VA_ARGS__)                \
    X(u16, uint16_t, uint16_t, DT_INT16, SAME, SAME, ##__VA_ARGS__)            \
    TYPES_INDEX_WRAP(X, ##__VA_ARGS__)
#define TYPES_INT(X, ...)                                                      \
    TYPES_SIGNED(X, ##__VA_ARGS__) TYPES_UNSIGNED(X, ##__VA_ARGS__)

#define TYPES_REAL(X, ...)                                                     \
    TYPES_FLOAT(X, ##__VA_ARGS__) TYPES_INT(X, ##__VA_ARGS__)
#define TYPES_COMPLEX64(X, ...)                                                \
    X(c64, float complex, float complex, DT_COMPLEX64, SAME, SAME,             \
      ##__VA_ARGS__)
#define TYPES_COMPLEX128(X, ...)                                               \
    X(c128, double complex, double complex, DT_COMPLEX128, SAME, SAME,         \
      ##__VA_ARGS__)
#define TYPES_COMPLEX(X, ...)                                                  \
    TYPES_COMPLEX64(X, ##__VA_ARGS__) TYPES_COMPLEX128(X, ##__VA_ARGS__)
#define TYPES_NUMBER(X, ...)                                                   \
    TYPES_REAL(X, ##__VA_ARGS__) TYPES_COMPLEX(X, ##__VA_ARGS__)
#define TYPES_BOOL(X, ...) X(b, bool, bool, DT_BOOL, SAME, SAME, ##__VA_ARGS__)

/* A row of a kernel table: the function op_<suffix> for that dtype. */
#define ROW(s, T, A, DT, LD, ST, op) { DT, op##_##s },
/* The table of them: .kernel = KERNELS(TYPES_FLOAT(ROW, exp)). */
#define KERNELS(...)                                                           \
    (const struct op_kernel[])                                                 \
    {                                                                          \
        __VA_ARGS__                                                            \
        {                                                                      \
            0                                                                  \
        }                                                                      \
    }

/*
 * Which types are worth several versions of a loop, CLONES_<suffix>: those
 * that models are made of; 16-bit floats, which are taken apart in software,
 * gain the most. The rest is compiled once, for the least CPU.
 */
#define CLONES_f32  VECTOR_CLONES
#define CLONES_f64  VECTOR_CLONES
#define CLONES_i32  VECTOR_CLONES
#define CLONES_i64  VECTOR_CLONES
#define CLONES_u32  VECTOR_CLONES
#define CLONES_u64  VECTOR_CLONES
#define CLONES_f16  VECTOR_CLONES
#define CLONES_bf16 VECTOR_CLONES
#define CLONES_i8
#define CLONES_i16
#define CLONES_u8
#define CLONES_u16
#define CLONES_c64
#define CLONES_c128
#define CLONES_b

/* The least and the greatest value of a type, by suffix. */
#define LEAST_f32     -INFINITY
#define GREATEST_f32  INFINITY
#define LEAST_f64     -INFINITY
#define GREATEST_f64  INFINITY
#define LEAST_f16     -INFINITY
#define GREATEST_f16  INFINITY
#define LEAST_bf16    -INFINITY
#define GREATEST_bf16 INFINITY
#define LEAST_i8      INT8_MIN
#define GREATEST_i8   INT8_MAX
#define LEAST_i16     INT16_MIN
#define GREATEST_i16  INT16_MAX
#define LEAST_i32     INT32_MIN
#define GREATEST_i32  INT32_MAX
#define LEAST_i64     INT64_MIN
#define GREATEST_i64  INT64_MAX
#define LEAST_u8      0
#define GREATEST_u8   UINT8_MAX
#define LEAST_u16     0
#define GREATEST_u16  UINT16_MAX
#define LEAST_u32     0
#define GREATEST_u32  UINT32_MAX
#define LEAST_u64     0
#define GREATEST_u64  UINT64_MAX

/*
 * Before a loop whose output may lie exactly over one of its inputs: element i
 * depends on element i only, which the compiler cannot know.
 */
#ifdef __clang__
#define LOOP_IN_PLACE _Pragma("clang loop vectorize(assume_safety)")
#else
#define LOOP_IN_PLACE _Pragma("GCC ivdep")
#endif

#endif
