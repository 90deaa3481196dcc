/*
 * ScaleAndTranslate: images resampled with a kernel of choice, and the
 * gradient. Each output line is a weighted sum of a span of input lines; the
 * same along the other dimension afterwards. When images become smaller the
 * kernel grows with them, if antialiasing is asked for.
 */
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "kernel/image_resize.h"
#include "kernel/types.h"

/* ---- kernels: the weight at distance x >= 0 ---- */

static float lanczos(float x, float radius)
{
    const float pi = 3.14159265359f;

    if (x > radius)
        return 0;
    if (x <= 1e-3f)
        return 1;
    return radius * sinf(pi * x) * sinf(pi * x / radius) / (pi * pi * x * x);
}

static float gaussian(float x, float radius)
{
    float sigma = radius / 3;

    return x >= radius ? 0 : expf(-x * x / (2 * sigma * sigma));
}

static float box(float x, float radius)
{
    (void)radius;
    return x < 0.5f ? 1 : x == 0.5f ? 0.5f : 0;
}

static float triangle(float x, float radius)
{
    (void)radius;
    return x < 1 ? 1 - x : 0;
}

static float keys_cubic(float x, float radius)
{
    (void)radius;
    if (x >= 2)
        return 0;
    if (x >= 1)
        return ((-0.5f * x + 2.5f) * x - 4) * x + 2;
    return ((1.5f * x - 2.5f) * x) * x + 1;
}

static float mitchell_cubic(float x, float radius)
{
    (void)radius;
    if (x >= 2)
        return 0;
    if (x >= 1)
        return (((-7.0f / 18) * x + 2) * x - 10.0f / 3) * x + 16.0f / 9;
    return (((7.0f / 6) * x - 2) * x) * x + 8.0f / 9;
}

static const struct kernel {
    const char *name;
    float radius;
    float (*weight)(float x, float radius);
} kernels[] = {
    { "lanczos1", 1, lanczos },
    { "lanczos3", 3, lanczos },
    { "lanczos5", 5, lanczos },
    { "gaussian", 1.5f, gaussian },
    { "box", 1, box },
    { "triangle", 1, triangle },
    { "keyscubic", 2, keys_cubic },
    { "mitchellcubic", 2, mitchell_cubic },
};

struct scale_node {
    const struct kernel *kernel;
    bool antialias;
};

static enum mst_code scale_init(struct op_node *n, struct status *st)
{
    struct scale_node *s = ARENA_NEW(n->arena, struct scale_node);
    struct attr_text name = op_attr_str(n, "kernel_type");

    s->antialias = op_attr_bool(n, "antialias");
    for (size_t i = 0; i < COUNT(kernels); i++)
        if (!strcmp(kernels[i].name, name.data))
            s->kernel = &kernels[i];
    n->state = s;
    if (!s->kernel)
        return status_set(st, MST_INVALID_ARGUMENT,
                          "Unrecognized kernel type: %.200s", name.data);
    return MST_OK;
}

/* ---- spans ---- */

/* Of each output line: which input lines it is made of, and their weights. */
struct spans {
    int64_t out, room;
    int64_t *begin, *size;
    float *weight; /* room for each output */
};

static void fill_span(struct spans *t, const struct kernel *k, int64_t i,
                      float at, float scale, int64_t in)
{
    float reach = k->radius * scale, sum = 0, *w = t->weight + i * t->room;
    int64_t low = (int64_t)ceilf(at - reach - 0.5f);
    int64_t high = (int64_t)floorf(at + reach - 0.5f);

    low = MAX(MIN(low, in - 1), 0);
    high = MAX(MIN(high, in - 1), 0);
    t->begin[i] = low;
    t->size[i] = MIN(high - low + 1, t->room);
    for (int64_t s = 0; s < t->size[i]; s++) {
        float x = (float)(low + s) + 0.5f - at;

        w[s] = k->weight(fabsf(x * (1 / scale)), k->radius);
        sum += w[s];
    }
    for (int64_t s = 0; s < t->size[i]; s++)
        w[s] = fabsf(sum) >= 1000 * 1.17549435e-38f ? w[s] * (1 / sum) : 0;
}

static void spans_init(struct spans *t, const struct scale_node *s, int64_t in,
                       int64_t out, float scale, float shift)
{
    float back = 1 / scale, start = -back * shift;
    float wide = s->antialias ? MAX(back, 1) : 1;
    float room = 2 * ceilf(s->kernel->radius * wide) + 1;

    t->out = out;
    t->room = room < (float)in ? (int64_t)room : in;
    t->begin = mem_array((size_t)out, sizeof(*t->begin));
    t->size = mem_array((size_t)out, sizeof(*t->size));
    t->weight = mem_array((size_t)(out * t->room), sizeof(*t->weight));
    for (int64_t i = 0; i < out; i++) {
        float at = ((float)i + 0.5f) * back + start;

        if (at >= 0 && at <= (float)in)
            fill_span(t, s->kernel, i, at, wide, in);
    }
}

static void spans_done(struct spans *t)
{
    mem_free(t->begin);
    mem_free(t->size);
    mem_free(t->weight);
}

/* ---- along one dimension: [outer][in][inner] to [outer][out][inner] ---- */

static void gather(const struct spans *t, const float *from, float *to,
                   int64_t outer, int64_t in, int64_t inner)
{
    for (int64_t o = 0; o < outer; o++, from += in * inner)
        for (int64_t i = 0; i < t->out; i++, to += inner) {
            memset(to, 0, (size_t)inner * sizeof(*to));
            for (int64_t s = 0; s < t->size[i]; s++) {
                const float *line = from + (t->begin[i] + s) * inner;
                float w = t->weight[i * t->room + s];

                for (int64_t k = 0; k < inner; k++)
                    to[k] += line[k] * w;
            }
        }
}

/* The other way round; `to` is added to. */
static void scatter(const struct spans *t, const float *from, float *to,
                    int64_t outer, int64_t in, int64_t inner)
{
    for (int64_t o = 0; o < outer; o++, to += in * inner)
        for (int64_t i = 0; i < t->out; i++, from += inner)
            for (int64_t s = 0; s < t->size[i]; s++) {
                float *line = to + (t->begin[i] + s) * inner;
                float w = t->weight[i * t->room + s];

                for (int64_t k = 0; k < inner; k++)
                    line[k] += from[k] * w;
            }
}

/* ---- the ops ---- */

/* Two numbers, for height and width, in input i. */
static enum mst_code read_pair(struct op_ctx *c, int i, const char *name,
                               bool positive, const float **ret)
{
    const struct tensor *t = op_in(c, i);
    const float *x = t->data;

    if (t->ndim != 1 || t->count != 2)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "%s must be a vector of 2 elements", name);
    for (int k = 0; k < 2; k++) {
        if (positive && !(isfinite(x[k]) && x[k] > 0))
            return op_fail(c, MST_INVALID_ARGUMENT,
                           "Scale must be greater than zero.");
        if (!isfinite(x[k]))
            return op_fail(c, MST_INVALID_ARGUMENT, "%s must be finite.", name);
    }
    *ret = x;
    return MST_OK;
}

static enum mst_code spans_of(struct op_ctx *c, const int64_t *in,
                              const int64_t *out, struct spans t[2])
{
    const float *scale, *shift;
    enum mst_code rc = read_pair(c, 2, "scale", true, &scale);

    if (!rc)
        rc = read_pair(c, 3, "translation", false, &shift);
    for (int d = 0; d < 2 && !rc; d++)
        spans_init(&t[d], c->node->state, in[d + 1], out[d + 1], scale[d],
                   shift[d]);
    return rc;
}

static enum mst_code scale_and_translate(struct op_ctx *c)
{
    const int64_t *in = op_in(c, 0)->dims;
    struct tensor images = { 0 }, mid = { 0 };
    struct spans t[2] = { 0 };
    int64_t dims[4];
    enum mst_code rc = image_resize_dims(c, 1, dims);

    if (!rc)
        rc = op_out_new(c, 0, 4, dims);
    if (!rc)
        rc = image_resize_images(c, &images);
    if (!rc)
        rc = tensor_new(&mid, DT_FLOAT, 4,
                        (int64_t[]){ dims[0], dims[1], in[2], dims[3] }, c->st);
    if (!rc)
        rc = spans_of(c, in, dims, t);
    if (!rc) {
        gather(&t[0], images.data, mid.data, dims[0], in[1], in[2] * dims[3]);
        gather(&t[1], mid.data, op_out(c, 0)->data, dims[0] * dims[1], in[2],
               dims[3]);
    }
    spans_done(&t[0]);
    spans_done(&t[1]);
    tensor_unref(&mid);
    tensor_unref(&images);
    return rc;
}

static enum mst_code scale_and_translate_grad(struct op_ctx *c)
{
    const struct tensor *g = op_in(c, 0), *like = op_in(c, 1);
    const int64_t *in = like->dims, *out = g->dims;
    struct tensor mid = { 0 };
    struct spans t[2] = { 0 };
    enum mst_code rc = image_resize_check_grad(c);

    if (!rc)
        rc = op_out_like(c, 0, like);
    if (!rc)
        rc = tensor_new(&mid, DT_FLOAT, 4,
                        (int64_t[]){ in[0], in[1], out[2], in[3] }, c->st);
    if (!rc)
        rc = spans_of(c, in, out, t);
    if (!rc) {
        tensor_zero(&mid);
        tensor_zero(op_out(c, 0));
        scatter(&t[0], g->data, mid.data, in[0], in[1], out[2] * in[3]);
        scatter(&t[1], mid.data, op_out(c, 0)->data, in[0] * in[1], in[2],
                in[3]);
    }
    spans_done(&t[0]);
    spans_done(&t[1]);
    tensor_unref(&mid);
    return rc;
}

const struct op_def def_scale_and_translate = {
    .name = "ScaleAndTranslate",
    .in = "images: T, size: int32, scale: float, translation: float",
    .out = "resized_images: float",
    .attr = "T: {int8, uint8, int16, uint16, int32, int64, bfloat16, half, "
            "float, double}; kernel_type: string = 'lanczos3'; "
            "antialias: bool = true",
    .flags = OP_EXPENSIVE,
    .init = scale_init,
    .kernel =
        (const struct op_kernel[]){ { DT_ANY, scale_and_translate }, { 0 } },
};

const struct op_def def_scale_and_translate_grad = {
    .name = "ScaleAndTranslateGrad",
    .in = "grads: T, original_image: T, scale: float, translation: float",
    .out = "output: T",
    .attr = "T: {float}; kernel_type: string = 'lanczos3'; "
            "antialias: bool = true",
    .flags = OP_EXPENSIVE,
    .init = scale_init,
    .kernel = (const struct op_kernel[]){ { DT_ANY, scale_and_translate_grad },
                                          { 0 } },
};
