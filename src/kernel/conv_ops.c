/*
 * The ops of convolution over two and three dimensions, and their gradients.
 * What they share: a window, three tensors x, w and y of which two are given,
 * and the checks of their shapes, in TensorFlow's words. 16-bit floats are
 * computed in float.
 */
#include <string.h>

#include "kernel/cast.h"
#include "kernel/conv.h"
#include "kernel/types.h"

enum conv_part { CONV_X, CONV_W, CONV_Y };

/* A node: which of the three it computes, and where the others come from. */
struct conv_node {
    struct window w;
    enum conv_part result;
    bool by_sizes; /* the result's shape is given as a vector */
};

/* What TensorFlow's errors call the op. */
static const char *label(const struct op_ctx *c)
{
    const struct conv_node *n = c->node->state;

    if (n->w.nd == 3)
        return n->result == CONV_X ? "Conv3DBackpropInputOp"
                                   : "Conv3DBackpropFilterOp";
    return n->result == CONV_X ? "Conv2DCustomBackpropInput"
                               : "Conv2DCustomBackpropFilter";
}

static enum conv_part result_of(const char *name)
{
    return strstr(name, "BackpropInput")    ? CONV_X
           : strstr(name, "BackpropFilter") ? CONV_W
                                            : CONV_Y;
}

static enum mst_code conv_init(struct op_node *n, struct status *st)
{
    struct conv_node *s = ARENA_NEW(n->arena, struct conv_node);
    int nd = strstr(n->def->name, "3D") ? 3 : 2;
    enum mst_code rc = window_init(n, nd, &s->w, st);

    if (rc)
        return rc;
    if (s->w.batch_stride != 1 || s->w.channel_stride != 1)
        return status_set(st,
                          nd == 2 ? MST_UNIMPLEMENTED : MST_INVALID_ARGUMENT,
                          "Current implementation does not yet support strides "
                          "in the batch and depth dimensions.");
    for (int i = 0; i < 3; i++)
        if (s->w.stride[i] < 1)
            return status_set(st, MST_INVALID_ARGUMENT,
                              nd == 2 ? "Row and column strides should be "
                                        "larger than 0."
                                      : "Spatial strides should be larger than "
                                        "0.");
    s->result = result_of(n->def->name);
    s->by_sizes = strstr(n->def->in, "_sizes") != NULL;
    n->state = s;
    return MST_OK;
}

/* ---- shapes ---- */

/* Dimensions of x, w and y as the node has them. */
struct conv_shapes {
    int64_t x[5], w[5], y[5];
};

/* input_sizes, filter_sizes: a vector, or the tensor itself in later ops. */
static enum mst_code read_sizes(struct op_ctx *c, int i, int want, int64_t *ret)
{
    const struct conv_node *s = c->node->state;
    const struct tensor *t = op_in(c, i);
    const char *name = c->node->def->name;
    const char *what = s->result == CONV_X ? "input" : "filter";

    if (!s->by_sizes) {
        if (t->ndim != want)
            return op_fail(c, MST_INVALID_ARGUMENT,
                           "%s: %s must be %d-dimensional", label(c), what,
                           want);
        memcpy(ret, t->dims, (size_t)want * sizeof(*ret));
        return MST_OK;
    }
    if (t->ndim != 1)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "%s: %s_sizes input must be 1-dim, not %d", name, what,
                       t->ndim);
    if (t->count != want &&
        !(s->result == CONV_X && want == 4 && t->count == 2))
        return op_fail(c, MST_INVALID_ARGUMENT,
                       s->result == CONV_X && want == 4
                           ? "%s requires input_sizes to contain 4 values or 2 "
                             "values, but got: %lld"
                           : "%s: sizes must have as many values as the filter "
                             "has dimensions, but got: %lld",
                       name, (long long)t->count);
    for (int64_t k = 0; k < t->count; k++) {
        ret[k] = tensor_int(t, k);
        if (ret[k] < 0)
            return op_fail(c, MST_INVALID_ARGUMENT,
                           "Dimension %lld must be >= 0", (long long)ret[k]);
    }
    if (t->count == 2) { /* height and width; the rest is known */
        const struct tensor *w = op_in(c, 1), *y = op_in(c, 2);
        bool first = s->w.channels_first;
        int64_t h = ret[0], v = ret[1];

        if (w->ndim != 4 || y->ndim != 4)
            return op_fail(c, MST_INVALID_ARGUMENT,
                           "%s: filter must be 4-dimensional", name);
        ret[0] = y->dims[0];
        ret[first ? 2 : 1] = h;
        ret[first ? 3 : 2] = v;
        ret[first ? 1 : 3] = w->dims[2];
    }
    if (!shape_count(want, ret, 8, &(int64_t){ 0 }))
        return op_fail(c, MST_INVALID_ARGUMENT, "%s: %s is too large", name,
                       what);
    return MST_OK;
}

static enum mst_code check_rank(struct op_ctx *c, const struct tensor *t,
                                int want, const char *what, bool forward)
{
    char text[SHAPE_TEXT_MAX];

    if (t->ndim == want)
        return MST_OK;
    if (!forward)
        return op_fail(c, MST_INVALID_ARGUMENT, "%s: %s must be %d-dimensional",
                       label(c), what, want);
    if (want == 5)
        return op_fail(c, MST_INVALID_ARGUMENT, "%s must be 5-dimensional",
                       what);
    return op_fail(c, MST_INVALID_ARGUMENT,
                   "convolution %s must be 4-dimensional: %s", what,
                   tensor_shape_text(t, text));
}

/* The shapes of the three, as far as they are given. */
static enum mst_code read_shapes(struct op_ctx *c, struct conv_shapes *s)
{
    const struct conv_node *n = c->node->state;
    int want = n->w.nd + 2;
    int64_t *const dims[3] = { s->x, s->w, s->y };

    for (int i = 0; i < c->node->in_count; i++) {
        static const char *const names[] = { "input", "filter",
                                             "out_backprop" };
        enum mst_code rc;

        if (n->result == (enum conv_part)i) {
            rc = read_sizes(c, i, want, dims[i]);
        } else {
            rc =
                check_rank(c, op_in(c, i), want, names[i], n->result == CONV_Y);
            if (!rc)
                memcpy(dims[i], op_in(c, i)->dims,
                       (size_t)want * sizeof(int64_t));
        }
        if (rc)
            return rc;
    }
    return MST_OK;
}

static enum mst_code check_depths(struct op_ctx *c, struct conv_shapes *s,
                                  struct conv *v)
{
    const struct conv_node *n = c->node->state;
    const char *name = label(c);
    int nd = n->w.nd, last = n->w.channels_first ? 1 : nd + 1;
    int64_t depth = s->w[nd];

    v->filters = s->w[nd + 1];
    if (depth < 1)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "filter depth must be stricly greated than 0");
    if (s->x[last] % depth || (nd == 3 && s->x[last] != depth))
        return n->result == CONV_Y
                   ? op_fail(c, MST_INVALID_ARGUMENT,
                             "%cnput depth must be evenly divisible by filter "
                             "depth: %lld vs %lld",
                             nd == 3 ? 'I' : 'i', (long long)s->x[last],
                             (long long)depth)
                   : op_fail(c, MST_INVALID_ARGUMENT,
                             "%s: input depth must be evenly divisible by "
                             "filter depth",
                             name);
    v->groups = MAX(s->x[last] / depth, 1);
    if (v->filters % v->groups)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "output depth must be evenly divisible by number of "
                       "groups: %lld vs %lld",
                       (long long)v->filters, (long long)v->groups);
    if (n->result == CONV_Y)
        return MST_OK;
    if (s->x[0] != s->y[0])
        return op_fail(
            c, MST_INVALID_ARGUMENT,
            "%s: input and out_backprop must have the same batch size. "
            "Input batch: %lld, outbackprop batch: %lld, "
            "batch_dim: 0",
            name, (long long)s->x[0], (long long)s->y[0]);
    if (v->filters != s->y[last])
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "%s: filter and out_backprop must have the same "
                       "out_depth",
                       name);
    return MST_OK;
}

/* The window over x, and whether y is what comes out of it. */
static enum mst_code fit(struct op_ctx *c, struct conv_shapes *s,
                         struct conv *v)
{
    const struct conv_node *n = c->node->state;
    int nd = n->w.nd, first = n->w.channels_first ? 2 : 1;
    struct window w = n->w;
    enum mst_code rc;

    for (int i = 0; i < nd; i++) {
        w.size[3 - nd + i] = s->w[i];
        if (s->w[i] > INT32_MAX)
            return op_fail(c, MST_INVALID_ARGUMENT, "filter too large");
    }
    rc = window_fit(c, &w, s->x, &v->fit);
    if (rc || n->result == CONV_Y)
        return rc;
    for (int i = 0; i < nd; i++) {
        const struct window_dim *d = &v->fit.dim[3 - nd + i];

        if (d->out != s->y[first + i])
            return op_fail(c, MST_INVALID_ARGUMENT,
                           "%s: Size of out_backprop doesn't match computed: "
                           "actual = %lld, computed = %lld spatial_dim: %d "
                           "input: %lld filter: %lld output: %lld stride: %lld "
                           "dilation: %lld",
                           label(c), (long long)s->y[first + i],
                           (long long)d->out, first + i, (long long)d->in,
                           (long long)d->size, (long long)s->y[first + i],
                           (long long)d->stride, (long long)d->dilation);
    }
    return MST_OK;
}

/* ---- the run ---- */

/* Input i as the loops want it: channels last, in their type. */
static enum mst_code operand(struct op_ctx *c, int i, enum dtype want,
                             struct tensor *ret)
{
    const struct conv_node *n = c->node->state;
    struct tensor t = { 0 };
    enum mst_code rc;

    if (i == CONV_W)
        t = tensor_ref(op_in(c, i));
    else if ((rc = window_in(c, &n->w, op_in(c, i), &t)))
        return rc;
    if (t.dtype == want) {
        *ret = t;
        return MST_OK;
    }
    rc = cast_tensor(c, ret, want, &t);
    tensor_unref(&t);
    return rc;
}

/* The shape of the result with the channels last. */
static void result_dims(const struct conv_node *n, const struct conv_shapes *s,
                        const struct conv *v, int64_t *ret)
{
    struct window w = n->w;

    w.channels_first = false;
    if (n->result == CONV_W)
        memcpy(ret, s->w, sizeof(s->w));
    else
        window_dims(&w, &v->fit,
                    n->result == CONV_X ? v->fit.channels : v->filters,
                    n->result == CONV_X, ret);
}

static enum mst_code compute(struct op_ctx *c, struct conv *v,
                             struct tensor *out, struct tensor *in)
{
    const struct conv_node *n = c->node->state;
    enum mst_code rc = MST_OK;
    bool empty = !out->count;

    for (int i = 0; i < 3; i++)
        if (i != (int)n->result && !op_in(c, i)->count)
            empty = true;
    if (empty) {
        tensor_zero(out);
        return MST_OK;
    }
    for (int i = 0; i < 3 && !rc; i++)
        if (i != (int)n->result)
            rc = operand(c, i, v->dtype, &in[i]);
    if (rc)
        return rc;
    v->x = in[CONV_X].data;
    v->w = in[CONV_W].data;
    v->y = in[CONV_Y].data;
    v->out = out->data;
    return n->result == CONV_Y   ? conv_forward(c, v)
           : n->result == CONV_X ? conv_back_input(c, v)
                                 : conv_back_filter(c, v);
}

static enum mst_code conv(struct op_ctx *c)
{
    const struct conv_node *n = c->node->state;
    enum dtype type = dtype_base(c->node->out_types[0]);
    struct tensor in[3] = { { 0 } }, out = { 0 }, narrow = { 0 };
    struct conv v = { 0 };
    struct conv_shapes s;
    int64_t dims[5];
    enum mst_code rc;

    v.dtype = type == DT_HALF || type == DT_BFLOAT16 ? DT_FLOAT : type;
    if ((rc = read_shapes(c, &s)) || (rc = check_depths(c, &s, &v)) ||
        (rc = fit(c, &s, &v)))
        return rc;
    result_dims(n, &s, &v, dims);
    rc = tensor_new(&out, v.dtype, n->w.nd + 2, dims, c->st);
    if (!rc)
        rc = compute(c, &v, &out, in);
    for (int i = 0; i < 3; i++)
        tensor_unref(&in[i]);
    if (!rc && type != v.dtype) {
        rc = cast_tensor(c, &narrow, type, &out);
        tensor_unref(&out);
        tensor_move(&out, &narrow);
    }
    if (!rc && n->result == CONV_W)
        tensor_move(op_out(c, 0), &out);
    else if (!rc)
        rc = window_out(c, &n->w, &out, op_out(c, 0));
    tensor_unref(&out);
    return rc;
}

/* ---- records ---- */

#define CONV2_ATTRS(TYPES)                                                     \
    "T: {" TYPES "}; strides: list(int); use_cudnn_on_gpu: bool = true; "      \
    "padding: {'SAME', 'VALID', 'EXPLICIT'}; "                                 \
    "explicit_paddings: list(int) = []; "                                      \
    "data_format: {'NHWC', 'NCHW'} = 'NHWC'; "                                 \
    "dilations: list(int) = [1, 1, 1, 1]"
#define CONV3_ATTRS                                                            \
    "T: {half, bfloat16, float, double}; strides: list(int) >= 5; "            \
    "padding: {'SAME', 'VALID'}; data_format: {'NDHWC', 'NCDHW'} = 'NDHWC'; "  \
    "dilations: list(int) = [1, 1, 1, 1, 1]"
#define CONV3_OLD_ATTRS                                                        \
    "T: {half, float, double}; strides: list(int) >= 5; "                      \
    "padding: {'SAME', 'VALID'}; dilations: list(int) = [1, 1, 1, 1, 1]"

#define CONV_FLOATS                                                            \
    { DT_FLOAT, conv }, { DT_DOUBLE, conv }, { DT_HALF, conv },                \
    {                                                                          \
        DT_BFLOAT16, conv                                                      \
    }

#define CONV_DEF(stem, NAME, IN, ATTRS, ...)                                   \
    const struct op_def def_##stem = {                                         \
        .name = NAME,                                                          \
        .in = IN,                                                              \
        .out = "output: T",                                                    \
        .attr = ATTRS,                                                         \
        .flags = OP_EXPENSIVE,                                                 \
        .init = conv_init,                                                     \
        .kernel = (const struct op_kernel[]){ __VA_ARGS__, { 0 } },            \
    }

CONV_DEF(conv2d, "Conv2D", "input: T, filter: T",
         CONV2_ATTRS("half, bfloat16, float, double, int32"), CONV_FLOATS,
         { DT_INT32, conv });
CONV_DEF(conv2d_backprop_input, "Conv2DBackpropInput",
         "input_sizes: int32, filter: T, out_backprop: T",
         CONV2_ATTRS("half, bfloat16, float, double, int32"), CONV_FLOATS,
         { DT_INT32, conv });
CONV_DEF(conv2d_backprop_filter, "Conv2DBackpropFilter",
         "input: T, filter_sizes: int32, out_backprop: T",
         CONV2_ATTRS("half, bfloat16, float, double"), CONV_FLOATS);
CONV_DEF(conv3d, "Conv3D", "input: T, filter: T", CONV3_ATTRS, CONV_FLOATS);
CONV_DEF(conv3d_backprop_input, "Conv3DBackpropInput",
         "input: T, filter: T, out_backprop: T", CONV3_OLD_ATTRS, CONV_FLOATS);
CONV_DEF(conv3d_backprop_input_v2, "Conv3DBackpropInputV2",
         "input_sizes: Tshape, filter: T, out_backprop: T",
         CONV3_ATTRS "; Tshape: {int32, int64} = int32", CONV_FLOATS);
CONV_DEF(conv3d_backprop_filter, "Conv3DBackpropFilter",
         "input: T, filter: T, out_backprop: T", CONV3_OLD_ATTRS, CONV_FLOATS);
CONV_DEF(conv3d_backprop_filter_v2, "Conv3DBackpropFilterV2",
         "input: T, filter_sizes: int32, out_backprop: T", CONV3_ATTRS,
         CONV_FLOATS);
