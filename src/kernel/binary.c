/*
 * Element-wise arithmetic of two inputs: sums, products, extremes. Division is
 * in divide.c, functions in binary_math.c, comparisons in compare.c.
 */
#include "base/mem.h"
#include "kernel/pointwise.h"
#include "kernel/vmath.h"

/* ---- sums and products; 1u keeps uint16 from being multiplied as int ---- */

#define ARITHMETIC_ROWS(op)                                                    \
    TYPES_FLOAT(ROW, op)                                                       \
    TYPES_UNSIGNED(ROW, op)                                                    \
    TYPES_SIGNED_WRAP(ROW, op) TYPES_COMPLEX(ROW, op)

TYPES_FLOAT(BINARY, add, 0.4, x + y)
TYPES_UNSIGNED(BINARY, add, 0.4, x + y)
TYPES_COMPLEX(BINARY, add, 0.8, x + y)
BINARY_DEF(add_v2, "AddV2",
           "{bfloat16, half, float, double, uint8, uint16, uint32, uint64, "
           "int8, int16, int32, int64, complex64, complex128}",
           ARITHMETIC_ROWS(add));

static struct str *str_at(const struct str *s, int64_t i, bool one)
{
    return (struct str *)&s[one ? 0 : i];
}

static void add_strings(void *out_, const void *xs, const void *ys, int64_t n,
                        enum pointwise_span span, float p)
{
    struct str *out = out_;

    for (int64_t i = 0; i < n; i++) {
        const struct str *x = str_at(xs, i, span == SPAN_X_ONE);
        const struct str *y = str_at(ys, i, span == SPAN_Y_ONE);
        size_t len = x->len + y->len;

        if (!len)
            continue;
        out[i].data = mem_new(len);
        out[i].len = len;
        if (x->len)
            memcpy(out[i].data, x->data, x->len);
        if (y->len)
            memcpy(out[i].data + x->len, y->data, y->len);
    }
}

static enum mst_code add_string(struct op_ctx *c)
{
    return pointwise_binary(c, 50, add_strings);
}

BINARY_DEF(add, "Add",
           "{bfloat16, half, float, double, uint8, int8, int16, int32, int64, "
           "complex64, complex128, string}",
           ARITHMETIC_ROWS(add){ DT_STRING, add_string }, );

TYPES_FLOAT(BINARY, sub, 0.4, x - y)
TYPES_UNSIGNED(BINARY, sub, 0.4, x - y)
TYPES_COMPLEX(BINARY, sub, 0.8, x - y)
BINARY_DEF(sub, "Sub", SET_ARITHMETIC, ARITHMETIC_ROWS(sub));

TYPES_FLOAT(BINARY, mul, 0.4, x *y)
TYPES_UNSIGNED(BINARY, mul, 0.4, 1u * x * y)
TYPES_COMPLEX(BINARY, mul, 3, x *y)
BINARY_DEF(mul, "Mul", SET_ARITHMETIC, ARITHMETIC_ROWS(mul));

TYPES_FLOAT(BINARY, mul_no_nan, 0.4, y == 0 ? 0 : x * y)
TYPES_COMPLEX(BINARY, mul_no_nan, 3, y == 0 ? 0 : x * y)
BINARY_DEF(mul_no_nan, "MulNoNan", SET_MATH,
           TYPES_FLOAT(ROW, mul_no_nan) TYPES_COMPLEX(ROW, mul_no_nan));

#define SQUARED_DIFFERENCE(R, x, y)                                            \
    ({                                                                         \
        __typeof__(x + 0) d_ = R(x - y);                                       \
        d_ *d_;                                                                \
    })
#define SQUARED_DIFFERENCE_C(R, x, y)                                          \
    ({                                                                         \
        __typeof__(x + 0) d_ = x - y;                                          \
        d_ *conj(d_);                                                          \
    })
TYPES_FLOAT(BINARY_R, squared_difference, 0.4, SQUARED_DIFFERENCE)
TYPES_INDEX_WRAP(BINARY_R, squared_difference, 0.4, SQUARED_DIFFERENCE)
TYPES_COMPLEX(BINARY_R, squared_difference, 3, SQUARED_DIFFERENCE_C)
BINARY_DEF(squared_difference, "SquaredDifference",
           "{bfloat16, half, float, double, int32, int64, complex64, "
           "complex128}",
           TYPES_FLOAT(ROW, squared_difference)
               TYPES_INDEX_WRAP(ROW, squared_difference)
                   TYPES_COMPLEX(ROW, squared_difference));

/* ---- extremes: a NaN on either side wins ---- */

TYPES_FLOAT(BINARY, maximum, 0.4, x > y || x != x ? x : y)
TYPES_INT(BINARY, maximum, 0.4, x > y ? x : y)
BINARY_DEF(maximum, "Maximum", "realnumbertype", TYPES_REAL(ROW, maximum));

TYPES_FLOAT(BINARY, minimum, 0.4, x < y || x != x ? x : y)
TYPES_INT(BINARY, minimum, 0.4, x < y ? x : y)
BINARY_DEF(minimum, "Minimum", "realnumbertype", TYPES_REAL(ROW, minimum));

/* ---- bits ---- */

#define BITS_ROWS(op) TYPES_UNSIGNED(ROW, op) TYPES_SIGNED_WRAP(ROW, op)

TYPES_UNSIGNED(BINARY, bitwise_and, 0.4, x &y)
BINARY_DEF(bitwise_and, "BitwiseAnd", SET_BITS, BITS_ROWS(bitwise_and));

TYPES_UNSIGNED(BINARY, bitwise_or, 0.4, x | y)
BINARY_DEF(bitwise_or, "BitwiseOr", SET_BITS, BITS_ROWS(bitwise_or));

TYPES_UNSIGNED(BINARY, bitwise_xor, 0.4, x ^ y)
BINARY_DEF(bitwise_xor, "BitwiseXor", SET_BITS, BITS_ROWS(bitwise_xor));

/* A shift by less than nothing is none, by more than there are bits one by all
 * but one. The signed ones look at their count as such. */
#define SHIFT_BY(x, y) ((int)((y) >= 8 * sizeof(x) ? 8 * sizeof(x) - 1 : (y)))
#define SHIFT_BY_SIGNED(x, y)                                                  \
    ((int)((y) < 0                       ? 0                                   \
           : (y) >= (int)(8 * sizeof(x)) ? (int)(8 * sizeof(x)) - 1            \
                                         : (y)))
TYPES_UNSIGNED(BINARY, left_shift, 0.5, (uint64_t)x << SHIFT_BY(x, y))
TYPES_SIGNED(BINARY, left_shift, 0.5, (uint64_t)x << SHIFT_BY_SIGNED(x, y))
BINARY_DEF(left_shift, "LeftShift", SET_BITS, TYPES_INT(ROW, left_shift));

TYPES_UNSIGNED(BINARY, right_shift, 0.5, x >> SHIFT_BY(x, y))
TYPES_SIGNED(BINARY, right_shift, 0.5, x >> SHIFT_BY_SIGNED(x, y))
BINARY_DEF(right_shift, "RightShift", SET_BITS, TYPES_INT(ROW, right_shift));

/* ---- truth ---- */

TYPES_BOOL(BINARY, logical_and, 0.1, x &y)
TYPES_BOOL(BINARY, logical_or, 0.1, x | y)

const struct op_def def_logical_and = {
    .name = "LogicalAnd",
    .in = "x: bool, y: bool",
    .out = "z: bool",
    .kernel = KERNELS({ DT_ANY, logical_and_b }, ),
};

const struct op_def def_logical_or = {
    .name = "LogicalOr",
    .in = "x: bool, y: bool",
    .out = "z: bool",
    .kernel = KERNELS({ DT_ANY, logical_or_b }, ),
};
