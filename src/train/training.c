#include "train/training.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "store/file.h"
#include "train/queues.h"

#define CLOSE_MS 5000
#define POLL_MS  100 /* how often a worker looks whether the chief is done */

/* Names of ops or tensors. */
struct names {
    const char **list;
    int count, room;
};

struct training {
    struct training_opts o;
    struct pb_out def; /* the GraphDef as the session gets it */
    struct pb_out config;
    struct names init, ready; /* ops; tensors that are empty, or true */
    struct checkpoint_dir dir;
    int64_t saved; /* the step of the last checkpoint; -1: none */
    struct client_runner *step;
    struct client_runner *reader; /* of the global step */
    struct queues *queues;
    pthread_mutex_t lock;
    pthread_cond_t change;
    struct client_session *session; /* under lock, for others */
    atomic_bool stopped;            /* set under lock */
};

static void say(struct training *t, const char *text)
{
    if (t->o.say)
        t->o.say(t->o.arg, text);
}

/* ---- making ---- */

static void add_name(struct names *n, const char *name)
{
    *MEM_PUSH(n->list, n->count, n->room) = name;
}

/* The attribute `dtype` of a node, as bytes of its entry. */
static struct meta_text type_entry(const struct meta_node *n)
{
    struct pb_in in = pb_in(n->wire, n->wire_len);
    struct pb_field f, key;

    while (pb_next(&in, &f)) {
        struct pb_in entry = pb_in(f.data, f.len);

        if (f.number == 5 && f.wire == PB_LEN && pb_next(&entry, &key) &&
            key.wire == PB_LEN && key.len == 5 && !memcmp(key.data, "dtype", 5))
            return (struct meta_text){ f.data, f.len };
    }
    return (struct meta_text){ NULL, 0 };
}

/* A node that says whether a variable has a value; placed with it. */
static void ask_ready(struct training *t, const struct meta_variable *v, int i)
{
    const struct meta_node *n =
        meta_graph_node(t->o.graph, v->name, strcspn(v->name, ":"));
    const char *op =
        v->resource ? "VarIsInitializedOp" : "IsVariableInitialized";
    struct arena *arena = &t->o.graph->arena;
    char *name = arena_printf(arena, "muster/ready_%d", i);
    struct meta_text type;
    struct pb_out o;

    if (!n)
        return;
    pb_out_init(&o);
    pb_put_bytes(&o, 1, name, strlen(name));
    pb_put_bytes(&o, 2, op, strlen(op));
    pb_put_bytes(&o, 3, n->name, strlen(n->name));
    type = type_entry(n);
    if (!v->resource)
        pb_put_bytes(&o, 5, type.data, type.len);
    pb_put_bytes(&t->def, 1, o.data, o.len);
    pb_out_done(&o);
    add_name(&t->ready, arena_printf(arena, "%s:0", name));
}

static void choose_ops(struct training *t)
{
    struct meta_graph *g = t->o.graph;
    const char *init = meta_graph_first_op(g, "init_op");
    const char *ready = meta_graph_first(g, "ready_op");

    if (init)
        add_name(&t->init, init);
    for (int i = 0; i < g->variable_count && !init; i++)
        if (*g->variables[i].initializer)
            add_name(&t->init, g->variables[i].initializer);
    if (ready)
        add_name(&t->ready, ready);
    for (int i = 0; i < g->variable_count && !ready; i++)
        ask_ready(t, &g->variables[i], i);
}

/* A ConfigProto that has the session see the ps tasks and this worker only:
 * other workers may come and go. */
static void write_config(struct training *t)
{
    const struct placer_opts *p = &t->o.place;
    char text[300];

    snprintf(text, sizeof(text), "/job:%s", p->ps_job);
    pb_put_bytes(&t->config, 4, text, strlen(text));
    snprintf(text, sizeof(text), "/job:%s/task:%d", p->job, p->task);
    pb_put_bytes(&t->config, 4, text, strlen(text));
}

static enum mst_code prepare(struct training *t, struct status *st)
{
    const struct training_opts *o = &t->o;
    enum mst_code rc;

    rc = placer_place(o->graph, &o->place, &t->def, st);
    if (rc)
        return rc;
    choose_ops(t);
    if (o->place.ps_tasks)
        write_config(t);
    if (!o->checkpoint_dir || !o->chief)
        return MST_OK;
    if (!o->graph->saver)
        return status_set(st, MST_INVALID_ARGUMENT,
                          "The graph has no saver, so there can be no "
                          "checkpoints: export it with saver_def");
    return checkpoint_open(&t->dir, o->checkpoint_dir, st);
}

enum mst_code training_new(const struct training_opts *opts,
                           struct training **ret, struct status *st)
{
    struct training *t = MEM_NEW(struct training);
    pthread_condattr_t attr;
    enum mst_code rc;

    t->o = *opts;
    t->saved = -1;
    pb_out_init(&t->def);
    pb_out_init(&t->config);
    pthread_mutex_init(&t->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&t->change, &attr);
    pthread_condattr_destroy(&attr);
    rc = prepare(t, st);
    if (rc)
        training_free(t);
    else
        *ret = t;
    return rc;
}

void training_free(struct training *t)
{
    if (!t)
        return;
    training_end(t);
    checkpoint_close(&t->dir);
    pb_out_done(&t->def);
    pb_out_done(&t->config);
    mem_free(t->init.list);
    mem_free(t->ready.list);
    pthread_cond_destroy(&t->change);
    pthread_mutex_destroy(&t->lock);
    mem_free(t);
}

/* ---- stopping ---- */

void training_stop(struct training *t, bool now)
{
    pthread_mutex_lock(&t->lock);
    atomic_store(&t->stopped, true);
    if (now && t->session)
        client_session_cancel(t->session);
    pthread_cond_broadcast(&t->change);
    pthread_mutex_unlock(&t->lock);
}

bool training_stopped(struct training *t)
{
    return atomic_load(&t->stopped);
}

static enum mst_code stopped_status(struct status *st)
{
    return status_set(st, MST_CANCELLED, "The training was stopped.");
}

/* For a moment, or until it is stopped. */
static enum mst_code pause_for(struct training *t, uint64_t ms,
                               struct status *st)
{
    uint64_t end = clock_ns() + ms * 1000000;
    struct timespec until = { (time_t)(end / 1000000000),
                              (long)(end % 1000000000) };
    int late = 0;

    pthread_mutex_lock(&t->lock);
    while (!atomic_load(&t->stopped) && !late)
        late = pthread_cond_timedwait(&t->change, &t->lock, &until);
    pthread_mutex_unlock(&t->lock);
    return training_stopped(t) ? stopped_status(st) : MST_OK;
}

/* ---- single steps of the beginning ---- */

enum mst_code training_run(struct training *t, const struct client_want *want,
                           const struct tensor *feeds, struct tensor *fetches,
                           struct status *st)
{
    return client_session_run(t->session, want, feeds, fetches, 0, st);
}

static enum mst_code run_ops(struct training *t, const char *const *ops,
                             int count, struct status *st)
{
    struct client_want want = { .targets = ops, .target_count = count };

    return count ? training_run(t, &want, NULL, NULL, st) : MST_OK;
}

/* The op of a collection, if it has one. */
static enum mst_code run_collection(struct training *t, const char *name,
                                    struct status *st)
{
    const char *op = meta_graph_first_op(t->o.graph, name);

    return op ? run_ops(t, &op, 1, st) : MST_OK;
}

static enum mst_code run_local_init(struct training *t, struct status *st)
{
    struct meta_graph *g = t->o.graph;
    const char *op = meta_graph_first_op(g, "local_init_op");
    enum mst_code rc = MST_OK;

    if (op)
        return run_ops(t, &op, 1, st);
    for (int i = 0; i < g->local_count && !rc; i++)
        if (*g->locals[i].initializer)
            rc = run_ops(t, &g->locals[i].initializer, 1, st);
    return rc;
}

/* What ready_op says: a list of variables that have no value, or, of one
 * variable, whether it has. *ret_not is a name for a person. */
static bool says_ready(const struct tensor *r, const char *name, char *ret_not,
                       size_t room)
{
    if (r->dtype == DT_BOOL) {
        bool good = r->count && *TENSOR_DATA(r, uint8_t);

        if (!good)
            snprintf(ret_not, room, "%s", name);
        return good;
    }
    if (r->dtype == DT_STRING && r->count) {
        const struct str *s = tensor_str(r, 0);

        snprintf(ret_not, room, "%.*s", (int)MIN(s->len, 200), s->data);
    }
    return !r->count;
}

static enum mst_code ask(struct training *t, const char *const *tensors,
                         int count, bool *ret_ready, char *ret_not, size_t room,
                         struct status *st)
{
    struct client_want want = { .fetches = tensors, .fetch_count = count };
    struct tensor *out = mem_array((size_t)count, sizeof(*out));
    enum mst_code rc;

    *ret_ready = true;
    rc = count ? training_run(t, &want, NULL, out, st) : MST_OK;
    for (int i = 0; i < count && !rc; i++) {
        *ret_ready &= says_ready(&out[i], tensors[i], ret_not, room);
        tensor_unref(&out[i]);
    }
    mem_free(out);
    return rc;
}

/* ---- the beginning ---- */

static enum mst_code open_session(struct training *t, struct status *st)
{
    struct client_session *s;
    enum mst_code rc;

    rc = client_session_new(t->o.target, t->o.server, &s, st);
    if (rc)
        return rc;
    pthread_mutex_lock(&t->lock);
    if (!atomic_load(&t->stopped))
        t->session = s;
    pthread_mutex_unlock(&t->lock);
    if (!t->session) {
        client_session_close(s, 0);
        return stopped_status(st);
    }
    return client_session_open(
        s,
        &(struct client_session_opts){ .graph = t->def.data,
                                       .graph_len = t->def.len,
                                       .config = t->config.data,
                                       .config_len = t->config.len },
        st);
}

static enum mst_code restore(struct training *t, const char *prefix,
                             struct status *st)
{
    const struct meta_saver *s = t->o.graph->saver;
    struct client_want want = { .feeds = &s->filename,
                                .feed_count = 1,
                                .targets = &s->restore,
                                .target_count = 1 };
    struct tensor name;
    enum mst_code rc;
    char text[300];

    snprintf(text, sizeof(text), "restoring %.250s", prefix);
    say(t, text);
    rc = tensor_new_scalar(&name, DT_STRING, st);
    if (rc)
        return rc;
    str_set(tensor_str(&name, 0), prefix, strlen(prefix));
    rc = training_run(t, &want, &name, NULL, st);
    tensor_unref(&name);
    return rc;
}

static enum mst_code init_or_restore(struct training *t, struct status *st)
{
    char *prefix = t->dir.dir ? checkpoint_latest(&t->dir) : NULL;
    enum mst_code rc;

    rc = prefix ? restore(t, prefix, st)
                : run_ops(t, t->init.list, t->init.count, st);
    mem_free(prefix);
    return rc;
}

static enum mst_code begin_chief(struct training *t, struct status *st)
{
    const char *local = meta_graph_first(t->o.graph, "ready_for_local_init_op");
    char what[256] = "";
    bool ready = true;
    enum mst_code rc;

    rc = init_or_restore(t, st);
    if (!rc && local)
        rc = ask(t, &local, 1, &ready, what, sizeof(what), st);
    if (!rc && ready)
        rc = run_local_init(t, st);
    if (!rc && ready)
        rc = ask(t, t->ready.list, t->ready.count, &ready, what, sizeof(what),
                 st);
    if (!rc && !ready)
        rc = status_set(st, MST_FAILED_PRECONDITION,
                        "Initialising did not make the model ready: %s has no "
                        "value",
                        what);
    return rc;
}

static enum mst_code begin_other(struct training *t, struct status *st)
{
    const char *local = meta_graph_first(t->o.graph, "ready_for_local_init_op");
    bool waited = false, ready = true;
    char what[256] = "";
    enum mst_code rc;

    for (;;) {
        ready = true;
        rc = local ? ask(t, &local, 1, &ready, what, sizeof(what), st) : MST_OK;
        if (!rc && ready)
            rc = run_local_init(t, st);
        if (!rc && ready)
            rc = ask(t, t->ready.list, t->ready.count, &ready, what,
                     sizeof(what), st);
        if (rc || ready)
            return rc;
        if (!waited) {
            char text[320];

            snprintf(text, sizeof(text),
                     "waiting for the chief to initialise %s", what);
            say(t, text);
        }
        waited = true;
        rc = pause_for(t, POLL_MS, st);
        if (rc)
            return rc;
    }
}

/* Tokens for the workers of a SyncReplicasOptimizer are the chief's to make. */
static bool is_mine(void *arg, const struct meta_queue_runner *r)
{
    const struct training *t = arg;
    const char *tail = strrchr(r->queue, '/');

    return t->o.chief || strcmp(tail ? tail + 1 : r->queue, "sync_token_q");
}

static enum mst_code begin_steps(struct training *t, struct status *st)
{
    const char *global = training_step_tensor(t);
    struct client_want read = { .fetches = &global, .fetch_count = 1 };
    enum mst_code rc;

    rc = run_collection(
        t, t->o.chief ? "sync_chief_init_op" : "sync_local_init_op", st);
    if (!rc && t->o.chief)
        rc = run_collection(t, "sync_init_tokens_op", st);
    if (!rc)
        t->queues = queues_start(t->session, t->o.graph, is_mine, t);
    if (!rc)
        rc = client_runner_new(t->session, &t->o.want, 0, &t->step, st);
    if (!rc && global)
        rc = client_runner_new(t->session, &read, 0, &t->reader, st);
    return rc;
}

static enum mst_code begin_once(struct training *t, struct status *st)
{
    enum mst_code rc;

    rc = open_session(t, st);
    if (!rc)
        rc = t->o.chief ? begin_chief(t, st) : begin_other(t, st);
    if (!rc)
        rc = begin_steps(t, st);
    if (rc)
        training_end(t);
    if (rc && training_stopped(t))
        rc = stopped_status(st);
    return rc;
}

bool training_is_lost(enum mst_code code)
{
    return code == MST_UNAVAILABLE || code == MST_ABORTED;
}

enum mst_code training_begin(struct training *t, struct status *st)
{
    enum mst_code rc;

    while (training_is_lost(rc = begin_once(t, st))) {
        rc = pause_for(t, POLL_MS, st);
        if (rc)
            break;
    }
    return rc;
}

enum mst_code training_recover(struct training *t, struct status *st)
{
    training_end(t);
    t->saved = -1;
    return training_begin(t, st);
}

void training_end(struct training *t)
{
    struct client_session *s;

    queues_stop(t->queues);
    t->queues = NULL;
    client_runner_free(t->step);
    t->step = NULL;
    client_runner_free(t->reader);
    t->reader = NULL;
    pthread_mutex_lock(&t->lock);
    s = t->session;
    t->session = NULL;
    pthread_mutex_unlock(&t->lock);
    client_session_close(s, CLOSE_MS);
}

/* ---- steps ---- */

enum mst_code training_step(struct training *t, const struct tensor *feeds,
                            struct tensor *fetches, struct status *st)
{
    if (queues_status(t->queues, st))
        return st->code;
    return client_runner_run(t->step, feeds, fetches, 0, st);
}

struct client_session *training_session(struct training *t)
{
    return t->session;
}

const char *training_step_tensor(const struct training *t)
{
    const struct meta_variable *v = t->o.graph->global_step;

    return v ? v->snapshot : NULL;
}

enum mst_code training_global_step(struct training *t, int64_t *ret,
                                   struct status *st)
{
    struct tensor value;
    enum mst_code rc;

    *ret = 0;
    if (!t->reader)
        return MST_OK;
    rc = client_runner_run(t->reader, NULL, &value, 0, st);
    if (rc)
        return rc;
    *ret = tensor_int(&value, 0);
    tensor_unref(&value);
    return MST_OK;
}

/* ---- checkpoints ---- */

/* Beside the values, the graph itself, as TensorFlow does. */
static enum mst_code write_meta(struct training *t, const char *prefix,
                                struct status *st)
{
    char *path = mem_printf("%s.meta", prefix);
    enum mst_code rc;

    rc = file_write(path, t->o.graph->bytes, t->o.graph->len, st);
    mem_free(path);
    return rc;
}

static enum mst_code run_save(struct training *t, const char *prefix,
                              struct status *st)
{
    const struct meta_saver *s = t->o.graph->saver;
    struct client_want want = { .feeds = &s->filename,
                                .feed_count = 1,
                                .fetches = &s->save,
                                .fetch_count = 1 };
    struct tensor name, saved;
    enum mst_code rc;

    rc = tensor_new_scalar(&name, DT_STRING, st);
    if (rc)
        return rc;
    str_set(tensor_str(&name, 0), prefix, strlen(prefix));
    rc = training_run(t, &want, &name, &saved, st);
    if (!rc)
        tensor_unref(&saved);
    tensor_unref(&name);
    return rc;
}

enum mst_code training_save(struct training *t, int64_t step, struct status *st)
{
    const struct meta_saver *s = t->o.graph->saver;
    int keep = t->o.keep >= 0 ? t->o.keep : s ? s->max_to_keep : 0;
    enum mst_code rc;
    char *prefix;

    if (!t->dir.dir || t->saved == step)
        return MST_OK;
    prefix = checkpoint_prefix(&t->dir, step);
    rc = run_save(t, prefix, st);
    if (!rc)
        rc = write_meta(t, prefix, st);
    if (!rc)
        rc = checkpoint_add(&t->dir, step, keep, st);
    if (!rc)
        t->saved = step;
    mem_free(prefix);
    return rc;
}
