/*
 * Staging areas: a short first-in-first-out store between the parts of a
 * pipeline, limited in elements, in bytes or not at all. All five ops find it
 * by its name; there is no handle.
 *
 * Unlike at a queue, who waits for element 5 to look at it must not keep
 * others from taking element 0: whoever can go on does, in order of arrival.
 */
#include "base/mem.h"
#include "kernel/types.h"
#include "kernel/wait.h"

struct entry {
    struct entry *next;
    size_t bytes;
    int count;
    struct tensor values[];
};

struct stage {
    struct object o;
    int64_t capacity, bytes_max; /* 0: no limit */
    pthread_mutex_t lock;
    /* All under lock. */
    struct entry *first, **last;
    int64_t count;
    size_t bytes;
    struct wait_line puts, takes;
};

static void clear(struct stage *s)
{
    while (s->first) {
        struct entry *e = s->first;

        s->first = e->next;
        for (int i = 0; i < e->count; i++)
            tensor_unref(&e->values[i]);
        mem_free(e);
    }
    s->last = &s->first;
    s->count = 0;
    s->bytes = 0;
}

static void stage_free(struct object *o)
{
    struct stage *s = CONTAINER(o, struct stage, o);

    clear(s);
    pthread_mutex_destroy(&s->lock);
    mem_free(s);
}

static const struct object_kind stage_kind = { "stage", stage_free };

/* ---- finding it ---- */

struct stage_state {
    struct handle *handle;
    int64_t capacity, bytes_max;
};

static enum mst_code stage_init(struct op_node *n, struct status *st)
{
    struct stage_state *s = ARENA_NEW(n->arena, struct stage_state);

    (void)st;
    s->handle = op_node_handle(n, &stage_kind);
    s->capacity = op_attr_int(n, "capacity");
    s->bytes_max = op_attr_int(n, "memory_limit");
    n->state = s;
    return MST_OK;
}

static void stage_done(struct op_node *n)
{
    struct stage_state *s = n->state;

    handle_unref(s->handle);
}

static struct object *make_stage(void *arg, struct status *st)
{
    const struct stage_state *from = arg;
    struct stage *s = MEM_NEW(struct stage);

    (void)st;
    object_init(&s->o, &stage_kind);
    pthread_mutex_init(&s->lock, NULL);
    s->capacity = from->capacity;
    s->bytes_max = from->bytes_max;
    s->last = &s->first;
    return &s->o;
}

/* With a reference for the caller. */
static struct stage *get(struct op_ctx *c)
{
    struct stage_state *s = c->node->state;

    return CONTAINER(handle_get_or_make(s->handle, make_stage, s, c->st),
                     struct stage, o);
}

/* ---- going on ---- */

enum wish { PUT, TAKE, PEEK };

struct request {
    struct wait wait;
    enum wish wish;
    int64_t index;       /* PEEK */
    struct entry *entry; /* PUT */
};

_Static_assert(sizeof(struct request) <= OP_SCRATCH, "scratch is too small");

static bool put(struct stage *s, struct request *r)
{
    struct entry *e = r->entry;

    if ((s->capacity && s->count >= s->capacity) ||
        (s->bytes_max && s->bytes + e->bytes > (size_t)s->bytes_max))
        return false;
    *s->last = e;
    s->last = &e->next;
    s->count++;
    s->bytes += e->bytes;
    r->entry = NULL;
    return true;
}

/* The outputs are what lies there. */
static enum mst_code out_values(struct op_ctx *c, const struct entry *e)
{
    const struct op_node *n = c->node;

    if (e->count != n->out_count)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "Mismatch stage/unstage: %d vs. %d", e->count,
                       n->out_count);
    for (int i = 0; i < e->count; i++)
        if (e->values[i].dtype != n->out_types[i])
            return op_fail(c, MST_INVALID_ARGUMENT,
                           "Staged value %d is of type %s, not %s", i,
                           dtype_name(e->values[i].dtype),
                           dtype_name(n->out_types[i]));
    for (int i = 0; i < e->count; i++)
        *op_out(c, i) = tensor_ref(&e->values[i]);
    return MST_OK;
}

static bool peek(struct stage *s, struct request *r)
{
    struct entry *e = s->first;

    if (r->index >= s->count)
        return false;
    for (int64_t i = 0; i < r->index; i++)
        e = e->next;
    r->wait.code = out_values(r->wait.c, e);
    return true;
}

static bool take(struct stage *s, struct request *r)
{
    struct entry *e = s->first;

    if (!e)
        return false;
    r->wait.code = out_values(r->wait.c, e);
    s->first = e->next;
    if (!s->first)
        s->last = &s->first;
    s->count--;
    s->bytes -= e->bytes;
    for (int i = 0; i < e->count; i++)
        tensor_unref(&e->values[i]);
    mem_free(e);
    return true;
}

static bool attempt(struct stage *s, struct request *r)
{
    return r->wish == PUT    ? put(s, r)
           : r->wish == TAKE ? take(s, r)
                             : peek(s, r);
}

static bool advance(struct stage *s, struct wait_line *line,
                    struct wait_line *ended)
{
    struct wait *w, *next;
    bool moved = false;

    for (w = line->first; w; w = next) {
        struct request *r = CONTAINER(w, struct request, wait);

        next = w->next;
        if (!attempt(s, r))
            continue;
        wait_leave(w, w->code, ended);
        moved = true;
    }
    return moved;
}

static void flush(struct stage *s, struct wait_line *ended)
{
    bool moved;

    do {
        moved = advance(s, &s->puts, ended);
        moved |= advance(s, &s->takes, ended);
    } while (moved);
}

/* An entry that did not get in ends with its op. */
static enum mst_code drop_entry(struct wait *w)
{
    struct entry *e = CONTAINER(w, struct request, wait)->entry;

    for (int i = 0; e && i < e->count; i++)
        tensor_unref(&e->values[i]);
    mem_free(e);
    return w->code;
}

static const char cancelled[] = "Stage operation was cancelled";

static void on_cancel(struct cancel_item *item)
{
    struct wait *w = CONTAINER(item, struct wait, item);

    wait_give_up(w, &CONTAINER(w->at, struct stage, o)->lock, cancelled);
}

static enum mst_code run(struct op_ctx *c, struct request want)
{
    struct stage *s = get(c);
    struct wait_line *line = want.wish == PUT ? &s->puts : &s->takes;
    struct wait_line ended = { 0 };
    struct request *r = c->scratch;
    enum mst_code rc = OP_LATER;

    *r = want;
    r->wait.c = c;
    r->wait.at = &s->o;
    r->wait.complete = drop_entry;
    pthread_mutex_lock(&s->lock);
    if ((want.wish != PUT || !line->first) && attempt(s, r)) {
        rc = r->wait.code;
        flush(s, &ended);
    } else if (!wait_join(line, &r->wait, on_cancel)) {
        rc = r->wait.code = op_fail(c, MST_CANCELLED, "%s", cancelled);
    }
    pthread_mutex_unlock(&s->lock);
    wait_end(&ended);
    if (rc == OP_LATER)
        return rc;
    rc = drop_entry(&r->wait);
    object_unref(&s->o);
    return rc;
}

/* ---- ops ---- */

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

static enum mst_code stage_run(struct op_ctx *c)
{
    const struct stage_state *s = c->node->state;
    int n = c->node->in_count;
    struct entry *e = mem_new(sizeof(*e) + (size_t)n * sizeof(e->values[0]));
    struct request r = { .wish = PUT, .entry = e };

    e->count = n;
    for (int i = 0; i < n; i++) {
        e->values[i] = tensor_ref(op_in(c, i));
        e->bytes += value_bytes(op_in(c, i));
    }
    if (s->bytes_max && e->bytes > (size_t)s->bytes_max) {
        r.wait.code = op_fail(c, MST_RESOURCE_EXHAUSTED,
                              "Attempted to insert tensors with combined size "
                              "of '%zu' bytes into Staging Area with a memory "
                              "limit of '%lld'.",
                              e->bytes, (long long)s->bytes_max);
        return drop_entry(&r.wait);
    }
    return run(c, r);
}

static enum mst_code unstage_run(struct op_ctx *c)
{
    return run(c, (struct request){ .wish = TAKE });
}

static enum mst_code stage_peek_run(struct op_ctx *c)
{
    const struct tensor *index = op_in(c, 0);

    if (index->ndim || tensor_int(index, 0) < 0)
        return op_fail(c, MST_INVALID_ARGUMENT,
                       "index must be a scalar, not negative");
    return run(c,
               (struct request){ .wish = PEEK, .index = tensor_int(index, 0) });
}

static enum mst_code stage_size_run(struct op_ctx *c)
{
    struct stage *s = get(c);
    enum mst_code rc = op_out_new(c, 0, 0, NULL);

    pthread_mutex_lock(&s->lock);
    if (!rc)
        *TENSOR_DATA(op_out(c, 0), int32_t) = (int32_t)s->count;
    pthread_mutex_unlock(&s->lock);
    object_unref(&s->o);
    return rc;
}

static enum mst_code stage_clear_run(struct op_ctx *c)
{
    struct stage *s = get(c);
    struct wait_line ended = { 0 };

    pthread_mutex_lock(&s->lock);
    clear(s);
    flush(s, &ended);
    pthread_mutex_unlock(&s->lock);
    wait_end(&ended);
    object_unref(&s->o);
    return MST_OK;
}

#define STAGE_DEF(stem, text, in_, out_, types, flags_)                        \
    const struct op_def def_##stem = {                                         \
        .name = text,                                                          \
        .in = in_,                                                             \
        .out = out_,                                                           \
        .attr = "capacity: int >= 0 = 0; memory_limit: int >= 0 = 0; " types   \
                "; container: string = ''; shared_name: string = ''",          \
        .flags = OP_STATEFUL | flags_,                                         \
        .init = stage_init,                                                    \
        .done = stage_done,                                                    \
        .kernel = (const struct op_kernel[]){ { DT_ANY, stem##_run }, { 0 } }, \
    };

STAGE_DEF(stage, "Stage", "values: dtypes", NULL, "dtypes: list(type) >= 1",
          OP_ASYNC)
STAGE_DEF(unstage, "Unstage", NULL, "values: dtypes", "dtypes: list(type) >= 1",
          OP_ASYNC)
STAGE_DEF(stage_peek, "StagePeek", "index: int32", "values: dtypes",
          "dtypes: list(type) >= 1", OP_ASYNC)
STAGE_DEF(stage_size, "StageSize", NULL, "size: int32", "dtypes: list(type)", 0)
STAGE_DEF(stage_clear, "StageClear", NULL, NULL, "dtypes: list(type)", 0)
