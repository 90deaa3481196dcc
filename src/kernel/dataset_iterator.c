/*
 * Iterators as resources: who makes them, who asks them for elements.
 *
 * An iterator serves one op at a time; the rest wait in a line and are served
 * in turn. A MakeIterator that comes while an element is on its way takes
 * effect after it.
 */
#include "base/mem.h"
#include "kernel/dataset.h"
#include "kernel/types.h"
#include "kernel/wait.h"
#include "tensor/optional.h"

struct iterator {
    struct object o;
    pthread_mutex_t lock;
    /* All under lock. */
    struct dataset_iter *root; /* NULL: no dataset yet */
    struct dataset_iter *next_root;
    bool busy;
    struct wait_line waiting;
};

static void iterator_free(struct object *o)
{
    struct iterator *it = CONTAINER(o, struct iterator, o);

    dataset_iter_free(it->root);
    dataset_iter_free(it->next_root);
    pthread_mutex_destroy(&it->lock);
    mem_free(it);
}

static const struct object_kind iterator_kind = { "iterator", iterator_free };

static struct object *iterator_make(void *arg, struct status *st)
{
    struct iterator *it = MEM_NEW(struct iterator);

    (void)arg;
    (void)st;
    object_init(&it->o, &iterator_kind);
    pthread_mutex_init(&it->lock, NULL);
    return &it->o;
}

/* Takes root over; with `once` only when there is none yet. */
static void iterator_set(struct iterator *it, struct dataset_iter *root,
                         bool once)
{
    struct dataset_iter *old = root;

    pthread_mutex_lock(&it->lock);
    if (!once || !it->root) {
        struct dataset_iter **to = it->busy ? &it->next_root : &it->root;

        old = *to;
        *to = root;
    }
    pthread_mutex_unlock(&it->lock);
    dataset_iter_free(old);
}

/* ---- the next element ---- */

struct request {
    struct wait wait;
};

static enum mst_code give_optional(struct op_ctx *c, struct dataset_iter *root)
{
    struct optional *v = optional_new(root->end ? -1 : root->count);
    enum mst_code rc = op_out_new(c, 0, 0, NULL);

    for (int i = 0; i < v->count; i++)
        tensor_move(&v->values[i], &root->out[i]);
    if (rc)
        object_unref(&v->o);
    else
        *tensor_object(op_out(c, 0), 0) = &v->o;
    return rc;
}

static enum mst_code give(struct op_ctx *c, struct dataset_iter *root,
                          enum mst_code rc)
{
    if (!rc && !strcmp(c->node->def->name, "IteratorGetNextAsOptional"))
        return give_optional(c, root);
    if (!rc && root->end)
        return op_fail(c, MST_OUT_OF_RANGE, "End of sequence");
    return rc ? rc : dataset_give(c, root);
}

static void iterator_next(struct iterator *it);

static void on_element(struct dataset_iter *root, enum mst_code code)
{
    struct iterator *it = root->arg;
    struct op_ctx *c = root->c;

    op_finish(c, give(c, root, code));
    iterator_next(it);
}

/* Whoever waits is served: until nobody does, or an element is on its way.
 * Ends the reference of the one who was served last. */
static void iterator_next(struct iterator *it)
{
    for (;;) {
        struct dataset_iter *old = NULL, *root;
        struct wait_line ended = { 0 };
        struct op_ctx *c;
        struct wait *w;
        enum mst_code rc;

        pthread_mutex_lock(&it->lock);
        if (it->next_root) {
            old = it->root;
            it->root = it->next_root;
            it->next_root = NULL;
        }
        w = it->waiting.first;
        if (w)
            wait_leave(w, MST_OK, &ended);
        it->busy = w != NULL;
        root = it->root;
        pthread_mutex_unlock(&it->lock);
        dataset_iter_free(old);
        object_unref(&it->o); /* the waiting op has one of its own */
        if (!w)
            return;
        c = w->c;
        cancel_remove(c->step->cancel, &w->item);
        rc = dataset_pull_root(root, c, on_element, it);
        if (rc == OP_LATER)
            return;
        op_finish(c, give(c, root, rc));
    }
}

static void on_cancel(struct cancel_item *item)
{
    struct wait *w = CONTAINER(item, struct wait, item);

    wait_give_up(w, &CONTAINER(w->at, struct iterator, o)->lock,
                 "Iterator was cancelled");
}

static enum mst_code get_next(struct op_ctx *c)
{
    struct request *r = c->scratch;
    struct dataset_iter *root;
    struct iterator *it;
    struct object *o;
    enum mst_code rc = op_resource(c, 0, &iterator_kind, &o);

    if (rc)
        return rc;
    it = CONTAINER(o, struct iterator, o);
    pthread_mutex_lock(&it->lock);
    root = it->root;
    if (!root) {
        rc = op_fail(c, MST_FAILED_PRECONDITION,
                     "GetNext() failed because the iterator has not been "
                     "initialized. Ensure that you have run the initializer "
                     "operation for this iterator before getting the next "
                     "element.");
    } else if (it->busy) {
        *r = (struct request){ .wait = { .c = c, .at = o } };
        rc = wait_join(&it->waiting, &r->wait, on_cancel)
                 ? OP_LATER
                 : op_fail(c, MST_CANCELLED, "Iterator was cancelled");
    } else {
        it->busy = true;
    }
    pthread_mutex_unlock(&it->lock);
    if (rc == OP_LATER)
        return rc;
    if (rc) {
        object_unref(o);
        return rc;
    }
    rc = dataset_pull_root(root, c, on_element, it);
    if (rc == OP_LATER)
        return rc;
    rc = give(c, root, rc);
    iterator_next(it);
    return rc;
}

#define GET_NEXT(stem, text, out_)                                             \
    const struct op_def def_##stem = {                                         \
        .name = text,                                                          \
        .in = "iterator: resource",                                            \
        .out = out_,                                                           \
        .attr = DATASET_ATTRS,                                                 \
        .flags = OP_STATEFUL | OP_ASYNC | OP_BLOCKING,                         \
        .kernel = (const struct op_kernel[]){ { DT_ANY, get_next }, { 0 } },   \
    };

GET_NEXT(iterator_get_next, "IteratorGetNext", "components: output_types")
GET_NEXT(iterator_get_next_sync, "IteratorGetNextSync",
         "components: output_types")
GET_NEXT(iterator_get_next_as_optional, "IteratorGetNextAsOptional",
         "optional: variant")

/* ---- making ---- */

static enum mst_code handle_init(struct op_node *n, struct status *st)
{
    (void)st;
    n->state = op_node_handle(n, &iterator_kind);
    return MST_OK;
}

static void handle_done(struct op_node *n)
{
    handle_unref(n->state);
}

static enum mst_code iterator_run(struct op_ctx *c)
{
    struct object *o =
        handle_get_or_make(c->node->state, iterator_make, NULL, c->st);

    object_unref(o);
    return op_out_handle(c, 0, c->node->state);
}

#define ITERATOR(stem, text)                                                   \
    const struct op_def def_##stem = {                                         \
        .name = text,                                                          \
        .out = "handle: resource",                                             \
        .attr = "shared_name: string; container: string; " DATASET_ATTRS,      \
        .flags = OP_STATEFUL,                                                  \
        .init = handle_init,                                                   \
        .done = handle_done,                                                   \
        .kernel =                                                              \
            (const struct op_kernel[]){ { DT_ANY, iterator_run }, { 0 } },     \
    };

ITERATOR(iterator, "Iterator")
ITERATOR(iterator_v2, "IteratorV2")

static enum mst_code make_iterator(struct op_ctx *c)
{
    struct dataset *d = dataset_of(op_in(c, 0));
    struct object *o;
    enum mst_code rc;

    if (!d)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "The given variant tensor is not a dataset.");
    rc = op_resource(c, 1, &iterator_kind, &o);
    if (rc)
        return rc;
    iterator_set(CONTAINER(o, struct iterator, o), dataset_iter_new(d), false);
    object_unref(o);
    return MST_OK;
}

const struct op_def def_make_iterator = {
    .name = "MakeIterator",
    .in = "dataset: variant, iterator: resource",
    .flags = OP_STATEFUL,
    .kernel = (const struct op_kernel[]){ { DT_ANY, make_iterator }, { 0 } },
};

/* ---- one shot ---- */

struct one_shot {
    struct handle *handle;
    struct callee *factory;
};

static enum mst_code one_shot_init(struct op_node *n, struct status *st)
{
    struct one_shot *s = ARENA_NEW(n->arena, struct one_shot);
    enum mst_code rc = dataset_func_init(n, "dataset_factory", st);

    s->factory = n->state;
    s->handle = op_node_handle(n, &iterator_kind);
    n->state = s;
    return rc;
}

static void one_shot_done(struct op_node *n)
{
    struct one_shot *s = n->state;

    handle_unref(s->handle);
}

static void on_dataset(struct op_ctx *c, void *arg, enum mst_code code,
                       struct op_value *results, int count)
{
    struct one_shot *s = c->node->state;
    struct object *o = arg;
    struct dataset *d = !code && count == 1 ? dataset_of(&results[0].t) : NULL;

    if (d)
        iterator_set(CONTAINER(o, struct iterator, o), dataset_iter_new(d),
                     true);
    else if (!code)
        code = op_fail(c, MST_INVALID_ARGUMENT,
                       "The `dataset_factory` function must return a single "
                       "dataset.");
    object_unref(o);
    if (!code)
        code = op_out_handle(c, 0, s->handle);
    op_finish(c, code);
}

static enum mst_code one_shot_run(struct op_ctx *c)
{
    struct one_shot *s = c->node->state;
    struct object *o =
        handle_get_or_make(s->handle, iterator_make, NULL, c->st);
    struct iterator *it = CONTAINER(o, struct iterator, o);
    bool made;

    pthread_mutex_lock(&it->lock);
    made = it->root != NULL;
    pthread_mutex_unlock(&it->lock);
    if (made) {
        object_unref(o);
        return op_out_handle(c, 0, s->handle);
    }
    c->node->env->calls->start(s->factory, c, NULL, 0, on_dataset, o);
    return OP_LATER;
}

const struct op_def def_one_shot_iterator = {
    .name = "OneShotIterator",
    .out = "handle: resource",
    .attr = "dataset_factory: func; " DATASET_ATTRS
            "; container: string = ''; shared_name: string = ''",
    .flags = OP_STATEFUL | OP_ASYNC,
    .init = one_shot_init,
    .done = one_shot_done,
    .kernel = (const struct op_kernel[]){ { DT_ANY, one_shot_run }, { 0 } },
};

/* ---- as strings: container and name ---- */

#define STRING_HEAD "iterator\n"

static enum mst_code to_string(struct op_ctx *c)
{
    struct handle *h;
    enum mst_code rc = op_handle(c, 0, &iterator_kind, &h);
    char *text;

    if (!rc)
        rc = op_out_new(c, 0, 0, NULL);
    if (rc)
        return rc;
    text = mem_printf(STRING_HEAD "%s\n%s", h->container ? h->container : "",
                      h->name ? h->name : "");
    str_set(tensor_str(op_out(c, 0), 0), text, strlen(text));
    mem_free(text);
    return MST_OK;
}

const struct op_def def_iterator_to_string_handle = {
    .name = "IteratorToStringHandle",
    .in = "resource_handle: resource",
    .out = "string_handle: string",
    .flags = OP_STATEFUL,
    .kernel = (const struct op_kernel[]){ { DT_ANY, to_string }, { 0 } },
};

static enum mst_code from_string(struct op_ctx *c)
{
    const struct tensor *t = op_in(c, 0);
    struct handle *h;
    struct str s;
    char *text, *container, *name;
    enum mst_code rc;

    if (t->ndim)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "string_handle must be a scalar");
    s = *tensor_str(t, 0);
    text = mem_strn(s.len ? s.data : "", s.len);
    container = text + strlen(STRING_HEAD);
    name = strncmp(text, STRING_HEAD, strlen(STRING_HEAD))
               ? NULL
               : strchr(container, '\n');
    if (!name) {
        mem_free(text);
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Could not parse string_handle as a valid "
                       "ResourceHandle");
    }
    *name++ = '\0';
    h = resources_handle(c->node->env->resources, container, &iterator_kind,
                         name);
    rc = op_out_handle(c, 0, h);
    handle_unref(h);
    mem_free(text);
    return rc;
}

#define FROM_STRING(stem, text)                                                \
    const struct op_def def_##stem = {                                         \
        .name = text,                                                          \
        .in = "string_handle: string",                                         \
        .out = "resource_handle: resource",                                    \
        .attr = "output_types: list(type) >= 0 = []; "                         \
                "output_shapes: list(shape) >= 0 = []",                        \
        .flags = OP_STATEFUL,                                                  \
        .kernel =                                                              \
            (const struct op_kernel[]){ { DT_ANY, from_string }, { 0 } },      \
    };

FROM_STRING(iterator_from_string_handle, "IteratorFromStringHandle")
FROM_STRING(iterator_from_string_handle_v2, "IteratorFromStringHandleV2")
