/*
 * Element-wise ops: the machines that run a loop over whole tensors, and the
 * macros that make the loops.
 *
 * A loop sees contiguous elements and nothing else. pointwise_unary() and
 * pointwise_binary() make the output (over an input's bytes where they can),
 * split the work over the pool, and walk shapes that are broadcast, so that an
 * op is its expression:
 *
 *   TYPES_FLOAT(UNARY, exp, 1, exp(x))
 *   TYPES_FLOAT(BINARY, sub, 0.5, x - y)
 *
 * `x` and `y` are the elements as the list's A; the number is about the
 * nanoseconds an element takes. Where TensorFlow rounds between the steps of
 * one op (half and bfloat16), the expression is a macro F(R, x, y) and R(v)
 * rounds: UNARY_R and BINARY_R.
 */
#ifndef KERNEL_POINTWISE_H
#define KERNEL_POINTWISE_H

#include "kernel/types.h"

/* Sets of types as the records of element-wise ops have them. */
#define SET_FLOAT "{bfloat16, half, float, double}"
#define SET_MATH  "{bfloat16, half, float, double, complex64, complex128}"
#define SET_SIGNED                                                             \
    "{bfloat16, half, float, double, int8, int16, int32, int64, complex64, "   \
    "complex128}"
#define SET_BITS "{int8, int16, int32, int64, uint8, uint16, uint32, uint64}"

#define SET_ARITHMETIC                                                         \
    "{bfloat16, half, float, double, uint8, int8, uint16, int16, int32, "      \
    "uint32, uint64, int64, complex64, complex128}"

/* The record of an op z = f(x, y). */
#define BINARY_DEF(stem, NAME, SET, ...)                                       \
    const struct op_def def_##stem = {                                         \
        .name = NAME,                                                          \
        .in = "x: T, y: T",                                                    \
        .out = "z: T",                                                         \
        .attr = "T: " SET,                                                     \
        .kernel = KERNELS(__VA_ARGS__),                                        \
    }

/* n elements of each; x or y may be a single one. */
enum pointwise_span { SPAN_BOTH, SPAN_X_ONE, SPAN_Y_ONE };

/* What node->state of an element-wise op points to, if to anything. */
struct pointwise_state {
    float p;   /* the op's float attribute, which its loops get */
    bool flag; /* its bool attribute */
};

/* Output 0 of input 0's shape: out[i] = f(in[i]). */
enum mst_code pointwise_unary(struct op_ctx *c, double cost_ns,
                              void (*loop)(void *out, const void *in, int64_t n,
                                           float p)) MUST_USE;
/* Output 0 of inputs 0 and 1, broadcast. */
enum mst_code pointwise_binary(struct op_ctx *c, double cost_ns,
                               void (*loop)(void *out, const void *x,
                                            const void *y, int64_t n,
                                            enum pointwise_span span,
                                            float p)) MUST_USE;
/* The same without broadcasting, for gradients: both have the same count. */
enum mst_code
pointwise_pair(struct op_ctx *c, double cost_ns,
               void (*loop)(void *out, const void *x, const void *y, int64_t n,
                            enum pointwise_span span, float p)) MUST_USE;

/* What an op does to its elements, for those who run it without the machines
 * above: kernel/fused.h. */
struct pointwise_op {
    void (*unary)(void *out, const void *in, int64_t n, float p);
    void (*binary)(void *out, const void *x, const void *y, int64_t n,
                   enum pointwise_span span, float p);
    bool pair; /* the inputs must have the same shape */
    float p;
    double cost_ns;
};

/* False when a node of floats is not element-wise. It is run to see. */
bool pointwise_find(const struct op_node *n, struct pointwise_op *ret);

/*
 * The quotient of two complex numbers, scaled so that it overflows only when
 * it must. C's own looks after infinities, which costs more and is not what
 * TensorFlow gives: there they make NaN.
 */
#define COMPLEX_DIV(x, y)                                                      \
    ({                                                                         \
        __typeof__((y) + 0) n_ = (x), d_ = (y);                                \
        __typeof__(__real__ d_) c_ = fabs(__real__ d_),                        \
                                e_ = fabs(__imag__ d_);                        \
        __typeof__(c_) s_ = c_ > e_ || c_ != c_ ? c_ : e_;                     \
                                                                               \
        n_ = __builtin_complex(__real__ n_ / s_, __imag__ n_ / s_);            \
        c_ = __real__ d_ / s_;                                                 \
        e_ = __imag__ d_ / s_;                                                 \
        s_ = c_ * c_ + e_ * e_;                                                \
        __builtin_complex((__real__ n_ * c_ + __imag__ n_ * e_) / s_,          \
                          (__imag__ n_ * c_ - __real__ n_ * e_) / s_);         \
    })

/* ---- rounding to the element's type and back, by suffix ---- */

#define ROUND_f32(v)  (v)
#define ROUND_f64(v)  (v)
#define ROUND_f16(v)  half_load(half_store(v))
#define ROUND_bf16(v) bf16_load(bf16_store(v))
#define ROUND_i8(v)   (v)
#define ROUND_i16(v)  (v)
#define ROUND_i32(v)  (v)
#define ROUND_i64(v)  (v)
#define ROUND_u8(v)   (v)
#define ROUND_u16(v)  (v)
#define ROUND_u32(v)  (v)
#define ROUND_u64(v)  (v)
#define ROUND_c64(v)  (v)
#define ROUND_c128(v) (v)

/* ---- loops of one input; O and OST: what the output's elements are ---- */

#define UNARY_LOOP(s, T, A, LD, op, O, OST, EXPR)                              \
    CLONES_##s static void op##_loop_##s(void *out_, const void *in_,          \
                                         int64_t n, float p)                   \
    {                                                                          \
        const T *in = in_;                                                     \
        O *out = out_;                                                         \
                                                                               \
        LOOP_IN_PLACE                                                          \
        for (int64_t i = 0; i < n; i++) {                                      \
            const A x = LD(in[i]);                                             \
                                                                               \
            out[i] = (O)OST(EXPR);                                             \
        }                                                                      \
    }
#define UNARY_RUN(s, op, cost)                                                 \
    static enum mst_code op##_##s(struct op_ctx *c)                            \
    {                                                                          \
        return pointwise_unary(c, cost, op##_loop_##s);                        \
    }

#define UNARY(s, T, A, DT, LD, ST, op, cost, EXPR)                             \
    UNARY_LOOP(s, T, A, LD, op, T, ST, (A)(EXPR))                              \
    UNARY_RUN(s, op, cost)
#define UNARY_R(s, T, A, DT, LD, ST, op, cost, F)                              \
    UNARY_LOOP(s, T, A, LD, op, T, ST, (A)(F(ROUND_##s, x)))                   \
    UNARY_RUN(s, op, cost)
/* To another type: bool, or the parts of a complex number. */
#define UNARY_TO(s, T, A, DT, LD, ST, op, cost, O, EXPR)                       \
    UNARY_LOOP(s, T, A, LD, op, O, SAME, EXPR)                                 \
    UNARY_RUN(s, op, cost)

/* ---- loops of two inputs ---- */

#define BINARY_EACH(A, LD, O, OST, XS, YS, EXPR)                               \
    LOOP_IN_PLACE                                                              \
    for (int64_t i = 0; i < n; i++) {                                          \
        const A x = LD(XS), y = LD(YS);                                        \
                                                                               \
        out[i] = (O)OST(EXPR);                                                 \
    }

#define BINARY_LOOP(s, T, A, LD, op, O, OST, EXPR)                             \
    CLONES_##s static void op##_loop_##s(void *out_, const void *x_,           \
                                         const void *y_, int64_t n,            \
                                         enum pointwise_span span, float p)    \
    {                                                                          \
        const T *xs = x_, *ys = y_;                                            \
        O *out = out_;                                                         \
                                                                               \
        if (span == SPAN_BOTH) {                                               \
            BINARY_EACH(A, LD, O, OST, xs[i], ys[i], EXPR)                     \
        } else if (span == SPAN_X_ONE) {                                       \
            const T x0 = xs[0];                                                \
                                                                               \
            BINARY_EACH(A, LD, O, OST, x0, ys[i], EXPR)                        \
        } else {                                                               \
            const T y0 = ys[0];                                                \
                                                                               \
            BINARY_EACH(A, LD, O, OST, xs[i], y0, EXPR)                        \
        }                                                                      \
    }
#define BINARY_RUN(s, op, cost)                                                \
    static enum mst_code op##_##s(struct op_ctx *c)                            \
    {                                                                          \
        return pointwise_binary(c, cost, op##_loop_##s);                       \
    }

#define BINARY(s, T, A, DT, LD, ST, op, cost, EXPR)                            \
    BINARY_LOOP(s, T, A, LD, op, T, ST, (A)(EXPR))                             \
    BINARY_RUN(s, op, cost)
#define BINARY_R(s, T, A, DT, LD, ST, op, cost, F)                             \
    BINARY_LOOP(s, T, A, LD, op, T, ST, (A)(F(ROUND_##s, x, y)))               \
    BINARY_RUN(s, op, cost)
#define BINARY_TO(s, T, A, DT, LD, ST, op, cost, O, EXPR)                      \
    BINARY_LOOP(s, T, A, LD, op, O, SAME, EXPR)                                \
    BINARY_RUN(s, op, cost)

/* Only SPAN_BOTH, for ops that do not broadcast. */
#define PAIR_LOOP(s, T, A, LD, ST, op, F)                                      \
    CLONES_##s static void op##_loop_##s(void *out_, const void *x_,           \
                                         const void *y_, int64_t n,            \
                                         enum pointwise_span span, float p)    \
    {                                                                          \
        const T *xs = x_, *ys = y_;                                            \
        T *out = out_;                                                         \
                                                                               \
        BINARY_EACH(A, LD, T, ST, xs[i], ys[i], (A)(F(ROUND_##s, x, y)))       \
    }

#endif
