#include "store/coding.h"

#include "base/mem.h"

/* ---- reading ---- */

static void spoil(struct cursor *c)
{
    c->bad = true;
    c->at = c->end;
}

uint64_t cursor_varint(struct cursor *c)
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

uint32_t cursor_varint32(struct cursor *c)
{
    uint64_t v = cursor_varint(c);

    if (v > UINT32_MAX) {
        spoil(c);
        return 0;
    }
    return (uint32_t)v;
}

const uint8_t *cursor_bytes(struct cursor *c, uint64_t len)
{
    const uint8_t *p = c->at;

    if (c->bad || len > cursor_left(c)) {
        spoil(c);
        return NULL;
    }
    c->at += len;
    return p;
}

uint32_t cursor_u32(struct cursor *c)
{
    const uint8_t *p = cursor_bytes(c, 4);

    return p ? load_u32(p) : 0;
}

uint64_t cursor_u64(struct cursor *c)
{
    const uint8_t *p = cursor_bytes(c, 8);
    uint64_t v = 0;

    if (p)
        memcpy(&v, p, sizeof(v));
    return v;
}

bool cursor_field(struct cursor *c, struct field *ret)
{
    uint64_t tag, len;
    const uint8_t *p;

    if (c->at == c->end)
        return false;
    tag = cursor_varint(c);
    *ret = (struct field){ .number = (uint32_t)(tag >> 3) };
    if (!ret->number || tag > UINT32_MAX)
        spoil(c);
    switch (tag & 7) {
    case WIRE_VARINT:
        ret->value = cursor_varint(c);
        break;
    case WIRE_FIXED64:
        ret->value = cursor_u64(c);
        break;
    case WIRE_FIXED32:
        ret->value = cursor_u32(c);
        break;
    case WIRE_BYTES:
        len = cursor_varint(c);
        p = cursor_bytes(c, len);
        ret->nested = cursor_over(p, p ? len : 0);
        break;
    default: /* groups ended long before these files began */
        spoil(c);
    }
    return !c->bad;
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

void bytes_tag(struct bytes *b, uint32_t number, unsigned wire_type)
{
    bytes_varint(b, (uint64_t)number << 3 | wire_type);
}

void bytes_field_varint(struct bytes *b, uint32_t number, uint64_t v)
{
    if (!v)
        return;
    bytes_tag(b, number, WIRE_VARINT);
    bytes_varint(b, v);
}

void bytes_field_fixed32(struct bytes *b, uint32_t number, uint32_t v)
{
    bytes_tag(b, number, WIRE_FIXED32);
    bytes_u32(b, v);
}

void bytes_field_fixed64(struct bytes *b, uint32_t number, uint64_t v)
{
    bytes_tag(b, number, WIRE_FIXED64);
    bytes_u64(b, v);
}

void bytes_field_bytes(struct bytes *b, uint32_t number, const void *data,
                       size_t len)
{
    bytes_tag(b, number, WIRE_BYTES);
    bytes_varint(b, len);
    bytes_put(b, data, len);
}
