#include "op/resource.h"

#include <string.h>

#include "base/map.h"
#include "base/mem.h"
#include "op/op.h"

struct resources {
    atomic_uint refs;
    pthread_mutex_t lock;
    struct map handles; /* under lock; "container\0kind\0name" -> handle */
    char *default_container;
};

static void handle_free(struct object *o)
{
    struct handle *h = CONTAINER(o, struct handle, o);

    object_unref(h->held);
    pthread_mutex_destroy(&h->lock);
    mem_free((char *)h->container);
    mem_free((char *)h->name);
    mem_free(h);
}

const struct object_kind handle_kind = { "handle", handle_free };

static struct handle *handle_new(const char *container,
                                 const struct object_kind *kind,
                                 const char *name)
{
    struct handle *h = MEM_NEW(struct handle);

    object_init(&h->o, &handle_kind);
    pthread_mutex_init(&h->lock, NULL);
    h->kind = kind;
    h->container = mem_str(container);
    h->name = mem_str(name);
    h->shape.ndim = -1;
    return h;
}

struct resources *resources_new(const char *default_container)
{
    struct resources *r = MEM_NEW(struct resources);

    atomic_init(&r->refs, 1);
    pthread_mutex_init(&r->lock, NULL);
    map_init(&r->handles);
    r->default_container = mem_str(default_container);
    return r;
}

struct resources *resources_ref(struct resources *r)
{
    atomic_fetch_add(&r->refs, 1);
    return r;
}

void resources_unref(struct resources *r)
{
    struct map_slot *s;
    size_t at = 0;

    if (!r || atomic_fetch_sub(&r->refs, 1) != 1)
        return;
    while ((s = map_next(&r->handles, &at))) {
        handle_drop(s->value);
        handle_unref(s->value);
    }
    map_done(&r->handles);
    pthread_mutex_destroy(&r->lock);
    mem_free(r->default_container);
    mem_free(r);
}

const char *resources_default_container(const struct resources *r)
{
    return r->default_container;
}

struct handle *resources_handle(struct resources *r, const char *container,
                                const struct object_kind *kind,
                                const char *name)
{
    const char *in = *container ? container : r->default_container;
    size_t len = strlen(in) + strlen(kind->name) + strlen(name) + 2;
    char *key = mem_printf("%s%c%s%c%s", in, 0, kind->name, 0, name);
    struct handle *h;

    pthread_mutex_lock(&r->lock);
    h = map_get(&r->handles, key, len);
    if (!h) {
        h = handle_new(in, kind, name);
        map_put(&r->handles, key, len, h);
    }
    object_ref(&h->o);
    pthread_mutex_unlock(&r->lock);
    mem_free(key);
    return h;
}

struct handle *handle_anonymous(const struct object_kind *kind,
                                struct object *held, const char *name)
{
    struct handle *h = handle_new("", kind, name);

    h->held = held;
    return h;
}

void handle_unref(struct handle *h)
{
    if (h)
        object_unref(&h->o);
}

struct object *handle_get(struct handle *h)
{
    struct object *o;

    pthread_mutex_lock(&h->lock);
    o = object_ref(h->held);
    pthread_mutex_unlock(&h->lock);
    return o;
}

struct object *handle_get_or_make(struct handle *h,
                                  struct object *(*make)(void *arg,
                                                         struct status *st),
                                  void *arg, struct status *st)
{
    struct object *o;

    pthread_mutex_lock(&h->lock);
    if (!h->held)
        h->held = make(arg, st);
    o = object_ref(h->held);
    pthread_mutex_unlock(&h->lock);
    return o;
}

bool handle_drop(struct handle *h)
{
    struct object *o;

    pthread_mutex_lock(&h->lock);
    o = h->held;
    h->held = NULL;
    pthread_mutex_unlock(&h->lock);
    object_unref(o);
    return o != NULL;
}

/* The handles of all objects, with a reference each: what is done with them is
 * done without the table's lock. */
static struct handle **snapshot(struct resources *r, size_t *ret_count)
{
    struct handle **list;
    struct map_slot *s;
    size_t at = 0, n = 0;

    pthread_mutex_lock(&r->lock);
    list = mem_array(r->handles.count, sizeof(*list));
    while ((s = map_next(&r->handles, &at))) {
        list[n] = s->value;
        object_ref(&list[n++]->o);
    }
    pthread_mutex_unlock(&r->lock);
    *ret_count = n;
    return list;
}

void resources_clear(struct resources *r, const char *container)
{
    const char *in = *container ? container : r->default_container;
    size_t count;
    struct handle **list = snapshot(r, &count);

    for (size_t i = 0; i < count; i++) {
        if (!strcmp(list[i]->container, in))
            handle_drop(list[i]);
        handle_unref(list[i]);
    }
    mem_free(list);
}

void resources_each(struct resources *r,
                    void (*fn)(void *arg, struct handle *h), void *arg)
{
    size_t count;
    struct handle **list = snapshot(r, &count);

    for (size_t i = 0; i < count; i++) {
        fn(arg, list[i]);
        handle_unref(list[i]);
    }
    mem_free(list);
}

/* ---- for kernels ---- */

enum mst_code op_handle(struct op_ctx *c, int i, const struct object_kind *kind,
                        struct handle **ret)
{
    const struct tensor *t = op_in(c, i);
    struct object *o;
    struct handle *h;

    if (t->dtype != DT_RESOURCE || t->count != 1 ||
        !(o = *tensor_object(t, 0)) || o->kind != &handle_kind)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Input %d is not a resource handle", i);
    h = CONTAINER(o, struct handle, o);
    if (kind && h->kind != kind)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Trying to access resource %s using the wrong type. "
                       "Expected %s got %s",
                       h->name, kind->name, h->kind->name);
    *ret = h;
    return MST_OK;
}

enum mst_code op_resource(struct op_ctx *c, int i,
                          const struct object_kind *kind, struct object **ret)
{
    struct handle *h;
    struct object *o;
    enum mst_code rc = op_handle(c, i, kind, &h);

    if (rc)
        return rc;
    o = handle_get(h);
    if (!o)
        return op_fail(c, MST_NOT_FOUND, "Resource %s/%s/%s does not exist.",
                       h->container, h->name, kind->name);
    *ret = o;
    return MST_OK;
}

struct handle *op_node_handle(struct op_node *n, const struct object_kind *kind)
{
    struct attr_text name = op_attr_str(n, "shared_name");

    return resources_handle(n->env->resources, op_attr_str(n, "container").data,
                            kind, name.len ? name.data : n->name);
}

enum mst_code op_out_handle(struct op_ctx *c, int i, struct handle *h)
{
    enum mst_code rc = tensor_new_scalar(op_out(c, i), DT_RESOURCE, c->st);

    if (!rc)
        *tensor_object(op_out(c, i), 0) = object_ref(&h->o);
    return rc;
}
