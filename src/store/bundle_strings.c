#include "store/bundle_strings.h"

#include <stdlib.h>

#include "base/crc32c.h"

/* ---- writing ---- */

static enum mst_code write_lengths(struct file_out *out, const struct tensor *t,
                                   uint32_t *crc, struct status *st)
{
    struct bytes varint = { 0 };
    enum mst_code rc = MST_OK;

    for (int64_t i = 0; i < t->count && !rc; i++) {
        uint64_t len = tensor_str(t, i)->len;
        uint32_t len32 = (uint32_t)len;

        /* Checksummed as numbers of 32 bits, larger ones as 64. */
        *crc = len > UINT32_MAX ? crc32c(*crc, &len, sizeof(len))
                                : crc32c(*crc, &len32, sizeof(len32));
        varint.len = 0;
        bytes_varint(&varint, len);
        rc = file_out_write(out, varint.data, varint.len, st);
    }
    bytes_done(&varint);
    return rc;
}

enum mst_code bundle_strings_write(struct file_out *out, const struct tensor *t,
                                   uint32_t *ret_crc, struct status *st)
{
    uint32_t crc = 0, masked;
    enum mst_code rc;

    rc = write_lengths(out, t, &crc, st);
    if (rc)
        return rc;
    masked = crc32c_mask(crc);
    crc = crc32c(crc, &masked, sizeof(masked));
    rc = file_out_write(out, &masked, sizeof(masked), st);
    for (int64_t i = 0; i < t->count && !rc; i++) {
        const struct str *s = tensor_str(t, i);

        crc = crc32c(crc, s->data, s->len);
        rc = file_out_write(out, s->data, s->len, st);
    }
    *ret_crc = crc;
    return rc;
}

/* ---- reading ---- */

static enum mst_code damaged(struct status *st)
{
    return status_set(st, MST_DATA_LOSS,
                      "String lengths longer than expected: the tensor's "
                      "strings do not fit into its bytes");
}

static enum mst_code string_set(struct str *s, const uint8_t *data, size_t len,
                                struct status *st)
{
    free(s->data);
    *s = (struct str){ 0 };
    if (!len)
        return MST_OK;
    s->data = malloc(len);
    if (!s->data)
        return status_set(st, MST_RESOURCE_EXHAUSTED,
                          "No memory for a string of %zu bytes", len);
    memcpy(s->data, data, len);
    s->len = len;
    return MST_OK;
}

enum mst_code bundle_strings_parse(struct tensor *t, struct pb_in data,
                                   bool unchecked, uint32_t *ret_crc,
                                   struct status *st)
{
    struct pb_in lengths = data;
    uint32_t crc = 0, stored;
    enum mst_code rc = MST_OK;

    for (int64_t i = 0; i < t->count && !data.bad; i++) {
        uint64_t len = cursor_varint(&data);
        uint32_t len32 = (uint32_t)len;

        crc = len > UINT32_MAX ? crc32c(crc, &len, sizeof(len))
                               : crc32c(crc, &len32, sizeof(len32));
    }
    stored = cursor_u32(&data);
    if (data.bad)
        return damaged(st);
    if (crc32c_unmask(stored) != crc && !unchecked)
        return status_set(st, MST_DATA_LOSS,
                          "The length checksum does not match: expected %08u "
                          "but actual is %08u",
                          crc32c_unmask(stored), crc);
    crc = crc32c(crc, &stored, sizeof(stored));
    for (int64_t i = 0; i < t->count && !rc; i++) {
        uint64_t len = cursor_varint(&lengths);
        const uint8_t *bytes = cursor_bytes(&data, len);

        if (!bytes)
            return damaged(st);
        crc = crc32c(crc, bytes, (size_t)len);
        rc = string_set(tensor_str(t, i), bytes, (size_t)len, st);
    }
    if (!rc && cursor_left(&data))
        return damaged(st);
    *ret_crc = crc;
    return rc;
}
