/*
 * The list itself, and what its ops have in common.
 */
#include "kernel/tensor_list.h"

#include <string.h>

#include "base/mem.h"
#include "kernel/element.h"

static void tensor_list_free(struct object *o)
{
    struct tensor_list *l = CONTAINER(o, struct tensor_list, o);

    tensor_list_resize(l, 0);
    mem_free(l->items);
    mem_free(l);
}

const struct object_kind tensor_list_kind = { "tensor list", tensor_list_free };

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

/* ---- for kernels ---- */

enum mst_code tensor_list_in(struct op_ctx *c, int i,
                             const struct tensor_list **ret)
{
    const struct tensor *t = op_in(c, i);
    struct object *o;
    char text[SHAPE_TEXT_MAX];

    if (t->ndim)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Input list must be a scalar saw: %s",
                       tensor_shape_text(t, text));
    o = t->dtype == DT_VARIANT ? *tensor_object(t, 0) : NULL;
    if (!o || o->kind != &tensor_list_kind)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Input handle is not a list. Saw: '%s'",
                       o ? o->kind->name : "Invalid variant");
    *ret = CONTAINER(o, struct tensor_list, o);
    return MST_OK;
}

enum mst_code tensor_list_in_typed(struct op_ctx *c, int i, int dt,
                                   const struct tensor_list **ret)
{
    enum mst_code rc = tensor_list_in(c, i, ret);

    if (!rc && (*ret)->dtype != dt)
        rc = op_fail(c, MST_INVALID_ARGUMENT,
                     "Invalid data types; op elements %s but list elements %s",
                     dtype_name(dt), dtype_name((*ret)->dtype));
    return rc;
}

enum mst_code tensor_list_out(struct op_ctx *c, struct tensor_list *l)
{
    enum mst_code rc = tensor_new_scalar(op_out(c, 0), DT_VARIANT, c->st);

    if (rc)
        object_unref(&l->o);
    else
        *tensor_object(op_out(c, 0), 0) = &l->o;
    return rc;
}

enum mst_code tensor_list_change(struct op_ctx *c, struct tensor_list **ret)
{
    struct tensor *in = &c->in[0].t;
    struct object *o = *tensor_object(in, 0);
    struct tensor_list *l = CONTAINER(o, struct tensor_list, o);

    if (tensor_unique(in) && atomic_load(&o->refs) == 1) {
        tensor_move(op_out(c, 0), in);
        *ret = l;
        return MST_OK;
    }
    *ret = tensor_list_copy(l);
    return tensor_list_out(c, *ret);
}

enum mst_code tensor_list_shape_in(struct op_ctx *c, int i, struct shape *ret)
{
    const struct tensor *t = op_in(c, i);
    struct shape s = { .ndim = (int)t->count };

    if (!t->ndim) {
        if (tensor_int(t, 0) != -1)
            return op_fail(c, MST_INVALID_ARGUMENT,
                           "The only valid scalar shape tensor is the fully "
                           "unknown shape specified as -1.");
        s.ndim = -1;
    } else if (t->ndim > 1) {
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Shape must be at most rank 1 but is rank %d", t->ndim);
    } else if (t->count > TENSOR_RANK_MAX) {
        return op_fail(c, MST_UNIMPLEMENTED,
                       "Tensors of rank %lld are not supported, only up to %d",
                       (long long)t->count, TENSOR_RANK_MAX);
    }
    for (int k = 0; k < s.ndim; k++) {
        s.dims[k] = tensor_int(t, k);
        if (s.dims[k] < -1)
            return op_fail(c, MST_INVALID_ARGUMENT,
                           "Dimension %lld must be >= -1",
                           (long long)s.dims[k]);
    }
    *ret = s;
    return MST_OK;
}

enum mst_code tensor_list_shape_of(struct op_ctx *c, int i,
                                   const struct tensor_list *l,
                                   struct shape *ret)
{
    enum mst_code rc = tensor_list_shape_in(c, i, ret);

    return rc ? rc : element_shape_join(c, ret, &l->shape);
}

enum mst_code tensor_list_number(struct op_ctx *c, int i, const char *name,
                                 int64_t *ret)
{
    const struct tensor *t = op_in(c, i);
    char text[SHAPE_TEXT_MAX];

    if (t->ndim && t->count != 1)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "%s expected to be a scalar but got shape: %s", name,
                       tensor_shape_text(t, text));
    *ret = tensor_int(t, 0);
    return MST_OK;
}

enum mst_code tensor_list_check_count(struct op_ctx *c, int64_t count)
{
    if (count <= TENSOR_LIST_MAX)
        return MST_OK;
    return op_fail(c, MST_RESOURCE_EXHAUSTED,
                   "A list of %lld elements is more than %d", (long long)count,
                   TENSOR_LIST_MAX);
}
