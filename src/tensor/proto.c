#include "tensor/proto.h"

#include <stdlib.h>
#include <string.h>

#include "tensor/number.h"

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
    case DT_VARIANT:
        return F_VARIANT;
    case DT_UINT32:
        return F_UINT32;
    case DT_UINT64:
        return F_UINT64;
    default:
        return F_INT;
    }
}

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

static bool fill_object(struct filling *fill, const struct pb_field *f)
{
    struct number *b;

    if (f->wire != PB_LEN || fill->got == fill->limit)
        return false;
    b = number_from_proto(f->data, f->len);
    if (!b)
        return false;
    *tensor_object(fill->t, fill->got++) = &b->o;
    return true;
}

static bool fill_field(struct filling *fill, const struct pb_field *f,
                       int field)
{
    size_t wide = field == F_FLOAT || field == F_SCOMPLEX    ? 4
                  : field == F_DOUBLE || field == F_DCOMPLEX ? 8
                                                             : 0;

    if (field == F_VARIANT)
        return fill_object(fill, f);
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

static enum mst_code strings_from_content(struct tensor *t, const uint8_t *at,
                                          size_t len)
{
    const uint8_t *end = at + len, *bytes = at;
    uint64_t n;

    for (int64_t i = 0; i < t->count; i++)
        if (!pb_varint(&bytes, end, &n))
            return MST_INVALID_ARGUMENT;
    for (int64_t i = 0; i < t->count; i++) {
        (void)pb_varint(&at, end, &n);
        if (n > (uint64_t)(end - bytes))
            return MST_INVALID_ARGUMENT;
        str_set(tensor_str(t, i), bytes, (size_t)n);
        bytes += n;
    }
    return bytes == end ? MST_OK : MST_INVALID_ARGUMENT;
}

/* Over the message's own bytes if they are aligned as elements must be. */
static enum mst_code from_content(struct tensor *t, enum dtype dt,
                                  const struct shape *s, int64_t count,
                                  const struct pb_field *content,
                                  struct buffer *owner, struct status *st)
{
    size_t size = dtype_size(dt);
    enum mst_code rc;

    if (dt != DT_STRING && content->len != (size_t)count * size)
        return status_set(st, MST_INVALID_ARGUMENT,
                          "TensorProto has %zu bytes of content where its "
                          "shape and type take %zu",
                          content->len, (size_t)count * size);
    if (dt == DT_STRING && (uint64_t)count > content->len)
        return status_set(st, MST_INVALID_ARGUMENT,
                          "TensorProto has too little content for %lld strings",
                          (long long)count);
    if (dt != DT_STRING && dt != DT_BOOL && owner && content->len > 4096 &&
        (uintptr_t)content->data % MIN(size, 16) == 0) {
        tensor_wrap(t, dt, s->ndim, s->dims, buffer_ref(owner),
                    (void *)content->data);
        return MST_OK;
    }
    rc = tensor_new(t, dt, s->ndim, s->dims, st);
    if (rc)
        return rc;
    if (dt != DT_STRING) {
        if (content->len)
            memcpy(t->data, content->data, content->len);
        if (dt == DT_BOOL)
            for (int64_t i = 0; i < count; i++)
                TENSOR_DATA(t, uint8_t)[i] = TENSOR_DATA(t, uint8_t)[i] != 0;
        return MST_OK;
    }
    if (strings_from_content(t, content->data, content->len)) {
        tensor_unref(t);
        return status_set(st, MST_INVALID_ARGUMENT,
                          "Malformed string content in TensorProto");
    }
    return MST_OK;
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

enum mst_code tensor_from_proto(struct tensor *t, const void *data, size_t len,
                                struct buffer *owner, struct status *st)
{
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
    if (p.has_content && (p.content.len || !count) && dt != DT_VARIANT)
        return from_content(t, dt, &p.shape, count, &p.content, owner, st);
    rc = tensor_new(&out, dt, p.shape.ndim, p.shape.dims, st);
    if (rc)
        return rc;
    rc = from_values(&out, data, len, st);
    if (rc)
        tensor_unref(&out);
    else
        *t = out;
    return rc;
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

static size_t shape_size(const struct tensor *t)
{
    size_t n = 0;

    for (int i = 0; i < t->ndim; i++)
        n += 2 + dim_size(t->dims[i]);
    return n;
}

struct tensor_proto_size tensor_proto_size(const struct tensor *t)
{
    struct tensor_proto_size s = { 0 };
    size_t shape = shape_size(t);

    if (t->dtype == DT_STRING) {
        for (int64_t i = 0; i < t->count; i++) {
            size_t n = tensor_str(t, i)->len;

            s.content += pb_varint_size(n) + n;
        }
    } else {
        s.content = tensor_bytes(t);
    }
    s.head = 2 + 1 + pb_varint_size(s.content);
    if (t->ndim)
        s.head += 1 + pb_varint_size(shape) + shape;
    return s;
}

void tensor_proto_put_head(struct pb_out *o, const struct tensor *t,
                           struct tensor_proto_size size)
{
    pb_put_uint(o, F_DTYPE, t->dtype);
    if (t->ndim) {
        pb_put_tag(o, F_SHAPE, PB_LEN);
        pb_put_varint(o, shape_size(t));
        for (int i = 0; i < t->ndim; i++) {
            pb_put_tag(o, 2, PB_LEN);
            pb_put_varint(o, dim_size(t->dims[i]));
            pb_put_uint(o, 1, (uint64_t)t->dims[i]);
        }
    }
    pb_put_tag(o, F_CONTENT, PB_LEN);
    pb_put_varint(o, size.content);
}

void tensor_proto_put_strings(struct pb_out *o, const struct tensor *t)
{
    for (int64_t i = 0; i < t->count; i++)
        pb_put_varint(o, tensor_str(t, i)->len);
    for (int64_t i = 0; i < t->count; i++)
        pb_put_raw(o, tensor_str(t, i)->data, tensor_str(t, i)->len);
}
