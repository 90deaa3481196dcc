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

/* ---- in messages: without metadata ---- */

static const struct tensor *next(const struct object *o, int64_t *at)
{
    return (*at)++ ? NULL : boxed_get(o);
}

static enum mst_code make(const struct variant_parts *p, struct object **ret,
                          struct status *st)
{
    if (p->count != 1)
        return status_set(st, MST_INVALID_ARGUMENT,
                          "A tensor in a variant is %lld tensors",
                          (long long)p->count);
    *ret = boxed_new(&p->tensors[0]);
    return MST_OK;
}

const struct variant_codec boxed_codec = { .kind = &boxed_kind,
                                           .next = next,
                                           .make = make };
