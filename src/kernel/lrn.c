/*
 * LRN, local response normalisation: each element divided by a power of the
 * squares of its neighbours in depth; and its gradient.
 */
#include "kernel/pointwise.h"

struct lrn_node {
    int64_t radius;
    float bias, alpha, beta;
};

static enum mst_code lrn_init(struct op_node *n, struct status *st)
{
    struct lrn_node *s = ARENA_NEW(n->arena, struct lrn_node);

    s->radius = op_attr_int(n, "depth_radius");
    if (s->radius < 0 || s->radius > INT32_MAX)
        return status_set(st, MST_INVALID_ARGUMENT,
                          "depth_radius = %lld larger than int max",
                          (long long)s->radius);
    s->bias = op_attr_float(n, "bias");
    s->alpha = op_attr_float(n, "alpha");
    s->beta = op_attr_float(n, "beta");
    n->state = s;
    return MST_OK;
}

struct lrn_job {
    const struct lrn_node *node;
    int64_t depth;
    const void *grad, *in, *out;
    void *result;
};

#define LRN(s, T, A, DT, LD, ST)                                               \
    static float norm_##s(const struct lrn_job *j, const T *in, int64_t i)     \
    {                                                                          \
        int64_t end = MIN(i + j->node->radius + 1, j->depth);                  \
        float sum = 0;                                                         \
                                                                               \
        for (int64_t k = MAX(i - j->node->radius, 0); k < end; k++)            \
            sum += LD(in[k]) * LD(in[k]);                                      \
        return j->node->bias + j->node->alpha * sum;                           \
    }                                                                          \
    static void lrn_rows_##s(void *arg, int64_t begin, int64_t end)            \
    {                                                                          \
        const struct lrn_job *j = arg;                                         \
                                                                               \
        for (int64_t r = begin; r < end; r++) {                                \
            const T *in = (const T *)j->in + r * j->depth;                     \
            T *out = (T *)j->result + r * j->depth;                            \
                                                                               \
            for (int64_t i = 0; i < j->depth; i++)                             \
                out[i] =                                                       \
                    ST(LD(in[i]) * powf(norm_##s(j, in, i), -j->node->beta));  \
        }                                                                      \
    }                                                                          \
    static float back_##s(const struct lrn_job *j, const T *in, const T *out,  \
                          const T *grad, int64_t i)                            \
    {                                                                          \
        int64_t end = MIN(i + j->node->radius + 1, j->depth);                  \
        float sum = 0;                                                         \
                                                                               \
        for (int64_t k = MAX(i - j->node->radius, 0); k < end; k++) {          \
            float n = norm_##s(j, in, k), d;                                   \
                                                                               \
            d = -2 * j->node->alpha * j->node->beta * LD(in[i]) * LD(out[k]) / \
                n;                                                             \
            if (k == i)                                                        \
                d += powf(n, -j->node->beta);                                  \
            sum += d * LD(grad[k]);                                            \
        }                                                                      \
        return sum;                                                            \
    }                                                                          \
    static void lrn_grad_rows_##s(void *arg, int64_t begin, int64_t end)       \
    {                                                                          \
        const struct lrn_job *j = arg;                                         \
                                                                               \
        for (int64_t r = begin; r < end; r++) {                                \
            int64_t at = r * j->depth;                                         \
                                                                               \
            for (int64_t i = 0; i < j->depth; i++)                             \
                ((T *)j->result)[at + i] = ST(                                 \
                    back_##s(j, (const T *)j->in + at, (const T *)j->out + at, \
                             (const T *)j->grad + at, i));                     \
        }                                                                      \
    }
TYPES_FLOAT32(LRN)
TYPES_FLOAT16(LRN)

static enum mst_code lrn_run(struct op_ctx *c,
                             void (*rows)(void *, int64_t, int64_t))
{
    const struct tensor *in = op_in(c, 0);
    struct lrn_job j = { .node = c->node->state };
    bool grad = c->node->in_count == 3;
    double reach;
    enum mst_code rc;

    for (int i = 0; i < c->node->in_count; i++)
        if (op_in(c, i)->ndim != 4)
            return op_fail(c, MST_INVALID_ARGUMENT, "%s must be 4-dimensional",
                           grad ? "inputs" : "in");
    for (int i = 1; i < c->node->in_count; i++)
        if (!tensor_same_shape(in, op_in(c, i)))
            return op_fail(c, MST_INVALID_ARGUMENT,
                           "input_grads, input_image, and out_image should "
                           "have the same shape");
    rc = op_out_like(c, 0, in);
    if (rc || !in->count)
        return rc;
    j.depth = in->dims[3];
    j.grad = in->data;
    j.in = op_in(c, grad ? 1 : 0)->data;
    j.out = grad ? op_in(c, 2)->data : NULL;
    j.result = op_out(c, 0)->data;
    reach = (double)MIN(2 * j.node->radius + 1, j.depth);
    op_for(c, in->count / j.depth,
           (double)j.depth * (grad ? reach * reach : 20 + reach), rows, &j);
    return MST_OK;
}

#define LRN_RUN(s, T, A, DT, LD, ST)                                           \
    static enum mst_code lrn_##s(struct op_ctx *c)                             \
    {                                                                          \
        return lrn_run(c, lrn_rows_##s);                                       \
    }                                                                          \
    static enum mst_code lrn_grad_##s(struct op_ctx *c)                        \
    {                                                                          \
        return lrn_run(c, lrn_grad_rows_##s);                                  \
    }
TYPES_FLOAT32(LRN_RUN)
TYPES_FLOAT16(LRN_RUN)

#define LRN_ATTRS                                                              \
    "depth_radius: int = 5; bias: float = 1; alpha: float = 1; "               \
    "beta: float = 0.5; T: {half, bfloat16, float} = float"

const struct op_def def_lrn = {
    .name = "LRN",
    .in = "input: T",
    .out = "output: T",
    .attr = LRN_ATTRS,
    .init = lrn_init,
    .kernel = KERNELS(TYPES_FLOAT32(ROW, lrn) TYPES_FLOAT16(ROW, lrn)),
};

const struct op_def def_lrn_grad = {
    .name = "LRNGrad",
    .in = "input_grads: T, input_image: T, output_image: T",
    .out = "output: T",
    .attr = LRN_ATTRS,
    .init = lrn_init,
    .kernel =
        KERNELS(TYPES_FLOAT32(ROW, lrn_grad) TYPES_FLOAT16(ROW, lrn_grad)),
};
