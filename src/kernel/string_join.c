/*
 * Strings joined: of several tensors element by element, along dimensions of
 * one, or by the number of a segment.
 */
#include "kernel/args.h"
#include "kernel/strided.h"
#include "kernel/text.h"

static void add_part(struct text *t, bool first,
                     const struct attr_text *between, const struct str *part)
{
    if (!first)
        text_add(t, between->data, between->len);
    text_add_str(t, part);
}

static enum mst_code separator_init(struct op_node *n, struct status *st)
{
    struct attr_text *s = ARENA_NEW(n->arena, struct attr_text);

    (void)st;
    *s = op_attr_str(n, "separator");
    n->state = s;
    return MST_OK;
}

static enum mst_code string_join(struct op_ctx *c)
{
    const struct tensor *shape = NULL;
    char ta[SHAPE_TEXT_MAX], tb[SHAPE_TEXT_MAX];
    int n = c->node->in_count;
    enum mst_code rc;

    for (int i = 0; i < n; i++) {
        const struct tensor *t = op_in(c, i);

        if (!t->ndim)
            continue;
        if (shape && !tensor_same_shape(shape, t))
            return op_fail(
                c, MST_INVALID_ARGUMENT, "Input shapes do not match: %s vs. %s",
                tensor_shape_text(shape, ta), tensor_shape_text(t, tb));
        shape = t;
    }
    rc = shape ? op_out_like(c, 0, shape) : op_out_new(c, 0, 0, NULL);
    if (rc)
        return rc;
    for (int64_t k = 0; k < op_out(c, 0)->count; k++) {
        struct text t = { 0 };

        for (int i = 0; i < n; i++)
            add_part(&t, i == 0, c->node->state,
                     tensor_str(op_in(c, i), op_in(c, i)->ndim ? k : 0));
        text_give(&t, tensor_str(op_out(c, 0), k));
    }
    return MST_OK;
}

const struct op_def def_string_join = {
    .name = "StringJoin",
    .in = "inputs: N * string",
    .out = "output: string",
    .attr = "N: int >= 0; separator: string = ''",
    .init = separator_init,
    .kernel = (const struct op_kernel[]){ { DT_ANY, string_join }, { 0 } },
};

/* ---- along dimensions ---- */

/* Loops: over the dimensions that stay, then over those that are joined, of
 * which the first that was asked for is the innermost. */
struct reduction {
    int kept, joined;
    int64_t n[TENSOR_RANK_MAX], step[TENSOR_RANK_MAX];
    struct shape out;
};

static enum mst_code reduction_read(struct op_ctx *c, struct reduction *r)
{
    const struct tensor *in = op_in(c, 0), *axes = op_in(c, 1);
    bool drop[TENSOR_RANK_MAX] = { false };
    bool keep_dims = op_attr_bool(c->node, "keep_dims");
    int64_t step[TENSOR_RANK_MAX];
    int order[TENSOR_RANK_MAX], n = 0, at;

    for (int64_t i = 0; i < axes->count; i++) {
        int64_t axis = tensor_int(axes, i);

        if (!args_axis(axis, in->ndim, &at))
            return op_fail(c, MST_OUT_OF_RANGE,
                           "Invalid reduction dimension %lld for input with %d "
                           "dimension(s)",
                           (long long)axis, in->ndim);
        if (drop[at])
            return op_fail(c, MST_INVALID_ARGUMENT,
                           "Duplicate reduction dimension %lld",
                           (long long)axis);
        drop[at] = true;
        order[n++] = at;
    }
    *r = (struct reduction){ 0 };
    strided_of(in->ndim, in->dims, step);
    for (int d = 0; d < in->ndim; d++) {
        if (!drop[d]) {
            r->n[r->kept] = in->dims[d];
            r->step[r->kept++] = step[d];
        }
        if (!drop[d] || keep_dims)
            r->out.dims[r->out.ndim++] = drop[d] ? 1 : in->dims[d];
    }
    for (int i = 0; i < n; i++) {
        r->n[r->kept + i] = in->dims[order[n - 1 - i]];
        r->step[r->kept + i] = step[order[n - 1 - i]];
    }
    r->joined = n;
    return MST_OK;
}

/* Where turn i of `count` loops is in the input. */
static int64_t place(int64_t i, const int64_t *n, const int64_t *step,
                     int count)
{
    int64_t at = 0;

    for (int d = count - 1; d >= 0; d--) {
        at += i % n[d] * step[d];
        i /= n[d];
    }
    return at;
}

static enum mst_code reduce_join(struct op_ctx *c)
{
    struct reduction r;
    int64_t parts;
    enum mst_code rc = reduction_read(c, &r);

    if (!rc)
        rc = op_out_new(c, 0, r.out.ndim, r.out.dims);
    if (rc)
        return rc;
    parts = args_product(r.n, r.kept, r.kept + r.joined);
    for (int64_t k = 0; k < op_out(c, 0)->count; k++) {
        int64_t at = place(k, r.n, r.step, r.kept);
        struct text t = { 0 };

        for (int64_t i = 0; i < parts; i++)
            add_part(
                &t, i == 0, c->node->state,
                tensor_str(op_in(c, 0), at + place(i, r.n + r.kept,
                                                   r.step + r.kept, r.joined)));
        text_give(&t, tensor_str(op_out(c, 0), k));
    }
    return MST_OK;
}

const struct op_def def_reduce_join = {
    .name = "ReduceJoin",
    .in = "inputs: string, reduction_indices: int32",
    .out = "output: string",
    .attr = "keep_dims: bool = false; separator: string = ''",
    .init = separator_init,
    .kernel = (const struct op_kernel[]){ { DT_ANY, reduce_join }, { 0 } },
};

/* ---- by segment ---- */

static enum mst_code segment_check(struct op_ctx *c, int64_t *ret_segments)
{
    const struct tensor *in = op_in(c, 0), *ids = op_in(c, 1);

    if (op_in(c, 2)->ndim)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Number of segments must be a scalar");
    *ret_segments = tensor_int(op_in(c, 2), 0);
    if (*ret_segments < 0)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Number of segments must be non-negative but got %lld",
                       (long long)*ret_segments);
    if (!ids->ndim)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Segment_id cannot have rank 0");
    if (ids->ndim > in->ndim)
        return op_fail(c, MST_OUT_OF_RANGE,
                       "Invalid segment_id rank %d for input with %d "
                       "dimension(s)",
                       ids->ndim, in->ndim);
    for (int d = 0; d < ids->ndim; d++)
        if (ids->dims[d] != in->dims[d])
            return op_fail(c, MST_INVALID_ARGUMENT,
                           "Segment dimension is %lld while input dimension is "
                           "%d in rank %d",
                           (long long)ids->dims[d], in->ndim, d);
    return MST_OK;
}

static enum mst_code unsorted_segment_join(struct op_ctx *c)
{
    const struct tensor *in = op_in(c, 0), *ids = op_in(c, 1);
    const struct attr_text *between = c->node->state;
    int64_t dims[TENSOR_RANK_MAX + 1], segments, row;
    struct tensor *out = op_out(c, 0);
    enum mst_code rc = segment_check(c, &segments);
    int rest;

    if (rc)
        return rc;
    rest = in->ndim - ids->ndim;
    dims[0] = segments;
    for (int d = 0; d < rest; d++)
        dims[d + 1] = in->dims[ids->ndim + d];
    rc = op_out_new(c, 0, rest + 1, dims);
    if (rc)
        return rc;
    row = args_product(dims, 1, rest + 1);
    for (int64_t i = 0; i < ids->count && !rc; i++) {
        int64_t id = tensor_int(ids, i);

        if (id < 0 || id >= segments)
            rc = op_fail(c, MST_INVALID_ARGUMENT,
                         "segment_ids are not allowed to exceed num_segments "
                         "or to have negative values.");
        for (int64_t k = 0; k < row && !rc; k++) {
            struct str *s = tensor_str(out, id * row + k);
            struct text t = { s->data, s->len, s->len };

            /* What is still empty counts as not begun, as in TensorFlow. */
            *s = (struct str){ 0 };
            add_part(&t, t.len == 0, between, tensor_str(in, i * row + k));
            text_give(&t, s);
        }
    }
    return rc;
}

const struct op_def def_unsorted_segment_join = {
    .name = "UnsortedSegmentJoin",
    .in = "inputs: string, segment_ids: Tindices, num_segments: Tnumsegments",
    .out = "output: string",
    .attr = "separator: string = ''; Tindices: {int32, int64}; "
            "Tnumsegments: {int32, int64} = int32",
    .init = separator_init,
    .kernel =
        (const struct op_kernel[]){ { DT_ANY, unsorted_segment_join }, { 0 } },
};
