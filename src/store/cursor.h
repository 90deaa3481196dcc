/*
 * The alphabet of the file formats here: little-endian numbers and varints,
 * read through a cursor that cannot leave its bytes, and written into bytes
 * that grow. Messages are wire/pb.h's matter, whose cursor this is.
 *
 * A cursor that meets something wrong sets `bad` and gives zeros from then on,
 * so a parser may read a whole record and look once at its end.
 */
#ifndef STORE_CURSOR_H
#define STORE_CURSOR_H

#include <string.h>

#include "wire/pb.h"

/* ---- reading ---- */

static inline struct pb_in cursor_over(const void *data, size_t len)
{
    const uint8_t *p = data;

    return (struct pb_in){ p, p ? p + len : p, false };
}

static inline size_t cursor_left(const struct pb_in *c)
{
    return (size_t)(c->end - c->at);
}

uint64_t cursor_varint(struct pb_in *c);
/* A varint that fits into 32 bits; anything else is bad. */
uint32_t cursor_varint32(struct pb_in *c);
uint32_t cursor_u32(struct pb_in *c);
uint64_t cursor_u64(struct pb_in *c);
/* The next len bytes; NULL and bad when there are fewer. */
const uint8_t *cursor_bytes(struct pb_in *c, uint64_t len);

/* What lies in a field, and zero or nothing when it is of another kind than
 * the reader expects: then a file is damaged, and its values do not matter. */
static inline uint64_t field_number(const struct pb_field *f)
{
    return f->wire == PB_LEN ? 0 : f->value;
}

static inline struct pb_in field_message(const struct pb_field *f)
{
    return f->wire == PB_LEN ? pb_in(f->data, f->len) : cursor_over(NULL, 0);
}

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

#endif
