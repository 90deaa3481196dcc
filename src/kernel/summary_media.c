/*
 * Images and sounds in summaries. An image of real numbers is scaled so that
 * its largest value is bright: from 0 when nothing is negative, else around
 * the middle; a pixel that is not finite gets a colour of its own.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "kernel/png_code.h"
#include "kernel/real.h"
#include "kernel/summary_value.h"
#include "kernel/wav.h"

static void begin_media(struct pb_out *v, const struct str *tag,
                        const char *kind, int64_t i, int64_t most)
{
    struct text name = { 0 };

    text_add_str(&name, tag);
    text_addf(&name, most > 1 ? "/%s/%lld" : "/%s", kind, (long long)i);
    pb_out_init(v);
    pb_put_bytes(v, 1, name.data, name.len);
    text_done(&name);
}

/* ---- images ---- */

static bool finite_pixel(const struct tensor *t, int64_t at, int64_t depth)
{
    for (int64_t k = 0; k < depth; k++)
        if (!isfinite(real_load(t, at + k)))
            return false;
    return true;
}

/* Pixels [from, from + n) of a batch of real numbers as bytes. */
static void normalize(const struct tensor *t, int64_t from, int64_t n,
                      const uint8_t *bad_color, uint8_t *to)
{
    enum dtype dt = (enum dtype)t->dtype;
    int64_t depth = t->dims[3];
    double min = INFINITY, max = -INFINITY, scale, offset, largest;

    for (int64_t i = 0; i < n; i++)
        for (int64_t k = 0;
             k < depth && finite_pixel(t, (from + i) * depth, depth); k++) {
            double x = (float)real_load(t, (from + i) * depth + k);

            min = MIN(min, x);
            max = MAX(max, x);
        }
    largest = min < 0 ? MAX(fabs(min), fabs(max)) : max;
    offset = min < 0 ? 128 : 0;
    scale = largest < 1e-6f
                ? 0
                : (float)((min < 0 ? 127.0f : 255.0f) / (float)largest);
    scale = real_round(dt, scale);
    for (int64_t i = 0; i < n; i++, to += depth) {
        int64_t at = (from + i) * depth;

        if (!finite_pixel(t, at, depth)) {
            memcpy(to, bad_color, (size_t)depth);
            continue;
        }
        for (int64_t k = 0; k < depth; k++) {
            double x = real_round(dt, real_load(t, at + k) * scale);

            to[k] = (uint8_t)(int)real_round(dt, x + offset);
        }
    }
}

static enum mst_code check_images(struct op_ctx *c, const struct tensor *t,
                                  const struct tensor *bad_color)
{
    char text[SHAPE_TEXT_MAX];

    if (t->ndim != 4 || (t->dims[3] != 1 && t->dims[3] != 3 && t->dims[3] != 4))
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Tensor must be 4-D with last dim 1, 3, or 4, not %s",
                       tensor_shape_text(t, text));
    if (t->count >= (1ll << 31))
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Tensor too large for summary %s",
                       tensor_shape_text(t, text));
    if (t->dtype != DT_UINT8 && bad_color->count < t->dims[3])
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "expected depth <= bad_color.size, got depth = %lld, "
                       "bad_color.size = %lld",
                       (long long)t->dims[3], (long long)bad_color->count);
    return MST_OK;
}

static enum mst_code put_image(struct op_ctx *c, struct pb_out *v,
                               const struct tensor *t, const uint8_t *pixels)
{
    int64_t height = t->dims[1], width = t->dims[2];
    struct text png = { 0 };
    struct pb_out image;
    enum mst_code rc =
        png_encode(pixels, height, width, (int)t->dims[3], 8, -1, &png, c->st);

    if (rc) {
        text_done(&png);
        return rc;
    }
    pb_out_init(&image);
    pb_put_uint(&image, 1, (uint64_t)height);
    pb_put_uint(&image, 2, (uint64_t)width);
    pb_put_uint(&image, 3, (uint64_t)t->dims[3]);
    pb_put_bytes(&image, 4, png.data, png.len);
    pb_put_bytes(v, 4, image.data, image.len);
    pb_out_done(&image);
    text_done(&png);
    return MST_OK;
}

enum mst_code summary_put_images(struct op_ctx *c, struct pb_out *o,
                                 const struct str *tag, const struct tensor *t,
                                 int64_t most, const struct tensor *bad_color)
{
    enum mst_code rc = check_images(c, t, bad_color);
    struct buffer *memory;
    int64_t n;

    if (rc)
        return rc;
    n = t->dims[1] * t->dims[2];
    memory = buffer_new((size_t)(n * t->dims[3]) + 1);
    if (!memory)
        return op_fail(c, MST_RESOURCE_EXHAUSTED, "No memory for an image");
    for (int64_t i = 0; i < MIN(most, t->dims[0]) && !rc; i++) {
        const uint8_t *pixels = memory->data;
        struct pb_out v;

        if (t->dtype == DT_UINT8)
            pixels = TENSOR_DATA(t, uint8_t) + i * n * t->dims[3];
        else
            normalize(t, i * n, n, bad_color->data, memory->data);
        begin_media(&v, tag, "image", i, most);
        rc = put_image(c, &v, t, pixels);
        pb_put_bytes(o, 1, v.data, v.len);
        pb_out_done(&v);
    }
    buffer_unref(memory);
    return rc;
}

/* ---- sounds ---- */

static void put_audio(struct pb_out *v, const struct text *wav, float rate,
                      int64_t channels, int64_t frames)
{
    struct pb_out audio;

    pb_out_init(&audio);
    pb_put_tag(&audio, 1, PB_FIXED32);
    pb_put_raw(&audio, &rate, sizeof(rate));
    pb_put_uint(&audio, 2, (uint64_t)channels);
    pb_put_uint(&audio, 3, (uint64_t)frames);
    pb_put_bytes(&audio, 4, wav->data, wav->len);
    pb_put_bytes(&audio, 5, "audio/wav", 9);
    pb_put_bytes(v, 6, audio.data, audio.len);
    pb_out_done(&audio);
}

enum mst_code summary_put_audio(struct op_ctx *c, struct pb_out *o,
                                const struct str *tag, const struct tensor *t,
                                int64_t most, float sample_rate)
{
    char text[SHAPE_TEXT_MAX];
    int64_t frames, channels;
    enum mst_code rc = MST_OK;

    if (t->ndim != 2 && t->ndim != 3)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Tensor must be 3-D or 2-D, got: %s",
                       tensor_shape_text(t, text));
    if (!(sample_rate >= 1 && sample_rate < 0x1p32f))
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "sample_rate must be in (0, 2^32), got: %g",
                       (double)sample_rate);
    frames = t->dims[1];
    channels = t->ndim == 3 ? t->dims[2] : 1;
    for (int64_t i = 0; i < MIN(most, t->dims[0]) && !rc; i++) {
        struct text wav = { 0 };
        struct pb_out v;

        begin_media(&v, tag, "audio", i, most);
        rc = wav_encode(TENSOR_DATA(t, float) + i * frames * channels, frames,
                        channels, (int64_t)sample_rate, &wav, c->st);
        if (!rc)
            put_audio(&v, &wav, sample_rate, channels, frames);
        pb_put_bytes(o, 1, v.data, v.len);
        pb_out_done(&v);
        text_done(&wav);
    }
    return rc;
}
