/* Sound in the WAV format, 16 bits a sample. */
#ifndef KERNEL_WAV_H
#define KERNEL_WAV_H

#include "kernel/text.h"

/* frames * channels samples from -1 to 1. */
enum mst_code wav_encode(const float *samples, int64_t frames, int64_t channels,
                         int64_t rate, struct text *ret,
                         struct status *st) MUST_USE;

struct wav {
    uint32_t rate;
    uint16_t channels;
    int64_t frames;
    const uint8_t *samples; /* in the bytes that were given */
};

enum mst_code wav_parse(const void *data, size_t len, struct wav *ret,
                        struct status *st) MUST_USE;

#endif
