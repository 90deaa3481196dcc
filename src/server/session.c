#include "server/session.h"

#include <inttypes.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "cluster/spec_parse.h"

static struct session *session_new(const struct session_defaults *d,
                                   const char *handle)
{
    struct session *session = MEM_NEW(struct session);

    atomic_init(&session->refs, 1);
    session->handle = mem_str(handle);
    session->task = mem_str(d->task);
    session->device = mem_str(d->device);
    session->peers = peers_ref(d->peers);
    session->resources = resources_ref(d->resources);
    session->segment = resources_new(d->job);
    session->master_task = mem_str("");
    map_init(&session->graphs);
    return session;
}

/* A resource may keep a plan that keeps the resources: an iterator, for its
 * functions. Hence they are dropped one by one. */
static void drop(void *arg, struct handle *h)
{
    (void)arg;
    handle_drop(h);
}

void session_unref(struct session *session)
{
    struct map_slot *slot;
    size_t at = 0;

    if (!session || atomic_fetch_sub(&session->refs, 1) != 1)
        return;
    while ((slot = map_next(&session->graphs, &at)))
        plan_unref(slot->value);
    map_done(&session->graphs);
    peers_unref(session->peers);
    if (session->isolated)
        resources_each(session->resources, drop, NULL);
    resources_unref(session->resources);
    resources_unref(session->segment);
    mem_free(session->handle);
    mem_free(session->task);
    mem_free(session->device);
    mem_free(session->master_task);
    mem_free(session);
}

void sessions_init(struct sessions *s, const struct session_defaults *d)
{
    pthread_mutex_init(&s->lock, NULL);
    map_init(&s->by_handle);
    s->defaults = *d;
    s->legacy = session_new(d, "");
}

void sessions_done(struct sessions *s)
{
    struct map_slot *slot;
    size_t at = 0;

    while ((slot = map_next(&s->by_handle, &at)))
        session_unref(slot->value);
    map_done(&s->by_handle);
    session_unref(s->legacy);
    pthread_mutex_destroy(&s->lock);
}

size_t sessions_count(struct sessions *s)
{
    size_t n;

    pthread_mutex_lock(&s->lock);
    n = s->by_handle.count;
    pthread_mutex_unlock(&s->lock);
    return n;
}

/* ---- making one ---- */

/* The cluster that the master brought: addresses and names of this session. */
static enum mst_code take_cluster(struct sessions *s, struct session *session,
                                  const Tensorflow__ServerDef *def,
                                  struct status *st)
{
    struct cluster_spec spec;
    enum mst_code rc;

    cluster_spec_init(&spec);
    rc = spec_parse_def(&spec, def->cluster, st);
    if (!rc && (!*def->job_name || strchr(def->job_name, '/') ||
                strlen(def->job_name) > 100))
        rc = status_set(st, MST_INVALID_ARGUMENT,
                        "The server_def names no job for this task");
    if (!rc) {
        peers_unref(session->peers);
        session->peers = peers_new(s->defaults.loops, &spec);
        mem_free(session->task);
        mem_free(session->device);
        session->task = mem_printf("/job:%s/replica:0/task:%d", def->job_name,
                                   def->task_index);
        session->device = mem_printf("%s/device:CPU:0", session->task);
    }
    cluster_spec_done(&spec);
    return rc;
}

/* The sessions of a master, but not those of its present life: taken out of the
 * table, to be let go of without the lock. */
static struct session **take_of(struct sessions *s, const char *master,
                                int64_t present, size_t *ret_count)
{
    struct session **taken = mem_array(s->by_handle.count, sizeof(*taken));
    struct map_slot *slot;
    size_t at = 0, n = 0;

    if (*master)
        while ((slot = map_next(&s->by_handle, &at))) {
            struct session *old = slot->value;

            if (!strcmp(old->master_task, master) &&
                old->master_incarnation != present)
                taken[n++] = old;
        }
    for (size_t i = 0; i < n; i++)
        map_take_str(&s->by_handle, taken[i]->handle);
    *ret_count = n;
    return taken;
}

static void let_go(struct sessions *s, struct session *session)
{
    if (s->defaults.gone)
        s->defaults.gone(s->defaults.arg, session);
    session_unref(session);
}

static void let_go_all(struct sessions *s, struct session **taken, size_t count)
{
    for (size_t i = 0; i < count; i++)
        let_go(s, taken[i]);
    mem_free(taken);
}

enum mst_code
sessions_create(struct sessions *s,
                const Tensorflow__CreateWorkerSessionRequest *request,
                struct status *st)
{
    const Tensorflow__ServerDef *def = request->server_def;
    struct session *session, **stale, *twice = NULL;
    enum mst_code rc = MST_OK;
    size_t count;

    if (!*request->session_handle)
        return status_set(st, MST_INVALID_ARGUMENT,
                          "Session must be non-empty.");
    session = session_new(&s->defaults, request->session_handle);
    mem_free(session->master_task);
    session->master_task = mem_str(request->master_task);
    session->master_incarnation = request->master_incarnation;
    session->heard_ms = clock_ms();
    if (def && def->cluster && def->cluster->n_job)
        rc = take_cluster(s, session, def, st);
    if (rc) {
        session_unref(session);
        return rc;
    }
    if (request->isolate_session_state) {
        resources_unref(session->resources);
        session->resources = resources_new(s->defaults.job);
        session->isolated = true;
    }
    pthread_mutex_lock(&s->lock);
    stale =
        take_of(s, request->master_task, request->master_incarnation, &count);
    if (map_get_str(&s->by_handle, session->handle))
        twice = session; /* the first stays */
    else
        map_put_str(&s->by_handle, session->handle, session);
    pthread_mutex_unlock(&s->lock);
    let_go_all(s, stale, count);
    session_unref(twice);
    return MST_OK;
}

void sessions_delete(struct sessions *s, const char *handle)
{
    struct session *session;

    pthread_mutex_lock(&s->lock);
    session = map_take_str(&s->by_handle, handle);
    pthread_mutex_unlock(&s->lock);
    if (session)
        let_go(s, session);
}

void sessions_delete_of(struct sessions *s, const char *master_task)
{
    struct session **taken;
    size_t count;

    pthread_mutex_lock(&s->lock);
    /* No life has incarnation 0. */
    taken = take_of(s, master_task, 0, &count);
    pthread_mutex_unlock(&s->lock);
    let_go_all(s, taken, count);
}

void sessions_each(struct sessions *s,
                   void (*fn)(void *arg, const struct session *session),
                   void *arg)
{
    struct map_slot *slot;
    size_t at = 0;

    pthread_mutex_lock(&s->lock);
    while ((slot = map_next(&s->by_handle, &at)))
        fn(arg, slot->value);
    pthread_mutex_unlock(&s->lock);
}

enum mst_code sessions_find(struct sessions *s, struct message_text handle,
                            bool called, struct session **ret,
                            struct status *st)
{
    struct session *session;

    pthread_mutex_lock(&s->lock);
    session =
        called ? map_get(&s->by_handle, handle.data, handle.len) : s->legacy;
    if (session) {
        atomic_fetch_add(&session->refs, 1);
        session->heard_ms = clock_ms();
    }
    pthread_mutex_unlock(&s->lock);
    if (!session) {
        status_set(st, MST_ABORTED,
                   "Session handle is not found: %.*s. Possibly this worker "
                   "(\"%s\") just restarted.",
                   (int)MIN(handle.len, 200), handle.data ? handle.data : "",
                   s->defaults.task);
        st->worker_restarted = true;
        return MST_ABORTED;
    }
    *ret = session;
    return MST_OK;
}

/* ---- graphs ---- */

char *sessions_add_graph(struct sessions *s, struct session *session,
                         struct plan *plan)
{
    char *handle;

    pthread_mutex_lock(&s->lock);
    handle = mem_printf("%016" PRIx64, ++session->graph_next);
    map_put_str(&session->graphs, handle, plan);
    pthread_mutex_unlock(&s->lock);
    return handle;
}

enum mst_code sessions_find_graph(struct sessions *s, struct session *session,
                                  struct message_text handle, struct plan **ret,
                                  struct status *st)
{
    struct plan *plan;

    pthread_mutex_lock(&s->lock);
    plan = map_get(&session->graphs, handle.data, handle.len);
    if (plan)
        plan_ref(plan);
    pthread_mutex_unlock(&s->lock);
    if (!plan)
        return status_set(st, MST_ABORTED, "Graph handle is not found: %.*s",
                          (int)MIN(handle.len, 200),
                          handle.data ? handle.data : "");
    *ret = plan;
    return MST_OK;
}

enum mst_code sessions_remove_graph(struct sessions *s, struct session *session,
                                    const char *handle, struct status *st)
{
    struct plan *plan;

    pthread_mutex_lock(&s->lock);
    plan = map_take_str(&session->graphs, handle);
    pthread_mutex_unlock(&s->lock);
    if (!plan)
        return status_set(st, MST_ABORTED,
                          "Graph handle is not found: %.200s. Possibly, this "
                          "worker just restarted.",
                          handle);
    plan_unref(plan);
    return MST_OK;
}
