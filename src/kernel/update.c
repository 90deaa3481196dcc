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
