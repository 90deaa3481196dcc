/* JPEG images, by libjpeg-turbo. Whatever comes in, what is wrong is said. */
#ifndef KERNEL_JPEG_CODE_H
#define KERNEL_JPEG_CODE_H

#include "kernel/text.h"

struct jpeg_options {
    int channels; /* 0: as the file has them; else 1 or 3 */
    int ratio;    /* 1, 2, 4 or 8 */
    bool fancy, recover;
    float least; /* the part of the lines that must be there to recover */
    bool fast;   /* a quicker transform */
    bool crop;
    int64_t y, x, height, width; /* of the crop */
};

enum mst_code jpeg_decode(const void *data, size_t len,
                          const struct jpeg_options *o, struct tensor *ret,
                          struct status *st) MUST_USE;
/* Height, width and channels, from the head alone. */
enum mst_code jpeg_size(const void *data, size_t len, int64_t ret[3],
                        struct status *st) MUST_USE;

struct jpeg_encoding {
    int quality;
    bool progressive, optimize, downsample;
    bool centimeters; /* of the density; else inches */
    int x_density, y_density;
    const char *xmp; /* metadata, or NULL */
    size_t xmp_len;
};

/* 1 or 3 channels. */
enum mst_code jpeg_encode(const uint8_t *pixels, int64_t height, int64_t width,
                          int channels, const struct jpeg_encoding *e,
                          struct text *ret, struct status *st) MUST_USE;

#endif
