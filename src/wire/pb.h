/*
 * Protobuf by hand, for the few messages that every step needs: a reader that
 * points into the bytes it was given, and a writer into a growing buffer.
 *
 * Reader: pb_next() steps over one field and says what it was; on a LEN field
 * `data` and `len` lie in the source. Groups are skipped. A field that is cut
 * or malformed sets `bad` and ends the walk.
 */
#ifndef WIRE_PB_H
#define WIRE_PB_H

#include "base/base.h"

enum pb_wire {
    PB_VARINT = 0,
    PB_FIXED64 = 1,
    PB_LEN = 2,
    PB_START_GROUP = 3,
    PB_END_GROUP = 4,
    PB_FIXED32 = 5,
};

struct pb_in {
    const uint8_t *at, *end;
    bool bad;
};

struct pb_field {
    uint32_t number;
    enum pb_wire wire;
    uint64_t value; /* varint, fixed64, fixed32 */
    const uint8_t *data;
    size_t len; /* PB_LEN */
};

static inline struct pb_in pb_in(const void *data, size_t len)
{
    const uint8_t *at = len ? data : (const uint8_t *)"";

    return (struct pb_in){ at, at + len, false };
}

/* False at the end and on a broken message (bad is set then). */
bool pb_next(struct pb_in *in, struct pb_field *f);
/* Reads a varint; false when there is none whole. */
bool pb_varint(const uint8_t **at, const uint8_t *end, uint64_t *ret);

/* ---- writing ---- */

/* Memory grows by mem_grow(): for messages of our own making. */
struct pb_out {
    uint8_t *data;
    size_t len, room;
    bool borrowed;    /* the memory is the caller's */
    uint8_t few[256]; /* where small messages lie */
};

void pb_out_init(struct pb_out *o);
/* Into memory of the caller's, which holds all that will be written. */
void pb_out_into(struct pb_out *o, void *data, size_t room);
void pb_out_done(struct pb_out *o);
uint8_t *pb_out_reserve(struct pb_out *o, size_t len);
void pb_put_varint(struct pb_out *o, uint64_t value);
void pb_put_tag(struct pb_out *o, uint32_t number, enum pb_wire wire);
void pb_put_uint(struct pb_out *o, uint32_t number, uint64_t value);
void pb_put_bytes(struct pb_out *o, uint32_t number, const void *data,
                  size_t len);
void pb_put_raw(struct pb_out *o, const void *data, size_t len);

static inline size_t pb_varint_size(uint64_t v)
{
    return (size_t)(70 - __builtin_clzll(v | 1)) / 7;
}

#endif
