#include "server/master_state.h"

#include <string.h>

#include "base/mem.h"
#include "server/master_step.h"

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
struct master_session *master_find_session(struct master *m,
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

bool master_unreadable(struct rpc_call *call, bool good)
{
    if (!good)
        reply_fail_with(call, MST_INTERNAL, "Unable to parse request");
    return !good;
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
    if (!master_unreadable(call, !in.bad))
        e->ms = master_find_session(m, call, handle, MST_ABORTED, "");
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
bool master_is_new(struct master *m, struct rpc_call *call, int64_t id,
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

    if (master_unreadable(call, run_step_parse(&q, d->data, d->len)))
        return;
    if (master_is_new(m, call, q.request_id, "RunStep"))
        ms = master_find_session(m, call, q.session_handle, MST_ABORTED, "");
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

    if (master_unreadable(call, partial_setup_parse(&q, d->data, d->len)))
        return;
    if (master_is_new(m, call, q.request_id, "PartialRunSetup"))
        ms = master_find_session(m, call, q.session_handle, MST_ABORTED, "");
    if (ms)
        master_partial_setup(ms, call, &q);
    master_session_unref(ms);
    run_step_free(&q);
}

/* ---- ListDevices ---- */

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
    if (master_unreadable(call, !in.bad))
        return;
    pb_out_init(&o);
    if (!handle.len) {
        worker_put_devices(m->worker, &o, 1);
        reply_bytes(call, &o);
        return;
    }
    ms = master_find_session(m, call, handle, MST_INVALID_ARGUMENT, "");
    if (!ms)
        return;
    for (int i = 0; i < ms->place.count; i++)
        message_put_device(&o, 1, ms->devices[i].device,
                           ms->devices[i].name.type,
                           ms->devices[i].incarnation);
    reply_bytes(call, &o);
    master_session_unref(ms);
}

/* ---- the whole ---- */

#define METHOD(name, fn)                                                       \
    {                                                                          \
        .path = "/tensorflow.MasterService/" name, .start = (fn)               \
    }

static const struct rpc_method methods[] = {
    METHOD("CreateSession", master_create_session),
    METHOD("ExtendSession", extend_session),
    METHOD("RunStep", run_step),
    METHOD("PartialRunSetup", partial_run_setup),
    METHOD("CloseSession", master_close_session),
    METHOD("ListDevices", list_devices),
    METHOD("Reset", master_reset),
    METHOD("MakeCallable", master_make_callable),
    METHOD("RunCallable", master_run_callable_start),
    METHOD("ReleaseCallable", master_release_callable),
};

static void lane_lost(void *arg, const struct quick_side *side, const char *why)
{
    struct master *m = arg;
    struct master_session **list;
    struct map_slot *slot;
    size_t at = 0;
    int n = 0;

    pthread_mutex_lock(&m->lock);
    list = mem_array(m->sessions.count, sizeof(*list));
    while ((slot = map_next(&m->sessions, &at)))
        list[n++] = master_session_ref(slot->value);
    pthread_mutex_unlock(&m->lock);
    while (n--) {
        master_runs_lost(list[n], side, why);
        master_session_unref(list[n]);
    }
    mem_free(list);
}

struct master *master_new(const struct master_opts *opts)
{
    struct master *m = MEM_NEW(struct master);

    m->job = mem_str(opts->job);
    m->task = opts->task;
    cluster_spec_copy(&m->cluster, opts->cluster);
    m->config = mem_copy(opts->config, opts->config_len);
    m->config_len = opts->config_len;
    m->worker = opts->worker;
    m->quick = opts->quick;
    m->loops = opts->loops;
    m->pool = opts->pool;
    dedup_init(&m->ids);
    pthread_mutex_init(&m->lock, NULL);
    pthread_cond_init(&m->idle, NULL);
    map_init(&m->sessions);
    quick_on_lost(m->quick, lane_lost, m);
    return m;
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

size_t master_session_count(struct master *m)
{
    size_t count;

    pthread_mutex_lock(&m->lock);
    count = m->sessions.count;
    pthread_mutex_unlock(&m->lock);
    return count;
}
