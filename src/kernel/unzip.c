#include "kernel/unzip.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "store/file.h"

/* TensorFlow's limit. */
#define BYTES_MAX ((size_t)1 << 30)
#define PIECE     (64u << 10)

bool unzip_format_of(struct attr_text name, enum unzip_format *ret)
{
    static const char *const names[] = { "", "ZLIB", "GZIP" };

    for (size_t i = 0; i < COUNT(names); i++)
        if (name.len == strlen(names[i]) &&
            !memcmp(name.data, names[i], name.len)) {
            *ret = (enum unzip_format)i;
            return true;
        }
    return false;
}

static enum mst_code fail(const z_stream *z, int code, struct status *st)
{
    return status_set(st, MST_DATA_LOSS, "inflate() failed with error %d%s%s",
                      code, z->msg ? ": " : "", z->msg ? z->msg : "");
}

/* Until the input is used up; gzip files may be joined. */
static enum mst_code inflate_pieces(z_stream *z, bool joined, struct text *ret,
                                    struct status *st)
{
    uint8_t piece[PIECE];

    for (;;) {
        int code;

        z->next_out = piece;
        z->avail_out = sizeof(piece);
        code = inflate(z, Z_NO_FLUSH);
        if (code != Z_OK && code != Z_STREAM_END && code != Z_BUF_ERROR)
            return fail(z, code, st);
        if (ret->len + (sizeof(piece) - z->avail_out) > BYTES_MAX)
            return status_set(st, MST_INVALID_ARGUMENT,
                              "Decompressed size exceeds 1GB limit");
        text_add(ret, piece, sizeof(piece) - z->avail_out);
        if (code == Z_STREAM_END && joined && z->avail_in)
            inflateReset(z);
        else if (code != Z_OK || (!z->avail_in && z->avail_out))
            return MST_OK;
    }
}

enum mst_code unzip_all(enum unzip_format format, const void *data, size_t len,
                        struct text *ret, struct status *st)
{
    z_stream z = { 0 };
    enum mst_code rc;

    if (format == UNZIP_NONE) {
        text_add(ret, data, len);
        return MST_OK;
    }
    if (len > UINT32_MAX)
        return status_set(st, MST_INVALID_ARGUMENT,
                          "Compressed data of more than 4 GB");
    if (inflateInit2(&z, MAX_WBITS + (format == UNZIP_GZIP ? 16 : 0)) != Z_OK)
        return status_set(st, MST_RESOURCE_EXHAUSTED, "No memory for zlib");
    z.next_in = (uint8_t *)(len ? data : "");
    z.avail_in = (uInt)len;
    rc = inflate_pieces(&z, format == UNZIP_GZIP, ret, st);
    inflateEnd(&z);
    return rc;
}

enum mst_code unzip_file(enum unzip_format format, const char *path,
                         struct text *ret, struct status *st)
{
    struct file_in in = { 0 };
    char *data = NULL;
    enum mst_code rc = file_in_open(&in, path, st);

    if (!rc) {
        data = malloc((size_t)in.size + 1);
        if (!data)
            rc = status_set(st, MST_RESOURCE_EXHAUSTED,
                            "No memory for the %llu bytes of %s",
                            (unsigned long long)in.size, path);
    }
    if (!rc)
        rc = file_in_read(&in, 0, data, (size_t)in.size, st);
    if (!rc)
        rc = unzip_all(format, data, (size_t)in.size, ret, st);
    free(data);
    file_in_close(&in);
    return rc;
}
