#include "store/snappy.h"

#include "store/cursor.h"

/* A copy of 64 bytes takes three at least. */
#define RATIO_MAX 22

bool snappy_length(const void *data, size_t len, size_t *ret)
{
    struct pb_in c = cursor_over(data, len);
    uint32_t n = cursor_varint32(&c);

    if (c.bad || n / RATIO_MAX > len)
        return false;
    *ret = n;
    return true;
}

/* The one to four bytes of a literal's length. */
static size_t literal_length(struct pb_in *c, uint8_t tag)
{
    size_t n = tag >> 2, bytes = n < 60 ? 0 : n - 59;
    const uint8_t *p = cursor_bytes(c, bytes);

    if (!p || !bytes)
        return n + 1;
    n = 0;
    for (size_t i = 0; i < bytes; i++)
        n |= (size_t)p[i] << (8 * i);
    return n + 1;
}

static size_t copy_offset(struct pb_in *c, uint8_t tag)
{
    const uint8_t *p;

    switch (tag & 3) {
    case 1:
        p = cursor_bytes(c, 1);
        return p ? (size_t)(tag >> 5) << 8 | p[0] : 0;
    case 2:
        p = cursor_bytes(c, 2);
        return p ? (size_t)p[0] | (size_t)p[1] << 8 : 0;
    default:
        return cursor_u32(c);
    }
}

bool snappy_unpack(const void *data, size_t len, void *out, size_t out_len)
{
    struct pb_in c = cursor_over(data, len);
    uint8_t *to = out;
    size_t at = 0;

    if (cursor_varint32(&c) != out_len)
        return false;
    while (c.at < c.end) {
        uint8_t tag = *c.at++;
        size_t n, back;

        if (!(tag & 3)) {
            const uint8_t *p;

            n = literal_length(&c, tag);
            p = cursor_bytes(&c, n);
            if (!p || n > out_len - at)
                return false;
            memcpy(to + at, p, n);
            at += n;
            continue;
        }
        n = (tag & 3) == 1 ? 4u + ((tag >> 2) & 7) : 1u + (tag >> 2);
        back = copy_offset(&c, tag);
        if (c.bad || !back || back > at || n > out_len - at)
            return false;
        /* The two may overlap on purpose: that is how runs are written. */
        for (; n; n--, at++)
            to[at] = to[at - back];
    }
    return at == out_len && !c.bad;
}
