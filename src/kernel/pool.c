/*
 * MaxPool, AvgPool, and MaxPoolWithArgmax, over two and three dimensions.
 * Padding takes part in neither: a mean is of the elements that are there.
 */
#include <string.h>

#include "kernel/pooling.h"
#include "kernel/types.h"

#define TYPES_POOL(X, ...)                                                     \
    TYPES_FLOAT_WIDE(X, ##__VA_ARGS__) TYPES_INT(X, ##__VA_ARGS__)

/* One line of the output at a time. */
struct pooling_job {
    struct pooling_walk walk;
    struct op_ctx *c;
    const void *x;
    void *y, *places;
    enum dtype place_type;
    bool batch_in_index;
    /* scratch: a number for each element, or for each tap. */
    void (*line)(struct pooling_job *j, int64_t line, void *scratch);
    atomic_bool failed;
};

struct span_of {
    void *y;
    const void *x;
    void *best; /* taps, of a whole line */
};

/* Keeps a loop over the lanes of a vector one operation. */
#ifdef __clang__
#define LANES _Pragma("clang loop vectorize(enable)")
#else
#define LANES _Pragma("GCC unroll 1")
#endif

#define POOL(s, T, A, DT, LD, ST)                                              \
    typedef T vec_##s                                                          \
        __attribute__((vector_size(64), aligned(sizeof(T)), may_alias));       \
    /* n pixels of y, and those of x, apart, that at[] counts from. */         \
    CLONES_##s static void max_run_##s(T *y, const T *x, const int64_t *at,    \
                                       int64_t taps, int64_t ch, int64_t n,    \
                                       int64_t apart)                          \
    {                                                                          \
        enum { N = 64 / (int)sizeof(T) };                                      \
                                                                               \
        for (; n > 0; n--, y += ch, x += apart) {                              \
            int64_t c = 0;                                                     \
                                                                               \
            for (; c + N <= ch; c += N) {                                      \
                vec_##s a = *(const vec_##s *)(x + at[0] + c);                 \
                                                                               \
                for (int64_t t = 1; t < taps; t++) {                           \
                    vec_##s b = *(const vec_##s *)(x + at[t] + c), more;       \
                                                                               \
                    LANES for (int i = 0; i < N; i++) more[i] =                \
                        b[i] > a[i] ? b[i] : a[i];                             \
                    a = more;                                                  \
                }                                                              \
                *(vec_##s *)(y + c) = a;                                       \
            }                                                                  \
            for (; c < ch; c++) {                                              \
                T a = x[at[0] + c];                                            \
                                                                               \
                for (int64_t t = 1; t < taps; t++)                             \
                    a = x[at[t] + c] > a ? x[at[t] + c] : a;                   \
                y[c] = a;                                                      \
            }                                                                  \
        }                                                                      \
    }                                                                          \
    static void max_line_##s(struct pooling_job *j, int64_t line, void *at)    \
    {                                                                          \
        const struct window_fit *f = j->walk.fit;                              \
        int64_t ch = f->channels, n;                                           \
        T *y = (T *)j->y + line * f->dim[2].out * ch;                          \
                                                                               \
        for (int64_t i = 0; i < f->dim[2].out; i += n, y += n * ch) {          \
            int64_t taps = pooling_places(f, line, i, at);                     \
                                                                               \
            n = pooling_alike(f, i);                                           \
            if (taps)                                                          \
                max_run_##s(y, j->x, at, taps, ch, n, f->dim[2].stride *ch);   \
            else                                                               \
                for (int64_t c = 0; c < n * ch; c++)                           \
                    y[c] = LEAST_##s;                                          \
        }                                                                      \
    }                                                                          \
    /* The first tap always, then only greater elements. */                    \
    static void arg_span_##s(void *arg, const struct pooling_span *v)          \
    {                                                                          \
        const struct span_of *o = arg;                                         \
        T *restrict y = (T *)o->y + v->y;                                      \
        const T *restrict x = (const T *)o->x + v->x;                          \
        int64_t *restrict best = (int64_t *)o->best + v->line;                 \
                                                                               \
        for (int64_t i = 0; i < v->n; i++) {                                   \
            for (int64_t c = 0; c < v->channels; c++)                          \
                if (best[c] < 0 || x[c] > y[c]) {                              \
                    y[c] = x[c];                                               \
                    best[c] = v->x + i * v->apart + c;                         \
                }                                                              \
            y += v->channels;                                                  \
            x += v->apart;                                                     \
            best += v->channels;                                               \
        }                                                                      \
    }                                                                          \
    static void arg_line_##s(struct pooling_job *j, int64_t line, void *best)  \
    {                                                                          \
        const struct window_fit *f = j->walk.fit;                              \
        int64_t n = f->dim[2].out * f->channels;                               \
        struct span_of o = { j->y, j->x, best };                               \
                                                                               \
        memset(best, 0xff, (size_t)n * sizeof(int64_t));                       \
        pooling_walk(&j->walk, line, arg_span_##s, &o);                        \
    }                                                                          \
    /* The greatest of each `by` channels. */                                  \
    static void max_depth_##s(void *y_, const void *x_, int64_t n, int64_t by) \
    {                                                                          \
        const T *x = x_;                                                       \
        T *y = y_;                                                             \
                                                                               \
        for (int64_t i = 0; i < n; i++) {                                      \
            y[i] = x[i * by];                                                  \
            for (int64_t k = 1; k < by; k++)                                   \
                y[i] = x[i * by + k] > y[i] ? x[i * by + k] : y[i];            \
        }                                                                      \
    }
TYPES_POOL(POOL)

#define SUM(s, T, A, DT, LD, ST)                                               \
    CLONES_##s static void sum_run_##s(T *y, const T *x, const int64_t *at,    \
                                       int64_t taps, int64_t ch, int64_t n,    \
                                       int64_t apart)                          \
    {                                                                          \
        enum { N = 64 / (int)sizeof(T) };                                      \
                                                                               \
        for (; n > 0; n--, y += ch, x += apart) {                              \
            int64_t c = 0;                                                     \
                                                                               \
            for (; c + N <= ch; c += N) {                                      \
                vec_##s a = { 0 };                                             \
                                                                               \
                for (int64_t t = 0; t < taps; t++)                             \
                    a += *(const vec_##s *)(x + at[t] + c);                    \
                *(vec_##s *)(y + c) = a / (T)taps;                             \
            }                                                                  \
            for (; c < ch; c++) {                                              \
                T a = 0;                                                       \
                                                                               \
                for (int64_t t = 0; t < taps; t++)                             \
                    a += x[at[t] + c];                                         \
                y[c] = a / (T)taps;                                            \
            }                                                                  \
        }                                                                      \
    }                                                                          \
    static void sum_line_##s(struct pooling_job *j, int64_t line, void *at)    \
    {                                                                          \
        const struct window_fit *f = j->walk.fit;                              \
        int64_t ch = f->channels, n;                                           \
        T *y = (T *)j->y + line * f->dim[2].out * ch;                          \
                                                                               \
        for (int64_t i = 0; i < f->dim[2].out; i += n, y += n * ch) {          \
            int64_t taps = pooling_places(f, line, i, at);                     \
                                                                               \
            n = pooling_alike(f, i);                                           \
            sum_run_##s(y, j->x, at, taps, ch, n, f->dim[2].stride *ch);       \
        }                                                                      \
    }
TYPES_FLOAT_WIDE(SUM)

/* The places of a line's greatest elements. */
static void store_places(struct pooling_job *j, int64_t line,
                         const int64_t *best)
{
    const struct window_fit *f = j->walk.fit;
    int64_t n = f->dim[2].out * f->channels, image, base;

    image = f->dim[1].in * f->dim[2].in * f->channels;
    base = j->batch_in_index ? 0 : line / f->dim[1].out * image;
    for (int64_t i = 0; i < n; i++) {
        if (j->place_type == DT_INT64)
            ((int64_t *)j->places)[line * n + i] = best[i] - base;
        else
            ((int32_t *)j->places)[line * n + i] = (int32_t)(best[i] - base);
    }
}

static void run_lines(void *arg, int64_t begin, int64_t end)
{
    struct pooling_job *j = arg;
    const struct window_fit *f = j->walk.fit;
    int64_t n = j->places ? f->dim[2].out * f->channels : pooling_places_max(f);
    struct buffer *scratch = buffer_new((size_t)n * sizeof(int64_t));

    if (!scratch) {
        atomic_store(&j->failed, true);
        return;
    }
    for (int64_t i = begin; i < end; i++) {
        j->line(j, i, scratch->data);
        if (j->places)
            store_places(j, i, (const int64_t *)scratch->data);
    }
    buffer_unref(scratch);
}

/* Pooling over channels, which TensorFlow has for whole blocks of them. */
static enum mst_code
run_depth(struct op_ctx *c, const struct window *w, const struct window_fit *f,
          void (*depth)(void *, const void *, int64_t, int64_t))
{
    struct tensor x = { 0 }, y = { 0 };
    struct window last = *w;
    int64_t dims[5];
    enum mst_code rc;

    if (w->size[0] * w->size[1] * w->size[2] != 1 || w->nd == 3)
        return op_fail(c, MST_UNIMPLEMENTED,
                       w->nd == 3
                           ? "Pooling is not yet supported on the depth "
                             "dimension."
                           : "MaxPooling supports exactly one of pooling "
                             "across depth or pooling across "
                             "width/height.");
    if (f->channels % w->channel_size)
        return op_fail(c, MST_UNIMPLEMENTED,
                       "Depthwise max pooling requires the depth window to "
                       "evenly divide the input depth");
    if (w->channel_size != w->channel_stride)
        return op_fail(c, MST_UNIMPLEMENTED,
                       "Depthwise max pooling requires the depth window to "
                       "equal the depth stride");
    rc = pooling_in(c, w, 0, &x);
    if (rc)
        return rc;
    last.channels_first = false;
    window_dims(&last, f, f->channels / w->channel_size, true, dims);
    rc = tensor_new(&y, (enum dtype)x.dtype, 4, dims, c->st);
    if (!rc)
        depth(y.data, x.data, y.count, w->channel_size);
    tensor_unref(&x);
    return rc ? rc : pooling_out(c, w, &y, 0);
}

static enum mst_code
run_pool(struct op_ctx *c, void (*line)(struct pooling_job *, int64_t, void *),
         void (*depth)(void *, const void *, int64_t, int64_t))
{
    const struct pooling_node *p = c->node->state;
    struct tensor x = { 0 }, y = { 0 };
    struct window w, last;
    struct window_fit f;
    struct pooling_job j = { .line = line, .c = c, .walk = { .fit = &f } };
    int64_t dims[5];
    enum mst_code rc = pooling_fit(c, op_in(c, 0), NULL, &w, &f);

    if (rc)
        return rc;
    if (w.channel_size != 1 || w.channel_stride != 1)
        return depth ? run_depth(c, &w, &f, depth)
                     : op_fail(c, MST_UNIMPLEMENTED,
                               "Pooling is not yet supported on the depth "
                               "dimension.");
    last = w;
    last.channels_first = false;
    window_dims(&last, &f, f.channels, false, dims);
    rc = pooling_in(c, &w, 0, &x);
    if (!rc)
        rc = tensor_new(&y, (enum dtype)x.dtype, w.nd + 2, dims, c->st);
    if (!rc && c->node->out_count == 2)
        rc = op_out_new(c, 1, 4, dims);
    if (!rc && y.count) {
        j.x = x.data;
        j.y = y.data;
        j.places = c->node->out_count == 2 ? op_out(c, 1)->data : NULL;
        j.place_type = dtype_base(c->node->out_types[c->node->out_count - 1]);
        j.batch_in_index = p->batch_in_index;
        op_for(c, pooling_lines(&f),
               0.2 * (double)(w.size[0] * w.size[1] * w.size[2]) *
                   (double)(f.dim[2].out * f.channels),
               run_lines, &j);
    }
    tensor_unref(&x);
    if (!rc && atomic_load(&j.failed))
        rc = op_fail(c, MST_RESOURCE_EXHAUSTED, "OOM in pooling");
    if (!rc)
        rc = pooling_out(c, &w, &y, 0);
    tensor_unref(&y);
    return rc;
}

/* With places: TensorFlow takes no empty input there. */
static enum mst_code run_places(struct op_ctx *c,
                                void (*line)(struct pooling_job *, int64_t,
                                             void *))
{
    if (op_in(c, 0)->count == 0)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "tensor_in must not be empty (2)");
    return run_pool(c, line, NULL);
}

#define RUN_MAX(s, T, A, DT, LD, ST)                                           \
    static enum mst_code max_pool_##s(struct op_ctx *c)                        \
    {                                                                          \
        return run_pool(c, max_line_##s, max_depth_##s);                       \
    }                                                                          \
    static enum mst_code max_pool_place_##s(struct op_ctx *c)                  \
    {                                                                          \
        return run_places(c, arg_line_##s);                                    \
    }
TYPES_POOL(RUN_MAX)
#define RUN_SUM(s, T, A, DT, LD, ST)                                           \
    static enum mst_code avg_pool_##s(struct op_ctx *c)                        \
    {                                                                          \
        return run_pool(c, sum_line_##s, NULL);                                \
    }
TYPES_FLOAT_WIDE(RUN_SUM)

/* ---- records ---- */

#define NARROW_ROWS(op) { DT_HALF, op##_f32 }, { DT_BFLOAT16, op##_f32 },

#define MAX_TYPES                                                              \
    "{half, bfloat16, float, double, int32, int64, uint8, int16, int8, "       \
    "uint16, qint8}"
#define WINDOW_ATTRS(nd) "ksize: list(int) >= " nd "; strides: list(int) >= " nd

const struct op_def def_max_pool = {
    .name = "MaxPool",
    .in = "input: T",
    .out = "output: T",
    .attr = "T: " MAX_TYPES " = float; " WINDOW_ATTRS(
        "4") "; "
             "padding: {'SAME', 'VALID', 'EXPLICIT'}; "
             "explicit_paddings: list(int) = []; "
             "data_format: {'NHWC', 'NCHW', 'NCHW_VECT_C'} = 'NHWC'",
    .init = pooling_init,
    .kernel = KERNELS(TYPES_POOL(ROW, max_pool) NARROW_ROWS(max_pool)),
};

const struct op_def def_max_pool_v2 = {
    .name = "MaxPoolV2",
    .in = "input: T, ksize: int32, strides: int32",
    .out = "output: T",
    .attr = "T: " MAX_TYPES " = float; padding: {'SAME', 'VALID'}; "
            "data_format: {'NHWC', 'NCHW', 'NCHW_VECT_C'} = 'NHWC'",
    .init = pooling_init,
    .kernel = KERNELS(TYPES_POOL(ROW, max_pool) NARROW_ROWS(max_pool)),
};

const struct op_def def_max_pool_with_argmax = {
    .name = "MaxPoolWithArgmax",
    .in = "input: T",
    .out = "output: T, argmax: Targmax",
    .attr = WINDOW_ATTRS("4") "; Targmax: {int32, int64} = int64; "
                              "padding: {'SAME', 'VALID'}; "
                              "include_batch_in_index: bool = false; "
                              "T: realnumbertype",
    .init = pooling_init,
    .kernel =
        KERNELS(TYPES_POOL(ROW, max_pool_place) NARROW_ROWS(max_pool_place)),
};

const struct op_def def_max_pool3d = {
    .name = "MaxPool3D",
    .in = "input: T",
    .out = "output: T",
    .attr = WINDOW_ATTRS("5") "; padding: {'SAME', 'VALID'}; "
                              "data_format: {'NDHWC', 'NCDHW'} = 'NDHWC'; "
                              "T: {half, bfloat16, float}",
    .init = pooling_init,
    .kernel = KERNELS({ DT_FLOAT, max_pool_f32 }, NARROW_ROWS(max_pool)),
};

const struct op_def def_avg_pool = {
    .name = "AvgPool",
    .in = "value: T",
    .out = "output: T",
    .attr = WINDOW_ATTRS("4") "; padding: {'SAME', 'VALID'}; "
                              "data_format: {'NHWC', 'NCHW'} = 'NHWC'; "
                              "T: {half, bfloat16, float, double}",
    .init = pooling_init,
    .kernel = KERNELS(TYPES_FLOAT_WIDE(ROW, avg_pool) NARROW_ROWS(avg_pool)),
};

const struct op_def def_avg_pool3d = {
    .name = "AvgPool3D",
    .in = "input: T",
    .out = "output: T",
    .attr = WINDOW_ATTRS("5") "; padding: {'SAME', 'VALID'}; "
                              "data_format: {'NDHWC', 'NCDHW'} = 'NDHWC'; "
                              "T: {half, bfloat16, float, double}",
    .init = pooling_init,
    .kernel = KERNELS(TYPES_FLOAT_WIDE(ROW, avg_pool) NARROW_ROWS(avg_pool)),
};
