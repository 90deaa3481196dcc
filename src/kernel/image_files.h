/* Images that are only read: GIF by giflib, BMP by hand. */
#ifndef KERNEL_IMAGE_FILES_H
#define KERNEL_IMAGE_FILES_H

#include "tensor/tensor.h"

/* uint8 [frames, height, width, 3]. */
enum mst_code image_gif(const void *data, size_t len, struct tensor *ret,
                        struct status *st) MUST_USE;
/* uint8 [height, width, channels]; channels 0: as the file has them. */
enum mst_code image_bmp(const void *data, size_t len, int channels,
                        struct tensor *ret, struct status *st) MUST_USE;

#endif
