/*
 * Gradients of pooling, and the gradients of those.
 *
 * MaxPoolGrad gives each gradient to the first greatest element of its window,
 * which it finds again; MaxPool3DGrad to all elements equal to the output, as
 * TensorFlow's do. Lines of the output are worked on in parallel when their
 * windows do not overlap, else images are.
 */
#include <string.h>

#include "kernel/pooling.h"
#include "kernel/types.h"

#define TYPES_POOL(X, ...)                                                     \
    TYPES_FLOAT_WIDE(X, ##__VA_ARGS__) TYPES_INT(X, ##__VA_ARGS__)

/* x: the pooling's input, y: its output, dy, dx. Which are read and which
 * written depends on the op. */
struct grad_job {
    struct pooling_walk walk;
    const void *x, *y;
    void *dy, *dx;
    void (*line)(const struct grad_job *j, int64_t line, void *scratch);
    size_t scratch; /* bytes a line needs */
    int64_t lines;  /* of one unit of work */
    atomic_bool failed;
};

/* Where the taps are behind n values. */
#define TAPS_AT(n, T) (((size_t)(n) * sizeof(T) + 7) & ~(size_t)7)

/* A line's scratch: the best value of each element, and its tap. */
struct grad_line {
    const struct grad_job *j;
    void *best, *tap;
};

/* I: a signed type as wide as T. */
#define GRAD(s, T, A, DT, LD, ST)                                              \
    CLONES_##s static void find_##s(void *arg, const struct pooling_span *v)   \
    {                                                                          \
        const struct grad_line *l = arg;                                       \
        const T *restrict x = (const T *)l->j->x + v->x;                       \
        T *restrict best = (T *)l->best + v->line;                             \
        int32_t *restrict tap = (int32_t *)l->tap + v->line, t;                \
                                                                               \
        t = (int32_t)v->tap;                                                   \
        for (int64_t i = 0; i < v->n; i++) {                                   \
            for (int64_t c = 0; c < v->channels; c++) {                        \
                bool more = (x[c] > best[c]) | (tap[c] < 0);                   \
                                                                               \
                best[c] = more ? x[c] : best[c];                               \
                tap[c] = more ? t : tap[c];                                    \
            }                                                                  \
            x += v->apart;                                                     \
            best += v->channels;                                               \
            tap += v->channels;                                                \
        }                                                                      \
    }                                                                          \
    CLONES_##s static void give_##s(void *arg, const struct pooling_span *v)   \
    {                                                                          \
        const struct grad_line *l = arg;                                       \
        const T *restrict dy = (const T *)l->j->dy + v->y;                     \
        const int32_t *restrict tap = (const int32_t *)l->tap + v->line;       \
        T *restrict dx = (T *)l->j->dx + v->x;                                 \
        int32_t t = (int32_t)v->tap;                                           \
                                                                               \
        for (int64_t i = 0; i < v->n; i++) {                                   \
            for (int64_t c = 0; c < v->channels; c++)                          \
                dx[c] = (T)(dx[c] + (tap[c] == t ? dy[c] : 0));                \
            dy += v->channels;                                                 \
            tap += v->channels;                                                \
            dx += v->apart;                                                    \
        }                                                                      \
    }                                                                          \
    static void max_line_##s(const struct grad_job *j, int64_t line,           \
                             void *scratch)                                    \
    {                                                                          \
        int64_t n = j->walk.fit->dim[2].out * j->walk.fit->channels;           \
        struct grad_line l = { j, scratch, (char *)scratch + TAPS_AT(n, T) };  \
                                                                               \
        memset(l.tap, 0xff, (size_t)n * sizeof(int32_t));                      \
        memset(l.best, 0, (size_t)n * sizeof(T));                              \
        pooling_walk(&j->walk, line, find_##s, &l);                            \
        pooling_walk(&j->walk, line, give_##s, &l);                            \
    }                                                                          \
    /* dy of the first element that is the greatest: taps come backwards. */   \
    CLONES_##s static void second_##s(void *arg, const struct pooling_span *v) \
    {                                                                          \
        const struct grad_job *j = arg;                                        \
        const T *restrict x = (const T *)j->x + v->x;                          \
        const T *restrict y = (const T *)j->y + v->y;                          \
        const T *restrict dx = (const T *)j->dx + v->x;                        \
        T *restrict dy = (T *)j->dy + v->y;                                    \
                                                                               \
        for (int64_t i = 0; i < v->n; i++) {                                   \
            for (int64_t c = 0; c < v->channels; c++)                          \
                dy[c] = x[c] == y[c] ? dx[c] : dy[c];                          \
            x += v->apart;                                                     \
            dx += v->apart;                                                    \
            y += v->channels;                                                  \
            dy += v->channels;                                                 \
        }                                                                      \
    }                                                                          \
    static void second_line_##s(const struct grad_job *j, int64_t line,        \
                                void *scratch)                                 \
    {                                                                          \
        pooling_walk(&j->walk, line, second_##s, (void *)j);                   \
    }
TYPES_POOL(GRAD)

#define GRAD_ALL(s, T, A, DT, LD, ST)                                          \
    CLONES_##s static void equal_##s(void *arg, const struct pooling_span *v)  \
    {                                                                          \
        const struct grad_job *j = arg;                                        \
        const T *restrict x = (const T *)j->x + v->x;                          \
        const T *restrict y = (const T *)j->y + v->y;                          \
        const T *restrict dy = (const T *)j->dy + v->y;                        \
        T *restrict dx = (T *)j->dx + v->x;                                    \
                                                                               \
        for (int64_t i = 0; i < v->n; i++) {                                   \
            for (int64_t c = 0; c < v->channels; c++)                          \
                dx[c] += x[c] == y[c] ? dy[c] : 0;                             \
            x += v->apart;                                                     \
            dx += v->apart;                                                    \
            y += v->channels;                                                  \
            dy += v->channels;                                                 \
        }                                                                      \
    }                                                                          \
    static void equal_line_##s(const struct grad_job *j, int64_t line,         \
                               void *scratch)                                  \
    {                                                                          \
        pooling_walk(&j->walk, line, equal_##s, (void *)j);                    \
    }
TYPES_FLOAT32(GRAD_ALL)

/* A share of the gradient for each element of the window. */
#define GRAD_SHARE(s, T, A, DT, LD, ST)                                        \
    CLONES_##s static void share_##s(void *arg, const struct pooling_span *v)  \
    {                                                                          \
        const struct grad_line *l = arg;                                       \
        const T *restrict share = (const T *)l->best + v->line;                \
        T *restrict dx = (T *)l->j->dx + v->x;                                 \
                                                                               \
        for (int64_t i = 0; i < v->n; i++) {                                   \
            for (int64_t c = 0; c < v->channels; c++)                          \
                dx[c] += share[c];                                             \
            share += v->channels;                                              \
            dx += v->apart;                                                    \
        }                                                                      \
    }                                                                          \
    CLONES_##s static void divide_##s(T *out, const T *in, T by, int64_t n)    \
    {                                                                          \
        for (int64_t i = 0; i < n; i++)                                        \
            out[i] = in[i] / by;                                               \
    }                                                                          \
    static void avg_line_##s(const struct grad_job *j, int64_t line,           \
                             void *scratch)                                    \
    {                                                                          \
        int64_t ch = j->walk.fit->channels, n = j->walk.fit->dim[2].out;       \
        struct grad_line l = { .j = j, .best = scratch };                      \
        const T *dy = (const T *)j->dy + line * n * ch;                        \
                                                                               \
        for (int64_t i = 0; i < n; i++)                                        \
            divide_##s((T *)scratch + i * ch, dy + i * ch,                     \
                       (T)pooling_covered(j->walk.fit, line, i), ch);          \
        pooling_walk(&j->walk, line, share_##s, &l);                           \
    }
TYPES_FLOAT_WIDE(GRAD_SHARE)

static void run_units(void *arg, int64_t begin, int64_t end)
{
    struct grad_job *j = arg;
    struct buffer *scratch = buffer_new(j->scratch);

    if (!scratch) {
        atomic_store(&j->failed, true);
        return;
    }
    for (int64_t i = begin * j->lines; i < end * j->lines; i++)
        j->line(j, i, scratch->data);
    buffer_unref(scratch);
}

static void go(struct op_ctx *c, struct grad_job *j, size_t size, bool reads)
{
    const struct window_fit *f = j->walk.fit;
    const struct window_dim *d = f->dim;
    bool apart =
        reads || (d[0].stride >= d[0].size && d[1].stride >= d[1].size);
    int64_t line = d[2].out * f->channels;
    double taps = (double)MIN(d[0].size, d[0].in) *
                  (double)MIN(d[1].size, d[1].in) *
                  (double)MIN(d[2].size, d[2].in);

    j->lines = apart ? 1 : d[0].out * d[1].out;
    j->scratch = (size_t)line * (size + sizeof(int32_t)) + 8;
    op_for(c, pooling_lines(f) / j->lines,
           0.5 * taps * (double)(line * j->lines), run_units, j);
}

/* ---- gradients of the greatest ---- */

static enum mst_code check_shape(struct op_ctx *c, const struct tensor *t,
                                 const struct window *w, const int64_t *want,
                                 const char *what)
{
    char a[SHAPE_TEXT_MAX], b[SHAPE_TEXT_MAX];

    if (t->ndim == w->nd + 2 &&
        !memcmp(t->dims, want, (size_t)t->ndim * sizeof(*want)))
        return MST_OK;
    return op_fail(c, MST_INVALID_ARGUMENT,
                   "Expected %s shape to be %s, but got %s", what,
                   shape_text(w->nd + 2, want, a), tensor_shape_text(t, b));
}

/* Ranks, the window, and the shapes of orig_output and grad. */
static enum mst_code check_grad(struct op_ctx *c, bool second, struct window *w,
                                struct window_fit *f)
{
    int64_t dims[5];
    enum mst_code rc = pooling_fit(c, op_in(c, 0), NULL, w, f);

    if (rc)
        return rc;
    if (w->channel_size != 1 || w->channel_stride != 1)
        return op_fail(c, MST_UNIMPLEMENTED,
                       w->nd == 3 ? "Pooling is not yet supported on the depth "
                                    "dimension."
                       : second ? "MaxPoolingGradGrad is not yet supported on "
                                  "the depth dimension."
                                : "MaxPoolingGrad is not yet supported on the "
                                  "depth dimension.");
    for (int i = 1; i < 3; i++)
        if (op_in(c, i)->ndim != w->nd + 2)
            return op_fail(c, MST_INVALID_ARGUMENT, "%s must be %d-dimensional",
                           i == 1   ? "tensor_out"
                           : second ? "out_grad_backprop"
                                    : "out_backprop",
                           w->nd + 2);
    for (int i = 0; i < 3 && second && w->nd == 3; i++)
        if (op_in(c, i)->count == 0)
            return op_fail(c, MST_INVALID_ARGUMENT, "received empty tensor %s",
                           i == 0   ? "tensor_in"
                           : i == 1 ? "tensor_out"
                                    : "out_grad_backprop");
    window_dims(w, f, f->channels, false, dims);
    rc = check_shape(c, op_in(c, 1), w, dims, "orig_output");
    if (!rc)
        rc = check_shape(c, op_in(c, 2), w, second ? op_in(c, 0)->dims : dims,
                         "grad");
    return rc;
}

static enum mst_code max_grad(struct op_ctx *c, bool second,
                              void (*line)(const struct grad_job *, int64_t,
                                           void *))
{
    struct tensor in[3] = { { 0 } }, out = { 0 };
    struct window w;
    struct window_fit f;
    struct grad_job j = { .line = line,
                          .walk = { .fit = &f, .backwards = second } };
    enum mst_code rc = check_grad(c, second, &w, &f);

    for (int i = 0; i < 3 && !rc; i++)
        rc = pooling_in(c, &w, i, &in[i]);
    if (!rc)
        rc = tensor_new_like(&out, (enum dtype)in[2].dtype, &in[second ? 1 : 0],
                             c->st);
    if (!rc) {
        tensor_zero(&out);
        j.x = in[0].data;
        j.y = in[1].data;
        j.dy = second ? out.data : in[2].data;
        j.dx = second ? in[2].data : out.data;
        if (in[0].count && in[1].count)
            go(c, &j, dtype_size((enum dtype)out.dtype), second);
        if (atomic_load(&j.failed))
            rc = op_fail(c, MST_RESOURCE_EXHAUSTED, "OOM in pooling");
    }
    for (int i = 0; i < 3; i++)
        tensor_unref(&in[i]);
    if (!rc)
        rc = pooling_out(c, &w, &out, 0);
    tensor_unref(&out);
    return rc;
}

#define RUN_GRAD(s, T, A, DT, LD, ST)                                          \
    static enum mst_code max_pool_grad_##s(struct op_ctx *c)                   \
    {                                                                          \
        return max_grad(c, false, max_line_##s);                               \
    }                                                                          \
    static enum mst_code max_pool_second_##s(struct op_ctx *c)                 \
    {                                                                          \
        return max_grad(c, true, second_line_##s);                             \
    }
TYPES_POOL(RUN_GRAD)

static enum mst_code max_pool3d_grad(struct op_ctx *c)
{
    if (c->node->in_types[0] != c->node->in_types[2])
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "MaxPool3DGrad needs inputs and gradients of one type");
    return max_grad(c, false, equal_line_f32);
}

/* ---- the gradient of the mean ---- */

static enum mst_code avg_dims(struct op_ctx *c, int nd, int64_t *ret)
{
    const struct tensor *t = op_in(c, 0);

    if (t->ndim != 1 || t->count != nd + 2)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "out_backprop or input shape must be %d-dimensional and "
                       "%d elements",
                       1, nd + 2);
    for (int i = 0; i < nd + 2; i++) {
        ret[i] = tensor_int(t, i);
        if (ret[i] < 0)
            return op_fail(c, MST_INVALID_ARGUMENT,
                           "Dimension %lld must be >= 0", (long long)ret[i]);
    }
    if (op_in(c, 1)->ndim != nd + 2)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "out_backprop must be %d-dimensional", nd + 2);
    if (!shape_count(nd + 2, ret, 8, &(int64_t){ 0 }))
        return op_fail(c, MST_INVALID_ARGUMENT, "Input shape is too large");
    return MST_OK;
}

static enum mst_code avg_grad(struct op_ctx *c,
                              void (*line)(const struct grad_job *, int64_t,
                                           void *))
{
    const struct pooling_node *p = c->node->state;
    struct tensor dy = { 0 }, dx = { 0 };
    struct window w, last;
    struct window_fit f;
    struct grad_job j = { .line = line, .walk = { .fit = &f } };
    int64_t dims[5], want[5];
    enum mst_code rc = avg_dims(c, p->w.nd, dims);

    if (!rc)
        rc = pooling_fit(c, NULL, dims, &w, &f);
    if (rc)
        return rc;
    if (w.channel_size != 1 || w.channel_stride != 1)
        return op_fail(c, MST_UNIMPLEMENTED,
                       "Pooling is not yet supported on the depth dimension.");
    window_dims(&w, &f, f.channels, false, want);
    rc = check_shape(c, op_in(c, 1), &w, want, "grad");
    if (!rc)
        rc = pooling_in(c, &w, 1, &dy);
    last = w;
    last.channels_first = false;
    window_dims(&last, &f, f.channels, true, dims);
    if (!rc)
        rc = tensor_new(&dx, (enum dtype)dy.dtype, w.nd + 2, dims, c->st);
    if (!rc) {
        tensor_zero(&dx);
        j.dy = dy.data;
        j.dx = dx.data;
        if (dx.count && dy.count)
            go(c, &j, dtype_size((enum dtype)dx.dtype), false);
        if (atomic_load(&j.failed))
            rc = op_fail(c, MST_RESOURCE_EXHAUSTED, "OOM in pooling");
    }
    tensor_unref(&dy);
    if (!rc)
        rc = pooling_out(c, &w, &dx, 0);
    tensor_unref(&dx);
    return rc;
}

#define RUN_AVG(s, T, A, DT, LD, ST)                                           \
    static enum mst_code avg_pool_grad_##s(struct op_ctx *c)                   \
    {                                                                          \
        return avg_grad(c, avg_line_##s);                                      \
    }
TYPES_FLOAT_WIDE(RUN_AVG)

/* ---- with the places that MaxPoolWithArgmax gave ---- */

#define GIVE_PLACES(s, T, A, DT, LD, ST)                                       \
    static enum mst_code max_pool_places_##s(struct op_ctx *c)                 \
    {                                                                          \
        const struct pooling_node *p = c->node->state;                         \
        const struct tensor *dy = op_in(c, 1), *places = op_in(c, 2);          \
        const T *in = dy->data;                                                \
        int64_t each, image;                                                   \
        enum mst_code rc;                                                      \
        T *out;                                                                \
                                                                               \
        if (dy->count != places->count)                                        \
            return op_fail(c, MST_INVALID_ARGUMENT,                            \
                           "Expected argmax to have as many elements as "      \
                           "grad");                                            \
        rc = op_out_like(c, 0, op_in(c, 0));                                   \
        if (rc)                                                                \
            return rc;                                                         \
        tensor_zero(op_out(c, 0));                                             \
        if (!op_in(c, 0)->count || op_in(c, 0)->ndim != 4)                     \
            return MST_OK;                                                     \
        out = op_out(c, 0)->data;                                              \
        image = op_in(c, 0)->count / op_in(c, 0)->dims[0];                     \
        each = dy->count / op_in(c, 0)->dims[0];                               \
        for (int64_t i = 0; i < dy->count; i++) {                              \
            int64_t at = TENSOR_DATA(places, int64_t)[i];                      \
                                                                               \
            if (at >= 0 && !p->batch_in_index && each)                         \
                at += i / each * image;                                        \
            if (at < 0 || at >= op_out(c, 0)->count)                           \
                return op_fail(c, MST_INVALID_ARGUMENT,                        \
                               "Invalid output gradient index: %lld",          \
                               (long long)at);                                 \
            out[at] = (T)ST((A)(LD(out[at]) + LD(in[i])));                     \
        }                                                                      \
        return MST_OK;                                                         \
    }
TYPES_REAL(GIVE_PLACES)

/* ---- records ---- */

#define NARROW_ROWS(op) { DT_HALF, op##_f32 }, { DT_BFLOAT16, op##_f32 },
#define WINDOW_ATTRS(nd)                                                       \
    "ksize: list(int) >= " nd "; strides: list(int) >= " nd "; "
#define PADDING "padding: {'SAME', 'VALID'}; "
#define FORMAT2 "data_format: {'NHWC', 'NCHW'} = 'NHWC'; "
#define FORMAT3 "data_format: {'NDHWC', 'NCDHW'} = 'NDHWC'; "
#define GRAD_IN "orig_input: T, orig_output: T, grad: T"

#define POOL_DEF(stem, NAME, IN, ATTR, ...)                                    \
    const struct op_def def_##stem = {                                         \
        .name = NAME,                                                          \
        .in = IN,                                                              \
        .out = "output: T",                                                    \
        .attr = ATTR,                                                          \
        .init = pooling_init,                                                  \
        .kernel = KERNELS(__VA_ARGS__),                                        \
    }

POOL_DEF(max_pool_grad, "MaxPoolGrad", GRAD_IN,
         WINDOW_ATTRS("4") "padding: {'SAME', 'VALID', 'EXPLICIT'}; "
                           "explicit_paddings: list(int) = []; " FORMAT2
                           "T: realnumbertype = float",
         TYPES_POOL(ROW, max_pool_grad) NARROW_ROWS(max_pool_grad));
POOL_DEF(max_pool_grad_v2, "MaxPoolGradV2",
         GRAD_IN ", ksize: int32, strides: int32",
         PADDING FORMAT2 "T: realnumbertype = float",
         TYPES_POOL(ROW, max_pool_grad) NARROW_ROWS(max_pool_grad));
POOL_DEF(max_pool_grad_grad, "MaxPoolGradGrad", GRAD_IN,
         WINDOW_ATTRS("4") PADDING FORMAT2 "T: realnumbertype",
         TYPES_POOL(ROW, max_pool_second) NARROW_ROWS(max_pool_second));
POOL_DEF(max_pool_grad_grad_v2, "MaxPoolGradGradV2",
         GRAD_IN ", ksize: int32, strides: int32",
         PADDING FORMAT2 "T: realnumbertype",
         TYPES_POOL(ROW, max_pool_second) NARROW_ROWS(max_pool_second));
POOL_DEF(max_pool3d_grad, "MaxPool3DGrad",
         "orig_input: TInput, orig_output: TInput, grad: T",
         WINDOW_ATTRS("5") PADDING FORMAT3
         "T: {half, bfloat16, float} = float; "
         "TInput: {half, bfloat16, float} = float",
         { DT_FLOAT, max_pool3d_grad }, { DT_BFLOAT16, max_pool3d_grad },
         { DT_HALF, max_pool3d_grad }, );
POOL_DEF(max_pool3d_grad_grad, "MaxPool3DGradGrad", GRAD_IN,
         WINDOW_ATTRS("5") PADDING FORMAT3 "T: realnumbertype",
         { DT_FLOAT, max_pool_second_f32 }, NARROW_ROWS(max_pool_second));
POOL_DEF(max_pool_grad_with_argmax, "MaxPoolGradWithArgmax",
         "input: T, grad: T, argmax: Targmax",
         WINDOW_ATTRS("4") PADDING "include_batch_in_index: bool = false; "
                                   "Targmax: {int64}; T: realnumbertype",
         TYPES_REAL(ROW, max_pool_places));
POOL_DEF(avg_pool_grad, "AvgPoolGrad", "orig_input_shape: int32, grad: T",
         WINDOW_ATTRS("4") PADDING FORMAT2 "T: {half, bfloat16, float, double}",
         TYPES_FLOAT_WIDE(ROW, avg_pool_grad) NARROW_ROWS(avg_pool_grad));
POOL_DEF(avg_pool3d_grad, "AvgPool3DGrad", "orig_input_shape: int32, grad: T",
         WINDOW_ATTRS("5") PADDING FORMAT3 "T: {half, bfloat16, float, double}",
         TYPES_FLOAT_WIDE(ROW, avg_pool_grad) NARROW_ROWS(avg_pool_grad));
