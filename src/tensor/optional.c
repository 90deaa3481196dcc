#include "tensor/optional.h"

#include "base/mem.h"

static void optional_free(struct object *o)
{
    struct optional *v = CONTAINER(o, struct optional, o);

    for (int i = 0; i < v->count; i++)
        tensor_unref(&v->values[i]);
    mem_free(v);
}

const struct object_kind optional_kind = { "tensorflow::data::Optional",
                                           optional_free };

struct optional *optional_new(int count)
{
    struct optional *v =
        mem_new(sizeof(*v) + (size_t)MAX(count, 0) * sizeof(v->values[0]));

    object_init(&v->o, &optional_kind);
    v->count = count;
    return v;
}
