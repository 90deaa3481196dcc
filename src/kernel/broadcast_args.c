/*
 * How two shapes broadcast, as values: the shape of the result
 * (BroadcastArgs), and over which of its dimensions a gradient has to be
 * summed to get back to each of the two (BroadcastGradientArgs).
 */
#include <string.h>

#include "kernel/args.h"

/* Both shapes, filled up with ones in front to the same rank. */
struct two {
    int ndim;
    int64_t dims[2][TENSOR_RANK_MAX];
    bool same; /* without filling up */
};

static enum mst_code read_two(struct op_ctx *c, struct two *t)
{
    char text[2][SHAPE_TEXT_MAX];
    struct shape s[2];

    for (int i = 0; i < 2; i++) {
        const struct tensor *in = op_in(c, i);
        enum mst_code rc;

        if (in->ndim != 1)
            return op_fail(c, MST_INVALID_ARGUMENT,
                           "In[%d] must be a vector.%s", i,
                           tensor_shape_text(in, text[0]));
        rc = args_ints(c, in, s[i].dims);
        if (rc)
            return rc;
        s[i].ndim = (int)in->count;
    }
    t->ndim = MAX(s[0].ndim, s[1].ndim);
    t->same = s[0].ndim == s[1].ndim;
    for (int d = 0; d < t->ndim; d++) {
        for (int i = 0; i < 2; i++) {
            int at = d - (t->ndim - s[i].ndim);

            t->dims[i][d] = at < 0 ? 1 : s[i].dims[at];
        }
        t->same &= t->dims[0][d] == t->dims[1][d];
        if (t->dims[0][d] != t->dims[1][d] && t->dims[0][d] != 1 &&
            t->dims[1][d] != 1)
            return op_fail(c, MST_INVALID_ARGUMENT,
                           "Incompatible shapes: %s vs. %s",
                           shape_text(s[0].ndim, s[0].dims, text[0]),
                           shape_text(s[1].ndim, s[1].dims, text[1]));
    }
    return MST_OK;
}

static enum mst_code put_ints(struct op_ctx *c, int i, int n, const int64_t *v)
{
    enum mst_code rc = op_out_new(c, i, 1, (int64_t[]){ n });

    for (int k = 0; k < n && !rc; k++) {
        if (op_out(c, i)->dtype == DT_INT32)
            TENSOR_DATA(op_out(c, i), int32_t)[k] = (int32_t)v[k];
        else
            TENSOR_DATA(op_out(c, i), int64_t)[k] = v[k];
    }
    return rc;
}

static enum mst_code broadcast_args(struct op_ctx *c)
{
    struct two t;
    enum mst_code rc = read_two(c, &t);

    for (int d = 0; !rc && d < t.ndim; d++)
        if (t.dims[0][d] == 1)
            t.dims[0][d] = t.dims[1][d];
    return rc ? rc : put_ints(c, 0, t.ndim, t.dims[0]);
}

const struct op_def def_broadcast_args = {
    .name = "BroadcastArgs",
    .in = "s0: T, s1: T",
    .out = "r0: T",
    .attr = "T: {int32, int64} = int32",
    .kernel = (const struct op_kernel[]){ { DT_ANY, broadcast_args }, { 0 } },
};

static enum mst_code broadcast_gradient_args(struct op_ctx *c)
{
    struct two t;
    enum mst_code rc = read_two(c, &t);

    for (int i = 0; i < 2 && !rc; i++) {
        int64_t sum[TENSOR_RANK_MAX];
        int n = 0;

        for (int d = 0; d < t.ndim && !t.same; d++)
            if (t.dims[i][d] == 1)
                sum[n++] = d;
        rc = put_ints(c, i, n, sum);
    }
    return rc;
}

const struct op_def def_broadcast_gradient_args = {
    .name = "BroadcastGradientArgs",
    .in = "s0: T, s1: T",
    .out = "r0: T, r1: T",
    .attr = "T: {int32, int64} = int32",
    .kernel = (const struct op_kernel[]){ { DT_ANY, broadcast_gradient_args },
                                          { 0 } },
};
