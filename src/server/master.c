#include "server/master.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "io/loop.h"
#include "server/dedup.h"
#include "server/master_message.h"
#include "server/master_session.h"
#include "server/master_step.h"
#include "server/reply.h"

#define STILL_WAITING_NS 10000000000ull
#define METHOD_OF(name)  "/tensorflow.WorkerService/" name

struct master {
    char *job;
    int task;
    struct cluster_spec cluster;
    uint8_t *config; /* under every session's own */
    size_t config_len;
    struct worker *worker;
    struct loop_group *loops;
    struct pool *pool;
    struct dedup ids;
    pthread_mutex_t lock;
    pthread_cond_t idle;
    struct map sessions; /* handle -> master_session, under lock */
    int closing;         /* sessions that are being closed, under lock */
};

/* ---- calls of many at once ---- */

/* Asks several tasks and goes on when all have answered. The calls are kept so
 * that they can be given up. */
struct fan {
    atomic_int left;
    pthread_mutex_t lock;
    struct status st; /* under lock: the first error */
    bool cancelled;   /* under lock */
    struct rpc_client_call **calls;
    int count;
    /* One answer; with NULL as reply after the last. */
    void (*answered)(struct fan *f, int i, const struct rpc_reply *reply);
    void (*over)(struct fan *f);
};

struct fan_call {
    struct fan *f;
    int i;
};

static void fan_init(struct fan *f, int count)
{
    f->count = count;
    atomic_init(&f->left, 1);
    pthread_mutex_init(&f->lock, NULL);
    f->calls = mem_array((size_t)count, sizeof(*f->calls));
}

static void fan_done(struct fan *f)
{
    for (int i = 0; i < f->count; i++)
        rpc_client_call_unref(f->calls[i]);
    mem_free(f->calls);
    pthread_mutex_destroy(&f->lock);
}

static void fan_end(struct fan *f)
{
    if (atomic_fetch_sub(&f->left, 1) == 1)
        f->over(f);
}

static void fan_answered(const struct rpc_reply *reply, void *arg)
{
    struct fan_call *c = arg;
    struct fan *f = c->f;

    if (reply->status->code) {
        pthread_mutex_lock(&f->lock);
        if (!f->st.code)
            status_copy(&f->st, reply->status);
        pthread_mutex_unlock(&f->lock);
    }
    if (f->answered)
        f->answered(f, c->i, reply);
    mem_free(c);
    fan_end(f);
}

static void fan_call(struct fan *f, int i, struct rpc_channel *channel,
                     const char *path, struct rpc_msg *m, bool wait)
{
    struct fan_call *c = MEM_NEW(struct fan_call);
    struct rpc_client_call *call;
    bool cancelled;

    c->f = f;
    c->i = i;
    atomic_fetch_add(&f->left, 1);
    call =
        rpc_channel_call(channel, &(struct rpc_request){ .path = path,
                                                         .msg = m,
                                                         .wait_for_ready = wait,
                                                         .done = fan_answered,
                                                         .arg = c });
    pthread_mutex_lock(&f->lock);
    f->calls[i] = call;
    cancelled = f->cancelled;
    pthread_mutex_unlock(&f->lock);
    if (cancelled)
        rpc_client_call_cancel(call);
}

static void fan_cancel(struct fan *f)
{
    pthread_mutex_lock(&f->lock);
    f->cancelled = true;
    for (int i = 0; i < f->count; i++)
        if (f->calls[i])
            rpc_client_call_cancel(f->calls[i]);
    pthread_mutex_unlock(&f->lock);
}

/* ---- finding a session ---- */

static struct master_session *take_session(struct master *m,
                                           struct message_text handle)
{
    struct master_session *ms;

    pthread_mutex_lock(&m->lock);
    ms = map_get(&m->sessions, handle.data, handle.len);
    if (ms)
        master_session_ref(ms);
    pthread_mutex_unlock(&m->lock);
    return ms;
}

/* Answers the call when there is none. */
static struct master_session *find_session(struct master *m,
                                           struct rpc_call *call,
                                           struct message_text handle,
                                           enum mst_code code, const char *tail)
{
    struct master_session *ms = take_session(m, handle);
    struct status st = STATUS_INIT;

    if (ms)
        return ms;
    status_set(&st, code, "Session %.*s is not found.%s",
               (int)MIN(handle.len, 200), handle.data ? handle.data : "", tail);
    reply_fail(call, &st);
    return NULL;
}

static bool unreadable(struct rpc_call *call, bool good)
{
    if (!good)
        reply_fail_with(call, MST_INTERNAL, "Unable to parse request");
    return !good;
}

/* ---- CreateSession ---- */

/*
 * GetStatus of every task, then the graph is read and placed (on the pool),
 * then CreateWorkerSession on every task. Counted by the call's hooks and by
 * whoever carries it on.
 */
struct creating {
    atomic_int refs;
    struct fan fan;
    struct pool_job job;
    struct loop_timer timer; /* says for whom it waits */
    bool timing;             /* on the loop's thread only */
    struct loop *loop;
    struct loop_task stop;
    struct master *m;
    struct rpc_call *call;
    struct master_session *ms;
    struct session_config config;
    uint8_t *config_bytes; /* what config points into */
    struct message_text graph;
    bool *known; /* by task: has answered GetStatus; under fan.lock */
};

static void creating_unref(struct creating *c)
{
    if (atomic_fetch_sub(&c->refs, 1) != 1)
        return;
    fan_done(&c->fan);
    session_config_free(&c->config);
    mem_free(c->config_bytes);
    master_session_unref(c->ms);
    mem_free(c->known);
    mem_free(c);
}

static void creating_cancelled(void *arg)
{
    struct creating *c = arg;

    fan_cancel(&c->fan);
}

static void creating_over(void *arg)
{
    creating_unref(arg);
}

static void stop_timer(struct loop_task *task)
{
    struct creating *c = CONTAINER(task, struct creating, stop);

    if (c->timing)
        loop_timer_del(c->loop, &c->timer);
    c->timing = false;
    creating_unref(c);
}

static void still_waiting(struct loop_timer *timer)
{
    struct creating *c = CONTAINER(timer, struct creating, timer);

    pthread_mutex_lock(&c->fan.lock);
    for (int i = 0; i < c->ms->place.count; i++)
        if (!c->known[i])
            log_line(LOG_INFO,
                     "CreateSession still waiting for response from worker: %s",
                     c->ms->tasks[i].name);
    pthread_mutex_unlock(&c->fan.lock);
    loop_timer_set(c->loop, timer, loop_now_ns(c->loop) + STILL_WAITING_NS);
}

static bool matches_filters(const struct session_config *config,
                            const struct device_name *task)
{
    struct device_name filter;

    if (!config->filter_count)
        return true;
    for (int i = 0; i < config->filter_count; i++)
        if (device_parse(config->filters[i].text, config->filters[i].len,
                         &filter) &&
            device_compatible(task, &filter))
            return true;
    return false;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct master_task *)a)->name,
                  ((const struct master_task *)b)->name);
}

/* Which tasks this session may use: all, or those that its filters name, and
 * always the master's own. */
static void choose_tasks(struct creating *c)
{
    struct master *m = c->m;
    struct master_session *ms = c->ms;
    int count = 0;

    ms->tasks = mem_array((size_t)cluster_spec_size(&m->cluster) + 1,
                          sizeof(*ms->tasks));
    for (int j = 0; j < m->cluster.count; j++) {
        const struct cluster_job *job = &m->cluster.jobs[j];

        for (int i = 0; i < job->count; i++) {
            struct master_task *t = &ms->tasks[count];
            int index = job->tasks[i].index;
            bool own = !strcmp(job->name, m->job) && index == m->task;
            char *name =
                mem_printf("/job:%s/replica:0/task:%d", job->name, index);
            struct device_name parsed;

            if (own || (device_parse(name, strlen(name), &parsed) &&
                        matches_filters(&c->config, &parsed))) {
                t->name = name;
                t->channel = own ? NULL
                                 : peers_channel(worker_peers(m->worker),
                                                 job->name, index);
                count++;
            } else {
                mem_free(name);
            }
        }
    }
    if (!count) /* a server without a cluster is alone */
        ms->tasks[count++].name = mem_str(worker_task(m->worker));
    qsort(ms->tasks, (size_t)count, sizeof(*ms->tasks), by_name);
    ms->where = mem_array((size_t)count, sizeof(*ms->where));
    ms->place = (struct place_opts){ .tasks = ms->where,
                                     .count = count,
                                     .soft = c->config.soft_placement };
    for (int i = 0; i < count; i++)
        if (!ms->tasks[i].channel) {
            ms->place.own = i;
            ms->tasks[i].device = mem_str(worker_device(m->worker));
            ms->where[i].incarnation = worker_incarnation(m->worker);
        }
}

/* The CPU of a task, out of its GetStatusResponse. */
static void read_status(struct creating *c, int i, const struct rpc_data *msg)
{
    struct pb_in in = pb_in(msg->data, msg->len);
    struct pb_field f, part;
    struct device_name d;

    while (pb_next(&in, &f)) {
        struct pb_in inner = pb_in(f.data, f.len);
        uint64_t incarnation = 0;
        bool cpu = false;

        if (f.number != 1 || f.wire != PB_LEN)
            continue;
        while (pb_next(&inner, &part)) {
            if (part.number == 1 && part.wire == PB_LEN)
                cpu = device_parse((const char *)part.data, part.len, &d) &&
                      !strcmp(d.type, "CPU") && d.id == 0;
            if (part.number == 6 && part.wire == PB_FIXED64)
                incarnation = part.value;
        }
        if (cpu)
            c->ms->where[i].incarnation = incarnation;
    }
}

static void status_answered(struct fan *f, int i, const struct rpc_reply *reply)
{
    struct creating *c = CONTAINER(f, struct creating, fan);

    if (reply->status->code)
        return;
    read_status(c, i, &reply->msg);
    pthread_mutex_lock(&f->lock);
    c->known[i] = true;
    pthread_mutex_unlock(&f->lock);
}

static void creating_failed(struct creating *c, const struct status *st)
{
    reply_fail(c->call, st);
    creating_unref(c);
}

/* Every worker has its session: the client gets its own. */
static void sessions_made(struct fan *f)
{
    struct creating *c = CONTAINER(f, struct creating, fan);
    struct master *m = c->m;
    struct pb_out o;

    if (f->st.code) {
        sessions_delete(worker_sessions(m->worker), c->ms->handle);
        creating_failed(c, &f->st);
        return;
    }
    pthread_mutex_lock(&m->lock);
    map_put_str(&m->sessions, c->ms->handle, master_session_ref(c->ms));
    pthread_mutex_unlock(&m->lock);
    pb_out_init(&o);
    pb_put_bytes(&o, 1, c->ms->handle, strlen(c->ms->handle));
    reply_bytes(c->call, &o);
    creating_unref(c);
}

static enum mst_code make_local(struct creating *c, struct status *st)
{
    struct master *m = c->m;
    struct master_session *ms = c->ms;
    Tensorflow__CreateWorkerSessionRequest q =
        TENSORFLOW__CREATE_WORKER_SESSION_REQUEST__INIT;
    struct message_text handle = { ms->handle, strlen(ms->handle) };
    enum mst_code rc;

    q.session_handle = ms->handle;
    q.isolate_session_state = c->config.isolate;
    q.master_task = (char *)worker_task(m->worker);
    q.master_incarnation = (int64_t)worker_incarnation(m->worker);
    rc = sessions_create(worker_sessions(m->worker), &q, st);
    return rc ? rc
              : sessions_find(worker_sessions(m->worker), handle, true,
                              &ms->local, st);
}

/* CreateWorkerSession as this task's master sends it to another. */
static void put_create(struct creating *c, const struct master_task *t,
                       struct rpc_msg *msg)
{
    struct device_name d;
    struct pb_out o, server;
    const char *task = worker_task(c->m->worker);

    pb_out_init(&o);
    pb_out_init(&server);
    (void)device_parse(t->name, strlen(t->name), &d);
    if (c->config.cluster.len)
        pb_put_bytes(&server, 1, c->config.cluster.data, c->config.cluster.len);
    pb_put_bytes(&server, 2, d.job, strlen(d.job));
    pb_put_uint(&server, 3, (uint64_t)d.task);
    pb_put_bytes(&server, 5, "grpc", 4);
    pb_put_bytes(&o, 1, c->ms->handle, strlen(c->ms->handle));
    pb_put_bytes(&o, 2, server.data, server.len);
    if (c->config.isolate)
        pb_put_uint(&o, 3, true);
    pb_put_bytes(&o, 5, task, strlen(task));
    pb_put_uint(&o, 6, worker_incarnation(c->m->worker));
    rpc_msg_init(msg);
    rpc_msg_copy(msg, o.data, o.len);
    pb_out_done(&o);
    pb_out_done(&server);
}

static void create_job(struct pool_job *job)
{
    struct creating *c = CONTAINER(job, struct creating, job);
    struct master_session *ms = c->ms;
    struct status st = STATUS_INIT;
    enum mst_code rc;

    rc = master_session_extend(ms, c->graph.data, c->graph.len,
                               rpc_call_request(c->call)->owner, &st);
    if (!rc)
        rc = make_local(c, &st);
    if (rc) {
        creating_failed(c, &st);
        return;
    }
    atomic_init(&c->fan.left, 1);
    c->fan.answered = NULL;
    c->fan.over = sessions_made;
    for (int i = 0; i < ms->place.count; i++) {
        struct rpc_msg msg;

        rpc_client_call_unref(c->fan.calls[i]);
        c->fan.calls[i] = NULL;
        if (!ms->tasks[i].channel)
            continue;
        put_create(c, &ms->tasks[i], &msg);
        fan_call(&c->fan, i, ms->tasks[i].channel,
                 METHOD_OF("CreateWorkerSession"), &msg, false);
    }
    fan_end(&c->fan);
}

/* Every task has said who it is. */
static void statuses_known(struct fan *f)
{
    struct creating *c = CONTAINER(f, struct creating, fan);
    struct master_session *ms = c->ms;

    atomic_fetch_add(&c->refs, 1);
    loop_post(c->loop, &c->stop);
    if (f->st.code) {
        creating_failed(c, &f->st);
        return;
    }
    for (int i = 0; i < ms->place.count; i++) {
        if (!ms->tasks[i].device)
            ms->tasks[i].device =
                mem_printf("%s/device:CPU:0", ms->tasks[i].name);
        ms->where[i].device = ms->tasks[i].device;
        (void)device_parse(ms->tasks[i].device, strlen(ms->tasks[i].device),
                           &ms->where[i].name);
    }
    c->job.run = create_job;
    pool_post(c->m->pool, &c->job);
}

static void ask_statuses(struct creating *c)
{
    struct master_session *ms = c->ms;

    c->fan.answered = status_answered;
    c->fan.over = statuses_known;
    for (int i = 0; i < ms->place.count; i++) {
        struct rpc_msg msg;

        if (!ms->tasks[i].channel) {
            c->known[i] = true;
            continue;
        }
        rpc_msg_init(&msg);
        fan_call(&c->fan, i, ms->tasks[i].channel, METHOD_OF("GetStatus"), &msg,
                 true);
    }
    fan_end(&c->fan);
}

/* The client's config over the server's: messages merge when their bytes are
 * laid one after the other. */
static bool merge_config(struct creating *c, const struct master *m,
                         struct message_text own)
{
    size_t len = m->config_len + own.len;

    if (!m->config_len)
        return session_config_parse(&c->config, own.data, own.len);
    c->config_bytes = mem_new(len);
    memcpy(c->config_bytes, m->config, m->config_len);
    memcpy(c->config_bytes + m->config_len, own.data, own.len);
    return session_config_parse(&c->config, c->config_bytes, len);
}

static bool create_parse(struct creating *c, const struct master *m,
                         const struct rpc_data *d)
{
    struct pb_in in = pb_in(d->data, d->len);
    struct message_text config = { "", 0 };
    struct pb_field f;

    c->graph = (struct message_text){ "", 0 };
    while (pb_next(&in, &f)) {
        struct message_text t = { (const char *)f.data, f.len };

        if (f.number == 1 && f.wire == PB_LEN)
            c->graph = t;
        if (f.number == 2 && f.wire == PB_LEN)
            config = t;
    }
    return !in.bad && merge_config(c, m, config);
}

static void create_session(struct rpc_call *call, void *arg)
{
    struct master *m = arg;
    struct creating *c = MEM_NEW(struct creating);

    if (unreadable(call, create_parse(c, m, rpc_call_request(call)))) {
        mem_free(c->config_bytes);
        mem_free(c);
        return;
    }
    atomic_init(&c->refs, 2);
    c->m = m;
    c->call = call;
    c->loop = rpc_call_loop(call);
    c->ms = master_session_new(m->worker, m->pool);
    c->ms->log_placement = c->config.log_placement;
    choose_tasks(c);
    fan_init(&c->fan, c->ms->place.count);
    c->known = mem_array((size_t)c->ms->place.count, sizeof(bool));
    c->stop.run = stop_timer;
    c->timer.fire = still_waiting;
    c->timing = true;
    loop_timer_set(c->loop, &c->timer, loop_now_ns(c->loop) + STILL_WAITING_NS);
    rpc_call_hooks(call, creating_cancelled, creating_over, c);
    if (c->config.own_threads) {
        atomic_fetch_add(&c->refs, 1);
        loop_post(c->loop, &c->stop);
        reply_fail_with(call, MST_INVALID_ARGUMENT,
                        "Distributed session does not support session thread "
                        "pool options.");
        creating_unref(c);
        return;
    }
    ask_statuses(c);
}

/* ---- ExtendSession ---- */

struct extending {
    struct pool_job job;
    struct rpc_call *call;
    struct master_session *ms;
    struct message_text graph;
    int64_t version;
};

static void extend_job(struct pool_job *job)
{
    struct extending *e = CONTAINER(job, struct extending, job);
    struct master_session *ms = e->ms;
    struct status st = STATUS_INIT;
    struct pb_out o;
    enum mst_code rc;

    pb_out_init(&o);
    pthread_mutex_lock(&ms->graph_lock);
    if (ms->version != e->version)
        rc = status_set(&st, MST_ABORTED,
                        "Current version is %lld but caller expected %lld.",
                        (long long)ms->version, (long long)e->version);
    else
        rc = master_session_extend(ms, e->graph.data, e->graph.len,
                                   rpc_call_request(e->call)->owner, &st);
    if (!rc)
        pb_put_uint(&o, 4, (uint64_t)++ms->version);
    pthread_mutex_unlock(&ms->graph_lock);
    if (rc)
        reply_fail(e->call, &st);
    else
        reply_bytes(e->call, &o);
    pb_out_done(&o);
    master_session_unref(ms);
    mem_free(e);
}

static void extend_session(struct rpc_call *call, void *arg)
{
    struct master *m = arg;
    const struct rpc_data *d = rpc_call_request(call);
    struct pb_in in = pb_in(d->data, d->len);
    struct message_text handle = { 0 };
    struct extending *e = MEM_NEW(struct extending);
    struct pb_field f;

    e->graph = (struct message_text){ "", 0 };
    while (pb_next(&in, &f)) {
        struct message_text t = { (const char *)f.data, f.len };

        if (f.number == 1 && f.wire == PB_LEN)
            handle = t;
        if (f.number == 2 && f.wire == PB_LEN)
            e->graph = t;
        if (f.number == 3 && f.wire == PB_VARINT)
            e->version = (int64_t)f.value;
    }
    if (!unreadable(call, !in.bad))
        e->ms = find_session(m, call, handle, MST_ABORTED, "");
    if (!e->ms) {
        mem_free(e);
        return;
    }
    e->call = call;
    e->job.run = extend_job;
    pool_post(m->pool, &e->job);
}

/* ---- steps ---- */

/* Answers the call when the request came before. */
static bool is_new(struct master *m, struct rpc_call *call, int64_t id,
                   const char *what)
{
    struct status st = STATUS_INIT;

    if (dedup_add(&m->ids, id))
        return true;
    status_set(&st, MST_ABORTED,
               "The same %s (Master) request was received twice.", what);
    reply_fail(call, &st);
    return false;
}

static void run_step(struct rpc_call *call, void *arg)
{
    struct master *m = arg;
    const struct rpc_data *d = rpc_call_request(call);
    struct master_session *ms = NULL;
    struct run_step_request q;

    if (unreadable(call, run_step_parse(&q, d->data, d->len)))
        return;
    if (is_new(m, call, q.request_id, "RunStep"))
        ms = find_session(m, call, q.session_handle, MST_ABORTED, "");
    if (!ms) {
        run_step_free(&q);
        return;
    }
    master_run_step(ms, call, &q); /* takes the request's memory */
    master_session_unref(ms);
}

static void partial_run_setup(struct rpc_call *call, void *arg)
{
    struct master *m = arg;
    const struct rpc_data *d = rpc_call_request(call);
    struct master_session *ms = NULL;
    struct run_step_request q;

    if (unreadable(call, partial_setup_parse(&q, d->data, d->len)))
        return;
    if (is_new(m, call, q.request_id, "PartialRunSetup"))
        ms = find_session(m, call, q.session_handle, MST_ABORTED, "");
    if (ms)
        master_partial_setup(ms, call, &q);
    master_session_unref(ms);
    run_step_free(&q);
}

/* ---- callables ---- */

struct making {
    struct compile_wait wait;
    struct master_session *ms;
    struct rpc_call *call;
};

static void callable_ready(struct compile_wait *w, struct compiled *c,
                           const struct status *st)
{
    struct making *k = CONTAINER(w, struct making, wait);
    struct pb_out o;
    int64_t handle;

    if (!c) {
        reply_fail(k->call, st);
    } else {
        pthread_mutex_lock(&k->ms->lock);
        handle = k->ms->callable_next++;
        map_put_num(&k->ms->callables, (uint64_t)handle + 1, c);
        pthread_mutex_unlock(&k->ms->lock);
        pb_out_init(&o);
        pb_put_uint(&o, 1, (uint64_t)handle);
        reply_bytes(k->call, &o);
    }
    master_session_unref(k->ms);
    mem_free(k);
}

static void compile_callable(struct making *k, const struct run_step_request *q)
{
    struct part_name *names = mem_array((size_t)q->feed_count, sizeof(*names));
    struct compiled *c;

    for (int i = 0; i < q->feed_count; i++)
        names[i] =
            (struct part_name){ q->feeds[i].name.data, q->feeds[i].name.len };
    k->wait.done = callable_ready;
    c = compiled_get(k->ms,
                     &(struct part_want){ .feeds = names,
                                          .fetches = q->fetches,
                                          .targets = q->targets,
                                          .feed_count = q->feed_count,
                                          .fetch_count = q->fetch_count,
                                          .target_count = q->target_count },
                     &k->wait);
    mem_free(names);
    if (c)
        callable_ready(&k->wait, c, NULL);
}

static void make_callable(struct rpc_call *call, void *arg)
{
    struct master *m = arg;
    const struct rpc_data *d = rpc_call_request(call);
    struct run_step_request q;
    struct master_session *ms;
    struct making *k;
    bool connections;

    if (unreadable(call,
                   make_callable_parse(&q, d->data, d->len, &connections)))
        return;
    if (connections) {
        reply_fail_with(call, MST_UNIMPLEMENTED,
                        "Callables with tensor connections are not supported");
        run_step_free(&q);
        return;
    }
    ms = is_new(m, call, q.request_id, "MakeCallable")
             ? find_session(m, call, q.session_handle, MST_ABORTED, "")
             : NULL;
    if (ms) {
        k = MEM_NEW(struct making);
        k->ms = ms;
        k->call = call;
        compile_callable(k, &q);
    }
    run_step_free(&q);
}

static void no_callable(struct rpc_call *call, int64_t handle)
{
    struct status st = STATUS_INIT;

    status_set(&st, MST_INVALID_ARGUMENT, "No such callable handle: %lld",
               (long long)handle);
    reply_fail(call, &st);
}

static void run_callable(struct rpc_call *call, void *arg)
{
    struct master *m = arg;
    const struct rpc_data *d = rpc_call_request(call);
    struct run_callable_request q;
    struct master_session *ms;
    struct compiled *c;

    if (unreadable(call, run_callable_parse(&q, d->data, d->len)) ||
        !is_new(m, call, q.request_id, "RunCallable"))
        return;
    ms = find_session(m, call, q.session_handle, MST_ABORTED, "");
    if (!ms)
        return;
    pthread_mutex_lock(&ms->lock);
    c = map_get_num(&ms->callables, (uint64_t)q.handle + 1);
    if (c)
        compiled_ref(c);
    pthread_mutex_unlock(&ms->lock);
    if (!c)
        no_callable(call, q.handle);
    else if (q.feed_count != c->want.feed_count)
        reply_fail_with(call, MST_INVALID_ARGUMENT,
                        "The number of feeds is not that of the callable");
    else
        master_run_callable(ms, c, call, &q);
    compiled_unref(c);
    master_session_unref(ms);
}

static void release_callable(struct rpc_call *call, void *arg)
{
    struct master *m = arg;
    const struct rpc_data *d = rpc_call_request(call);
    struct run_callable_request q;
    struct master_session *ms;
    struct compiled *c;

    if (unreadable(call, run_callable_parse(&q, d->data, d->len)))
        return;
    ms = find_session(m, call, q.session_handle, MST_ABORTED, "");
    if (!ms)
        return;
    pthread_mutex_lock(&ms->lock);
    c = map_take_num(&ms->callables, (uint64_t)q.handle + 1);
    pthread_mutex_unlock(&ms->lock);
    if (c)
        reply_empty(call);
    else
        no_callable(call, q.handle);
    compiled_unref(c);
    master_session_unref(ms);
}

/* ---- the end of sessions ---- */

struct closing {
    struct fan fan;
    struct master *m;
    struct master_session *ms;
    struct rpc_call *call; /* NULL: nobody waits */
    struct resetting *reset;
};

static void reset_end(struct resetting *r);

static void closed(struct fan *f)
{
    struct closing *c = CONTAINER(f, struct closing, fan);
    struct master *m = c->m;

    if (c->call)
        reply_empty(c->call);
    if (c->reset)
        reset_end(c->reset);
    fan_done(f);
    master_session_unref(c->ms);
    mem_free(c);
    pthread_mutex_lock(&m->lock);
    m->closing--;
    pthread_cond_broadcast(&m->idle);
    pthread_mutex_unlock(&m->lock);
}

/* Nothing runs any more: the workers forget the session. */
static void steps_ended(void *arg)
{
    struct closing *c = arg;
    struct master_session *ms = c->ms;

    sessions_delete(worker_sessions(c->m->worker), ms->handle);
    for (int i = 0; i < ms->place.count; i++) {
        struct rpc_msg msg;

        if (!ms->tasks[i].channel)
            continue;
        rpc_msg_init(&msg);
        message_put_bytes(&msg, 1, ms->handle, strlen(ms->handle));
        fan_call(&c->fan, i, ms->tasks[i].channel,
                 METHOD_OF("DeleteWorkerSession"), &msg, false);
    }
    fan_end(&c->fan);
}

/* Takes the reference that the table had. */
static void close_one(struct master *m, struct master_session *ms,
                      struct rpc_call *call, struct resetting *reset)
{
    struct closing *c = MEM_NEW(struct closing);

    c->m = m;
    c->ms = ms;
    c->call = call;
    c->reset = reset;
    fan_init(&c->fan, ms->place.count);
    c->fan.over = closed;
    (void)master_close_steps(ms, steps_ended, c);
}

static void close_session(struct rpc_call *call, void *arg)
{
    struct master *m = arg;
    const struct rpc_data *d = rpc_call_request(call);
    struct pb_in in = pb_in(d->data, d->len);
    struct message_text handle = { 0 };
    struct master_session *ms;
    struct pb_field f;

    while (pb_next(&in, &f))
        if (f.number == 1 && f.wire == PB_LEN)
            handle = (struct message_text){ (const char *)f.data, f.len };
    if (unreadable(call, !in.bad))
        return;
    pthread_mutex_lock(&m->lock);
    ms = map_take(&m->sessions, handle.data, handle.len);
    m->closing += ms != NULL;
    pthread_mutex_unlock(&m->lock);
    if (ms)
        close_one(m, ms, call, NULL);
    else
        (void)find_session(m, call, handle, MST_ABORTED,
                           " Possibly, this master has restarted.");
}

/* All sessions, as references to be given to close_one(). */
static struct master_session **take_all(struct master *m, int *ret_count)
{
    struct master_session **list;
    struct map_slot *slot;
    size_t at = 0;
    int n = 0;

    pthread_mutex_lock(&m->lock);
    list = mem_array(m->sessions.count, sizeof(*list));
    while ((slot = map_next(&m->sessions, &at)))
        list[n++] = slot->value;
    map_done(&m->sessions);
    map_init(&m->sessions);
    m->closing += n;
    pthread_mutex_unlock(&m->lock);
    *ret_count = n;
    return list;
}

/* ---- Reset ---- */

struct resetting {
    atomic_int left;
    struct fan fan;
    struct master *m;
    struct rpc_call *call;
};

static void reset_over(struct fan *f)
{
    struct resetting *r = CONTAINER(f, struct resetting, fan);

    if (f->st.code)
        reply_fail(r->call, &f->st);
    else
        reply_empty(r->call);
    fan_done(f);
    mem_free(r);
}

/* All sessions are closed: the containers are emptied everywhere. The request
 * of a CleanupAll is laid out as Reset's, so it is passed on. */
static void reset_end(struct resetting *r)
{
    struct master *m = r->m;
    const struct rpc_data *d = rpc_call_request(r->call);
    struct pb_in in = pb_in(d->data, d->len);
    int i = 0, containers = 0;
    struct pb_out o;
    struct pb_field f;

    if (atomic_fetch_sub(&r->left, 1) != 1)
        return;
    pb_out_init(&o);
    while (pb_next(&in, &f))
        if (f.number == 1 && f.wire == PB_LEN) {
            char *name = mem_strn((const char *)f.data, f.len);

            worker_clear(m->worker, name);
            pb_put_bytes(&o, 1, f.data, f.len);
            mem_free(name);
            containers++;
        }
    if (!containers)
        worker_clear(m->worker, "");
    for (int j = 0; j < m->cluster.count; j++)
        for (int t = 0; t < m->cluster.jobs[j].count; t++) {
            const struct cluster_job *job = &m->cluster.jobs[j];
            struct rpc_channel *channel;
            struct rpc_msg msg;

            if (!strcmp(job->name, m->job) && job->tasks[t].index == m->task)
                continue;
            channel = peers_channel(worker_peers(m->worker), job->name,
                                    job->tasks[t].index);
            rpc_msg_init(&msg);
            rpc_msg_copy(&msg, o.data, o.len);
            fan_call(&r->fan, i++, channel, METHOD_OF("CleanupAll"), &msg,
                     false);
            rpc_channel_unref(channel);
        }
    pb_out_done(&o);
    fan_end(&r->fan);
}

static void reset(struct rpc_call *call, void *arg)
{
    struct master *m = arg;
    struct resetting *r = MEM_NEW(struct resetting);
    struct master_session **list;
    int count;

    r->m = m;
    r->call = call;
    fan_init(&r->fan, cluster_spec_size(&m->cluster));
    r->fan.over = reset_over;
    list = take_all(m, &count);
    atomic_init(&r->left, count + 1);
    for (int i = 0; i < count; i++)
        close_one(m, list[i], NULL, r);
    mem_free(list);
    reset_end(r);
}

/* ---- ListDevices ---- */

static void put_device(struct pb_out *o, const char *device, uint64_t inc)
{
    struct pb_out d;

    pb_out_init(&d);
    pb_put_bytes(&d, 1, device, strlen(device));
    pb_put_bytes(&d, 2, "CPU", 3);
    pb_put_uint(&d, 4, 268435456);
    pb_put_tag(&d, 6, PB_FIXED64);
    pb_put_raw(&d, &inc, 8);
    pb_put_bytes(o, 1, d.data, d.len);
    pb_out_done(&d);
}

static void list_devices(struct rpc_call *call, void *arg)
{
    struct master *m = arg;
    const struct rpc_data *d = rpc_call_request(call);
    struct pb_in in = pb_in(d->data, d->len);
    struct message_text handle = { 0 };
    struct master_session *ms;
    struct pb_field f;
    struct pb_out o;

    while (pb_next(&in, &f))
        if (f.number == 1 && f.wire == PB_LEN)
            handle = (struct message_text){ (const char *)f.data, f.len };
    if (unreadable(call, !in.bad))
        return;
    pb_out_init(&o);
    if (!handle.len) {
        worker_put_device(m->worker, &o, 1);
        reply_bytes(call, &o);
        return;
    }
    ms = find_session(m, call, handle, MST_INVALID_ARGUMENT, "");
    if (!ms)
        return;
    for (int i = 0; i < ms->place.count; i++)
        if (i == ms->place.own)
            worker_put_device(m->worker, &o, 1);
        else
            put_device(&o, ms->tasks[i].device, ms->where[i].incarnation);
    reply_bytes(call, &o);
    master_session_unref(ms);
}

/* ---- the whole ---- */

#define METHOD(name, fn)                                                       \
    {                                                                          \
        .path = "/tensorflow.MasterService/" name, .start = (fn)               \
    }

static const struct rpc_method methods[] = {
    METHOD("CreateSession", create_session),
    METHOD("ExtendSession", extend_session),
    METHOD("RunStep", run_step),
    METHOD("PartialRunSetup", partial_run_setup),
    METHOD("CloseSession", close_session),
    METHOD("ListDevices", list_devices),
    METHOD("Reset", reset),
    METHOD("MakeCallable", make_callable),
    METHOD("RunCallable", run_callable),
    METHOD("ReleaseCallable", release_callable),
};

struct master *master_new(const struct master_opts *opts)
{
    struct master *m = MEM_NEW(struct master);

    m->job = mem_str(opts->job);
    m->task = opts->task;
    cluster_spec_copy(&m->cluster, opts->cluster);
    m->config = mem_copy(opts->config, opts->config_len);
    m->config_len = opts->config_len;
    m->worker = opts->worker;
    m->loops = opts->loops;
    m->pool = opts->pool;
    dedup_init(&m->ids);
    pthread_mutex_init(&m->lock, NULL);
    pthread_cond_init(&m->idle, NULL);
    map_init(&m->sessions);
    return m;
}

void master_stop(struct master *m)
{
    struct master_session **list;
    int count;

    list = take_all(m, &count);
    for (int i = 0; i < count; i++)
        close_one(m, list[i], NULL, NULL);
    mem_free(list);
    pthread_mutex_lock(&m->lock);
    while (m->closing)
        pthread_cond_wait(&m->idle, &m->lock);
    pthread_mutex_unlock(&m->lock);
}

void master_free(struct master *m)
{
    if (!m)
        return;
    map_done(&m->sessions);
    cluster_spec_done(&m->cluster);
    dedup_done(&m->ids);
    pthread_mutex_destroy(&m->lock);
    pthread_cond_destroy(&m->idle);
    mem_free(m->config);
    mem_free(m->job);
    mem_free(m);
}

void master_add_methods(struct master *m, struct rpc_server *server)
{
    rpc_server_add(server, methods, COUNT(methods), m);
}
