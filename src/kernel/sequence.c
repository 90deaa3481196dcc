/*
 * Numbers in a row: Range and LinSpace; and what counts numbers: Bincount,
 * DenseBincount.
 */
#include "kernel/types.h"

/* ---- Range ---- */

static enum mst_code range_check(struct op_ctx *c)
{
    static const char *const names[] = { "start", "limit", "delta" };
    char text[SHAPE_TEXT_MAX];

    for (int i = 0; i < 3; i++)
        if (op_in(c, i)->count != 1 || op_in(c, i)->ndim > 1)
            return op_fail(c, MST_INVALID_ARGUMENT,
                           "%s must be a scalar, not shape %s", names[i],
                           tensor_shape_text(op_in(c, i), text));
    return MST_OK;
}

/* The texts differ in how numbers are printed: fmt is of one, type to what
 * they are passed as. */
#define RANGE_SIGNS(fmt, type)                                                 \
    if (delta == 0)                                                            \
        return op_fail(c, MST_INVALID_ARGUMENT, "Requires delta != 0: " fmt,   \
                       (type)delta);                                           \
    if (delta > 0 && !(start <= limit))                                        \
        return op_fail(c, MST_INVALID_ARGUMENT,                                \
                       "Requires start <= limit when delta > 0: " fmt "/" fmt, \
                       (type)start, (type)limit);                              \
    if (delta < 0 && !(start >= limit))                                        \
        return op_fail(c, MST_INVALID_ARGUMENT,                                \
                       "Requires start >= limit when delta < 0: " fmt "/" fmt, \
                       (type)start, (type)limit);

/* The difference may be more than an int64 holds, but not a uint64. */
static enum mst_code range_ints(struct op_ctx *c, int64_t start, int64_t limit,
                                int64_t delta, int64_t unused, int64_t *ret)
{
    uint64_t gap, step;

    RANGE_SIGNS("%lld", long long)
    gap = delta > 0 ? (uint64_t)limit - (uint64_t)start
                    : (uint64_t)start - (uint64_t)limit;
    step = delta > 0 ? (uint64_t)delta : 0 - (uint64_t)delta;
    gap = gap / step + (gap % step != 0);
    if (gap > INT64_MAX)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Requires ((limit - start) / delta) <= "
                       "9223372036854775807");
    *ret = (int64_t)gap;
    return MST_OK;
}

/* steps: (limit - start) / delta, rounded as the type rounds. */
static enum mst_code range_floats(struct op_ctx *c, double start, double limit,
                                  double delta, double steps, int64_t *ret)
{
    double count = ceil(fabs(steps));

    RANGE_SIGNS("%g", double)
    if (!(count < 9223372036854775808.0))
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Requires ((limit - start) / delta) <= "
                       "9223372036854775807");
    *ret = (int64_t)count;
    return MST_OK;
}

#define RANGE(s, T, A, DT, LD, ST, KIND, STEPS, EXPR)                          \
    static enum mst_code range_##s(struct op_ctx *c)                           \
    {                                                                          \
        enum mst_code rc = range_check(c);                                     \
        A start, limit, delta;                                                 \
        int64_t count;                                                         \
        T *out;                                                                \
                                                                               \
        if (rc)                                                                \
            return rc;                                                         \
        start = LD(*TENSOR_DATA(op_in(c, 0), T));                              \
        limit = LD(*TENSOR_DATA(op_in(c, 1), T));                              \
        delta = LD(*TENSOR_DATA(op_in(c, 2), T));                              \
        rc = range_##KIND(c, start, limit, delta, STEPS, &count);              \
        if (!rc)                                                               \
            rc = op_out_new(c, 0, 1, &count);                                  \
        if (rc)                                                                \
            return rc;                                                         \
        out = op_out(c, 0)->data;                                              \
        for (int64_t i = 0; i < count; i++)                                    \
            out[i] = (T)ST((A)(EXPR));                                         \
        return MST_OK;                                                         \
    }
/* R rounds to the type after each step. */
#define RANGE_FLOAT(s, T, A, DT, LD, ST, R)                                    \
    RANGE(s, T, A, DT, LD, ST, floats, R(R(limit - start) / delta),            \
          start + R(R((A)i) * delta))
#define ROUND_HALF(x) half_load(half_store(x))
#define ROUND_BF16(x) bf16_load(bf16_store(x))
TYPES_FLOAT_WIDE(RANGE_FLOAT, SAME)
TYPES_HALF(RANGE_FLOAT, ROUND_HALF)
TYPES_BFLOAT16(RANGE_FLOAT, ROUND_BF16)
TYPES_INDEX(RANGE, ints, 0, (uint64_t)start + (uint64_t)i * (uint64_t)delta)

const struct op_def def_range = {
    .name = "Range",
    .in = "start: Tidx, limit: Tidx, delta: Tidx",
    .out = "output: Tidx",
    .attr = "Tidx: {bfloat16, half, float, double, int8, int16, int32, int64, "
            "uint16, uint32, uint64} = int32",
    .key = "Tidx",
    .kernel = KERNELS(TYPES_FLOAT(ROW, range) TYPES_INDEX(ROW, range)),
};

/* ---- LinSpace ---- */

static enum mst_code linspace_check(struct op_ctx *c, int64_t *ret)
{
    static const char *const names[] = { "start", "stop", "num" };
    char text[SHAPE_TEXT_MAX];

    for (int i = 0; i < 3; i++)
        if (op_in(c, i)->ndim)
            return op_fail(c, MST_INVALID_ARGUMENT,
                           "%s must be a scalar, not shape %s", names[i],
                           tensor_shape_text(op_in(c, i), text));
    *ret = tensor_int(op_in(c, 2), 0);
    if (*ret <= 0)
        return op_fail(c, MST_INVALID_ARGUMENT, "Requires num > 0: %lld",
                       (long long)*ret);
    return op_out_new(c, 0, 1, ret);
}

/* The ends are exact. */
#define LINSPACE(s, T, A, DT, LD, ST)                                          \
    static enum mst_code linspace_##s(struct op_ctx *c)                        \
    {                                                                          \
        int64_t num;                                                           \
        enum mst_code rc = linspace_check(c, &num);                            \
        T start, stop, step, *out;                                             \
                                                                               \
        if (rc)                                                                \
            return rc;                                                         \
        start = *TENSOR_DATA(op_in(c, 0), T);                                  \
        stop = *TENSOR_DATA(op_in(c, 1), T);                                   \
        step = num > 1 ? (stop - start) / (T)(num - 1) : 0;                    \
        out = op_out(c, 0)->data;                                              \
        out[0] = start;                                                        \
        for (int64_t i = 1; i < num; i++)                                      \
            out[i] = start + step * (T)i;                                      \
        if (num > 1)                                                           \
            out[num - 1] = stop;                                               \
        return MST_OK;                                                         \
    }
TYPES_FLOAT_WIDE(LINSPACE)

const struct op_def def_lin_space = {
    .name = "LinSpace",
    .in = "start: T, stop: T, num: Tidx",
    .out = "output: T",
    .attr = "T: {bfloat16, half, float, double}; "
            "Tidx: {int32, int64} = int32",
    .kernel = KERNELS(TYPES_FLOAT_WIDE(ROW, linspace)),
};

/* ---- Bincount, DenseBincount ---- */

/* Adds the n values of a row to `size` bins; a value beyond them counts
 * nowhere. False for a negative one. */
#define BINS(s, T, A, DT, LD, ST)                                              \
    static bool bins_##s(void *out_, int64_t size,                             \
                         const struct tensor *values, int64_t at, int64_t n,   \
                         const void *weights_, bool binary)                    \
    {                                                                          \
        const T *weights = weights_;                                           \
        T *out = out_;                                                         \
                                                                               \
        for (int64_t i = at; i < at + n; i++) {                                \
            int64_t v = tensor_int(values, i);                                 \
                                                                               \
            if (v < 0)                                                         \
                return false;                                                  \
            if (v < size)                                                      \
                out[v] =                                                       \
                    binary ? (T)1 : (T)(out[v] + (weights ? weights[i] : 1));  \
        }                                                                      \
        return true;                                                           \
    }
TYPES_FLOAT_WIDE(BINS)
TYPES_INDEX_WRAP(BINS)

static bool bins_row(enum dtype dt, void *out, int64_t size,
                     const struct tensor *values, int64_t at, int64_t n,
                     const void *weights, bool binary)
{
    switch (dt) {
    case DT_FLOAT:
        return bins_f32(out, size, values, at, n, weights, binary);
    case DT_DOUBLE:
        return bins_f64(out, size, values, at, n, weights, binary);
    case DT_INT32:
        return bins_u32(out, size, values, at, n, weights, binary);
    default:
        return bins_u64(out, size, values, at, n, weights, binary);
    }
}

static enum mst_code bins_size(struct op_ctx *c, int64_t *ret)
{
    if (op_in(c, 1)->ndim)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Shape must be rank 0 but is rank %d",
                       op_in(c, 1)->ndim);
    *ret = tensor_int(op_in(c, 1), 0);
    if (*ret < 0)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "size (%lld) must be non-negative", (long long)*ret);
    return MST_OK;
}

/* rows of n values each, into a row of `size` bins each. */
static enum mst_code bins_fill(struct op_ctx *c, int64_t rows, int64_t n,
                               int64_t size, bool binary)
{
    const struct tensor *in = op_in(c, 0), *weights = op_in(c, 2);
    struct tensor *out = op_out(c, 0);
    size_t bytes = (size_t)size * dtype_size((enum dtype)out->dtype);

    tensor_zero(out);
    for (int64_t r = 0; r < rows; r++)
        if (!bins_row((enum dtype)out->dtype,
                      (char *)out->data + (size_t)r * bytes, size, in, r * n, n,
                      weights->count ? weights->data : NULL, binary))
            return op_fail(c, MST_INVALID_ARGUMENT,
                           "Input arr must be non-negative!");
    return MST_OK;
}

static enum mst_code bincount(struct op_ctx *c)
{
    int64_t size;
    enum mst_code rc = bins_size(c, &size);

    if (rc)
        return rc;
    if (op_in(c, 2)->count && op_in(c, 2)->count != op_in(c, 0)->count)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Input indices and weights must have the same size.");
    rc = op_out_new(c, 0, 1, &size);
    return rc ? rc : bins_fill(c, 1, op_in(c, 0)->count, size, false);
}

const struct op_def def_bincount = {
    .name = "Bincount",
    .in = "arr: int32, size: int32, weights: T",
    .out = "bins: T",
    .attr = "T: {int32, int64, float, double}",
    .kernel = KERNELS({ DT_ANY, bincount }, ),
};

static enum mst_code dense_init(struct op_node *n, struct status *st)
{
    if (op_attr_bool(n, "binary_output"))
        n->state = n;
    return MST_OK;
}

static enum mst_code dense_bincount(struct op_ctx *c)
{
    const struct tensor *in = op_in(c, 0), *weights = op_in(c, 2);
    char text[SHAPE_TEXT_MAX];
    int64_t dims[2];
    enum mst_code rc = bins_size(c, &dims[1]);

    if (rc)
        return rc;
    if (in->ndim > 2)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Shape must be at most rank 2 but is rank %d", in->ndim);
    if (weights->count && !tensor_same_shape(in, weights))
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "`weights` must be the same shape as `arr` or a "
                       "length-0 `Tensor`, in which case it acts as all "
                       "weights equal to 1. Received %s",
                       tensor_shape_text(weights, text));
    dims[0] = in->ndim == 2 ? in->dims[0] : 1;
    rc = in->ndim == 2 ? op_out_new(c, 0, 2, dims)
                       : op_out_new(c, 0, 1, &dims[1]);
    if (rc)
        return rc;
    return bins_fill(c, dims[0], in->ndim == 2 ? in->dims[1] : in->count,
                     dims[1], c->node->state != NULL);
}

const struct op_def def_dense_bincount = {
    .name = "DenseBincount",
    .in = "input: Tidx, size: Tidx, weights: T",
    .out = "output: T",
    .attr = "Tidx: {int32, int64}; T: {int32, int64, float, double}; "
            "binary_output: bool = false",
    .init = dense_init,
    .kernel = KERNELS({ DT_ANY, dense_bincount }, ),
};
