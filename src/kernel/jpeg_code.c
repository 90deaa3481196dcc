#include "kernel/jpeg_code.h"

#include <stdio.h>

#include <jpeglib.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

/* libjpeg comes back by longjmp() on errors. */
struct code {
    struct jpeg_error_mgr errors;
    jmp_buf back;
    union {
        struct jpeg_decompress_struct in;
        struct jpeg_compress_struct out;
    };
    unsigned char *memory; /* what was encoded */
    unsigned long size;
    uint8_t *row;
};

static void on_error(j_common_ptr info)
{
    struct code *c = CONTAINER(info->err, struct code, errors);

    longjmp(c->back, 1);
}

static void on_message(j_common_ptr info)
{
    (void)info;
}

static struct code *code_new(void)
{
    struct code *c = calloc(1, sizeof(*c));

    if (!c)
        return NULL;
    jpeg_std_error(&c->errors);
    c->errors.error_exit = on_error;
    c->errors.output_message = on_message;
    return c;
}

static enum mst_code no_memory(struct status *st)
{
    return status_set(st, MST_RESOURCE_EXHAUSTED, "No memory for a JPEG image");
}

/* ---- decoding ---- */

static enum mst_code set_options(struct code *c, const struct jpeg_options *o,
                                 struct status *st)
{
    struct jpeg_decompress_struct *in = &c->in;
    int channels = o->channels ? o->channels : MIN(in->num_components, 4);

    if (channels == 1)
        in->out_color_space = JCS_GRAYSCALE;
    else if (in->jpeg_color_space == JCS_CMYK ||
             in->jpeg_color_space == JCS_YCCK)
        in->out_color_space = JCS_CMYK; /* made RGB of afterwards */
    else
        in->out_color_space = JCS_RGB;
    if (channels != 1 && channels != 3 && channels != 4)
        return status_set(st, MST_INVALID_ARGUMENT,
                          "Unsupported number of channels in a JPEG: %d",
                          channels);
    in->do_fancy_upsampling = o->fancy;
    in->scale_num = 1;
    in->scale_denom = (unsigned)o->ratio;
    if (o->fast)
        in->dct_method = JDCT_IFAST;
    return MST_OK;
}

/* A line of inverted CMYK to RGB, as TensorFlow does. */
static void cmyk_to_rgb(const uint8_t *from, uint8_t *to, int64_t width,
                        bool inverted)
{
    for (int64_t i = 0; i < width; i++, from += 4, to += 3)
        for (int k = 0; k < 3; k++)
            to[k] =
                (uint8_t)(inverted ? from[3] * from[k] / 255
                                   : (255 - from[3]) * (255 - from[k]) / 255);
}

/* A place for the pixels, and what part of the lines is wanted. */
static enum mst_code new_image(struct code *c, const struct jpeg_options *o,
                               int channels, struct tensor *ret,
                               struct status *st)
{
    int64_t height = c->in.output_height, width = c->in.output_width;

    if (height * width >= (1ll << 29))
        return status_set(st, MST_INVALID_ARGUMENT,
                          "JPEG size too large: %lld by %lld", (long long)width,
                          (long long)height);
    if (o->crop && (o->y < 0 || o->x < 0 || o->height <= 0 || o->width <= 0 ||
                    o->y > height - o->height || o->x > width - o->width))
        return status_set(st, MST_INVALID_ARGUMENT,
                          "Invalid JPEG data or crop window, data size %llu",
                          (unsigned long long)c->size);
    return tensor_new(ret, DT_UINT8, 3,
                      (int64_t[]){ o->crop ? o->height : height,
                                   o->crop ? o->width : width, channels },
                      st);
}

static enum mst_code read_lines(struct code *c, const struct jpeg_options *o,
                                struct tensor *ret, struct status *st)
{
    bool cmyk = c->in.out_color_space == JCS_CMYK;
    int channels = c->in.out_color_space == JCS_GRAYSCALE ? 1 : 3;
    size_t wide = (size_t)c->in.output_width * (size_t)channels, line;
    int64_t from = o->crop ? o->y : 0, x = o->crop ? o->x : 0, height;
    enum mst_code rc = new_image(c, o, channels, ret, st);

    if (rc)
        return rc;
    height = ret->dims[0];
    line = (size_t)ret->dims[1] * (size_t)channels;
    c->row = malloc((size_t)c->in.output_width * 4 + wide);
    if (!c->row)
        return no_memory(st);
    while (c->in.output_scanline < c->in.output_height) {
        int64_t y = (int64_t)c->in.output_scanline - from;
        uint8_t *rgb = c->row;
        JSAMPROW row = c->row;

        if (y >= height)
            break;
        if (jpeg_read_scanlines(&c->in, &row, 1) != 1)
            on_error((j_common_ptr)&c->in);
        if (c->errors.num_warnings && !o->recover)
            on_error((j_common_ptr)&c->in);
        if (y < 0)
            continue;
        if (cmyk) {
            rgb = c->row + (size_t)c->in.output_width * 4;
            cmyk_to_rgb(c->row, rgb, c->in.output_width,
                        c->in.saw_Adobe_marker);
        }
        memcpy(TENSOR_DATA(ret, uint8_t) + (size_t)y * line,
               rgb + (size_t)x * (size_t)channels, line);
    }
    return MST_OK;
}

static enum mst_code bad_jpeg(const struct jpeg_options *o, size_t len,
                              struct status *st)
{
    return status_set(st, MST_INVALID_ARGUMENT,
                      o && o->crop
                          ? "Invalid JPEG data or crop window, data size %zu"
                          : "Invalid JPEG data or crop window, data size %zu",
                      len);
}

enum mst_code jpeg_decode(const void *data, size_t len,
                          const struct jpeg_options *o, struct tensor *ret,
                          struct status *st)
{
    struct code *c = code_new();
    volatile enum mst_code rc = MST_INVALID_ARGUMENT;

    if (!c)
        return no_memory(st);
    bad_jpeg(o, len, st);
    c->size = len;
    c->in.err = &c->errors;
    if (!setjmp(c->back)) {
        jpeg_create_decompress(&c->in);
        jpeg_mem_src(&c->in, data, len);
        jpeg_read_header(&c->in, TRUE);
        rc = set_options(c, o, st);
        if (!rc) {
            jpeg_start_decompress(&c->in);
            rc = read_lines(c, o, ret, st);
        }
    } else {
        rc = MST_INVALID_ARGUMENT;
    }
    jpeg_destroy_decompress(&c->in);
    free(c->row);
    free(c);
    if (rc)
        tensor_unref(ret);
    else
        status_clear(st);
    return rc;
}

enum mst_code jpeg_size(const void *data, size_t len, int64_t ret[3],
                        struct status *st)
{
    struct code *c = code_new();
    volatile enum mst_code rc = MST_INVALID_ARGUMENT;

    if (!c)
        return no_memory(st);
    status_set(st, MST_INVALID_ARGUMENT, "Invalid JPEG data, size %zu", len);
    c->in.err = &c->errors;
    if (!setjmp(c->back)) {
        jpeg_create_decompress(&c->in);
        jpeg_mem_src(&c->in, data, len);
        jpeg_read_header(&c->in, TRUE);
        jpeg_calc_output_dimensions(&c->in);
        ret[0] = c->in.output_height;
        ret[1] = c->in.output_width;
        ret[2] = c->in.num_components;
        rc = MST_OK;
        status_clear(st);
    }
    jpeg_destroy_decompress(&c->in);
    free(c);
    return rc;
}

/* ---- encoding ---- */

static void set_encoding(struct code *c, int channels,
                         const struct jpeg_encoding *e)
{
    struct jpeg_compress_struct *out = &c->out;

    out->input_components = channels;
    out->in_color_space = channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
    jpeg_set_defaults(out);
    if (e->optimize)
        out->optimize_coding = TRUE;
    out->density_unit = e->centimeters ? 2 : 1;
    out->X_density = (UINT16)e->x_density;
    out->Y_density = (UINT16)e->y_density;
    jpeg_set_quality(out, e->quality, TRUE);
    if (e->progressive)
        jpeg_simple_progression(out);
    if (!e->downsample && channels == 3)
        for (int i = 0; i < 3; i++)
            out->comp_info[i].h_samp_factor = out->comp_info[i].v_samp_factor =
                1;
}

/* An APP1 segment with its name in front. */
static void write_xmp(struct code *c, const struct jpeg_encoding *e)
{
    static const char name[] = "http://ns.adobe.com/xap/1.0/";

    if (!e->xmp || !e->xmp_len || e->xmp_len > 65000)
        return;
    jpeg_write_m_header(&c->out, JPEG_APP0 + 1,
                        (unsigned)(sizeof(name) + e->xmp_len));
    for (size_t i = 0; i < sizeof(name); i++)
        jpeg_write_m_byte(&c->out, name[i]);
    for (size_t i = 0; i < e->xmp_len; i++)
        jpeg_write_m_byte(&c->out, (unsigned char)e->xmp[i]);
}

enum mst_code jpeg_encode(const uint8_t *pixels, int64_t height, int64_t width,
                          int channels, const struct jpeg_encoding *e,
                          struct text *ret, struct status *st)
{
    struct code *c = code_new();
    volatile bool good = false;

    if (!c)
        return no_memory(st);
    c->out.err = &c->errors;
    if (!setjmp(c->back)) {
        jpeg_create_compress(&c->out);
        jpeg_mem_dest(&c->out, &c->memory, &c->size);
        c->out.image_width = (JDIMENSION)width;
        c->out.image_height = (JDIMENSION)height;
        set_encoding(c, channels, e);
        jpeg_start_compress(&c->out, TRUE);
        write_xmp(c, e);
        while (c->out.next_scanline < c->out.image_height) {
            JSAMPROW row = (JSAMPROW)pixels + (size_t)c->out.next_scanline *
                                                  (size_t)width *
                                                  (size_t)channels;

            jpeg_write_scanlines(&c->out, &row, 1);
        }
        jpeg_finish_compress(&c->out);
        text_add(ret, c->memory, c->size);
        good = true;
    }
    jpeg_destroy_compress(&c->out);
    free(c->memory);
    free(c);
    return good ? MST_OK : status_set(st, MST_INTERNAL, "JPEG encoding failed");
}
