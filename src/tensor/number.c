#include "tensor/number.h"

#include <string.h>

#include "base/mem.h"

static void number_free(struct object *o)
{
    struct number *b = CONTAINER(o, struct number, o);

    tensor_unref(&b->value);
    mem_free(b);
}

static const struct object_kind int_kind = { "int", number_free };
static const struct object_kind float_kind = { "float", number_free };
static const struct object_kind double_kind = { "double", number_free };
static const struct object_kind bool_kind = { "bool", number_free };

static const struct object_kind *kind_of(int dt)
{
    switch (dt) {
    case DT_INT32:
        return &int_kind;
    case DT_FLOAT:
        return &float_kind;
    case DT_DOUBLE:
        return &double_kind;
    default:
        CHECK(dt == DT_BOOL);
        return &bool_kind;
    }
}

struct number *number_new(struct tensor value)
{
    struct number *b = MEM_NEW(struct number);

    object_init(&b->o, kind_of(value.dtype));
    b->value = value;
    return b;
}

const struct number *number_of(const struct object *o)
{
    return o->kind->free == number_free ? CONTAINER(o, struct number, o) : NULL;
}

/* ---- in messages: the metadata is its bytes ---- */

static void put_meta(const struct object *o, struct pb_out *out)
{
    const struct tensor *value = &number_of(o)->value;

    pb_put_raw(out, value->data, tensor_bytes(value));
}

static enum mst_code make(enum dtype dt, const struct variant_parts *p,
                          struct object **ret, struct status *st)
{
    struct tensor value;
    enum mst_code rc;

    if (p->meta_len != dtype_size(dt))
        return status_set(st, MST_INVALID_ARGUMENT,
                          "A number of type %s in a variant has %zu bytes",
                          dtype_name(dt), p->meta_len);
    rc = tensor_new_scalar(&value, dt, st);
    if (rc)
        return rc;
    memcpy(value.data, p->meta, p->meta_len);
    if (dt == DT_BOOL)
        *TENSOR_DATA(&value, uint8_t) = *TENSOR_DATA(&value, uint8_t) != 0;
    *ret = &number_new(value)->o;
    return MST_OK;
}

#define NUMBER(name, dt)                                                       \
    static enum mst_code make_##name(const struct variant_parts *p,            \
                                     struct object **ret, struct status *st)   \
    {                                                                          \
        return make(dt, p, ret, st);                                           \
    }                                                                          \
    const struct variant_codec number_##name##_codec = {                       \
        .kind = &name##_kind, .put_meta = put_meta, .make = make_##name        \
    };

NUMBER(int, DT_INT32)
NUMBER(float, DT_FLOAT)
NUMBER(double, DT_DOUBLE)
NUMBER(bool, DT_BOOL)
