/*
 * CreateSession: who the tasks are is asked (and waited for), the client's
 * graph is read and placed, every worker gets its session, the client its
 * handle.
 */
#include "server/master_state.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "io/loop.h"
#include "server/master_cluster.h"

#define STILL_WAITING_NS 10000000000ull

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
    struct message_text graph, target;
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
    for (int i = 0; i < c->ms->task_count; i++)
        if (!c->known[i])
            log_line(LOG_INFO,
                     "CreateSession still waiting for response from worker: %s",
                     c->ms->tasks[i].name);
    pthread_mutex_unlock(&c->fan.lock);
    loop_timer_set(c->loop, timer, loop_now_ns(c->loop) + STILL_WAITING_NS);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct master_task *)a)->name,
                  ((const struct master_task *)b)->name);
}

/* Whether the session may use a task: one that its filters name; or, without
 * filters, one that the server was started with. Nobody's next session is to
 * wait for a worker that was added meanwhile and is not up. */
static bool may_use(const struct creating *c, const char *job, int task)
{
    if (!c->config.filter_count)
        return cluster_spec_address(&c->m->cluster, job, task);
    return master_cluster_filter(&c->config, job, task);
}

/* The tasks of this session, and always the master's own. */
static void choose_tasks(struct creating *c)
{
    struct master *m = c->m;
    struct master_session *ms = c->ms;
    struct cluster_spec now;
    int count = 0;

    peers_cluster(worker_peers(m->worker), &now);
    ms->tasks =
        mem_array((size_t)cluster_spec_size(&now) + 1, sizeof(*ms->tasks));
    ms->tasks[count++].name = mem_str(worker_task(m->worker));
    for (int j = 0; j < now.count; j++)
        for (int i = 0; i < now.jobs[j].count; i++) {
            const char *job = now.jobs[j].name;
            int task = now.jobs[j].tasks[i].index;
            struct rpc_channel *channel;

            if ((!strcmp(job, m->job) && task == m->task) ||
                !may_use(c, job, task))
                continue;
            channel = peers_channel(worker_peers(m->worker), job, task);
            if (!channel)
                continue; /* removed in this moment */
            ms->tasks[count].name =
                mem_printf("/job:%s/replica:0/task:%d", job, task);
            ms->tasks[count++].channel = channel;
        }
    cluster_spec_done(&now);
    ms->task_count = count;
}

static void add_device(struct master_task *t, const struct device_name *d,
                       uint64_t incarnation)
{
    *MEM_PUSH(t->devices, t->device_count, t->device_room) =
        (struct place_device){ .name = *d, .incarnation = incarnation };
}

/* The tasks in order; the devices of our own. */
static void sort_tasks(struct creating *c)
{
    struct worker *w = c->m->worker;
    struct master_session *ms = c->ms;

    qsort(ms->tasks, (size_t)ms->task_count, sizeof(*ms->tasks), by_name);
    while (ms->tasks[ms->own_task].channel)
        ms->own_task++;
    for (int i = 0; i < worker_cpus(w); i++)
        add_device(&ms->tasks[ms->own_task],
                   &(struct device_name){ .type = "CPU", .id = i },
                   worker_incarnation(w));
}

/* The devices of a task, out of its GetStatusResponse. */
static void read_status(struct creating *c, int i, const struct rpc_data *msg)
{
    struct pb_in in = pb_in(msg->data, msg->len);
    struct pb_field f, part;

    while (pb_next(&in, &f)) {
        struct pb_in inner = pb_in(f.data, f.len);
        struct device_name d = { .id = -1 };
        uint64_t incarnation = 0;

        if (f.number != 1 || f.wire != PB_LEN)
            continue;
        while (pb_next(&inner, &part)) {
            if (part.number == 1 && part.wire == PB_LEN &&
                !device_parse((const char *)part.data, part.len, &d))
                d.id = -1;
            if (part.number == 6 && part.wire == PB_FIXED64)
                incarnation = part.value;
            if (part.number == 7 && part.wire == PB_LEN)
                c->ms->tasks[i].ours =
                    part.len == strlen(MESSAGE_OURS) &&
                    !memcmp(part.data, MESSAGE_OURS, part.len);
        }
        if (d.id >= 0 && *d.type)
            add_device(&c->ms->tasks[i], &d, incarnation);
    }
}

/* All devices, by the names that their tasks have here. */
static void list_devices(struct master_session *ms, bool soft)
{
    int count = 0;

    for (int i = 0; i < ms->task_count; i++)
        count += ms->tasks[i].device_count;
    ms->devices = mem_array((size_t)count, sizeof(*ms->devices));
    ms->place = (struct place_opts){ .devices = ms->devices,
                                     .task_count = ms->task_count,
                                     .soft = soft };
    for (int i = 0; i < ms->task_count; i++) {
        const struct master_task *t = &ms->tasks[i];

        if (i == ms->own_task)
            ms->place.own = ms->place.count;
        for (int k = 0; k < t->device_count; k++) {
            struct place_device *d = &ms->devices[ms->place.count++];

            *d = t->devices[k];
            d->task = i;
            d->device =
                mem_printf("%s/device:%s:%d", t->name, t->devices[k].name.type,
                           t->devices[k].name.id);
            (void)device_parse(d->device, strlen(d->device), &d->name);
        }
    }
}

static void status_answered(struct fan *f, int i, const struct rpc_reply *reply)
{
    struct creating *c = CONTAINER(f, struct creating, fan);

    if (reply->status->code)
        return;
    read_status(c, i, &reply->msg);
    if (c->ms->tasks[i].ours && !c->ms->tasks[i].quick)
        c->ms->tasks[i].quick =
            quick_peer_get(c->m->quick, c->ms->tasks[i].channel);
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

static const char *own_task(const struct master_session *ms)
{
    return ms->tasks[ms->own_task].name;
}

static enum mst_code make_local(struct creating *c, struct status *st)
{
    struct master *m = c->m;
    struct master_session *ms = c->ms;
    Tensorflow__CreateWorkerSessionRequest q =
        TENSORFLOW__CREATE_WORKER_SESSION_REQUEST__INIT;
    struct message_text handle = { ms->handle, strlen(ms->handle) };
    struct message_text cluster = c->config.cluster;
    Tensorflow__ServerDef def = TENSORFLOW__SERVER_DEF__INIT;
    struct device_name own;
    enum mst_code rc;

    if (cluster.len) {
        (void)device_parse(own_task(ms), strlen(own_task(ms)), &own);
        def.cluster =
            CONTROL_UNPACK(tensorflow__cluster_def, cluster.data, cluster.len);
        def.job_name = own.job;
        def.task_index = own.task;
        q.server_def = &def;
    }
    q.session_handle = ms->handle;
    q.isolate_session_state = c->config.isolate;
    q.master_task = (char *)own_task(ms);
    q.master_incarnation = (int64_t)worker_incarnation(m->worker);
    rc = sessions_create(worker_sessions(m->worker), &q, st);
    control_free(def.cluster);
    return rc ? rc
              : sessions_find(worker_sessions(m->worker), handle, true,
                              &ms->local, st);
}

/* CreateWorkerSession as this task's master sends it to another. */
static void put_create(struct creating *c, int i, struct rpc_msg *msg)
{
    const struct master_task *t = &c->ms->tasks[i];
    struct device_name d;
    struct pb_out o, server;
    const char *task = own_task(c->ms);

    pb_out_init(&o);
    pb_out_init(&server);
    (void)device_parse(t->name, strlen(t->name), &d);
    master_cluster_put(c->m, c->ms, &c->config, i, &server);
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
    for (int i = 0; i < ms->task_count; i++) {
        struct rpc_msg msg;

        rpc_client_call_unref(c->fan.calls[i]);
        c->fan.calls[i] = NULL;
        if (!ms->tasks[i].channel)
            continue;
        put_create(c, i, &msg);
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
    list_devices(ms, c->config.soft_placement);
    c->job.run = create_job;
    pool_post(c->m->pool, &c->job);
}

static void ask_statuses(struct creating *c)
{
    struct master_session *ms = c->ms;

    c->fan.answered = status_answered;
    c->fan.over = statuses_known;
    for (int i = 0; i < ms->task_count; i++) {
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
        if (f.number == 3 && f.wire == PB_LEN)
            c->target = t;
    }
    return !in.bad && merge_config(c, m, config);
}

/* What cannot be had is refused before any other task is asked. */
static enum mst_code check_request(struct creating *c, struct status *st)
{
    if (c->config.own_threads)
        return status_set(st, MST_INVALID_ARGUMENT,
                          "Distributed session does not support session "
                          "thread pool options.");
    if (c->config.cluster.len)
        return master_cluster_choose(c->m, c->ms, &c->config, c->target, st);
    choose_tasks(c);
    return MST_OK;
}

void master_create_session(struct rpc_call *call, void *arg)
{
    struct master *m = arg;
    struct creating *c = MEM_NEW(struct creating);
    struct status st = STATUS_INIT;
    enum mst_code rc;

    if (master_unreadable(call, create_parse(c, m, rpc_call_request(call)))) {
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
    c->ms->plain = c->config.plain;
    c->ms->timeout_ms = c->config.timeout_ms;
    rc = check_request(c, &st);
    if (!rc)
        sort_tasks(c);
    fan_init(&c->fan, c->ms->task_count);
    rpc_call_hooks(call, creating_cancelled, creating_over, c);
    if (rc) {
        creating_failed(c, &st);
        return;
    }
    c->known = mem_array((size_t)c->ms->task_count, sizeof(bool));
    c->stop.run = stop_timer;
    c->timer.fire = still_waiting;
    c->timing = true;
    loop_timer_set(c->loop, &c->timer, loop_now_ns(c->loop) + STILL_WAITING_NS);
    ask_statuses(c);
}
