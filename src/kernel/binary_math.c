/*
 * Element-wise functions of two inputs: powers, angles, x log y, and the
 * making of complex numbers.
 */
#include "kernel/pointwise.h"
#include "kernel/vmath.h"

/* ---- Pow ---- */

/* pow() looks at bits, and does not take a denormal exponent for zero. */
TYPES_FLOAT_WIDE(BINARY, pow, 3, y == 0 ? 1 : pow(x, y))
TYPES_FLOAT16(BINARY, pow, 3, pow(x, y))
TYPES_COMPLEX(BINARY, pow, 60, pow(x, y))

/* Of whole numbers, by squaring; it wraps. A negative exponent is refused
 * before, but may still be seen here while another thread writes it. */
#define INT_POW(s, T, A, DT, LD, ST)                                           \
    static T power_##s(T base, T exponent)                                     \
    {                                                                          \
        uint64_t b = (uint64_t)base, r = 1;                                    \
                                                                               \
        for (; exponent > 0; exponent /= 2, b *= b)                            \
            if (exponent & 1)                                                  \
                r *= b;                                                        \
        return (T)r;                                                           \
    }                                                                          \
    static bool has_negative_##s(const struct tensor *t)                       \
    {                                                                          \
        const T *y = t->data;                                                  \
        bool negative = false;                                                 \
                                                                               \
        for (int64_t i = 0; i < t->count; i++)                                 \
            negative |= y[i] < 0;                                              \
        return negative;                                                       \
    }                                                                          \
    BINARY_LOOP(s, T, A, LD, pow, T, SAME, power_##s(x, y))                    \
    static enum mst_code pow_##s(struct op_ctx *c)                             \
    {                                                                          \
        if (op_in(c, 0)->count && has_negative_##s(op_in(c, 1)))               \
            return op_fail(c, MST_INVALID_ARGUMENT,                            \
                           "Integers to negative integer powers are not "      \
                           "allowed");                                         \
        return pointwise_binary(c, 3, pow_loop_##s);                           \
    }
TYPES_SIGNED(INT_POW)

BINARY_DEF(pow, "Pow",
           "{bfloat16, float, half, double, int8, int16, int32, int64, "
           "complex64, complex128}",
           TYPES_FLOAT(ROW, pow) TYPES_SIGNED(ROW, pow)
               TYPES_COMPLEX(ROW, pow));

/* ---- angles and logarithms ---- */

TYPES_FLOAT(BINARY, atan2, 3, atan2(x, y))

const struct op_def def_atan2 = {
    .name = "Atan2",
    .in = "y: T, x: T",
    .out = "z: T",
    .attr = "T: " SET_FLOAT,
    .kernel = KERNELS(TYPES_FLOAT(ROW, atan2)),
};

#define SET_XLOGY "{half, bfloat16, float, double, complex64, complex128}"
/* The logarithm is taken of every y, so that the loop has no branch. */
#define XLOGY(R, x, y)                                                         \
    ({                                                                         \
        __typeof__(y + 0) l_ = R(log(y));                                      \
        x == 0 ? 0 : x *l_;                                                    \
    })
TYPES_FLOAT(BINARY_R, xlogy, 2, XLOGY)
TYPES_COMPLEX(BINARY_R, xlogy, 30, XLOGY)
BINARY_DEF(xlogy, "Xlogy", SET_XLOGY,
           TYPES_FLOAT(ROW, xlogy) TYPES_COMPLEX(ROW, xlogy));

#define XLOG1PY(R, x, y)                                                       \
    ({                                                                         \
        __typeof__(y + 0) l_ = R(log1p(y));                                    \
        x == 0 ? 0 : x *l_;                                                    \
    })
#define XLOG1PY_C(R, x, y) XLOGY(R, x, (y + 1))
TYPES_FLOAT(BINARY_R, xlog1py, 2, XLOG1PY)
TYPES_COMPLEX(BINARY_R, xlog1py, 30, XLOG1PY_C)
BINARY_DEF(xlog1py, "Xlog1py", SET_XLOGY,
           TYPES_FLOAT(ROW, xlog1py) TYPES_COMPLEX(ROW, xlog1py));

TYPES_FLOAT_WIDE(BINARY, next_after, 5, nextafter(x, y))

const struct op_def def_next_after = {
    .name = "NextAfter",
    .in = "x1: T, x2: T",
    .out = "output: T",
    .attr = "T: {double, float} = float",
    .kernel = KERNELS(TYPES_FLOAT_WIDE(ROW, next_after)),
};

/* ---- Complex ---- */

TYPES_FLOAT32(BINARY_TO, make_complex, 0.8, float complex,
              __builtin_complex(x, y))
TYPES_FLOAT64(BINARY_TO, make_complex, 0.8, double complex,
              __builtin_complex(x, y))

static enum mst_code complex_init(struct op_node *n, struct status *st)
{
    int want = n->in_types[0] == DT_FLOAT ? DT_COMPLEX64 : DT_COMPLEX128;

    if (n->out_types[0] == want)
        return MST_OK;
    return status_set(
        st, MST_INVALID_ARGUMENT,
        "No OpKernel was registered to support Op '%s' used by {{node %s}} "
        "with these attrs: [Tout=%s, T=%s]",
        n->def->name, n->name, dtype_name(n->out_types[0]),
        dtype_name(n->in_types[0]));
}

const struct op_def def_complex = {
    .name = "Complex",
    .in = "real: T, imag: T",
    .out = "out: Tout",
    .attr = "T: {float, double} = float; "
            "Tout: {complex64, complex128} = complex64",
    .init = complex_init,
    .kernel = KERNELS(TYPES_FLOAT_WIDE(ROW, make_complex)),
};
