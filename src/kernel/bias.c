/*
 * BiasAdd and its gradient. A tensor is seen as outer x channels x inner, with
 * inner 1 when the channels come last (NHWC), and channels in dimension 1
 * otherwise (NCHW), for any number of dimensions from two up.
 */
#include "kernel/reduce.h"

static enum mst_code bias_init(struct op_node *n, struct status *st)
{
    const struct attr *format = op_attr(n, "data_format");

    /* Set when the channels come second. */
    if (format && !strcmp(format->value->s.data, "NCHW"))
        n->state = n;
    return MST_OK;
}

static int channel_dim(const struct op_ctx *c, const struct tensor *t)
{
    return c->node->state ? 1 : t->ndim - 1;
}

struct bias_job {
    /* n elements: one bias each, or one for all. */
    void (*each)(void *out, const void *in, const void *bias, int64_t n);
    void (*all)(void *out, const void *in, const void *bias, int64_t n);
    const char *in, *bias;
    char *out;
    size_t size;
    int64_t channels, inner;
};

/* Rows: of all channels when inner is 1, of one channel otherwise. */
static void bias_rows(void *arg, int64_t begin, int64_t end)
{
    const struct bias_job *j = arg;
    int64_t n = j->inner == 1 ? j->channels : j->inner;

    for (int64_t i = begin; i < end; i++) {
        size_t at = (size_t)(i * n) * j->size;

        if (j->inner == 1)
            j->each(j->out + at, j->in + at, j->bias, n);
        else
            j->all(j->out + at, j->in + at,
                   j->bias + (size_t)(i % j->channels) * j->size, n);
    }
}

static enum mst_code bias_run(struct op_ctx *c, struct bias_job *j)
{
    const struct tensor *in = op_in(c, 0), *bias = op_in(c, 1);
    char it[SHAPE_TEXT_MAX], bt[SHAPE_TEXT_MAX];
    int64_t row;
    enum mst_code rc;

    if (in->ndim < 2)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Input tensor must be at least 2D: %s",
                       tensor_shape_text(in, it));
    if (bias->ndim != 1)
        return op_fail(c, MST_INVALID_ARGUMENT, "Biases must be 1D: %s",
                       tensor_shape_text(bias, bt));
    j->channels = in->dims[channel_dim(c, in)];
    if (bias->count != j->channels)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Must provide as many biases as the last dimension of "
                       "the input tensor: %s vs. %s",
                       tensor_shape_text(bias, bt), tensor_shape_text(in, it));
    rc = op_out_forward(c, 0, 0);
    if (rc || !in->count)
        return rc;
    j->inner = 1;
    for (int i = channel_dim(c, in) + 1; i < in->ndim; i++)
        j->inner *= in->dims[i];
    j->in = in->data;
    j->bias = bias->data;
    j->out = op_out(c, 0)->data;
    j->size = dtype_size((enum dtype)in->dtype);
    row = j->inner == 1 ? j->channels : j->inner;
    op_for(c, in->count / row, 0.4 * (double)row, bias_rows, j);
    return MST_OK;
}

#define BIAS_LOOP(name, s, T, A, LD, ST, INDEX)                                \
    CLONES_##s static void name##_##s(void *out_, const void *in_,             \
                                      const void *bias_, int64_t n)            \
    {                                                                          \
        const T *in = in_, *bias = bias_;                                      \
        T *out = out_;                                                         \
                                                                               \
        LOOP_IN_PLACE                                                          \
        for (int64_t i = 0; i < n; i++)                                        \
            out[i] = (T)ST((A)(LD(in[i]) + LD(bias[INDEX])));                  \
    }
#define BIAS(s, T, A, DT, LD, ST)                                              \
    BIAS_LOOP(each, s, T, A, LD, ST, i)                                        \
    BIAS_LOOP(all, s, T, A, LD, ST, 0)                                         \
    static enum mst_code bias_add_##s(struct op_ctx *c)                        \
    {                                                                          \
        struct bias_job j = { .each = each_##s, .all = all_##s };              \
                                                                               \
        return bias_run(c, &j);                                                \
    }
TYPES_FLOAT(BIAS)
TYPES_UNSIGNED(BIAS)
TYPES_COMPLEX(BIAS)

#define BIAS_KERNELS                                                           \
    KERNELS(TYPES_FLOAT(ROW, bias_add) TYPES_UNSIGNED(ROW, bias_add)           \
                TYPES_SIGNED_WRAP(ROW, bias_add) TYPES_COMPLEX(ROW, bias_add))
#define BIAS_ATTR "T: numbertype; data_format: {'NHWC', 'NCHW'} = 'NHWC'"

const struct op_def def_bias_add = {
    .name = "BiasAdd",
    .in = "value: T, bias: T",
    .out = "output: T",
    .attr = BIAS_ATTR,
    .init = bias_init,
    .kernel = BIAS_KERNELS,
};

const struct op_def def_bias_add_v1 = {
    .name = "BiasAddV1",
    .in = "value: T, bias: T",
    .out = "output: T",
    .attr = "T: numbertype",
    .init = bias_init,
    .kernel = BIAS_KERNELS,
};

/* ---- the gradient: the sum over all but the channels ---- */

static enum mst_code bias_add_grad(struct op_ctx *c)
{
    const struct tensor *in = op_in(c, 0);
    bool mask[TENSOR_RANK_MAX];
    char text[SHAPE_TEXT_MAX];
    struct reduce_shape s;
    enum mst_code rc;

    if (in->ndim < 2)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Input tensor must be at least 2D: %s",
                       tensor_shape_text(in, text));
    for (int i = 0; i < in->ndim; i++)
        mask[i] = i != channel_dim(c, in);
    reduce_shape_mask(in, mask, false, &s);
    rc = op_out_new(c, 0, s.out.ndim, s.out.dims);
    if (!rc)
        reduce_run(c, reduce_of(REDUCE_SUM, (enum dtype)in->dtype), &s, in,
                   op_out(c, 0)->data, 0.1);
    return rc;
}

#define GRAD_ROW(s, T, A, DT, LD, ST) { DT, bias_add_grad },

const struct op_def def_bias_add_grad = {
    .name = "BiasAddGrad",
    .in = "out_backprop: T",
    .out = "output: T",
    .attr = BIAS_ATTR,
    .init = bias_init,
    .kernel = KERNELS(TYPES_NUMBER(GRAD_ROW)),
};
