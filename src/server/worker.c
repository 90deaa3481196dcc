#include "server/worker.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/device.h"
#include "base/mem.h"
#include "base/rng.h"
#include "graph/graph.h"
#include "proto/worker.pb-c.h"
#include "server/dedup.h"
#include "server/message.h"
#include "server/reply.h"
#include "server/run.h"
#include "server/session.h"
#include "server/stats.h"
#include "server/steps.h"
#include "wire/control.h"

struct worker {
    char *job, *task, *device;
    int cpus;
    uint64_t incarnation;
    struct loop_group *loops;
    struct pool *pool;
    struct resources *resources;
    struct peers *peers;
    struct sessions sessions;
    struct steps steps;
    struct run_table runs;
    struct dedup run_ids, recv_ids;
    atomic_ullong steps_run;
    pthread_mutex_t log_lock;
    struct exchange_transfer *log; /* under log_lock, newest first */
    pthread_mutex_t sequence_lock;
    struct map sequences; /* graph key -> next step id, under sequence_lock */
};

/* ---- answers ---- */

#define UNPACK(call, name) reply_unpack(call, &tensorflow__##name##__descriptor)

/* ---- sessions ---- */

static void get_status(struct rpc_call *call, void *arg)
{
    struct pb_out o;

    pb_out_init(&o);
    worker_put_devices(arg, &o, 1);
    reply_bytes(call, &o);
}

static void create_worker_session(struct rpc_call *call, void *arg)
{
    struct worker *w = arg;
    struct status st = STATUS_INIT;
    Tensorflow__CreateWorkerSessionRequest *q =
        UNPACK(call, create_worker_session_request);

    if (!q)
        return;
    if (sessions_create(&w->sessions, q, &st))
        reply_fail(call, &st);
    else
        reply_empty(call);
    control_free(q);
}

static void delete_worker_session(struct rpc_call *call, void *arg)
{
    struct worker *w = arg;
    Tensorflow__DeleteWorkerSessionRequest *q =
        UNPACK(call, delete_worker_session_request);

    if (!q)
        return;
    sessions_delete(&w->sessions, q->session_handle);
    reply_empty(call);
    control_free(q);
}

/* ---- graphs ---- */

struct registering {
    struct pool_job job;
    struct worker *w;
    struct rpc_call *call;
};

/* Every node says where it runs, and that is here. */
static enum mst_code check_devices(const struct worker *w,
                                   const struct session *session,
                                   const struct graph *g, struct status *st)
{
    struct device_name here, there;

    CHECK(device_parse(session->device, strlen(session->device), &here));
    for (int i = 0; i < g->count; i++) {
        const struct graph_node *n = &g->nodes[i];
        bool known;

        if (!*n->device)
            return status_set(st, MST_INVALID_ARGUMENT,
                              "Node '%.200s' is missing a device specification",
                              n->name);
        known = device_parse(n->device, strlen(n->device), &there);
        if (known && there.id > 0 && there.id < w->cpus)
            there.id = 0; /* they are all one */
        if (!known || !device_matches(&here, &there))
            return status_set(st, MST_INVALID_ARGUMENT,
                              "%.200s unknown device.", n->device);
    }
    return MST_OK;
}

enum mst_code worker_compile(struct worker *w, struct session *session,
                             Tensorflow__GraphDef *def, bool optimised,
                             struct plan **ret, struct status *st)
{
    struct op_env env = { .resources = session->resources,
                          .pool = w->pool,
                          .device = session->device,
                          .device_incarnation = w->incarnation,
                          .segment = session->segment };
    struct graph_library *lib;
    enum mst_code rc;

    rc = graph_library_new(def, &lib, st);
    if (rc)
        return rc;
    rc = check_devices(w, session, &lib->main, st);
    if (rc) {
        graph_library_free(lib);
        return rc;
    }
    return plan_new(lib, &env, optimised, ret, st);
}

/* As the master's client wishes. */
static bool is_optimised(const Tensorflow__GraphOptions *o)
{
    return !o || !o->optimizer_options || o->optimizer_options->opt_level >= 0;
}

static enum mst_code register_plan(struct worker *w, struct session *session,
                                   Tensorflow__RegisterGraphRequest *q,
                                   char **ret_handle, struct status *st)
{
    Tensorflow__GraphDef *def = q->graph_def;
    struct plan *plan;
    enum mst_code rc;

    if (!def) /* an empty graph is not written at all */
        def = CONTROL_UNPACK(tensorflow__graph_def, NULL, 0);
    q->graph_def = NULL; /* taken over */
    rc = worker_compile(w, session, def, is_optimised(q->graph_options), &plan,
                        st);
    if (!rc)
        *ret_handle = sessions_add_graph(&w->sessions, session, plan);
    return rc;
}

static void register_job(struct pool_job *job)
{
    struct registering *r = CONTAINER(job, struct registering, job);
    struct worker *w = r->w;
    Tensorflow__RegisterGraphRequest *q =
        UNPACK(r->call, register_graph_request);
    Tensorflow__RegisterGraphResponse answer =
        TENSORFLOW__REGISTER_GRAPH_RESPONSE__INIT;
    struct session *session = NULL;
    struct status st = STATUS_INIT;
    char *handle = NULL;
    enum mst_code rc;

    if (q) {
        struct message_text name = { q->session_handle,
                                     strlen(q->session_handle) };

        rc = sessions_find(&w->sessions, name, q->create_worker_session_called,
                           &session, &st);
        if (!rc)
            rc = register_plan(w, session, q, &handle, &st);
        if (rc) {
            reply_fail(r->call, &st);
        } else {
            answer.graph_handle = handle;
            reply_message(r->call, &answer.base);
        }
    }
    mem_free(handle);
    session_unref(session);
    control_free(q);
    mem_free(r);
}

static void register_graph(struct rpc_call *call, void *arg)
{
    struct registering *r = MEM_NEW(struct registering);

    r->w = arg;
    r->call = call;
    r->job.run = register_job;
    pool_post(r->w->pool, &r->job);
}

static void deregister_graph(struct rpc_call *call, void *arg)
{
    struct worker *w = arg;
    Tensorflow__DeregisterGraphRequest *q =
        UNPACK(call, deregister_graph_request);
    struct session *session = NULL;
    struct status st = STATUS_INIT;
    struct message_text name;
    enum mst_code rc;

    if (!q)
        return;
    name =
        (struct message_text){ q->session_handle, strlen(q->session_handle) };
    rc = sessions_find(&w->sessions, name, q->create_worker_session_called,
                       &session, &st);
    if (!rc)
        rc = sessions_remove_graph(&w->sessions, session, q->graph_handle, &st);
    if (rc)
        reply_fail(call, &st);
    else
        reply_empty(call);
    session_unref(session);
    control_free(q);
}

/* ---- steps ---- */

static void run_graph_start(struct rpc_call *call, void *arg)
{
    struct worker *w = arg;
    const struct rpc_data *d = rpc_call_request(call);
    struct run_graph_request q;

    if (!run_graph_parse(&q, d->data, d->len)) {
        reply_fail_with(call, MST_INTERNAL, "Unable to parse request");
        return;
    }
    if (!dedup_add(&w->run_ids, q.request_id)) {
        reply_fail_with(
            call, MST_ABORTED,
            "The same RunGraph (Worker) request was received twice.");
        return;
    }
    worker_count_step(w);
    run_graph(&w->runs, call, &q);
}

static void cleanup_graph(struct rpc_call *call, void *arg)
{
    struct worker *w = arg;
    const struct rpc_data *d = rpc_call_request(call);
    struct recv_tensor_request q; /* field 1 is the step id here too */
    struct status st = STATUS_INIT;

    if (!recv_tensor_parse(&q, d->data, d->len)) {
        reply_fail_with(call, MST_INTERNAL, "Unable to parse request");
        return;
    }
    status_set(&st, MST_ABORTED, "Cleanup %" PRId64, q.step_id);
    run_cleanup(&w->runs, q.step_id);
    steps_cleanup(&w->steps, q.step_id, &st);
    reply_empty(call);
}

static void cleanup_all(struct rpc_call *call, void *arg)
{
    struct worker *w = arg;
    Tensorflow__CleanupAllRequest *q = UNPACK(call, cleanup_all_request);

    if (!q)
        return;
    if (!q->n_container)
        resources_clear(w->resources, "");
    for (size_t i = 0; i < q->n_container; i++)
        resources_clear(w->resources, q->container[i]);
    reply_empty(call);
    control_free(q);
}

/* ---- tensors ---- */

/* The device's own part must be a CPU; whose task it says does not matter, as
 * sessions may know this task by another name. */
static enum mst_code check_source(const struct worker *w,
                                  const struct rdv_key *key, struct status *st)
{
    const char *hex = key->src_device + key->src_device_len + 1;
    struct device_name d;
    char digits[17] = "";
    uint64_t asked;
    char *end;

    if (!device_parse(key->src_device, key->src_device_len, &d))
        return status_set(st, MST_INVALID_ARGUMENT,
                          "Invalid  rendezvous key: %.*s",
                          (int)MIN(key->len, 500), key->text);
    if (strcmp(d.type, "CPU") || d.id < 0 || d.id >= w->cpus)
        return status_set(st, MST_INVALID_ARGUMENT,
                          "/device:%s:%d unknown device.", d.type, d.id);
    memcpy(digits, hex, 16);
    asked = strtoull(digits, &end, 16);
    if (*end)
        return status_set(st, MST_INVALID_ARGUMENT,
                          "Invalid  rendezvous key: %.*s",
                          (int)MIN(key->len, 500), key->text);
    if (asked == w->incarnation)
        return MST_OK;
    status_set(st, MST_ABORTED,
               "RecvTensor expects a different device incarnation: %" PRIu64
               " vs. %" PRIu64
               ". Your worker job (\"%s\") was probably restarted. Check your "
               "worker job for the reason why it was restarted.",
               asked, w->incarnation, w->task);
    st->worker_restarted = true;
    return MST_ABORTED;
}

static void recv_tensor(struct rpc_call *call, void *arg)
{
    struct worker *w = arg;
    const struct rpc_data *d = rpc_call_request(call);
    struct recv_tensor_request q;
    struct status st = STATUS_INIT;
    struct exchange *x;
    struct rdv_key key;

    if (!recv_tensor_parse(&q, d->data, d->len)) {
        reply_fail_with(call, MST_INTERNAL, "Unable to parse request");
        return;
    }
    if (!dedup_add(&w->recv_ids, q.request_id)) {
        reply_fail_with(call, MST_ABORTED,
                        "The same RecvTensor (GrpcWorker) request was received "
                        "twice.");
        return;
    }
    if (!q.key.data || !rdv_key_parse(q.key.data, q.key.len, &key)) {
        status_set(&st, MST_INVALID_ARGUMENT, "Invalid  rendezvous key: %.*s",
                   (int)MIN(q.key.len, 500), q.key.data ? q.key.data : "");
        reply_fail(call, &st);
        return;
    }
    if (check_source(w, &key, &st)) {
        reply_fail(call, &st);
        return;
    }
    x = steps_get(&w->steps, q.step_id);
    exchange_serve(x, &key, call);
    exchange_unref(x);
}

/* ---- the rest ---- */

/* Nothing is kept for a second asking, so nothing is let go of. */
static void mark_recv_finished(struct rpc_call *call, void *arg)
{
    const struct rpc_data *d = rpc_call_request(call);
    struct recv_tensor_request q;

    (void)arg;
    if (recv_tensor_parse(&q, d->data, d->len))
        reply_empty(call);
    else
        reply_fail_with(call, MST_INTERNAL, "Unable to parse request");
}

static void log_transfer(void *arg, struct exchange_transfer *t)
{
    struct worker *w = arg;

    pthread_mutex_lock(&w->log_lock);
    t->next = w->log;
    w->log = t;
    pthread_mutex_unlock(&w->log_lock);
}

static void log_clear(struct worker *w)
{
    pthread_mutex_lock(&w->log_lock);
    while (w->log) {
        struct exchange_transfer *t = w->log;

        w->log = t->next;
        mem_free(t);
    }
    pthread_mutex_unlock(&w->log_lock);
}

static void logging(struct rpc_call *call, void *arg)
{
    struct worker *w = arg;
    Tensorflow__LoggingRequest *q = UNPACK(call, logging_request);
    struct pb_out o, step;

    if (!q)
        return;
    if (q->enable_rpc_logging)
        exchange_set_log(log_transfer, w);
    if (q->disable_rpc_logging)
        exchange_set_log(NULL, NULL);
    pb_out_init(&o);
    for (size_t i = 0; i < q->n_fetch_step_id; i++) {
        pb_out_init(&step);
        pb_put_uint(&step, 1, (uint64_t)q->fetch_step_id[i]);
        pthread_mutex_lock(&w->log_lock);
        stats_put_transfers(&step, 2, w->device, w->log, q->fetch_step_id[i]);
        pthread_mutex_unlock(&w->log_lock);
        pb_put_bytes(&o, 1, step.data, step.len);
        pb_out_done(&step);
    }
    if (q->clear)
        log_clear(w);
    reply_bytes(call, &o);
    control_free(q);
}

static void tracing(struct rpc_call *call, void *arg)
{
    (void)arg;
    reply_fail_with(call, MST_UNIMPLEMENTED, "Tracing");
}

/* The numbers of steps of a collective graph: each key has its own series. */
static void get_step_sequence(struct rpc_call *call, void *arg)
{
    struct worker *w = arg;
    Tensorflow__GetStepSequenceRequest *q =
        UNPACK(call, get_step_sequence_request);
    struct pb_out o, one;

    if (!q)
        return;
    pb_out_init(&o);
    for (size_t i = 0; i < q->n_graph_key; i++) {
        uint64_t key = (uint64_t)q->graph_key[i], next;

        pthread_mutex_lock(&w->sequence_lock);
        next = (uint64_t)(uintptr_t)map_get_num(&w->sequences, key);
        if (!next) {
            next = (rng_u64() & ((1ull << 56) - 1)) | (1ull << 56);
            map_put_num(&w->sequences, key, (void *)(uintptr_t)next);
        }
        pthread_mutex_unlock(&w->sequence_lock);
        pb_out_init(&one);
        pb_put_uint(&one, 1, key);
        pb_put_uint(&one, 2, next);
        pb_put_bytes(&o, 1, one.data, one.len);
        pb_out_done(&one);
    }
    reply_bytes(call, &o);
    control_free(q);
}

static void collectives(struct rpc_call *call, void *arg)
{
    (void)arg;
    reply_fail_with(call, MST_UNIMPLEMENTED,
                    "Collective ops are not supported");
}

#define METHOD(name, fn)                                                       \
    {                                                                          \
        .path = "/tensorflow.WorkerService/" name, .start = (fn)               \
    }

static const struct rpc_method methods[] = {
    METHOD("GetStatus", get_status),
    METHOD("CreateWorkerSession", create_worker_session),
    METHOD("DeleteWorkerSession", delete_worker_session),
    METHOD("RegisterGraph", register_graph),
    METHOD("DeregisterGraph", deregister_graph),
    METHOD("RunGraph", run_graph_start),
    METHOD("CleanupGraph", cleanup_graph),
    METHOD("CleanupAll", cleanup_all),
    METHOD("RecvTensor", recv_tensor),
    METHOD("MarkRecvFinished", mark_recv_finished),
    METHOD("Logging", logging),
    METHOD("Tracing", tracing),
    METHOD("GetStepSequence", get_step_sequence),
    METHOD("RecvBuf", collectives),
    METHOD("CompleteGroup", collectives),
    METHOD("CompleteInstance", collectives),
};

/* ---- the whole ---- */

static void session_gone(void *arg, const struct session *session)
{
    struct worker *w = arg;

    steps_cleanup_owner(&w->steps, session);
}

struct worker *worker_new(const struct worker_opts *opts)
{
    struct worker *w = MEM_NEW(struct worker);

    w->job = mem_str(opts->job);
    w->task = mem_printf("/job:%s/replica:0/task:%d", opts->job, opts->task);
    w->device = mem_printf("%s/device:CPU:0", w->task);
    w->cpus = MAX(opts->cpus, 1);
    w->incarnation = rng_u64();
    w->loops = opts->loops;
    w->pool = opts->pool;
    w->resources = resources_new(opts->job);
    w->peers = peers_new(opts->loops, opts->cluster);
    pthread_mutex_init(&w->log_lock, NULL);
    pthread_mutex_init(&w->sequence_lock, NULL);
    map_init(&w->sequences);
    steps_init(&w->steps, opts->pool);
    sessions_init(&w->sessions,
                  &(struct session_defaults){ .job = w->job,
                                              .task = w->task,
                                              .device = w->device,
                                              .peers = w->peers,
                                              .resources = w->resources,
                                              .loops = w->loops,
                                              .gone = session_gone,
                                              .arg = w });
    run_table_init(&w->runs, &w->steps, &w->sessions);
    dedup_init(&w->run_ids);
    dedup_init(&w->recv_ids);
    return w;
}

static void drop(void *arg, struct handle *h)
{
    (void)arg;
    handle_drop(h);
}

void worker_free(struct worker *w)
{
    if (!w)
        return;
    exchange_set_log(NULL, NULL);
    run_table_done(&w->runs);
    steps_done(&w->steps);
    sessions_done(&w->sessions);
    log_clear(w);
    map_done(&w->sequences);
    dedup_done(&w->run_ids);
    dedup_done(&w->recv_ids);
    peers_unref(w->peers);
    /* A resource may keep a plan that keeps the resources. */
    resources_each(w->resources, drop, NULL);
    resources_unref(w->resources);
    pthread_mutex_destroy(&w->log_lock);
    pthread_mutex_destroy(&w->sequence_lock);
    mem_free(w->job);
    mem_free(w->task);
    mem_free(w->device);
    mem_free(w);
}

void worker_add_methods(struct worker *w, struct rpc_server *server)
{
    rpc_server_add(server, methods, COUNT(methods), w);
}

const char *worker_task(const struct worker *w)
{
    return w->task;
}

int worker_cpus(const struct worker *w)
{
    return w->cpus;
}

uint64_t worker_incarnation(const struct worker *w)
{
    return w->incarnation;
}

struct sessions *worker_sessions(struct worker *w)
{
    return &w->sessions;
}

struct run_table *worker_runs(struct worker *w)
{
    return &w->runs;
}

void worker_count_step(struct worker *w)
{
    atomic_fetch_add_explicit(&w->steps_run, 1, memory_order_relaxed);
}

struct steps *worker_steps(struct worker *w)
{
    return &w->steps;
}

struct peers *worker_peers(struct worker *w)
{
    return w->peers;
}

void worker_put_devices(const struct worker *w, struct pb_out *o,
                        uint32_t field)
{
    for (int i = 0; i < w->cpus; i++) {
        char *name = mem_printf("%s/device:CPU:%d", w->task, i);

        message_put_device(o, field, name, "CPU", w->incarnation);
        mem_free(name);
    }
}

void worker_clear(struct worker *w, const char *container)
{
    resources_clear(w->resources, container);
}

void worker_status(struct worker *w, struct worker_status *ret)
{
    ret->sessions = sessions_count(&w->sessions);
    ret->steps = steps_count(&w->steps);
    ret->steps_run = atomic_load(&w->steps_run);
}
