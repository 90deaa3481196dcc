#include "op/variable.h"

#include <string.h>

#include "base/mem.h"
#include "op/op.h"

static void variable_free(struct object *o)
{
    struct variable *v = CONTAINER(o, struct variable, o);

    tensor_unref(&v->t);
    pthread_mutex_destroy(&v->lock);
    mem_free(v->name);
    mem_free(v);
}

const struct object_kind variable_kind = { "variable", variable_free };

struct variable *variable_new(const char *name, int dtype, bool by_ref)
{
    struct variable *v = MEM_NEW(struct variable);

    variable_begin(v, &variable_kind, name, dtype, by_ref);
    return v;
}

void variable_begin(struct variable *v, const struct object_kind *kind,
                    const char *name, int dtype, bool by_ref)
{
    object_init(&v->o, kind);
    pthread_mutex_init(&v->lock, NULL);
    v->dtype = dtype;
    v->by_ref = by_ref;
    v->shape.ndim = -1;
    v->name = mem_str(name);
}

struct variable *variable_ref(struct variable *v)
{
    if (v)
        object_ref(&v->o);
    return v;
}

void variable_unref(struct variable *v)
{
    if (v)
        object_unref(&v->o);
}

enum mst_code variable_read(struct variable *v, struct tensor *ret,
                            struct status *st)
{
    enum mst_code rc = MST_OK;

    *ret = (struct tensor){ 0 };
    pthread_mutex_lock(&v->lock);
    if (!tensor_set(&v->t))
        ;
    else if (v->copy_on_read && !v->by_ref)
        rc = tensor_copy(ret, &v->t, st);
    else
        *ret = tensor_ref(&v->t);
    pthread_mutex_unlock(&v->lock);
    return rc;
}

void variable_assign(struct variable *v, struct tensor *value)
{
    struct tensor old;

    pthread_mutex_lock(&v->lock);
    if (v->by_ref && v->t.dtype == value->dtype && v->t.count == value->count &&
        dtype_is_plain(value->dtype)) {
        tensor_reshape(&old, &v->t, value->ndim, value->dims);
        tensor_unref(&v->t);
        v->t = old;
        tensor_copy_elems(&v->t, 0, value, 0, value->count);
        tensor_move(&old, value);
    } else {
        old = v->t;
        tensor_move(&v->t, value);
    }
    pthread_mutex_unlock(&v->lock);
    tensor_unref(&old);
}

/* Sorted by address, without NULL and doubles. */
static int lock_order(struct variable *const *v, int count,
                      struct variable **sorted)
{
    int n = 0;

    CHECK(count <= VARIABLE_LOCK_MAX);
    for (int i = 0; i < count; i++) {
        int at = n;

        if (!v[i])
            continue;
        while (at > 0 && sorted[at - 1] > v[i])
            at--;
        if (at > 0 && sorted[at - 1] == v[i])
            continue;
        memmove(sorted + at + 1, sorted + at,
                (size_t)(n - at) * sizeof(*sorted));
        sorted[at] = v[i];
        n++;
    }
    return n;
}

void variable_lock_all(struct variable *const *v, int count)
{
    struct variable *sorted[VARIABLE_LOCK_MAX + 1];
    int n = lock_order(v, count, sorted);

    for (int i = 0; i < n; i++)
        pthread_mutex_lock(&sorted[i]->lock);
}

void variable_unlock_all(struct variable *const *v, int count)
{
    struct variable *sorted[VARIABLE_LOCK_MAX + 1];
    int n = lock_order(v, count, sorted);

    while (n-- > 0)
        pthread_mutex_unlock(&sorted[n]->lock);
}

enum mst_code variable_prepare(struct variable *v, struct tensor *ret_new,
                               struct status *st)
{
    if (v->by_ref || tensor_unique(&v->t)) {
        *ret_new = tensor_ref(&v->t);
        return MST_OK;
    }
    return tensor_new_like(ret_new, (enum dtype)v->t.dtype, &v->t, st);
}

void variable_publish(struct variable *v, struct tensor *new_value)
{
    tensor_unref(&v->t);
    tensor_move(&v->t, new_value);
}

enum mst_code variable_prepare_rows(struct variable *v, struct status *st)
{
    struct tensor own;
    enum mst_code rc;

    if (!v->by_ref) {
        v->copy_on_read = true;
        if (!tensor_unique(&v->t)) {
            rc = tensor_copy(&own, &v->t, st);
            if (rc)
                return rc;
            variable_publish(v, &own);
        }
    }
    return MST_OK;
}

/* ---- for kernels ---- */

static enum mst_code no_value(struct op_ctx *c, const struct variable *v,
                              const struct handle *h)
{
    if (!h)
        return op_fail(c, MST_FAILED_PRECONDITION,
                       "Attempting to use uninitialized value %s", v->name);
    return op_fail(
        c, MST_FAILED_PRECONDITION,
        "Could not find variable %s. This could mean that the variable has "
        "been deleted. In TF1, it can also mean the variable is "
        "uninitialized. Debug info: container=%s, status error "
        "message=Resource %s/%s/N10tensorflow3VarE does not exist.",
        h->name, h->container, h->container, h->name);
}

enum mst_code op_variable(struct op_ctx *c, int i, bool must_have,
                          struct variable **ret)
{
    struct variable *v = c->in[i].ref;
    struct handle *h = NULL;
    struct object *o;
    enum mst_code rc;
    bool has;

    if (!v) {
        rc = op_handle(c, i, &variable_kind, &h);
        if (rc)
            return rc;
        o = handle_get(h);
        if (!o)
            return no_value(c, NULL, h);
        if (c->node->key_type != DT_ANY &&
            CONTAINER(o, struct variable, o)->dtype != c->node->key_type) {
            rc = op_fail(c, MST_INVALID_ARGUMENT,
                         "Trying to access variable %s with wrong dtype. "
                         "Expected %s got %s",
                         h->name,
                         dtype_name(CONTAINER(o, struct variable, o)->dtype),
                         dtype_name(c->node->key_type));
            object_unref(o);
            return rc;
        }
        /* The input slot holds on to it for the length of the run. */
        v = c->in[i].ref = CONTAINER(o, struct variable, o);
    }
    if (must_have) {
        pthread_mutex_lock(&v->lock);
        has = tensor_set(&v->t);
        pthread_mutex_unlock(&v->lock);
        if (!has)
            return no_value(c, v, h);
    }
    *ret = v;
    return MST_OK;
}

void op_out_ref(struct op_ctx *c, int i, int in)
{
    c->out[i].ref = variable_ref(c->in[in].ref);
}
