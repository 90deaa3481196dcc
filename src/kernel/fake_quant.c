/*
 * FakeQuant*: numbers rounded to what few bits can hold, and kept as floats.
 *
 * The range [min, max] is first moved a little, so that zero is one of the
 * 2^bits values. It is an attribute (Args), a scalar (Vars), or one for each
 * element of the last dimension (PerChannel); [0, 0] makes zeros of all.
 * Gradients pass where the input was in the range; the rest of them is the
 * range's.
 */
#include "kernel/types.h"

struct fake_state {
    float min, max; /* of Args */
    bool args, channels;
    float low, high; /* the values of the bits */
};

static enum mst_code fake_init(struct op_node *n, struct status *st)
{
    struct fake_state *s = ARENA_NEW(n->arena, struct fake_state);
    int64_t bits = op_attr_int(n, "num_bits");

    n->state = s;
    s->args = strstr(n->def->name, "Args") != NULL;
    s->channels = strstr(n->def->name, "PerChannel") != NULL;
    if (s->args) {
        s->min = op_attr_float(n, "min");
        s->max = op_attr_float(n, "max");
        if (!(s->min < s->max))
            return status_set(st, MST_INVALID_ARGUMENT,
                              "min has to be smaller than max, was: %g >= %g",
                              (double)s->min, (double)s->max);
    }
    if (bits < 2 || bits > 16)
        return status_set(st, MST_INVALID_ARGUMENT,
                          "num_bits must be between 2 and 16, inclusive");
    s->low = op_attr_bool(n, "narrow_range");
    s->high = (float)((1 << bits) - 1);
    return MST_OK;
}

/* ---- ranges ---- */

struct range {
    float min, max; /* moved */
    float scale, inverse, zero;
    bool none; /* [0, 0] */
};

static struct range nudge(const struct fake_state *s, float min, float max)
{
    struct range r = { .none = min == 0 && max == 0 };
    float zero;

    if (r.none)
        return r;
    r.scale = (max - min) / (s->high - s->low);
    r.inverse = (s->high - s->low) / (max - min);
    zero = s->low - min / r.scale;
    zero = zero < s->low ? s->low : zero > s->high ? s->high : roundf(zero);
    r.min = (s->low - zero) * r.scale;
    r.max = (s->high - zero) * r.scale;
    r.zero = floorf(-r.min * r.inverse + 0.5f);
    return r;
}

/* The ranges of all channels, as bytes of a tensor; there is one if they are
 * not apart. `at` is where the op has its input, min and max come behind. */
static enum mst_code ranges_of(struct op_ctx *c, int at, struct tensor *ret)
{
    const struct fake_state *s = c->node->state;
    const struct tensor *in = op_in(c, at);
    int64_t depth = s->channels && in->ndim ? in->dims[in->ndim - 1] : 1;
    struct range *r;
    enum mst_code rc;

    if (s->channels && !in->ndim)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "input must be at least a vector, was a scalar");
    for (int i = 1; i <= 2 && !s->args; i++) {
        const struct tensor *t = op_in(c, at + i);
        const char *name = i == 1 ? "min" : "max";

        if (!s->channels && t->ndim)
            return op_fail(c, MST_INVALID_ARGUMENT,
                           "`%s` must be rank 0 but is rank %d", name, t->ndim);
        if (s->channels && t->ndim != 1)
            return op_fail(c, MST_INVALID_ARGUMENT,
                           "`%s` must be rank 1 but is rank %d", name, t->ndim);
        if (s->channels && t->dims[0] != depth)
            return op_fail(c, MST_INVALID_ARGUMENT,
                           "%s has incorrect size, expected %lld was %lld",
                           name, (long long)depth, (long long)t->dims[0]);
    }
    rc = tensor_new(ret, DT_UINT8, 2,
                    (int64_t[]){ depth, (int64_t)sizeof(struct range) }, c->st);
    r = ret->data;
    for (int64_t i = 0; i < depth && !rc; i++)
        r[i] = s->args ? nudge(s, s->min, s->max)
                       : nudge(s, TENSOR_DATA(op_in(c, at + 1), float)[i],
                               TENSOR_DATA(op_in(c, at + 2), float)[i]);
    return rc;
}

/* ---- forward ---- */

struct fake_run {
    const struct range *r;
    int64_t depth;
    const float *in, *gradient;
    float *out;
    bool divides; /* Vars divides by the scale, the others multiply */
};

static inline float quantize(const struct range *r, float x, bool divides)
{
    float v = x < r->max ? x : r->max;

    v = (v > r->min ? v : r->min) - r->min;
    v = divides ? v / r->scale : v * r->inverse;
    return r->none ? 0 : floorf(v - r->zero + 0.5f) * r->scale;
}

static void quantize_some(void *arg, int64_t begin, int64_t end)
{
    const struct fake_run *f = arg;

    if (f->depth == 1)
        for (int64_t i = begin; i < end; i++)
            f->out[i] = quantize(f->r, f->in[i], f->divides);
    else
        for (int64_t i = begin; i < end; i++)
            f->out[i] = quantize(&f->r[i % f->depth], f->in[i], f->divides);
}

static enum mst_code fake_quant(struct op_ctx *c)
{
    const struct fake_state *s = c->node->state;
    struct tensor ranges = { 0 };
    enum mst_code rc = ranges_of(c, 0, &ranges);
    struct fake_run f;

    if (!rc)
        rc = op_out_like(c, 0, op_in(c, 0));
    if (!rc) {
        f = (struct fake_run){ .r = ranges.data,
                               .depth = ranges.dims[0],
                               .in = op_in(c, 0)->data,
                               .out = op_out(c, 0)->data,
                               .divides = !s->args && !s->channels };
        op_for(c, op_in(c, 0)->count, 1, quantize_some, &f);
    }
    tensor_unref(&ranges);
    return rc;
}

/* ---- gradients ---- */

static void gradient_some(void *arg, int64_t begin, int64_t end)
{
    const struct fake_run *f = arg;

    for (int64_t i = begin; i < end; i++) {
        const struct range *r = &f->r[f->depth == 1 ? 0 : i % f->depth];
        bool in = f->in[i] >= r->min && f->in[i] <= r->max;

        f->out[i] = f->gradient[i] * (in || r->none ? 1.0f : 0.0f);
    }
}

/* What the ends of the ranges get: sums in double, on one thread. */
static void gradient_of_ends(const struct fake_run *f, int64_t count,
                             float *low, float *high)
{
    for (int64_t k = 0; k < f->depth; k++) {
        double below = 0, above = 0;

        for (int64_t i = k; i < count && !f->r[k].none; i += f->depth) {
            double g = (double)f->gradient[i];

            below += g * (f->in[i] < f->r[k].min ? 1 : 0);
            above += g * (f->in[i] > f->r[k].max ? 1 : 0);
        }
        low[k] = (float)below;
        high[k] = (float)above;
    }
}

static enum mst_code fake_gradient(struct op_ctx *c)
{
    const struct fake_state *s = c->node->state;
    const struct tensor *gradient = op_in(c, 0), *in = op_in(c, 1);
    struct tensor ranges = { 0 };
    enum mst_code rc = MST_OK;
    struct fake_run f;

    if (!tensor_same_shape(gradient, in) && s->args) {
        char gt[SHAPE_TEXT_MAX], it[SHAPE_TEXT_MAX];

        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Inputs to operation %s of type %s must have the same "
                       "size and shape.  Input 0: %s != input 1: %s",
                       c->node->name, c->node->def->name,
                       tensor_shape_text(gradient, gt),
                       tensor_shape_text(in, it));
    }
    if (!tensor_same_shape(gradient, in))
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "gradient and input must be the same size");
    rc = ranges_of(c, 1, &ranges);
    if (!rc)
        rc = op_out_like(c, 0, in);
    for (int i = 1; i < 3 && !rc && !s->args; i++)
        rc = op_out_new(c, i, s->channels, ranges.dims);
    if (!rc) {
        f = (struct fake_run){ .r = ranges.data,
                               .depth = ranges.dims[0],
                               .in = in->data,
                               .gradient = gradient->data,
                               .out = op_out(c, 0)->data };
        op_for(c, in->count, 1, gradient_some, &f);
        if (!s->args)
            gradient_of_ends(&f, in->count, op_out(c, 1)->data,
                             op_out(c, 2)->data);
    }
    tensor_unref(&ranges);
    return rc;
}

/* ---- records ---- */

#define FAKE_DEF(stem, NAME, IN, OUT, ATTR, run)                               \
    const struct op_def def_##stem = {                                         \
        .name = NAME,                                                          \
        .in = IN,                                                              \
        .out = OUT,                                                            \
        .attr = ATTR "num_bits: int = 8; narrow_range: bool = false",          \
        .init = fake_init,                                                     \
        .kernel = KERNELS({ DT_ANY, run }, ),                                  \
    }
#define RANGE_ATTR "min: float = -6; max: float = 6; "
#define BACKPROPS                                                              \
    "backprops_wrt_input: float, backprop_wrt_min: float, "                    \
    "backprop_wrt_max: float"

FAKE_DEF(fake_quant_with_min_max_args, "FakeQuantWithMinMaxArgs",
         "inputs: float", "outputs: float", RANGE_ATTR, fake_quant);
FAKE_DEF(fake_quant_with_min_max_args_gradient,
         "FakeQuantWithMinMaxArgsGradient", "gradients: float, inputs: float",
         "backprops: float", RANGE_ATTR, fake_gradient);
FAKE_DEF(fake_quant_with_min_max_vars, "FakeQuantWithMinMaxVars",
         "inputs: float, min: float, max: float", "outputs: float", "",
         fake_quant);
FAKE_DEF(fake_quant_with_min_max_vars_gradient,
         "FakeQuantWithMinMaxVarsGradient",
         "gradients: float, inputs: float, min: float, max: float", BACKPROPS,
         "", fake_gradient);
FAKE_DEF(fake_quant_with_min_max_vars_per_channel,
         "FakeQuantWithMinMaxVarsPerChannel",
         "inputs: float, min: float, max: float", "outputs: float", "",
         fake_quant);
FAKE_DEF(fake_quant_with_min_max_vars_per_channel_gradient,
         "FakeQuantWithMinMaxVarsPerChannelGradient",
         "gradients: float, inputs: float, min: float, max: float", BACKPROPS,
         "", fake_gradient);
