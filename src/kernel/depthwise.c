/*
 * DepthwiseConv2dNative and its gradients: each channel has filters of its own.
 *
 * With a multiplier of m, channel c of the input makes channels c * m … of the
 * output. The input is spread so that each has one, and all loops are over
 * channels side by side: y += x * w, for each tap over part of a line.
 */
#include <string.h>

#include "kernel/cast.h"
#include "kernel/types.h"
#include "kernel/window.h"

enum part { PART_X, PART_W, PART_Y };

struct depth_node {
    struct window w;
    enum part result;
};

struct depth_job {
    struct window_fit fit; /* channels: those of the output */
    void *x, *w, *y;       /* x spread to the output's channels */
    enum part result;
    enum dtype dtype;
    atomic_bool failed;
};

/* n pixels of c channels. For y each pixel is summed up over all of its taps
 * (at: places in x and in w) in registers. */
#define DEPTH(s, T, A, DT, LD, ST)                                             \
    typedef T vec_##s                                                          \
        __attribute__((vector_size(64), aligned(sizeof(T)), may_alias));       \
    CLONES_##s static void y_pixel_##s(T *y, const T *x, const T *w,           \
                                       const int64_t *at, int64_t taps,        \
                                       int64_t ch)                             \
    {                                                                          \
        enum { N = 64 / (int)sizeof(T) };                                      \
        int64_t c = 0;                                                         \
                                                                               \
        for (; c + 2 * N <= ch; c += 2 * N) {                                  \
            vec_##s a = { 0 }, b = { 0 };                                      \
                                                                               \
            for (int64_t t = 0; t < taps; t++) {                               \
                const T *p = x + at[2 * t] + c, *q = w + at[2 * t + 1] + c;    \
                                                                               \
                a += *(const vec_##s *)p * *(const vec_##s *)q;                \
                b += *(const vec_##s *)(p + N) * *(const vec_##s *)(q + N);    \
            }                                                                  \
            *(vec_##s *)(y + c) = a;                                           \
            *(vec_##s *)(y + c + N) = b;                                       \
        }                                                                      \
        for (; c < ch; c++) {                                                  \
            T a = 0;                                                           \
                                                                               \
            for (int64_t t = 0; t < taps; t++)                                 \
                a += x[at[2 * t] + c] * w[at[2 * t + 1] + c];                  \
            y[c] = a;                                                          \
        }                                                                      \
    }                                                                          \
    CLONES_##s static void x_span_##s(const T *restrict y, T *restrict x,      \
                                      const T *restrict w, int64_t n,          \
                                      int64_t apart, int64_t ch)               \
    {                                                                          \
        for (int64_t i = 0; i < n; i++, y += ch, x += apart)                   \
            for (int64_t c = 0; c < ch; c++)                                   \
                x[c] += y[c] * w[c];                                           \
    }                                                                          \
    CLONES_##s static void w_span_##s(const T *restrict y,                     \
                                      const T *restrict x, T *restrict w,      \
                                      int64_t n, int64_t apart, int64_t ch)    \
    {                                                                          \
        for (int64_t i = 0; i < n; i++, y += ch, x += apart)                   \
            for (int64_t c = 0; c < ch; c++)                                   \
                w[c] += x[c] * y[c];                                           \
    }                                                                          \
    static void span_##s(const struct depth_job *j, int64_t y, int64_t x,      \
                         int64_t w, int64_t n)                                 \
    {                                                                          \
        int64_t ch = j->fit.channels, apart = j->fit.dim[2].stride * ch;       \
        T *yp = (T *)j->y + y * ch, *xp = (T *)j->x + x * ch;                  \
        T *wp = (T *)j->w + w * ch;                                            \
                                                                               \
        if (j->result == PART_X)                                               \
            x_span_##s(yp, xp, wp, n, apart, ch);                              \
        else                                                                   \
            w_span_##s(yp, xp, wp, n, apart, ch);                              \
    }                                                                          \
    /* Each channel m times, or the sum of each m. */                          \
    static void spread_##s(T *to, const T *from, int64_t n, int64_t m)         \
    {                                                                          \
        for (int64_t i = 0; i < n; i++)                                        \
            for (int64_t k = 0; k < m; k++)                                    \
                to[i * m + k] = from[i];                                       \
    }                                                                          \
    static void gather_##s(T *to, const T *from, int64_t n, int64_t m)         \
    {                                                                          \
        for (int64_t i = 0; i < n; i++) {                                      \
            T sum = 0;                                                         \
                                                                               \
            for (int64_t k = 0; k < m; k++)                                    \
                sum += from[i * m + k];                                        \
            to[i] = sum;                                                       \
        }                                                                      \
    }
TYPES_FLOAT_WIDE(DEPTH)

/* Line oh of image n under the tap (kh, kw). */
static void run_tap(const struct depth_job *j, int64_t n, int64_t oh,
                    int64_t kh, int64_t kw)
{
    const struct window_dim *h = &j->fit.dim[1], *w = &j->fit.dim[2];
    int64_t ih = oh * h->stride - h->before + kh * h->dilation;
    int64_t first = w->before - kw * w->dilation, last = w->in - 1 + first;
    int64_t lo = first > 0 ? (first + w->stride - 1) / w->stride : 0;
    int64_t hi = last < 0 ? 0 : MIN(last / w->stride + 1, w->out);
    int64_t y = (n * h->out + oh) * w->out + lo;
    int64_t x = (n * h->in + ih) * w->in + lo * w->stride - first;

    if (ih < 0 || ih >= h->in || lo >= hi)
        return;
    if (j->dtype == DT_FLOAT)
        span_f32(j, y, x, kh * w->size + kw, hi - lo);
    else
        span_f64(j, y, x, kh * w->size + kw, hi - lo);
}

/* Lines [begin, end) of the output, pixel by pixel. */
static void run_lines(void *arg, int64_t begin, int64_t end)
{
    struct depth_job *j = arg;
    const struct window_dim *h = &j->fit.dim[1], *w = &j->fit.dim[2];
    int64_t ch = j->fit.channels;
    struct buffer *b =
        buffer_new((size_t)(h->size * w->size) * 2 * sizeof(int64_t));
    int64_t *at = b ? (int64_t *)b->data : NULL;

    if (!b)
        atomic_store(&j->failed, true);
    for (int64_t o = begin * w->out; b && o < end * w->out; o++) {
        int64_t line = o / w->out, taps = 0;

        for (int64_t t = 0; t < h->size * w->size; t++) {
            int64_t y = line % h->out * h->stride - h->before +
                        t / w->size * h->dilation;
            int64_t x =
                o % w->out * w->stride - w->before + t % w->size * w->dilation;

            if (y < 0 || y >= h->in || x < 0 || x >= w->in)
                continue;
            at[2 * taps] = ((line / h->out * h->in + y) * w->in + x) * ch;
            at[2 * taps++ + 1] = t * ch;
        }
        if (j->dtype == DT_FLOAT)
            y_pixel_f32((float *)j->y + o * ch, j->x, j->w, at, taps, ch);
        else
            y_pixel_f64((double *)j->y + o * ch, j->x, j->w, at, taps, ch);
    }
    buffer_unref(b);
}

/* Pieces are images of the input, or taps of the filter. */
static void run_pieces(void *arg, int64_t begin, int64_t end)
{
    const struct depth_job *j = arg;
    const struct window_dim *h = &j->fit.dim[1], *w = &j->fit.dim[2];
    int64_t taps = h->size * w->size, lines = j->fit.batch * h->out;
    int64_t t0 = 0, t1 = taps, l0 = 0, l1 = lines;

    if (j->result == PART_W) {
        t0 = begin;
        t1 = end;
    } else {
        l0 = begin * h->out;
        l1 = end * h->out;
    }
    for (int64_t l = l0; l < l1; l++)
        for (int64_t t = t0; t < t1; t++)
            run_tap(j, l / h->out, l % h->out, t / w->size, t % w->size);
}

/* ---- the node ---- */

static enum mst_code depth_init(struct op_node *n, struct status *st)
{
    struct depth_node *s = ARENA_NEW(n->arena, struct depth_node);
    enum mst_code rc = window_init(n, 2, &s->w, st);

    if (rc)
        return rc;
    if (s->w.batch_stride != 1 || s->w.channel_stride != 1)
        return status_set(st, MST_INVALID_ARGUMENT,
                          "Current implementation does not yet support strides "
                          "in the batch and depth dimensions.");
    if (s->w.stride[1] < 1 || s->w.stride[2] < 1)
        return status_set(st, MST_INVALID_ARGUMENT,
                          "Sliding window strides must be positive");
    s->result = strstr(n->def->name, "Input")    ? PART_X
                : strstr(n->def->name, "Filter") ? PART_W
                                                 : PART_Y;
    n->state = s;
    return MST_OK;
}

/* Dimensions of x, w and y as the node has them. */
static enum mst_code read_dims(struct op_ctx *c, int64_t dims[3][4])
{
    static const char *const names[] = { "input", "filter", "out_backprop" };
    const struct depth_node *s = c->node->state;

    for (int i = 0; i < c->node->in_count; i++) {
        const struct tensor *t = op_in(c, i);

        if (s->result != (enum part)i) {
            if (t->ndim != 4)
                return op_fail(c, MST_INVALID_ARGUMENT,
                               "%s must be 4-dimensional", names[i]);
            memcpy(dims[i], t->dims, sizeof(dims[i]));
            continue;
        }
        if (t->ndim != 1 || t->count != 4)
            return op_fail(c, MST_INVALID_ARGUMENT,
                           "%s: %s_sizes input must be 1-dim, not %d",
                           c->node->def->name, names[i], t->ndim);
        for (int k = 0; k < 4; k++) {
            dims[i][k] = tensor_int(t, k);
            if (dims[i][k] < 0)
                return op_fail(c, MST_INVALID_ARGUMENT,
                               "Dimension %lld must be >= 0",
                               (long long)dims[i][k]);
        }
        if (!shape_count(4, dims[i], 8, &(int64_t){ 0 }))
            return op_fail(c, MST_INVALID_ARGUMENT, "%s is too large",
                           names[i]);
    }
    return MST_OK;
}

static enum mst_code depth_fit(struct op_ctx *c, int64_t dims[3][4],
                               struct window_fit *f)
{
    const struct depth_node *s = c->node->state;
    int last = s->w.channels_first ? 1 : 3;
    struct window w = s->w;
    int64_t y[4];
    enum mst_code rc;

    if (dims[0][last] != dims[1][2])
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "input and filter must have the same depth: %lld vs "
                       "%lld",
                       (long long)dims[0][last], (long long)dims[1][2]);
    w.size[1] = dims[1][0];
    w.size[2] = dims[1][1];
    rc = window_fit(c, &w, dims[0], f);
    if (rc)
        return rc;
    if (__builtin_mul_overflow(dims[1][2], dims[1][3], &f->channels))
        return op_fail(c, MST_INVALID_ARGUMENT, "filter is too large");
    window_dims(&w, f, f->channels, false, y);
    if (s->result == PART_Y)
        memcpy(dims[2], y, sizeof(y));
    else if (memcmp(dims[2], y, sizeof(y)))
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "%s: Size of out_backprop doesn't match computed",
                       c->node->def->name);
    return MST_OK;
}

/* Input i, channels last, in the loops' type; x spread. */
static enum mst_code operand(struct op_ctx *c, int i, enum dtype want,
                             int64_t m, struct tensor *ret)
{
    const struct depth_node *s = c->node->state;
    struct tensor t = { 0 }, u = { 0 };
    enum mst_code rc = MST_OK;

    if (i == PART_W)
        t = tensor_ref(op_in(c, i));
    else
        rc = window_in(c, &s->w, op_in(c, i), &t);
    if (!rc && t.dtype != want) {
        rc = cast_tensor(c, &u, want, &t);
        tensor_unref(&t);
        tensor_move(&t, &u);
    }
    if (!rc && i == PART_X && m != 1) {
        rc = tensor_new(&u, want, 1, (int64_t[]){ t.count * m }, c->st);
        if (!rc && want == DT_FLOAT)
            spread_f32(u.data, t.data, t.count, m);
        else if (!rc)
            spread_f64(u.data, t.data, t.count, m);
        tensor_unref(&t);
        tensor_move(&t, &u);
    }
    if (!rc)
        tensor_move(ret, &t);
    tensor_unref(&t);
    return rc;
}

/* The result in the node's type and format. x's channels are summed up. */
static enum mst_code deliver(struct op_ctx *c, struct tensor *t, int64_t m)
{
    const struct depth_node *s = c->node->state;
    enum dtype type = dtype_base(c->node->out_types[0]);
    struct tensor u = { 0 };
    enum mst_code rc = MST_OK;

    if (s->result == PART_X && m != 1) {
        int64_t dims[4] = { t->dims[0], t->dims[1], t->dims[2],
                            t->dims[3] / m };

        rc = tensor_new(&u, (enum dtype)t->dtype, 4, dims, c->st);
        if (!rc && t->dtype == DT_FLOAT)
            gather_f32(u.data, t->data, u.count, m);
        else if (!rc)
            gather_f64(u.data, t->data, u.count, m);
        tensor_unref(t);
        tensor_move(t, &u);
    }
    if (!rc && t->dtype != type) {
        rc = cast_tensor(c, &u, type, t);
        tensor_unref(t);
        tensor_move(t, &u);
    }
    if (!rc && s->result == PART_W)
        tensor_move(op_out(c, 0), t);
    else if (!rc)
        rc = window_out(c, &s->w, t, op_out(c, 0));
    return rc;
}

static void go(struct op_ctx *c, struct depth_job *j)
{
    const struct window_dim *h = &j->fit.dim[1], *w = &j->fit.dim[2];
    int64_t lines = j->fit.batch * h->out, taps = h->size * w->size;
    int64_t pieces = j->result == PART_Y   ? lines
                     : j->result == PART_X ? j->fit.batch
                                           : taps;

    op_for(c, pieces,
           0.15 * (double)lines * (double)taps *
               (double)(w->out * j->fit.channels) / (double)MAX(pieces, 1),
           j->result == PART_Y ? run_lines : run_pieces, j);
}

static enum mst_code depthwise(struct op_ctx *c)
{
    const struct depth_node *s = c->node->state;
    enum dtype type = dtype_base(c->node->out_types[0]);
    struct depth_job j = { .result = s->result };
    struct tensor t[3] = { { 0 } };
    void **const place[] = { &j.x, &j.w, &j.y };
    int64_t dims[3][4], out[4], m;
    struct window last = s->w;
    enum mst_code rc = read_dims(c, dims);

    if (!rc)
        rc = depth_fit(c, dims, &j.fit);
    if (rc)
        return rc;
    m = dims[1][3];
    j.dtype = type == DT_DOUBLE ? DT_DOUBLE : DT_FLOAT;
    last.channels_first = false;
    if (s->result == PART_W)
        memcpy(out, dims[1], sizeof(out));
    else
        window_dims(&last, &j.fit, j.fit.channels, s->result == PART_X, out);
    for (int i = 0; i < 3 && !rc; i++) {
        if (i == (int)s->result) {
            rc = tensor_new(&t[i], j.dtype, 4, out, c->st);
            if (!rc)
                tensor_zero(&t[i]);
        } else {
            rc = operand(c, i, j.dtype, m, &t[i]);
        }
        *place[i] = t[i].data;
    }
    if (!rc && t[0].count && t[1].count && t[2].count)
        go(c, &j);
    if (!rc && atomic_load(&j.failed))
        rc = op_fail(c, MST_RESOURCE_EXHAUSTED, "OOM in a convolution");
    if (!rc && m)
        rc = deliver(c, &t[s->result], m);
    else if (!rc)
        rc = op_fail(c, MST_INVALID_ARGUMENT,
                     "filter must not have zero elements");
    for (int i = 0; i < 3; i++)
        tensor_unref(&t[i]);
    return rc;
}

#define DEPTH_DEF(stem, NAME, IN)                                              \
    const struct op_def def_##stem = {                                         \
        .name = NAME,                                                          \
        .in = IN,                                                              \
        .out = "output: T",                                                    \
        .attr = "T: {half, bfloat16, float, double}; strides: list(int); "     \
                "padding: {'SAME', 'VALID', 'EXPLICIT'}; "                     \
                "explicit_paddings: list(int) = []; "                          \
                "data_format: {'NHWC', 'NCHW'} = 'NHWC'; "                     \
                "dilations: list(int) = [1, 1, 1, 1]",                         \
        .flags = OP_EXPENSIVE,                                                 \
        .init = depth_init,                                                    \
        .kernel = KERNELS({ DT_ANY, depthwise }, ),                            \
    }

DEPTH_DEF(depthwise_conv2d_native, "DepthwiseConv2dNative",
          "input: T, filter: T");
DEPTH_DEF(depthwise_conv2d_native_backprop_input,
          "DepthwiseConv2dNativeBackpropInput",
          "input_sizes: int32, filter: T, out_backprop: T");
DEPTH_DEF(depthwise_conv2d_native_backprop_filter,
          "DepthwiseConv2dNativeBackpropFilter",
          "input: T, filter_sizes: int32, out_backprop: T");
