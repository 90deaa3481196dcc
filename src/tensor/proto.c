#include "tensor/proto.h"

#include <stdlib.h>
#include <string.h>

#include "tensor/variant.h"

enum {
    F_DTYPE = 1,
    F_SHAPE = 2,
    F_CONTENT = 4,
    F_FLOAT = 5,
    F_DOUBLE = 6,
    F_INT = 7,
    F_STRING = 8,
    F_SCOMPLEX = 9,
    F_INT64 = 10,
    F_BOOL = 11,
    F_DCOMPLEX = 12,
    F_HALF = 13,
    F_VARIANT = 15,
    F_UINT32 = 16,
    F_UINT64 = 17,
};

/* ---- shapes ---- */

static enum mst_code dim_from_proto(const struct pb_field *dim, int64_t *ret)
{
    struct pb_in in = pb_in(dim->data, dim->len);
    struct pb_field f;

    *ret = 0;
    while (pb_next(&in, &f))
        if (f.number == 1 && f.wire == PB_VARINT)
            *ret = (int64_t)f.value;
    return in.bad ? MST_INVALID_ARGUMENT : MST_OK;
}

enum mst_code shape_from_proto(struct shape *s, const void *data, size_t len,
                               struct status *st)
{
    struct pb_in in = pb_in(data, len);
    bool unknown = false;
    struct pb_field f;

    s->ndim = 0;
    while (pb_next(&in, &f)) {
        if (f.number == 3 && f.wire == PB_VARINT)
            unknown = f.value != 0;
        if (f.number != 2 || f.wire != PB_LEN)
            continue;
        if (s->ndim == TENSOR_RANK_MAX)
            return status_set(
                st, MST_UNIMPLEMENTED,
                "Tensors of more than %d dimensions are not supported",
                TENSOR_RANK_MAX);
        if (dim_from_proto(&f, &s->dims[s->ndim++]))
            in.bad = true;
    }
    if (in.bad)
        return status_set(st, MST_INVALID_ARGUMENT,
                          "Malformed TensorShapeProto");
    for (int i = 0; i < s->ndim; i++)
        if (s->dims[i] < -1)
            return status_set(st, MST_INVALID_ARGUMENT,
                              "Shape has dimension %lld, which must be >= -1",
                              (long long)s->dims[i]);
    if (unknown)
        s->ndim = -1;
    return MST_OK;
}

/* ---- reading ---- */

/* Which field holds the elements of a type, and how. */
static int value_field(enum dtype dt)
{
    switch (dt) {
    case DT_FLOAT:
        return F_FLOAT;
    case DT_DOUBLE:
        return F_DOUBLE;
    case DT_STRING:
        return F_STRING;
    case DT_COMPLEX64:
        return F_SCOMPLEX;
    case DT_COMPLEX128:
        return F_DCOMPLEX;
    case DT_INT64:
        return F_INT64;
    case DT_BOOL:
        return F_BOOL;
    case DT_HALF:
    case DT_BFLOAT16:
        return F_HALF;
    case DT_UINT32:
        return F_UINT32;
    case DT_UINT64:
        return F_UINT64;
    default:
        return F_INT;
    }
}

/* Where a message lies: who owns its bytes, and in how many variants. */
struct within {
    struct buffer *owner;
    int depth;
};

/* Elements arriving one by one. Complex numbers arrive as two. */
struct filling {
    struct tensor *t;
    size_t unit;   /* bytes of what one value fills */
    int64_t got;   /* values */
    int64_t limit; /* values that there is room for */
};

static bool fill_one(struct filling *f, uint64_t bits)
{
    if (f->got == f->limit)
        return false;
    if (f->t->dtype == DT_BOOL)
        bits = bits != 0;
    memcpy((uint8_t *)f->t->data + (size_t)f->got++ * f->unit, &bits, f->unit);
    return true;
}

static bool fill_packed(struct filling *fill, const struct pb_field *f,
                        size_t wide)
{
    const uint8_t *at = f->data, *end = f->data + f->len;
    uint64_t v;

    if (wide) {
        for (; (size_t)(end - at) >= wide; at += wide) {
            v = 0;
            memcpy(&v, at, wide);
            if (!fill_one(fill, v))
                return false;
        }
        return at == end;
    }
    while (at < end)
        if (!pb_varint(&at, end, &v) || !fill_one(fill, v))
            return false;
    return true;
}

static bool fill_field(struct filling *fill, const struct pb_field *f,
                       int field)
{
    size_t wide = field == F_FLOAT || field == F_SCOMPLEX    ? 4
                  : field == F_DOUBLE || field == F_DCOMPLEX ? 8
                                                             : 0;

    if (field == F_STRING) {
        if (f->wire != PB_LEN || fill->got == fill->limit)
            return false;
        str_set(tensor_str(fill->t, fill->got++), f->data, f->len);
        return true;
    }
    if (f->wire == PB_LEN)
        return fill_packed(fill, f, wide);
    return (f->wire == (wide == 4   ? PB_FIXED32
                        : wide == 8 ? PB_FIXED64
                                    : PB_VARINT)) &&
           fill_one(fill, f->value);
}

/* What was not given repeats the last that was, or is zero. */
static void fill_rest(struct filling *f, int64_t given)
{
    struct tensor *t = f->t;
    int64_t per = t->count ? f->limit / t->count : 1;
    int64_t have = given / per;

    if (!have) {
        tensor_zero(t);
        return;
    }
    for (int64_t i = have; i < t->count; i++)
        tensor_copy_elems(t, i, t, have - 1, 1);
}

static enum mst_code from_values(struct tensor *t, const void *data, size_t len,
                                 struct status *st)
{
    enum dtype dt = (enum dtype)t->dtype;
    int per = dtype_is_complex(dt) ? 2 : 1, field = value_field(dt);
    struct filling fill = { .t = t,
                            .unit = dtype_size(dt) / (size_t)per,
                            .limit = t->count * per };
    struct pb_in in = pb_in(data, len);
    struct pb_field f;

    while (pb_next(&in, &f))
        if ((int)f.number == field && !fill_field(&fill, &f, field))
            return status_set(st, MST_INVALID_ARGUMENT,
                              "TensorProto has more or other values than its "
                              "shape of %lld elements takes",
                              (long long)t->count);
    if (fill.got % per)
        return status_set(st, MST_INVALID_ARGUMENT,
                          "TensorProto ends within a complex number");
    fill_rest(&fill, fill.got);
    return MST_OK;
}

/* Variants that were not given hold nothing: they are not repeated. */
static enum mst_code variants_from_values(struct tensor *t, const void *data,
                                          size_t len, struct within in,
                                          struct status *st)
{
    struct pb_in fields = pb_in(data, len);
    enum mst_code rc = MST_OK;
    struct pb_field f;
    int64_t got = 0;

    while (!rc && pb_next(&fields, &f)) {
        if (f.number != F_VARIANT)
            continue;
        if (f.wire != PB_LEN || got == t->count)
            return status_set(st, MST_INVALID_ARGUMENT,
                              "TensorProto has more or other variants than its "
                              "shape of %lld elements takes",
                              (long long)t->count);
        rc = variant_from_proto(tensor_object(t, got++), f.data, f.len,
                                in.owner, in.depth, st);
    }
    return rc;
}

/* Strings and variants: the lengths of all, and then all of them. */
static enum mst_code pieces_from_content(struct tensor *t,
                                         const struct pb_field *content,
                                         struct within in, struct status *st)
{
    const uint8_t *at = content->data, *end = at + content->len, *bytes = at;
    enum mst_code rc = MST_OK;
    bool good = true;
    uint64_t n;

    for (int64_t i = 0; i < t->count && good; i++)
        good = pb_varint(&bytes, end, &n);
    for (int64_t i = 0; i < t->count && good && !rc; i++) {
        good = pb_varint(&at, end, &n) && n <= (uint64_t)(end - bytes);
        if (good && t->dtype == DT_STRING)
            str_set(tensor_str(t, i), bytes, (size_t)n);
        else if (good)
            rc = variant_from_proto(tensor_object(t, i), bytes, (size_t)n,
                                    in.owner, in.depth, st);
        bytes += good ? n : 0;
    }
    if (!rc && (!good || bytes != end))
        rc = status_set(st, MST_INVALID_ARGUMENT,
                        "Malformed %s content in TensorProto",
                        dtype_name(t->dtype));
    return rc;
}

/* Over the message's own bytes if they are aligned as elements must be. */
static enum mst_code plain_from_content(struct tensor *t, enum dtype dt,
                                        const struct shape *s, int64_t count,
                                        const struct pb_field *content,
                                        struct buffer *owner, struct status *st)
{
    size_t size = dtype_size(dt);
    enum mst_code rc;

    if (content->len != (size_t)count * size)
        return status_set(st, MST_INVALID_ARGUMENT,
                          "TensorProto has %zu bytes of content where its "
                          "shape and type take %zu",
                          content->len, (size_t)count * size);
    if (dt != DT_BOOL && owner && content->len > 4096 &&
        (uintptr_t)content->data % MIN(size, 16) == 0) {
        tensor_wrap(t, dt, s->ndim, s->dims, buffer_ref(owner),
                    (void *)content->data);
        return MST_OK;
    }
    rc = tensor_new(t, dt, s->ndim, s->dims, st);
    if (rc)
        return rc;
    if (content->len)
        memcpy(t->data, content->data, content->len);
    if (dt == DT_BOOL)
        for (int64_t i = 0; i < count; i++)
            TENSOR_DATA(t, uint8_t)[i] = TENSOR_DATA(t, uint8_t)[i] != 0;
    return MST_OK;
}

static enum mst_code from_content(struct tensor *t, enum dtype dt,
                                  const struct shape *s, int64_t count,
                                  const struct pb_field *content,
                                  struct within in, struct status *st)
{
    struct tensor out;
    enum mst_code rc;

    if (dtype_is_plain(dt))
        return plain_from_content(t, dt, s, count, content, in.owner, st);
    if ((uint64_t)count > content->len)
        return status_set(st, MST_INVALID_ARGUMENT,
                          "TensorProto has too little content for %lld "
                          "elements of type %s",
                          (long long)count, dtype_name(dt));
    rc = tensor_new(&out, dt, s->ndim, s->dims, st);
    if (rc)
        return rc;
    rc = pieces_from_content(&out, content, in, st);
    if (rc)
        tensor_unref(&out);
    else
        *t = out;
    return rc;
}

struct parts {
    int64_t dtype;
    struct shape shape;
    struct pb_field content;
    bool has_content, has_shape, has_values;
};

static enum mst_code split(struct parts *p, const void *data, size_t len,
                           struct status *st)
{
    struct pb_in in = pb_in(data, len);
    struct pb_field f;
    enum mst_code rc;

    while (pb_next(&in, &f)) {
        if (f.number == F_DTYPE && f.wire == PB_VARINT) {
            p->dtype = (int64_t)f.value;
        } else if (f.number == F_SHAPE && f.wire == PB_LEN) {
            rc = shape_from_proto(&p->shape, f.data, f.len, st);
            if (rc)
                return rc;
        } else if (f.number == F_CONTENT && f.wire == PB_LEN) {
            p->content = f;
            p->has_content = true;
        }
    }
    if (in.bad)
        return status_set(st, MST_INVALID_ARGUMENT, "Malformed TensorProto");
    return MST_OK;
}

enum mst_code tensor_from_proto_within(struct tensor *t, const void *data,
                                       size_t len, struct buffer *owner,
                                       int depth, struct status *st)
{
    struct within in = { owner, depth };
    struct parts p = { 0 };
    int64_t count;
    struct tensor out;
    enum mst_code rc = split(&p, data, len, st);
    enum dtype dt = (enum dtype)p.dtype;

    if (rc)
        return rc;
    if (p.dtype < 0 || p.dtype >= DT_COUNT || !dtype_valid((int)p.dtype) ||
        dt == DT_RESOURCE)
        return status_set(st, MST_INVALID_ARGUMENT,
                          "TensorProto has data type %lld, which cannot be "
                          "read from a message",
                          (long long)p.dtype);
    if (p.shape.ndim < 0 ||
        !shape_count(p.shape.ndim, p.shape.dims, dtype_size(dt), &count))
        return status_set(st, MST_INVALID_ARGUMENT,
                          "TensorProto has a shape that is unknown, negative "
                          "or too large");
    if (p.has_content && (p.content.len || !count))
        return from_content(t, dt, &p.shape, count, &p.content, in, st);
    rc = tensor_new(&out, dt, p.shape.ndim, p.shape.dims, st);
    if (rc)
        return rc;
    rc = dt == DT_VARIANT ? variants_from_values(&out, data, len, in, st)
                          : from_values(&out, data, len, st);
    if (rc)
        tensor_unref(&out);
    else
        *t = out;
    return rc;
}

enum mst_code tensor_from_proto(struct tensor *t, const void *data, size_t len,
                                struct buffer *owner, struct status *st)
{
    return tensor_from_proto_within(t, data, len, owner, 0, st);
}

bool tensor_proto_head(struct tensor_head *h, const uint8_t *data, size_t have)
{
    const uint8_t *at = data, *end = data + have;
    struct status st;
    uint64_t tag, v;

    h->dtype = DT_INVALID;
    h->shape.ndim = 0;
    while (pb_varint(&at, end, &tag) && pb_varint(&at, end, &v)) {
        if (tag == (F_DTYPE << 3 | PB_VARINT)) {
            h->dtype = v < DT_COUNT ? (enum dtype)v : DT_INVALID;
        } else if (tag == (F_SHAPE << 3 | PB_LEN)) {
            if (v > (uint64_t)(end - at) ||
                shape_from_proto(&h->shape, at, (size_t)v, &st))
                return false;
            at += v;
        } else if (tag == (F_CONTENT << 3 | PB_LEN)) {
            h->content_at = (size_t)(at - data);
            h->content_len = (size_t)v;
            return true;
        } else {
            return false;
        }
    }
    return false;
}

/* ---- writing ---- */

static size_t dim_size(int64_t d)
{
    return 1 + pb_varint_size((uint64_t)d);
}

static size_t dims_size(int ndim, const int64_t *dims)
{
    size_t n = 0;

    for (int i = 0; i < ndim; i++)
        n += 2 + dim_size(dims[i]);
    return n;
}

static void put_dims(struct pb_out *o, int ndim, const int64_t *dims)
{
    for (int i = 0; i < ndim; i++) {
        pb_put_tag(o, 2, PB_LEN);
        pb_put_varint(o, dim_size(dims[i]));
        pb_put_uint(o, 1, (uint64_t)dims[i]);
    }
}

void shape_put_proto(struct pb_out *o, const struct shape *s)
{
    if (s->ndim < 0)
        pb_put_uint(o, 3, true);
    put_dims(o, s->ndim, s->dims);
}

static size_t strings_size(const struct tensor *t)
{
    size_t n = 0;

    for (int64_t i = 0; i < t->count; i++)
        n += pb_varint_size(tensor_str(t, i)->len) + tensor_str(t, i)->len;
    return n;
}

static size_t variants_size(const struct tensor *t, struct variant_walk *w)
{
    size_t n = 0;

    for (int64_t i = 0; i < t->count && !w->too_large; i++) {
        size_t one = variant_proto_size(*tensor_object(t, i), w);

        n += pb_varint_size(one) + one;
    }
    return n;
}

/* Handles have no meaning elsewhere, and no content. */
static size_t content_size(const struct tensor *t, struct variant_walk *w)
{
    return t->dtype == DT_VARIANT    ? variants_size(t, w)
           : t->dtype == DT_STRING   ? strings_size(t)
           : t->dtype == DT_RESOURCE ? 0
                                     : tensor_bytes(t);
}

static struct tensor_proto_size with_head(const struct tensor *t,
                                          size_t content)
{
    size_t shape = dims_size(t->ndim, t->dims);
    struct tensor_proto_size s = { .content = content };

    s.head = 2 + 1 + pb_varint_size(s.content);
    if (t->ndim)
        s.head += 1 + pb_varint_size(shape) + shape;
    return s;
}

static struct variant_walk walk_at(int depth)
{
    return (struct variant_walk){ .depth = depth, .left = VARIANT_BYTES_MAX };
}

/* Content that is no variants: a length that is cut. */
static const uint8_t unreadable[] = { 0xff };

struct tensor_proto_size tensor_proto_size(const struct tensor *t)
{
    struct variant_walk w = walk_at(0);
    size_t content = content_size(t, &w);

    return with_head(t, w.too_large ? sizeof(unreadable) : content);
}

size_t tensor_proto_size_within(const struct tensor *t, struct variant_walk *w)
{
    struct tensor_proto_size s = with_head(t, content_size(t, w));

    variant_walk_take(w, t->dtype == DT_VARIANT ? s.head : s.head + s.content);
    return s.head + s.content;
}

void tensor_proto_put_head(struct pb_out *o, const struct tensor *t,
                           struct tensor_proto_size size)
{
    pb_put_uint(o, F_DTYPE, t->dtype);
    if (t->ndim) {
        pb_put_tag(o, F_SHAPE, PB_LEN);
        pb_put_varint(o, dims_size(t->ndim, t->dims));
        put_dims(o, t->ndim, t->dims);
    }
    pb_put_tag(o, F_CONTENT, PB_LEN);
    pb_put_varint(o, size.content);
}

static void put_strings(struct pb_out *o, const struct tensor *t)
{
    for (int64_t i = 0; i < t->count; i++)
        pb_put_varint(o, tensor_str(t, i)->len);
    for (int64_t i = 0; i < t->count; i++)
        pb_put_raw(o, tensor_str(t, i)->data, tensor_str(t, i)->len);
}

/* Sizes are measured anew at every level: that is less than to remember them,
 * since hardly anything lies deeper than a list in a list. */
static void put_variants(struct pb_out *o, const struct tensor *t, int depth)
{
    for (int64_t i = 0; i < t->count; i++) {
        struct variant_walk w = walk_at(depth);

        pb_put_varint(o, variant_proto_size(*tensor_object(t, i), &w));
    }
    for (int64_t i = 0; i < t->count; i++)
        variant_put_proto(o, *tensor_object(t, i), depth);
}

static void put_content(struct pb_out *o, const struct tensor *t, int depth)
{
    if (t->dtype == DT_VARIANT)
        put_variants(o, t, depth);
    else if (t->dtype == DT_STRING)
        put_strings(o, t);
    else if (t->dtype != DT_RESOURCE)
        pb_put_raw(o, t->data, tensor_bytes(t));
}

void tensor_proto_put_content(struct pb_out *o, const struct tensor *t)
{
    struct variant_walk w = walk_at(0);

    if (t->dtype == DT_VARIANT)
        (void)variants_size(t, &w);
    if (w.too_large)
        pb_put_raw(o, unreadable, sizeof(unreadable));
    else
        put_content(o, t, 0);
}

void tensor_proto_put_within(struct pb_out *o, const struct tensor *t,
                             int depth)
{
    struct variant_walk w = walk_at(depth);
    struct tensor_proto_size s = with_head(t, content_size(t, &w));

    pb_put_varint(o, s.head + s.content);
    tensor_proto_put_head(o, t, s);
    put_content(o, t, depth);
}
