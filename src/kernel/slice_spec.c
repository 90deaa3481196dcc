/*
 * The spec is sparse: an entry may stand for many dimensions (the ellipsis) or
 * for none of the input (a new axis). It is first laid out densely, an entry a
 * dimension of the input; then each entry is made a range within its
 * dimension, the Python way.
 */
#include "kernel/slice_spec.h"

#include "kernel/strided.h"

/* Masks have 32 bits. */
#define ENTRIES_MAX 31

struct entry {
    int64_t begin, end, stride;
    bool from_start, to_end, shrink;
};

/* A dimension of the result: an entry of the input's, or a new one. */
#define NEW_AXIS (-1)

struct dense {
    struct entry entry[TENSOR_RANK_MAX];
    int ndim; /* of the input */
    int result[TENSOR_RANK_MAX + ENTRIES_MAX];
    int result_count;
};

enum mst_code slice_masks_init(struct op_node *n, struct status *st)
{
    struct slice_masks *m = ARENA_NEW(n->arena, struct slice_masks);

    (void)st;
    m->begin = (uint32_t)op_attr_int(n, "begin_mask");
    m->end = (uint32_t)op_attr_int(n, "end_mask");
    m->ellipsis = (uint32_t)op_attr_int(n, "ellipsis_mask");
    m->new_axis = (uint32_t)op_attr_int(n, "new_axis_mask");
    m->shrink = (uint32_t)op_attr_int(n, "shrink_axis_mask");
    n->state = m;
    return MST_OK;
}

static bool bit(uint32_t mask, int i)
{
    return mask >> i & 1;
}

static enum mst_code check_inputs(struct op_ctx *c, int first)
{
    char text[3][SHAPE_TEXT_MAX];
    bool good = true;

    for (int i = 0; i < 3; i++) {
        const struct tensor *t = op_in(c, first + i);

        good &= t->ndim == 1 && t->count == op_in(c, first)->count &&
                t->count <= ENTRIES_MAX;
        tensor_shape_text(t, text[i]);
    }
    if (!good)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Expected begin, end, and strides to be 1D equal size "
                       "tensors, but got shapes %s, %s, and %s instead.",
                       text[0], text[1], text[2]);
    return MST_OK;
}

/* All dimensions up to `until` are taken whole. */
static void take_whole(struct dense *d, int *at, int until)
{
    while (*at < until) {
        d->entry[*at] =
            (struct entry){ .stride = 1, .from_start = true, .to_end = true };
        d->result[d->result_count++] = (*at)++;
    }
}

static enum mst_code take_entry(struct op_ctx *c, int first, int i,
                                struct dense *d, int *at)
{
    const struct slice_masks *m = c->node->state;
    struct entry *e = &d->entry[*at];

    if (*at == d->ndim)
        return d->ndim ? op_fail(c, MST_INVALID_ARGUMENT,
                                 "Index out of range using input dim %d; "
                                 "input has only %d dims",
                                 *at, d->ndim)
                       : op_fail(c, MST_INVALID_ARGUMENT,
                                 "Attempting to slice scalar input: index 0 is "
                                 "out of range.");
    e->begin = tensor_int(op_in(c, first), i);
    e->end = tensor_int(op_in(c, first + 1), i);
    e->stride = tensor_int(op_in(c, first + 2), i);
    e->from_start = bit(m->begin, i);
    e->to_end = bit(m->end, i);
    e->shrink = bit(m->shrink, i);
    if (!e->shrink)
        d->result[d->result_count++] = *at;
    (*at)++;
    return MST_OK;
}

static enum mst_code lay_out(struct op_ctx *c, int first, struct dense *d)
{
    const struct slice_masks *m = c->node->state;
    int n = (int)op_in(c, first)->count, at = 0;
    enum mst_code rc = MST_OK;

    if (m->ellipsis & (m->ellipsis - 1))
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Multiple ellipses in slice spec not allowed");
    for (int i = 0; i < n && !rc; i++) {
        if (bit(m->ellipsis, i)) {
            int rest = 0; /* entries after it that take a dimension */

            for (int k = i + 1; k < n; k++)
                rest += !bit(m->new_axis, k);
            take_whole(d, &at, d->ndim - rest);
        } else if (bit(m->new_axis, i)) {
            d->result[d->result_count++] = NEW_AXIS;
        } else {
            rc = take_entry(c, first, i, d, &at);
        }
    }
    if (!rc)
        take_whole(d, &at, d->ndim);
    return rc;
}

/* x, counted from the end when negative, inside of what a walk in the stride's
 * direction may have as its limits. */
static int64_t clamp(int64_t x, int64_t dim, int64_t stride)
{
    int64_t low = stride > 0 ? 0 : -1, high = stride > 0 ? dim : dim - 1;

    if (x < 0)
        x += dim;
    return x < low ? low : x > high ? high : x;
}

/* Begin becomes a place inside of the dimension, *ret_n the number of elements
 * from there. */
static enum mst_code resolve(struct op_ctx *c, int i, int64_t dim,
                             struct entry *e, int64_t *ret_n)
{
    bool forward = e->stride > 0;
    int64_t length, step;

    if (!e->stride)
        return op_fail(c, MST_INVALID_ARGUMENT, "strides[%d] must be non-zero",
                       i);
    if (e->shrink && !forward)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "only stride 1 allowed on non-range indexing.");
    if (e->shrink) {
        e->begin = e->begin < 0 ? e->begin + dim : e->begin;
        if (e->begin < 0 || e->begin >= dim)
            return op_fail(c, MST_INVALID_ARGUMENT,
                           "slice index %lld of dimension %d out of bounds.",
                           (long long)e->begin, i);
        *ret_n = 1;
        return MST_OK;
    }
    e->begin = e->from_start ? (forward ? 0 : dim - 1)
                             : clamp(e->begin, dim, e->stride);
    e->end = e->to_end ? (forward ? dim : -1) : clamp(e->end, dim, e->stride);
    length = forward ? e->end - e->begin : e->begin - e->end;
    /* The smallest stride has no positive twin. */
    step = forward ? e->stride : -MAX(e->stride, -INT64_MAX);
    *ret_n = length <= 0 ? 0 : (length - 1) / step + 1;
    return MST_OK;
}

enum mst_code slice_spec(struct op_ctx *c, int first, int ndim,
                         const int64_t *dims, struct slice_spec *ret)
{
    int64_t step[TENSOR_RANK_MAX], n[TENSOR_RANK_MAX];
    struct dense d = { .ndim = ndim };
    enum mst_code rc = check_inputs(c, first);

    if (!rc)
        rc = lay_out(c, first, &d);
    strided_of(ndim, dims, step);
    ret->at = 0;
    for (int i = 0; i < ndim && !rc; i++) {
        rc = resolve(c, i, dims[i], &d.entry[i], &n[i]);
        if (!rc && n[i])
            ret->at += d.entry[i].begin * step[i];
    }
    if (rc)
        return rc;
    if (d.result_count > TENSOR_RANK_MAX)
        return op_fail(c, MST_UNIMPLEMENTED,
                       "Tensors of rank %d are not supported, only up to %d",
                       d.result_count, TENSOR_RANK_MAX);
    ret->shape.ndim = d.result_count;
    for (int i = 0; i < d.result_count; i++) {
        int k = d.result[i];

        ret->shape.dims[i] = k == NEW_AXIS ? 1 : n[k];
        /* Where only one element is taken, a stride may be anything. */
        ret->step[i] =
            k == NEW_AXIS || n[k] < 2 ? 0 : step[k] * d.entry[k].stride;
    }
    return MST_OK;
}
