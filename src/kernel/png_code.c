#include "kernel/png_code.h"

#include <png.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

/* What is passed through libpng, which comes back by longjmp() on errors. */
struct code {
    jmp_buf back;
    struct text *out;
    const uint8_t *at, *end;
    png_structp png;
    png_infop info;
    png_bytep *rows;
    bool begun; /* its head has been read */
};

static void on_error(png_structp png, png_const_charp text)
{
    struct code *c = png_get_error_ptr(png);

    (void)text;
    longjmp(c->back, 1);
}

static void on_warning(png_structp png, png_const_charp text)
{
    (void)png;
    (void)text;
}

/* ---- encoding ---- */

static void write_bytes(png_structp png, png_bytep data, png_size_t len)
{
    struct code *c = png_get_io_ptr(png);

    text_add(c->out, data, len);
}

static void flush_bytes(png_structp png)
{
    (void)png;
}

static void write_image(struct code *c, const uint8_t *pixels, int64_t height,
                        int64_t width, int channels, int bits, int compression)
{
    static const int types[] = { 0, PNG_COLOR_TYPE_GRAY,
                                 PNG_COLOR_TYPE_GRAY_ALPHA, PNG_COLOR_TYPE_RGB,
                                 PNG_COLOR_TYPE_RGB_ALPHA };
    size_t row = (size_t)width * (size_t)channels * (size_t)bits / 8;

    png_set_write_fn(c->png, c, write_bytes, flush_bytes);
    if (compression >= 0)
        png_set_compression_level(c->png, compression);
    png_set_compression_mem_level(c->png, MAX_MEM_LEVEL);
    png_set_IHDR(c->png, c->info, (png_uint_32)width, (png_uint_32)height, bits,
                 types[channels], PNG_INTERLACE_NONE,
                 PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
    png_write_info(c->png, c->info);
    if (bits == 16)
        png_set_swap(c->png);
    for (int64_t y = 0; y < height; y++)
        png_write_row(c->png, pixels + (size_t)y * row);
    png_write_end(c->png, NULL);
}

enum mst_code png_encode(const void *pixels, int64_t height, int64_t width,
                         int channels, int bits, int compression,
                         struct text *ret, struct status *st)
{
    struct code c = { .out = ret };
    volatile bool good = false; /* setjmp() returns twice */

    c.png = png_create_write_struct(PNG_LIBPNG_VER_STRING, &c, on_error,
                                    on_warning);
    c.info = c.png ? png_create_info_struct(c.png) : NULL;
    if (c.info && !setjmp(c.back)) {
        write_image(&c, pixels, height, width, channels, bits, compression);
        good = true;
    }
    png_destroy_write_struct(&c.png, &c.info);
    return good ? MST_OK : status_set(st, MST_INTERNAL, "PNG encoding failed");
}

/* ---- decoding ---- */

static void read_bytes(png_structp png, png_bytep to, png_size_t len)
{
    struct code *c = png_get_io_ptr(png);

    if ((size_t)(c->end - c->at) < len)
        png_error(png, "More bytes requested to read than available");
    memcpy(to, c->at, len);
    c->at += len;
}

/* What libpng is to make of the file's own layout. */
static void set_transforms(struct code *c, int want, int bits)
{
    int type = png_get_color_type(c->png, c->info);
    bool alpha = type & PNG_COLOR_MASK_ALPHA ||
                 png_get_valid(c->png, c->info, PNG_INFO_tRNS);
    /* Of the file's depth, even where that is not opaque: TensorFlow's. */
    unsigned filler = (1u << png_get_bit_depth(c->png, c->info)) - 1;

    if (bits == 16 && filler <= 255)
        filler *= 257;
    if (type == PNG_COLOR_TYPE_PALETTE)
        png_set_palette_to_rgb(c->png);
    if (type == PNG_COLOR_TYPE_GRAY && png_get_bit_depth(c->png, c->info) < 8)
        png_set_expand_gray_1_2_4_to_8(c->png);
    if (bits == 8)
        png_set_strip_16(c->png);
    else if (png_get_bit_depth(c->png, c->info) < 16)
        png_set_expand_16(c->png);
    if (bits == 16)
        png_set_swap(c->png);
    if (want == 1 || want == 3)
        png_set_strip_alpha(c->png);
    else if (png_get_valid(c->png, c->info, PNG_INFO_tRNS))
        png_set_tRNS_to_alpha(c->png);
    if ((want == 2 || want == 4) && !alpha)
        png_set_add_alpha(c->png, filler, PNG_FILLER_AFTER);
    if (want >= 3 && !(type & PNG_COLOR_MASK_COLOR))
        png_set_gray_to_rgb(c->png);
    if ((want == 1 || want == 2) && type & PNG_COLOR_MASK_COLOR)
        png_set_rgb_to_gray(c->png, 1, 0.299, 0.587);
    png_set_interlace_handling(c->png);
    png_read_update_info(c->png, c->info);
}

/* The file's own number of channels, as TensorFlow counts them. */
static int own_channels(const struct code *c)
{
    int type = png_get_color_type(c->png, c->info);
    bool alpha = type & PNG_COLOR_MASK_ALPHA ||
                 png_get_valid(c->png, c->info, PNG_INFO_tRNS);

    return (type & PNG_COLOR_MASK_COLOR ? 3 : 1) + alpha;
}

static enum mst_code read_image(struct code *c, int channels, enum dtype dt,
                                struct tensor *ret, struct status *st)
{
    int64_t height, width, count;
    size_t row;
    enum mst_code rc;

    png_set_read_fn(c->png, c, read_bytes);
    png_read_info(c->png, c->info);
    c->begun = true;
    height = png_get_image_height(c->png, c->info);
    width = png_get_image_width(c->png, c->info);
    channels = channels ? channels : own_channels(c);
    set_transforms(c, channels, dt == DT_UINT16 ? 16 : 8);
    /* TensorFlow's limit; a small file may say that it is a huge image. */
    count = height * width;
    if (height > INT32_MAX || width > INT32_MAX || count >= (1ll << 29))
        return status_set(st, MST_INVALID_ARGUMENT,
                          "PNG size too large for int: %lld by %lld",
                          (long long)width, (long long)height);
    rc = tensor_new(ret, dt, 3, (int64_t[]){ height, width, channels }, st);
    if (rc)
        return rc;
    row = (size_t)width * (size_t)channels * dtype_size(dt);
    if (png_get_rowbytes(c->png, c->info) != row)
        png_error(c->png, "unexpected layout");
    c->rows = calloc((size_t)height + 1, sizeof(*c->rows));
    if (!c->rows)
        png_error(c->png, "no memory");
    for (int64_t y = 0; y < height; y++)
        c->rows[y] = (png_bytep)ret->data + (size_t)y * row;
    png_read_image(c->png, c->rows);
    png_read_end(c->png, NULL);
    return MST_OK;
}

enum mst_code png_decode(const void *data, size_t len, int channels,
                         enum dtype dt, struct tensor *ret, struct status *st)
{
    struct code c = { .at = data, .end = (const uint8_t *)data + len };
    volatile enum mst_code rc = MST_INVALID_ARGUMENT;

    status_set(st, MST_INVALID_ARGUMENT, "Invalid PNG data, size %zu", len);
    c.png =
        png_create_read_struct(PNG_LIBPNG_VER_STRING, &c, on_error, on_warning);
    c.info = c.png ? png_create_info_struct(c.png) : NULL;
    if (c.info && !setjmp(c.back))
        rc = read_image(&c, channels, dt, ret, st);
    png_destroy_read_struct(&c.png, &c.info, NULL);
    free(c.rows);
    if (rc && !c.begun)
        status_set(st, rc, "Invalid PNG. Failed to initialize decoder.");
    if (rc)
        tensor_unref(ret);
    else
        status_clear(st);
    return rc;
}
