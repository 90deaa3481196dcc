#include "kernel/wav.h"

#include <math.h>
#include <string.h>

#define HEAD 44

static void put(uint8_t *to, uint32_t v, int bytes)
{
    for (int i = 0; i < bytes; i++)
        to[i] = (uint8_t)(v >> (8 * i));
}

static uint32_t get(const uint8_t *from, int bytes)
{
    uint32_t v = 0;

    for (int i = 0; i < bytes; i++)
        v |= (uint32_t)from[i] << (8 * i);
    return v;
}

enum mst_code wav_encode(const float *samples, int64_t frames, int64_t channels,
                         int64_t rate, struct text *ret, struct status *st)
{
    uint8_t head[HEAD] = "RIFF----WAVEfmt ", b[2];
    uint64_t size = (uint64_t)frames * (uint64_t)channels * 2;

    if (rate <= 0 || rate > UINT32_MAX)
        return status_set(st, MST_INVALID_ARGUMENT,
                          "sample_rate must be in (0, 2^32), got: %lld",
                          (long long)rate);
    if (channels <= 0 || channels > UINT16_MAX)
        return status_set(st, MST_INVALID_ARGUMENT,
                          "num_channels must be in (0, 2^16), got: %lld",
                          (long long)channels);
    if (frames <= 0)
        return status_set(st, MST_INVALID_ARGUMENT,
                          "num_frames must be positive.");
    if (size > UINT32_MAX - HEAD)
        return status_set(st, MST_INVALID_ARGUMENT,
                          "Provided channels and frames cannot be encoded as a "
                          "WAV.");
    put(head + 4, (uint32_t)size + HEAD - 8, 4);
    put(head + 16, 16, 4);
    put(head + 20, 1, 2);
    put(head + 22, (uint32_t)channels, 2);
    put(head + 24, (uint32_t)rate, 4);
    put(head + 28, (uint32_t)(rate * channels * 2), 4);
    put(head + 32, (uint32_t)channels * 2, 2);
    put(head + 34, 16, 2);
    memcpy(head + 36, "data", 4);
    put(head + 40, (uint32_t)size, 4);
    text_add(ret, head, HEAD);
    for (int64_t i = 0; i < frames * channels; i++) {
        float x = roundf(samples[i] * 32768.f);

        x = x > 32767 ? 32767 : x >= -32768 ? x : -32768;
        put(b, (uint32_t)(int32_t)x, 2);
        text_add(ret, b, 2);
    }
    return MST_OK;
}

enum mst_code wav_parse(const void *data, size_t len, struct wav *ret,
                        struct status *st)
{
    const uint8_t *p = data;
    size_t at = 12;
    bool have_format = false;

    if (len < 4)
        return status_set(st, MST_INVALID_ARGUMENT,
                          "Data too short when trying to read string");
    if (len < 12 || memcmp(p, "RIFF", 4) || memcmp(p + 8, "WAVE", 4))
        return status_set(st, MST_INVALID_ARGUMENT,
                          "Header mismatch: Expected RIFF but found %.*s", 4,
                          (const char *)data);
    *ret = (struct wav){ 0 };
    while (len - at >= 8) {
        uint32_t size = get(p + at + 4, 4);
        const uint8_t *body = p + at + 8;
        size_t left = len - at - 8;

        if (!memcmp(p + at, "fmt ", 4) && left >= 16 && size >= 16) {
            uint32_t format = get(body, 2), bits = get(body + 14, 2);

            ret->channels = (uint16_t)get(body + 2, 2);
            ret->rate = get(body + 4, 4);
            if ((format != 1 && format != 0xfffe) || bits != 16)
                return status_set(st, MST_INVALID_ARGUMENT,
                                  "Can only read 16-bit WAV files, but "
                                  "received %u",
                                  bits);
            have_format = ret->channels != 0;
        } else if (!memcmp(p + at, "data", 4)) {
            if (!have_format)
                return status_set(st, MST_INVALID_ARGUMENT,
                                  "Bad audio format for WAV");
            if (size > left)
                return status_set(st, MST_INVALID_ARGUMENT,
                                  "Data too short when trying to read string");
            ret->samples = body;
            ret->frames = size / (2 * ret->channels);
            return MST_OK;
        }
        if (size > left)
            break;
        at += 8 + size;
    }
    return status_set(st, MST_INVALID_ARGUMENT,
                      "Data too short when trying to read string");
}
