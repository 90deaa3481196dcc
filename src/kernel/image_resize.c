/*
 * Images made larger or smaller: ResizeBilinear, ResizeNearestNeighbor and
 * their gradients. Where a pixel of the new image lies in the old one is
 * computed in float, as TensorFlow does.
 */
#include "kernel/image_resize.h"

#include <string.h>

#include "base/mem.h"
#include "kernel/cast.h"
#include "kernel/types.h"

enum mst_code image_resize_init(struct op_node *n, struct status *st)
{
    struct resize_node *s = ARENA_NEW(n->arena, struct resize_node);

    s->align = op_attr_bool(n, "align_corners");
    /* ResizeArea has no such attribute. */
    s->half = op_attr(n, "half_pixel_centers") &&
              op_attr_bool(n, "half_pixel_centers");
    n->state = s;
    /* TensorFlow looks at this everywhere but in one gradient. */
    if (s->align && s->half &&
        strcmp(n->def->name, "ResizeNearestNeighborGrad"))
        return status_set(st, MST_INVALID_ARGUMENT,
                          "If half_pixel_centers is True, align_corners must "
                          "be False.");
    return MST_OK;
}

float image_resize_scale(const struct resize_node *s, int64_t in, int64_t out)
{
    return s->align && out > 1 ? (float)(in - 1) / (float)(out - 1)
                               : (float)in / (float)out;
}

/* Which two of a line make one of the new line, and in what proportion. */
struct mix {
    int64_t low, high;
    float share; /* of the second */
};

static struct mix *mix_line(const struct resize_node *s, int64_t in,
                            int64_t out)
{
    struct mix *m = mem_array((size_t)out, sizeof(*m));
    float scale = image_resize_scale(s, in, out);

    for (int64_t i = 0; i < out; i++) {
        float at =
            s->half ? ((float)i + 0.5f) * scale - 0.5f : (float)i * scale;
        float floor = floorf(at);

        m[i].low = MAX((int64_t)floor, 0);
        m[i].high = MIN((int64_t)ceilf(at), in - 1);
        m[i].low = MIN(m[i].low, in - 1);
        m[i].high = MAX(m[i].high, 0);
        m[i].share = at - floor;
    }
    return m;
}

static int64_t nearest(const struct resize_node *s, int64_t i, float scale,
                       int64_t in)
{
    float at = s->half ? ((float)i + 0.5f) * scale : (float)i * scale;
    int64_t v = (int64_t)(s->align ? roundf(at) : floorf(at));

    return MAX(MIN(v, in - 1), 0);
}

/* ---- shapes ---- */

enum mst_code image_resize_dims(struct op_ctx *c, int i, int64_t *dims)
{
    const struct tensor *in = op_in(c, 0), *size = op_in(c, i);
    char text[SHAPE_TEXT_MAX];

    if (in->ndim != 4)
        return op_fail(c, MST_INVALID_ARGUMENT, "input must be 4-dimensional%s",
                       tensor_shape_text(in, text));
    if (size->ndim != 1)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "shape_t must be 1-dimensional%s",
                       tensor_shape_text(size, text));
    if (size->count != 2)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "shape_t must have two elements%s",
                       tensor_shape_text(size, text));
    memcpy(dims, in->dims, 4 * sizeof(*dims));
    dims[1] = tensor_int(size, 0);
    dims[2] = tensor_int(size, 1);
    if (dims[1] < 1 || dims[2] < 1)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "output dimensions must be positive");
    if (in->dims[3] < 1)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "image must have at least one channel");
    if (in->dims[1] < 1 || in->dims[2] < 1)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "input image must be of non-zero size");
    return MST_OK;
}

enum mst_code image_resize_check_grad(struct op_ctx *c)
{
    const struct tensor *g = op_in(c, 0), *like = op_in(c, 1);
    char text[SHAPE_TEXT_MAX];

    if (g->ndim != 4)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "input_grad must be 4-dimensional%s",
                       tensor_shape_text(g, text));
    if (like->ndim != 4)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "original_image must be 4-dimensional%s",
                       tensor_shape_text(like, text));
    if (g->dims[0] != like->dims[0] || g->dims[3] != like->dims[3])
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "original_image and grads must have the same batch size "
                       "and channels");
    if (g->dims[1] < 1 || g->dims[2] < 1)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "resized dimensions must be positive");
    if (like->dims[1] < 1 || like->dims[2] < 1)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "original dimensions must be positive");
    return MST_OK;
}

enum mst_code image_resize_images(struct op_ctx *c, struct tensor *ret)
{
    const struct tensor *in = op_in(c, 0);

    if (in->dtype != DT_FLOAT)
        return cast_tensor(c, ret, DT_FLOAT, in);
    *ret = tensor_ref(in);
    return MST_OK;
}

/* ---- bilinear ---- */

struct bilinear {
    const struct mix *y, *x;
    int64_t in_h, in_w, out_h, out_w, channels;
    const float *in;
    float *out;
};

static void bilinear_lines(void *arg, int64_t begin, int64_t end)
{
    const struct bilinear *b = arg;

    for (int64_t l = begin; l < end; l++) {
        const struct mix *y = &b->y[l % b->out_h];
        const float *image =
            b->in + l / b->out_h * b->in_h * b->in_w * b->channels;
        const float *top = image + y->low * b->in_w * b->channels;
        const float *bottom = image + y->high * b->in_w * b->channels;
        float *out = b->out + l * b->out_w * b->channels;

        for (int64_t i = 0; i < b->out_w; i++)
            for (int64_t k = 0; k < b->channels; k++) {
                int64_t p = b->x[i].low * b->channels + k;
                int64_t q = b->x[i].high * b->channels + k;
                float s = b->x[i].share;
                float u = top[p] + (top[q] - top[p]) * s;
                float v = bottom[p] + (bottom[q] - bottom[p]) * s;

                *out++ = u + (v - u) * y->share;
            }
    }
}

static enum mst_code resize_bilinear(struct op_ctx *c)
{
    const struct tensor *in = op_in(c, 0);
    struct tensor wide = { 0 };
    struct bilinear b;
    struct mix *y, *x;
    int64_t dims[4];
    enum mst_code rc = image_resize_dims(c, 1, dims);

    if (!rc)
        rc = op_out_new(c, 0, 4, dims);
    if (rc || !op_out(c, 0)->count)
        return rc;
    rc = image_resize_images(c, &wide);
    if (rc)
        return rc;
    y = mix_line(c->node->state, in->dims[1], dims[1]);
    x = mix_line(c->node->state, in->dims[2], dims[2]);
    b = (struct bilinear){
        y,       x,       in->dims[1], in->dims[2],        dims[1],
        dims[2], dims[3], wide.data,   op_out(c, 0)->data,
    };
    op_for(c, dims[0] * dims[1], 2 * (double)(dims[2] * dims[3]),
           bilinear_lines, &b);
    mem_free(y);
    mem_free(x);
    tensor_unref(&wide);
    return MST_OK;
}

#define BILINEAR_GRAD(s, T, A, DT, LD, ST)                                     \
    static void bilinear_back_##s(T *out, const float *in, int64_t ch,         \
                                  const struct mix *x, int64_t width,          \
                                  int64_t top, int64_t bottom, float share)    \
    {                                                                          \
        for (int64_t i = 0; i < width; i++)                                    \
            for (int64_t k = 0; k < ch; k++) {                                 \
                float g = in[i * ch + k];                                      \
                int64_t p = x[i].low * ch + k, q = x[i].high * ch + k;         \
                float right = x[i].share, down = share;                        \
                                                                               \
                out[top + p] = (T)ST(                                          \
                    (A)(LD(out[top + p]) + g * (1 - down) * (1 - right)));     \
                out[top + q] =                                                 \
                    (T)ST((A)(LD(out[top + q]) + g * (1 - down) * right));     \
                out[bottom + p] =                                              \
                    (T)ST((A)(LD(out[bottom + p]) + g * down * (1 - right)));  \
                out[bottom + q] =                                              \
                    (T)ST((A)(LD(out[bottom + q]) + g * down * right));        \
            }                                                                  \
    }                                                                          \
    static enum mst_code resize_bilinear_grad_##s(struct op_ctx *c)            \
    {                                                                          \
        const struct tensor *g = op_in(c, 0), *like = op_in(c, 1);             \
        const int64_t *from = g->dims, *to = like->dims;                       \
        struct mix *y, *x;                                                     \
        enum mst_code rc = image_resize_check_grad(c);                         \
                                                                               \
        if (!rc)                                                               \
            rc = op_out_like(c, 0, like);                                      \
        if (rc)                                                                \
            return rc;                                                         \
        tensor_zero(op_out(c, 0));                                             \
        y = mix_line(c->node->state, to[1], from[1]);                          \
        x = mix_line(c->node->state, to[2], from[2]);                          \
        for (int64_t l = 0; l < from[0] * from[1]; l++) {                      \
            const struct mix *m = &y[l % from[1]];                             \
            int64_t image = l / from[1] * to[1] * to[2] * to[3];               \
                                                                               \
            bilinear_back_##s(op_out(c, 0)->data,                              \
                              TENSOR_DATA(g, float) + l * from[2] * from[3],   \
                              from[3], x, from[2],                             \
                              image + m->low * to[2] * to[3],                  \
                              image + m->high * to[2] * to[3], m->share);      \
        }                                                                      \
        mem_free(y);                                                           \
        mem_free(x);                                                           \
        return MST_OK;                                                         \
    }

TYPES_FLOAT(BILINEAR_GRAD)

/* ---- nearest ---- */

static enum mst_code resize_nearest(struct op_ctx *c)
{
    const struct resize_node *s = c->node->state;
    const struct tensor *in = op_in(c, 0);
    int64_t dims[4];
    size_t pixel;
    char *out;
    enum mst_code rc = image_resize_dims(c, 1, dims);

    if (!rc)
        rc = op_out_new(c, 0, 4, dims);
    if (rc)
        return rc;
    pixel = (size_t)dims[3] * dtype_size((enum dtype)in->dtype);
    out = op_out(c, 0)->data;
    for (int64_t l = 0; l < dims[0] * dims[1]; l++) {
        int64_t y =
            nearest(s, l % dims[1], image_resize_scale(s, in->dims[1], dims[1]),
                    in->dims[1]);
        const char *line =
            (const char *)in->data +
            (size_t)((l / dims[1] * in->dims[1] + y) * in->dims[2]) * pixel;
        float scale = image_resize_scale(s, in->dims[2], dims[2]);

        for (int64_t i = 0; i < dims[2]; i++, out += pixel)
            memcpy(out,
                   line + (size_t)nearest(s, i, scale, in->dims[2]) * pixel,
                   pixel);
    }
    return MST_OK;
}

#define NEAREST_GRAD(s, T, A, DT, LD, ST)                                      \
    static enum mst_code resize_nearest_grad_##s(struct op_ctx *c)             \
    {                                                                          \
        const struct resize_node *node = c->node->state;                       \
        const struct tensor *g = op_in(c, 0);                                  \
        const T *in = g->data;                                                 \
        int64_t dims[4], ch;                                                   \
        float sy, sx;                                                          \
        enum mst_code rc = image_resize_dims(c, 1, dims);                      \
        T *out;                                                                \
                                                                               \
        if (!rc)                                                               \
            rc = op_out_new(c, 0, 4, dims);                                    \
        if (rc)                                                                \
            return rc;                                                         \
        tensor_zero(op_out(c, 0));                                             \
        out = op_out(c, 0)->data;                                              \
        ch = dims[3];                                                          \
        sy = image_resize_scale(node, dims[1], g->dims[1]);                    \
        sx = image_resize_scale(node, dims[2], g->dims[2]);                    \
        for (int64_t i = 0; i < g->count / ch; i++) {                          \
            int64_t x = nearest(node, i % g->dims[2], sx, dims[2]);            \
            int64_t y =                                                        \
                nearest(node, i / g->dims[2] % g->dims[1], sy, dims[1]);       \
            int64_t n = i / g->dims[2] / g->dims[1];                           \
            T *o = out + ((n * dims[1] + y) * dims[2] + x) * ch;               \
                                                                               \
            for (int64_t k = 0; k < ch; k++)                                   \
                o[k] = (T)ST((A)(LD(o[k]) + LD(in[i * ch + k])));              \
        }                                                                      \
        return MST_OK;                                                         \
    }
TYPES_FLOAT(NEAREST_GRAD)
TYPES_UNSIGNED(NEAREST_GRAD)

/* ---- records ---- */

#define RESIZE_ATTRS                                                           \
    "align_corners: bool = false; half_pixel_centers: bool = false"
#define RESIZE_TYPES                                                           \
    "{int8, uint8, int16, uint16, int32, int64, half, float, double, "         \
    "bfloat16}"

#define RESIZE_DEF(stem, NAME, IN, OUT, TYPES, ...)                            \
    const struct op_def def_##stem = {                                         \
        .name = NAME,                                                          \
        .in = IN,                                                              \
        .out = OUT,                                                            \
        .attr = "T: " TYPES "; " RESIZE_ATTRS,                                 \
        .init = image_resize_init,                                             \
        .kernel = KERNELS(__VA_ARGS__),                                        \
    }
RESIZE_DEF(resize_bilinear, "ResizeBilinear", "images: T, size: int32",
           "resized_images: float", RESIZE_TYPES,
           { DT_ANY, resize_bilinear }, );
RESIZE_DEF(resize_bilinear_grad, "ResizeBilinearGrad",
           "grads: float, original_image: T", "output: T",
           "{float, bfloat16, half, double}",
           TYPES_FLOAT(ROW, resize_bilinear_grad));
RESIZE_DEF(resize_nearest_neighbor, "ResizeNearestNeighbor",
           "images: T, size: int32", "resized_images: T", RESIZE_TYPES,
           { DT_ANY, resize_nearest }, );
RESIZE_DEF(resize_nearest_neighbor_grad, "ResizeNearestNeighborGrad",
           "grads: T, size: int32", "output: T",
           "{uint8, int8, int32, half, float, double, bfloat16}",
           TYPES_FLOAT(ROW, resize_nearest_grad)
               TYPES_UNSIGNED(ROW, resize_nearest_grad)
                   TYPES_SIGNED_WRAP(ROW, resize_nearest_grad));
