/*
 * GIF and BMP images, each to a tensor; TensorFlow only reads them.
 */
#include "kernel/image_files.h"

#include <gif_lib.h>
#include <stdlib.h>
#include <string.h>

/* More pixels than any image has in earnest; a small file may claim any. */
#define PIXELS_MAX (1ll << 29)

/* ---- GIF ---- */

struct bytes_in {
    const uint8_t *at, *end;
};

static int read_bytes(GifFileType *gif, GifByteType *to, int len)
{
    struct bytes_in *in = gif->UserData;
    size_t n = MIN((size_t)MAX(len, 0), (size_t)(in->end - in->at));

    memcpy(to, in->at, n);
    in->at += n;
    return (int)n;
}

/* One frame onto the canvas that `to` is, of width x height. */
static bool draw(const GifFileType *gif, const SavedImage *frame, uint8_t *to,
                 int64_t height, int64_t width)
{
    const GifImageDesc *d = &frame->ImageDesc;
    const ColorMapObject *colors = d->ColorMap ? d->ColorMap : gif->SColorMap;
    int64_t top = MAX(d->Top, 0), left = MAX(d->Left, 0);
    int64_t bottom = MIN((int64_t)d->Top + d->Height, height);
    int64_t right = MIN((int64_t)d->Left + d->Width, width);
    int transparent = NO_TRANSPARENT_COLOR;

    if (!colors)
        return false;
    for (int i = 0; i < frame->ExtensionBlockCount; i++) {
        const ExtensionBlock *b = &frame->ExtensionBlocks[i];
        GraphicsControlBlock g;

        if (b->Function == GRAPHICS_EXT_FUNC_CODE &&
            DGifExtensionToGCB((size_t)b->ByteCount, b->Bytes, &g) == GIF_OK)
            transparent = g.TransparentColor;
    }
    for (int64_t y = top; y < bottom; y++)
        for (int64_t x = left; x < right; x++) {
            int at = frame->RasterBits[(y - d->Top) * d->Width + (x - d->Left)];
            uint8_t *p = to + (y * width + x) * 3;

            if (at == transparent)
                continue;
            if (at >= colors->ColorCount)
                return false;
            p[0] = colors->Colors[at].Red;
            p[1] = colors->Colors[at].Green;
            p[2] = colors->Colors[at].Blue;
        }
    return true;
}

static enum mst_code gif_frames(GifFileType *gif, struct tensor *ret,
                                struct status *st)
{
    int64_t height, width, size;
    enum mst_code rc;

    if (gif->ImageCount <= 0)
        return status_set(st, MST_INVALID_ARGUMENT,
                          "gif file does not contain any image");
    /* The first frame is the canvas, as in TensorFlow. */
    height = gif->SavedImages[0].ImageDesc.Height;
    width = gif->SavedImages[0].ImageDesc.Width;
    for (int i = 0; i < gif->ImageCount; i++) {
        const GifImageDesc *d = &gif->SavedImages[i].ImageDesc;

        height = MAX(height, (int64_t)d->Top + d->Height);
        width = MAX(width, (int64_t)d->Left + d->Width);
    }
    if (height <= 0 || width <= 0 ||
        height * width * gif->ImageCount >= PIXELS_MAX)
        return status_set(st, MST_INVALID_ARGUMENT,
                          "GIF size too large: %lld by %lld, %d frames",
                          (long long)width, (long long)height, gif->ImageCount);
    rc = tensor_new(ret, DT_UINT8, 4,
                    (int64_t[]){ gif->ImageCount, height, width, 3 }, st);
    size = height * width * 3;
    for (int i = 0; i < gif->ImageCount && !rc; i++) {
        uint8_t *to = TENSOR_DATA(ret, uint8_t) + i * size;

        if (i)
            memcpy(to, to - size, (size_t)size);
        else
            memset(to, 0, (size_t)size);
        if (!draw(gif, &gif->SavedImages[i], to, height, width))
            rc = status_set(st, MST_INVALID_ARGUMENT,
                            "found color index out of range in frame %d", i);
    }
    return rc;
}

enum mst_code image_gif(const void *data, size_t len, struct tensor *ret,
                        struct status *st)
{
    struct bytes_in in = { data, (const uint8_t *)data + len };
    int error = 0;
    GifFileType *gif = DGifOpen(&in, read_bytes, &error);
    enum mst_code rc;

    if (!gif)
        return status_set(st, MST_INVALID_ARGUMENT,
                          "Invalid GIF data (size %zu), failed to open gif "
                          "file: %s",
                          len, GifErrorString(error));
    /* Frames before damage still count, if there are any. */
    if (DGifSlurp(gif) != GIF_OK && gif->ImageCount &&
        !gif->SavedImages[gif->ImageCount - 1].RasterBits)
        gif->ImageCount--;
    rc = gif_frames(gif, ret, st);
    DGifCloseFile(gif, &error);
    if (rc)
        tensor_unref(ret);
    return rc;
}

/* ---- BMP ---- */

static int32_t le32(const uint8_t *p)
{
    return (int32_t)((uint32_t)p[0] | (uint32_t)p[1] << 8 |
                     (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24);
}

static void bmp_pixels(const uint8_t *from, size_t row, bool top_down,
                       struct tensor *ret)
{
    int64_t height = ret->dims[0], width = ret->dims[1], n = ret->dims[2];
    uint8_t *to = ret->data;

    for (int64_t y = 0; y < height; y++) {
        const uint8_t *p = from + (size_t)(top_down ? y : height - 1 - y) * row;

        for (int64_t x = 0; x < width; x++, p += n, to += n) {
            memcpy(to, p, (size_t)n);
            if (n >= 3) { /* blue comes first in the file */
                to[0] = p[2];
                to[2] = p[0];
            }
        }
    }
}

enum mst_code image_bmp(const void *data, size_t len, int channels,
                        struct tensor *ret, struct status *st)
{
    const uint8_t *p = data;
    int64_t offset, width, height, bits, n;
    size_t row;
    enum mst_code rc;

    if (len < 32)
        return status_set(st, MST_INVALID_ARGUMENT,
                          "Incomplete bmp content, requires at least 32 bytes "
                          "to find the header size, width, height, and bpp, "
                          "got %zu bytes",
                          len);
    offset = le32(p + 10);
    width = le32(p + 18);
    height = le32(p + 22);
    bits = p[28] | p[29] << 8;
    n = bits / 8;
    if (channels && channels != n)
        return status_set(st, MST_INVALID_ARGUMENT,
                          "channels attribute %d does not match bits per pixel "
                          "from file %lld",
                          channels, (long long)n);
    if (n != 1 && n != 3 && n != 4)
        return status_set(st, MST_INVALID_ARGUMENT,
                          "Number of channels inherent in the image must be 1, "
                          "3 or 4, was %lld",
                          (long long)n);
    if (width <= 0 || height == 0 || height == INT32_MIN ||
        width * llabs(height) >= PIXELS_MAX)
        return status_set(st, MST_INVALID_ARGUMENT,
                          "Total possible pixel bytes must be less than 2^30");
    row = ((size_t)(n * width) + 3) / 4 * 4;
    if (offset < 0 || (uint64_t)offset > len ||
        row * (size_t)llabs(height) > len - (size_t)offset)
        return status_set(st, MST_INVALID_ARGUMENT,
                          "Input size should match (header_size + row_size * "
                          "abs_height) but they differ by %lld",
                          (long long)len - offset -
                              (long long)row * llabs(height));
    rc = tensor_new(ret, DT_UINT8, 3, (int64_t[]){ llabs(height), width, n },
                    st);
    if (!rc)
        bmp_pixels(p + offset, row, height < 0, ret);
    return rc;
}
