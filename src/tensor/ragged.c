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

/* ---- in messages: no metadata; the splits, and then the values ---- */

static const struct tensor *next(const struct object *o, int64_t *at)
{
    const struct ragged_value *r = CONTAINER(o, struct ragged_value, o);
    int64_t i = (*at)++;

    return i < r->rank ? &r->splits[i] : i == r->rank ? &r->values : NULL;
}

/* Whether the splits fit is for who takes them apart to see. */
static enum mst_code make(const struct variant_parts *p, struct object **ret,
                          struct status *st)
{
    struct ragged_value *r;

    if (!p->count)
        return status_set(st, MST_INVALID_ARGUMENT,
                          "A RaggedTensorVariant has no values");
    r = ragged_value_new((int)p->count - 1);
    for (int i = 0; i < r->rank; i++)
        tensor_move(&r->splits[i], &p->tensors[i]);
    tensor_move(&r->values, &p->tensors[r->rank]);
    *ret = &r->o;
    return MST_OK;
}

const struct variant_codec ragged_codec = { .kind = &ragged_kind,
                                            .next = next,
                                            .make = make };
