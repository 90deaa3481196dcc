#include "store/cursor.h"

#include "base/mem.h"

/* ---- reading ---- */

static void spoil(struct pb_in *c)
{
    c->bad = true;
    c->at = c->end;
}

uint64_t cursor_varint(struct pb_in *c)
{
    uint64_t v = 0;

    for (int shift = 0; shift < 64 && c->at < c->end; shift += 7) {
        uint8_t byte = *c->at++;

        v |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80))
            return v;
    }
    spoil(c);
    return 0;
}

uint32_t cursor_varint32(struct pb_in *c)
{
    uint64_t v = cursor_varint(c);

    if (v > UINT32_MAX) {
        spoil(c);
        return 0;
    }
    return (uint32_t)v;
}

const uint8_t *cursor_bytes(struct pb_in *c, uint64_t len)
{
    const uint8_t *p = c->at;

    if (c->bad || len > cursor_left(c)) {
        spoil(c);
        return NULL;
    }
    c->at += len;
    return p;
}

uint32_t cursor_u32(struct pb_in *c)
{
    const uint8_t *p = cursor_bytes(c, 4);

    return p ? load_u32(p) : 0;
}

uint64_t cursor_u64(struct pb_in *c)
{
    const uint8_t *p = cursor_bytes(c, 8);
    uint64_t v = 0;

    if (p)
        memcpy(&v, p, sizeof(v));
    return v;
}

/* ---- writing ---- */

void bytes_done(struct bytes *b)
{
    mem_free(b->data);
    *b = (struct bytes){ 0 };
}

void bytes_put(struct bytes *b, const void *data, size_t len)
{
    if (!len)
        return;
    if (b->room - b->len < len) {
        b->room = MAX(b->room * 2, b->len + len + 32);
        b->data = mem_grow(b->data, b->room, 1);
    }
    memcpy(b->data + b->len, data, len);
    b->len += len;
}

void bytes_u8(struct bytes *b, uint8_t v)
{
    bytes_put(b, &v, 1);
}

void bytes_u32(struct bytes *b, uint32_t v)
{
    bytes_put(b, &v, sizeof(v));
}

void bytes_u64(struct bytes *b, uint64_t v)
{
    bytes_put(b, &v, sizeof(v));
}

void bytes_varint(struct bytes *b, uint64_t v)
{
    uint8_t out[10];
    size_t n = 0;

    for (; v >= 0x80; v >>= 7)
        out[n++] = (uint8_t)(v | 0x80);
    out[n++] = (uint8_t)v;
    bytes_put(b, out, n);
}
