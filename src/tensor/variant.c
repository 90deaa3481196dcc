#include "tensor/variant.h"

#include <string.h>

#include "base/mem.h"
#include "tensor/boxed.h"
#include "tensor/list.h"
#include "tensor/number.h"
#include "tensor/optional.h"
#include "tensor/proto.h"
#include "tensor/ragged.h"

enum { F_TYPE_NAME = 1, F_METADATA = 2, F_TENSORS = 3 };

static const struct variant_codec *const codecs[] = {
    &tensor_list_codec, &optional_codec,     &ragged_codec,
    &boxed_codec,       &number_int_codec,   &number_float_codec,
    &number_bool_codec, &number_double_codec
};

static const struct variant_codec *codec_of(const struct object_kind *kind)
{
    for (size_t i = 0; i < COUNT(codecs); i++)
        if (codecs[i]->kind == kind)
            return codecs[i];
    return NULL;
}

static const struct variant_codec *codec_named(const struct pb_field *name)
{
    for (size_t i = 0; i < COUNT(codecs); i++)
        if (name->len == strlen(codecs[i]->kind->name) &&
            !memcmp(name->data, codecs[i]->kind->name, name->len))
            return codecs[i];
    return NULL;
}

/* ---- writing ---- */

static size_t field_size(size_t len)
{
    return 1 + pb_varint_size(len) + len;
}

/* Empty when there is none. The caller ends it. */
static void take_meta(const struct variant_codec *c, const struct object *o,
                      struct pb_out *ret)
{
    pb_out_init(ret);
    if (c && c->put_meta)
        c->put_meta(o, ret);
}

void variant_walk_take(struct variant_walk *w, size_t bytes)
{
    w->too_large = w->too_large || bytes > w->left;
    w->left -= MIN(bytes, w->left);
}

size_t variant_proto_size(const struct object *o, struct variant_walk *w)
{
    const struct variant_codec *c = o ? codec_of(o->kind) : NULL;
    const struct tensor *t;
    struct pb_out meta;
    int64_t at = 0;
    size_t n;

    if (!o) {
        variant_walk_take(w, 1);
        return 0;
    }
    w->too_large = w->too_large || w->depth >= VARIANT_DEPTH_MAX;
    take_meta(c, o, &meta);
    n = field_size(strlen(o->kind->name));
    if (meta.len)
        n += field_size(meta.len);
    pb_out_done(&meta);
    variant_walk_take(w, n);
    if (!c || !c->next)
        return n;
    w->depth++;
    while (!w->too_large && (t = c->next(o, &at)))
        n += field_size(tensor_proto_size_within(t, w));
    w->depth--;
    return n;
}

void variant_put_proto(struct pb_out *out, const struct object *o, int depth)
{
    const struct variant_codec *c = o ? codec_of(o->kind) : NULL;
    const struct tensor *t;
    struct pb_out meta;
    int64_t at = 0;

    if (!o)
        return;
    take_meta(c, o, &meta);
    pb_put_bytes(out, F_TYPE_NAME, o->kind->name, strlen(o->kind->name));
    if (meta.len)
        pb_put_bytes(out, F_METADATA, meta.data, meta.len);
    pb_out_done(&meta);
    while (c && c->next && (t = c->next(o, &at))) {
        pb_put_tag(out, F_TENSORS, PB_LEN);
        tensor_proto_put_within(out, t, depth + 1);
    }
}

/* ---- reading ---- */

struct reading {
    struct pb_field name;
    struct variant_parts parts;
    int64_t room;
};

static void reading_done(struct reading *r)
{
    for (int64_t i = 0; i < r->parts.count; i++)
        tensor_unref(&r->parts.tensors[i]);
    mem_free(r->parts.tensors);
}

/* Most tensors take far less in a message than they do here. */
static bool has_room(const struct reading *r)
{
    return r->parts.count < r->room ||
           (r->parts.count < TENSOR_LIST_MAX &&
            buffer_within_limit(2 * (size_t)r->room * sizeof(struct tensor)));
}

static enum mst_code read_tensor(struct reading *r, const struct pb_field *f,
                                 struct buffer *owner, int depth,
                                 struct status *st)
{
    struct tensor t;
    enum mst_code rc;

    if (!has_room(r))
        return status_set(st, MST_RESOURCE_EXHAUSTED,
                          "There is no room for the %lld tensors of a variant",
                          (long long)r->parts.count);
    rc = tensor_from_proto_within(&t, f->data, f->len, owner, depth, st);
    if (!rc)
        *MEM_PUSH(r->parts.tensors, r->parts.count, r->room) = t;
    return rc;
}

static enum mst_code read_fields(struct reading *r, const void *data,
                                 size_t len, struct buffer *owner, int depth,
                                 struct status *st)
{
    struct pb_in in = pb_in(data, len);
    struct pb_field f;
    enum mst_code rc = MST_OK;

    while (!rc && pb_next(&in, &f)) {
        if (f.wire != PB_LEN)
            continue;
        if (f.number == F_TYPE_NAME) {
            r->name = f;
        } else if (f.number == F_METADATA) {
            r->parts.meta = f.data;
            r->parts.meta_len = f.len;
        } else if (f.number == F_TENSORS) {
            rc = read_tensor(r, &f, owner, depth + 1, st);
        }
    }
    if (!rc && in.bad)
        rc = status_set(st, MST_INVALID_ARGUMENT,
                        "Malformed VariantTensorDataProto");
    return rc;
}

static enum mst_code make(struct reading *r, struct object **ret,
                          struct status *st)
{
    const struct variant_codec *c = codec_named(&r->name);

    if (c)
        return c->make(&r->parts, ret, st);
    return status_set(st, MST_INVALID_ARGUMENT,
                      "Could not decode variant with type_name: \"%.*s\"",
                      (int)MIN(r->name.len, 200), (const char *)r->name.data);
}

enum mst_code variant_from_proto(struct object **ret, const void *data,
                                 size_t len, struct buffer *owner, int depth,
                                 struct status *st)
{
    struct reading r = { .parts.meta = (const uint8_t *)"" };
    enum mst_code rc;

    if (depth >= VARIANT_DEPTH_MAX)
        return status_set(st, MST_INVALID_ARGUMENT,
                          "Variants are nested more than %d times",
                          VARIANT_DEPTH_MAX);
    rc = read_fields(&r, data, len, owner, depth, st);
    if (!rc && r.name.len)
        rc = make(&r, ret, st);
    else if (!rc)
        *ret = NULL;
    reading_done(&r);
    return rc;
}
