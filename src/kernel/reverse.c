/*
 * Elements in the opposite order along dimensions, or turned round them.
 */
#include <string.h>

#include "kernel/args.h"
#include "kernel/strided.h"

#define REVERSE_RANK_MAX 8 /* TensorFlow's, which says so */

static enum mst_code reverse_dims(struct op_ctx *c, const bool *turn)
{
    const struct tensor *in = op_in(c, 0);
    int64_t step[TENSOR_RANK_MAX], at = 0;

    strided_of(in->ndim, in->dims, step);
    for (int i = 0; i < in->ndim; i++)
        if (turn[i] && in->dims[i]) {
            at += (in->dims[i] - 1) * step[i];
            step[i] = -step[i];
        }
    return strided_view(c, 0, in, in->ndim, in->dims, step, at);
}

static enum mst_code reverse_check(struct op_ctx *c)
{
    if (op_in(c, 0)->ndim > REVERSE_RANK_MAX)
        return op_fail(c, MST_UNIMPLEMENTED,
                       "reverse is not implemented for tensors of rank > 8.");
    if (op_in(c, 1)->ndim != 1)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "'dims' must be 1-dimension, not %d", op_in(c, 1)->ndim);
    return MST_OK;
}

static enum mst_code reverse(struct op_ctx *c)
{
    const struct tensor *in = op_in(c, 0), *dims = op_in(c, 1);
    enum mst_code rc;

    if (!in->ndim) {
        op_out_same(c, 0, 0);
        return MST_OK;
    }
    rc = reverse_check(c);
    if (rc)
        return rc;
    if (dims->count != in->ndim)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "'dims' must have the same number of values as 'input' "
                       "has dimensions. 'input' has %d'dims' has %lld values",
                       in->ndim, (long long)dims->count);
    if (!in->dims[0])
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Invalid input first dimension. Found 0.");
    return reverse_dims(c, dims->data);
}

static enum mst_code reverse_v2(struct op_ctx *c)
{
    const struct tensor *in = op_in(c, 0), *axes = op_in(c, 1);
    bool turn[TENSOR_RANK_MAX] = { false };
    enum mst_code rc;
    int at;

    if (!in->ndim || !in->count) {
        op_out_same(c, 0, 0);
        return MST_OK;
    }
    rc = reverse_check(c);
    if (rc)
        return rc;
    for (int64_t i = 0; i < axes->count; i++) {
        if (!args_axis(tensor_int(axes, i), in->ndim, &at))
            return op_fail(c, MST_INVALID_ARGUMENT,
                           "'axis'[%lld] = %lld is out of valid range [0, %d",
                           (long long)i, (long long)tensor_int(axes, i),
                           in->ndim - 1);
        if (turn[at])
            return op_fail(c, MST_INVALID_ARGUMENT,
                           "axis %d specified more than once.", at);
        turn[at] = true;
    }
    return reverse_dims(c, turn);
}

#define REVERSE_TYPES                                                          \
    "T: {uint8, int8, uint16, int16, int32, uint32, int64, uint64, bool, "     \
    "bfloat16, half, float, double, complex64, complex128, string}"

const struct op_def def_reverse = {
    .name = "Reverse",
    .in = "tensor: T, dims: bool",
    .out = "output: T",
    .attr = REVERSE_TYPES,
    .kernel = (const struct op_kernel[]){ { DT_ANY, reverse }, { 0 } },
};

const struct op_def def_reverse_v2 = {
    .name = "ReverseV2",
    .in = "tensor: T, axis: Tidx",
    .out = "output: T",
    .attr = "Tidx: {int32, int64} = int32; " REVERSE_TYPES,
    .kernel = (const struct op_kernel[]){ { DT_ANY, reverse_v2 }, { 0 } },
};

/* ---- only as far as each row is long ---- */

struct sequence_dims {
    int64_t seq, batch;
};

static enum mst_code sequence_check(struct op_ctx *c, const struct tensor *n)
{
    const struct sequence_dims *d = c->node->state;
    const struct tensor *in = op_in(c, 0);

    if (d->seq < 0)
        return op_fail(c, MST_INVALID_ARGUMENT, "Invalid seq_dim %lld",
                       (long long)d->seq);
    if (d->batch < 0)
        return op_fail(c, MST_INVALID_ARGUMENT, "Invalid batch_dim %lld",
                       (long long)d->batch);
    if (n->ndim != 1)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "seq_lengths must be 1-dim, not %d", n->ndim);
    if (d->batch == d->seq)
        return op_fail(c, MST_INVALID_ARGUMENT, "batch_dim == seq_dim == %lld",
                       (long long)d->seq);
    if (d->seq >= in->ndim)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "seq_dim must be < input rank ( %lld vs. %d)",
                       (long long)d->seq, in->ndim);
    if (d->batch >= in->ndim)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "batch_dim must be < input rank ( %lld vs. %d)",
                       (long long)d->batch, in->ndim);
    if (n->count != in->dims[d->batch])
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Length of seq_lengths != input.dims(%lld), (%lld vs. "
                       "%lld)",
                       (long long)d->batch, (long long)n->count,
                       (long long)in->dims[d->batch]);
    for (int64_t i = 0; i < n->count; i++) {
        if (tensor_int(n, i) < 0)
            return op_fail(c, MST_INVALID_ARGUMENT, "seq_lens(%lld) < 0",
                           (long long)i);
        if (tensor_int(n, i) > in->dims[d->seq])
            return op_fail(c, MST_INVALID_ARGUMENT,
                           "seq_lens(%lld) > input.dims(%lld)", (long long)i,
                           (long long)d->seq);
    }
    return MST_OK;
}

/* Row `row` of the batch: its first `length` in the other order, or the rest
 * as it is. */
static void sequence_row(struct op_ctx *c, int64_t row, int64_t length,
                         bool rest)
{
    const struct sequence_dims *d = c->node->state;
    const struct tensor *in = op_in(c, 0);
    int64_t step[TENSOR_RANK_MAX];
    struct strided s = { 0 };

    strided_of(in->ndim, in->dims, step);
    s.to_at = s.from_at = row * step[d->batch];
    if (rest) {
        s.to_at += length * step[d->seq];
        s.from_at = s.to_at;
    } else {
        s.from_at += (length - 1) * step[d->seq];
    }
    for (int i = 0; i < in->ndim; i++) {
        int64_t n = i == d->batch ? 1
                    : i != d->seq ? in->dims[i]
                    : rest        ? in->dims[i] - length
                                  : length;

        strided_dim(&s, n, step[i], i == d->seq && !rest ? -step[i] : step[i]);
    }
    strided_copy(c, op_out(c, 0), in, &s);
}

static enum mst_code reverse_sequence(struct op_ctx *c)
{
    struct tensor lengths = { 0 }; /* our own: a variable's may change */
    enum mst_code rc = tensor_copy(&lengths, op_in(c, 1), c->st);

    if (!rc)
        rc = sequence_check(c, &lengths);
    if (!rc)
        rc = op_out_like(c, 0, op_in(c, 0));
    for (int64_t i = 0; !rc && i < lengths.count; i++) {
        sequence_row(c, i, tensor_int(&lengths, i), false);
        sequence_row(c, i, tensor_int(&lengths, i), true);
    }
    tensor_unref(&lengths);
    return rc;
}

static enum mst_code reverse_sequence_init(struct op_node *n, struct status *st)
{
    struct sequence_dims *d = ARENA_NEW(n->arena, struct sequence_dims);

    (void)st;
    d->seq = op_attr_int(n, "seq_dim");
    d->batch = op_attr_int(n, "batch_dim");
    n->state = d;
    return MST_OK;
}

const struct op_def def_reverse_sequence = {
    .name = "ReverseSequence",
    .in = "input: T, seq_lengths: Tlen",
    .out = "output: T",
    .attr = "seq_dim: int; batch_dim: int = 0; T: type; "
            "Tlen: {int32, int64} = int64",
    .init = reverse_sequence_init,
    .kernel = (const struct op_kernel[]){ { DT_ANY, reverse_sequence }, { 0 } },
};

/* ---- turned round ---- */

/* What each dimension is shifted by in all, in [0, dimension). */
static enum mst_code roll_shifts(struct op_ctx *c, int64_t *shift)
{
    const struct tensor *in = op_in(c, 0), *by = op_in(c, 1);
    const struct tensor *axes = op_in(c, 2);
    char text[SHAPE_TEXT_MAX];

    if (!in->ndim)
        return op_fail(c, MST_INVALID_ARGUMENT, "input must be 1-D or higher");
    if (by->ndim > 1)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "shift must be a scalar or a 1-D vector. Found: %s",
                       tensor_shape_text(by, text));
    if (axes->ndim > 1)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "axis must be a scalar or a 1-D vector. Found: %s",
                       tensor_shape_text(axes, text));
    if (by->count != axes->count || by->ndim != axes->ndim)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "shift and axis must have the same size");
    memset(shift, 0, sizeof(*shift) * TENSOR_RANK_MAX);
    for (int64_t i = 0; i < axes->count; i++) {
        int64_t axis = tensor_int(axes, i), dim;

        if (axis < 0)
            axis += in->ndim;
        if (axis < 0 || axis >= in->ndim)
            return op_fail(c, MST_INVALID_ARGUMENT, "axis %lld is out of range",
                           (long long)axis);
        dim = MAX(in->dims[axis], 1);
        shift[axis] = (shift[axis] + tensor_int(by, i) % dim + 2 * dim) % dim;
    }
    return MST_OK;
}

static enum mst_code roll(struct op_ctx *c)
{
    const struct tensor *in = op_in(c, 0);
    int64_t shift[TENSOR_RANK_MAX], step[TENSOR_RANK_MAX];
    int wrapped[TENSOR_RANK_MAX], n = 0;
    enum mst_code rc = roll_shifts(c, shift);

    if (!rc)
        rc = op_out_like(c, 0, in);
    if (rc)
        return rc;
    strided_of(in->ndim, in->dims, step);
    for (int i = 0; i < in->ndim; i++)
        if (shift[i])
            wrapped[n++] = i;
    /* Each shifted dimension is two pieces; the bits of `piece` say which. */
    for (int piece = 0; piece < 1 << n; piece++) {
        int64_t length[TENSOR_RANK_MAX];
        struct strided s = { 0 };

        memcpy(length, in->dims, sizeof(length));
        for (int k = 0; k < n; k++) {
            int d = wrapped[k];
            int64_t split = in->dims[d] - shift[d];

            length[d] = piece >> k & 1 ? shift[d] : split;
            s.from_at += piece >> k & 1 ? split * step[d] : 0;
            s.to_at += piece >> k & 1 ? 0 : shift[d] * step[d];
        }
        for (int i = 0; i < in->ndim; i++)
            strided_dim(&s, length[i], step[i], step[i]);
        strided_copy(c, op_out(c, 0), in, &s);
    }
    return MST_OK;
}

const struct op_def def_roll = {
    .name = "Roll",
    .in = "input: T, shift: Tshift, axis: Taxis",
    .out = "output: T",
    .attr = "T: type; Tshift: {int32, int64}; Taxis: {int32, int64}",
    .kernel = (const struct op_kernel[]){ { DT_ANY, roll }, { 0 } },
};
