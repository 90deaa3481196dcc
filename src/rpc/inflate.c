/*
 * The inflated size is not known beforehand, and the peer must not be believed
 * about it: the output grows by doubling, as bytes really come out.
 */
#include "rpc/inflate.h"

#include <limits.h>
#include <string.h>
#include <zlib.h>

#define FIRST_MIN   ((size_t)4096)
#define WINDOW_ZLIB 15
#define WINDOW_GZIP (15 + 16)

enum inflate_codec inflate_codec_of(const char *name, size_t len)
{
    if (len == 8 && !memcmp(name, "identity", 8))
        return INFLATE_IDENTITY;
    if (len == 4 && !memcmp(name, "gzip", 4))
        return INFLATE_GZIP;
    if (len == 7 && !memcmp(name, "deflate", 7))
        return INFLATE_DEFLATE;
    return INFLATE_UNKNOWN;
}

static enum mst_code no_memory(struct status *st)
{
    return status_set(st, MST_RESOURCE_EXHAUSTED,
                      "no memory for the decompressed message");
}

/* A larger buffer with the first `have` bytes of old, which is let go. */
static struct buffer *regrow(struct buffer *old, size_t have, size_t size)
{
    struct buffer *b = buffer_new(size);

    if (b && have)
        memcpy(b->data, old->data, have);
    buffer_unref(old);
    return b;
}

static enum mst_code too_large(size_t max, struct status *st)
{
    return status_set(st, MST_RESOURCE_EXHAUSTED,
                      "Received message larger than max (%zu)", max);
}

/* Takes up to one byte more than is allowed, to know that there is more. */
static enum mst_code run(z_stream *z, size_t len, size_t max,
                         struct buffer **ret, struct status *st)
{
    size_t size = MIN(max + 1, MAX(len * 4, FIRST_MIN)), have = 0;
    struct buffer *out = buffer_new(size);
    enum mst_code code = MST_OK;
    int rc = Z_OK;

    while (out && rc == Z_OK && have <= max) {
        size_t n = MIN(size - have, (size_t)INT_MAX);

        z->next_out = out->data + have;
        z->avail_out = (uInt)n;
        rc = inflate(z, Z_NO_FLUSH);
        have += n - z->avail_out;
        if (rc == Z_OK && have == size && have <= max) {
            size = MIN(max + 1, size * 2);
            out = regrow(out, have, size);
        }
    }
    if (out && have > max)
        code = too_large(max, st);
    else if (out && (rc != Z_STREAM_END || z->avail_in))
        code = status_set(st, MST_INTERNAL,
                          "the compressed message cannot be decompressed");
    else if (out && have < size)
        out = regrow(out, have, have);
    if (!out)
        return no_memory(st);
    if (code)
        buffer_unref(out);
    else
        *ret = out;
    return code;
}

enum mst_code inflate_message(enum inflate_codec codec, const uint8_t *data,
                              size_t len, size_t max, struct buffer **ret,
                              struct status *st)
{
    z_stream z = { .next_in = (Bytef *)data, .avail_in = (uInt)len };
    enum mst_code code;

    if (len > UINT_MAX ||
        inflateInit2(&z, codec == INFLATE_GZIP ? WINDOW_GZIP : WINDOW_ZLIB))
        return no_memory(st);
    code = run(&z, len, max, ret, st);
    inflateEnd(&z);
    return code;
}
