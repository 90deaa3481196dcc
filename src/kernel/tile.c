/*
 * Tile: a tensor repeated along its dimensions. To the copying machine each
 * dimension is two loops: repetitions, which stand still in the input, and the
 * dimension itself.
 */
#include "kernel/args.h"
#include "kernel/strided.h"

static enum mst_code tile_dims(struct op_ctx *c, int64_t *times, int64_t *dims)
{
    const struct tensor *in = op_in(c, 0), *m = op_in(c, 1);
    char text[SHAPE_TEXT_MAX];
    int64_t total = 1;

    if (m->ndim != 1)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Expected multiples to be 1-D, but got shape %s",
                       tensor_shape_text(m, text));
    if (m->count != in->ndim)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Expected multiples argument to be a vector of length "
                       "%d but got length %lld",
                       in->ndim, (long long)m->count);
    for (int i = 0; i < in->ndim; i++) {
        times[i] = tensor_int(m, i);
        if (times[i] < 0)
            return op_fail(c, MST_INVALID_ARGUMENT,
                           "Expected multiples[%d] >= 0, but got %lld", i,
                           (long long)times[i]);
        if (__builtin_mul_overflow(in->dims[i], times[i], &dims[i]))
            return op_fail(c, MST_INVALID_ARGUMENT,
                           "Encountered overflow when multiplying %lld with "
                           "%lld, result: -1",
                           (long long)in->dims[i], (long long)times[i]);
        if (__builtin_mul_overflow(total, dims[i], &total))
            return op_fail(c, MST_INVALID_ARGUMENT,
                           "Encountered overflow when multiplying %lld with "
                           "%lld, result: -1",
                           (long long)args_product(dims, 0, i),
                           (long long)dims[i]);
    }
    return MST_OK;
}

static enum mst_code tile(struct op_ctx *c)
{
    const struct tensor *in = op_in(c, 0);
    int64_t times[TENSOR_RANK_MAX], dims[TENSOR_RANK_MAX];
    int64_t to[TENSOR_RANK_MAX], from[TENSOR_RANK_MAX];
    struct strided s = { 0 };
    enum mst_code rc = tile_dims(c, times, dims);

    if (rc)
        return rc;
    strided_of(in->ndim, dims, to);
    strided_of(in->ndim, in->dims, from);
    for (int i = 0; i < in->ndim; i++) {
        strided_dim(&s, times[i], in->dims[i] * to[i], 0);
        strided_dim(&s, in->dims[i], to[i], from[i]);
    }
    rc = op_out_new(c, 0, in->ndim, dims);
    if (!rc)
        strided_copy(c, op_out(c, 0), in, &s);
    return rc;
}

const struct op_def def_tile = {
    .name = "Tile",
    .in = "input: T, multiples: Tmultiples",
    .out = "output: T",
    .attr = "T: type; Tmultiples: {int32, int64} = int32",
    .kernel = (const struct op_kernel[]){ { DT_ANY, tile }, { 0 } },
};
