/*
 * BatchNormWithGlobalNormalization and its gradient, from before there were
 * fused ones: mean and variance are given. The last dimension is the channel.
 */
#include <math.h>

#include "base/mem.h"
#include "kernel/real.h"
#include "kernel/types.h"

struct global_node {
    double epsilon;
    bool scaled;
};

static enum mst_code global_init(struct op_node *n, struct status *st)
{
    struct global_node *s = ARENA_NEW(n->arena, struct global_node);

    (void)st;
    s->epsilon = op_attr_float(n, "variance_epsilon");
    s->scaled = op_attr_bool(n, "scale_after_normalization");
    n->state = s;
    return MST_OK;
}

static enum mst_code check(struct op_ctx *c, const char *const *names)
{
    const struct tensor *t = op_in(c, 0);
    char text[SHAPE_TEXT_MAX];

    if (t->ndim != 4)
        return op_fail(c, MST_INVALID_ARGUMENT, "input must be 4-dimensional%s",
                       tensor_shape_text(t, text));
    for (int i = 1; names[i]; i++) {
        const struct tensor *x = op_in(c, i);

        if (x->ndim != 1)
            return op_fail(c, MST_INVALID_ARGUMENT,
                           "%s must be 1-dimensional%s", names[i],
                           tensor_shape_text(x, text));
        if (x->count != t->dims[3])
            return op_fail(c, MST_INVALID_ARGUMENT,
                           "%s must have the same number of elements as the "
                           "channels of the input, got: %lld and %lld",
                           names[i], (long long)x->count,
                           (long long)t->dims[3]);
    }
    return MST_OK;
}

static double inverse(const struct op_ctx *c, int64_t k)
{
    const struct global_node *s = c->node->state;

    return 1 / sqrt(real_load(op_in(c, 2), k) + s->epsilon);
}

static enum mst_code norm_global(struct op_ctx *c)
{
    static const char *const names[] = { "input", "mean",  "var",
                                         "beta",  "gamma", NULL };
    const struct global_node *s = c->node->state;
    const struct tensor *t = op_in(c, 0);
    enum mst_code rc = check(c, names);

    if (!rc)
        rc = op_out_like(c, 0, t);
    for (int64_t i = 0; !rc && i < t->count; i++) {
        int64_t k = i % t->dims[3];
        double scale = inverse(c, k);

        if (s->scaled)
            scale *= real_load(op_in(c, 4), k);
        real_store(op_out(c, 0), i,
                   (real_load(t, i) - real_load(op_in(c, 1), k)) * scale +
                       real_load(op_in(c, 3), k));
    }
    return rc;
}

/* Outputs: dx, dm, dv, db, dg. */
static void add_up(struct op_ctx *c, double *sum, double *sum_x)
{
    const struct global_node *s = c->node->state;
    const struct tensor *t = op_in(c, 0), *g = op_in(c, 4);
    int64_t n = t->dims[3];

    for (int64_t i = 0; i < t->count; i++) {
        int64_t k = i % n;
        double y = real_load(g, i), scale = inverse(c, k);

        sum[k] += y;
        sum_x[k] += y * (real_load(t, i) - real_load(op_in(c, 1), k));
        if (s->scaled)
            scale *= real_load(op_in(c, 3), k);
        real_store(op_out(c, 0), i, y * scale);
    }
    for (int64_t k = 0; k < n; k++) {
        double r = inverse(c, k);
        double gamma = s->scaled ? real_load(op_in(c, 3), k) : 1;

        real_store(op_out(c, 1), k, -sum[k] * gamma * r);
        real_store(op_out(c, 2), k, -0.5 * sum_x[k] * gamma * r * r * r);
        real_store(op_out(c, 3), k, sum[k]);
        real_store(op_out(c, 4), k, s->scaled ? sum_x[k] * r : 0);
    }
}

static enum mst_code norm_global_grad(struct op_ctx *c)
{
    static const char *const names[] = { "input", "mean", "var", "gamma",
                                         NULL };
    const struct tensor *t = op_in(c, 0);
    enum mst_code rc = check(c, names);
    double *sums;

    if (!rc && !tensor_same_shape(t, op_in(c, 4)))
        rc = op_fail(c, MST_INVALID_ARGUMENT,
                     "out_backprop and the input must have the same shape");
    if (!rc)
        rc = op_out_like(c, 0, t);
    for (int i = 1; i < 5 && !rc; i++)
        rc = op_out_new(c, i, 1, &t->dims[3]);
    if (rc)
        return rc;
    sums = mem_array((size_t)t->dims[3] * 2 + 1, sizeof(*sums));
    add_up(c, sums, sums + t->dims[3]);
    mem_free(sums);
    return MST_OK;
}

#define GLOBAL_ATTRS                                                           \
    "T: numbertype; variance_epsilon: float; scale_after_normalization: bool"
#define GLOBAL_ROWS(fn)                                                        \
    (const struct op_kernel[])                                                 \
    {                                                                          \
        { DT_HALF, fn }, { DT_FLOAT, fn }, { DT_DOUBLE, fn },                  \
        {                                                                      \
            0                                                                  \
        }                                                                      \
    }

const struct op_def def_batch_norm_with_global_normalization = {
    .name = "BatchNormWithGlobalNormalization",
    .in = "t: T, m: T, v: T, beta: T, gamma: T",
    .out = "result: T",
    .attr = GLOBAL_ATTRS,
    .init = global_init,
    .kernel = GLOBAL_ROWS(norm_global),
};

const struct op_def def_batch_norm_with_global_normalization_grad = {
    .name = "BatchNormWithGlobalNormalizationGrad",
    .in = "t: T, m: T, v: T, gamma: T, backprop: T",
    .out = "dx: T, dm: T, dv: T, db: T, dg: T",
    .attr = GLOBAL_ATTRS,
    .init = global_init,
    .kernel = GLOBAL_ROWS(norm_global_grad),
};
