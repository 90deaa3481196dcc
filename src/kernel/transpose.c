/*
 * Dimensions in another order.
 */
#include "kernel/args.h"
#include "kernel/strided.h"
#include "kernel/types.h"

/* "{0,0}": the permutation as its op's text has it. */
static const char *braced(int ndim, const int64_t *perm, char *text)
{
    size_t n;

    shape_text(ndim, perm, text);
    n = strlen(text);
    text[0] = '{';
    text[n - 1] = '}';
    return text;
}

static enum mst_code read_perm(struct op_ctx *c, int64_t *perm)
{
    const struct tensor *in = op_in(c, 0), *p = op_in(c, 1);
    bool seen[TENSOR_RANK_MAX] = { false };
    char text[SHAPE_TEXT_MAX];
    int at;

    if (p->ndim != 1)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "perm must be rank 1, got shape %s",
                       tensor_shape_text(p, text));
    if (p->count != in->ndim)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "transpose expects a vector of size %d. But input(1) is "
                       "a vector of size %lld",
                       in->ndim, (long long)p->count);
    for (int i = 0; i < in->ndim; i++) {
        int64_t d = tensor_int(p, i);

        if (!args_axis(d, in->ndim, &at))
            return op_fail(c, MST_INVALID_ARGUMENT,
                           "%lld is out of range [0 .. %d)",
                           (long long)(d < 0 ? d + in->ndim : d), in->ndim);
        perm[i] = at;
        seen[at] = true;
    }
    for (int i = 0; i < in->ndim; i++)
        if (!seen[i])
            return op_fail(c, MST_INVALID_ARGUMENT, "%d is missing from %s.", i,
                           braced(in->ndim, perm, text));
    return MST_OK;
}

static enum mst_code transpose(struct op_ctx *c)
{
    const struct tensor *in = op_in(c, 0);
    int64_t perm[TENSOR_RANK_MAX], dims[TENSOR_RANK_MAX];
    int64_t step[TENSOR_RANK_MAX], from[TENSOR_RANK_MAX];
    enum mst_code rc = read_perm(c, perm);

    if (rc)
        return rc;
    strided_of(in->ndim, in->dims, from);
    for (int i = 0; i < in->ndim; i++) {
        dims[i] = in->dims[perm[i]];
        step[i] = from[perm[i]];
    }
    return strided_view(c, 0, in, in->ndim, dims, step, 0);
}

const struct op_def def_transpose = {
    .name = "Transpose",
    .in = "x: T, perm: Tperm",
    .out = "y: T",
    .attr = "T: type; Tperm: {int32, int64} = int32",
    .kernel = (const struct op_kernel[]){ { DT_ANY, transpose }, { 0 } },
};

/* ---- conjugated ---- */

#define CONJUGATE(s, T, A, DT, LD, ST)                                         \
    static void conjugate_##s(void *arg, int64_t begin, int64_t end)           \
    {                                                                          \
        T *x = arg;                                                            \
                                                                               \
        for (int64_t i = begin; i < end; i++)                                  \
            x[i] = conj(x[i]);                                                 \
    }
TYPES_COMPLEX(CONJUGATE)

static enum mst_code conjugate_transpose(struct op_ctx *c)
{
    struct tensor *out = op_out(c, 0), copy;
    enum mst_code rc = transpose(c);

    if (rc || !dtype_is_complex((enum dtype)out->dtype))
        return rc;
    if (!tensor_unique(out)) { /* the input's own bytes */
        rc = tensor_copy(&copy, out, c->st);
        if (rc)
            return rc;
        tensor_unref(out);
        *out = copy;
    }
    op_for(c, out->count, 1,
           out->dtype == DT_COMPLEX64 ? conjugate_c64 : conjugate_c128,
           out->data);
    return MST_OK;
}

const struct op_def def_conjugate_transpose = {
    .name = "ConjugateTranspose",
    .in = "x: T, perm: Tperm",
    .out = "y: T",
    .attr = "T: type; Tperm: {int32, int64} = int32",
    .kernel =
        (const struct op_kernel[]){ { DT_ANY, conjugate_transpose }, { 0 } },
};

/* ---- the way back ---- */

static enum mst_code invert_permutation(struct op_ctx *c)
{
    const struct tensor *in = op_in(c, 0);
    struct tensor *out = op_out(c, 0);
    enum mst_code rc;

    if (in->ndim != 1)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "invert_permutation expects a 1D vector.");
    rc = op_out_like(c, 0, in);
    if (rc)
        return rc;
    if (in->count)
        memset(out->data, 0xff, tensor_bytes(out)); /* -1 everywhere */
    for (int64_t i = 0; i < in->count; i++) {
        int64_t d = tensor_int(in, i);

        if (d < 0 || d >= in->count)
            return op_fail(c, MST_INVALID_ARGUMENT,
                           "%lld is not between 0 and %lld", (long long)d,
                           (long long)in->count);
        if (tensor_int(out, d) != -1)
            return op_fail(c, MST_INVALID_ARGUMENT,
                           "%lld is duplicated in the input.", (long long)d);
        if (out->dtype == DT_INT32)
            TENSOR_DATA(out, int32_t)[d] = (int32_t)i;
        else
            TENSOR_DATA(out, int64_t)[d] = i;
    }
    return MST_OK;
}

const struct op_def def_invert_permutation = {
    .name = "InvertPermutation",
    .in = "x: T",
    .out = "y: T",
    .attr = "T: {int32, int64} = int32",
    .kernel =
        (const struct op_kernel[]){ { DT_ANY, invert_permutation }, { 0 } },
};
