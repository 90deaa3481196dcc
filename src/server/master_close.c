/*
 * How sessions end: by CloseSession, by Reset, and when the server stops. What
 * runs is cancelled; when nothing runs any more the workers are told to forget
 * the session, and then whoever asked gets an answer.
 */
#include "server/master_state.h"

#include <string.h>

#include "base/mem.h"
#include "server/master_step.h"

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
    for (int i = 0; i < ms->task_count; i++) {
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
    fan_init(&c->fan, ms->task_count);
    c->fan.over = closed;
    (void)master_close_steps(ms, steps_ended, c);
}

void master_close_session(struct rpc_call *call, void *arg)
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
    if (master_unreadable(call, !in.bad))
        return;
    pthread_mutex_lock(&m->lock);
    ms = map_take(&m->sessions, handle.data, handle.len);
    m->closing += ms != NULL;
    pthread_mutex_unlock(&m->lock);
    if (ms)
        close_one(m, ms, call, NULL);
    else
        (void)master_find_session(m, call, handle, MST_ABORTED,
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
            if (!channel)
                continue; /* removed from the job */
            rpc_msg_init(&msg);
            rpc_msg_copy(&msg, o.data, o.len);
            fan_call(&r->fan, i++, channel, METHOD_OF("CleanupAll"), &msg,
                     false);
            rpc_channel_unref(channel);
        }
    pb_out_done(&o);
    fan_end(&r->fan);
}

void master_reset(struct rpc_call *call, void *arg)
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
