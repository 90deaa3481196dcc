/*
 * Staging maps: entries of several tensors under a number, limited in entries,
 * in bytes or not at all. An entry may be put in parts and taken in parts; it
 * can be taken once all of its parts are there, and is gone with the last.
 *
 * Whoever wants an entry that is not there waits for it, whoever finds no room
 * waits for room; anyone who can go on does, in order of arrival. Both the
 * ordered and the other map keep their entries sorted, and who names no number
 * gets the least: TensorFlow leaves the order of the latter open.
 */
#include "base/mem.h"
#include "kernel/types.h"
#include "kernel/wait.h"

struct entry {
    int64_t key;
    int count;
    struct tensor values[]; /* none: not there yet, or taken */
};

/* Sorted by key. */
struct entries {
    struct entry **item;
    size_t count, room;
};

struct stage_map {
    struct object o;
    int64_t capacity, bytes_max; /* 0: no limit */
    pthread_mutex_t lock;
    /* All under lock. */
    struct entries whole, partial;
    size_t bytes;
    struct wait_line waiting;
};

/* ---- entries ---- */

static void entry_free(struct entry *e)
{
    for (int i = 0; i < e->count; i++)
        tensor_unref(&e->values[i]);
    mem_free(e);
}

/* Where the key is, or would be. */
static size_t place(const struct entries *s, int64_t key)
{
    size_t low = 0, high = s->count;

    while (low < high) {
        size_t mid = (low + high) / 2;

        if (s->item[mid]->key < key)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

static struct entry *find(const struct entries *s, int64_t key)
{
    size_t at = place(s, key);

    return at < s->count && s->item[at]->key == key ? s->item[at] : NULL;
}

/* An entry whose key is there already ends. */
static void insert(struct entries *s, struct entry *e)
{
    size_t at = place(s, e->key);

    if (at < s->count && s->item[at]->key == e->key) {
        entry_free(e);
        return;
    }
    (void)MEM_PUSH(s->item, s->count, s->room);
    memmove(&s->item[at + 1], &s->item[at],
            (s->count - 1 - at) * sizeof(*s->item));
    s->item[at] = e;
}

static void take_out(struct entries *s, const struct entry *e)
{
    size_t at = place(s, e->key);

    memmove(&s->item[at], &s->item[at + 1],
            (--s->count - at) * sizeof(*s->item));
}

static void empty(struct entries *s)
{
    while (s->count)
        entry_free(s->item[--s->count]);
}

static void stage_map_free(struct object *o)
{
    struct stage_map *m = CONTAINER(o, struct stage_map, o);

    empty(&m->whole);
    empty(&m->partial);
    mem_free(m->whole.item);
    mem_free(m->partial.item);
    pthread_mutex_destroy(&m->lock);
    mem_free(m);
}

static const struct object_kind stage_map_kind = { "stage map",
                                                   stage_map_free };
static const struct object_kind ordered_kind = { "ordered stage map",
                                                 stage_map_free };

/* ---- finding it ---- */

struct map_state {
    struct handle *handle;
    int64_t capacity, bytes_max;
    int count; /* of parts */
};

static enum mst_code stage_map_init(struct op_node *n, struct status *st)
{
    struct map_state *s = ARENA_NEW(n->arena, struct map_state);

    (void)st;
    s->handle =
        op_node_handle(n, strncmp(n->def->name, "Ordered", 7) ? &stage_map_kind
                                                              : &ordered_kind);
    s->capacity = op_attr_int(n, "capacity");
    s->bytes_max = op_attr_int(n, "memory_limit");
    s->count = op_attr(n, "dtypes")->count;
    n->state = s;
    return MST_OK;
}

static void stage_map_done(struct op_node *n)
{
    struct map_state *s = n->state;

    handle_unref(s->handle);
}

static struct object *make_map(void *arg, struct status *st)
{
    const struct map_state *from = arg;
    struct stage_map *m = MEM_NEW(struct stage_map);

    (void)st;
    object_init(&m->o, from->handle->kind);
    pthread_mutex_init(&m->lock, NULL);
    m->capacity = from->capacity;
    m->bytes_max = from->bytes_max;
    return &m->o;
}

/* With a reference for the caller. */
static struct stage_map *get(struct op_ctx *c)
{
    struct map_state *s = c->node->state;

    return CONTAINER(handle_get_or_make(s->handle, make_map, s, c->st),
                     struct stage_map, o);
}

/* ---- going on ---- */

enum wish { PUT, TAKE, TAKE_ANY, PEEK };

struct request {
    struct wait wait;
    enum wish wish;
    int64_t key;
    const struct tensor *indices;
    size_t bytes; /* PUT */
};

_Static_assert(sizeof(struct request) <= OP_SCRATCH, "scratch is too small");

/* As TensorFlow counts them: a string takes 24 bytes and its own. */
static size_t value_bytes(const struct tensor *t)
{
    size_t bytes = 0;

    if (t->dtype != DT_STRING)
        return tensor_bytes(t);
    for (int64_t i = 0; i < t->count; i++)
        bytes += 24 + tensor_str(t, i)->len;
    return bytes;
}

static enum mst_code check_index(struct request *r, int64_t index, int count)
{
    if (index >= 0 && index < count)
        return MST_OK;
    return op_fail(r->wait.c, MST_INVALID_ARGUMENT,
                   "Index '%llu' for key '%lld' was out of bounds '%d'.",
                   (unsigned long long)index, (long long)r->key, count);
}

static bool is_whole(const struct entry *e)
{
    for (int i = 0; i < e->count; i++)
        if (!tensor_set(&e->values[i]))
            return false;
    return true;
}

static enum mst_code put_parts(struct request *r, struct entry *e)
{
    struct op_ctx *c = r->wait.c;
    bool all = r->indices->count == e->count; /* then they stand in order */

    for (int64_t i = 0; i < r->indices->count; i++) {
        int64_t index = all ? i : tensor_int(r->indices, i);
        enum mst_code rc = check_index(r, index, e->count);

        if (rc)
            return rc;
        if (tensor_set(&e->values[index]))
            return op_fail(c, MST_INVALID_ARGUMENT,
                           "The tensor for index '%lld' for key '%lld' was "
                           "already initialized '%d'.",
                           (long long)index, (long long)r->key, e->count);
        e->values[index] = tensor_ref(op_in(c, 2 + (int)i));
    }
    return MST_OK;
}

static bool put(struct stage_map *m, struct request *r)
{
    int count = ((struct map_state *)r->wait.c->node->state)->count;
    bool all = r->indices->count == count;
    struct entry *e = all ? NULL : find(&m->partial, r->key);
    bool fresh = !e;

    if ((m->bytes_max && m->bytes + r->bytes > (size_t)m->bytes_max) ||
        (all && m->capacity && (int64_t)m->whole.count >= m->capacity))
        return false;
    if (fresh) {
        e = mem_new(sizeof(*e) + (size_t)count * sizeof(e->values[0]));
        e->key = r->key;
        e->count = count;
    }
    r->wait.code = put_parts(r, e);
    if (r->wait.code && fresh) {
        entry_free(e);
        return true;
    }
    m->bytes += r->wait.code ? 0 : r->bytes;
    if (is_whole(e)) {
        if (!fresh)
            take_out(&m->partial, e);
        insert(&m->whole, e);
    } else if (fresh) {
        insert(&m->partial, e);
    }
    return true;
}

/* The outputs from `first` on are the wanted parts. */
static enum mst_code copy_parts(struct request *r, const struct entry *e,
                                int first)
{
    struct op_ctx *c = r->wait.c;
    const struct op_node *n = c->node;

    if (r->indices->count != n->out_count - first)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "output/indices size mismatch: %d vs. %lld",
                       n->out_count - first, (long long)r->indices->count);
    for (int i = 0; i < r->indices->count; i++) {
        int64_t index = tensor_int(r->indices, i);
        enum mst_code rc = check_index(r, index, e->count);

        if (rc)
            return rc;
        if (!tensor_set(&e->values[index]))
            return op_fail(c, MST_INVALID_ARGUMENT,
                           "Tensor at index '%lld' for key '%lld' has already "
                           "been removed.",
                           (long long)index, (long long)e->key);
        if (e->values[index].dtype != n->out_types[first + i])
            return op_fail(c, MST_INVALID_ARGUMENT,
                           "Staged value %lld is of type %s, not %s",
                           (long long)index, dtype_name(e->values[index].dtype),
                           dtype_name(n->out_types[first + i]));
        *op_out(c, first + i) = tensor_ref(&e->values[index]);
    }
    return MST_OK;
}

static void remove_parts(struct stage_map *m, struct request *r,
                         struct entry *e)
{
    bool left = false;

    for (int64_t i = 0; i < r->indices->count; i++) {
        struct tensor *t = &e->values[tensor_int(r->indices, i)];

        m->bytes -= tensor_set(t) ? value_bytes(t) : 0;
        tensor_unref(t);
    }
    for (int i = 0; i < e->count; i++)
        left |= tensor_set(&e->values[i]);
    if (!left) {
        take_out(&m->whole, e);
        entry_free(e);
    }
}

static bool take(struct stage_map *m, struct request *r)
{
    bool any = r->wish == TAKE_ANY;
    struct entry *e = !any             ? find(&m->whole, r->key)
                      : m->whole.count ? m->whole.item[0]
                                       : NULL;

    if (!e)
        return false;
    if (any)
        *TENSOR_DATA(op_out(r->wait.c, 0), int64_t) = e->key;
    r->wait.code = copy_parts(r, e, any);
    if (!r->wait.code && r->wish != PEEK)
        remove_parts(m, r, e);
    return true;
}

static bool attempt(struct stage_map *m, struct request *r)
{
    return r->wish == PUT ? put(m, r) : take(m, r);
}

static void flush(struct stage_map *m, struct wait_line *ended)
{
    struct wait *w, *next;
    bool moved;

    do {
        moved = false;
        for (w = m->waiting.first; w; w = next) {
            next = w->next;
            if (!attempt(m, CONTAINER(w, struct request, wait)))
                continue;
            wait_leave(w, w->code, ended);
            moved = true;
        }
    } while (moved);
}

static const char cancelled[] = "Staging map operation was cancelled";

static void on_cancel(struct cancel_item *item)
{
    struct wait *w = CONTAINER(item, struct wait, item);

    wait_give_up(w, &CONTAINER(w->at, struct stage_map, o)->lock, cancelled);
}

static enum mst_code run(struct op_ctx *c, struct request want)
{
    struct stage_map *m = get(c);
    struct wait_line ended = { 0 };
    struct request *r = c->scratch;
    enum mst_code rc = OP_LATER;

    *r = want;
    r->wait.c = c;
    r->wait.at = &m->o;
    pthread_mutex_lock(&m->lock);
    if (attempt(m, r)) {
        rc = r->wait.code;
        flush(m, &ended);
    } else if (!wait_join(&m->waiting, &r->wait, on_cancel)) {
        rc = op_fail(c, MST_CANCELLED, "%s", cancelled);
    }
    pthread_mutex_unlock(&m->lock);
    wait_end(&ended);
    if (rc != OP_LATER)
        object_unref(&m->o);
    return rc;
}

/* ---- ops ---- */

static enum mst_code check_key(struct op_ctx *c, const struct tensor *key)
{
    char text[SHAPE_TEXT_MAX];

    if (!key->count)
        return op_fail(c, MST_INVALID_ARGUMENT, "key must not be empty");
    if (key->count != 1)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "key must be an int64 scalar, got tensor with shape: "
                       "%s",
                       tensor_shape_text(key, text));
    return MST_OK;
}

static enum mst_code check_indices(struct op_ctx *c, const struct tensor *t)
{
    if (!t->count)
        return op_fail(c, MST_INVALID_ARGUMENT, "Indices are empty");
    for (int64_t i = 1; i < t->count; i++)
        if (tensor_int(t, i - 1) >= tensor_int(t, i))
            return op_fail(c, MST_INVALID_ARGUMENT,
                           "Indices are not strictly ordered");
    return MST_OK;
}

static enum mst_code run_put(struct op_ctx *c)
{
    const struct map_state *s = c->node->state;
    struct request r = { .wish = PUT, .indices = op_in(c, 1) };
    enum mst_code rc = check_key(c, op_in(c, 0));

    if (!rc)
        rc = check_indices(c, r.indices);
    if (rc)
        return rc;
    if (r.indices->count != c->node->in_count - 2)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "There are %lld indices for %d values",
                       (long long)r.indices->count, c->node->in_count - 2);
    for (int i = 2; i < c->node->in_count; i++)
        r.bytes += value_bytes(op_in(c, i));
    if (s->bytes_max && r.bytes > (size_t)s->bytes_max)
        return op_fail(c, MST_RESOURCE_EXHAUSTED,
                       "Attempted to insert tensors with combined size of "
                       "'%zu' bytes into Staging Area with a memory limit of "
                       "'%lld'.",
                       r.bytes, (long long)s->bytes_max);
    r.key = tensor_int(op_in(c, 0), 0);
    return run(c, r);
}

static enum mst_code run_get(struct op_ctx *c, enum wish wish)
{
    struct request r = { .wish = wish, .indices = op_in(c, 1) };
    enum mst_code rc = check_key(c, op_in(c, 0));

    if (!rc)
        rc = check_indices(c, r.indices);
    if (rc)
        return rc;
    r.key = tensor_int(op_in(c, 0), 0);
    return run(c, r);
}

static enum mst_code run_peek(struct op_ctx *c)
{
    return run_get(c, PEEK);
}

static enum mst_code run_unstage(struct op_ctx *c)
{
    return run_get(c, TAKE);
}

static enum mst_code run_unstage_no_key(struct op_ctx *c)
{
    struct request r = { .wish = TAKE_ANY, .indices = op_in(c, 0) };
    enum mst_code rc = check_indices(c, r.indices);

    if (!rc)
        rc = op_out_new(c, 0, 0, NULL);
    return rc ? rc : run(c, r);
}

static enum mst_code count_of(struct op_ctx *c, bool partial)
{
    struct stage_map *m = get(c);
    enum mst_code rc = op_out_new(c, 0, 0, NULL);

    pthread_mutex_lock(&m->lock);
    if (!rc)
        *TENSOR_DATA(op_out(c, 0), int32_t) =
            (int32_t)(partial ? m->partial.count : m->whole.count);
    pthread_mutex_unlock(&m->lock);
    object_unref(&m->o);
    return rc;
}

static enum mst_code run_size(struct op_ctx *c)
{
    return count_of(c, false);
}

static enum mst_code run_incomplete_size(struct op_ctx *c)
{
    return count_of(c, true);
}

static enum mst_code run_clear(struct op_ctx *c)
{
    struct stage_map *m = get(c);
    struct wait_line ended = { 0 };

    pthread_mutex_lock(&m->lock);
    empty(&m->whole);
    empty(&m->partial);
    m->bytes = 0;
    flush(m, &ended);
    pthread_mutex_unlock(&m->lock);
    wait_end(&ended);
    object_unref(&m->o);
    return MST_OK;
}

#define MAP_DEF(stem, text, in_, out_, types, flags_, fn)                      \
    const struct op_def def_##stem = {                                         \
        .name = text,                                                          \
        .in = in_,                                                             \
        .out = out_,                                                           \
        .attr = "capacity: int >= 0 = 0; memory_limit: int >= 0 = 0; " types   \
                "; container: string = ''; shared_name: string = ''",          \
        .flags = OP_STATEFUL | flags_,                                         \
        .init = stage_map_init,                                                \
        .done = stage_map_done,                                                \
        .kernel = (const struct op_kernel[]){ { DT_ANY, fn }, { 0 } },         \
    };
#define MAP_DEFS(stem, text, in_, out_, types, flags_, fn)                     \
    MAP_DEF(map_##stem, "Map" text, in_, out_, types, flags_, fn)              \
    MAP_DEF(ordered_map_##stem, "OrderedMap" text, in_, out_, types, flags_, fn)

MAP_DEFS(stage, "Stage", "key: int64, indices: int32, values: fake_dtypes",
         NULL, "dtypes: list(type); fake_dtypes: list(type) >= 1", OP_ASYNC,
         run_put)
MAP_DEFS(peek, "Peek", "key: int64, indices: int32", "values: dtypes",
         "dtypes: list(type) >= 1", OP_ASYNC, run_peek)
MAP_DEFS(unstage, "Unstage", "key: int64, indices: int32", "values: dtypes",
         "dtypes: list(type) >= 1", OP_ASYNC, run_unstage)
MAP_DEFS(unstage_no_key, "UnstageNoKey", "indices: int32",
         "key: int64, values: dtypes", "dtypes: list(type) >= 1", OP_ASYNC,
         run_unstage_no_key)
MAP_DEFS(size, "Size", NULL, "size: int32", "dtypes: list(type)", 0, run_size)
MAP_DEFS(incomplete_size, "IncompleteSize", NULL, "size: int32",
         "dtypes: list(type)", 0, run_incomplete_size)
MAP_DEFS(clear, "Clear", NULL, NULL, "dtypes: list(type)", 0, run_clear)
