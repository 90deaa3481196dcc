#include "store/bundle_entry.h"

#include "base/mem.h"

enum { FIELD_SLICES = 7 };

/* proto3 leaves out what is zero. */
static void put_number(struct pb_out *o, uint32_t number, int64_t value)
{
    if (value)
        pb_put_uint(o, number, (uint64_t)value);
}

void bundle_header_put(struct pb_out *o, const struct bundle_header *h)
{
    struct pb_out version;

    pb_out_init(&version);
    put_number(&version, 1, h->producer);
    put_number(&version, 2, h->min_consumer);
    put_number(o, 1, h->shards);
    put_number(o, 2, h->big_endian);
    pb_put_bytes(o, 3, version.data, version.len);
    pb_out_done(&version);
}

/* VersionDef { 1: producer, 2: min_consumer, 3: repeated bad_consumers } */
static bool parse_version(struct pb_in in, struct bundle_header *h)
{
    struct pb_field f;

    while (pb_next(&in, &f)) {
        struct pb_in list = field_message(&f); /* may be packed, or not */

        if (f.number == 1)
            h->producer = (int32_t)field_number(&f);
        else if (f.number == 2)
            h->min_consumer = (int32_t)field_number(&f);
        else if (f.number == 3)
            h->refused |= field_number(&f) == BUNDLE_VERSION;
        while (f.number == 3 && list.at < list.end)
            h->refused |= cursor_varint(&list) == BUNDLE_VERSION;
    }
    return !in.bad;
}

bool bundle_header_parse(struct pb_in in, struct bundle_header *ret)
{
    struct pb_field f;
    bool ok = true;

    *ret = (struct bundle_header){ 0 };
    while (ok && pb_next(&in, &f)) {
        if (f.number == 1)
            ret->shards = (int32_t)field_number(&f);
        else if (f.number == 2)
            ret->big_endian = field_number(&f) == 1;
        else if (f.number == 3)
            ok = parse_version(field_message(&f), ret);
    }
    return ok && !in.bad;
}

/* ---- entries ---- */

void bundle_entry_done(struct bundle_entry *e)
{
    bytes_done(&e->slices);
}

/* TensorShapeProto { 2: repeated Dim { 1: size } } */
static void put_shape(struct pb_out *o, int ndim, const int64_t *dims)
{
    struct pb_out shape, dim;

    pb_out_init(&shape);
    pb_out_init(&dim);
    for (int i = 0; i < ndim; i++) {
        dim.len = 0;
        put_number(&dim, 1, dims[i]);
        pb_put_bytes(&shape, 2, dim.data, dim.len);
    }
    pb_put_bytes(o, 2, shape.data, shape.len);
    pb_out_done(&shape);
    pb_out_done(&dim);
}

void bundle_entry_put(struct pb_out *o, const struct bundle_entry *e)
{
    put_number(o, 1, e->dtype);
    put_shape(o, e->ndim, e->dims);
    put_number(o, 3, e->shard);
    put_number(o, 4, (int64_t)e->offset);
    put_number(o, 5, (int64_t)e->size);
    if (e->crc) {
        pb_put_tag(o, 6, PB_FIXED32);
        pb_put_raw(o, &e->crc, sizeof(e->crc));
    }
    pb_put_raw(o, e->slices.data, e->slices.len);
}

static bool parse_dim(struct pb_in in, struct bundle_entry *e)
{
    int64_t size = 0;
    struct pb_field f;

    while (pb_next(&in, &f))
        if (f.number == 1)
            size = (int64_t)field_number(&f);
    if (e->ndim < TENSOR_RANK_MAX)
        e->dims[e->ndim] = size;
    e->ndim++;
    return !in.bad && e->ndim < 255;
}

static bool parse_shape(struct pb_in in, struct bundle_entry *e)
{
    struct pb_field f;
    bool ok = true;

    while (ok && pb_next(&in, &f)) {
        if (f.number == 2)
            ok = parse_dim(field_message(&f), e);
        else if (f.number == 3) /* unknown rank: no tensor has that */
            ok = !field_number(&f);
    }
    return ok && !in.bad;
}

/* One slice as it stands in the message, tag and length included. */
static void keep_slice(struct bundle_entry *e, const void *proto, size_t len)
{
    bytes_varint(&e->slices, FIELD_SLICES << 3 | PB_LEN);
    bytes_varint(&e->slices, len);
    bytes_put(&e->slices, proto, len);
}

bool bundle_entry_parse(struct pb_in in, struct bundle_entry *ret)
{
    struct pb_field f;
    bool ok = true;

    *ret = (struct bundle_entry){ 0 };
    while (ok && pb_next(&in, &f)) {
        struct pb_in message = field_message(&f);
        uint64_t number = field_number(&f);

        switch (f.number) {
        case 1:
            ret->dtype = (int32_t)number;
            break;
        case 2:
            ok = parse_shape(message, ret);
            break;
        case 3:
            ret->shard = (int32_t)number;
            break;
        case 4:
            ret->offset = number;
            break;
        case 5:
            ret->size = number;
            break;
        case 6:
            ret->crc = (uint32_t)number;
            break;
        case FIELD_SLICES:
            keep_slice(ret, message.at, cursor_left(&message));
            break;
        }
    }
    return ok && !in.bad;
}

void bundle_entry_add_slice(struct bundle_entry *e, const struct slice *s)
{
    struct pb_out proto;

    pb_out_init(&proto);
    slice_put_proto(&proto, s);
    keep_slice(e, proto.data, proto.len);
    pb_out_done(&proto);
}

bool bundle_entry_next_slice(struct pb_in *at, struct slice *ret)
{
    struct pb_field f;

    if (!pb_next(at, &f))
        return false;
    if (slice_get_proto(field_message(&f), ret))
        return true;
    at->bad = true;
    return false;
}

/* ---- names of files ---- */

char *bundle_index_name(const char *prefix)
{
    return mem_printf("%s.index", prefix);
}

char *bundle_data_name(const char *prefix, int shard, int shards)
{
    return mem_printf("%s.data-%05d-of-%05d", prefix, shard, shards);
}
