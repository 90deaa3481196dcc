#include "wire/pb.h"

#include <string.h>

#include "base/mem.h"

#define GROUP_DEPTH_MAX 64

bool pb_varint(const uint8_t **at, const uint8_t *end, uint64_t *ret)
{
    const uint8_t *p = *at;
    uint64_t v = 0;

    for (int shift = 0; shift < 70 && p < end; shift += 7) {
        uint8_t b = *p++;

        v |= (uint64_t)(b & 0x7f) << (shift < 64 ? shift : 63);
        if (!(b & 0x80)) {
            *at = p;
            *ret = v;
            return true;
        }
    }
    return false;
}

static bool fixed(struct pb_in *in, size_t n, uint64_t *ret)
{
    *ret = 0;
    if ((size_t)(in->end - in->at) < n)
        return false;
    memcpy(ret, in->at, n); /* little endian, as this tree requires */
    in->at += n;
    return true;
}

static bool value(struct pb_in *in, struct pb_field *f)
{
    uint64_t n;

    switch (f->wire) {
    case PB_VARINT:
        return pb_varint(&in->at, in->end, &f->value);
    case PB_FIXED64:
        return fixed(in, 8, &f->value);
    case PB_FIXED32:
        return fixed(in, 4, &f->value);
    case PB_LEN:
        if (!pb_varint(&in->at, in->end, &n) ||
            n > (uint64_t)(in->end - in->at))
            return false;
        f->data = in->at;
        f->len = (size_t)n;
        in->at += n;
        return true;
    default:
        return false;
    }
}

static bool tag(struct pb_in *in, struct pb_field *f)
{
    uint64_t t;

    if (!pb_varint(&in->at, in->end, &t) || t > UINT32_MAX || !(t >> 3))
        return false;
    f->number = (uint32_t)(t >> 3);
    f->wire = (enum pb_wire)(t & 7);
    return true;
}

/* Over a group, without recursion. */
static bool skip_group(struct pb_in *in)
{
    struct pb_field f;
    int depth = 1;

    while (depth) {
        if (!tag(in, &f))
            return false;
        if (f.wire == PB_START_GROUP) {
            if (++depth > GROUP_DEPTH_MAX)
                return false;
        } else if (f.wire == PB_END_GROUP) {
            depth--;
        } else if (!value(in, &f)) {
            return false;
        }
    }
    return true;
}

bool pb_next(struct pb_in *in, struct pb_field *f)
{
    while (!in->bad && in->at < in->end) {
        if (!tag(in, f)) {
            in->bad = true;
        } else if (f->wire == PB_START_GROUP) {
            in->bad = !skip_group(in);
        } else {
            in->bad = !value(in, f);
            return !in->bad;
        }
    }
    return false;
}

/* ---- writing ---- */

void pb_out_init(struct pb_out *o)
{
    o->data = o->few;
    o->len = 0;
    o->room = sizeof(o->few);
    o->borrowed = false;
}

void pb_out_into(struct pb_out *o, void *data, size_t room)
{
    o->data = data;
    o->len = 0;
    o->room = room;
    o->borrowed = true;
}

void pb_out_done(struct pb_out *o)
{
    if (o->data != o->few && !o->borrowed)
        mem_free(o->data);
    pb_out_init(o);
}

uint8_t *pb_out_reserve(struct pb_out *o, size_t len)
{
    uint8_t *at;

    if (o->room - o->len < len) {
        size_t room = MAX(o->room * 2, o->len + len);

        CHECK(!o->borrowed);
        if (o->data == o->few) {
            o->data = mem_grow(NULL, room, 1);
            memcpy(o->data, o->few, o->len);
        } else {
            o->data = mem_grow(o->data, room, 1);
        }
        o->room = room;
    }
    at = o->data + o->len;
    o->len += len;
    return at;
}

void pb_put_varint(struct pb_out *o, uint64_t v)
{
    uint8_t *p = pb_out_reserve(o, pb_varint_size(v));

    for (; v >= 0x80; v >>= 7)
        *p++ = (uint8_t)(v | 0x80);
    *p = (uint8_t)v;
}

void pb_put_tag(struct pb_out *o, uint32_t number, enum pb_wire wire)
{
    pb_put_varint(o, (uint64_t)number << 3 | wire);
}

void pb_put_uint(struct pb_out *o, uint32_t number, uint64_t value)
{
    pb_put_tag(o, number, PB_VARINT);
    pb_put_varint(o, value);
}

void pb_put_bytes(struct pb_out *o, uint32_t number, const void *data,
                  size_t len)
{
    pb_put_tag(o, number, PB_LEN);
    pb_put_varint(o, len);
    pb_put_raw(o, data, len);
}

void pb_put_raw(struct pb_out *o, const void *data, size_t len)
{
    if (len)
        memcpy(pb_out_reserve(o, len), data, len);
}
