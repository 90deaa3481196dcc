/*
 * CropAndResize: parts of images, cut out along boxes and brought to one size,
 * and its gradients by the images and by the boxes. A box is in units of the
 * image, from its first pixel to its last; a pixel of the crop that lies
 * outside of the image is the extrapolation value.
 */
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "kernel/cast.h"
#include "kernel/types.h"

struct crop_node {
    bool nearest;
    float outside;
};

static enum mst_code crop_init(struct op_node *n, struct status *st)
{
    struct crop_node *s = ARENA_NEW(n->arena, struct crop_node);

    (void)st;
    s->nearest = !strcmp(op_attr_str(n, "method").data, "nearest");
    if (op_attr(n, "extrapolation_value"))
        s->outside = op_attr_float(n, "extrapolation_value");
    n->state = s;
    return MST_OK;
}

struct crop {
    const struct crop_node *node;
    const float *boxes;
    const int32_t *which;
    int64_t image[4], crop[4]; /* shapes; crop[0] is the number of boxes */
};

/* ---- checks ---- */

/* boxes: input i, the image of each: input i + 1. */
static enum mst_code read_boxes(struct op_ctx *c, int i, struct crop *w)
{
    const struct tensor *boxes = op_in(c, i), *which = op_in(c, i + 1);
    char text[SHAPE_TEXT_MAX];

    if (boxes->ndim == 2 && !boxes->count && which->ndim == 1 &&
        !which->count) {
        w->crop[0] = 0;
        return MST_OK;
    }
    if (boxes->ndim != 2)
        return op_fail(c, MST_INVALID_ARGUMENT, "boxes must be 2-D%s",
                       tensor_shape_text(boxes, text));
    if (boxes->dims[1] != 4)
        return op_fail(c, MST_INVALID_ARGUMENT, "boxes must have 4 columns");
    for (int64_t k = 0; k < boxes->count; k++)
        if (!isfinite(TENSOR_DATA(boxes, float)[k]))
            return op_fail(c, MST_INVALID_ARGUMENT,
                           "bounding box values must be finite");
    if (which->ndim != 1)
        return op_fail(c, MST_INVALID_ARGUMENT, "box_index must be 1-D%s",
                       tensor_shape_text(which, text));
    if (which->count != boxes->dims[0])
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "box_index has incompatible shape");
    w->boxes = boxes->data;
    w->which = which->data;
    w->crop[0] = which->count;
    return MST_OK;
}

static enum mst_code check_which(struct op_ctx *c, const struct crop *w)
{
    for (int64_t i = 0; i < w->crop[0]; i++)
        if (w->which[i] < 0 || w->which[i] >= w->image[0])
            return op_fail(c, MST_OUT_OF_RANGE,
                           "box_index has values outside [0, batch_size)");
    return MST_OK;
}

static enum mst_code take_image(struct op_ctx *c, const struct tensor *t,
                                struct crop *w)
{
    char text[SHAPE_TEXT_MAX];

    if (t->ndim != 4)
        return op_fail(c, MST_INVALID_ARGUMENT, "input image must be 4-D%s",
                       tensor_shape_text(t, text));
    memcpy(w->image, t->dims, sizeof(w->image));
    if (w->image[1] < 1 || w->image[2] < 1)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "image dimensions must be positive");
    return MST_OK;
}

static enum mst_code take_grads(struct op_ctx *c, struct crop *w)
{
    const struct tensor *g = op_in(c, 0);
    char text[SHAPE_TEXT_MAX];

    if (g->ndim != 4)
        return op_fail(c, MST_INVALID_ARGUMENT, "grads image must be 4-D%s",
                       tensor_shape_text(g, text));
    if (g->dims[1] < 1 || g->dims[2] < 1)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "grads dimensions must be positive");
    memcpy(w->crop + 1, g->dims + 1, 3 * sizeof(w->crop[0]));
    return MST_OK;
}

static enum mst_code check_grads(struct op_ctx *c, const struct crop *w)
{
    if (op_in(c, 0)->dims[0] != w->crop[0])
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "boxes and grads have incompatible shape");
    if (w->image[3] != w->crop[3])
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "image_size and grads are incompatible");
    return check_which(c, w);
}

/* ---- where a pixel of the crop lies in the image ---- */

struct place {
    bool inside;
    int64_t low, high; /* the same for the nearest */
    float share;       /* of high */
};

/* Along dimension d (1 or 2) of box b; i is the pixel of the crop. */
static struct place place_of(const struct crop *w, int64_t b, int d, int64_t i)
{
    float low = w->boxes[b * 4 + d - 1], high = w->boxes[b * 4 + d + 1];
    float last = (float)(w->image[d] - 1);
    float scale =
        w->crop[d] > 1 ? (high - low) * last / (float)(w->crop[d] - 1) : 0;
    float at = w->crop[d] > 1 ? low * last + (float)i * scale
                              : 0.5f * (low + high) * last;
    struct place p = { .inside = !(at < 0 || at > last) };

    if (!p.inside)
        return p;
    if (w->node->nearest) {
        p.low = p.high = (int64_t)roundf(at);
        return p;
    }
    p.low = (int64_t)floorf(at);
    p.high = (int64_t)ceilf(at);
    p.share = at - (float)p.low;
    return p;
}

static int64_t pixel(const struct crop *w, int64_t b, int64_t y, int64_t x)
{
    return ((w->which[b] * w->image[1] + y) * w->image[2] + x) * w->image[3];
}

/* ---- forward ---- */

struct cutting {
    struct crop w;
    const float *in;
    float *out;
};

static void cut_line(const struct cutting *t, int64_t b, int64_t row,
                     float *out)
{
    const struct crop *w = &t->w;
    int64_t ch = w->crop[3];
    struct place y = place_of(w, b, 1, row);

    for (int64_t i = 0; i < w->crop[2]; i++, out += ch) {
        struct place x = place_of(w, b, 2, i);
        const float *tl, *tr, *bl, *br;

        if (!y.inside || !x.inside) {
            for (int64_t k = 0; k < ch; k++)
                out[k] = w->node->outside;
            continue;
        }
        tl = t->in + pixel(w, b, y.low, x.low);
        tr = t->in + pixel(w, b, y.low, x.high);
        bl = t->in + pixel(w, b, y.high, x.low);
        br = t->in + pixel(w, b, y.high, x.high);
        for (int64_t k = 0; k < ch; k++) {
            float top = tl[k] + (tr[k] - tl[k]) * x.share;
            float bottom = bl[k] + (br[k] - bl[k]) * x.share;

            out[k] = w->node->nearest ? tl[k] : top + (bottom - top) * y.share;
        }
    }
}

static void cut_lines(void *arg, int64_t begin, int64_t end)
{
    const struct cutting *t = arg;

    for (int64_t l = begin; l < end; l++)
        cut_line(t, l / t->w.crop[1], l % t->w.crop[1],
                 t->out + l * t->w.crop[2] * t->w.crop[3]);
}

static enum mst_code read_crop_size(struct op_ctx *c, struct crop *w)
{
    const struct tensor *size = op_in(c, 3);
    char text[SHAPE_TEXT_MAX];

    if (size->ndim != 1)
        return op_fail(c, MST_INVALID_ARGUMENT, "crop_size must be 1-D%s",
                       tensor_shape_text(size, text));
    if (size->count != 2)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "crop_size must have two elements%s",
                       tensor_shape_text(size, text));
    w->crop[1] = tensor_int(size, 0);
    w->crop[2] = tensor_int(size, 1);
    w->crop[3] = w->image[3];
    if (w->crop[1] < 1 || w->crop[2] < 1)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "crop dimensions must be positive");
    return MST_OK;
}

static enum mst_code crop_and_resize(struct op_ctx *c)
{
    struct cutting t = { .w = { .node = c->node->state } };
    struct tensor image = { 0 };
    enum mst_code rc = take_image(c, op_in(c, 0), &t.w);

    if (!rc)
        rc = read_boxes(c, 1, &t.w);
    if (!rc)
        rc = read_crop_size(c, &t.w);
    if (!rc)
        rc = check_which(c, &t.w);
    if (!rc)
        rc = op_out_new(c, 0, 4, t.w.crop);
    if (rc || !op_out(c, 0)->count)
        return rc;
    rc = cast_tensor(c, &image, DT_FLOAT, op_in(c, 0));
    if (rc)
        return rc;
    t.in = image.data;
    t.out = op_out(c, 0)->data;
    op_for(c, t.w.crop[0] * t.w.crop[1],
           5 * (double)(t.w.crop[2] * t.w.crop[3]), cut_lines, &t);
    tensor_unref(&image);
    return MST_OK;
}

/* ---- gradient by the image ---- */

#define CROP_GRAD(s, T, A, DT, LD, ST)                                         \
    static void crop_add_##s(T *to, const float *g, float weight, int64_t n)   \
    {                                                                          \
        for (int64_t k = 0; k < n; k++)                                        \
            to[k] = (T)ST((A)(LD(to[k]) + LD((T)ST((A)(weight * g[k])))));     \
    }                                                                          \
    static void crop_back_##s(const struct crop *w, const float *g, T *out)    \
    {                                                                          \
        int64_t ch = w->crop[3], per = w->crop[1] * w->crop[2];                \
                                                                               \
        for (int64_t i = 0; i < w->crop[0] * per; i++, g += ch) {              \
            int64_t b = i / per;                                               \
            struct place y = place_of(w, b, 1, i % per / w->crop[2]);          \
            struct place x = place_of(w, b, 2, i % w->crop[2]);                \
            float up = 1 - y.share, left = 1 - x.share;                        \
                                                                               \
            if (!y.inside || !x.inside)                                        \
                continue;                                                      \
            crop_add_##s(out + pixel(w, b, y.low, x.low), g, up * left, ch);   \
            if (w->node->nearest)                                              \
                continue;                                                      \
            crop_add_##s(out + pixel(w, b, y.low, x.high), g, up * x.share,    \
                         ch);                                                  \
            crop_add_##s(out + pixel(w, b, y.high, x.low), g, y.share * left,  \
                         ch);                                                  \
            crop_add_##s(out + pixel(w, b, y.high, x.high), g,                 \
                         y.share * x.share, ch);                               \
        }                                                                      \
    }                                                                          \
    static enum mst_code crop_and_resize_grad_image_##s(struct op_ctx *c)      \
    {                                                                          \
        struct crop w = { .node = c->node->state };                            \
        enum mst_code rc = begin_grad_image(c, &w);                            \
                                                                               \
        if (!rc)                                                               \
            crop_back_##s(&w, op_in(c, 0)->data, op_out(c, 0)->data);          \
        return rc;                                                             \
    }

static enum mst_code begin_grad_image(struct op_ctx *c, struct crop *w)
{
    const struct tensor *size = op_in(c, 3);
    char text[SHAPE_TEXT_MAX];
    enum mst_code rc = take_grads(c, w);

    if (rc)
        return rc;
    if (size->ndim != 1)
        return op_fail(c, MST_INVALID_ARGUMENT, "image_size must be 1-D%s",
                       tensor_shape_text(size, text));
    if (size->count != 4)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "image_size must have 4 elements%s",
                       tensor_shape_text(size, text));
    for (int i = 0; i < 4; i++)
        w->image[i] = tensor_int(size, i);
    if (w->image[1] < 1 || w->image[2] < 1)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "image dimensions must be positive");
    rc = read_boxes(c, 1, w);
    if (!rc)
        rc = check_grads(c, w);
    if (!rc)
        rc = op_out_new(c, 0, 4, w->image);
    if (!rc)
        tensor_zero(op_out(c, 0));
    return rc;
}

TYPES_HALF(CROP_GRAD)
TYPES_FLOAT_WIDE(CROP_GRAD)

/* ---- gradient by the boxes ---- */

/* Adds what moves along dimension d: low is the box's first side, high its
 * last. */
static void add_side(const struct crop *w, int d, int64_t i, float g, float *to)
{
    float last = (float)(w->image[d] - 1);

    if (w->crop[d] > 1) {
        float part = (float)i * (last / (float)(w->crop[d] - 1));

        to[d - 1] += g * (last - part);
        to[d + 1] += g * part;
    } else {
        to[d - 1] += g * 0.5f * last;
        to[d + 1] += g * 0.5f * last;
    }
}

static void grad_boxes(const struct crop *w, const float *g, const float *in,
                       float *out)
{
    int64_t ch = w->crop[3], per = w->crop[1] * w->crop[2];

    for (int64_t i = 0; i < w->crop[0] * per; i++, g += ch) {
        int64_t b = i / per, row = i % per / w->crop[2], col = i % w->crop[2];
        struct place y = place_of(w, b, 1, row), x = place_of(w, b, 2, col);
        const float *tl, *tr, *bl, *br;

        if (!y.inside || !x.inside)
            continue;
        tl = in + pixel(w, b, y.low, x.low);
        tr = in + pixel(w, b, y.low, x.high);
        bl = in + pixel(w, b, y.high, x.low);
        br = in + pixel(w, b, y.high, x.high);
        for (int64_t k = 0; k < ch; k++) {
            float down =
                (1 - x.share) * (bl[k] - tl[k]) + x.share * (br[k] - tr[k]);
            float right =
                (1 - y.share) * (tr[k] - tl[k]) + y.share * (br[k] - bl[k]);

            add_side(w, 1, row, down * g[k], out + b * 4);
            add_side(w, 2, col, right * g[k], out + b * 4);
        }
    }
}

static enum mst_code crop_and_resize_grad_boxes(struct op_ctx *c)
{
    struct crop w = { .node = c->node->state };
    struct tensor image = { 0 };
    enum mst_code rc = take_grads(c, &w);

    if (!rc)
        rc = take_image(c, op_in(c, 1), &w);
    if (!rc)
        rc = read_boxes(c, 2, &w);
    if (!rc)
        rc = check_grads(c, &w);
    if (!rc)
        rc = op_out_new(c, 0, 2, (int64_t[]){ w.crop[0], 4 });
    if (rc)
        return rc;
    tensor_zero(op_out(c, 0));
    rc = cast_tensor(c, &image, DT_FLOAT, op_in(c, 1));
    if (!rc)
        grad_boxes(&w, op_in(c, 0)->data, image.data, op_out(c, 0)->data);
    tensor_unref(&image);
    return rc;
}

/* ---- records ---- */

#define CROP_TYPES                                                             \
    "T: {uint8, uint16, int8, int16, int32, int64, half, float, double}; "

const struct op_def def_crop_and_resize = {
    .name = "CropAndResize",
    .in = "image: T, boxes: float, box_ind: int32, crop_size: int32",
    .out = "crops: float",
    .attr = CROP_TYPES "method: {'bilinear', 'nearest'} = 'bilinear'; "
                       "extrapolation_value: float = 0",
    .init = crop_init,
    .kernel = (const struct op_kernel[]){ { DT_ANY, crop_and_resize }, { 0 } },
};

const struct op_def def_crop_and_resize_grad_image = {
    .name = "CropAndResizeGradImage",
    .in = "grads: float, boxes: float, box_ind: int32, image_size: int32",
    .out = "output: T",
    .attr = "T: {float, half, double}; "
            "method: {'bilinear', 'nearest'} = 'bilinear'",
    .init = crop_init,
    .kernel = KERNELS(TYPES_HALF(ROW, crop_and_resize_grad_image)
                          TYPES_FLOAT_WIDE(ROW, crop_and_resize_grad_image)),
};

const struct op_def def_crop_and_resize_grad_boxes = {
    .name = "CropAndResizeGradBoxes",
    .in = "grads: float, image: T, boxes: float, box_ind: int32",
    .out = "output: float",
    .attr = CROP_TYPES "method: {'bilinear'} = 'bilinear'",
    .init = crop_init,
    .kernel =
        (const struct op_kernel[]){ { DT_ANY, crop_and_resize_grad_boxes },
                                    { 0 } },
};
