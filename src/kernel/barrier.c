/*
 * Barriers: a key is complete, and can be taken, once every component of its
 * value has been inserted. Complete keys wait in a priority queue, those
 * inserted first come first; keys that lack something are in a map.
 *
 * A closed barrier takes values only for keys it knows. When the last of them
 * is complete, or at once if pending ones are cancelled, its queue is closed
 * too, which ends those who wait for more than there will be.
 *
 * Lock: barrier->lock, never held while the queue is changed, because that
 * may finish other ops.
 */
#include "base/map.h"
#include "base/mem.h"
#include "kernel/element.h"
#include "kernel/queue.h"
#include "kernel/signature.h"
#include "kernel/types.h"

struct barrier {
    struct object o;
    char *name;
    int columns; /* components of a value */
    struct queue *ready;
    pthread_mutex_t lock;
    /* All under lock. */
    struct map incomplete; /* key -> struct partial */
    int64_t next_index;
    bool closed, cancelled;
};

/* A key that lacks some components. The row is the queue's: index, key,
 * value. */
struct partial {
    int missing;
    struct tensor row[];
};

static void partial_free(struct barrier *b, struct partial *p)
{
    for (int i = 0; i < b->columns + 2; i++)
        tensor_unref(&p->row[i]);
    mem_free(p);
}

static void clear_incomplete(struct barrier *b)
{
    struct map_slot *s;
    size_t at = 0;

    while ((s = map_next(&b->incomplete, &at)))
        partial_free(b, s->value);
    map_done(&b->incomplete);
}

static void barrier_free(struct object *o)
{
    struct barrier *b = CONTAINER(o, struct barrier, o);

    clear_incomplete(b);
    object_unref(&b->ready->o);
    pthread_mutex_destroy(&b->lock);
    mem_free(b->name);
    mem_free(b);
}

static const struct object_kind barrier_kind = { "barrier", barrier_free };

/* ---- making ---- */

struct make_state {
    struct handle *handle;
    struct queue_config config; /* of the queue of complete keys */
};

static enum mst_code make_init(struct op_node *n, struct status *st)
{
    const struct attr *types = op_attr(n, "component_types");
    const struct attr *shapes = op_attr(n, "shapes");
    struct make_state *s = ARENA_NEW(n->arena, struct make_state);
    int columns = types->count + 2;
    int *t = ARENA_ARRAY(n->arena, int, columns);
    struct shape *dims = ARENA_ARRAY(n->arena, struct shape, columns);
    char text[SHAPE_TEXT_MAX];

    if (shapes->count != types->count)
        return status_set(st, MST_INVALID_ARGUMENT,
                          "All of the component shapes must be specified");
    if (op_attr_int(n, "capacity") != -1)
        return status_set(st, MST_INVALID_ARGUMENT,
                          "Barrier only accepts capacity=-1.  Feed the inputs "
                          "to your Barrier through a queue to enforce a "
                          "limited capacity.");
    t[0] = DT_INT64;
    t[1] = DT_STRING;
    for (int i = 0; i < types->count; i++) {
        t[i + 2] = types->value[i].type;
        dims[i + 2] = *shapes->value[i].shape;
        if (dims[i + 2].ndim < 0) /* TensorFlow takes that for a scalar */
            dims[i + 2].ndim = 0;
        if (!element_shape_known(&dims[i + 2]))
            return status_set(
                st, MST_INVALID_ARGUMENT, "Shape %s is not fully defined",
                shape_text(dims[i + 2].ndim, dims[i + 2].dims, text));
    }
    s->config = (struct queue_config){ .order = &queue_priority,
                                       .capacity = QUEUE_UNBOUNDED,
                                       .columns = columns,
                                       .types = t,
                                       .shapes = dims,
                                       .shape_count = columns };
    s->handle = op_node_handle(n, &barrier_kind);
    n->state = s;
    return MST_OK;
}

static void make_done(struct op_node *n)
{
    struct make_state *s = n->state;

    handle_unref(s->handle);
}

static struct object *make_barrier(void *arg, struct status *st)
{
    struct make_state *s = arg;
    struct barrier *b = MEM_NEW(struct barrier);
    char *queue_name = mem_printf("%s_queue", s->handle->name);

    (void)st;
    object_init(&b->o, &barrier_kind);
    pthread_mutex_init(&b->lock, NULL);
    map_init(&b->incomplete);
    b->name = mem_str(s->handle->name);
    b->columns = s->config.columns - 2;
    b->ready = queue_new(queue_name, &s->config);
    b->next_index = INT64_MIN;
    mem_free(queue_name);
    return &b->o;
}

static bool same_shape(const struct shape *a, const struct shape *b)
{
    return a->ndim == b->ndim &&
           !memcmp(a->dims, b->dims, (size_t)a->ndim * sizeof(a->dims[0]));
}

/* The barrier is what this node asks for. */
static enum mst_code matches(struct op_ctx *c, const struct barrier *b,
                             const struct queue_config *g)
{
    const struct queue_config *have = &b->ready->config;
    bool same = have->columns == g->columns;

    if (!same ||
        memcmp(have->types, g->types, (size_t)g->columns * sizeof(*g->types))) {
        status_set(c->st, MST_INVALID_ARGUMENT,
                   "Shared barrier '%s' has component types ", b->name);
        signature_append(c->st, have->types + 2, have->columns - 2);
        status_append(c->st, " but requested component types were ");
        signature_append(c->st, g->types + 2, g->columns - 2);
        return MST_INVALID_ARGUMENT;
    }
    for (int i = 0; i < g->columns && same; i++)
        same = same_shape(&have->shapes[i], &g->shapes[i]);
    if (same)
        return MST_OK;
    status_set(c->st, MST_INVALID_ARGUMENT,
               "Shared barrier '%s' has component shapes ", b->name);
    queue_append_shapes(c->st, have->shapes + 2, have->columns - 2);
    status_append(c->st, " but requested component shapes were ");
    queue_append_shapes(c->st, g->shapes + 2, g->columns - 2);
    return MST_INVALID_ARGUMENT;
}

static enum mst_code make_run(struct op_ctx *c)
{
    struct make_state *s = c->node->state;
    struct object *o = handle_get_or_make(s->handle, make_barrier, s, c->st);
    enum mst_code rc = matches(c, CONTAINER(o, struct barrier, o), &s->config);

    object_unref(o);
    return rc ? rc : op_out_handle(c, 0, s->handle);
}

const struct op_def def_barrier = {
    .name = "Barrier",
    .out = "handle: Ref(string)",
    .attr = "component_types: list(type) >= 1; shapes: list(shape) >= 0 = []; "
            "capacity: int = -1; container: string = ''; "
            "shared_name: string = ''",
    .flags = OP_STATEFUL,
    .init = make_init,
    .done = make_done,
    .kernel = (const struct op_kernel[]){ { DT_ANY, make_run }, { 0 } },
};

static enum mst_code get(struct op_ctx *c, struct barrier **ret)
{
    struct object *o;
    enum mst_code rc = op_resource(c, 0, &barrier_kind, &o);

    if (!rc)
        *ret = CONTAINER(o, struct barrier, o);
    return rc;
}

/* ---- inserting ---- */

static enum mst_code insert_init(struct op_node *n, struct status *st)
{
    int64_t *column = ARENA_NEW(n->arena, int64_t);

    (void)st;
    *column = op_attr_int(n, "component_index");
    n->state = column;
    return MST_OK;
}

static enum mst_code check_insert(struct op_ctx *c, const struct barrier *b,
                                  int64_t column)
{
    const struct tensor *keys = op_in(c, 1), *values = op_in(c, 2);
    const struct queue_config *g = &b->ready->config;
    char got[SHAPE_TEXT_MAX], want[SHAPE_TEXT_MAX];
    const struct shape *s;
    struct tensor row = *values;

    if (column < 0 || column >= b->columns)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "The component ID is out of range %lld > "
                       "num_components (= %d)",
                       (long long)column, b->columns);
    if (g->types[column + 2] != c->node->in_types[2])
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Signature mismatch, have: string_ref, string, %s-> "
                       "expected: string_ref, string, %s->",
                       dtype_name(c->node->in_types[2]),
                       dtype_name(g->types[column + 2]));
    if (keys->count && !values->count)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Tensors with no elements are not supported %s: "
                       "received shape %s",
                       b->name, tensor_shape_text(values, got));
    if (!keys->count)
        return MST_OK;
    if (!values->ndim || values->dims[0] < keys->count)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Barrier %s: %lld keys, but values of shape %s", b->name,
                       (long long)keys->count, tensor_shape_text(values, got));
    row.ndim--;
    memmove(row.dims, row.dims + 1, sizeof(row.dims) - sizeof(row.dims[0]));
    s = &g->shapes[column + 2];
    if (!shape_compatible(s, &row))
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Shape mismatch in tuple component %d. Expected %s, "
                       "got %s",
                       (int)column + 2, shape_text(s->ndim, s->dims, want),
                       tensor_shape_text(&row, got));
    return MST_OK;
}

static enum mst_code new_partial(struct op_ctx *c, struct barrier *b,
                                 const struct str *key, struct partial **ret)
{
    struct partial *p =
        mem_new(sizeof(*p) + (size_t)(b->columns + 2) * sizeof(p->row[0]));
    enum mst_code rc = tensor_new_scalar(&p->row[0], DT_INT64, c->st);

    if (!rc)
        rc = tensor_new_scalar(&p->row[1], DT_STRING, c->st);
    if (rc) {
        partial_free(b, p);
        return rc;
    }
    *TENSOR_DATA(&p->row[0], int64_t) = b->next_index;
    str_set(tensor_str(&p->row[1], 0), key->data, key->len);
    p->missing = b->columns;
    map_put(&b->incomplete, key->data ? key->data : "", key->len, p);
    *ret = p;
    return MST_OK;
}

/* One key under the lock. *ret_ready: it is complete and out of the map. */
static enum mst_code insert_one(struct op_ctx *c, struct barrier *b,
                                int64_t column, int64_t i, bool *is_new,
                                struct partial **ret_ready)
{
    const struct str *key = tensor_str(op_in(c, 1), i);
    const struct tensor *values = op_in(c, 2);
    const char *data = key->data ? key->data : "";
    struct partial *p = map_get(&b->incomplete, data, key->len);
    struct tensor *to;
    enum mst_code rc;

    if (!p && b->closed)
        return op_fail(c, MST_CANCELLED,
                       "Barrier %s is closed, but attempted to insert a brand "
                       "new key: %.*s.  Pending enqueues cancelled: %d.  "
                       "Insertion index: %lld.  Number of incomplete keys: "
                       "%zu.",
                       b->name, (int)MIN(key->len, 200), data, b->cancelled,
                       (long long)i, b->incomplete.count);
    if (!p) {
        rc = new_partial(c, b, key, &p);
        if (rc)
            return rc;
        *is_new = true;
    }
    to = &p->row[column + 2];
    if (tensor_set(to))
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Key %.*s already has a value for component %lld in "
                       "barrier %s",
                       (int)MIN(key->len, 200), data, (long long)column,
                       b->name);
    rc = tensor_new(to, (enum dtype)values->dtype, values->ndim - 1,
                    values->dims + 1, c->st);
    if (rc)
        return rc;
    tensor_copy_elems(to, 0, values, i * to->count, to->count);
    if (--p->missing == 0)
        *ret_ready = map_take(&b->incomplete, data, key->len);
    return MST_OK;
}

static enum mst_code insert_locked(struct op_ctx *c, struct barrier *b,
                                   int64_t column, struct partial **ready,
                                   int64_t *ret_count)
{
    int64_t n = op_in(c, 1)->count;
    enum mst_code rc = MST_OK;
    bool is_new = false;

    if (b->closed && (b->cancelled || (n && !b->incomplete.count)))
        return op_fail(c, MST_CANCELLED,
                       "Barrier %s is closed.  Pending enqueues cancelled: "
                       "%d.  Number of new insertions: %lld.  Number of "
                       "incomplete keys: %zu.",
                       b->name, b->cancelled, (long long)n,
                       b->incomplete.count);
    for (int64_t i = 0; i < n && !rc; i++) {
        struct partial *p = NULL;

        rc = insert_one(c, b, column, i, &is_new, &p);
        if (p)
            ready[(*ret_count)++] = p;
    }
    b->next_index += is_new;
    return rc;
}

static enum mst_code insert(struct op_ctx *c, struct barrier *b, int64_t column)
{
    struct partial **ready =
        mem_array((size_t)op_in(c, 1)->count, sizeof(*ready));
    int64_t count = 0;
    enum mst_code rc;
    bool over;

    pthread_mutex_lock(&b->lock);
    rc = insert_locked(c, b, column, ready, &count);
    over = b->closed && !b->incomplete.count;
    pthread_mutex_unlock(&b->lock);
    for (int64_t i = 0; i < count; i++) {
        queue_put_now(b->ready, ready[i]->row);
        mem_free(ready[i]);
    }
    mem_free(ready);
    if (over && count)
        queue_close_now(b->ready);
    return rc;
}

static enum mst_code insert_run(struct op_ctx *c)
{
    const int64_t *column = c->node->state;
    struct barrier *b;
    enum mst_code rc = get(c, &b);

    if (rc)
        return rc;
    rc = check_insert(c, b, *column);
    if (!rc)
        rc = insert(c, b, *column);
    object_unref(&b->o);
    return rc;
}

const struct op_def def_barrier_insert_many = {
    .name = "BarrierInsertMany",
    .in = "handle: Ref(string), keys: string, values: T",
    .attr = "T: type; component_index: int",
    .flags = OP_STATEFUL,
    .init = insert_init,
    .kernel = (const struct op_kernel[]){ { DT_ANY, insert_run }, { 0 } },
};

/* ---- taking ---- */

static enum mst_code take_init(struct op_node *n, struct status *st)
{
    bool *small = ARENA_NEW(n->arena, bool);

    if (op_attr_int(n, "timeout_ms") != -1)
        return status_set(st, MST_INVALID_ARGUMENT,
                          "Timeout not supported yet.");
    *small = op_attr_bool(n, "allow_small_batch");
    n->state = small;
    return MST_OK;
}

/* A closed barrier says at once when there will not be enough. */
static enum mst_code check_closed(struct op_ctx *c, struct barrier *b,
                                  bool small, int64_t *n)
{
    int64_t available = queue_size(b->ready);
    bool closed;

    pthread_mutex_lock(&b->lock);
    closed = b->closed;
    if (!small)
        available += (int64_t)b->incomplete.count;
    pthread_mutex_unlock(&b->lock);
    if (!closed)
        return MST_OK;
    if (small)
        *n = MIN(*n, available);
    if (available >= MAX(*n, 1))
        return MST_OK;
    return op_fail(c, MST_OUT_OF_RANGE,
                   "Barrier '%s' is closed and has insufficient elements "
                   "(requested %lld, total size %lld)",
                   b->name, (long long)*n, (long long)available);
}

static enum mst_code check_take(struct op_ctx *c, struct barrier *b, bool small,
                                int64_t *n)
{
    enum mst_code rc;

    if (op_in(c, 1)->ndim)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "num_elements must be a scalar.");
    *n = tensor_int(op_in(c, 1), 0);
    if (*n < 0)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "num_elements must not be negative, but was %lld",
                       (long long)*n);
    rc = queue_check_signature(c, b->ready, 2, true);
    return rc ? rc : check_closed(c, b, small, n);
}

static enum mst_code take_run(struct op_ctx *c)
{
    const bool *small = c->node->state;
    struct barrier *b;
    struct queue *q;
    int64_t n;
    enum mst_code rc = get(c, &b);

    if (rc)
        return rc;
    rc = check_take(c, b, *small, &n);
    q = b->ready;
    object_ref(&q->o);
    object_unref(&b->o);
    if (!rc && n)
        return queue_run(q, c, *small ? QUEUE_TAKES_UP_TO : QUEUE_TAKES, n);
    if (!rc)
        rc = queue_take_nothing(c, q);
    object_unref(&q->o);
    return rc;
}

const struct op_def def_barrier_take_many = {
    .name = "BarrierTakeMany",
    .in = "handle: Ref(string), num_elements: int32",
    .out = "indices: int64, keys: string, values: component_types",
    .attr = "component_types: list(type) >= 1; "
            "allow_small_batch: bool = false; "
            "wait_for_incomplete: bool = false; timeout_ms: int = -1",
    .flags = OP_STATEFUL | OP_ASYNC,
    .init = take_init,
    .kernel = (const struct op_kernel[]){ { DT_ANY, take_run }, { 0 } },
};

/* ---- the rest ---- */

static enum mst_code close_init(struct op_node *n, struct status *st)
{
    bool *cancel = ARENA_NEW(n->arena, bool);

    (void)st;
    *cancel = op_attr_bool(n, "cancel_pending_enqueues");
    n->state = cancel;
    return MST_OK;
}

static enum mst_code close_run(struct op_ctx *c)
{
    const bool *cancel = c->node->state;
    struct barrier *b;
    enum mst_code rc = get(c, &b);
    bool over = false;

    if (rc)
        return rc;
    pthread_mutex_lock(&b->lock);
    if (b->closed && (b->cancelled || !*cancel)) {
        rc = op_fail(c, MST_CANCELLED, "Barrier '%s' is already closed.",
                     b->name);
    } else {
        b->closed = true;
        b->cancelled = *cancel;
        if (*cancel)
            clear_incomplete(b);
        over = !b->incomplete.count;
    }
    pthread_mutex_unlock(&b->lock);
    if (over)
        queue_close_now(b->ready);
    object_unref(&b->o);
    return rc;
}

const struct op_def def_barrier_close = {
    .name = "BarrierClose",
    .in = "handle: Ref(string)",
    .attr = "cancel_pending_enqueues: bool = false",
    .flags = OP_STATEFUL,
    .init = close_init,
    .kernel = (const struct op_kernel[]){ { DT_ANY, close_run }, { 0 } },
};

static enum mst_code size(struct op_ctx *c, bool ready)
{
    struct barrier *b;
    enum mst_code rc = get(c, &b);
    int64_t n;

    if (rc)
        return rc;
    if (ready) {
        n = queue_size(b->ready);
    } else {
        pthread_mutex_lock(&b->lock);
        n = (int64_t)b->incomplete.count;
        pthread_mutex_unlock(&b->lock);
    }
    rc = op_out_new(c, 0, 0, NULL);
    if (!rc)
        *TENSOR_DATA(op_out(c, 0), int32_t) = (int32_t)n;
    object_unref(&b->o);
    return rc;
}

static enum mst_code ready_size_run(struct op_ctx *c)
{
    return size(c, true);
}

static enum mst_code incomplete_size_run(struct op_ctx *c)
{
    return size(c, false);
}

const struct op_def def_barrier_ready_size = {
    .name = "BarrierReadySize",
    .in = "handle: Ref(string)",
    .out = "size: int32",
    .flags = OP_STATEFUL,
    .kernel = (const struct op_kernel[]){ { DT_ANY, ready_size_run }, { 0 } },
};

const struct op_def def_barrier_incomplete_size = {
    .name = "BarrierIncompleteSize",
    .in = "handle: Ref(string)",
    .out = "size: int32",
    .flags = OP_STATEFUL,
    .kernel =
        (const struct op_kernel[]){ { DT_ANY, incomplete_size_run }, { 0 } },
};
