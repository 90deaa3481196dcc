/*
 * QuantizeAndDequantize*: numbers rounded to whole multiples of a scale that
 * makes a range fit into so many bits, and scaled back. The range is given or
 * that of the input; of the whole of it, or of each slice along an axis.
 * And Bucketize, which has only the number of the interval left.
 */
#include "kernel/types.h"

struct quantize_state {
    bool is_signed, given, narrow, up;
    bool bits_given; /* num_bits is an input */
    int64_t bits, axis;
};

static enum mst_code quantize_init(struct op_node *n, struct status *st)
{
    struct quantize_state *s = ARENA_NEW(n->arena, struct quantize_state);

    n->state = s;
    s->is_signed = op_attr_bool(n, "signed_input");
    s->given = op_attr_bool(n, "range_given");
    s->narrow = op_attr_bool(n, "narrow_range");
    s->axis = op_attr_int(n, "axis");
    s->bits_given = n->in_count == 4;
    if (s->bits_given)
        return MST_OK;
    s->bits = op_attr_int(n, "num_bits");
    s->up = !strcmp(op_attr_str(n, "round_mode").data, "HALF_UP");
    if (s->bits <= 0 || s->bits >= (s->is_signed ? 62 : 63))
        return status_set(
            st, MST_INVALID_ARGUMENT,
            "num_bits is out of range: %lld with signed_input_ %d",
            (long long)s->bits, s->is_signed);
    return MST_OK;
}

/* ---- checks ---- */

/* Slices along the axis, and what is before and behind it in each. */
struct slices {
    int64_t outer, depth, inner;
};

/* Of an axis that was found to be good; -1: the whole is one slice. */
static void slices_of(const struct tensor *in, int64_t axis, struct slices *ret)
{
    *ret = (struct slices){ 1, 1, axis == -1 ? in->count : 1 };
    for (int d = 0; d < in->ndim && axis >= 0; d++)
        *(d < axis    ? &ret->outer
          : d == axis ? &ret->depth
                      : &ret->inner) *= in->dims[d];
}

static enum mst_code quantize_axis(struct op_ctx *c, struct slices *ret)
{
    const struct quantize_state *s = c->node->state;
    const struct tensor *in = op_in(c, 0);

    if (s->axis < -1)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Axis must be at least -1. Found %lld",
                       (long long)s->axis);
    if ((s->axis >= in->ndim || !in->ndim) && s->bits_given)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Axis requested is larger than input dimensions. Axis: "
                       "%lld Input Dimensions: %d",
                       (long long)s->axis, in->ndim);
    if (s->axis >= in->ndim)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Shape must be at least rank %lld but is rank %d",
                       (long long)s->axis + 1, in->ndim);
    slices_of(in, s->axis, ret);
    return MST_OK;
}

/* The ends of the range, or of the ranges of slices. (TensorFlow 2.21 takes the
 * latter from V3 only: the others want a scalar first, and then a vector.) */
static enum mst_code quantize_ends(struct op_ctx *c, int64_t depth)
{
    static const char *const names[] = { "input_min", "input_max" };
    const struct quantize_state *s = c->node->state;

    for (int i = 0; i < 2; i++) {
        const struct tensor *t = op_in(c, 1 + i);
        char text[SHAPE_TEXT_MAX];

        if (!s->bits_given && s->axis == -1 && t->ndim)
            return op_fail(c, MST_INVALID_ARGUMENT, "%s must be a scalar.",
                           names[i]);
        if (s->axis >= 0 && t->ndim != 1)
            return op_fail(c, MST_INVALID_ARGUMENT,
                           "Shape must be rank 1 for %s_tensor when the axis "
                           "is specified",
                           names[i]);
        if (t->count != depth)
            return op_fail(c, MST_INVALID_ARGUMENT,
                           "%s_tensor has incorrect size, was %lld expected "
                           "%lld to match dim %lld of the input %s",
                           names[i], (long long)t->count, (long long)depth,
                           (long long)s->axis, tensor_shape_text(t, text));
    }
    return MST_OK;
}

static enum mst_code grad_ends(struct op_ctx *c, int64_t axis, int64_t depth)
{
    static const char *const names[] = { "min", "max" };

    for (int i = 0; i < 2; i++) {
        const struct tensor *t = op_in(c, 2 + i);

        if (axis == -1 && t->ndim)
            return op_fail(c, MST_INVALID_ARGUMENT,
                           "input_%s must be a scalar if axis is unspecified",
                           names[i]);
        if (axis != -1 && t->ndim != 1)
            return op_fail(c, MST_INVALID_ARGUMENT,
                           "Shape must be rank 1 for input_%s_tensor when the "
                           "axis is specified",
                           names[i]);
        if (t->count != depth)
            return op_fail(c, MST_INVALID_ARGUMENT,
                           "%s has incorrect size, expected %lld was %lld",
                           names[i], (long long)depth, (long long)t->count);
    }
    return MST_OK;
}

static enum mst_code find_bits(struct op_ctx *c, int64_t *ret)
{
    const struct quantize_state *s = c->node->state;
    const struct tensor *t = s->bits_given ? op_in(c, 3) : NULL;

    *ret = s->bits;
    if (!t)
        return MST_OK;
    if (t->ndim)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Invalid shape. The `num_bits` tensor should be a "
                       "scalar. Got dimensions: %d",
                       t->ndim);
    *ret = tensor_int(t, 0);
    if (*ret > 0 && *ret < (s->is_signed ? 62 : 63))
        return MST_OK;
    return op_fail(c, MST_INVALID_ARGUMENT,
                   "num_bits is out of range: %lld with `signed_input_` %d",
                   (long long)*ret, s->is_signed);
}

/* ---- loops ---- */

#define QUANTIZE(s, T, A, DT, LD, ST, MOST, RINT, FLOOR)                       \
    struct quantize_range_##s {                                                \
        T min, max, scale, inverse;                                            \
    };                                                                         \
    static void fit_##s(struct quantize_range_##s *r,                          \
                        const struct quantize_state *q, int64_t bits)          \
    {                                                                          \
        int64_t least =                                                        \
            q->is_signed ? -((int64_t)1 << (bits - 1)) + q->narrow : 0;        \
        int64_t most = ((int64_t)1 << (bits - q->is_signed)) - 1;              \
        T low = (T)least * r->min > 0 ? (T)least / r->min : MOST;              \
        T high = (T)most * r->max > 0 ? (T)most / r->max : MOST;               \
                                                                               \
        r->scale = low < high ? low : high;                                    \
        if (low < high) {                                                      \
            r->inverse = r->min / (T)least;                                    \
            r->max = (T)most * r->inverse;                                     \
        } else {                                                               \
            r->inverse = r->max / (T)most;                                     \
            r->min = (T)least * r->inverse;                                    \
        }                                                                      \
    }                                                                          \
    static void measure_##s(struct quantize_range_##s *r, const T *in,         \
                            const struct slices *z, int64_t k)                 \
    {                                                                          \
        r->min = INFINITY;                                                     \
        r->max = -INFINITY;                                                    \
        for (int64_t o = 0; o < z->outer; o++)                                 \
            for (int64_t i = 0; i < z->inner; i++) {                           \
                T x = in[(o * z->depth + k) * z->inner + i];                   \
                                                                               \
                r->min = x < r->min ? x : r->min;                              \
                r->max = x > r->max ? x : r->max;                              \
            }                                                                  \
    }                                                                          \
    CLONES_##s static void round_##s(T *out, const T *in, int64_t n,           \
                                     struct quantize_range_##s r, bool clamp,  \
                                     bool up)                                  \
    {                                                                          \
        for (int64_t i = 0; i < n; i++) {                                      \
            T x = in[i];                                                       \
                                                                               \
            x = clamp && x > r.max ? r.max : x;                                \
            x = clamp && x < r.min ? r.min : x;                                \
            x *= r.scale;                                                      \
            out[i] = (up ? FLOOR(x + (T)0.5) : RINT(x)) * r.inverse;           \
        }                                                                      \
    }                                                                          \
    static enum mst_code quantize_##s(struct op_ctx *c)                        \
    {                                                                          \
        const struct quantize_state *q = c->node->state;                       \
        const struct tensor *in = op_in(c, 0);                                 \
        struct slices z;                                                       \
        int64_t bits;                                                          \
        enum mst_code rc = quantize_axis(c, &z);                               \
                                                                               \
        if (!rc)                                                               \
            rc = find_bits(c, &bits);                                          \
        if (!rc && q->given)                                                   \
            rc = quantize_ends(c, z.depth);                                    \
        if (!rc)                                                               \
            rc = op_out_like(c, 0, in);                                        \
        for (int64_t k = 0; k < z.depth && !rc; k++) {                         \
            struct quantize_range_##s r;                                       \
                                                                               \
            if (q->given) {                                                    \
                r.min = TENSOR_DATA(op_in(c, 1), T)[k];                        \
                r.max = TENSOR_DATA(op_in(c, 2), T)[k];                        \
                if (q->axis == -1 && !(r.min <= r.max))                        \
                    return op_fail(c, MST_INVALID_ARGUMENT,                    \
                                   "Invalid range: input_min %g > input_max "  \
                                   "%g",                                       \
                                   (double)r.min, (double)r.max);              \
            } else {                                                           \
                measure_##s(&r, in->data, &z, k);                              \
            }                                                                  \
            fit_##s(&r, q, bits);                                              \
            for (int64_t o = 0; o < z.outer && in->count; o++) {               \
                int64_t at = (o * z.depth + k) * z.inner;                      \
                                                                               \
                round_##s(TENSOR_DATA(op_out(c, 0), T) + at,                   \
                          TENSOR_DATA(in, T) + at, z.inner, r, q->given,       \
                          q->up);                                              \
            }                                                                  \
        }                                                                      \
        return rc;                                                             \
    }                                                                          \
    static enum mst_code quantize_grad_##s(struct op_ctx *c)                   \
    {                                                                          \
        const struct tensor *g = op_in(c, 0), *in = op_in(c, 1);               \
        int64_t axis = *(const int64_t *)c->node->state;                       \
        const T *low = op_in(c, 2)->data, *high = op_in(c, 3)->data;           \
        struct slices z;                                                       \
        enum mst_code rc = grad_begin(c, axis, &z);                            \
                                                                               \
        for (int64_t i = 0; i < in->count && !rc; i++) {                       \
            int64_t k = axis == -1 ? 0 : i / z.inner % z.depth;                \
            T x = TENSOR_DATA(in, T)[i];                                       \
                                                                               \
            TENSOR_DATA(op_out(c, 0), T)                                       \
            [i] =                                                              \
                TENSOR_DATA(g, T)[i] * (x >= low[k] && x <= high[k] ? 1 : 0);  \
        }                                                                      \
        return rc;                                                             \
    }

static enum mst_code grad_begin(struct op_ctx *c, int64_t axis,
                                struct slices *z)
{
    const struct tensor *in = op_in(c, 1);
    enum mst_code rc;

    if (!tensor_same_shape(op_in(c, 0), in))
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "gradient and input must be the same size");
    for (int i = 0; i < 2; i++)
        if (op_in(c, 2 + i)->ndim > 1)
            return op_fail(c, MST_INVALID_ARGUMENT,
                           "Input %s tensor must have dimension 0 or 1. "
                           "Received %d.",
                           i ? "max" : "min", op_in(c, 2 + i)->ndim);
    if (axis < -1 || axis >= in->ndim)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Axis should be -1 or 0 or a positive value less than "
                       "%dbut given axis value was %lld",
                       in->ndim, (long long)axis);
    slices_of(in, axis, z);
    rc = grad_ends(c, axis, z->depth);
    if (!rc)
        rc = op_out_like(c, 0, in);
    for (int i = 1; i < 3 && !rc; i++) {
        rc = op_out_like(c, i, op_in(c, i + 1));
        if (!rc)
            tensor_zero(op_out(c, i));
    }
    return rc;
}
TYPES_FLOAT32(QUANTIZE, 0x1.fffffep127f, rintf, floorf)
TYPES_FLOAT64(QUANTIZE, 0x1.fffffffffffffp1023, rint, floor)

static enum mst_code grad_init(struct op_node *n, struct status *st)
{
    int64_t *axis = ARENA_NEW(n->arena, int64_t);

    *axis = op_attr_int(n, "axis");
    n->state = axis;
    return MST_OK;
}

/* ---- records ---- */

#define QUANTIZE_SET "{bfloat16, half, float, double}"
#define QUANTIZE_DEF(stem, NAME)                                               \
    const struct op_def def_##stem = {                                         \
        .name = NAME,                                                          \
        .in = "input: T, input_min: T, input_max: T",                          \
        .out = "output: T",                                                    \
        .attr = "signed_input: bool = true; num_bits: int = 8; "               \
                "range_given: bool = false; T: " QUANTIZE_SET "; "             \
                "round_mode: {'HALF_TO_EVEN', 'HALF_UP'} = 'HALF_TO_EVEN'; "   \
                "narrow_range: bool = false; axis: int = -1",                  \
        .init = quantize_init,                                                 \
        .kernel = KERNELS(TYPES_FLOAT_WIDE(ROW, quantize)),                    \
    }
QUANTIZE_DEF(quantize_and_dequantize_v2, "QuantizeAndDequantizeV2");
QUANTIZE_DEF(quantize_and_dequantize_v4, "QuantizeAndDequantizeV4");

const struct op_def def_quantize_and_dequantize_v3 = {
    .name = "QuantizeAndDequantizeV3",
    .in = "input: T, input_min: T, input_max: T, num_bits: int32",
    .out = "output: T",
    .attr = "signed_input: bool = true; range_given: bool = true; "
            "T: " QUANTIZE_SET "; narrow_range: bool = false; axis: int = -1",
    .init = quantize_init,
    .kernel = KERNELS(TYPES_FLOAT_WIDE(ROW, quantize)),
};

const struct op_def def_quantize_and_dequantize_v4_grad = {
    .name = "QuantizeAndDequantizeV4Grad",
    .in = "gradients: T, input: T, input_min: T, input_max: T",
    .out = "input_backprop: T, input_min_backprop: T, input_max_backprop: T",
    .attr = "T: " QUANTIZE_SET "; axis: int = -1",
    .init = grad_init,
    .kernel = KERNELS(TYPES_FLOAT_WIDE(ROW, quantize_grad)),
};

/* ---- Bucketize ---- */

struct bucketize_state {
    const float *boundary;
    int count;
};

static enum mst_code bucketize_init(struct op_node *n, struct status *st)
{
    struct bucketize_state *s = ARENA_NEW(n->arena, struct bucketize_state);
    const struct attr *a = op_attr(n, "boundaries");
    float *boundary = ARENA_ARRAY(n->arena, float, a->count + 1);

    n->state = s;
    s->boundary = boundary;
    s->count = a->count;
    for (int i = 0; i < a->count; i++) {
        boundary[i] = a->value[i].f;
        if (i && boundary[i] < boundary[i - 1])
            return status_set(st, MST_INVALID_ARGUMENT,
                              "Expected sorted boundaries");
    }
    return MST_OK;
}

/* W: in what a number is compared with a boundary. */
#define BUCKETIZE(s, T, A, DT, LD, ST, W)                                      \
    static enum mst_code bucketize_##s(struct op_ctx *c)                       \
    {                                                                          \
        const struct bucketize_state *b = c->node->state;                      \
        const T *in = op_in(c, 0)->data;                                       \
        enum mst_code rc = op_out_like(c, 0, op_in(c, 0));                     \
                                                                               \
        for (int64_t i = 0; i < op_in(c, 0)->count && !rc; i++) {              \
            int low = 0, high = b->count;                                      \
                                                                               \
            while (low < high) { /* the first that is greater */               \
                int middle = low + (high - low) / 2;                           \
                                                                               \
                if ((W)in[i] < (W)b->boundary[middle])                         \
                    high = middle;                                             \
                else                                                           \
                    low = middle + 1;                                          \
            }                                                                  \
            TENSOR_DATA(op_out(c, 0), int32_t)[i] = low;                       \
        }                                                                      \
        return rc;                                                             \
    }
TYPES_FLOAT32(BUCKETIZE, float)
TYPES_FLOAT64(BUCKETIZE, double)
TYPES_INDEX(BUCKETIZE, float)

const struct op_def def_bucketize = {
    .name = "Bucketize",
    .in = "input: T",
    .out = "output: int32",
    .attr = "T: {int32, int64, float, double}; boundaries: list(float)",
    .init = bucketize_init,
    .kernel =
        KERNELS(TYPES_FLOAT_WIDE(ROW, bucketize) TYPES_INDEX(ROW, bucketize)),
};
