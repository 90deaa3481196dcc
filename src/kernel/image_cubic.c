/*
 * Images of another size, of more than two neighbours: ResizeBicubic with its
 * gradient, and ResizeArea, the mean of all that a new pixel covers. Weights
 * are TensorFlow's to the last bit, which takes them from a table of 1024
 * steps.
 */
#include <math.h>

#include "base/mem.h"
#include "kernel/image_resize.h"
#include "kernel/types.h"

#define TABLE 1024
#define TAPS  4

/* ---- bicubic ---- */

/* Four pixels of a line that make one of the new line. */
struct taps {
    int64_t at[TAPS];
    float weight[TAPS];
};

/* The cubic at i / TABLE from the middle, or one pixel further out. */
static float cubic(bool keys, int64_t i, bool outer)
{
    double a = keys ? -0.5 : -0.75;
    float x = (float)((double)i / TABLE);

    if (!outer)
        return (float)(((a + 2) * x - (a + 3)) * x * x + 1);
    x += 1;
    return (float)(((a * x - 5 * a) * x + 8 * a) * x - 4 * a);
}

/* With half pixels those outside of the image do not count; else they are the
 * outermost pixel once more. */
static void find_taps(const struct resize_node *s, float scale, int64_t i,
                      int64_t in, struct taps *t)
{
    float at = s->half ? ((float)i + 0.5f) * scale - 0.5f : (float)i * scale;
    int64_t low = (int64_t)floorf(at);
    int64_t step = lrintf((at - (float)low) * TABLE);
    float sum = 0;

    for (int k = 0; k < TAPS; k++) {
        int64_t want = low - 1 + k;

        t->at[k] = MAX(MIN(want, in - 1), 0);
        t->weight[k] =
            cubic(s->half, k < 2 ? step : TABLE - step, k == 0 || k == 3);
        if (s->half && t->at[k] != want)
            t->weight[k] = 0;
        sum += t->weight[k];
    }
    if (s->half && fabsf(sum) >= 1000 * 1.17549435e-38f)
        for (int k = 0; k < TAPS; k++)
            t->weight[k] *= 1 / sum;
}

static struct taps *taps_line(const struct resize_node *s, int64_t in,
                              int64_t out)
{
    struct taps *t = mem_array((size_t)out, sizeof(*t));
    float scale = image_resize_scale(s, in, out);

    for (int64_t i = 0; i < out; i++)
        find_taps(s, scale, i, in, &t[i]);
    return t;
}

struct cubic {
    struct taps *y, *x;
    const int64_t *in_dims, *out_dims;
    const float *in;
    float *out;
};

static float cubic_one(const struct cubic *w, const float *image,
                       const struct taps *y, const struct taps *x, int64_t k)
{
    int64_t width = w->in_dims[2], ch = w->in_dims[3];
    float sum = 0;

    for (int j = 0; j < TAPS; j++) {
        const float *p = image + x->at[j] * ch + k;
        float column = 0;

        for (int i = 0; i < TAPS; i++)
            column += p[y->at[i] * width * ch] * y->weight[i];
        sum += column * x->weight[j];
    }
    return sum;
}

static void cubic_lines(void *arg, int64_t begin, int64_t end)
{
    const struct cubic *w = arg;
    int64_t width = w->out_dims[2], ch = w->out_dims[3];

    for (int64_t l = begin; l < end; l++) {
        const float *image =
            w->in + l / w->out_dims[1] * w->in_dims[1] * w->in_dims[2] * ch;
        const struct taps *y = &w->y[l % w->out_dims[1]];

        for (int64_t i = 0; i < width * ch; i++)
            w->out[l * width * ch + i] =
                cubic_one(w, image, y, &w->x[i / ch], i % ch);
    }
}

static enum mst_code resize_bicubic(struct op_ctx *c)
{
    struct tensor images = { 0 };
    struct cubic w = { .in_dims = op_in(c, 0)->dims };
    int64_t dims[4];
    enum mst_code rc = image_resize_dims(c, 1, dims);

    if (!rc)
        rc = op_out_new(c, 0, 4, dims);
    if (rc || !op_out(c, 0)->count)
        return rc;
    rc = image_resize_images(c, &images);
    if (rc)
        return rc;
    w.y = taps_line(c->node->state, w.in_dims[1], dims[1]);
    w.x = taps_line(c->node->state, w.in_dims[2], dims[2]);
    w.out_dims = dims;
    w.in = images.data;
    w.out = op_out(c, 0)->data;
    op_for(c, dims[0] * dims[1], 20 * (double)(dims[2] * dims[3]), cubic_lines,
           &w);
    mem_free(w.y);
    mem_free(w.x);
    tensor_unref(&images);
    return MST_OK;
}

#define CUBIC_GRAD(s, T, A, DT, LD, ST)                                        \
    static void cubic_back_##s(const struct cubic *w, T *image, int64_t l,     \
                               int64_t i)                                      \
    {                                                                          \
        const struct taps *y = &w->y[l % w->in_dims[1]], *x = &w->x[i];        \
        int64_t width = w->out_dims[2], ch = w->out_dims[3];                   \
        const float *g = w->in + (l * w->in_dims[2] + i) * ch;                 \
                                                                               \
        for (int p = 0; p < TAPS; p++)                                         \
            for (int q = 0; q < TAPS; q++) {                                   \
                T *to = image + (y->at[p] * width + x->at[q]) * ch;            \
                                                                               \
                for (int64_t k = 0; k < ch; k++)                               \
                    to[k] += (T)g[k] * (T)y->weight[p] * (T)x->weight[q];      \
            }                                                                  \
    }                                                                          \
    static enum mst_code resize_bicubic_grad_##s(struct op_ctx *c)             \
    {                                                                          \
        const struct tensor *g = op_in(c, 0), *like = op_in(c, 1);             \
        struct cubic w = { .in_dims = g->dims, .in = g->data };                \
        enum mst_code rc = image_resize_check_grad(c);                         \
                                                                               \
        if (!rc)                                                               \
            rc = op_out_like(c, 0, like);                                      \
        if (rc)                                                                \
            return rc;                                                         \
        tensor_zero(op_out(c, 0));                                             \
        w.out_dims = like->dims;                                               \
        w.y = taps_line(c->node->state, like->dims[1], g->dims[1]);            \
        w.x = taps_line(c->node->state, like->dims[2], g->dims[2]);            \
        for (int64_t l = 0; l < g->dims[0] * g->dims[1]; l++) {                \
            T *image = TENSOR_DATA(op_out(c, 0), T) +                          \
                       l / g->dims[1] * like->dims[1] * like->dims[2] *        \
                           like->dims[3];                                      \
                                                                               \
            for (int64_t i = 0; i < g->dims[2]; i++)                           \
                cubic_back_##s(&w, image, l, i);                               \
        }                                                                      \
        mem_free(w.y);                                                         \
        mem_free(w.x);                                                         \
        return MST_OK;                                                         \
    }
TYPES_FLOAT_WIDE(CUBIC_GRAD)

/* ---- area ---- */

/* The pixels of a line that one of the new line covers, and how much of the
 * first and of the last; those between are covered whole. */
struct span {
    int64_t begin, end;
    float first, last;
};

/* How much of pixel i lies between low and high, which are `scale` apart. */
static float covered(int64_t i, float low, float high, float scale)
{
    float left = (float)i, right = (float)(i + 1);

    if (left < low)
        return right > high ? scale : right - low;
    return right > high ? high - left : 1;
}

/* A line of one pixel whose corners are aligned has no length to divide: each
 * new pixel is that one. */
static float area_scale(const struct resize_node *s, int64_t in, int64_t out)
{
    float scale = image_resize_scale(s, in, out);

    return scale > 0 ? scale : (float)in / (float)out;
}

static struct span *span_line(const struct resize_node *s, int64_t in,
                              int64_t out)
{
    struct span *t = mem_array((size_t)out, sizeof(*t));
    float scale = area_scale(s, in, out);

    for (int64_t i = 0; i < out; i++) {
        float low = (float)i * scale, high = (float)(i + 1) * scale;

        t[i].begin = (int64_t)floorf(low);
        t[i].end = (int64_t)ceilf(high);
        t[i].first = covered(t[i].begin, low, high, scale);
        t[i].last = covered(t[i].end - 1, low, high, scale);
    }
    return t;
}

static float share(const struct span *s, int64_t i)
{
    return i == s->begin ? s->first : i == s->end - 1 ? s->last : 1;
}

struct area {
    struct span *y, *x;
    const int64_t *in_dims, *out_dims;
    const float *in;
    float *out, scale;
};

static float area_one(const struct area *w, const float *image,
                      const struct span *y, const struct span *x, int64_t k)
{
    int64_t height = w->in_dims[1], width = w->in_dims[2], ch = w->in_dims[3];
    float sum = 0;

    for (int64_t i = y->begin; i < y->end; i++) {
        const float *line = image + MAX(MIN(i, height - 1), 0) * width * ch + k;
        float down = share(y, i);

        for (int64_t j = x->begin; j < x->end; j++)
            sum += line[MAX(MIN(j, width - 1), 0) * ch] * down * share(x, j);
    }
    return sum * w->scale;
}

static void area_lines(void *arg, int64_t begin, int64_t end)
{
    const struct area *w = arg;
    int64_t width = w->out_dims[2], ch = w->out_dims[3];

    for (int64_t l = begin; l < end; l++) {
        const float *image =
            w->in + l / w->out_dims[1] * w->in_dims[1] * w->in_dims[2] * ch;
        const struct span *y = &w->y[l % w->out_dims[1]];

        for (int64_t i = 0; i < width * ch; i++)
            w->out[l * width * ch + i] =
                area_one(w, image, y, &w->x[i / ch], i % ch);
    }
}

static enum mst_code resize_area(struct op_ctx *c)
{
    const struct resize_node *s = c->node->state;
    struct tensor images = { 0 };
    struct area w = { .in_dims = op_in(c, 0)->dims };
    int64_t dims[4];
    enum mst_code rc = image_resize_dims(c, 1, dims);

    if (!rc)
        rc = op_out_new(c, 0, 4, dims);
    if (rc || !op_out(c, 0)->count)
        return rc;
    rc = image_resize_images(c, &images);
    if (rc)
        return rc;
    w.y = span_line(s, w.in_dims[1], dims[1]);
    w.x = span_line(s, w.in_dims[2], dims[2]);
    w.scale = (float)(1.0 / (area_scale(s, w.in_dims[1], dims[1]) *
                             area_scale(s, w.in_dims[2], dims[2])));
    w.out_dims = dims;
    w.in = images.data;
    w.out = op_out(c, 0)->data;
    op_for(c, dims[0] * dims[1],
           2 * (double)(dims[3] * MAX(dims[2], w.in_dims[2])), area_lines, &w);
    mem_free(w.y);
    mem_free(w.x);
    tensor_unref(&images);
    return MST_OK;
}

/* ---- records ---- */

#define IMAGE_TYPES                                                            \
    "T: {int8, uint8, int16, uint16, int32, int64, half, float, double, "      \
    "bfloat16}; "

const struct op_def def_resize_bicubic = {
    .name = "ResizeBicubic",
    .in = "images: T, size: int32",
    .out = "resized_images: float",
    .attr = IMAGE_TYPES "align_corners: bool = false; "
                        "half_pixel_centers: bool = false",
    .init = image_resize_init,
    .kernel = (const struct op_kernel[]){ { DT_ANY, resize_bicubic }, { 0 } },
};

const struct op_def def_resize_bicubic_grad = {
    .name = "ResizeBicubicGrad",
    .in = "grads: float, original_image: T",
    .out = "output: T",
    .attr = "T: {float, double}; align_corners: bool = false; "
            "half_pixel_centers: bool = false",
    .init = image_resize_init,
    .kernel = KERNELS(TYPES_FLOAT_WIDE(ROW, resize_bicubic_grad)),
};

const struct op_def def_resize_area = {
    .name = "ResizeArea",
    .in = "images: T, size: int32",
    .out = "resized_images: float",
    .attr = IMAGE_TYPES "align_corners: bool = false",
    .init = image_resize_init,
    .kernel = (const struct op_kernel[]){ { DT_ANY, resize_area }, { 0 } },
};
