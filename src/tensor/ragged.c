#include "tensor/ragged.h"

#include "base/mem.h"

static void ragged_free(struct object *o)
{
    struct ragged_value *r = CONTAINER(o, struct ragged_value, o);

    tensor_unref(&r->values);
    for (int i = 0; i < r->rank; i++)
        tensor_unref(&r->splits[i]);
    mem_free(r);
}

const struct object_kind ragged_kind = { "RaggedTensorVariant", ragged_free };

struct ragged_value *ragged_value_new(int rank)
{
    struct ragged_value *r =
        mem_new(sizeof(*r) + (size_t)rank * sizeof(r->splits[0]));

    object_init(&r->o, &ragged_kind);
    r->rank = rank;
    return r;
}
