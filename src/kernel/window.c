/*
 * Attributes of sliding windows, what they come to over a tensor, and tensors
 * with the channels in front.
 */
#include "kernel/window.h"

#include <string.h>

#include "kernel/strided.h"

/* ---- attributes ---- */

void window_set(struct window *w, const int64_t *list, int64_t *ret,
                int64_t *ret_batch, int64_t *ret_channels)
{
    int first = w->channels_first ? 2 : 1;

    ret[0] = ret[1] = ret[2] = 1;
    for (int i = 0; i < w->nd; i++)
        ret[3 - w->nd + i] = list[first + i];
    *ret_batch = list[0];
    *ret_channels = list[w->channels_first ? 1 : w->nd + 1];
}

static enum mst_code read_list(struct op_node *n, struct window *w,
                               const char *attr, const char *what, int64_t *ret,
                               int64_t *ret_batch, int64_t *ret_channels,
                               struct status *st)
{
    const struct attr *a = op_attr(n, attr);
    int64_t list[5];

    ret[0] = ret[1] = ret[2] = *ret_batch = *ret_channels = 1;
    if (!a)
        return MST_OK;
    if (a->count != w->nd + 2)
        return status_set(st, MST_INVALID_ARGUMENT,
                          "Sliding window %s field must specify %d dimensions",
                          what, w->nd + 2);
    for (int i = 0; i < a->count; i++)
        list[i] = a->value[i].i;
    window_set(w, list, ret, ret_batch, ret_channels);
    return MST_OK;
}

static enum mst_code read_explicit(struct op_node *n, struct window *w,
                                   struct status *st)
{
    const struct attr *a = op_attr(n, "explicit_paddings");
    int64_t before[5], after[5], unused[2];

    if (w->padding != WINDOW_EXPLICIT) {
        if (!a || !a->count)
            return MST_OK;
        return status_set(st, MST_INVALID_ARGUMENT,
                          "explicit_paddings attribute must be empty if the "
                          "padding attribute is not EXPLICIT");
    }
    if (!a || a->count != 2 * (w->nd + 2))
        return status_set(st, MST_INVALID_ARGUMENT,
                          "explicit_paddings attribute must contain %d values, "
                          "but got: %d",
                          2 * (w->nd + 2), a ? a->count : 0);
    for (int i = 0; i < a->count; i++) {
        if (a->value[i].i < 0)
            return status_set(st, MST_INVALID_ARGUMENT,
                              "All elements of explicit_paddings must be "
                              "nonnegative");
        *(i % 2 ? &after[i / 2] : &before[i / 2]) = a->value[i].i;
    }
    window_set(w, before, w->before, &unused[0], &unused[1]);
    if (!unused[0] && !unused[1])
        window_set(w, after, w->after, &unused[0], &unused[1]);
    if (w->nd == 2)
        w->before[0] = w->after[0] = 0;
    if (!unused[0] && !unused[1])
        return MST_OK;
    return status_set(st, MST_INVALID_ARGUMENT,
                      "Nonzero explicit padding in the batch or depth "
                      "dimensions is not supported");
}

enum mst_code window_init(struct op_node *n, int nd, struct window *w,
                          struct status *st)
{
    const struct attr *format = op_attr(n, "data_format");
    const char *padding = op_attr_str(n, "padding").data;
    int64_t unused[2];
    enum mst_code rc;

    memset(w, 0, sizeof(*w));
    w->nd = nd;
    w->channels_first = format && format->value->s.data[1] == 'C';
    w->padding = padding[0] == 'S'   ? WINDOW_SAME
                 : padding[0] == 'V' ? WINDOW_VALID
                                     : WINDOW_EXPLICIT;
    rc = read_list(n, w, "dilations", "dilations", w->dilation, &unused[0],
                   &unused[1], st);
    if (!rc)
        rc = read_list(n, w, "strides", "strides", w->stride, &w->batch_stride,
                       &w->channel_stride, st);
    if (!rc)
        rc = read_list(n, w, "ksize", "ksize", w->size, &w->batch_size,
                       &w->channel_size, st);
    if (rc)
        return rc;
    if (unused[0] != 1 || unused[1] != 1)
        return status_set(st, MST_INVALID_ARGUMENT,
                          "Current implementation does not yet support "
                          "dilations in the batch and depth dimensions.");
    for (int i = 0; i < 3; i++)
        if (w->dilation[i] < 1)
            return status_set(st, MST_INVALID_ARGUMENT,
                              "Dilated rates should be larger than 0.");
    return read_explicit(n, w, st);
}

/* ---- over a tensor ---- */

enum mst_code window_fit_dim(struct op_ctx *c, const struct window *w, int i,
                             struct window_dim *d)
{
    int64_t reach, left = 0;

    d->stride = w->stride[i];
    d->dilation = w->dilation[i];
    d->before = 0;
    if (d->stride < 1)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Stride must be > 0, but got %lld",
                       (long long)d->stride);
    if (__builtin_mul_overflow(d->size - 1, d->dilation, &reach) ||
        reach > INT64_MAX / 4)
        return op_fail(c, MST_INVALID_ARGUMENT, "Dilation is too large");
    reach++;
    if (w->padding == WINDOW_SAME) {
        d->out = (d->in - 1 + d->stride) / d->stride;
        if (__builtin_mul_overflow(d->out - 1, d->stride, &left))
            left = 0;
        left = MAX(left + reach - d->in, 0);
        d->before = left / 2;
        return MST_OK;
    }
    if (w->padding == WINDOW_EXPLICIT) {
        d->before = w->before[i];
        if (__builtin_add_overflow(d->in + d->before, w->after[i], &left))
            left = -1;
    } else {
        left = d->in;
    }
    if (left < 0 || left > INT64_MAX / 4 || d->stride > INT64_MAX / 4)
        return op_fail(c, MST_INVALID_ARGUMENT, "Window is too large");
    d->out = (left - reach + d->stride) / d->stride;
    if (d->out >= 0)
        return MST_OK;
    return op_fail(c, MST_INVALID_ARGUMENT,
                   "Computed output size would be negative: %lld "
                   "[input_size: %lld, effective_filter_size: %lld, stride: "
                   "%lld]",
                   (long long)d->out, (long long)d->in, (long long)reach,
                   (long long)d->stride);
}

enum mst_code window_fit(struct op_ctx *c, const struct window *w,
                         const int64_t *dims, struct window_fit *ret)
{
    int first = w->channels_first ? 2 : 1;

    memset(ret, 0, sizeof(*ret));
    ret->batch = dims[0];
    ret->channels = dims[w->channels_first ? 1 : w->nd + 1];
    for (int i = 0; i < 3; i++) {
        struct window_dim *d = &ret->dim[i];
        enum mst_code rc;

        d->in = i < 3 - w->nd ? 1 : dims[first + i - (3 - w->nd)];
        d->size = w->size[i];
        if (i < 3 - w->nd) {
            d->out = d->stride = d->dilation = 1;
            continue;
        }
        rc = window_fit_dim(c, w, i, d);
        if (rc)
            return rc;
    }
    return MST_OK;
}

void window_dims(const struct window *w, const struct window_fit *f,
                 int64_t channels, bool input, int64_t *ret)
{
    int first = w->channels_first ? 2 : 1;

    ret[0] = f->batch;
    ret[w->channels_first ? 1 : w->nd + 1] = channels;
    for (int i = 0; i < w->nd; i++) {
        const struct window_dim *d = &f->dim[3 - w->nd + i];

        ret[first + i] = input ? d->in : d->out;
    }
}

/* ---- channels in front ---- */

/* A copy of t with dimension `from` moved to `to`. */
static void turn(struct op_ctx *c, struct tensor *to, const struct tensor *t,
                 bool to_last)
{
    int64_t n = t->dims[0], space = 1, channels;
    int ndim = t->ndim;
    struct strided s = { 0 };

    channels = t->dims[to_last ? 1 : ndim - 1];
    for (int i = 1; i < ndim; i++)
        space *= t->dims[i];
    space = channels ? space / channels : 0;
    strided_dim(&s, n, channels * space, channels * space);
    strided_dim(&s, to_last ? space : channels, to_last ? channels : space, 1);
    strided_dim(&s, to_last ? channels : space, 1, to_last ? space : channels);
    if (t->count)
        strided_copy(c, to, t, &s);
}

enum mst_code window_in(struct op_ctx *c, const struct window *w,
                        const struct tensor *t, struct tensor *ret)
{
    int64_t dims[TENSOR_RANK_MAX];
    enum mst_code rc;

    if (!w->channels_first) {
        *ret = tensor_ref(t);
        return MST_OK;
    }
    dims[0] = t->dims[0];
    for (int i = 2; i < t->ndim; i++)
        dims[i - 1] = t->dims[i];
    dims[t->ndim - 1] = t->dims[1];
    rc = tensor_new(ret, (enum dtype)t->dtype, t->ndim, dims, c->st);
    if (!rc)
        turn(c, ret, t, true);
    return rc;
}

enum mst_code window_out(struct op_ctx *c, const struct window *w,
                         struct tensor *t, struct tensor *out)
{
    int64_t dims[TENSOR_RANK_MAX];
    enum mst_code rc;

    if (!w->channels_first) {
        tensor_move(out, t);
        return MST_OK;
    }
    dims[0] = t->dims[0];
    dims[1] = t->dims[t->ndim - 1];
    for (int i = 1; i < t->ndim - 1; i++)
        dims[i + 1] = t->dims[i];
    rc = tensor_new(out, (enum dtype)t->dtype, t->ndim, dims, c->st);
    if (!rc)
        turn(c, out, t, false);
    tensor_unref(t);
    return rc;
}
