/* PNG images, by libpng. Whatever comes in, what is wrong is said. */
#ifndef KERNEL_PNG_CODE_H
#define KERNEL_PNG_CODE_H

#include "kernel/text.h"

/* An image of 8 or 16 bits a channel (the latter in the machine's order);
 * compression -1 is zlib's choice. */
enum mst_code png_encode(const void *pixels, int64_t height, int64_t width,
                         int channels, int bits, int compression,
                         struct text *ret, struct status *st) MUST_USE;
/* channels 0: as the file has them. The tensor is uint8 or uint16, of shape
 * [height, width, channels]. */
enum mst_code png_decode(const void *data, size_t len, int channels,
                         enum dtype dt, struct tensor *ret,
                         struct status *st) MUST_USE;

#endif
