/*
 * DataFormatDimMap and DataFormatVecPermute: numbers of dimensions, and vectors
 * with one number a dimension, from one data format to another ("NHWC" to
 * "NCHW").
 */
#include <string.h>

#include "kernel/types.h"

struct format_node {
    int count;
    int source[5];      /* where dimension i of the new format was */
    int place[5];       /* where dimension i of the old one is now */
    int space_place[3]; /* the same for vectors of spatial dimensions only */
};

static enum mst_code format_init(struct op_node *n, struct status *st)
{
    struct format_node *f = ARENA_NEW(n->arena, struct format_node);
    struct attr_text from = op_attr_str(n, "src_format");
    struct attr_text to = op_attr_str(n, "dst_format");
    int space = 0;

    n->state = f;
    if (from.len != 4 && from.len != 5)
        return status_set(st, MST_INVALID_ARGUMENT,
                          "Source format must be of length 4 or 5, received "
                          "src_format = %s",
                          from.data);
    if (to.len != from.len)
        return status_set(st, MST_INVALID_ARGUMENT,
                          "Destination format must be of length 4 or 5, "
                          "received dst_format = %s",
                          to.data);
    f->count = (int)from.len;
    for (int i = 0; i < f->count; i++) {
        const char *at = memchr(from.data, to.data[i], from.len);

        if (!at ||
            (at != from.data &&
             memchr(at + 1, *at, from.len - 1 - (size_t)(at - from.data))))
            return status_set(st, MST_INVALID_ARGUMENT,
                              "Destination and source format must determine a "
                              "permutation, got %s and %s",
                              from.data, to.data);
        f->source[i] = (int)(at - from.data);
        f->place[f->source[i]] = i;
    }
    /* Spatial dimensions keep their order among themselves. */
    for (int i = 0; i < f->count; i++)
        if (to.data[i] != 'N' && to.data[i] != 'C' && space < 3) {
            int rank = 0;

            for (int k = 0; k < f->source[i]; k++)
                rank += from.data[k] != 'N' && from.data[k] != 'C';
            f->space_place[space++] = rank;
        }
    return MST_OK;
}

static int64_t load(const struct tensor *t, int64_t i)
{
    return tensor_int(t, i);
}

static void store(struct tensor *t, int64_t i, int64_t v)
{
    if (t->dtype == DT_INT64)
        TENSOR_DATA(t, int64_t)[i] = v;
    else
        TENSOR_DATA(t, int32_t)[i] = (int32_t)v;
}

static enum mst_code dim_map(struct op_ctx *c)
{
    const struct format_node *f = c->node->state;
    const struct tensor *in = op_in(c, 0);
    enum mst_code rc = op_out_like(c, 0, in);

    for (int64_t i = 0; i < in->count && !rc; i++) {
        int64_t v = load(in, i) % f->count;

        store(op_out(c, 0), i, f->place[v < 0 ? v + f->count : v]);
    }
    return rc;
}

static enum mst_code vec_permute(struct op_ctx *c)
{
    const struct format_node *f = c->node->state;
    const struct tensor *in = op_in(c, 0);
    int64_t width = in->ndim == 2 ? 2 : 1, rows = in->dims[0];
    char text[SHAPE_TEXT_MAX];
    enum mst_code rc;

    if (in->ndim != 1 && in->ndim != 2)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "input must be a vector or 2D tensor, but got shape %s",
                       tensor_shape_text(in, text));
    if (rows != f->count && rows != f->count - 2)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       in->ndim == 1
                           ? "1D input must be of size %d or %d, but got shape "
                             "%s"
                           : "First dimension of 2D input must be of size %d "
                             "or %d, but got shape %s",
                       f->count - 2, f->count, tensor_shape_text(in, text));
    if (in->ndim == 2 && in->dims[1] != 2)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Second dimension of 2D input must be of size 2, but "
                       "got shape %s",
                       tensor_shape_text(in, text));
    rc = op_out_like(c, 0, in);
    for (int64_t i = 0; i < rows && !rc; i++) {
        int from = rows == f->count ? f->source[i] : f->space_place[i];

        for (int64_t k = 0; k < width; k++)
            store(op_out(c, 0), i * width + k, load(in, from * width + k));
    }
    return rc;
}

#define FORMAT_DEF(stem, NAME, FN)                                             \
    const struct op_def def_##stem = {                                         \
        .name = NAME,                                                          \
        .in = "x: T",                                                          \
        .out = "y: T",                                                         \
        .attr = "T: {int32, int64} = int32; src_format: string = 'NHWC'; "     \
                "dst_format: string = 'NCHW'",                                 \
        .init = format_init,                                                   \
        .kernel = KERNELS({ DT_ANY, FN }, ),                                   \
    }
FORMAT_DEF(data_format_dim_map, "DataFormatDimMap", dim_map);
FORMAT_DEF(data_format_vec_permute, "DataFormatVecPermute", vec_permute);
