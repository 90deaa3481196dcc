#include "server/master_session.h"

#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/rng.h"
#include "wire/control.h"

/* ---- sessions ---- */

struct master_session *master_session_new(struct worker *worker,
                                          struct pool *pool)
{
    struct master_session *ms = MEM_NEW(struct master_session);

    atomic_init(&ms->refs, 1);
    snprintf(ms->handle, sizeof(ms->handle), "%016llx",
             (unsigned long long)rng_u64());
    ms->worker = worker;
    ms->pool = pool;
    pthread_mutex_init(&ms->graph_lock, NULL);
    pthread_mutex_init(&ms->lock, NULL);
    source_init(&ms->graph);
    map_init(&ms->compiled);
    map_init(&ms->callables);
    map_init(&ms->partials);
    return ms;
}

struct master_session *master_session_ref(struct master_session *ms)
{
    atomic_fetch_add(&ms->refs, 1);
    return ms;
}

static void free_table(struct map *m)
{
    struct map_slot *slot;
    size_t at = 0;

    while ((slot = map_next(m, &at)))
        compiled_unref(slot->value);
    map_done(m);
}

void master_session_unref(struct master_session *ms)
{
    if (!ms || atomic_fetch_sub(&ms->refs, 1) != 1)
        return;
    free_table(&ms->compiled);
    free_table(&ms->callables);
    map_done(&ms->partials);
    for (int i = 0; i < ms->place.count; i++)
        mem_free((char *)ms->devices[i].device);
    for (int i = 0; i < ms->task_count; i++) {
        mem_free(ms->tasks[i].name);
        mem_free(ms->tasks[i].devices);
        if (ms->tasks[i].channel)
            rpc_channel_unref(ms->tasks[i].channel);
        quick_peer_unref(ms->tasks[i].quick);
    }
    mem_free(ms->tasks);
    mem_free(ms->devices);
    peers_unref(ms->peers);
    source_done(&ms->graph);
    session_unref(ms->local);
    pthread_mutex_destroy(&ms->graph_lock);
    pthread_mutex_destroy(&ms->lock);
    mem_free(ms);
}

static void log_placement(const struct master_session *ms, int first)
{
    for (int i = first; i < ms->graph.count; i++) {
        const struct source_node *n = &ms->graph.nodes[i];

        log_line(LOG_INFO, "%s: (%s): %s", n->name, n->op,
                 ms->devices[n->place].device);
    }
}

enum mst_code master_session_extend(struct master_session *ms,
                                    const void *graph, size_t len,
                                    struct buffer *owner, struct status *st)
{
    int first = ms->graph.count;
    enum mst_code rc = source_extend(&ms->graph, graph, len, owner, st);

    if (rc)
        return rc;
    rc = place_nodes(&ms->graph, first, &ms->place, st);
    if (rc)
        source_truncate(&ms->graph, first);
    else if (ms->log_placement)
        log_placement(ms, first);
    return rc;
}

/* ---- compiled steps ---- */

struct compiled *compiled_ref(struct compiled *c)
{
    atomic_fetch_add(&c->refs, 1);
    return c;
}

void compiled_unref(struct compiled *c)
{
    if (!c || atomic_fetch_sub(&c->refs, 1) != 1)
        return;
    for (int i = 0; i < c->count; i++) {
        plan_unref(c->parts[i].plan);
        mem_free(c->parts[i].handle);
    }
    mem_free(c->parts);
    mem_free(c->feed_types);
    if (c->graphs)
        pb_out_done(c->graphs);
    mem_free(c->graphs);
    arena_done(&c->arena);
    mem_free(c);
}

/* Bytes that are the same for the same names in the same order. */
static void put_key(struct pb_out *o, const struct part_want *want)
{
    const struct part_name *lists[] = { want->feeds, want->fetches,
                                        want->targets, want->links };
    int counts[] = { want->feed_count, want->fetch_count, want->target_count,
                     want->link_count };

    pb_put_varint(o, (uint64_t)want->partial | (uint64_t)want->keep << 1);
    for (int l = 0; l < 4; l++) {
        pb_put_varint(o, (uint64_t)counts[l]);
        for (int i = 0; i < counts[l]; i++) {
            pb_put_varint(o, lists[l][i].len);
            pb_put_raw(o, lists[l][i].text, lists[l][i].len);
        }
    }
}

static const struct part_name *
copy_names(struct arena *a, const struct part_name *names, int count)
{
    struct part_name *copy = ARENA_ARRAY(a, struct part_name, count);

    for (int i = 0; i < count; i++)
        copy[i] =
            (struct part_name){ arena_strn(a, names[i].text, names[i].len),
                                names[i].len };
    return copy;
}

/* The making of one: on the pool, then in the hands of the tasks. */
struct compiling {
    struct pool_job job;
    struct master_session *ms;
    struct compiled *c;
    struct parts parts;
    atomic_int left;
    pthread_mutex_t lock;
    struct status st; /* under lock: the first error */
};

struct registering {
    struct compiling *k;
    int part;
};

static void compile_failed(struct compiling *k, const struct status *st)
{
    pthread_mutex_lock(&k->lock);
    if (!k->st.code)
        status_copy(&k->st, st);
    pthread_mutex_unlock(&k->lock);
}

static void compile_end(struct compiling *k)
{
    struct master_session *ms = k->ms;
    struct compiled *c = k->c;
    struct compile_wait *list;
    struct pb_out key;

    if (atomic_fetch_sub(&k->left, 1) != 1)
        return;
    pb_out_init(&key);
    put_key(&key, &c->want);
    pthread_mutex_lock(&ms->lock);
    list = c->waiting;
    c->waiting = NULL;
    c->ready = !k->st.code;
    if (!c->ready && map_get(&ms->compiled, key.data, key.len) == c) {
        map_take(&ms->compiled, key.data, key.len);
        compiled_unref(c);
    }
    pthread_mutex_unlock(&ms->lock);
    pb_out_done(&key);
    while (list) {
        struct compile_wait *w = list;

        list = w->next;
        w->done(w, k->st.code ? NULL : compiled_ref(c), &k->st);
    }
    parts_done(&k->parts);
    compiled_unref(c);
    master_session_unref(ms);
    pthread_mutex_destroy(&k->lock);
    mem_free(k);
}

static void registered(const struct rpc_reply *reply, void *arg)
{
    struct registering *r = arg;
    struct compiling *k = r->k;

    if (reply->status->code) {
        compile_failed(k, reply->status);
    } else {
        struct pb_in in = pb_in(reply->msg.data, reply->msg.len);
        struct pb_field f;

        while (pb_next(&in, &f))
            if (f.number == 1 && f.wire == PB_LEN) {
                mem_free(k->c->parts[r->part].handle);
                k->c->parts[r->part].handle =
                    mem_strn((const char *)f.data, f.len);
            }
    }
    mem_free(r);
    compile_end(k);
}

/* graph_options.optimizer_options.opt_level = L0 */
static void put_plain(struct pb_out *o)
{
    struct pb_out level, options;

    pb_out_init(&level);
    pb_out_init(&options);
    pb_put_uint(&level, 3, UINT64_MAX);
    pb_put_bytes(&options, 3, level.data, level.len);
    pb_put_bytes(o, 4, options.data, options.len);
    pb_out_done(&level);
    pb_out_done(&options);
}

static void register_there(struct compiling *k, int part)
{
    const struct master_task *t = &k->ms->tasks[k->c->parts[part].task];
    struct pb_out *graph = &k->parts.list[part].graph;
    struct registering *r = MEM_NEW(struct registering);
    struct rpc_msg m;
    struct pb_out o;

    r->k = k;
    r->part = part;
    pb_out_init(&o);
    pb_put_bytes(&o, 1, k->ms->handle, strlen(k->ms->handle));
    pb_put_uint(&o, 6, true);
    if (k->ms->plain)
        put_plain(&o);
    pb_put_bytes(&o, 2, graph->data, graph->len);
    rpc_msg_init(&m);
    rpc_msg_copy(&m, o.data, o.len);
    pb_out_done(&o);
    atomic_fetch_add(&k->left, 1);
    rpc_client_call_unref(rpc_channel_call(
        t->channel, &(struct rpc_request){
                        .path = "/tensorflow.WorkerService/RegisterGraph",
                        .msg = &m,
                        .done = registered,
                        .arg = r }));
}

static void register_here(struct compiling *k, int part)
{
    struct pb_out *graph = &k->parts.list[part].graph;
    Tensorflow__GraphDef *def =
        CONTROL_UNPACK(tensorflow__graph_def, graph->data, graph->len);
    struct status st = STATUS_INIT;

    if (def ? worker_compile(k->ms->worker, k->ms->local, def, !k->ms->plain,
                             &k->c->parts[part].plan, &st)
            : status_set(&st, MST_INVALID_ARGUMENT, "The graph cannot be read"))
        compile_failed(k, &st);
}

static void compile_job(struct pool_job *job)
{
    struct compiling *k = CONTAINER(job, struct compiling, job);
    struct master_session *ms = k->ms;
    struct compiled *c = k->c;
    struct status st = STATUS_INIT;
    enum mst_code rc;

    pthread_mutex_lock(&ms->graph_lock);
    rc = partition(&ms->graph, &ms->place, &c->want, &k->parts, &st);
    pthread_mutex_unlock(&ms->graph_lock);
    if (rc)
        compile_failed(k, &st);
    c->feed_types = k->parts.feed_types;
    k->parts.feed_types = NULL;
    c->count = k->parts.count;
    c->parts = mem_array((size_t)c->count, sizeof(*c->parts));
    c->graphs = MEM_NEW(struct pb_out);
    pb_out_init(c->graphs);
    for (int i = 0; i < c->count; i++) {
        c->parts[i].task = k->parts.list[i].task;
        c->parts[i].transfers = k->parts.list[i].transfers;
        c->parts[i].between = k->parts.list[i].between;
        c->parts[i].late = k->parts.list[i].late;
        if (c->want.keep)
            pb_put_bytes(c->graphs, 3, k->parts.list[i].graph.data,
                         k->parts.list[i].graph.len);
        if (c->parts[i].task == ms->own_task)
            register_here(k, i);
        else
            register_there(k, i);
    }
    compile_end(k);
}

static struct compiled *compiled_new(const struct part_want *want)
{
    struct compiled *c = MEM_NEW(struct compiled);

    atomic_init(&c->refs, 1);
    arena_init(&c->arena);
    c->want = *want;
    c->want.feeds = copy_names(&c->arena, want->feeds, want->feed_count);
    c->want.fetches = copy_names(&c->arena, want->fetches, want->fetch_count);
    c->want.targets = copy_names(&c->arena, want->targets, want->target_count);
    c->want.links = copy_names(&c->arena, want->links, want->link_count);
    return c;
}

struct compiled *compiled_get(struct master_session *ms,
                              const struct part_want *want,
                              struct compile_wait *w)
{
    struct compiled *c, *ready = NULL;
    struct compiling *k = NULL;
    struct pb_out key;

    pb_out_init(&key);
    put_key(&key, want);
    pthread_mutex_lock(&ms->lock);
    c = map_get(&ms->compiled, key.data, key.len);
    if (c && c->ready) {
        ready = compiled_ref(c);
    } else if (c) {
        w->next = c->waiting;
        c->waiting = w;
    } else {
        k = MEM_NEW(struct compiling);
        c = compiled_new(want);
        w->next = NULL;
        c->waiting = w;
        map_put(&ms->compiled, key.data, key.len, c);
        k->c = compiled_ref(c);
    }
    pthread_mutex_unlock(&ms->lock);
    pb_out_done(&key);
    if (k) {
        k->ms = master_session_ref(ms);
        atomic_init(&k->left, 1);
        pthread_mutex_init(&k->lock, NULL);
        k->job.run = compile_job;
        pool_post(ms->pool, &k->job);
    }
    return ready;
}
