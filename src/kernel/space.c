/*
 * Blocks of space moved to the batch or to the channels, and back.
 *
 * SpaceToBatchND cuts each spatial dimension into blocks; the elements that
 * have the same place in their blocks make one batch. For each such place the
 * move is a strided copy, with what lies in the margin (paddings, crops) left
 * out.
 */
#include <string.h>

#include "kernel/args.h"
#include "kernel/strided.h"

/* Inputs: the tensor [batch, space…, rest…], block sizes [m], margins [m, 2].
 */
struct blocks {
    int m;
    int64_t size[TENSOR_RANK_MAX], before[TENSOR_RANK_MAX];
    int64_t after[TENSOR_RANK_MAX], product;
};

/* The older ops, which have one size for two dimensions as an attribute. */
static enum mst_code blocks_square(struct op_ctx *c, bool to_batch,
                                   struct blocks *b)
{
    const struct tensor *in = op_in(c, 0), *margin = op_in(c, 1);
    char text[SHAPE_TEXT_MAX];

    if (in->ndim != 4)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "input rank should be 4 instead of %d", in->ndim);
    if (margin->ndim != 2 || margin->dims[0] != 2 || margin->dims[1] != 2)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "%s should have shape [2, 2] instead of %s",
                       to_batch ? "paddings" : "crops",
                       tensor_shape_text(margin, text));
    b->m = 2;
    for (int i = 0; i < 2; i++) {
        b->size[i] = *(const int64_t *)c->node->state;
        b->before[i] = tensor_int(margin, 2 * i);
        b->after[i] = tensor_int(margin, 2 * i + 1);
        if (b->before[i] < 0 || b->after[i] < 0)
            return op_fail(c, MST_INVALID_ARGUMENT, "%s must be non-negative",
                           to_batch ? "Paddings" : "Crops");
    }
    if (__builtin_mul_overflow(b->size[0], b->size[1], &b->product))
        return op_fail(c, MST_INVALID_ARGUMENT, "block_size is too large");
    return MST_OK;
}

static enum mst_code blocks_read(struct op_ctx *c, bool to_batch,
                                 struct blocks *b)
{
    const struct tensor *in = op_in(c, 0), *size = op_in(c, 1);
    const struct tensor *margin = op_in(c, c->node->in_count - 1);
    char text[SHAPE_TEXT_MAX];

    if (c->node->in_count == 2)
        return blocks_square(c, to_batch, b);
    if (size->ndim != 1)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "block_shape rank should be 1 instead of %d",
                       size->ndim);
    if (in->ndim < size->count + 1)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "input rank should be >= %lld instead of %d",
                       (long long)size->count + 1, in->ndim);
    if (margin->ndim != 2 || margin->dims[0] != size->count ||
        margin->dims[1] != 2)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "%s should have shape [%lld, 2] instead of %s",
                       to_batch ? "paddings" : "crops", (long long)size->count,
                       tensor_shape_text(margin, text));
    b->m = (int)size->count;
    b->product = 1;
    for (int i = 0; i < b->m; i++) {
        b->size[i] = tensor_int(size, i);
        b->before[i] = tensor_int(margin, 2 * i);
        b->after[i] = tensor_int(margin, 2 * i + 1);
        if (to_batch && b->size[i] < 1)
            return op_fail(c, MST_INVALID_ARGUMENT,
                           "All values in block_shape must be positive, got "
                           "value, %lld at index %d.",
                           (long long)b->size[i], i);
        if (__builtin_mul_overflow(b->product, b->size[i], &b->product))
            b->product = -1;
    }
    if (b->product < 1)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Product of block sizes must be positive, got %lld",
                       (long long)b->product);
    for (int i = 0; i < b->m; i++)
        if (b->before[i] < 0 || b->after[i] < 0)
            return op_fail(c, MST_INVALID_ARGUMENT, "%s must be non-negative",
                           to_batch ? "Paddings" : "Crops");
    return MST_OK;
}

/*
 * Copies the elements of one place in the blocks: `number` tells which. `space`
 * is the tensor that has them apart, `batch` the one that has them together, at
 * batches from number * batches on.
 */
static void copy_place(struct op_ctx *c, const struct blocks *b, int64_t number,
                       bool to_batch, const struct tensor *space,
                       const struct tensor *batch, int64_t batches)
{
    int64_t step_s[TENSOR_RANK_MAX], step_b[TENSOR_RANK_MAX];
    int64_t at_s = 0, at_b, place[TENSOR_RANK_MAX], rest = number;
    struct strided s = { 0 };
    int ndim = space->ndim;

    strided_of(ndim, space->dims, step_s);
    strided_of(ndim, batch->dims, step_b);
    at_b = number * batches * step_b[0];
    for (int i = b->m - 1; i >= 0; i--) {
        place[i] = rest % b->size[i];
        rest /= b->size[i];
    }
    strided_dim(&s, batches, to_batch ? step_b[0] : step_s[0],
                to_batch ? step_s[0] : step_b[0]);
    for (int d = 1; d < ndim; d++) {
        int64_t n = space->dims[d], first = 0, jump = step_s[d];

        if (d <= b->m) { /* the blocks whose element here is no margin */
            int64_t size = b->size[d - 1],
                    off = b->before[d - 1] - place[d - 1];

            first = off > 0 ? (off + size - 1) / size : 0;
            n = (space->dims[d] + off + size - 1) / size;
            n = MIN(MAX(n, 0), batch->dims[d]) - first;
            at_s += (first * size - off) * step_s[d];
            jump = size * step_s[d];
        }
        at_b += first * step_b[d];
        strided_dim(&s, MAX(n, 0), to_batch ? step_b[d] : jump,
                    to_batch ? jump : step_b[d]);
    }
    s.to_at = to_batch ? at_b : at_s;
    s.from_at = to_batch ? at_s : at_b;
    strided_copy(c, op_out(c, 0), op_in(c, 0), &s);
}

static enum mst_code space_to_batch_nd(struct op_ctx *c)
{
    const struct tensor *in = op_in(c, 0);
    int64_t dims[TENSOR_RANK_MAX];
    struct blocks b;
    enum mst_code rc = blocks_read(c, true, &b);

    if (rc)
        return rc;
    memcpy(dims, in->dims, sizeof(dims));
    if (__builtin_mul_overflow(dims[0], b.product, &dims[0]))
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Negative output dimension size caused by overflow when "
                       "multiplying %lld and %lld",
                       (long long)in->dims[0], (long long)b.product);
    for (int i = 0; i < b.m; i++) {
        if (__builtin_add_overflow(dims[i + 1], b.before[i], &dims[i + 1]) ||
            __builtin_add_overflow(dims[i + 1], b.after[i], &dims[i + 1]))
            return op_fail(c, MST_INVALID_ARGUMENT, "Paddings are too large");
        if (dims[i + 1] % b.size[i])
            return op_fail(c, MST_INVALID_ARGUMENT,
                           "padded_shape[%d]=%lld is not divisible by "
                           "block_shape[%d]=%lld",
                           i, (long long)dims[i + 1], i, (long long)b.size[i]);
        dims[i + 1] /= b.size[i];
    }
    rc = op_out_new(c, 0, in->ndim, dims);
    if (rc)
        return rc;
    tensor_zero(op_out(c, 0));
    if (in->count && op_out(c, 0)->count)
        for (int64_t k = 0; k < b.product; k++)
            copy_place(c, &b, k, true, in, op_out(c, 0), in->dims[0]);
    return MST_OK;
}

static enum mst_code batch_to_space_nd(struct op_ctx *c)
{
    const struct tensor *in = op_in(c, 0);
    int64_t dims[TENSOR_RANK_MAX];
    struct blocks b;
    enum mst_code rc = blocks_read(c, false, &b);

    if (rc)
        return rc;
    memcpy(dims, in->dims, sizeof(dims));
    if (dims[0] % b.product)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Input batch dimension (%lld) is not divisible by "
                       "product of block sizes (%lld)",
                       (long long)dims[0], (long long)b.product);
    dims[0] /= b.product;
    for (int i = 0; i < b.m; i++) {
        if (__builtin_mul_overflow(dims[i + 1], b.size[i], &dims[i + 1]) ||
            __builtin_sub_overflow(dims[i + 1], b.before[i], &dims[i + 1]) ||
            __builtin_sub_overflow(dims[i + 1], b.after[i], &dims[i + 1]))
            return op_fail(c, MST_INVALID_ARGUMENT, "Blocks are too large");
        if (dims[i + 1] < 0)
            return op_fail(c, MST_INVALID_ARGUMENT,
                           "cropped_shape[%d]=%lld must be non-negative", i,
                           (long long)dims[i + 1]);
    }
    rc = op_out_new(c, 0, in->ndim, dims);
    if (rc || !op_out(c, 0)->count)
        return rc;
    for (int64_t k = 0; k < b.product; k++)
        copy_place(c, &b, k, false, op_out(c, 0), in, dims[0]);
    return MST_OK;
}

#define BLOCK_ATTRS(margin)                                                    \
    "T: type; Tblock_shape: {int32, int64} = int32; " margin                   \
    ": {int32, int64} = int32"

const struct op_def def_space_to_batch_nd = {
    .name = "SpaceToBatchND",
    .in = "input: T, block_shape: Tblock_shape, paddings: Tpaddings",
    .out = "output: T",
    .attr = BLOCK_ATTRS("Tpaddings"),
    .kernel =
        (const struct op_kernel[]){ { DT_ANY, space_to_batch_nd }, { 0 } },
};

const struct op_def def_batch_to_space_nd = {
    .name = "BatchToSpaceND",
    .in = "input: T, block_shape: Tblock_shape, crops: Tcrops",
    .out = "output: T",
    .attr = BLOCK_ATTRS("Tcrops"),
    .kernel =
        (const struct op_kernel[]){ { DT_ANY, batch_to_space_nd }, { 0 } },
};

/* ---- channels ---- */

/* Images [n, h, w, c], as TensorFlow's CPU has them, of which h and w are of
 * blocks; depth is the c of one element. */
static void move_depth(struct op_ctx *c, bool to_depth, int64_t block,
                       const struct tensor *space, int64_t depth)
{
    int64_t rows = space->dims[1] / block, cols = space->dims[2] / block;
    int64_t line = space->dims[2] * depth, cell = block * block * depth;
    /* batch, block row, row in it, block column, column in it, channel */
    const int64_t n[] = { space->dims[0], rows, block, cols, block, depth };
    const int64_t apart[] = { space->dims[1] * line, block * line, line,
                              block * depth,         depth,        1 };
    const int64_t together[] = {
        rows * cols * cell, cols * cell, block * depth, cell, depth, 1
    };
    struct strided s = { 0 };

    for (int i = 0; i < 6; i++)
        strided_dim(&s, n[i], to_depth ? together[i] : apart[i],
                    to_depth ? apart[i] : together[i]);
    strided_copy(c, op_out(c, 0), op_in(c, 0), &s);
}

static enum mst_code space_to_depth(struct op_ctx *c)
{
    const struct tensor *in = op_in(c, 0);
    int64_t block = *(const int64_t *)c->node->state, square;
    enum mst_code rc;

    if (in->ndim != 4)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Input rank should be 4 instead of %d", in->ndim);
    if (in->dims[1] % block || in->dims[2] % block)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Image width %lld and height %lld should be divisible "
                       "by block_size: %lld",
                       (long long)in->dims[2], (long long)in->dims[1],
                       (long long)block);
    if (__builtin_mul_overflow(block, block, &square) ||
        __builtin_mul_overflow(square, in->dims[3], &square))
        return op_fail(c, MST_INVALID_ARGUMENT, "block_size is too large");
    rc = op_out_new(c, 0, 4,
                    (int64_t[]){ in->dims[0], in->dims[1] / block,
                                 in->dims[2] / block, square });
    if (!rc && in->count)
        move_depth(c, true, block, in, in->dims[3]);
    return rc;
}

static enum mst_code depth_to_space(struct op_ctx *c)
{
    const struct tensor *in = op_in(c, 0);
    int64_t block = *(const int64_t *)c->node->state, square, rows, cols;
    enum mst_code rc;

    if (in->ndim != 4)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Input rank should be: 4 instead of: %d", in->ndim);
    if (__builtin_mul_overflow(block, block, &square) || in->dims[3] % square)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Input depth dimension %lld should be divisible by: "
                       "%lld",
                       (long long)in->dims[3], (long long)square);
    if (__builtin_mul_overflow(in->dims[1], block, &rows) ||
        __builtin_mul_overflow(in->dims[2], block, &cols))
        return op_fail(c, MST_INVALID_ARGUMENT, "block_size is too large");
    rc = op_out_new(
        c, 0, 4, (int64_t[]){ in->dims[0], rows, cols, in->dims[3] / square });
    if (!rc && in->count)
        move_depth(c, false, block, op_out(c, 0), in->dims[3] / square);
    return rc;
}

static enum mst_code block_init(struct op_node *n, struct status *st)
{
    const char *format = op_attr_str(n, "data_format").data;

    if (strcmp(format, "NHWC"))
        return status_set(st, MST_INVALID_ARGUMENT,
                          "Only NHWC data_format supported on CPU. Got %s",
                          format);
    n->state = ARENA_NEW(n->arena, int64_t);
    *(int64_t *)n->state = op_attr_int(n, "block_size");
    return MST_OK;
}

#define DEPTH_ATTRS                                                            \
    "T: type; block_size: int >= 2; "                                          \
    "data_format: {'NHWC', 'NCHW', 'NCHW_VECT_C'} = 'NHWC'"

const struct op_def def_space_to_depth = {
    .name = "SpaceToDepth",
    .in = "input: T",
    .out = "output: T",
    .attr = DEPTH_ATTRS,
    .init = block_init,
    .kernel = (const struct op_kernel[]){ { DT_ANY, space_to_depth }, { 0 } },
};

const struct op_def def_depth_to_space = {
    .name = "DepthToSpace",
    .in = "input: T",
    .out = "output: T",
    .attr = DEPTH_ATTRS,
    .init = block_init,
    .kernel = (const struct op_kernel[]){ { DT_ANY, depth_to_space }, { 0 } },
};

static enum mst_code square_init(struct op_node *n, struct status *st)
{
    n->state = ARENA_NEW(n->arena, int64_t);
    *(int64_t *)n->state = op_attr_int(n, "block_size");
    return MST_OK;
}

const struct op_def def_space_to_batch = {
    .name = "SpaceToBatch",
    .in = "input: T, paddings: Tpaddings",
    .out = "output: T",
    .attr = "T: type; Tpaddings: {int32, int64} = int32; block_size: int >= 2",
    .init = square_init,
    .kernel =
        (const struct op_kernel[]){ { DT_ANY, space_to_batch_nd }, { 0 } },
};

const struct op_def def_batch_to_space = {
    .name = "BatchToSpace",
    .in = "input: T, crops: Tidx",
    .out = "output: T",
    .attr = "T: type; block_size: int >= 2; Tidx: {int32, int64} = int32",
    .init = square_init,
    .kernel =
        (const struct op_kernel[]){ { DT_ANY, batch_to_space_nd }, { 0 } },
};
