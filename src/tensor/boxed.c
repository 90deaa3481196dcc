#include "tensor/boxed.h"

#include "base/mem.h"

static void boxed_free(struct object *o)
{
    struct boxed *b = CONTAINER(o, struct boxed, o);

    tensor_unref(&b->t);
    mem_free(b);
}

const struct object_kind boxed_kind = { "tensorflow::Tensor", boxed_free };

struct object *boxed_new(const struct tensor *t)
{
    struct boxed *b = MEM_NEW(struct boxed);

    object_init(&b->o, &boxed_kind);
    b->t = tensor_ref(t);
    return &b->o;
}

const struct tensor *boxed_get(const struct object *o)
{
    if (!o || o->kind != &boxed_kind)
        return NULL;
    return &CONTAINER(o, struct boxed, o)->t;
}
