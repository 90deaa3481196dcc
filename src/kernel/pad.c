/*
 * A tensor with a margin around it: of zeros, of one value, or of its own
 * mirror image.
 */
#include <string.h>

#include "kernel/args.h"
#include "kernel/combine.h"
#include "kernel/strided.h"

/* Width of the margin before and after each dimension. */
struct margins {
    int64_t before[TENSOR_RANK_MAX], after[TENSOR_RANK_MAX];
    int64_t dims[TENSOR_RANK_MAX]; /* of the output */
};

static enum mst_code read_margins(struct op_ctx *c, bool mirror,
                                  struct margins *m)
{
    const struct tensor *in = op_in(c, 0), *p = op_in(c, 1);
    char ta[SHAPE_TEXT_MAX], tb[SHAPE_TEXT_MAX];

    if (p->ndim != 2 || p->dims[1] != 2)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "paddings must be a matrix with 2 columns: %s",
                       tensor_shape_text(p, ta));
    if (p->dims[0] != in->ndim)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       mirror ? "The first dimension of paddings must be the "
                                "rank of inputs%s, %s"
                              : "The first dimension of paddings must be the "
                                "rank of inputs%s %s",
                       tensor_shape_text(p, ta), tensor_shape_text(in, tb));
    for (int i = 0; i < in->ndim; i++) {
        m->before[i] = tensor_int(p, 2 * i);
        m->after[i] = tensor_int(p, 2 * i + 1);
        if (m->before[i] < 0 || m->after[i] < 0)
            return op_fail(c, MST_INVALID_ARGUMENT,
                           mirror ? "paddings must be non-negative: %lld %lld"
                                  : "Paddings must be non-negative: %lld %lld",
                           (long long)m->before[i], (long long)m->after[i]);
        if (__builtin_add_overflow(in->dims[i], m->before[i], &m->dims[i]) ||
            __builtin_add_overflow(m->dims[i], m->after[i], &m->dims[i]))
            return op_fail(c, MST_INVALID_ARGUMENT, "Paddings are too large");
    }
    return args_check_dims(c, in->ndim, m->dims);
}

/* Makes the output and copies the input to its place inside of it. */
static enum mst_code put_inside(struct op_ctx *c, const struct margins *m,
                                const struct tensor *margin)
{
    const struct tensor *in = op_in(c, 0);
    int64_t to[TENSOR_RANK_MAX], from[TENSOR_RANK_MAX];
    struct strided s = { 0 };
    enum mst_code rc = op_out_new(c, 0, in->ndim, m->dims);

    if (rc)
        return rc;
    if (margin && op_out(c, 0)->count != in->count)
        strided_fill(c, op_out(c, 0), margin);
    strided_of(in->ndim, m->dims, to);
    strided_of(in->ndim, in->dims, from);
    for (int i = 0; i < in->ndim; i++) {
        s.to_at += m->before[i] * to[i];
        strided_dim(&s, in->dims[i], to[i], from[i]);
    }
    strided_copy(c, op_out(c, 0), in, &s);
    return MST_OK;
}

static enum mst_code pad(struct op_ctx *c)
{
    enum dtype dt = (enum dtype)op_in(c, 0)->dtype;
    struct tensor zero = { 0 };
    struct margins m;
    enum mst_code rc = read_margins(c, false, &m);

    if (!rc)
        rc = tensor_new_scalar(&zero, dt, c->st);
    if (rc)
        return rc;
    tensor_zero(&zero);
    rc = put_inside(c, &m, &zero);
    tensor_unref(&zero);
    return rc;
}

static enum mst_code pad_v2(struct op_ctx *c)
{
    char text[SHAPE_TEXT_MAX];
    struct margins m;
    enum mst_code rc = read_margins(c, false, &m);

    if (rc)
        return rc;
    if (op_in(c, 2)->ndim)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "constant_values must be a scalar. Found: %s",
                       tensor_shape_text(op_in(c, 2), text));
    return put_inside(c, &m, op_in(c, 2));
}

const struct op_def def_pad = {
    .name = "Pad",
    .in = "input: T, paddings: Tpaddings",
    .out = "output: T",
    .attr = "T: type; Tpaddings: {int32, int64} = int32",
    .kernel = (const struct op_kernel[]){ { DT_ANY, pad }, { 0 } },
};

const struct op_def def_pad_v2 = {
    .name = "PadV2",
    .in = "input: T, paddings: Tpaddings, constant_values: T",
    .out = "output: T",
    .attr = "T: type; Tpaddings: {int32, int64} = int32",
    .kernel = (const struct op_kernel[]){ { DT_ANY, pad_v2 }, { 0 } },
};

/* ---- mirrored ---- */

/* The margins of dimension d, out of the output itself: dimensions after d are
 * complete already, those before d have only their inside yet. */
static void mirror(struct op_ctx *c, const struct margins *m, int d, int border)
{
    const struct tensor *in = op_in(c, 0);
    struct tensor *out = op_out(c, 0);
    int64_t step[TENSOR_RANK_MAX], first;
    struct strided before = { 0 }, after = { 0 };

    strided_of(in->ndim, m->dims, step);
    for (int i = 0; i < d; i++)
        before.to_at += m->before[i] * step[i];
    first = m->before[d] * step[d];
    after = before;
    before.from_at = before.to_at + first + border * step[d];
    before.to_at += first - step[d];
    after.to_at += first + in->dims[d] * step[d];
    after.from_at = after.to_at - (1 + border) * step[d];
    for (int i = 0; i < in->ndim; i++) {
        int64_t n = i < d ? in->dims[i] : m->dims[i];

        strided_dim(&before, i == d ? m->before[i] : n,
                    i == d ? -step[i] : step[i], step[i]);
        strided_dim(&after, i == d ? m->after[i] : n, step[i],
                    i == d ? -step[i] : step[i]);
    }
    strided_copy(c, out, out, &before);
    strided_copy(c, out, out, &after);
}

static enum mst_code mirror_pad(struct op_ctx *c)
{
    const struct tensor *in = op_in(c, 0);
    int border = c->node->state ? 1 : 0; /* the edge is not repeated */
    struct margins m;
    enum mst_code rc = read_margins(c, true, &m);

    if (rc)
        return rc;
    for (int i = 0; i < in->ndim; i++)
        if (MAX(m.before[i], m.after[i]) > in->dims[i] - border)
            return op_fail(c, MST_INVALID_ARGUMENT,
                           border ? "paddings must be less than the dimension "
                                    "size: %lld, %lld not less than %lld"
                                  : "paddings must be no greater than the "
                                    "dimension size: %lld, %lld greater than "
                                    "%lld",
                           (long long)m.before[i], (long long)m.after[i],
                           (long long)in->dims[i]);
    rc = put_inside(c, &m, NULL);
    if (rc || !op_out(c, 0)->count)
        return rc;
    for (int d = in->ndim - 1; d >= 0; d--)
        mirror(c, &m, d, border);
    return MST_OK;
}

static enum mst_code mirror_pad_init(struct op_node *n, struct status *st)
{
    (void)st;
    /* Only whether it is set matters. */
    if (!strcmp(op_attr_str(n, "mode").data, "REFLECT"))
        n->state = n;
    return MST_OK;
}

const struct op_def def_mirror_pad = {
    .name = "MirrorPad",
    .in = "input: T, paddings: Tpaddings",
    .out = "output: T",
    .attr = "T: type; Tpaddings: {int32, int64} = int32; "
            "mode: {'REFLECT', 'SYMMETRIC'}",
    .init = mirror_pad_init,
    .kernel = (const struct op_kernel[]){ { DT_ANY, mirror_pad }, { 0 } },
};

/* ---- the gradient of the mirrored one ---- */

static enum mst_code read_grad_margins(struct op_ctx *c, int border,
                                       struct margins *m)
{
    const struct tensor *in = op_in(c, 0);
    enum mst_code rc = read_margins(c, true, m);

    for (int i = 0; i < in->ndim && !rc; i++) {
        m->dims[i] = in->dims[i] - m->before[i] - m->after[i];
        if (m->dims[i] <= 0)
            return op_fail(c, MST_INVALID_ARGUMENT,
                           "Total paddings must be less than the input "
                           "dimension size: %lld was not less than %lld",
                           (long long)(m->before[i] + m->after[i]),
                           (long long)in->dims[i]);
        if (MAX(m->before[i], m->after[i]) > m->dims[i] - border)
            rc = op_fail(c, MST_INVALID_ARGUMENT,
                         border ? "Paddings must be less than the output "
                                  "dimension size: %lld, %lld not less than "
                                  "%lld"
                                : "Paddings must be no greater than the output "
                                  "dimension size: %lld, %lld greater than "
                                  "%lld",
                         (long long)m->before[i], (long long)m->after[i],
                         (long long)m->dims[i]);
    }
    return rc;
}

/* Adds the margins of dimension d to what they mirror. */
static void fold(const struct combiner *add, struct tensor *t,
                 const struct margins *m, int d, int border)
{
    int64_t outer = args_product(t->dims, 0, d), n = t->dims[d];
    int64_t inner = args_product(t->dims, d + 1, t->ndim);
    int64_t end = n - m->after[d];
    size_t row = (size_t)inner * dtype_size((enum dtype)t->dtype);
    uint8_t *at = t->data;

    for (int64_t i = 0; i < outer; i++, at += (size_t)n * row) {
        for (int64_t k = 0; k < m->before[d]; k++) {
            void *to = at + (size_t)(m->before[d] + border + k) * row;

            combine(add, to, to, at + (size_t)(m->before[d] - 1 - k) * row,
                    inner);
        }
        for (int64_t k = 0; k < m->after[d]; k++) {
            void *to = at + (size_t)(end - 1 - border - k) * row;

            combine(add, to, to, at + (size_t)(end + k) * row, inner);
        }
    }
}

static enum mst_code mirror_pad_grad(struct op_ctx *c)
{
    const struct tensor *in = op_in(c, 0);
    int64_t step[TENSOR_RANK_MAX], at = 0;
    int border = c->node->state ? 1 : 0;
    struct combiner add;
    struct margins m;
    struct tensor t;
    enum mst_code rc = read_grad_margins(c, border, &m);

    if (rc)
        return rc;
    CHECK(combiner_init(&add, COMBINE_ADD, (enum dtype)in->dtype));
    rc = tensor_new_like(&t, (enum dtype)in->dtype, in, c->st);
    if (rc)
        return rc;
    tensor_copy_elems(&t, 0, in, 0, in->count);
    strided_of(in->ndim, in->dims, step);
    for (int d = 0; d < in->ndim && in->count; d++) {
        fold(&add, &t, &m, d, border);
        at += m.before[d] * step[d];
    }
    rc = strided_view(c, 0, &t, in->ndim, m.dims, step, at);
    tensor_unref(&t);
    return rc;
}

const struct op_def def_mirror_pad_grad = {
    .name = "MirrorPadGrad",
    .in = "input: T, paddings: Tpaddings",
    .out = "output: T",
    .attr = "T: type; Tpaddings: {int32, int64} = int32; "
            "mode: {'REFLECT', 'SYMMETRIC'}",
    .init = mirror_pad_init,
    .kernel = KERNELS(TYPES_NUMBER(ROW_SAME, mirror_pad_grad)),
};
