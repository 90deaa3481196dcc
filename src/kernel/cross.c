/*
 * Cross: products of vectors of three.
 */
#include "kernel/types.h"

static enum mst_code cross_check(struct op_ctx *c)
{
    const struct tensor *a = op_in(c, 0), *b = op_in(c, 1);
    char at[SHAPE_TEXT_MAX], bt[SHAPE_TEXT_MAX];

    tensor_shape_text(a, at);
    if (!tensor_same_shape(a, b))
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Both inputs must be of same shape: %s vs. %s", at,
                       tensor_shape_text(b, bt));
    if (!a->ndim)
        return op_fail(c, MST_INVALID_ARGUMENT, "Input must be at least 1D%s",
                       at);
    if (a->dims[a->ndim - 1] != 3)
        return op_fail(c, MST_FAILED_PRECONDITION,
                       "Cross-products are only defined for 3-element "
                       "vectors.");
    return op_out_like(c, 0, a);
}

/* W: in what products are taken, so that they wrap; R rounds each step. */
#define CROSS(s, T, A, DT, LD, ST, W)                                          \
    static enum mst_code cross_##s(struct op_ctx *c)                           \
    {                                                                          \
        enum mst_code rc = cross_check(c);                                     \
        const T *a = op_in(c, 0)->data, *b = op_in(c, 1)->data;                \
        T *out = op_out(c, 0)->data;                                           \
                                                                               \
        for (int64_t i = 0; !rc && i < op_in(c, 0)->count; i++) {              \
            int64_t at = i - i % 3, x = at + (i + 1) % 3,                      \
                    y = at + (i + 2) % 3;                                      \
            W p = (W)LD(a[x]) * (W)LD(b[y]), q = (W)LD(a[y]) * (W)LD(b[x]);    \
                                                                               \
            out[i] = (T)ST((A)((W)LD(ST((A)p)) - (W)LD(ST((A)q))));            \
        }                                                                      \
        return rc;                                                             \
    }
TYPES_FLOAT32(CROSS, float)
TYPES_FLOAT64(CROSS, double)
TYPES_FLOAT16(CROSS, float)
TYPES_UNSIGNED(CROSS, uint64_t)

const struct op_def def_cross = {
    .name = "Cross",
    .in = "a: T, b: T",
    .out = "product: T",
    .attr = "T: realnumbertype",
    .kernel = KERNELS(TYPES_FLOAT(ROW, cross) TYPES_UNSIGNED(ROW, cross)
                          TYPES_SIGNED_WRAP(ROW, cross)),
};
