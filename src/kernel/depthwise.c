/*
 * DepthwiseConv2dNative and its gradients: each channel has filters of its own.
 *
 * With a multiplier of m, channel c of the input makes channels c * m … of the
 * output. The input is spread so that each has one, and all loops are over
 * channels side by side: y is the sum over taps of x * w, for some neighbouring
 * pixels at once, in registers. The gradient of the input is the same walk with
 * x and y exchanged (window_axis.h).
 */
#include <string.h>

#include "kernel/cast.h"
#include "kernel/gemm_tile.h"
#include "kernel/types.h"
#include "kernel/window_axis.h"

enum part { PART_X, PART_W, PART_Y };

struct depth_node {
    struct window w;
    enum part result;
};

struct depth_job {
    struct window_fit fit; /* channels: those of the output */
    void *x, *w, *y;       /* x spread to the output's channels */
    char *partial;         /* sums of groups of images but the first */
    enum part result;
    enum dtype dtype;
    atomic_bool failed;
};

/* Vectors that a loop sums up at once in registers: of neighbouring pixels, or
 * of one pixel's channels. */
#define BLOCK  4
#define PIXELS 6
/* Taps of the filter's gradient that are summed up at once. */
#define FILTER_TAPS 3
/* Groups of images that have a sum of their own. */
#define FILTER_GROUPS 8

#define DEPTH(s, T, A, DT, LD, ST)                                             \
    typedef T vec_##s                                                          \
        __attribute__((vector_size(64), aligned(sizeof(T)), may_alias));       \
    /* n vectors, y_step and x_step apart: the sum over taps (at: places in x  \
     * and in w) of x * w. */                                                  \
    static inline __attribute__((always_inline)) void block_##s(               \
        T *y, int64_t y_step, const T *x, int64_t x_step, const T *w,          \
        int64_t w_step, const int64_t *at, int64_t taps, const int n)          \
    {                                                                          \
        vec_##s a[PIXELS] = { { 0 } };                                         \
                                                                               \
        for (int64_t t = 0; t < taps; t++) {                                   \
            const T *p = x + at[2 * t], *q = w + at[2 * t + 1];                \
                                                                               \
            GEMM_EACH (i, n)                                                   \
                a[i] += *(const vec_##s *)(p + i * x_step) *                   \
                        *(const vec_##s *)(q + i * w_step);                    \
        }                                                                      \
        GEMM_EACH (i, n)                                                       \
            *(vec_##s *)(y + i * y_step) = a[i];                               \
    }                                                                          \
    /* One pixel. */                                                           \
    static inline __attribute__((always_inline)) void pixel_##s(               \
        T *y, const T *x, const T *w, const int64_t *at, int64_t taps,         \
        int64_t ch)                                                            \
    {                                                                          \
        enum { N = 64 / (int)sizeof(T) };                                      \
        int64_t c = 0;                                                         \
                                                                               \
        for (; c + BLOCK * N <= ch; c += BLOCK * N)                            \
            block_##s(y + c, N, x + c, N, w + c, N, at, taps, BLOCK);          \
        for (; c + N <= ch; c += N)                                            \
            block_##s(y + c, N, x + c, N, w + c, N, at, taps, 1);              \
    }                                                                          \
    /* n pixels of ch channels. */                                             \
    CLONES_##s static void sum_run_##s(                                        \
        T *y, int64_t y_apart, const T *x, int64_t x_apart, const T *w,        \
        const int64_t *at, int64_t taps, int64_t ch, int64_t n)                \
    {                                                                          \
        enum { N = 64 / (int)sizeof(T) };                                      \
        int64_t i = 0, c;                                                      \
                                                                               \
        for (; i + PIXELS <= n; i += PIXELS)                                   \
            for (c = 0; c + N <= ch; c += N)                                   \
                block_##s(y + i * y_apart + c, y_apart, x + i * x_apart + c,   \
                          x_apart, w + c, 0, at, taps, PIXELS);                \
        for (; i < n; i++)                                                     \
            pixel_##s(y + i * y_apart, x + i * x_apart, w, at, taps, ch);      \
        for (i = 0; i < n && ch % N; i++)                                      \
            for (c = ch / N * N; c < ch; c++) {                                \
                const T *p = x + i * x_apart + c;                              \
                T a = 0;                                                       \
                                                                               \
                for (int64_t t = 0; t < taps; t++)                             \
                    a += p[at[2 * t]] * w[at[2 * t + 1] + c];                  \
                y[i * y_apart + c] = a;                                        \
            }                                                                  \
    }                                                                          \
    /* w += x * y over n pixels, for some taps, x_tap and ch apart, and v      \
     * vectors of channels. */                                                 \
    static inline __attribute__((always_inline)) void filter_block_##s(        \
        T *w, const T *x, const T *y, int64_t n, int64_t x_apart,              \
        int64_t x_tap, int64_t ch, const int taps, const int v)                \
    {                                                                          \
        enum { N = 64 / (int)sizeof(T) };                                      \
        vec_##s a[FILTER_TAPS][BLOCK];                                         \
                                                                               \
        GEMM_EACH (t, taps)                                                    \
            GEMM_EACH (k, v)                                                   \
                a[t][k] = *(vec_##s *)(w + t * ch + k * N);                    \
        for (; n > 0; n--, x += x_apart, y += ch)                              \
            GEMM_EACH (k, v) {                                                 \
                vec_##s q = *(const vec_##s *)(y + k * N);                     \
                                                                               \
                GEMM_EACH (t, taps)                                            \
                    a[t][k] += *(const vec_##s *)(x + t * x_tap + k * N) * q;  \
            }                                                                  \
        GEMM_EACH (t, taps)                                                    \
            GEMM_EACH (k, v)                                                   \
                *(vec_##s *)(w + t * ch + k * N) = a[t][k];                    \
    }                                                                          \
    static inline __attribute__((always_inline)) void filter_taps_##s(         \
        T *w, const T *x, const T *y, int64_t n, int64_t x_apart,              \
        int64_t x_tap, int64_t ch, const int taps)                             \
    {                                                                          \
        enum { N = 64 / (int)sizeof(T) };                                      \
        int64_t c = 0;                                                         \
                                                                               \
        for (; c + BLOCK * N <= ch; c += BLOCK * N)                            \
            filter_block_##s(w + c, x + c, y + c, n, x_apart, x_tap, ch, taps, \
                             BLOCK);                                           \
        for (; c + N <= ch; c += N)                                            \
            filter_block_##s(w + c, x + c, y + c, n, x_apart, x_tap, ch, taps, \
                             1);                                               \
        for (int t = 0; t < taps && c < ch; t++)                               \
            for (int64_t i = 0; i < n; i++)                                    \
                for (int64_t k = c; k < ch; k++)                               \
                    w[t * ch + k] +=                                           \
                        x[i * x_apart + t * x_tap + k] * y[i * ch + k];        \
    }                                                                          \
    CLONES_##s static void filter_run_##s(                                     \
        T *w, const T *x, const T *y, int64_t n, int64_t x_apart,              \
        int64_t x_tap, int64_t ch, int64_t taps)                               \
    {                                                                          \
        for (; taps >= FILTER_TAPS; taps -= FILTER_TAPS) {                     \
            filter_taps_##s(w, x, y, n, x_apart, x_tap, ch, FILTER_TAPS);      \
            w += FILTER_TAPS * ch;                                             \
            x += FILTER_TAPS * x_tap;                                          \
        }                                                                      \
        for (; taps > 0; taps--, w += ch, x += x_tap)                          \
            filter_taps_##s(w, x, y, n, x_apart, x_tap, ch, 1);                \
    }                                                                          \
    static void add_##s(T *to, const T *from, int64_t n)                       \
    {                                                                          \
        for (int64_t i = 0; i < n; i++)                                        \
            to[i] += from[i];                                                  \
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

/* ---- the output, and the gradient of the input ---- */

/* Lines of one walk over all images. at: scratch for places. */
struct depth_walk {
    struct depth_job *j;
    struct window_axis h, w;
    const void *source;
    void *dest;
};

/* Positions [x, x + n) of a line, which have taps [lo, hi) of its own
 * dimension and rows [top, end) of the other: places of the first. */
static int64_t walk_places(const struct depth_walk *k, int64_t line, int64_t x,
                           const int64_t rows[2], const int64_t cols[2],
                           int64_t *at)
{
    const struct window_axis *h = &k->h, *w = &k->w;
    int64_t ch = k->j->fit.channels, taps = 0;
    int64_t top =
        line / h->count * h->source + h->start + line % h->count * h->step;
    int64_t left = w->start + x * w->step;

    for (int64_t r = rows[0]; r < rows[1]; r++)
        for (int64_t c = cols[0]; c < cols[1]; c++, taps++) {
            int64_t tap =
                (h->tap + r * h->tap_step) * w->size + w->tap + c * w->tap_step;

            at[2 * taps] =
                ((top + r * h->off_step) * w->source + left + c * w->off_step) *
                ch;
            at[2 * taps + 1] = tap * ch;
        }
    return taps;
}

static void walk_line(const struct depth_walk *k, int64_t line, int64_t *at)
{
    const struct window_axis *h = &k->h, *w = &k->w;
    int64_t ch = k->j->fit.channels, rows[2], cols[2], n;
    int64_t y =
        ((line / h->count * h->dest + h->out + line % h->count * h->out_step) *
             w->dest +
         w->out) *
        ch;

    window_axis_inside(h, line % h->count, &rows[0], &rows[1]);
    for (int64_t x = 0; x < w->count; x += n) {
        int64_t to = y + x * w->out_step * ch, taps;

        n = MAX(window_axis_whole(w, x), 1);
        window_axis_inside(w, x, &cols[0], &cols[1]);
        taps = walk_places(k, line, x, rows, cols, at);
        if (k->j->dtype == DT_FLOAT)
            sum_run_f32((float *)k->dest + to, w->out_step * ch, k->source,
                        w->step * ch, k->j->w, at, taps, ch, n);
        else
            sum_run_f64((double *)k->dest + to, w->out_step * ch, k->source,
                        w->step * ch, k->j->w, at, taps, ch, n);
    }
}

static void walk_lines(void *arg, int64_t begin, int64_t end)
{
    const struct depth_walk *k = arg;
    struct buffer *b =
        buffer_new((size_t)(k->h.taps * k->w.taps) * 2 * sizeof(int64_t));

    if (!b) {
        atomic_store(&k->j->failed, true);
        return;
    }
    for (int64_t line = begin; line < end; line++)
        walk_line(k, line, (int64_t *)b->data);
    buffer_unref(b);
}

static void walk(const struct op_ctx *c, struct depth_walk *k)
{
    op_for(c, k->j->fit.batch * k->h.count,
           20 + 0.05 * (double)(k->h.taps * k->w.taps) *
                    (double)(k->w.count * k->j->fit.channels),
           walk_lines, k);
}

/* ---- the gradient of the filter ---- */

/* Line oh of image n under row kh of the filter, whose gradient is at `to`. */
static void filter_line(const struct depth_job *j, const struct window_axis *a,
                        char *to, int64_t n, int64_t oh, int64_t kh)
{
    const struct window_dim *h = &j->fit.dim[1];
    int64_t ih = oh * h->stride - h->before + kh * h->dilation;
    int64_t ch = j->fit.channels, run;

    if (ih < 0 || ih >= h->in)
        return;
    for (int64_t o = 0; o < a->count; o += run) {
        int64_t lo, hi, x, y, w;

        run = MAX(window_axis_whole(a, o), 1);
        window_axis_inside(a, o, &lo, &hi);
        y = ((n * h->out + oh) * a->dest + o) * ch;
        x = ((n * h->in + ih) * a->source + a->start + o * a->step +
             lo * a->off_step) *
            ch;
        w = (kh * a->size + lo) * ch;
        if (j->dtype == DT_FLOAT)
            filter_run_f32((float *)to + w, (const float *)j->x + x,
                           (const float *)j->y + y, run, a->step * ch,
                           a->off_step * ch, ch, hi - lo);
        else
            filter_run_f64((double *)to + w, (const double *)j->x + x,
                           (const double *)j->y + y, run, a->step * ch,
                           a->off_step * ch, ch, hi - lo);
    }
}

static int64_t filter_groups(const struct depth_job *j)
{
    return MIN(j->fit.batch, FILTER_GROUPS);
}

/* Elements of a filter. */
static int64_t filter_count(const struct depth_job *j)
{
    return j->fit.dim[1].size * j->fit.dim[2].size * j->fit.channels;
}

static void run_groups(void *arg, int64_t begin, int64_t end)
{
    const struct depth_job *j = arg;
    const struct window_dim *h = &j->fit.dim[1];
    int64_t groups = filter_groups(j), batch = j->fit.batch;
    size_t bytes = (size_t)filter_count(j) * dtype_size(j->dtype);
    struct window_axis a;

    window_axis_forward(&a, &j->fit.dim[2]);
    for (int64_t g = begin; g < end; g++) {
        char *to = g ? j->partial + bytes * (size_t)(g - 1) : j->w;

        memset(to, 0, bytes);
        for (int64_t n = batch * g / groups; n < batch * (g + 1) / groups; n++)
            for (int64_t oh = 0; oh < h->out; oh++)
                for (int64_t kh = 0; kh < h->size; kh++)
                    filter_line(j, &a, to, n, oh, kh);
    }
}

/* The groups depend on the shapes alone, and so does the order of sums. */
static void filter_grad(const struct op_ctx *c, struct depth_job *j)
{
    int64_t groups = filter_groups(j), n = filter_count(j);
    size_t bytes = (size_t)n * dtype_size(j->dtype) * (size_t)(groups - 1);
    struct buffer *b = bytes ? buffer_new(bytes) : NULL;

    if (bytes && !b) {
        atomic_store(&j->failed, true);
        return;
    }
    j->partial = b ? (char *)b->data : NULL;
    op_for(c, groups,
           0.05 * (double)(j->fit.batch * j->fit.dim[1].out) *
               (double)j->fit.dim[2].out * (double)n / (double)groups,
           run_groups, j);
    for (int64_t g = 0; g < groups - 1; g++) {
        if (j->dtype == DT_FLOAT)
            add_f32(j->w, (const float *)j->partial + g * n, n);
        else
            add_f64(j->w, (const double *)j->partial + g * n, n);
    }
    buffer_unref(b);
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
    struct depth_walk k = { .j = j };

    if (j->result == PART_W) {
        filter_grad(c, j);
        return;
    }
    k.source = j->result == PART_X ? j->y : j->x;
    k.dest = j->result == PART_X ? j->x : j->y;
    if (j->result == PART_Y) {
        window_axis_forward(&k.h, h);
        window_axis_forward(&k.w, w);
        walk(c, &k);
        return;
    }
    for (int64_t i = 0; i < MIN(h->stride, h->in); i++)
        for (int64_t n = 0; n < MIN(w->stride, w->in); n++) {
            window_axis_back(&k.h, h, (i + h->before) % h->stride);
            window_axis_back(&k.w, w, (n + w->before) % w->stride);
            walk(c, &k);
        }
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
    bool full;
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
        } else {
            rc = operand(c, i, j.dtype, m, &t[i]);
        }
        *place[i] = t[i].data;
    }
    full = t[0].count && t[1].count && t[2].count;
    if (!rc && !full)
        tensor_zero(&t[s->result]);
    if (!rc && full)
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
