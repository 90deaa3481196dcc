/*
 * The alphabet of the file formats here: little-endian numbers, varints and
 * protobuf fields, read through a cursor that cannot leave its bytes, and
 * written into bytes that grow.
 *
 * A cursor that meets something wrong sets `bad` and gives zeros from then on,
 * so a parser may read a whole record and look once at its end.
 *
 * Messages of this size need no generated code: an entry of a checkpoint's
 * index has seven fields, and there may be a million of them.
 */
#ifndef STORE_CODING_H
#define STORE_CODING_H

#include <string.h>

#include "base/base.h"

/* ---- reading ---- */

struct cursor {
    const uint8_t *at, *end;
    bool bad;
};

static inline struct cursor cursor_over(const void *data, size_t len)
{
    const uint8_t *p = data;

    return (struct cursor){ .at = p, .end = p ? p + len : p };
}

static inline size_t cursor_left(const struct cursor *c)
{
    return (size_t)(c->end - c->at);
}

uint64_t cursor_varint(struct cursor *c);
/* A varint that fits into 32 bits; anything else is bad. */
uint32_t cursor_varint32(struct cursor *c);
uint32_t cursor_u32(struct cursor *c);
uint64_t cursor_u64(struct cursor *c);
/* The next len bytes; NULL and bad when there are fewer. */
const uint8_t *cursor_bytes(struct cursor *c, uint64_t len);

/* A protobuf field. */
struct field {
    uint32_t number;
    uint64_t value;       /* varint, fixed32, fixed64 */
    struct cursor nested; /* length-delimited; empty otherwise */
};

enum { WIRE_VARINT, WIRE_FIXED64, WIRE_BYTES, WIRE_FIXED32 = 5 };

/* False at the end, and when the bytes are no message (then bad is set). */
bool cursor_field(struct cursor *c, struct field *ret);

static inline uint32_t load_u32(const void *p)
{
    uint32_t v;

    memcpy(&v, p, sizeof(v));
    return v;
}

/* ---- writing ---- */

struct bytes {
    uint8_t *data;
    size_t len, room;
};

void bytes_done(struct bytes *b);
void bytes_put(struct bytes *b, const void *data, size_t len);
void bytes_u8(struct bytes *b, uint8_t v);
void bytes_u32(struct bytes *b, uint32_t v);
void bytes_u64(struct bytes *b, uint64_t v);
void bytes_varint(struct bytes *b, uint64_t v);

/* Protobuf fields. A varint of zero is left out, as proto3 does. */
void bytes_tag(struct bytes *b, uint32_t number, unsigned wire_type);
void bytes_field_varint(struct bytes *b, uint32_t number, uint64_t v);
void bytes_field_fixed32(struct bytes *b, uint32_t number, uint32_t v);
void bytes_field_fixed64(struct bytes *b, uint32_t number, uint64_t v);
void bytes_field_bytes(struct bytes *b, uint32_t number, const void *data,
                       size_t len);

#endif
