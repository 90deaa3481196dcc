/*
 * The reductions: Sum, Mean, Prod, Max, Min, All, Any, EuclideanNorm, L2Loss.
 *
 * Whole numbers are summed in 64 bits and cut to size in the end, which is the
 * same as wrapping all the way, and is what their mean needs. Floats and halfs
 * are summed in lanes of float that are joined in double.
 */
#include "kernel/pointwise.h"
#include "kernel/reduce.h"
#include "kernel/vmath.h"

#define ADD(a, b)   ((a) + (b))
#define TIMES(a, b) ((a) * (b))
#define MORE(a, b)  ((b) > (a) ? (b) : (a))
#define LESS(a, b)  ((b) < (a) ? (b) : (a))
/* The same, and a NaN on either side wins. */
#define MORE_NAN(a, b) ((b) > (a) || (b) != (b) ? (b) : (a))
#define LESS_NAN(a, b) ((b) < (a) || (b) != (b) ? (b) : (a))
#define SQUARE(x)      ((x) * (x))
#define SQUARE_U(x)    ((uint64_t)(x) * (uint64_t)(x))
#define ABS2(x)        ((x)*conj(x))

/* ---- running an op ---- */

static enum mst_code reduce_init(struct op_node *n, struct status *st)
{
    n->state = (void *)(uintptr_t)(op_attr_bool(n, "keep_dims") + 1);
    return MST_OK;
}

static bool keep_dims(const struct op_ctx *c)
{
    return (uintptr_t)c->node->state == 2;
}

/* single: what a reduction of single elements gives is those elements. */
static enum mst_code run(struct op_ctx *c, const struct reduce *r,
                         double cost_ns, bool single)
{
    const struct tensor *in = op_in(c, 0);
    struct reduce_shape s;
    enum mst_code rc = reduce_shape_of(c, in, op_in(c, 1), keep_dims(c), &s);

    if (rc)
        return rc;
    if (single && reduce_count(&s) == 1) {
        tensor_reshape(op_out(c, 0), in, s.out.ndim, s.out.dims);
        return MST_OK;
    }
    rc = op_out_new(c, 0, s.out.ndim, s.out.dims);
    if (!rc)
        reduce_run(c, r, &s, in, op_out(c, 0)->data, cost_ns);
    return rc;
}

#define REDUCE_RUN(op, s, cost, single)                                        \
    static enum mst_code op##_##s(struct op_ctx *c)                            \
    {                                                                          \
        return run(c, &op##_reduce_##s, cost, single);                         \
    }

#define REDUCE_DEF(stem, NAME, SET, ...)                                       \
    const struct op_def def_##stem = {                                         \
        .name = NAME,                                                          \
        .in = "input: T, reduction_indices: Tidx",                             \
        .out = "output: T",                                                    \
        .attr = "keep_dims: bool = false; T: " SET                             \
                "; Tidx: {int32, int64} = int32",                              \
        .init = reduce_init,                                                   \
        .kernel = KERNELS(__VA_ARGS__),                                        \
    }

/* ---- Sum and Mean: L and B are the types of lanes and accumulators ---- */

#define SUMS(s, T, A, DT, LD, ST, L, B)                                        \
    REDUCE_ACC(sum, s, T, L, B, LD, 0, (L), ADD, ADD)                          \
    REDUCE_RECORD(sum, sum, s, T, B, ST((A)a))                                 \
    REDUCE_RUN(sum, s, 0.1, true)
#define MEANS(s, T, A, DT, LD, ST, B, DIVIDE)                                  \
    REDUCE_RECORD(mean, sum, s, T, B, ST((A)(DIVIDE)))                         \
    REDUCE_RUN(mean, s, 0.1, true)

TYPES_FLOAT32(SUMS, float, double)
TYPES_FLOAT64(SUMS, double, double)
TYPES_FLOAT16(SUMS, float, double)
TYPES_INT(SUMS, uint64_t, uint64_t)
TYPES_COMPLEX64(SUMS, float complex, double complex)
TYPES_COMPLEX128(SUMS, double complex, double complex)
REDUCE_DEF(sum, "Sum", "numbertype", TYPES_NUMBER(ROW, sum));

/* No elements: not a number, or 0 where there is no such thing. */
TYPES_FLOAT(MEANS, double, a / (double)count)
TYPES_SIGNED(MEANS, uint64_t, count ? (int64_t)a / count : 0)
TYPES_UNSIGNED(MEANS, uint64_t, count ? a / (uint64_t)count : 0)
TYPES_COMPLEX(MEANS, double complex, count ? a / (double)count : 0)
REDUCE_DEF(mean, "Mean", "numbertype", TYPES_NUMBER(ROW, mean));

#define SQRT_NS(s, T, A, DT, LD, ST)                                           \
    REDUCE_RECORD(sqrt_n, sum, s, T, double, ST((A)(a / sqrt((double)count))))
TYPES_FLOAT(SQRT_NS)

/* ---- Prod ---- */

#define PRODS(s, T, A, DT, LD, ST, L)                                          \
    REDUCE_ACC(prod, s, T, L, L, LD, 1, (L), TIMES, TIMES)                     \
    REDUCE_RECORD(prod, prod, s, T, L, ST((A)a))                               \
    REDUCE_RUN(prod, s, 0.1, true)

TYPES_FLOAT64(PRODS, double)
TYPES_FLOAT32(PRODS, float)
TYPES_FLOAT16(PRODS, float)
TYPES_INT(PRODS, uint64_t)
TYPES_COMPLEX64(PRODS, float complex)
TYPES_COMPLEX128(PRODS, double complex)
REDUCE_DEF(prod, "Prod", "numbertype", TYPES_NUMBER(ROW, prod));

/* ---- Max and Min ---- */

#define EXTREMES(s, T, A, DT, LD, ST, op, LIMIT, STEP)                         \
    REDUCE_ACC(op, s, T, A, A, LD, LIMIT##_##s, (A), STEP, STEP)               \
    REDUCE_RECORD(op, op, s, T, A, ST(a))                                      \
    REDUCE_RUN(op, s, 0.1, true)

/*
 * Rows of numbers that are all finite need no look at NaN, which costs more
 * than the comparison does: times zero they sum up to zero, the others to NaN,
 * and then the row is gone through again.
 */
#define FINITE_LANES 64
#define FINITE_MIN   256
#define EXTREMES_FINITE(s, T, A, DT, LD, ST, op, LIMIT, STEP, STEP_NAN)        \
    REDUCE_ACC(op, s, T, T, T, LD, LIMIT##_##s, (T), STEP_NAN, STEP_NAN)       \
    CLONES_##s static bool op##_finite_##s(const T *in, int64_t n, T *ret)     \
    {                                                                          \
        T lane[FINITE_LANES], zero[FINITE_LANES] = { 0 };                      \
                                                                               \
        for (int j = 0; j < FINITE_LANES; j++)                                 \
            lane[j] = LIMIT##_##s;                                             \
        for (; n > 0; n -= FINITE_LANES, in += FINITE_LANES)                   \
            for (int j = 0; j < FINITE_LANES; j++) {                           \
                lane[j] = STEP(lane[j], in[j]);                                \
                zero[j] += in[j] * 0;                                          \
            }                                                                  \
        for (int w = FINITE_LANES / 2; w; w /= 2)                              \
            for (int j = 0; j < w; j++) {                                      \
                lane[j] = STEP(lane[j], lane[j + w]);                          \
                zero[j] += zero[j + w];                                        \
            }                                                                  \
        *ret = lane[0];                                                        \
        return zero[0] == 0;                                                   \
    }                                                                          \
    static void op##_quick_##s(void *acc_, const void *in_, int64_t n)         \
    {                                                                          \
        int64_t whole = n < FINITE_MIN ? 0 : n / FINITE_LANES * FINITE_LANES;  \
        const T *in = in_;                                                     \
        T *acc = acc_, of;                                                     \
                                                                               \
        if (whole && op##_finite_##s(in, whole, &of))                          \
            *acc = STEP_NAN(*acc, of);                                         \
        else                                                                   \
            whole = 0;                                                         \
        op##_row_##s(acc, in + whole, n - whole);                              \
    }                                                                          \
    REDUCE_RECORD_ROW(op, op, op##_quick_##s, s, T, T, a)                      \
    REDUCE_RUN(op, s, 0.1, true)
#define SET_EXTREME                                                            \
    "{float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, "     \
    "half, uint32, uint64, qint8, quint8, qint32, qint16, quint16}"

TYPES_FLOAT_WIDE(EXTREMES_FINITE, max, LEAST, MORE, MORE_NAN)
TYPES_FLOAT16(EXTREMES, max, LEAST, MORE_NAN)
TYPES_INT(EXTREMES, max, LEAST, MORE)
REDUCE_DEF(max, "Max", SET_EXTREME, TYPES_REAL(ROW, max));

TYPES_FLOAT_WIDE(EXTREMES_FINITE, min, GREATEST, LESS, LESS_NAN)
TYPES_FLOAT16(EXTREMES, min, GREATEST, LESS_NAN)
TYPES_INT(EXTREMES, min, GREATEST, LESS)
REDUCE_DEF(min, "Min", SET_EXTREME, TYPES_REAL(ROW, min));

/* ---- the records, for those who reduce by other means than axes ---- */

#define RECORD(s, T, A, DT, LD, ST, op) [DT] = &op##_reduce_##s,

const struct reduce *reduce_of(enum reduce_op op, enum dtype dt)
{
    static const struct reduce *const records[][DT_COUNT] = {
        [REDUCE_SUM] = { TYPES_NUMBER(RECORD, sum) },
        [REDUCE_MEAN] = { TYPES_NUMBER(RECORD, mean) },
        [REDUCE_SQRT_N] = { TYPES_FLOAT(RECORD, sqrt_n) },
        [REDUCE_PROD] = { TYPES_NUMBER(RECORD, prod) },
        [REDUCE_MAX] = { TYPES_REAL(RECORD, max) },
        [REDUCE_MIN] = { TYPES_REAL(RECORD, min) },
    };

    return records[op][dt];
}

/* ---- EuclideanNorm: the square root of the sum of squares ---- */

#define NORMS(s, T, A, DT, LD, ST, L, B, MAP, VALUE)                           \
    REDUCE_ACC(norm, s, T, L, B, LD, 0, MAP, ADD, ADD)                         \
    REDUCE_RECORD(norm, norm, s, T, B, ST((A)(VALUE)))                         \
    REDUCE_RUN(norm, s, 0.1, false)
/* Whole numbers wrap on the way, as TensorFlow's do. */
#define NORMS_INT(s, T, A, DT, LD, ST)                                         \
    NORMS(s, T, A, DT, LD, ST, uint64_t, uint64_t, SQUARE_U,                   \
          (T)a > 0 ? sqrt((double)(T)a) : 0)

TYPES_FLOAT32(NORMS, float, double, SQUARE, sqrt(a))
TYPES_FLOAT64(NORMS, double, double, SQUARE, sqrt(a))
TYPES_FLOAT16(NORMS, float, double, SQUARE, sqrt(a))
TYPES_INT(NORMS_INT)
TYPES_COMPLEX64(NORMS, float complex, double complex, ABS2, sqrt(a))
TYPES_COMPLEX128(NORMS, double complex, double complex, ABS2, sqrt(a))
REDUCE_DEF(euclidean_norm, "EuclideanNorm", "numbertype",
           TYPES_NUMBER(ROW, norm));

/* ---- All and Any ---- */

#define AND(a, b) ((a) & (b))
#define OR(a, b)  ((a) | (b))
#define TRUTHS(s, T, A, DT, LD, ST, op, INIT, STEP)                            \
    REDUCE_ACC(op, s, uint8_t, uint8_t, uint8_t, LD, INIT, (uint8_t), STEP,    \
               STEP)                                                           \
    REDUCE_RECORD(op, op, s, bool, uint8_t, a)                                 \
    REDUCE_RUN(op, s, 0.1, true)
#define TRUTH_DEF(stem, NAME)                                                  \
    const struct op_def def_##stem = {                                         \
        .name = NAME,                                                          \
        .in = "input: bool, reduction_indices: Tidx",                          \
        .out = "output: bool",                                                 \
        .attr = "keep_dims: bool = false; Tidx: {int32, int64} = int32",       \
        .init = reduce_init,                                                   \
        .kernel = KERNELS({ DT_ANY, stem##_b }, ),                             \
    }
TYPES_BOOL(TRUTHS, all, 1, AND)
TRUTH_DEF(all, "All");
TYPES_BOOL(TRUTHS, any, 0, OR)
TRUTH_DEF(any, "Any");

/* ---- L2Loss: half the sum of all squares ---- */

static enum mst_code run_l2_loss(struct op_ctx *c, const struct reduce *r)
{
    static const bool all[TENSOR_RANK_MAX] = { true, true, true, true,
                                               true, true, true, true,
                                               true, true, true, true };
    struct reduce_shape s;
    enum mst_code rc = op_out_new(c, 0, 0, NULL);

    reduce_shape_mask(op_in(c, 0), all, false, &s);
    if (!rc)
        reduce_run(c, r, &s, op_in(c, 0), op_out(c, 0)->data, 0.1);
    return rc;
}

#define L2_LOSSES(s, T, A, DT, LD, ST)                                         \
    REDUCE_RECORD(l2_loss, norm, s, T, double, ST((A)(a / 2)))                 \
    static enum mst_code l2_loss_##s(struct op_ctx *c)                         \
    {                                                                          \
        return run_l2_loss(c, &l2_loss_reduce_##s);                            \
    }
TYPES_FLOAT(L2_LOSSES)

const struct op_def def_l2_loss = {
    .name = "L2Loss",
    .in = "t: T",
    .out = "output: T",
    .attr = "T: {half, bfloat16, float, double}",
    .kernel = KERNELS(TYPES_FLOAT(ROW, l2_loss)),
};
