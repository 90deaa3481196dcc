/*
 * Element-wise ops of one input that are plain arithmetic: signs, rounding,
 * tests, bits, parts of complex numbers. The functions of <math.h> are in
 * unary_math.c, activations in activation.c.
 */
#include "kernel/pointwise.h"
#include "kernel/variant.h"
#include "kernel/vmath.h"

#define UNARY_DEF(stem, NAME, SET, ...)                                        \
    const struct op_def def_##stem = {                                         \
        .name = NAME,                                                          \
        .in = "x: T",                                                          \
        .out = "y: T",                                                         \
        .attr = "T: " SET,                                                     \
        .kernel = KERNELS(__VA_ARGS__),                                        \
    }

/* ---- signs ---- */

TYPES_FLOAT(UNARY, neg, 0.3, -x)
TYPES_UNSIGNED(UNARY, neg, 0.3, 0u - x)
TYPES_COMPLEX(UNARY, neg, 0.6, -x)
UNARY_DEF(neg, "Neg", SET_SIGNED,
          TYPES_FLOAT(ROW, neg) TYPES_SIGNED_WRAP(ROW, neg)
              TYPES_COMPLEX(ROW, neg));

TYPES_FLOAT(UNARY, abs, 0.3, fabs(x))
TYPES_SIGNED(UNARY, abs, 0.3, x < 0 ? 0ull - (uint64_t)x : (uint64_t)x)
UNARY_DEF(abs, "Abs",
          "{bfloat16, half, float, double, int8, int16, int32, int64}",
          TYPES_FLOAT(ROW, abs) TYPES_SIGNED(ROW, abs));

TYPES_FLOAT(UNARY, sign, 0.3, x > 0 ? 1 : x < 0 ? -1 : x)
TYPES_SIGNED(UNARY, sign, 0.3, (x > 0) - (x < 0))
TYPES_COMPLEX(UNARY, sign, 5, x == 0 ? x : x / fabs(x))
UNARY_DEF(sign, "Sign", SET_SIGNED,
          TYPES_FLOAT(ROW, sign) TYPES_SIGNED(ROW, sign)
              TYPES_COMPLEX(ROW, sign));

/* ---- powers ---- */

/* 1u: two uint16 must not be multiplied as ints, which may overflow. */
TYPES_FLOAT(UNARY, square, 0.3, x *x)
TYPES_UNSIGNED(UNARY, square, 0.3, 1u * x * x)
TYPES_COMPLEX(UNARY, square, 2, x *x)
UNARY_DEF(square, "Square",
          "{bfloat16, half, float, double, int8, int16, int32, int64, uint8, "
          "uint16, uint32, uint64, complex64, complex128}",
          TYPES_FLOAT(ROW, square) TYPES_UNSIGNED(ROW, square)
              TYPES_SIGNED_WRAP(ROW, square) TYPES_COMPLEX(ROW, square));

TYPES_FLOAT(UNARY, reciprocal, 0.5, 1 / x)
TYPES_COMPLEX(UNARY, reciprocal, 5, COMPLEX_DIV(1, x))
#define RECIPROCAL_ROWS                                                        \
    TYPES_FLOAT(ROW, reciprocal) TYPES_COMPLEX(ROW, reciprocal)
UNARY_DEF(reciprocal, "Reciprocal", SET_SIGNED, RECIPROCAL_ROWS);
UNARY_DEF(inv, "Inv", SET_SIGNED, RECIPROCAL_ROWS);

/* ---- rounding; halves go to the even neighbour ---- */

TYPES_FLOAT(UNARY, floor, 0.3, floor(x))
UNARY_DEF(floor, "Floor", SET_FLOAT, TYPES_FLOAT(ROW, floor));

TYPES_FLOAT(UNARY, ceil, 0.3, ceil(x))
UNARY_DEF(ceil, "Ceil", SET_FLOAT, TYPES_FLOAT(ROW, ceil));

TYPES_FLOAT(UNARY, rint, 0.3, rint(x))
UNARY_DEF(rint, "Rint", SET_FLOAT, TYPES_FLOAT_WIDE(ROW, rint));

static enum mst_code round_int(struct op_ctx *c)
{
    op_out_same(c, 0, 0);
    return MST_OK;
}

UNARY_DEF(round, "Round", SET_SIGNED,
          TYPES_FLOAT(ROW, rint){ DT_INT32, round_int },
          { DT_INT64, round_int }, );

/* ---- tests ---- */

#define TEST_DEF(stem, NAME)                                                   \
    const struct op_def def_##stem = {                                         \
        .name = NAME,                                                          \
        .in = "x: T",                                                          \
        .out = "y: bool",                                                      \
        .attr = "T: " SET_FLOAT,                                               \
        .kernel = KERNELS(TYPES_FLOAT(ROW, stem)),                             \
    }

TYPES_FLOAT(UNARY_TO, is_nan, 0.3, bool, x != x)
TEST_DEF(is_nan, "IsNan");

TYPES_FLOAT(UNARY_TO, is_inf, 0.3, bool, fabs(x) == INFINITY)
TEST_DEF(is_inf, "IsInf");

TYPES_FLOAT(UNARY_TO, is_finite, 0.3, bool, fabs(x) < INFINITY)
TEST_DEF(is_finite, "IsFinite");

/* ---- bits ---- */

TYPES_BOOL(UNARY, logical_not, 0.1, !x)

const struct op_def def_logical_not = {
    .name = "LogicalNot",
    .in = "x: bool",
    .out = "y: bool",
    .kernel = (const struct op_kernel[]){ { DT_ANY, logical_not_b }, { 0 } },
};

TYPES_UNSIGNED(UNARY, invert, 0.3, ~x)
UNARY_DEF(invert, "Invert", SET_BITS,
          TYPES_UNSIGNED(ROW, invert) TYPES_SIGNED_WRAP(ROW, invert));

#define COUNT_BITS(x) __builtin_popcountll((unsigned long long)(x))
TYPES_UNSIGNED(UNARY_TO, population_count, 1, uint8_t, COUNT_BITS(x))

const struct op_def def_population_count = {
    .name = "PopulationCount",
    .in = "x: T",
    .out = "y: uint8",
    .attr = "T: " SET_BITS,
    .kernel = KERNELS(TYPES_UNSIGNED(ROW, population_count)
                          TYPES_SIGNED_WRAP(ROW, population_count)),
};

/* ---- complex numbers ---- */

TYPES_COMPLEX(UNARY, conj, 0.6, conj(x))

const struct op_def def_conj = {
    .name = "Conj",
    .in = "input: T",
    .out = "output: T",
    .attr = "T: {complex64, complex128, variant} = complex64",
    .kernel = KERNELS(TYPES_COMPLEX(ROW, conj)),
};

#define PART(op, cost, EXPR)                                                   \
    UNARY_TO(c64, float complex, float complex, , SAME, , op, cost, float,     \
             EXPR)                                                             \
    UNARY_TO(c128, double complex, double complex, , SAME, , op, cost, double, \
             EXPR)

/* The output's type is an attribute of its own, and must be the matching one.
 */
static enum mst_code part_init(struct op_node *n, struct status *st)
{
    int want = n->in_types[0] == DT_COMPLEX64 ? DT_FLOAT : DT_DOUBLE;

    if (n->out_types[0] == want)
        return MST_OK;
    return status_set(
        st, MST_INVALID_ARGUMENT,
        "No OpKernel was registered to support Op '%s' used by {{node %s}} "
        "with these attrs: [Tout=%s, T=%s]",
        n->def->name, n->name, dtype_name(n->out_types[0]),
        dtype_name(n->in_types[0]));
}

#define PART_DEF(stem, NAME, IN, OUT)                                          \
    const struct op_def def_##stem = {                                         \
        .name = NAME,                                                          \
        .in = IN ": T",                                                        \
        .out = OUT ": Tout",                                                   \
        .attr = "T: {complex64, complex128} = complex64; "                     \
                "Tout: {float, double} = float",                               \
        .init = part_init,                                                     \
        .kernel = KERNELS(TYPES_COMPLEX(ROW, stem)),                           \
    }

PART(real, 0.6, creal(x))
PART_DEF(real, "Real", "input", "output");
PART(imag, 0.6, cimag(x))
PART_DEF(imag, "Imag", "input", "output");
PART(complex_abs, 3, fabs(x))
PART_DEF(complex_abs, "ComplexAbs", "x", "y");
PART(angle, 20, carg(x))
PART_DEF(angle, "Angle", "input", "output");

/* ---- the same shape, other values ---- */

#define ONES(s, T, A, DT, LD, ST)                                              \
    static void ones_like_loop_##s(void *out_, const void *in, int64_t n,      \
                                   float p)                                    \
    {                                                                          \
        T *out = out_;                                                         \
                                                                               \
        for (int64_t i = 0; i < n; i++)                                        \
            out[i] = (T)ST((A)1);                                              \
    }                                                                          \
    UNARY_RUN(s, ones_like, 0.3)
TYPES_FLOAT(ONES)
TYPES_UNSIGNED(ONES)
TYPES_COMPLEX(ONES)
TYPES_BOOL(ONES)
UNARY_DEF(ones_like, "OnesLike",
          "{bfloat16, half, float, double, int8, uint8, int16, uint16, int32, "
          "uint32, int64, uint64, complex64, complex128, bool}",
          TYPES_FLOAT(ROW, ones_like) TYPES_UNSIGNED(ROW, ones_like)
              TYPES_SIGNED_WRAP(ROW, ones_like) TYPES_COMPLEX(ROW, ones_like)
                  TYPES_BOOL(ROW, ones_like));

static enum mst_code zeros_like(struct op_ctx *c)
{
    enum mst_code rc;

    if (op_in(c, 0)->dtype == DT_VARIANT)
        return variant_zeros_like(c);
    if (!dtype_is_plain((enum dtype)op_in(c, 0)->dtype) &&
        op_in(c, 0)->dtype != DT_STRING)
        return op_fail(c, MST_UNIMPLEMENTED,
                       "ZerosLike of type %s is not supported",
                       dtype_name(op_in(c, 0)->dtype));
    rc = op_out_forward(c, 0, 0);
    if (!rc)
        tensor_zero(op_out(c, 0));
    return rc;
}

UNARY_DEF(zeros_like, "ZerosLike", "type", { DT_ANY, zeros_like }, );
