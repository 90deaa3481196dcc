/*
 * Windows and boxes on images: ExtractGlimpse, DrawBoundingBoxes.
 */
#include <string.h>

#include "base/rng.h"
#include "kernel/types.h"

/* ---- ExtractGlimpse ---- */

enum noise { NOISE_UNIFORM, NOISE_GAUSSIAN, NOISE_ZERO };

struct glimpse {
    bool centered, normalized, second;
    enum noise noise;
};

static enum mst_code glimpse_init(struct op_node *n, struct status *st)
{
    struct glimpse *g = ARENA_NEW(n->arena, struct glimpse);
    const char *noise = op_attr_str(n, "noise").data;
    bool uniform = op_attr_bool(n, "uniform_noise");

    g->centered = op_attr_bool(n, "centered");
    g->normalized = op_attr_bool(n, "normalized");
    g->second = strstr(n->def->name, "V2") != NULL;
    n->state = g;
    if (uniform && *noise && strcmp(noise, "uniform"))
        return status_set(st, MST_INVALID_ARGUMENT,
                          "The uniform_noise and noise could not be specified "
                          "at the same time");
    if (!*noise)
        g->noise = uniform ? NOISE_UNIFORM : NOISE_GAUSSIAN;
    else if (!strcmp(noise, "uniform"))
        g->noise = NOISE_UNIFORM;
    else if (!strcmp(noise, "gaussian"))
        g->noise = NOISE_GAUSSIAN;
    else if (!strcmp(noise, "zero"))
        g->noise = NOISE_ZERO;
    else
        return status_set(st, MST_INVALID_ARGUMENT,
                          "The noise could only be uniform, gaussian, or zero, "
                          "got%s",
                          noise);
    return MST_OK;
}

/* Noise of a kind that goes with the image: within its range, or as spread as
 * it is. */
struct noise_of {
    enum noise kind;
    float low, high, mean, deviation;
    uint64_t state;
};

static struct noise_of noise_of(enum noise kind, const float *image, int64_t n)
{
    struct noise_of r = { .kind = kind, .state = rng_u64() };
    double sum = 0, square = 0;

    if (!n)
        return r;
    r.low = r.high = image[0];
    for (int64_t i = 0; i < n; i++) {
        r.low = MIN(r.low, image[i]);
        r.high = MAX(r.high, image[i]);
        sum += (double)image[i];
    }
    for (int64_t i = 0; i < n; i++)
        square += ((double)image[i] - sum / (double)n) *
                  ((double)image[i] - sum / (double)n);
    r.mean = (float)(sum / (double)n);
    r.deviation = (float)sqrt(square / (double)n);
    return r;
}

static float make_noise(struct noise_of *r)
{
    double u = (double)(rng_next(&r->state) >> 11) * 0x1p-53, v;

    if (r->kind == NOISE_ZERO)
        return 0;
    if (r->kind == NOISE_UNIFORM)
        return r->low + (r->high - r->low) * (float)u;
    v = (double)(rng_next(&r->state) >> 11) * 0x1p-53;
    return r->mean + r->deviation * (float)(sqrt(-2 * log(1 - u)) *
                                            cos(6.283185307179586 * v));
}

/* Where the window begins in one dimension. */
static int64_t glimpse_start(const struct glimpse *g, float offset, int64_t in,
                             int64_t out)
{
    float at = offset;

    if (g->normalized)
        at *= (float)in;
    if (g->second && g->centered && !g->normalized)
        at += (float)in / 2; /* so TensorFlow: no window is centered then */
    else if (g->centered)
        at = at / 2 + (float)in / 2;
    if (!g->second || (g->centered && g->normalized))
        at -= (float)out / 2;
    if (!(at > -1e9f))
        return -1000000000;
    return at < 1e9f ? (int64_t)at : 1000000000;
}

static void glimpse_one(const struct glimpse *g, const float *in,
                        const int64_t *size, const float *offset, float *out,
                        int64_t height, int64_t width)
{
    int64_t y0 = glimpse_start(g, offset[0], size[0], height);
    int64_t x0 = glimpse_start(g, offset[1], size[1], width);
    struct noise_of noise = noise_of(g->noise, in, size[0] * size[1] * size[2]);

    for (int64_t i = 0; i < height; i++)
        for (int64_t j = 0; j < width; j++, out += size[2]) {
            int64_t y = y0 + i, x = x0 + j;

            if (y >= 0 && y < size[0] && x >= 0 && x < size[1])
                memcpy(out, in + (y * size[1] + x) * size[2],
                       (size_t)size[2] * sizeof(float));
            else
                for (int64_t k = 0; k < size[2]; k++)
                    out[k] = make_noise(&noise);
        }
}

static enum mst_code extract_glimpse(struct op_ctx *c)
{
    const struct tensor *in = op_in(c, 0), *size = op_in(c, 1);
    const struct tensor *offsets = op_in(c, 2);
    char text[SHAPE_TEXT_MAX];
    int64_t dims[4], image, each;
    enum mst_code rc;

    if (in->ndim != 4)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "input must be 4-dimensional (batch_size, height, "
                       "width, depth)%s",
                       tensor_shape_text(in, text));
    if (size->ndim != 1 || size->count != 2)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "input must be a vector of size 2 (height, width)%s",
                       tensor_shape_text(size, text));
    memcpy(dims, in->dims, sizeof(dims));
    dims[1] = tensor_int(size, 0);
    dims[2] = tensor_int(size, 1);
    if (dims[1] < 0 || dims[2] < 0)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Expected a non-negative size, got %lld",
                       (long long)MIN(dims[1], dims[2]));
    if (offsets->ndim != 2)
        return op_fail(c, MST_INVALID_ARGUMENT, "input must be a matrix%s",
                       tensor_shape_text(offsets, text));
    if (offsets->dims[0] != dims[0])
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "first dimension should be batch%s",
                       tensor_shape_text(offsets, text));
    if (offsets->dims[1] != 2)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "second dimension should be of size 2 (y,x)%s",
                       tensor_shape_text(offsets, text));
    rc = op_out_new(c, 0, 4, dims);
    if (rc || !op_out(c, 0)->count)
        return rc;
    image = in->dims[1] * in->dims[2] * in->dims[3];
    each = dims[1] * dims[2] * dims[3];
    for (int64_t b = 0; b < dims[0]; b++)
        glimpse_one(c->node->state, TENSOR_DATA(in, float) + b * image,
                    in->dims + 1, TENSOR_DATA(offsets, float) + 2 * b,
                    TENSOR_DATA(op_out(c, 0), float) + b * each, dims[1],
                    dims[2]);
    return MST_OK;
}

#define GLIMPSE_DEF(stem, NAME)                                                \
    const struct op_def def_##stem = {                                         \
        .name = NAME,                                                          \
        .in = "input: float, size: int32, offsets: float",                     \
        .out = "glimpse: float",                                               \
        .attr = "centered: bool = true; normalized: bool = true; "             \
                "uniform_noise: bool = true; noise: string = 'uniform'",       \
        .init = glimpse_init,                                                  \
        .kernel = KERNELS({ DT_ANY, extract_glimpse }, ),                      \
    }
GLIMPSE_DEF(extract_glimpse, "ExtractGlimpse");
GLIMPSE_DEF(extract_glimpse_v2, "ExtractGlimpseV2");

/* ---- DrawBoundingBoxes ---- */

static const float default_colors[][4] = {
    { 1, 1, 0, 1 },     { 0, 0, 1, 1 },     { 1, 0, 0, 1 },   { 0, 1, 0, 1 },
    { .5f, 0, .5f, 1 }, { .5f, .5f, 0, 1 }, { .5f, 0, 0, 1 }, { 0, 0, .5f, 1 },
    { 0, 1, 1, 1 },     { 1, 0, 1, 1 },
};

struct canvas {
    struct tensor *image;
    int64_t b;
    const float *color;
    bool grey; /* the default's first channel is 1 then */
};

static void paint(const struct canvas *v, int64_t y, int64_t x)
{
    const int64_t *d = v->image->dims;

    if (y < 0 || y >= d[1] || x < 0 || x >= d[2])
        return;
    for (int64_t k = 0; k < d[3]; k++) {
        int64_t at = ((v->b * d[1] + y) * d[2] + x) * d[3] + k;
        float value = v->grey ? 1 : v->color[k];

        if (v->image->dtype == DT_HALF)
            TENSOR_DATA(v->image, half_bits)[at] = half_store(value);
        else
            TENSOR_DATA(v->image, float)[at] = value;
    }
}

static int64_t pixel(float at, int64_t n)
{
    float v = at * (float)(n - 1);

    if (!(v > -1e9f))
        return -1000000000;
    return v < 1e9f ? (int64_t)v : 1000000000;
}

static void draw_box(const struct canvas *v, const float *box)
{
    const int64_t *d = v->image->dims;
    int64_t y0 = pixel(box[0], d[1]), x0 = pixel(box[1], d[2]);
    int64_t y1 = pixel(box[2], d[1]), x1 = pixel(box[3], d[2]);

    if (y0 > y1 || x0 > x1 || y0 >= d[1] || y1 < 0 || x0 >= d[2] || x1 < 0)
        return;
    for (int64_t x = MAX(x0, 0); x <= MIN(x1, d[2] - 1); x++) {
        paint(v, y0, x);
        paint(v, y1, x);
    }
    for (int64_t y = MAX(y0, 0); y <= MIN(y1, d[1] - 1); y++) {
        paint(v, y, x0);
        paint(v, y, x1);
    }
}

static enum mst_code check_boxes(struct op_ctx *c)
{
    const struct tensor *in = op_in(c, 0), *boxes = op_in(c, 1);
    char text[SHAPE_TEXT_MAX];

    if (in->ndim != 4)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "The rank of the images should be 4");
    if (boxes->ndim != 3)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "The rank of the boxes tensor should be 3");
    if (in->dims[0] != boxes->dims[0])
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "The batch sizes should be the same");
    if (in->dims[3] != 1 && in->dims[3] != 3 && in->dims[3] != 4)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Channel depth should be either 1 (GRY), 3 (RGB), or 4 "
                       "(RGBA)");
    if (boxes->dims[2] != 4)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "The size of the third dimension of the box must be 4. "
                       "Received: %lld",
                       (long long)boxes->dims[2]);
    if (c->node->in_count == 2)
        return MST_OK;
    if (op_in(c, 2)->ndim != 2)
        return op_fail(c, MST_INVALID_ARGUMENT, "colors must be a 2-D matrix%s",
                       tensor_shape_text(op_in(c, 2), text));
    if (op_in(c, 2)->dims[1] < in->dims[3])
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "colors must have equal or more channels than the image "
                       "provided: %s",
                       tensor_shape_text(op_in(c, 2), text));
    return MST_OK;
}

static enum mst_code draw_boxes(struct op_ctx *c)
{
    const struct tensor *in = op_in(c, 0), *boxes = op_in(c, 1);
    const struct tensor *colors = c->node->in_count == 3 ? op_in(c, 2) : NULL;
    int64_t n = COUNT(default_colors);
    enum mst_code rc = check_boxes(c);

    if (!rc)
        rc = tensor_copy(op_out(c, 0), in, c->st);
    if (rc)
        return rc;
    if (colors && colors->count)
        n = colors->dims[0];
    else
        colors = NULL;
    for (int64_t i = 0; i < boxes->dims[0] * boxes->dims[1]; i++) {
        int64_t k = i % boxes->dims[1] % n;
        struct canvas v = { op_out(c, 0), i / boxes->dims[1],
                            colors ? TENSOR_DATA(colors, float) +
                                         k * colors->dims[1]
                                   : default_colors[k],
                            !colors && in->dims[3] == 1 };

        draw_box(&v, TENSOR_DATA(boxes, float) + 4 * i);
    }
    return MST_OK;
}

#define DRAW_DEF(stem, NAME, IN)                                               \
    const struct op_def def_##stem = {                                         \
        .name = NAME,                                                          \
        .in = IN,                                                              \
        .out = "output: T",                                                    \
        .attr = "T: {float, half} = float",                                    \
        .kernel = KERNELS({ DT_ANY, draw_boxes }, ),                           \
    }
DRAW_DEF(draw_bounding_boxes, "DrawBoundingBoxes", "images: T, boxes: float");
DRAW_DEF(draw_bounding_boxes_v2, "DrawBoundingBoxesV2",
         "images: T, boxes: float, colors: float");
