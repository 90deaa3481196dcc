#include "tensor/list.h"

#include <string.h>

#include "base/mem.h"

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
