#include "kernel/update.h"

enum mst_code update_variable(struct op_ctx *c, int i, struct variable **ret)
{
    struct handle *h;
    struct object *o;
    enum mst_code rc;

    if (!c->in[i].ref) {
        rc = op_handle(c, i, &variable_kind, &h);
        if (rc)
            return rc;
        o = handle_get(h);
        if (!o)
            return op_fail(c, MST_NOT_FOUND,
                           "Resource %s/%s/N10tensorflow3VarE does not exist.",
                           h->container, h->name);
        /* The input's slot keeps it for the length of the run. */
        c->in[i].ref = CONTAINER(o, struct variable, o);
    }
    return op_variable(c, i, true, ret);
}

enum mst_code update_check(struct op_ctx *c, const struct variable *v,
                           int value, const char *text)
{
    if (!tensor_set(&v->t))
        return op_fail(c, MST_FAILED_PRECONDITION,
                       "Attempting to use uninitialized value %s", v->name);
    if (v->t.dtype != op_in(c, value)->dtype)
        return op_fail(c, MST_INVALID_ARGUMENT, "%s", text);
    return MST_OK;
}

enum mst_code update_check_read(struct op_ctx *c, const struct variable *v)
{
    if (!tensor_set(&v->t))
        return op_fail(c, MST_FAILED_PRECONDITION,
                       "Attempting to use uninitialized value %s", v->name);
    if (v->t.dtype == c->node->out_types[0])
        return MST_OK;
    return op_fail(c, MST_INVALID_ARGUMENT,
                   "Trying to read variable with wrong dtype. Expected %s got "
                   "%s",
                   dtype_name(v->t.dtype), dtype_name(c->node->out_types[0]));
}

enum mst_code update_prepare_rows(struct op_ctx *c, struct variable *v)
{
    struct tensor own;
    enum mst_code rc = variable_prepare_rows(v, c->st);

    /* Who reads numbers by reference may see them change. Who reads strings
     * must not: they would be freed under him. */
    if (rc || dtype_is_plain((enum dtype)v->t.dtype) || tensor_unique(&v->t))
        return rc;
    rc = tensor_copy(&own, &v->t, c->st);
    if (!rc)
        variable_publish(v, &own);
    return rc;
}
