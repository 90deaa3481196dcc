#include "tensor/list.h"

#include <string.h>

#include "base/mem.h"
#include "tensor/proto.h"

static void tensor_list_free(struct object *o)
{
    struct tensor_list *l = CONTAINER(o, struct tensor_list, o);

    tensor_list_resize(l, 0);
    mem_free(l->items);
    mem_free(l);
}

const struct object_kind tensor_list_kind = { "tensorflow::TensorList",
                                              tensor_list_free };

struct tensor_list *tensor_list_new(int dtype, const struct shape *shape,
                                    int64_t count_max)
{
    struct tensor_list *l = MEM_NEW(struct tensor_list);

    object_init(&l->o, &tensor_list_kind);
    l->dtype = dtype;
    l->shape = *shape;
    l->count_max = count_max;
    return l;
}

static void reserve(struct tensor_list *l, int64_t room)
{
    if (room <= l->room)
        return;
    l->items = mem_grow(l->items, (size_t)room, sizeof(*l->items));
    l->room = room;
}

void tensor_list_push(struct tensor_list *l, struct tensor item)
{
    if (l->count == l->room)
        reserve(l, MAX(l->room * 2, 8));
    l->items[l->count++] = item;
}

void tensor_list_resize(struct tensor_list *l, int64_t count)
{
    while (l->count > count)
        tensor_unref(&l->items[--l->count]);
    if (l->count == count)
        return;
    reserve(l, count);
    memset(l->items + l->count, 0,
           (size_t)(count - l->count) * sizeof(*l->items));
    l->count = count;
}

static void append(struct tensor_list *to, const struct tensor_list *from)
{
    reserve(to, to->count + from->count);
    for (int64_t i = 0; i < from->count; i++)
        to->items[to->count++] = tensor_ref(&from->items[i]);
}

struct tensor_list *tensor_list_copy(const struct tensor_list *l)
{
    struct tensor_list *copy =
        tensor_list_new(l->dtype, &l->shape, l->count_max);

    append(copy, l);
    return copy;
}

/*
 * ---- in messages ----
 *
 * metadata = varints: how many elements are not set, and their indices, rising;
 *            the type of the elements; how many there may be, -1 for any
 *            then, to the end: the shape of the elements, a TensorShapeProto
 * tensors  = the elements that are set
 */

static void put_meta(const struct object *o, struct pb_out *out)
{
    const struct tensor_list *l = CONTAINER(o, struct tensor_list, o);
    uint64_t unset = 0;

    for (int64_t i = 0; i < l->count; i++)
        unset += !tensor_set(&l->items[i]);
    pb_put_varint(out, unset);
    for (int64_t i = 0; i < l->count; i++)
        if (!tensor_set(&l->items[i]))
            pb_put_varint(out, (uint64_t)i);
    pb_put_varint(out, (uint64_t)l->dtype);
    pb_put_varint(out, (uint64_t)l->count_max);
    shape_put_proto(out, &l->shape);
}

static const struct tensor *next(const struct object *o, int64_t *at)
{
    const struct tensor_list *l = CONTAINER(o, struct tensor_list, o);

    while (*at < l->count && !tensor_set(&l->items[*at]))
        (*at)++;
    return *at < l->count ? &l->items[(*at)++] : NULL;
}

/* Puts the tensors where no index says that nothing is set; reads on behind the
 * indices. False when they do not rise, or are not those of this list. */
static bool place(struct tensor_list *l, const struct variant_parts *p,
                  uint64_t unset, const uint8_t **at, const uint8_t *end)
{
    int64_t from = 0, to = 0;
    uint64_t i;

    for (; unset; unset--) {
        if (!pb_varint(at, end, &i) || i < (uint64_t)to ||
            i >= (uint64_t)l->count)
            return false;
        while (to < (int64_t)i && from < p->count)
            tensor_move(&l->items[to++], &p->tensors[from++]);
        if (to++ != (int64_t)i)
            return false;
    }
    while (from < p->count)
        tensor_move(&l->items[to++], &p->tensors[from++]);
    return true;
}

static bool make_items(struct tensor_list *l, const struct variant_parts *p,
                       const uint8_t **at, const uint8_t *end)
{
    uint64_t unset;

    /* Each index takes a byte at least. */
    if (!pb_varint(at, end, &unset) || unset > (uint64_t)(end - *at) ||
        unset > (uint64_t)(TENSOR_LIST_MAX - p->count))
        return false;
    tensor_list_resize(l, p->count + (int64_t)unset);
    return place(l, p, unset, at, end);
}

static enum mst_code check_items(const struct tensor_list *l, struct status *st)
{
    char list[SHAPE_TEXT_MAX], item[SHAPE_TEXT_MAX];

    for (int64_t i = 0; i < l->count; i++) {
        const struct tensor *t = &l->items[i];

        if (tensor_set(t) &&
            (t->dtype != l->dtype || !shape_compatible(&l->shape, t)))
            return status_set(st, MST_INVALID_ARGUMENT,
                              "Element %lld of a TensorList is of type %s and "
                              "shape %s, the list of type %s and shape %s",
                              (long long)i, dtype_name(t->dtype),
                              tensor_shape_text(t, item), dtype_name(l->dtype),
                              shape_text(l->shape.ndim, l->shape.dims, list));
    }
    return MST_OK;
}

static enum mst_code read(struct tensor_list *l, const struct variant_parts *p,
                          struct status *st)
{
    const uint8_t *at = p->meta, *end = p->meta + p->meta_len;
    uint64_t dtype, count_max;
    enum mst_code rc;

    if (!make_items(l, p, &at, end) || !pb_varint(&at, end, &dtype) ||
        !pb_varint(&at, end, &count_max) || dtype >= DT_COUNT ||
        (dtype && !dtype_valid((int)dtype)))
        return status_set(st, MST_INVALID_ARGUMENT,
                          "Malformed metadata of a TensorList of %lld tensors",
                          (long long)p->count);
    l->dtype = (int)dtype;
    l->count_max = (int64_t)count_max;
    rc = shape_from_proto(&l->shape, at, (size_t)(end - at), st);
    return rc ? rc : check_items(l, st);
}

static enum mst_code make(const struct variant_parts *p, struct object **ret,
                          struct status *st)
{
    struct tensor_list *l =
        tensor_list_new(DT_INVALID, &(struct shape){ .ndim = -1 }, -1);
    enum mst_code rc = read(l, p, st);

    if (rc)
        object_unref(&l->o);
    else
        *ret = &l->o;
    return rc;
}

const struct variant_codec tensor_list_codec = { &tensor_list_kind, put_meta,
                                                 next, make };
