/*
 * Element-wise ops of one input.
 *
 * One macro makes the loop of an op for one type, LOOP_UNARY; the result takes
 * the input's place in memory when nobody else has it. Large inputs are
 * split over the pool.
 */
#include "kernel/types.h"

struct unary_arg {
    const void *in;
    void *out;
};

#define LOOP_UNARY(op, s, T, A, LD, ST, EXPR)                                  \
    VECTOR_CLONES static void op##_loop_##s(void *p, int64_t begin,            \
                                            int64_t end)                       \
    {                                                                          \
        const struct unary_arg *a = p;                                         \
        const T *in = a->in;                                                   \
        T *out = a->out;                                                       \
                                                                               \
        for (int64_t i = begin; i < end; i++) {                                \
            A x = LD(in[i]);                                                   \
                                                                               \
            out[i] = (T)ST((A)(EXPR));                                         \
        }                                                                      \
    }                                                                          \
    static enum mst_code op##_##s(struct op_ctx *c)                            \
    {                                                                          \
        enum mst_code rc = op_out_forward(c, 0, 0);                            \
        struct unary_arg a = { op_in(c, 0)->data, op_out(c, 0)->data };        \
                                                                               \
        if (!rc)                                                               \
            op_for(c, op_out(c, 0)->count, 0.5, op##_loop_##s, &a);            \
        return rc;                                                             \
    }

#define NEG(s, T, A, DT, LD, ST)     LOOP_UNARY(neg, s, T, A, LD, ST, -x)
#define NEG_ROW(s, T, A, DT, LD, ST) { DT, neg_##s },
TYPES_NUMBER(NEG)

const struct op_def def_neg = {
    .name = "Neg",
    .in = "x: T",
    .out = "y: T",
    .attr = "T: {bfloat16, half, float, double, int8, int16, int32, int64, "
            "uint8, uint16, uint32, uint64, complex64, complex128}",
    .kernel = (const struct op_kernel[]){ TYPES_NUMBER(NEG_ROW){ 0 } },
};

#define SQUARE(s, T, A, DT, LD, ST)     LOOP_UNARY(square, s, T, A, LD, ST, x *x)
#define SQUARE_ROW(s, T, A, DT, LD, ST) { DT, square_##s },
TYPES_NUMBER(SQUARE)

const struct op_def def_square = {
    .name = "Square",
    .in = "x: T",
    .out = "y: T",
    .attr = "T: {bfloat16, half, float, double, int8, int16, int32, int64, "
            "uint8, uint16, uint32, uint64, complex64, complex128}",
    .kernel = (const struct op_kernel[]){ TYPES_NUMBER(SQUARE_ROW){ 0 } },
};
