/*
 * QuantizeV2 and Dequantize: between floats and whole numbers that stand for
 * them, the q types, which no other op here computes with.
 *
 * Three ways to spread a type's numbers over a range: MIN_COMBINED, from end to
 * end; MIN_FIRST, the same with zero kept exact; SCALED, multiples of a scale.
 * The range is that of the whole, or of each slice along an axis.
 */
#include "kernel/types.h"

enum quantized_mode { MIN_COMBINED, MIN_FIRST, SCALED };

struct quantized_state {
    enum quantized_mode mode;
    bool narrow, to_even;
    int64_t axis;
    float least_range;
    double low, high; /* of the type */
    int bits;
};

#define TYPES_QUANTIZED(X, ...)                                                \
    X(q8, int8_t, DT_QINT8, ##__VA_ARGS__)                                     \
    X(qu8, uint8_t, DT_QUINT8, ##__VA_ARGS__)                                  \
    X(q16, int16_t, DT_QINT16, ##__VA_ARGS__)                                  \
    X(qu16, uint16_t, DT_QUINT16, ##__VA_ARGS__)                               \
    X(q32, int32_t, DT_QINT32, ##__VA_ARGS__)

static enum mst_code quantized_init(struct op_node *n, struct status *st)
{
    static const char *const modes[] = { "MIN_COMBINED", "MIN_FIRST",
                                         "SCALED" };
    struct quantized_state *s = ARENA_NEW(n->arena, struct quantized_state);
    const char *mode = op_attr_str(n, "mode").data;
    bool to_float = n->out_count == 1;
    int dt = op_attr_type(n, "T");

    n->state = s;
    while (strcmp(mode, modes[s->mode]) != 0)
        s->mode++;
    s->narrow = op_attr_bool(n, "narrow_range");
    s->axis = op_attr_int(n, "axis");
    s->bits = 8 * (int)dtype_size((enum dtype)dt);
    s->low = dt == DT_QUINT8 || dt == DT_QUINT16 ? 0 : -ldexp(1, s->bits - 1);
    s->high = s->low + ldexp(1, s->bits) - 1;
    if (to_float && n->out_types[0] == DT_BFLOAT16 && s->mode != MIN_COMBINED)
        return status_set(st, MST_INVALID_ARGUMENT,
                          "When output type is bfloat16, Mode string must be "
                          "'MIN_COMBINED', is '%s'",
                          mode);
    if (to_float)
        return MST_OK;
    s->least_range = op_attr_float(n, "ensure_minimum_range");
    s->to_even = !strcmp(op_attr_str(n, "round_mode").data, "HALF_TO_EVEN");
    if (s->to_even && s->mode != SCALED)
        return status_set(st, MST_INVALID_ARGUMENT,
                          "Round mode 'HALF_TO_EVEN' only supported for mode "
                          "'SCALED', but mode is '%s'.",
                          mode);
    return MST_OK;
}

/* What an x86 makes of a float that no int32 holds. */
static int32_t to_int(float v)
{
    return v >= -0x1p31f && v < 0x1p31f ? (int32_t)v : INT32_MIN;
}

static float clamp(float v, float low, float high)
{
    v = v < high ? v : high;
    return v > low ? v : low;
}

/* ---- what a range makes of a number ---- */

struct quantized_range {
    float min, max, scale, base;
};

static int32_t quantize_one(const struct quantized_state *s,
                            const struct quantized_range *r, float x)
{
    float v;

    switch (s->mode) {
    case MIN_FIRST:
        v = roundf(x * r->scale) - r->base;
        return to_int(clamp(v, (float)s->low,
                            s->bits == 32 ? 2147483520.0f : (float)s->high));
    case MIN_COMBINED:
        v = (clamp(x, r->min, r->max) - r->min) * r->scale;
        return to_int(s->low < 0 ? roundf(v - r->base) : v + 0.5f);
    default:
        v = clamp(x, r->min, r->max) * r->scale;
        return to_int(s->to_even ? rintf(v) : roundf(v));
    }
}

/* The range as it will be used, and as the op says it. */
static struct quantized_range quantize_range(const struct quantized_state *s,
                                             float min, float max)
{
    float low = min < 0 ? min : 0, size = fabsf(min), most;
    float steps = (float)(s->high - s->low);
    struct quantized_range r;

    size = fabsf(max) > size ? fabsf(max) : size;
    most = low + (size > 1 ? size : 1) * s->least_range;
    most = max > most ? max : most;
    r = (struct quantized_range){ .min = low, .max = most > 0 ? most : 0 };
    switch (s->mode) {
    case MIN_COMBINED:
        r.scale = steps / (r.max - r.min);
        r.base = s->low < 0 ? (float)((s->high - s->low + 1) / 2) : 0;
        break;
    case MIN_FIRST:
        r.scale = r.max == r.min
                      ? 0
                      : (float)((s->high - s->low) / (double)(r.max - r.min));
        r.base = roundf(r.min * r.scale) - (float)s->low;
        break;
    default: {
        float first = (float)(s->low + s->narrow), last = (float)s->high;
        float from_low = first * r.min > 0 ? first / r.min : 0x1.fffffep127f;
        float from_high = last * r.max > 0 ? last / r.max : 0x1.fffffep127f;

        r.scale = from_low < from_high ? from_low : from_high;
        r.min = first / r.scale;
        r.max = last / r.scale;
    }
    }
    return r;
}

static float dequantize_one(const struct quantized_state *s,
                            const struct quantized_range *r, float x)
{
    switch (s->mode) {
    case MIN_COMBINED:
        return (x + r->base) * r->scale + r->min;
    case MIN_FIRST:
        return r->base + x * r->scale;
    default:
        return x * r->scale;
    }
}

static struct quantized_range dequantize_range(const struct quantized_state *s,
                                               float min, float max)
{
    struct quantized_range r = { .min = min, .max = max };
    float steps = (float)s->high - (float)s->low;

    switch (s->mode) {
    case MIN_COMBINED:
        r.scale = (max - min) / steps;
        r.base = s->low < 0 ? (steps + 1) / 2 : 0;
        break;
    case MIN_FIRST:
        r.scale = (float)((double)(max - min) / (s->high - s->low));
        r.base = max == min ? min : roundf(min / r.scale) * r.scale;
        r.base -= (float)s->low * r.scale;
        break;
    default: {
        float from_low = min / (float)(s->low + s->narrow);
        float from_high = max / (float)s->high;

        r.scale = s->low == 0 || from_high > from_low ? from_high : from_low;
    }
    }
    return r;
}

/* ---- loops over slices ---- */

struct slices {
    int64_t outer, depth, inner;
};

static struct slices slices_of(const struct tensor *in, int64_t axis)
{
    struct slices z = { 1, 1, axis < 0 ? in->count : 1 };

    for (int d = 0; d < in->ndim && axis >= 0; d++)
        *(d < axis ? &z.outer : d == axis ? &z.depth : &z.inner) *= in->dims[d];
    return z;
}

/* The number of ranges given is that of the slices. */
static enum mst_code check_dequantize(struct op_ctx *c, int64_t depth)
{
    const struct quantized_state *s = c->node->state;

    for (int i = 0; i < 2; i++)
        if (op_in(c, 1 + i)->count != depth)
            return op_fail(c, MST_INVALID_ARGUMENT,
                           "input_%s_tensor must have as many elements as "
                           "input on the dequantization axis (%lld), got "
                           "%lld, expected %lld",
                           i ? "max" : "min", (long long)s->axis,
                           (long long)op_in(c, 1 + i)->count, (long long)depth);
    return MST_OK;
}

static enum mst_code check_quantize(struct op_ctx *c, int64_t depth)
{
    const struct quantized_state *s = c->node->state;

    for (int i = 0; i < 2; i++) {
        const struct tensor *t = op_in(c, 1 + i);
        const char *name = i ? "max_range" : "min_range";

        if (s->axis < 0 && t->count != 1)
            return op_fail(c, MST_INVALID_ARGUMENT,
                           "If axis is not specified, %s must contain a "
                           "single float element, but it contains %lld "
                           "elements",
                           name, (long long)t->count);
        if (s->axis >= 0 && (t->ndim != 1 || t->count != depth))
            return op_fail(c, MST_INVALID_ARGUMENT,
                           "If axis is specified, %s must be a 1-D tensor "
                           "whose size matches the axis dimension of the "
                           "input and output tensors, but %s is a %d-D tensor "
                           "of size %lld and input's axis dimension is of "
                           "size %lld",
                           name, name, t->ndim, (long long)t->count,
                           (long long)depth);
    }
    return MST_OK;
}

static enum mst_code check_ranges(struct op_ctx *c, int64_t depth)
{
    const struct quantized_state *s = c->node->state;
    bool to_float = c->node->out_count == 1;
    enum mst_code rc =
        to_float ? check_dequantize(c, depth) : check_quantize(c, depth);

    if (!rc && depth != 1 && s->mode == MIN_FIRST)
        rc = op_fail(c, MST_UNIMPLEMENTED,
                     "MIN_FIRST mode is not implemented for %s with axis != "
                     "-1.",
                     to_float ? "Dequantize" : "Quantize");
    return rc;
}

#define QUANTIZED(q, T, DT)                                                    \
    static void quantize_slice_##q(const struct quantized_state *s,            \
                                   const struct quantized_range *r, void *out, \
                                   const float *in, int64_t n)                 \
    {                                                                          \
        for (int64_t i = 0; i < n; i++)                                        \
            ((T *)out)[i] = (T)quantize_one(s, r, in[i]);                      \
    }                                                                          \
    static void dequantize_slice_##q(                                          \
        const struct quantized_state *s, const struct quantized_range *r,      \
        struct tensor *out, int64_t at, const void *in, int64_t n)             \
    {                                                                          \
        for (int64_t i = 0; i < n; i++) {                                      \
            float v = dequantize_one(s, r, (float)((const T *)in)[at + i]);    \
                                                                               \
            if (out->dtype == DT_FLOAT)                                        \
                TENSOR_DATA(out, float)[at + i] = v;                           \
            else                                                               \
                TENSOR_DATA(out, bf16_bits)[at + i] = bf16_store(v);           \
        }                                                                      \
    }                                                                          \
    static enum mst_code quantize_##q(struct op_ctx *c)                        \
    {                                                                          \
        const struct quantized_state *s = c->node->state;                      \
        struct slices z;                                                       \
        enum mst_code rc = quantize_begin(c, &z);                              \
                                                                               \
        for (int64_t k = 0; k < z.depth && !rc; k++) {                         \
            float *low = TENSOR_DATA(op_out(c, 1), float) + k;                 \
            float *high = TENSOR_DATA(op_out(c, 2), float) + k;                \
            struct quantized_range r =                                         \
                quantize_range(s, TENSOR_DATA(op_in(c, 1), float)[k],          \
                               TENSOR_DATA(op_in(c, 2), float)[k]);            \
                                                                               \
            *low = r.min;                                                      \
            *high = r.max;                                                     \
            for (int64_t o = 0; o < z.outer && op_in(c, 0)->count; o++) {      \
                int64_t at = (o * z.depth + k) * z.inner;                      \
                                                                               \
                quantize_slice_##q(s, &r, TENSOR_DATA(op_out(c, 0), T) + at,   \
                                   TENSOR_DATA(op_in(c, 0), float) + at,       \
                                   z.inner);                                   \
            }                                                                  \
        }                                                                      \
        return rc;                                                             \
    }                                                                          \
    static enum mst_code dequantize_##q(struct op_ctx *c)                      \
    {                                                                          \
        const struct quantized_state *s = c->node->state;                      \
        struct slices z;                                                       \
        enum mst_code rc = dequantize_begin(c, &z);                            \
                                                                               \
        for (int64_t k = 0; k < z.depth && !rc; k++) {                         \
            struct quantized_range r =                                         \
                dequantize_range(s, TENSOR_DATA(op_in(c, 1), float)[k],        \
                                 TENSOR_DATA(op_in(c, 2), float)[k]);          \
                                                                               \
            for (int64_t o = 0; o < z.outer && op_in(c, 0)->count; o++)        \
                dequantize_slice_##q(s, &r, op_out(c, 0),                      \
                                     (o * z.depth + k) * z.inner,              \
                                     op_in(c, 0)->data, z.inner);              \
        }                                                                      \
        return rc;                                                             \
    }

static enum mst_code quantize_begin(struct op_ctx *c, struct slices *z)
{
    const struct quantized_state *s = c->node->state;
    const struct tensor *in = op_in(c, 0);
    enum mst_code rc;

    if (s->axis >= in->ndim || s->axis < -1)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Axis is on a zero-based index, so its value must "
                       "always be less than number of input's dims, but given "
                       "axis value was %lld and input's dims was %d",
                       (long long)s->axis, in->ndim);
    *z = slices_of(in, s->axis);
    rc = check_ranges(c, z->depth);
    for (int64_t k = 0; k < z->depth && !rc; k++)
        if (TENSOR_DATA(op_in(c, 2), float)[k] <
            TENSOR_DATA(op_in(c, 1), float)[k])
            rc = op_fail(c, MST_INVALID_ARGUMENT,
                         "input_max_range must be larger than "
                         "input_min_range.");
    if (!rc)
        rc = op_out_like(c, 0, in);
    if (!rc)
        rc = op_out_like(c, 1, op_in(c, 1));
    return rc ? rc : op_out_like(c, 2, op_in(c, 1));
}

static enum mst_code dequantize_begin(struct op_ctx *c, struct slices *z)
{
    const struct quantized_state *s = c->node->state;
    const struct tensor *in = op_in(c, 0);
    enum mst_code rc;

    if (s->axis >= in->ndim || s->axis < -1)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Axis must be less than input dimension(%d), got %lld",
                       in->ndim, (long long)s->axis);
    *z = slices_of(in, s->axis);
    rc = check_ranges(c, z->depth);
    return rc ? rc : op_out_like(c, 0, in);
}
TYPES_QUANTIZED(QUANTIZED)

#define QUANTIZED_ROW(q, T, DT, op) { DT, op##_##q },
#define QUANTIZED_SET               "{qint8, quint8, qint32, qint16, quint16}"
#define QUANTIZED_MODES             "{'MIN_COMBINED', 'MIN_FIRST', 'SCALED'}"

const struct op_def def_quantize_v2 = {
    .name = "QuantizeV2",
    .in = "input: float, min_range: float, max_range: float",
    .out = "output: T, output_min: float, output_max: float",
    .attr = "T: " QUANTIZED_SET "; mode: " QUANTIZED_MODES " = 'MIN_COMBINED'; "
            "round_mode: {'HALF_AWAY_FROM_ZERO', 'HALF_TO_EVEN'} = "
            "'HALF_AWAY_FROM_ZERO'; narrow_range: bool = false; "
            "axis: int = -1; ensure_minimum_range: float = 0.01",
    .init = quantized_init,
    .kernel = KERNELS(TYPES_QUANTIZED(QUANTIZED_ROW, quantize)),
};

const struct op_def def_dequantize = {
    .name = "Dequantize",
    .in = "input: T, min_range: float, max_range: float",
    .out = "output: dtype",
    .attr = "T: " QUANTIZED_SET "; mode: " QUANTIZED_MODES " = 'MIN_COMBINED'; "
            "narrow_range: bool = false; axis: int = -1; "
            "dtype: {bfloat16, float} = float",
    .init = quantized_init,
    .kernel = KERNELS(TYPES_QUANTIZED(QUANTIZED_ROW, dequantize)),
};
