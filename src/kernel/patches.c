/*
 * Windows cut out of images and volumes, and grey-scale morphology on them:
 * ExtractImagePatches, ExtractVolumePatches, Dilation2D and its gradients.
 */
#include <string.h>

#include "kernel/types.h"
#include "kernel/window.h"

/* The window's lists, which these ops name in their own way. */
static enum mst_code read_list(struct op_node *n, int nd, const char *attr,
                               int64_t *ret, struct status *st)
{
    const struct attr *a = op_attr(n, attr);

    ret[0] = ret[1] = ret[2] = 1;
    if (!a)
        return MST_OK;
    if (a->count != nd + 2)
        return status_set(st, MST_INVALID_ARGUMENT,
                          "Sliding window %s field must specify %d dimensions",
                          attr, nd + 2);
    if (a->value[0].i != 1 || a->value[nd + 1].i != 1)
        return status_set(st, MST_UNIMPLEMENTED,
                          "Only support %s across space.", attr);
    for (int i = 0; i < nd; i++) {
        int64_t v = a->value[1 + i].i;

        if (v < 1 || v > INT32_MAX)
            return status_set(st, MST_OUT_OF_RANGE,
                              "Sliding window %s must be positive", attr);
        ret[3 - nd + i] = v;
    }
    return MST_OK;
}

static enum mst_code patch_init(struct op_node *n, struct status *st)
{
    struct window *w = ARENA_NEW(n->arena, struct window);
    int nd = strstr(n->def->name, "Volume") ? 3 : 2;
    enum mst_code rc = read_list(n, nd, "ksizes", w->size, st);

    w->nd = nd;
    w->padding =
        op_attr_str(n, "padding").data[0] == 'S' ? WINDOW_SAME : WINDOW_VALID;
    if (!rc)
        rc = read_list(n, nd, "strides", w->stride, st);
    if (!rc)
        rc = read_list(n, nd, "rates", w->dilation, st);
    n->state = w;
    return rc;
}

/* ---- patches ---- */

struct patch_job {
    const struct window_fit *f;
    const char *in;
    char *out;
    size_t pixel;
};

/* One position of the output: the pixels under the window, one by one. */
static void patch(const struct patch_job *j, int64_t at)
{
    const struct window_dim *d = j->f->dim;
    int64_t o[3], rest = at, n;
    int64_t taps = d[0].size * d[1].size * d[2].size;
    char *out = j->out + (size_t)(at * taps) * j->pixel;

    for (int i = 2; i >= 0; i--) {
        o[i] = rest % d[i].out;
        rest /= d[i].out;
    }
    n = rest;
    for (int64_t t = 0; t < taps; t++, out += j->pixel) {
        int64_t k[3] = { t / d[2].size / d[1].size, t / d[2].size % d[1].size,
                         t % d[2].size };
        int64_t from = n;
        bool inside = true;

        for (int i = 0; i < 3; i++) {
            int64_t x = o[i] * d[i].stride - d[i].before + k[i] * d[i].dilation;

            inside = inside && x >= 0 && x < d[i].in;
            from = from * d[i].in + x;
        }
        if (inside)
            memcpy(out, j->in + (size_t)from * j->pixel, j->pixel);
        else
            memset(out, 0, j->pixel);
    }
}

static void patches(void *arg, int64_t begin, int64_t end)
{
    for (int64_t i = begin; i < end; i++)
        patch(arg, i);
}

static enum mst_code extract(struct op_ctx *c)
{
    const struct window *w = c->node->state;
    const struct tensor *in = op_in(c, 0);
    struct patch_job j = { .in = in->data };
    struct window_fit f;
    int64_t dims[5], taps, channels;
    char text[SHAPE_TEXT_MAX];
    enum mst_code rc;

    if (in->ndim != w->nd + 2)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "input must be %d-dimensional%s", w->nd + 2,
                       tensor_shape_text(in, text));
    rc = window_fit(c, w, in->dims, &f);
    if (rc)
        return rc;
    if (__builtin_mul_overflow(w->size[0] * w->size[1], w->size[2], &taps) ||
        __builtin_mul_overflow(taps, f.channels, &channels))
        return op_fail(c, MST_INVALID_ARGUMENT, "ksizes is too large");
    window_dims(w, &f, channels, false, dims);
    rc = op_out_new(c, 0, w->nd + 2, dims);
    if (rc || !op_out(c, 0)->count)
        return rc;
    j.f = &f;
    j.out = op_out(c, 0)->data;
    j.pixel = (size_t)f.channels * dtype_size((enum dtype)in->dtype);
    op_for(c, op_out(c, 0)->count / channels,
           (double)taps * (10 + 0.05 * (double)j.pixel), patches, &j);
    return MST_OK;
}

const struct op_def def_extract_image_patches = {
    .name = "ExtractImagePatches",
    .in = "images: T",
    .out = "patches: T",
    .attr = "ksizes: list(int) >= 4; strides: list(int) >= 4; "
            "rates: list(int) >= 4; T: {bfloat16, half, float, double, int8, "
            "int16, int32, int64, uint8, uint16, uint32, uint64, complex64, "
            "complex128, bool}; padding: {'SAME', 'VALID'}",
    .init = patch_init,
    .kernel = KERNELS({ DT_ANY, extract }, ),
};

const struct op_def def_extract_volume_patches = {
    .name = "ExtractVolumePatches",
    .in = "input: T",
    .out = "patches: T",
    .attr = "ksizes: list(int) >= 5; strides: list(int) >= 5; "
            "T: realnumbertype; padding: {'SAME', 'VALID'}",
    .init = patch_init,
    .kernel = KERNELS({ DT_ANY, extract }, ),
};

/* ---- Dilation2D ---- */

enum dilation { DILATION, DILATION_INPUT, DILATION_FILTER };

static enum mst_code dilation_fit(struct op_ctx *c, struct window_fit *f)
{
    struct window w = *(const struct window *)c->node->state;
    const struct tensor *in = op_in(c, 0), *filter = op_in(c, 1);
    char text[SHAPE_TEXT_MAX];
    int64_t dims[4];
    enum mst_code rc;

    if (in->ndim != 4)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "input must be 4-dimensional: %s",
                       tensor_shape_text(in, text));
    if (filter->ndim != 3)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "filter must be 3-dimensional: %s",
                       tensor_shape_text(filter, text));
    if (in->dims[3] != filter->dims[2])
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "input and filter must have the same depth");
    w.size[1] = filter->dims[0];
    w.size[2] = filter->dims[1];
    rc = window_fit(c, &w, in->dims, f);
    if (rc || c->node->in_count == 2)
        return rc;
    window_dims(&w, f, f->channels, false, dims);
    if (op_in(c, 2)->ndim != 4 || memcmp(dims, op_in(c, 2)->dims, sizeof(dims)))
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "out_backprop has incompatible size.");
    return MST_OK;
}

/* Where the greatest sum of a position is; the first tap if there is none. */
#define DILATION(s, T, A, DT, LD, ST)                                          \
    static void dilate_##s(struct op_ctx *c, const struct window_fit *f,       \
                           enum dilation what, int64_t at, int64_t ch)         \
    {                                                                          \
        const struct window_dim *h = &f->dim[1], *w = &f->dim[2];              \
        const T *in = op_in(c, 0)->data, *filter = op_in(c, 1)->data;          \
        int64_t ow = at % w->out, oh = at / w->out % h->out;                   \
        int64_t n = at / w->out / h->out;                                      \
        int64_t y0 = oh * h->stride - h->before;                               \
        int64_t x0 = ow * w->stride - w->before;                               \
        int64_t best_in = (n * h->in + MAX(y0, 0)) * w->in + MAX(x0, 0);       \
        int64_t best_tap = 0;                                                  \
        T *out = op_out(c, 0)->data;                                           \
        A best = LOWEST_##s;                                                   \
                                                                               \
        for (int64_t t = 0; t < h->size * w->size; t++) {                      \
            int64_t y = y0 + t / w->size * h->dilation;                        \
            int64_t x = x0 + t % w->size * w->dilation, from;                  \
            A v;                                                               \
                                                                               \
            if (y < 0 || y >= h->in || x < 0 || x >= w->in)                    \
                continue;                                                      \
            from = (n * h->in + y) * w->in + x;                                \
            v = (A)LD((T)ST((A)(WRAP_##s(LD(in[from * f->channels + ch])) +    \
                                LD(filter[t * f->channels + ch]))));           \
            if (v > best) {                                                    \
                best = v;                                                      \
                best_in = from;                                                \
                best_tap = t;                                                  \
            }                                                                  \
        }                                                                      \
        if (what == DILATION) {                                                \
            out[at * f->channels + ch] = (T)ST(best);                          \
        } else {                                                               \
            int64_t to = what == DILATION_INPUT ? best_in : best_tap;          \
            T *o = &out[to * f->channels + ch];                                \
            T g = TENSOR_DATA(op_in(c, 2), T)[at * f->channels + ch];          \
                                                                               \
            *o = (T)ST((A)(WRAP_##s(LD(*o)) + LD(g)));                         \
        }                                                                      \
    }                                                                          \
    static enum mst_code dilation_run_##s(struct op_ctx *c,                    \
                                          enum dilation what)                  \
    {                                                                          \
        struct window_fit f;                                                   \
        int64_t dims[4];                                                       \
        enum mst_code rc = dilation_fit(c, &f);                                \
                                                                               \
        if (rc)                                                                \
            return rc;                                                         \
        window_dims(c->node->state, &f, f.channels, false, dims);              \
        rc = what == DILATION ? op_out_new(c, 0, 4, dims)                      \
                              : op_out_like(c, 0, op_in(c, what - 1));         \
        if (rc)                                                                \
            return rc;                                                         \
        tensor_zero(op_out(c, 0));                                             \
        if (!op_in(c, 0)->count || !op_in(c, 1)->count)                        \
            return MST_OK;                                                     \
        for (int64_t i = 0; i < dims[0] * dims[1] * dims[2]; i++)              \
            for (int64_t ch = 0; ch < f.channels; ch++)                        \
                dilate_##s(c, &f, what, i, ch);                                \
        return MST_OK;                                                         \
    }                                                                          \
    static enum mst_code dilation_##s(struct op_ctx *c)                        \
    {                                                                          \
        return dilation_run_##s(c, DILATION);                                  \
    }                                                                          \
    static enum mst_code dilation_input_##s(struct op_ctx *c)                  \
    {                                                                          \
        return dilation_run_##s(c, DILATION_INPUT);                            \
    }                                                                          \
    static enum mst_code dilation_filter_##s(struct op_ctx *c)                 \
    {                                                                          \
        return dilation_run_##s(c, DILATION_FILTER);                           \
    }

/* Sums of whole numbers wrap. */
#define WRAP_f32
#define WRAP_f64
#define WRAP_f16
#define WRAP_bf16
#define WRAP_i8  (uint64_t)
#define WRAP_i16 (uint64_t)
#define WRAP_i32 (uint64_t)
#define WRAP_i64 (uint64_t)
#define WRAP_u8  (uint64_t)
#define WRAP_u16 (uint64_t)
#define WRAP_u32 (uint64_t)
#define WRAP_u64 (uint64_t)
/* TensorFlow begins with the lowest number that is one. */
#define LOWEST_f32  -3.402823466e+38f
#define LOWEST_f64  -1.7976931348623157e+308
#define LOWEST_f16  -65504.0f
#define LOWEST_bf16 -3.3895313892515355e38f
#define LOWEST_i8   LEAST_i8
#define LOWEST_i16  LEAST_i16
#define LOWEST_i32  LEAST_i32
#define LOWEST_i64  LEAST_i64
#define LOWEST_u8   0
#define LOWEST_u16  0
#define LOWEST_u32  0
#define LOWEST_u64  0

TYPES_REAL(DILATION)

#define DILATION_DEF(stem, NAME, IN, OUT, FN)                                  \
    const struct op_def def_##stem = {                                         \
        .name = NAME,                                                          \
        .in = IN,                                                              \
        .out = OUT ": T",                                                      \
        .attr = "T: realnumbertype; strides: list(int) >= 4; "                 \
                "rates: list(int) >= 4; padding: {'SAME', 'VALID'}",           \
        .init = patch_init,                                                    \
        .kernel = KERNELS(TYPES_REAL(ROW, FN)),                                \
    }
DILATION_DEF(dilation2d, "Dilation2D", "input: T, filter: T", "output",
             dilation);
DILATION_DEF(dilation2d_backprop_input, "Dilation2DBackpropInput",
             "input: T, filter: T, out_backprop: T", "in_backprop",
             dilation_input);
DILATION_DEF(dilation2d_backprop_filter, "Dilation2DBackpropFilter",
             "input: T, filter: T, out_backprop: T", "filter_backprop",
             dilation_filter);
