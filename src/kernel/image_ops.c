/*
 * Images as files to tensors and back: DecodePng and its kin, EncodePng,
 * EncodeJpeg. As in TensorFlow each decoder knows all formats but BMP's own
 * and looks at the first bytes.
 */
#include <string.h>

#include "kernel/image_files.h"
#include "kernel/jpeg_code.h"
#include "kernel/png_code.h"
#include "kernel/types.h"

/* ---- decoding ---- */

enum format { UNKNOWN, PNG, JPEG, GIF, BMP };

struct decode {
    struct jpeg_options jpeg;
    enum format own; /* of the op; UNKNOWN: DecodeImage */
    bool expand;     /* animations keep their dimension */
    enum dtype dtype;
};

static enum mst_code check_channels(const struct decode *d, struct status *st)
{
    int64_t n = d->jpeg.channels;

    if (n == 0 || n == 1 || n == 3 || n == 4)
        return MST_OK;
    return status_set(st, MST_INVALID_ARGUMENT,
                      "`channels` must be 0, 1, 3 or 4 but got %lld",
                      (long long)n);
}

static enum mst_code read_jpeg_attrs(struct op_node *n, struct jpeg_options *o,
                                     struct status *st)
{
    struct attr_text dct = op_attr_str(n, "dct_method");
    int64_t ratio = op_attr_int(n, "ratio");

    if (ratio != 1 && ratio != 2 && ratio != 4 && ratio != 8)
        return status_set(st, MST_INVALID_ARGUMENT,
                          "ratio must be 1, 2, 4, or 8, got %lld",
                          (long long)ratio);
    if (dct.len && strcmp(dct.data, "INTEGER_FAST") &&
        strcmp(dct.data, "INTEGER_ACCURATE"))
        return status_set(st, MST_INVALID_ARGUMENT,
                          "dct_method must be one of {'', 'INTEGER_FAST', "
                          "'INTEGER_ACCURATE'}");
    o->ratio = (int)ratio;
    o->fancy = op_attr_bool(n, "fancy_upscaling");
    o->recover = op_attr_bool(n, "try_recover_truncated");
    o->least = op_attr_float(n, "acceptable_fraction");
    /* TensorFlow's default is the fast one. */
    o->fast = strcmp(dct.data, "INTEGER_ACCURATE");
    return MST_OK;
}

static enum mst_code decode_init(struct op_node *n, struct status *st)
{
    static const struct {
        const char *name;
        enum format own;
    } ops[] = { { "DecodePng", PNG }, { "DecodeJpeg", JPEG },
                { "DecodeGif", GIF }, { "DecodeAndCropJpeg", JPEG },
                { "DecodeBmp", BMP }, { "DecodeImage", UNKNOWN } };
    struct decode *d = ARENA_NEW(n->arena, struct decode);
    enum mst_code rc = MST_OK;

    n->state = d;
    d->jpeg = (struct jpeg_options){
        .ratio = 1, .fancy = true, .least = 1, .fast = true
    };
    for (size_t i = 0; i < COUNT(ops); i++)
        if (!strcmp(n->def->name, ops[i].name))
            d->own = ops[i].own;
    d->dtype = (enum dtype)n->out_types[0];
    d->expand = d->own == GIF;
    if (d->own == UNKNOWN)
        d->expand = op_attr_bool(n, "expand_animations");
    if (d->own == GIF) {
        d->jpeg.channels = 3;
        return MST_OK;
    }
    d->jpeg.channels = (int)MIN(op_attr_int(n, "channels"), 99);
    rc = check_channels(d, st);
    if (!rc && d->own == JPEG)
        rc = read_jpeg_attrs(n, &d->jpeg, st);
    return rc;
}

static enum format format_of(const struct str *s)
{
    if (s->len >= 3 && !memcmp(s->data, "\xff\xd8\xff", 3))
        return JPEG;
    if (s->len >= 8 && !memcmp(s->data, "\x89PNG\r\n\x1a\n", 8))
        return PNG;
    if (s->len >= 4 && !memcmp(s->data, "GIF8", 4))
        return GIF;
    if (s->len >= 2 && !memcmp(s->data, "BM", 2))
        return BMP;
    return UNKNOWN;
}

/* uint8, or uint16 of a PNG, to what the op gives. */
static enum mst_code convert(struct op_ctx *c, struct tensor *t)
{
    enum dtype to = (enum dtype)c->node->out_types[0];
    struct tensor *out = op_out(c, 0);
    enum mst_code rc;

    if (t->dtype == to) {
        tensor_move(out, t);
        return MST_OK;
    }
    rc = tensor_new_like(out, to, t, c->st);
    for (int64_t i = 0; i < t->count && !rc; i++)
        if (t->dtype == DT_UINT16)
            TENSOR_DATA(out, float)
    [i] = (float)TENSOR_DATA(t, uint16_t)[i] * (1.0f / 65535);
    else if (to == DT_FLOAT) TENSOR_DATA(out, float)[i] =
        (float)TENSOR_DATA(t, uint8_t)[i] * (1.0f / 255);
    else TENSOR_DATA(out, uint16_t)[i] =
        (uint16_t)(TENSOR_DATA(t, uint8_t)[i] * 256);
    tensor_unref(t);
    return rc;
}

/* An animation where none is wanted: its only frame, or the first. */
static enum mst_code first_frame(struct op_ctx *c, struct tensor *t)
{
    const struct decode *d = c->node->state;
    struct tensor frame;
    enum mst_code rc;

    if (d->own != UNKNOWN && t->dims[0] != 1)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Got %lld frames, but animated gifs can only be decoded "
                       "by tf.io.decode_gif or tf.io.decode_image",
                       (long long)t->dims[0]);
    rc = tensor_slice(&frame, t, 0, 1, c->st);
    if (rc)
        return rc;
    tensor_unref(t);
    tensor_reshape(t, &frame, 3, frame.dims + 1);
    tensor_unref(&frame);
    return MST_OK;
}

static enum mst_code read_format(struct op_ctx *c, const struct str *s,
                                 const struct jpeg_options *o, struct tensor *t)
{
    const struct decode *d = c->node->state;
    enum format f = format_of(s);
    enum mst_code rc;

    if (d->own && d->own != BMP && f == BMP)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Trying to decode BMP format using a wrong op. Use "
                       "`decode_bmp` or `decode_image` instead. Op used: %s",
                       c->node->def->name);
    if (d->own == BMP && f != BMP && f != UNKNOWN)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Trying to decode %s format using DecodeBmp op. Use "
                       "`decode_%s` or `decode_image` instead.",
                       f == PNG   ? "PNG"
                       : f == GIF ? "GIF"
                                  : "JPEG",
                       f == PNG   ? "png"
                       : f == GIF ? "gif"
                                  : "jpeg");
    switch (f) {
    case JPEG:
        return jpeg_decode(s->data, s->len, o, t, c->st);
    case PNG:
        return png_decode(s->data, s->len, o->channels,
                          d->dtype == DT_UINT8 ? DT_UINT8 : DT_UINT16, t,
                          c->st);
    case GIF:
        if (o->channels && o->channels != 3)
            return op_fail(c, MST_INVALID_ARGUMENT,
                           "channels must be 0 or 3 for GIF, got %d",
                           o->channels);
        rc = image_gif(s->data, s->len, t, c->st);
        return rc || d->expand ? rc : first_frame(c, t);
    case BMP:
        return image_bmp(s->data, s->len, o->channels, t, c->st);
    default:
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Unknown image file format. One of JPEG, JPEG XL, PNG, "
                       "GIF, BMP, WebP required.");
    }
}

static enum mst_code read_crop(struct op_ctx *c, struct jpeg_options *o)
{
    const struct tensor *t = op_in(c, 1);
    char text[SHAPE_TEXT_MAX];

    if (t->ndim != 1)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "crop_window must be 1-D, got shape %s",
                       tensor_shape_text(t, text));
    if (t->count != 4)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "crop_size must have four elements %s",
                       tensor_shape_text(t, text));
    o->crop = true;
    o->y = tensor_int(t, 0);
    o->x = tensor_int(t, 1);
    o->height = tensor_int(t, 2);
    o->width = tensor_int(t, 3);
    return MST_OK;
}

static enum mst_code scalar_contents(struct op_ctx *c)
{
    char text[SHAPE_TEXT_MAX];

    if (!op_in(c, 0)->ndim)
        return MST_OK;
    return op_fail(c, MST_INVALID_ARGUMENT,
                   "`contents` must be scalar but got shape%s",
                   tensor_shape_text(op_in(c, 0), text));
}

static enum mst_code decode(struct op_ctx *c)
{
    const struct decode *d = c->node->state;
    struct jpeg_options o = d->jpeg;
    struct tensor t = { 0 };
    enum mst_code rc = scalar_contents(c);

    if (!rc && !tensor_str(op_in(c, 0), 0)->len)
        rc = op_fail(c, MST_INVALID_ARGUMENT, "Input is empty.");
    if (!rc && c->node->in_count == 2)
        rc = read_crop(c, &o);
    if (!rc)
        rc = read_format(c, tensor_str(op_in(c, 0), 0), &o, &t);
    if (!rc)
        rc = convert(c, &t);
    tensor_unref(&t);
    return rc;
}

#define DECODER(stem, text, in_, out_, attrs)                                  \
    const struct op_def def_##stem = {                                         \
        .name = text,                                                          \
        .in = "contents: string" in_,                                          \
        .out = "image: " out_,                                                 \
        .attr = attrs,                                                         \
        .flags = OP_EXPENSIVE,                                                 \
        .init = decode_init,                                                   \
        .kernel = (const struct op_kernel[]){ { DT_ANY, decode }, { 0 } },     \
    };
#define JPEG_ATTRS                                                             \
    "channels: int = 0; ratio: int = 1; fancy_upscaling: bool = true; "        \
    "try_recover_truncated: bool = false; acceptable_fraction: float = 1; "    \
    "dct_method: string = ''"

DECODER(decode_png, "DecodePng", "", "dtype",
        "channels: int = 0; dtype: {uint8, uint16} = uint8")
DECODER(decode_jpeg, "DecodeJpeg", "", "uint8", JPEG_ATTRS)
DECODER(decode_and_crop_jpeg, "DecodeAndCropJpeg", ", crop_window: int32",
        "uint8", JPEG_ATTRS)
DECODER(decode_gif, "DecodeGif", "", "uint8", NULL)
DECODER(decode_bmp, "DecodeBmp", "", "uint8", "channels: int = 0")
DECODER(decode_image, "DecodeImage", "", "dtype",
        "channels: int = 0; dtype: {uint8, uint16, float} = uint8; "
        "expand_animations: bool = true")

static enum mst_code extract_jpeg_shape(struct op_ctx *c)
{
    int64_t size[3];
    enum mst_code rc = scalar_contents(c);

    if (!rc)
        rc = jpeg_size(tensor_str(op_in(c, 0), 0)->data,
                       tensor_str(op_in(c, 0), 0)->len, size, c->st);
    if (!rc)
        rc = op_out_new(c, 0, 1, (int64_t[]){ 3 });
    for (int i = 0; i < 3 && !rc; i++)
        if (op_out(c, 0)->dtype == DT_INT32)
            TENSOR_DATA(op_out(c, 0), int32_t)[i] = (int32_t)size[i];
        else
            TENSOR_DATA(op_out(c, 0), int64_t)[i] = size[i];
    return rc;
}

const struct op_def def_extract_jpeg_shape = {
    .name = "ExtractJpegShape",
    .in = "contents: string",
    .out = "image_shape: output_type",
    .attr = "output_type: {int32, int64} = int32",
    .kernel =
        (const struct op_kernel[]){ { DT_ANY, extract_jpeg_shape }, { 0 } },
};

/* ---- encoding ---- */

static enum mst_code encode_png(struct op_ctx *c)
{
    const struct tensor *t = op_in(c, 0);
    int n = t->ndim;
    int64_t height, width, channels, images;
    char text[SHAPE_TEXT_MAX];
    enum mst_code rc;

    if (n < 3)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "images must be at least rank 3%s",
                       tensor_shape_text(t, text));
    height = t->dims[n - 3];
    width = t->dims[n - 2];
    channels = t->dims[n - 1];
    if (!t->count)
        return op_fail(c, MST_INVALID_ARGUMENT, "image must not be empty.");
    if (channels < 1 || channels > 4)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "image must have 1, 2, 3, or 4 channels, got %lld",
                       (long long)channels);
    if (height > INT32_MAX || width > INT32_MAX)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "image cannot have >= int32 max dimensions");
    images = t->count / (height * width * channels);
    rc = op_out_new(c, 0, n - 3, t->dims);
    for (int64_t i = 0; i < images && !rc; i++) {
        size_t size = (size_t)(height * width * channels) *
                      dtype_size((enum dtype)t->dtype);
        struct text png = { 0 };

        rc = png_encode((char *)t->data + (size_t)i * size, height, width,
                        (int)channels, t->dtype == DT_UINT16 ? 16 : 8,
                        *(int *)c->node->state, &png, c->st);
        text_give(&png, tensor_str(op_out(c, 0), i));
    }
    return rc;
}

static enum mst_code encode_png_init(struct op_node *n, struct status *st)
{
    int64_t level = op_attr_int(n, "compression");
    int *state = ARENA_NEW(n->arena, int);

    if (level < -1 || level > 9)
        return status_set(st, MST_INVALID_ARGUMENT,
                          "compression should be in [-1,9], got %lld",
                          (long long)level);
    *state = (int)level;
    n->state = state;
    return MST_OK;
}

const struct op_def def_encode_png = {
    .name = "EncodePng",
    .in = "image: T",
    .out = "contents: string",
    .attr = "compression: int = -1; T: {uint8, uint16} = uint8",
    .flags = OP_EXPENSIVE,
    .init = encode_png_init,
    .kernel = KERNELS({ DT_UINT8, encode_png }, { DT_UINT16, encode_png }, ),
};

struct encode_jpeg {
    struct jpeg_encoding e;
    int channels; /* that the format asks for; 0: any */
};

static enum mst_code encode_jpeg_init(struct op_node *n, struct status *st)
{
    struct encode_jpeg *j = ARENA_NEW(n->arena, struct encode_jpeg);
    struct attr_text format = op_attr_str(n, "format");
    int64_t quality = op_attr_int(n, "quality");

    n->state = j;
    j->channels = !strcmp(format.data, "grayscale") ? 1
                  : !strcmp(format.data, "rgb")     ? 3
                                                    : 0;
    if (quality < 0 || quality > 100)
        return status_set(st, MST_INVALID_ARGUMENT,
                          "quality must be in [0,100], got %lld",
                          (long long)quality);
    j->e = (struct jpeg_encoding){
        .quality = (int)quality,
        .progressive = op_attr_bool(n, "progressive"),
        .optimize = op_attr_bool(n, "optimize_size"),
        .downsample = op_attr_bool(n, "chroma_downsampling"),
        .centimeters = !strcmp(op_attr_str(n, "density_unit").data, "cm"),
        .x_density = (int)op_attr_int(n, "x_density"),
        .y_density = (int)op_attr_int(n, "y_density"),
        .xmp = op_attr_str(n, "xmp_metadata").data,
        .xmp_len = op_attr_str(n, "xmp_metadata").len,
    };
    return MST_OK;
}

static enum mst_code encode_jpeg_with(struct op_ctx *c, int want,
                                      const struct jpeg_encoding *e)
{
    const struct tensor *t = op_in(c, 0);
    char text[SHAPE_TEXT_MAX];
    struct text jpeg = { 0 };
    enum mst_code rc;

    if (t->ndim != 3)
        return op_fail(c, MST_INVALID_ARGUMENT, "image must be 3-dimensional%s",
                       tensor_shape_text(t, text));
    if (t->dims[2] != 1 && t->dims[2] != 3)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "image must have 1 or 3 channels, got %s",
                       tensor_shape_text(t, text));
    if (want && t->dims[2] != want)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "format '%s' expects %d channel%s, got %s",
                       want == 1 ? "grayscale" : "rgb", want,
                       want == 1 ? "" : "s", tensor_shape_text(t, text));
    if (t->dims[0] <= 0 || t->dims[1] <= 0 || t->dims[0] > 65500 ||
        t->dims[1] > 65500)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "JPEG images are from 1 to 65500 pixels wide, got %s",
                       tensor_shape_text(t, text));
    rc = op_out_new(c, 0, 0, NULL);
    if (!rc)
        rc = jpeg_encode(t->data, t->dims[0], t->dims[1], (int)t->dims[2], e,
                         &jpeg, c->st);
    if (!rc)
        text_give(&jpeg, tensor_str(op_out(c, 0), 0));
    text_done(&jpeg);
    return rc;
}

static enum mst_code encode_jpeg(struct op_ctx *c)
{
    const struct encode_jpeg *j = c->node->state;

    return encode_jpeg_with(c, j->channels, &j->e);
}

const struct op_def def_encode_jpeg = {
    .name = "EncodeJpeg",
    .in = "image: uint8",
    .out = "contents: string",
    .attr = "format: {'', 'grayscale', 'rgb'} = ''; quality: int = 95; "
            "progressive: bool = false; optimize_size: bool = false; "
            "chroma_downsampling: bool = true; "
            "density_unit: {'in', 'cm'} = 'in'; x_density: int = 300; "
            "y_density: int = 300; xmp_metadata: string = ''",
    .flags = OP_EXPENSIVE,
    .init = encode_jpeg_init,
    .kernel = (const struct op_kernel[]){ { DT_ANY, encode_jpeg }, { 0 } },
};

static enum mst_code encode_jpeg_quality(struct op_ctx *c)
{
    struct jpeg_encoding e = { .downsample = true,
                               .x_density = 300,
                               .y_density = 300 };
    char text[SHAPE_TEXT_MAX];

    if (op_in(c, 1)->ndim)
        return op_fail(c, MST_INVALID_ARGUMENT, "quality must be scalar: %s",
                       tensor_shape_text(op_in(c, 1), text));
    e.quality = *TENSOR_DATA(op_in(c, 1), int32_t);
    if (e.quality < 0 || e.quality > 100)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "quality must be in [0,100], got %d", e.quality);
    return encode_jpeg_with(c, 0, &e);
}

const struct op_def def_encode_jpeg_variable_quality = {
    .name = "EncodeJpegVariableQuality",
    .in = "images: uint8, quality: int32",
    .out = "contents: string",
    .flags = OP_EXPENSIVE,
    .kernel =
        (const struct op_kernel[]){ { DT_ANY, encode_jpeg_quality }, { 0 } },
};
