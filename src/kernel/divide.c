/*
 * Division and remainders, element-wise.
 *
 * Of whole numbers: a zero anywhere in the divisor fails the op, but it must
 * not trap: the divisor may be a variable that another thread is just writing,
 * so the loops guard themselves as well. The least number divided by -1 wraps.
 */
#include "kernel/pointwise.h"
#include "kernel/vmath.h"

#define HAS_ZERO(s, T, A, DT, LD, ST)                                          \
    CLONES_##s static bool has_zero_##s(const struct tensor *t)                \
    {                                                                          \
        const T *y = t->data;                                                  \
        bool zero = false;                                                     \
                                                                               \
        for (int64_t i = 0; i < t->count; i++)                                 \
            zero |= y[i] == 0;                                                 \
        return zero;                                                           \
    }
TYPES_INT(HAS_ZERO)

/* TensorFlow knows the ops by name, and does not know its Truncate ones. */
static enum mst_code by_zero(struct op_ctx *c)
{
    if (!strncmp(c->node->def->name, "Truncate", 8))
        return op_fail(c, MST_INTERNAL,
                       "Unexpected error in binary operator (only integer div "
                       "and mod should have errors)");
    return op_fail(c, MST_INVALID_ARGUMENT, "Integer division by zero");
}

#define INT_DIVIDE(s, T, A, DT, LD, ST, op, EXPR)                              \
    BINARY_LOOP(s, T, A, LD, op, T, SAME, EXPR)                                \
    static enum mst_code op##_##s(struct op_ctx *c)                            \
    {                                                                          \
        /* Asked first: the result may be written over the divisor. */         \
        bool zero = op_in(c, 0)->count && has_zero_##s(op_in(c, 1));           \
        enum mst_code rc = pointwise_binary(c, 2, op##_loop_##s);              \
                                                                               \
        return !rc && zero ? by_zero(c) : rc;                                  \
    }

/* Truncated towards zero. */
#define QUOTIENT(x, y)                                                         \
    (y == 0 ? 0 : y == -1 ? 0 - (uint64_t)x : (uint64_t)(x / y))
#define REMAINDER(x, y) (y == 0 || y == -1 ? 0 : x % y)
/* The same for unsigned numbers, where -1 is nothing special. */
#define QUOTIENT_U(x, y)  (y == 0 ? 0 : x / y)
#define REMAINDER_U(x, y) (y == 0 ? 0 : x % y)
/* Towards minus infinity: one less, or the divisor more, where the signs of
 * remainder and divisor differ. */
#define FLOOR_QUOTIENT(x, y)                                                   \
    ({                                                                         \
        __typeof__(x + 0) r_ = REMAINDER(x, y);                                \
        (uint64_t) QUOTIENT(x, y) - (uint64_t)(r_ && (r_ < 0) != (y < 0));     \
    })
#define FLOOR_REMAINDER(x, y)                                                  \
    ({                                                                         \
        __typeof__(x + 0) r_ = REMAINDER(x, y);                                \
        r_ && (r_ < 0) != (y < 0) ? r_ + y : r_;                               \
    })

#define REAL_ROWS(op) TYPES_FLOAT(ROW, op) TYPES_INT(ROW, op)

/* ---- quotients ---- */

TYPES_FLOAT(BINARY, div, 0.5, x / y)
TYPES_COMPLEX(BINARY, div, 5, COMPLEX_DIV(x, y))
TYPES_SIGNED(INT_DIVIDE, div, QUOTIENT(x, y))
TYPES_UNSIGNED(INT_DIVIDE, div, QUOTIENT_U(x, y))
BINARY_DEF(div, "Div", SET_ARITHMETIC, REAL_ROWS(div) TYPES_COMPLEX(ROW, div));
BINARY_DEF(real_div, "RealDiv", SET_ARITHMETIC,
           TYPES_FLOAT(ROW, div) TYPES_COMPLEX(ROW, div));

#define TRUNCATE_DIV(R, x, y) trunc(R(x / y))
TYPES_FLOAT(BINARY_R, truncate_div, 0.5, TRUNCATE_DIV)
BINARY_DEF(truncate_div, "TruncateDiv", SET_ARITHMETIC,
           TYPES_FLOAT(ROW, truncate_div) TYPES_INT(ROW, div));

#define FLOOR_DIV(R, x, y) floor(R(x / y))
TYPES_FLOAT(BINARY_R, floor_div, 0.5, FLOOR_DIV)
TYPES_SIGNED(INT_DIVIDE, floor_div, FLOOR_QUOTIENT(x, y))
BINARY_DEF(floor_div, "FloorDiv", SET_ARITHMETIC,
           TYPES_FLOAT(ROW, floor_div) TYPES_SIGNED(ROW, floor_div)
               TYPES_UNSIGNED(ROW, div));

TYPES_FLOAT(BINARY, div_no_nan, 0.5, y == 0 ? 0 : x / y)
TYPES_COMPLEX(BINARY, div_no_nan, 5, y == 0 ? 0 : COMPLEX_DIV(x, y))
BINARY_DEF(div_no_nan, "DivNoNan",
           "{half, float, bfloat16, double, complex64, complex128}",
           TYPES_FLOAT(ROW, div_no_nan) TYPES_COMPLEX(ROW, div_no_nan));

TYPES_FLOAT(BINARY, xdivy, 0.5, x == 0 ? 0 : x / y)
TYPES_COMPLEX(BINARY, xdivy, 5, x == 0 ? 0 : COMPLEX_DIV(x, y))
BINARY_DEF(xdivy, "Xdivy",
           "{half, bfloat16, float, double, complex64, complex128}",
           TYPES_FLOAT(ROW, xdivy) TYPES_COMPLEX(ROW, xdivy));

/* ---- remainders: of the sign of x, or (floor) of the sign of y ---- */

TYPES_FLOAT_WIDE(BINARY, mod, 10, fmod(x, y))
TYPES_INDEX(INT_DIVIDE, mod, REMAINDER(x, y))
BINARY_DEF(mod, "Mod", "{int32, int64, half, bfloat16, float, double}",
           TYPES_FLOAT_WIDE(ROW, mod) TYPES_INDEX(ROW, mod));
BINARY_DEF(truncate_mod, "TruncateMod",
           "{int32, int64, bfloat16, half, float, double}",
           TYPES_FLOAT_WIDE(ROW, mod) TYPES_INDEX(ROW, mod));

#define FLOOR_MOD(R, x, y)                                                     \
    ({                                                                         \
        __typeof__(x + 0) r_ = R(fmod(x, y));                                  \
        r_ != 0 && (r_ < 0) != (y < 0) ? r_ + y : r_;                          \
    })
TYPES_FLOAT(BINARY_R, floor_mod, 10, FLOOR_MOD)
TYPES_SIGNED(INT_DIVIDE, floor_mod, FLOOR_REMAINDER(x, y))
TYPES_UNSIGNED(INT_DIVIDE, floor_mod, REMAINDER_U(x, y))
BINARY_DEF(floor_mod, "FloorMod", "realnumbertype", REAL_ROWS(floor_mod));
