/* What the ops of tensor lists have in common. */
#include "kernel/tensor_list.h"

#include "kernel/element.h"

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
