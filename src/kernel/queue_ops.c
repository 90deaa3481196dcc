/*
 * The queue ops, in both handle forms: the old one (FIFOQueue …) declares a
 * reference to strings, the new one (FIFOQueueV2 …) a resource. Between our
 * kernels both edges carry the same handle, so each pair of records shares its
 * kernels.
 *
 * A queue is made when its node first runs; a second node of the same name
 * must ask for the same thing.
 */
#include <string.h>

#include "kernel/element.h"
#include "kernel/queue.h"
#include "kernel/signature.h"
#include "kernel/types.h"

/* More components than this no queue has; a peer may still ask for them. */
#define COLUMNS_MAX 4096

/* ---- making ---- */

struct queue_state {
    struct handle *handle;
    struct queue_config config;
};

static enum mst_code read_config(struct op_node *n, struct queue_config *g,
                                 struct status *st)
{
    const struct attr *types = op_attr(n, "component_types");
    const struct attr *shapes = op_attr(n, "shapes");
    bool prefix = g->order == &queue_priority;
    int64_t capacity = op_attr_int(n, "capacity");
    int *to;
    struct shape *s;

    g->capacity = capacity < 0 ? QUEUE_UNBOUNDED
                               : MIN(capacity, (int64_t)QUEUE_UNBOUNDED);
    if (types->count > COLUMNS_MAX || shapes->count > COLUMNS_MAX)
        return status_set(st, MST_INVALID_ARGUMENT,
                          "A queue of more than %d components", COLUMNS_MAX);
    /* The priority itself is a component that no attribute names. */
    g->columns = types->count + prefix;
    to = ARENA_ARRAY(n->arena, int, g->columns);
    to[0] = DT_INT64;
    for (int i = 0; i < types->count; i++)
        to[i + prefix] = types->value[i].type;
    g->types = to;
    g->shape_count = shapes->count ? shapes->count + prefix : 0;
    s = ARENA_ARRAY(n->arena, struct shape, g->shape_count + 1);
    for (int i = 0; i < shapes->count; i++)
        s[i + prefix] = *shapes->value[i].shape;
    g->shapes = s;
    return MST_OK;
}

void queue_append_shapes(struct status *st, const struct shape *shapes,
                         int count)
{
    char text[SHAPE_TEXT_MAX];

    status_append(st, "[");
    for (int i = 0; i < count; i++)
        status_append(st, "%s%s", i ? ", " : "",
                      shape_text(shapes[i].ndim, shapes[i].dims, text));
    status_append(st, "]");
}

static enum mst_code check_shapes(const struct queue_config *g,
                                  struct status *st)
{
    char text[SHAPE_TEXT_MAX];

    if (g->order->partial_shapes && g->shape_count != g->columns)
        return status_set(st, MST_INVALID_ARGUMENT,
                          "Shapes must be provided for all components, but "
                          "received %d dtypes and %d shapes.",
                          g->columns, g->shape_count);
    if (g->shape_count && g->shape_count != g->columns) {
        status_set(st, MST_INVALID_ARGUMENT,
                   "Different number of component types.  Types: ");
        signature_append(st, g->types, g->columns);
        status_append(st, ", Shapes: ");
        queue_append_shapes(st, g->shapes, g->shape_count);
        return MST_INVALID_ARGUMENT;
    }
    for (int i = 0; i < g->shape_count; i++) {
        const struct shape *s = &g->shapes[i];

        if (s->ndim < 0 ||
            (!g->order->partial_shapes && !element_shape_known(s)))
            return status_set(st, MST_INVALID_ARGUMENT,
                              "Shape %s is not fully defined",
                              shape_text(s->ndim, s->dims, text));
    }
    return MST_OK;
}

static enum mst_code check_shuffle(struct op_node *n, struct queue_config *g,
                                   struct status *st)
{
    g->min_after_dequeue = op_attr_int(n, "min_after_dequeue");
    g->seed = op_attr_int(n, "seed");
    g->seed2 = op_attr_int(n, "seed2");
    if (g->min_after_dequeue < 0)
        return status_set(st, MST_INVALID_ARGUMENT,
                          "min_after_dequeue %lld must be >= 0",
                          (long long)g->min_after_dequeue);
    if (g->min_after_dequeue >= g->capacity)
        return status_set(st, MST_INVALID_ARGUMENT,
                          "min_after_dequeue %lld must be < capacity %lld",
                          (long long)g->min_after_dequeue,
                          (long long)g->capacity);
    return MST_OK;
}

static enum mst_code queue_init(struct op_node *n,
                                const struct queue_order *order,
                                struct status *st)
{
    struct queue_state *s = ARENA_NEW(n->arena, struct queue_state);
    enum mst_code rc;

    s->config.order = order;
    rc = read_config(n, &s->config, st);
    if (!rc)
        rc = check_shapes(&s->config, st);
    if (!rc && order == &queue_shuffle)
        rc = check_shuffle(n, &s->config, st);
    if (rc)
        return rc;
    s->handle = op_node_handle(n, &queue_kind);
    n->state = s;
    return MST_OK;
}

static void queue_done(struct op_node *n)
{
    struct queue_state *s = n->state;

    handle_unref(s->handle);
}

static enum mst_code other_types(const struct queue *q,
                                 const struct queue_config *g,
                                 struct status *st)
{
    const struct queue_config *have = &q->config;

    if (have->columns == g->columns &&
        !memcmp(have->types, g->types, (size_t)g->columns * sizeof(*g->types)))
        return MST_OK;
    status_set(st, MST_INVALID_ARGUMENT,
               "Shared queue '%s' has component "
               "types ",
               q->name);
    signature_append(st, have->types, have->columns);
    status_append(st, " but requested component types were ");
    signature_append(st, g->types, g->columns);
    return MST_INVALID_ARGUMENT;
}

/* Equal, or when unknown dimensions count for any, compatible. */
static bool shapes_go_together(const struct shape *a, const struct shape *b,
                               bool partial)
{
    if (a->ndim != b->ndim)
        return false;
    for (int i = 0; i < a->ndim; i++)
        if (a->dims[i] != b->dims[i] &&
            !(partial && (a->dims[i] < 0 || b->dims[i] < 0)))
            return false;
    return true;
}

static enum mst_code other_shapes(const struct queue *q,
                                  const struct queue_config *g,
                                  struct status *st)
{
    const struct queue_config *have = &q->config;
    /* TensorFlow adds the priority's shape to what is asked for even when
     * there are no others, and so refuses priority queues without shapes. */
    int count =
        g->order == &queue_priority ? MAX(g->shape_count, 1) : g->shape_count;
    bool same = have->shape_count == count;

    for (int i = 0; i < count && same; i++)
        same = shapes_go_together(&have->shapes[i], &g->shapes[i],
                                  g->order->partial_shapes);
    if (same)
        return MST_OK;
    status_set(st, MST_INVALID_ARGUMENT,
               "Shared queue '%s' has component "
               "shapes ",
               q->name);
    queue_append_shapes(st, have->shapes, have->shape_count);
    status_append(st, " but requested component shapes were ");
    queue_append_shapes(st, g->shapes, count);
    return MST_INVALID_ARGUMENT;
}

static enum mst_code other_shuffle(const struct queue *q,
                                   const struct queue_config *g,
                                   struct status *st)
{
    const struct queue_config *have = &q->config;

    if (have->min_after_dequeue != g->min_after_dequeue)
        return status_set(st, MST_INVALID_ARGUMENT,
                          "Shared queue '%s' has min_after_dequeue %lld but "
                          "requested min_after_dequeue was %lld.",
                          q->name, (long long)have->min_after_dequeue,
                          (long long)g->min_after_dequeue);
    if ((g->seed || g->seed2) &&
        (have->seed != g->seed || have->seed2 != g->seed2))
        return status_set(st, MST_INVALID_ARGUMENT,
                          "Shared queue '%s' has random seeds (%lld, %lld) but "
                          "requested seeds are (%lld, %lld).",
                          q->name, (long long)have->seed,
                          (long long)have->seed2, (long long)g->seed,
                          (long long)g->seed2);
    return MST_OK;
}

/* The queue is what this node asks for. */
static enum mst_code matches(const struct queue *q, const struct op_node *n,
                             const struct queue_config *g, struct status *st)
{
    enum mst_code rc;

    if (q->config.order != g->order)
        return status_set(st, MST_INVALID_ARGUMENT, "Expected %s, found %s",
                          q->config.order->name, n->def->name);
    if (q->config.capacity != g->capacity)
        return status_set(st, MST_INVALID_ARGUMENT,
                          "Shared queue '%s' has capacity %lld but requested "
                          "capacity was %lld",
                          q->name, (long long)q->config.capacity,
                          (long long)g->capacity);
    rc = other_shuffle(q, g, st);
    if (!rc)
        rc = other_types(q, g, st);
    if (!rc)
        rc = other_shapes(q, g, st);
    return rc;
}

static struct object *make_queue(void *arg, struct status *st)
{
    struct queue_state *s = arg;

    (void)st;
    return &queue_new(s->handle->name, &s->config)->o;
}

static enum mst_code queue_make_run(struct op_ctx *c)
{
    struct queue_state *s = c->node->state;
    struct object *o = handle_get_or_make(s->handle, make_queue, s, c->st);
    enum mst_code rc =
        matches(CONTAINER(o, struct queue, o), c->node, &s->config, c->st);

    object_unref(o);
    return rc ? rc : op_out_handle(c, 0, s->handle);
}

#define SHARED_ATTRS "container: string = ''; shared_name: string = ''"
#define SHAPED_ATTRS                                                           \
    "component_types: list(type) >= 1; shapes: list(shape) >= 0 = []; "        \
    "capacity: int = -1; "
#define SHUFFLE_ATTRS                                                          \
    "min_after_dequeue: int = 0; seed: int = 0; seed2: int = 0; "
#define PRIORITY_ATTRS                                                         \
    "component_types: list(type) >= 0 = []; shapes: list(shape) >= 0; "        \
    "capacity: int = -1; "

/* A kind of queue: its init(), and its records in the two forms. */
#define QUEUE_KIND(stem, text, attrs, order)                                   \
    static enum mst_code stem##_init(struct op_node *n, struct status *st)     \
    {                                                                          \
        return queue_init(n, order, st);                                       \
    }                                                                          \
    const struct op_def def_##stem = {                                         \
        .name = text,                                                          \
        .out = "handle: Ref(string)",                                          \
        .attr = attrs SHARED_ATTRS,                                            \
        .flags = OP_STATEFUL,                                                  \
        .init = stem##_init,                                                   \
        .done = queue_done,                                                    \
        .kernel =                                                              \
            (const struct op_kernel[]){ { DT_ANY, queue_make_run }, { 0 } },   \
    };                                                                         \
    const struct op_def def_##stem##_v2 = {                                    \
        .name = text "V2",                                                     \
        .out = "handle: resource",                                             \
        .attr = attrs SHARED_ATTRS,                                            \
        .flags = OP_STATEFUL,                                                  \
        .init = stem##_init,                                                   \
        .done = queue_done,                                                    \
        .kernel =                                                              \
            (const struct op_kernel[]){ { DT_ANY, queue_make_run }, { 0 } },   \
    };

QUEUE_KIND(fifo_queue, "FIFOQueue", SHAPED_ATTRS, &queue_fifo)
QUEUE_KIND(padding_fifo_queue, "PaddingFIFOQueue", SHAPED_ATTRS, &queue_padding)
QUEUE_KIND(random_shuffle_queue, "RandomShuffleQueue",
           SHAPED_ATTRS SHUFFLE_ATTRS, &queue_shuffle)
QUEUE_KIND(priority_queue, "PriorityQueue", PRIORITY_ATTRS, &queue_priority)
