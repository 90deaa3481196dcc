#include "rpc/local.h"

#include <string.h>

#include "base/mem.h"
#include "rpc/shard.h"

/* Counted: by the handle, by the way to the loop and by the call. */
struct rpc_local {
    atomic_uint refs;
    struct call_local base;
    struct shard *shard;
    struct loop_task begin, cancel;
    atomic_bool cancelling;
    const char *path;
    struct rpc_data request;
    void (*done)(const struct rpc_reply *, void *);
    void *arg;
    struct rpc_call *call; /* the loop's; NULL before and after */
};

void rpc_local_unref(struct rpc_local *l)
{
    if (!l || atomic_fetch_sub(&l->refs, 1) != 1)
        return;
    mem_free(l->base.details);
    mem_free(l);
}

static void finish(struct rpc_local *l, const struct rpc_data *msg)
{
    struct rpc_reply reply = { .status = &l->base.st,
                               .details = l->base.details,
                               .details_len = l->base.details_len };

    if (msg && !l->base.st.code)
        reply.msg = *msg;
    l->call = NULL;
    l->done(&reply, l->arg);
    buffer_unref(l->request.owner);
    rpc_local_unref(l);
}

static void answered(struct call_local *base, struct rpc_msg *msg)
{
    struct rpc_local *l = CONTAINER(base, struct rpc_local, base);
    struct rpc_data data = { 0 };

    if (!base->st.code && !rpc_msg_flatten(msg, &data))
        status_set(&base->st, MST_RESOURCE_EXHAUSTED, "the reply is too large");
    finish(l, &data);
    buffer_unref(data.owner);
}

static void run_begin(struct loop_task *task)
{
    struct rpc_local *l = CONTAINER(task, struct rpc_local, begin);

    if (!l->base.st.code)
        l->call = call_begin_local(l->shard, l->path, &l->request, &l->base);
    if (l->call)
        call_start_local(l->call);
    else
        finish(l, NULL);
}

static void run_cancel(struct loop_task *task)
{
    struct rpc_local *l = CONTAINER(task, struct rpc_local, cancel);

    if (l->call)
        call_cancel_local(l->call);
    rpc_local_unref(l);
}

struct rpc_local *rpc_local_call(struct rpc_server *server,
                                 const struct rpc_request *rq)
{
    struct rpc_local *l = MEM_NEW(struct rpc_local);

    atomic_init(&l->refs, 2);
    l->base.answered = answered;
    l->shard = server_shard_local(server);
    l->begin.run = run_begin;
    l->cancel.run = run_cancel;
    l->path = rq->path;
    l->done = rq->done;
    l->arg = rq->arg;
    if (!rpc_msg_flatten(rq->msg, &l->request))
        status_set(&l->base.st, MST_RESOURCE_EXHAUSTED,
                   "the request is too large");
    rpc_msg_done(rq->msg);
    loop_post(l->shard->loop, &l->begin);
    return l;
}

void rpc_local_cancel(struct rpc_local *l)
{
    if (atomic_exchange(&l->cancelling, true))
        return;
    atomic_fetch_add(&l->refs, 1);
    loop_post(l->shard->loop, &l->cancel);
}
