/*
 * Colours: RGBToHSV, HSVToRGB, and images with another contrast, saturation or
 * hue. Hue, saturation and value are in [0, 1].
 */
#include "kernel/pointwise.h"

#define COLOR(s, T, A, DT, LD, ST)                                             \
    static void to_hsv_##s(const A *rgb, A *hsv)                               \
    {                                                                          \
        A v = MAX(MAX(rgb[0], rgb[1]), rgb[2]);                                \
        A range = v - MIN(MIN(rgb[0], rgb[1]), rgb[2]);                        \
        A norm = 1 / range / 6, h = 0;                                         \
                                                                               \
        if (range > 0) {                                                       \
            h = rgb[0] == v   ? norm * (rgb[1] - rgb[2])                       \
                : rgb[1] == v ? norm * (rgb[2] - rgb[0]) + (A)2 / 6            \
                              : norm * (rgb[0] - rgb[1]) + (A)4 / 6;           \
            h = h < 0 ? h + 1 : h;                                             \
        }                                                                      \
        hsv[0] = h;                                                            \
        hsv[1] = v > 0 ? range / v : 0;                                        \
        hsv[2] = v;                                                            \
    }                                                                          \
    static A ramp_##s(A x)                                                     \
    {                                                                          \
        return x < 0 ? 0 : x > 1 ? 1 : x;                                      \
    }                                                                          \
    static void to_rgb_##s(const A *hsv, A *rgb)                               \
    {                                                                          \
        A h = hsv[0] * 6, away = h - 3, one = 1 - hsv[1];                      \
        A g = h - 2, b = h - 4;                                                \
                                                                               \
        away = away < 0 ? -away : away;                                        \
        g = g < 0 ? -g : g;                                                    \
        b = b < 0 ? -b : b;                                                    \
        rgb[0] = (one + hsv[1] * ramp_##s(away - 1)) * hsv[2];                 \
        rgb[1] = (one + hsv[1] * ramp_##s(2 - g)) * hsv[2];                    \
        rgb[2] = (one + hsv[1] * ramp_##s(2 - b)) * hsv[2];                    \
    }                                                                          \
    static void hsv_of_##s(void *arg, int64_t begin, int64_t end)              \
    {                                                                          \
        struct op_ctx *c = arg;                                                \
        const T *in = op_in(c, 0)->data;                                       \
        T *out = op_out(c, 0)->data;                                           \
                                                                               \
        for (int64_t i = 3 * begin; i < 3 * end; i += 3) {                     \
            A x[3] = { LD(in[i]), LD(in[i + 1]), LD(in[i + 2]) }, y[3];        \
                                                                               \
            to_hsv_##s(x, y);                                                  \
            for (int k = 0; k < 3; k++)                                        \
                out[i + k] = ST(y[k]);                                         \
        }                                                                      \
    }                                                                          \
    static void rgb_of_##s(void *arg, int64_t begin, int64_t end)              \
    {                                                                          \
        struct op_ctx *c = arg;                                                \
        const T *in = op_in(c, 0)->data;                                       \
        T *out = op_out(c, 0)->data;                                           \
                                                                               \
        for (int64_t i = 3 * begin; i < 3 * end; i += 3) {                     \
            A x[3] = { LD(in[i]), LD(in[i + 1]), LD(in[i + 2]) }, y[3];        \
                                                                               \
            to_rgb_##s(x, y);                                                  \
            for (int k = 0; k < 3; k++)                                        \
                out[i + k] = ST(y[k]);                                         \
        }                                                                      \
    }                                                                          \
    static enum mst_code rgb_to_hsv_##s(struct op_ctx *c)                      \
    {                                                                          \
        return convert(c, hsv_of_##s);                                         \
    }                                                                          \
    static enum mst_code hsv_to_rgb_##s(struct op_ctx *c)                      \
    {                                                                          \
        return convert(c, rgb_of_##s);                                         \
    }

static enum mst_code convert(struct op_ctx *c,
                             void (*fn)(void *, int64_t, int64_t))
{
    const struct tensor *in = op_in(c, 0);
    char text[SHAPE_TEXT_MAX];
    enum mst_code rc;

    if (!in->ndim)
        return op_fail(c, MST_INVALID_ARGUMENT, "input must be at least 1D%s",
                       tensor_shape_text(in, text));
    if (in->dims[in->ndim - 1] != 3)
        return op_fail(c, MST_FAILED_PRECONDITION,
                       "input must have 3 channels but input only has %lld "
                       "channels.",
                       (long long)in->dims[in->ndim - 1]);
    rc = op_out_like(c, 0, in);
    if (!rc)
        op_for(c, in->count / 3, 6, fn, c);
    return rc;
}

TYPES_FLOAT(COLOR)

#define CONVERT_DEF(stem, NAME)                                                \
    const struct op_def def_##stem = {                                         \
        .name = NAME,                                                          \
        .in = "images: T",                                                     \
        .out = "output: T",                                                    \
        .attr = "T: {half, bfloat16, float, double} = float",                  \
        .kernel = KERNELS(TYPES_FLOAT(ROW, stem)),                             \
    }
CONVERT_DEF(rgb_to_hsv, "RGBToHSV");
CONVERT_DEF(hsv_to_rgb, "HSVToRGB");

/* ---- adjusting ---- */

static enum mst_code check_adjust(struct op_ctx *c, const char *what,
                                  bool colors)
{
    const struct tensor *in = op_in(c, 0);
    char text[SHAPE_TEXT_MAX];

    if (in->ndim < 3)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "input must be at least 3-D, got shape%s",
                       tensor_shape_text(in, text));
    if (op_in(c, 1)->ndim)
        return op_fail(c, MST_INVALID_ARGUMENT, "%s must be scalar: %s", what,
                       tensor_shape_text(op_in(c, 1), text));
    if (colors && in->dims[in->ndim - 1] != 3)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "input must have 3 channels but instead has %lld "
                       "channels.",
                       (long long)in->dims[in->ndim - 1]);
    return op_out_like(c, 0, in);
}

static void saturate(void *arg, int64_t begin, int64_t end)
{
    struct op_ctx *c = arg;
    float scale = *TENSOR_DATA(op_in(c, 1), float), hsv[3];

    for (int64_t i = begin; i < end; i++) {
        to_hsv_f32(TENSOR_DATA(op_in(c, 0), float) + 3 * i, hsv);
        hsv[1] = ramp_f32(hsv[1] * scale);
        to_rgb_f32(hsv, TENSOR_DATA(op_out(c, 0), float) + 3 * i);
    }
}

/* The hue's circle in six parts: which channel is the greatest, which lies
 * between, which is the least. In even parts the one between grows. */
static const unsigned char hue_order[6][3] = { { 0, 1, 2 }, { 1, 0, 2 },
                                               { 1, 2, 0 }, { 2, 1, 0 },
                                               { 2, 0, 1 }, { 0, 2, 1 } };

static int hue_part(const float *rgb)
{
    float r = rgb[0], g = rgb[1], b = rgb[2];

    if (r < g)
        return b < r ? 1 : b > g ? 3 : 2;
    return b < g ? 0 : b > r ? 4 : 5;
}

/* The greatest and the least stay: no saturation is computed, so that colours
 * below zero keep theirs. */
static void turn_one(const float *rgb, float turn, float *out)
{
    int part = hue_part(rgb);
    const unsigned char *from = hue_order[part], *to;
    float high = rgb[from[0]], mid = rgb[from[1]], low = rgb[from[2]];
    float ratio = (mid - low) / (high - low);
    float h =
        high == low ? 0 : (float)part + (part % 2 == 0 ? ratio : 1 - ratio);

    h += turn;
    if (!(h >= 0 && h < 6))
        h -= 6 * floorf(h / 6);
    part = h >= 0 && h < 6 ? (int)h : 5;
    ratio = h - (float)part;
    to = hue_order[part];
    out[to[0]] = high;
    out[to[1]] = low + (part % 2 == 0 ? ratio : 1 - ratio) * (high - low);
    out[to[2]] = low;
}

static void turn_hue(void *arg, int64_t begin, int64_t end)
{
    struct op_ctx *c = arg;
    float turn = *TENSOR_DATA(op_in(c, 1), float) * 6;

    for (int64_t i = begin; i < end; i++)
        turn_one(TENSOR_DATA(op_in(c, 0), float) + 3 * i, turn,
                 TENSOR_DATA(op_out(c, 0), float) + 3 * i);
}

static enum mst_code adjust_saturation(struct op_ctx *c)
{
    enum mst_code rc = check_adjust(c, "scale", true);

    if (!rc)
        op_for(c, op_in(c, 0)->count / 3, 10, saturate, c);
    return rc;
}

static enum mst_code adjust_hue(struct op_ctx *c)
{
    enum mst_code rc = check_adjust(c, "delta", true);

    if (!rc)
        op_for(c, op_in(c, 0)->count / 3, 10, turn_hue, c);
    return rc;
}

/* Away from the mean of each channel of each image. */
static void contrast_one(const float *in, float *out, int64_t pixels,
                         int64_t channels, float factor)
{
    for (int64_t k = 0; k < channels; k++) {
        double sum = 0;
        float mean;

        for (int64_t i = 0; i < pixels; i++)
            sum += (double)in[i * channels + k];
        mean = (float)(sum / (double)pixels);
        for (int64_t i = 0; i < pixels; i++)
            out[i * channels + k] =
                (in[i * channels + k] - mean) * factor + mean;
    }
}

static enum mst_code adjust_contrast(struct op_ctx *c)
{
    const struct tensor *in = op_in(c, 0);
    int64_t channels, pixels;
    enum mst_code rc = check_adjust(c, "contrast_factor", false);

    if (rc || !in->count)
        return rc;
    channels = in->dims[in->ndim - 1];
    pixels = in->dims[in->ndim - 2] * in->dims[in->ndim - 3];
    for (int64_t at = 0; at < in->count; at += pixels * channels)
        contrast_one(TENSOR_DATA(in, float) + at,
                     TENSOR_DATA(op_out(c, 0), float) + at, pixels, channels,
                     *TENSOR_DATA(op_in(c, 1), float));
    return MST_OK;
}

#define ADJUST_DEF(stem, NAME, ARG, FN)                                        \
    const struct op_def def_##stem = {                                         \
        .name = NAME,                                                          \
        .in = "images: T, " ARG ": float",                                     \
        .out = "output: T",                                                    \
        .attr = "T: {half, float} = float",                                    \
        .kernel = KERNELS({ DT_FLOAT, FN }, ),                                 \
    }
ADJUST_DEF(adjust_contrastv2, "AdjustContrastv2", "contrast_factor",
           adjust_contrast);
ADJUST_DEF(adjust_saturation, "AdjustSaturation", "scale", adjust_saturation);
ADJUST_DEF(adjust_hue, "AdjustHue", "delta", adjust_hue);
