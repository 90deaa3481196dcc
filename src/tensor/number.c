#include "tensor/number.h"

#include <string.h>

#include "base/mem.h"
#include "wire/pb.h"

static void number_free(struct object *o)
{
    struct number *b = CONTAINER(o, struct number, o);

    tensor_unref(&b->value);
    mem_free(b);
}

const struct object_kind number_kind = { "number", number_free };

struct number *number_new(struct tensor value)
{
    struct number *b = MEM_NEW(struct number);

    object_init(&b->o, &number_kind);
    b->value = value;
    return b;
}

/* The names that TensorFlow has for them. */
static enum dtype type_named(const struct pb_field *f)
{
    static const struct {
        const char *name;
        enum dtype dtype;
    } types[] = { { "int", DT_INT32 },
                  { "float", DT_FLOAT },
                  { "double", DT_DOUBLE },
                  { "bool", DT_BOOL } };

    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
        if (f->len == strlen(types[i].name) &&
            !memcmp(f->data, types[i].name, f->len))
            return types[i].dtype;
    return DT_INVALID;
}

struct number *number_from_proto(const void *data, size_t len)
{
    struct pb_in in = pb_in(data, len);
    struct pb_field f, bytes = { 0 };
    enum dtype dt = DT_INVALID;
    struct tensor value;
    struct status st;

    while (pb_next(&in, &f)) {
        if (f.number == 1 && f.wire == PB_LEN)
            dt = type_named(&f);
        else if (f.number == 2 && f.wire == PB_LEN)
            bytes = f;
    }
    if (in.bad || dt == DT_INVALID || bytes.len != dtype_size(dt) ||
        tensor_new(&value, dt, 0, NULL, &st))
        return NULL;
    memcpy(value.data, bytes.data, bytes.len);
    if (dt == DT_BOOL)
        *TENSOR_DATA(&value, uint8_t) = *TENSOR_DATA(&value, uint8_t) != 0;
    return number_new(value);
}
