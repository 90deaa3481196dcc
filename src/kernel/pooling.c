/*
 * The walk of pooling, and what all of its ops check.
 */
#include "kernel/pooling.h"

#include <string.h>

#include "kernel/cast.h"
#include "kernel/narrow.h"

/* Positions [*lo, *hi) of the output that have tap k inside of the input. */
static void inside(const struct window_dim *d, int64_t k, int64_t *lo,
                   int64_t *hi)
{
    int64_t first = d->before - k * d->dilation, last = d->in - 1 + first;

    *lo = first > 0 ? (first + d->stride - 1) / d->stride : 0;
    *hi = last < 0 ? 0 : MIN(last / d->stride + 1, d->out);
}

/* Taps [*lo, *hi) that are inside of the input for some of the positions
 * from o to last. */
static void taps_inside(const struct window_dim *d, int64_t o, int64_t last,
                        int64_t *lo, int64_t *hi)
{
    *lo = MAX(d->before - last * d->stride, 0);
    *hi = MIN(d->size, d->in + d->before - o * d->stride);
}

/* One tap of a line, from `first` on in the source's line. */
static void call_tap(const struct window_fit *f, int64_t line, int64_t first,
                     int64_t kw, int64_t tap, pooling_fn *fn, void *arg)
{
    const struct window_dim *d = &f->dim[2];
    struct pooling_span s = { .channels = f->channels, .tap = tap };
    int64_t lo, hi;

    inside(d, kw, &lo, &hi);
    if (lo >= hi)
        return;
    s.line = lo * s.channels;
    s.y = line * d->out * s.channels + s.line;
    s.x = (first + lo * d->stride - d->before + kw) * s.channels;
    s.n = hi - lo;
    s.apart = d->stride * s.channels;
    fn(arg, &s);
}

void pooling_walk(const struct pooling_walk *w, int64_t line, pooling_fn *fn,
                  void *arg)
{
    const struct window_dim *d = w->fit->dim;
    int64_t oh = line % d[1].out, rest = line / d[1].out;
    int64_t od = rest % d[0].out, n = rest / d[0].out, taps = 1;
    int64_t lo[3], hi[3];

    taps_inside(&d[0], od, od, &lo[0], &hi[0]);
    taps_inside(&d[1], oh, oh, &lo[1], &hi[1]);
    taps_inside(&d[2], 0, d[2].out - 1, &lo[2], &hi[2]);
    for (int i = 0; i < 3; i++)
        taps *= MAX(hi[i] - lo[i], 0);
    for (int64_t i = 0; i < taps; i++) {
        int64_t t = w->backwards ? taps - 1 - i : i;
        int64_t kw = lo[2] + t % (hi[2] - lo[2]);
        int64_t kh = lo[1] + t / (hi[2] - lo[2]) % (hi[1] - lo[1]);
        int64_t kd = lo[0] + t / (hi[2] - lo[2]) / (hi[1] - lo[1]);
        int64_t id = od * d[0].stride - d[0].before + kd;
        int64_t ih = oh * d[1].stride - d[1].before + kh;

        call_tap(w->fit, line, ((n * d[0].in + id) * d[1].in + ih) * d[2].in,
                 kw, t, fn, arg);
    }
}

int64_t pooling_places(const struct window_fit *f, int64_t line, int64_t x,
                       int64_t *ret)
{
    const struct window_dim *d = f->dim;
    int64_t rest = line / d[1].out, n = rest / d[0].out, count = 0;
    int64_t o[3] = { rest % d[0].out, line % d[1].out, x }, lo[3], hi[3];

    for (int i = 0; i < 3; i++) {
        taps_inside(&d[i], o[i], o[i], &lo[i], &hi[i]);
        lo[i] += o[i] * d[i].stride - d[i].before;
        hi[i] += o[i] * d[i].stride - d[i].before;
    }
    for (int64_t i = lo[0]; i < hi[0]; i++)
        for (int64_t j = lo[1]; j < hi[1]; j++)
            for (int64_t k = lo[2]; k < hi[2]; k++)
                ret[count++] =
                    (((n * d[0].in + i) * d[1].in + j) * d[2].in + k) *
                    f->channels;
    return count;
}

int64_t pooling_alike(const struct window_fit *f, int64_t x)
{
    const struct window_dim *d = &f->dim[2];
    int64_t first = x * d->stride - d->before;
    int64_t last = d->in - d->size; /* where a whole window begins */

    if (first < 0 || first > last)
        return 1;
    return MIN((last - first) / d->stride + 1, d->out - x);
}

int64_t pooling_places_max(const struct window_fit *f)
{
    int64_t n = 1;

    for (int i = 0; i < 3; i++)
        n *= MIN(f->dim[i].size, f->dim[i].in);
    return n;
}

static int64_t covered(const struct window_dim *d, int64_t o)
{
    int64_t begin = o * d->stride - d->before, end = begin + d->size;

    return MIN(end, d->in) - MAX(begin, 0);
}

int64_t pooling_covered(const struct window_fit *f, int64_t line, int64_t x)
{
    const struct window_dim *d = f->dim;

    return covered(&d[0], line / d[1].out % d[0].out) *
           covered(&d[1], line % d[1].out) * covered(&d[2], x);
}

/* ---- nodes ---- */

static enum mst_code check_window(struct status *st, const struct window *w)
{
    if (w->batch_size != 1 || w->batch_stride != 1)
        return status_set(st, MST_UNIMPLEMENTED,
                          "Pooling is not yet supported on the batch "
                          "dimension.");
    for (int i = 0; i < 3; i++)
        if (w->size[i] > INT32_MAX || w->stride[i] > INT32_MAX)
            return status_set(st, MST_INVALID_ARGUMENT,
                              "Window is out of range for an int32");
    for (int i = 0; i < 3; i++)
        if (w->size[i] < 1 || w->channel_size < 1)
            return status_set(st, MST_INVALID_ARGUMENT,
                              "Sliding window ksize must be positive. The "
                              "specified or inferred ksize is not");
    for (int i = 0; i < 3; i++)
        if (w->stride[i] < 1 || w->channel_stride < 1)
            return status_set(st, MST_INVALID_ARGUMENT,
                              "Sliding window stride must be positive. The "
                              "specified or inferred stride is not");
    return MST_OK;
}

enum mst_code pooling_init(struct op_node *n, struct status *st)
{
    struct pooling_node *p = ARENA_NEW(n->arena, struct pooling_node);
    const struct attr *batch = op_attr(n, "include_batch_in_index");
    enum mst_code rc;

    rc = window_init(n, strstr(n->def->name, "3D") ? 3 : 2, &p->w, st);
    if (rc)
        return rc;
    p->from_inputs = strstr(n->def->in, "ksize") != NULL;
    p->tensors = n->in_count - 2;
    p->batch_in_index = batch && batch->value->b;
    n->state = p;
    return p->from_inputs ? MST_OK : check_window(st, &p->w);
}

static enum mst_code window_of_inputs(struct op_ctx *c, struct window *w)
{
    const struct pooling_node *p = c->node->state;

    for (int i = 0; i < 2; i++) {
        const struct tensor *t = op_in(c, p->tensors + i);
        int64_t list[5];

        if (t->ndim != 1 || t->count != w->nd + 2)
            return op_fail(c, MST_INVALID_ARGUMENT,
                           "Sliding window %s field must specify %d dimensions",
                           i ? "stride" : "ksize", w->nd + 2);
        for (int k = 0; k < w->nd + 2; k++)
            list[k] = tensor_int(t, k);
        if (i)
            window_set(w, list, w->stride, &w->batch_stride,
                       &w->channel_stride);
        else
            window_set(w, list, w->size, &w->batch_size, &w->channel_size);
    }
    return check_window(c->st, w);
}

enum mst_code pooling_fit(struct op_ctx *c, const struct tensor *in,
                          const int64_t *dims, struct window *w,
                          struct window_fit *ret)
{
    const struct pooling_node *p = c->node->state;
    enum mst_code rc;

    *w = p->w;
    if (p->from_inputs) {
        rc = window_of_inputs(c, w);
        if (rc)
            return rc;
    }
    if (in && in->ndim != w->nd + 2) {
        if (w->nd == 2 && c->node->in_count == 1)
            return op_fail(c, MST_INVALID_ARGUMENT,
                           "tensor_in_shape must have 2 spatial dimensions. "
                           "%d %d",
                           in->ndim, w->channels_first);
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "tensor_in must be %d-dimensional", w->nd + 2);
    }
    return window_fit(c, w, in ? in->dims : dims, ret);
}

enum dtype pooling_type(enum dtype dt)
{
    return narrow_is(dt) ? DT_FLOAT : dt;
}

enum mst_code pooling_in(struct op_ctx *c, const struct window *w, int i,
                         struct tensor *t)
{
    struct tensor turned = { 0 };
    enum mst_code rc = window_in(c, w, op_in(c, i), &turned);
    enum dtype want = pooling_type((enum dtype)op_in(c, i)->dtype);

    if (rc)
        return rc;
    if (turned.dtype == want)
        tensor_move(t, &turned);
    else
        rc = cast_tensor(c, t, want, &turned);
    tensor_unref(&turned);
    return rc;
}

enum mst_code pooling_out(struct op_ctx *c, const struct window *w,
                          struct tensor *t, int i)
{
    enum dtype want = dtype_base(c->node->out_types[i]);
    struct tensor narrow = { 0 };
    enum mst_code rc = MST_OK;

    if (t->dtype != want) {
        rc = cast_tensor(c, &narrow, want, t);
        tensor_unref(t);
        tensor_move(t, &narrow);
    }
    if (!rc)
        rc = window_out(c, w, t, op_out(c, i));
    tensor_unref(t);
    return rc;
}
