/* Callables: steps that are compiled ahead and run by a number. */
#include "server/master_state.h"

#include "base/mem.h"
#include "server/master_run.h"

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
    struct compiled *c;

    k->wait.done = callable_ready;
    c = master_compile(k->ms, q, false, &k->wait);
    if (c)
        callable_ready(&k->wait, c, NULL);
}

void master_make_callable(struct rpc_call *call, void *arg)
{
    struct master *m = arg;
    const struct rpc_data *d = rpc_call_request(call);
    struct run_step_request q;
    struct master_session *ms;
    struct making *k;

    if (master_unreadable(call, make_callable_parse(&q, d->data, d->len)))
        return;
    ms = master_is_new(m, call, q.request_id, "MakeCallable")
             ? master_find_session(m, call, q.session_handle, MST_ABORTED, "")
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

static struct compiled *take_callable(struct master_session *ms, int64_t handle)
{
    struct compiled *c;

    pthread_mutex_lock(&ms->lock);
    c = map_get_num(&ms->callables, (uint64_t)handle + 1);
    if (c)
        compiled_ref(c);
    pthread_mutex_unlock(&ms->lock);
    return c;
}

bool master_find_callable(struct master *m, const char *handle,
                          int64_t callable, struct master_session **ret_session,
                          struct compiled **ret)
{
    struct master_session *ms;
    struct compiled *c = NULL;

    pthread_mutex_lock(&m->lock);
    ms = map_get_str(&m->sessions, handle);
    if (ms)
        master_session_ref(ms);
    pthread_mutex_unlock(&m->lock);
    if (ms)
        c = take_callable(ms, callable);
    if (!c) {
        master_session_unref(ms);
        return false;
    }
    *ret_session = ms;
    *ret = c;
    return true;
}

void master_run_callable_start(struct rpc_call *call, void *arg)
{
    struct master *m = arg;
    const struct rpc_data *d = rpc_call_request(call);
    struct run_callable_request q;
    struct master_session *ms;
    struct compiled *c;

    if (master_unreadable(call, run_callable_parse(&q, d->data, d->len)) ||
        !master_is_new(m, call, q.request_id, "RunCallable"))
        return;
    ms = master_find_session(m, call, q.session_handle, MST_ABORTED, "");
    if (!ms)
        return;
    c = take_callable(ms, q.handle);
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

void master_release_callable(struct rpc_call *call, void *arg)
{
    struct master *m = arg;
    const struct rpc_data *d = rpc_call_request(call);
    struct run_callable_request q;
    struct master_session *ms;
    struct compiled *c;

    if (master_unreadable(call, run_callable_parse(&q, d->data, d->len)))
        return;
    ms = master_find_session(m, call, q.session_handle, MST_ABORTED, "");
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
