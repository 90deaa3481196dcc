#include "store/bundle_entry.h"

#include "base/mem.h"

enum { FIELD_SLICES = 7 };

void bundle_header_put(struct bytes *b, const struct bundle_header *h)
{
    struct bytes version = { 0 };

    bytes_field_varint(b, 1, (uint64_t)(int64_t)h->shards);
    bytes_field_varint(b, 2, h->big_endian);
    bytes_field_varint(&version, 1, (uint64_t)(int64_t)h->producer);
    bytes_field_varint(&version, 2, (uint64_t)(int64_t)h->min_consumer);
    bytes_field_bytes(b, 3, version.data, version.len);
    bytes_done(&version);
}

static bool parse_version(struct cursor c, struct bundle_header *h)
{
    struct field f;

    while (cursor_field(&c, &f)) {
        if (f.number == 1)
            h->producer = (int32_t)f.value;
        else if (f.number == 2)
            h->min_consumer = (int32_t)f.value;
        else if (f.number == 3) /* one, or a packed list of them */
            do
                h->refused |=
                    (f.nested.at < f.nested.end ? cursor_varint(&f.nested)
                                                : f.value) == BUNDLE_VERSION;
            while (f.nested.at < f.nested.end);
    }
    return !c.bad;
}

bool bundle_header_parse(struct cursor c, struct bundle_header *ret)
{
    struct field f;
    bool ok = true;

    *ret = (struct bundle_header){ 0 };
    while (ok && cursor_field(&c, &f)) {
        if (f.number == 1)
            ret->shards = (int32_t)f.value;
        else if (f.number == 2)
            ret->big_endian = f.value == 1;
        else if (f.number == 3)
            ok = parse_version(f.nested, ret);
    }
    return ok && !c.bad;
}

/* ---- entries ---- */

void bundle_entry_done(struct bundle_entry *e)
{
    bytes_done(&e->slices);
}

/* TensorShapeProto { 2: repeated Dim { 1: size } } */
static void put_shape(struct bytes *b, int ndim, const int64_t *dims)
{
    struct bytes shape = { 0 }, dim = { 0 };

    for (int i = 0; i < ndim; i++) {
        dim.len = 0;
        bytes_field_varint(&dim, 1, (uint64_t)dims[i]);
        bytes_field_bytes(&shape, 2, dim.data, dim.len);
    }
    bytes_field_bytes(b, 2, shape.data, shape.len);
    bytes_done(&shape);
    bytes_done(&dim);
}

void bundle_entry_put(struct bytes *b, const struct bundle_entry *e)
{
    bytes_field_varint(b, 1, (uint64_t)(int64_t)e->dtype);
    put_shape(b, e->ndim, e->dims);
    bytes_field_varint(b, 3, (uint64_t)(int64_t)e->shard);
    bytes_field_varint(b, 4, e->offset);
    bytes_field_varint(b, 5, e->size);
    if (e->crc)
        bytes_field_fixed32(b, 6, e->crc);
    bytes_put(b, e->slices.data, e->slices.len);
}

static bool parse_dim(struct cursor c, struct bundle_entry *e)
{
    int64_t size = 0;
    struct field f;

    while (cursor_field(&c, &f))
        if (f.number == 1)
            size = (int64_t)f.value;
    if (e->ndim < TENSOR_RANK_MAX)
        e->dims[e->ndim] = size;
    e->ndim++;
    return !c.bad && e->ndim < 255;
}

static bool parse_shape(struct cursor c, struct bundle_entry *e)
{
    struct field f;
    bool ok = true;

    while (ok && cursor_field(&c, &f)) {
        if (f.number == 2)
            ok = parse_dim(f.nested, e);
        else if (f.number == 3) /* unknown rank: no tensor has that */
            ok = !f.value;
    }
    return ok && !c.bad;
}

bool bundle_entry_parse(struct cursor c, struct bundle_entry *ret)
{
    struct field f;
    bool ok = true;

    *ret = (struct bundle_entry){ 0 };
    while (ok && cursor_field(&c, &f)) {
        switch (f.number) {
        case 1:
            ret->dtype = (int32_t)f.value;
            break;
        case 2:
            ok = parse_shape(f.nested, ret);
            break;
        case 3:
            ret->shard = (int32_t)f.value;
            break;
        case 4:
            ret->offset = f.value;
            break;
        case 5:
            ret->size = f.value;
            break;
        case 6:
            ret->crc = (uint32_t)f.value;
            break;
        case FIELD_SLICES:
            bytes_field_bytes(&ret->slices, FIELD_SLICES, f.nested.at,
                              cursor_left(&f.nested));
            break;
        }
    }
    return ok && !c.bad;
}

void bundle_entry_add_slice(struct bundle_entry *e, const struct slice *s)
{
    struct bytes proto = { 0 };

    slice_put_proto(&proto, s);
    bytes_field_bytes(&e->slices, FIELD_SLICES, proto.data, proto.len);
    bytes_done(&proto);
}

bool bundle_entry_next_slice(struct cursor *at, struct slice *ret)
{
    struct field f;

    if (!cursor_field(at, &f))
        return false;
    if (slice_get_proto(f.nested, ret))
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
