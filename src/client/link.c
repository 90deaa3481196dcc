#include "client/link.h"

#include <string.h>

#include "base/clock.h"
#include "base/mem.h"

#define SCHEME "grpc://"

void client_link_open_at(struct client_link *l, const char *address,
                         struct loop_group *loops)
{
    *l = (struct client_link){ 0 };
    pthread_mutex_init(&l->lock, NULL);
    if (!loops)
        loops = l->loops = loop_group_new(&(struct loop_opts){ .loops = 1 });
    l->channel = rpc_channel_new(loops, address, NULL);
}

enum mst_code client_link_open(struct client_link *l, const char *target,
                               struct status *st)
{
    *l = (struct client_link){ 0 };
    if (strncmp(target, SCHEME, strlen(SCHEME)))
        return status_set(st, MST_INVALID_ARGUMENT,
                          "A session's target is grpc://host:port, not \"%s\"",
                          target);
    client_link_open_at(l, target + strlen(SCHEME), NULL);
    return MST_OK;
}

void client_link_open_local(struct client_link *l, struct server *server)
{
    *l = (struct client_link){ .server = server };
    pthread_mutex_init(&l->lock, NULL);
}

static void channel_closed(void *arg)
{
    client_wait_signal(arg);
}

void client_link_close(struct client_link *l)
{
    if (l->channel) {
        struct client_wait wait;

        client_wait_init(&wait);
        rpc_channel_close(l->channel, channel_closed, &wait);
        rpc_channel_unref(l->channel);
        (void)client_wait_until(&wait, 0);
        client_wait_done(&wait);
        if (l->loops)
            loop_group_free(l->loops);
    }
    if (l->channel || l->server)
        pthread_mutex_destroy(&l->lock);
    *l = (struct client_link){ 0 };
}

/* ---- what is under way ---- */

void client_link_enter(struct client_link *l, struct client_call *c)
{
    pthread_mutex_lock(&l->lock);
    c->prev = NULL;
    c->next = l->calls;
    if (c->next)
        c->next->prev = c;
    l->calls = c;
    pthread_mutex_unlock(&l->lock);
}

bool client_link_leave(struct client_link *l, struct client_call *c)
{
    pthread_mutex_lock(&l->lock);
    if (c->prev)
        c->prev->next = c->next;
    else
        l->calls = c->next;
    if (c->next)
        c->next->prev = c->prev;
    pthread_mutex_unlock(&l->lock);
    return c->cancelled;
}

/* None of these calls back before it returns, but a run may end. */
static void give_up(struct client_call *c, enum mst_code code, const char *text)
{
    if (c->remote)
        rpc_client_call_cancel(c->remote);
    if (c->local)
        rpc_local_cancel(c->local);
    if (c->run)
        master_run_cancel(c->run, code, text);
}

void client_link_cancel(struct client_link *l)
{
    pthread_mutex_lock(&l->lock);
    for (struct client_call *c = l->calls; c; c = c->next) {
        c->cancelled = true;
        give_up(c, MST_CANCELLED, "The client has cancelled the step.");
    }
    pthread_mutex_unlock(&l->lock);
}

/* ---- calls ---- */

static bool asking_place(void *arg, const uint8_t *head, size_t have,
                         size_t total, struct rpc_place *ret)
{
    struct client_asking *a = arg;

    return a->ask.place(a->ask.place_arg, head, have, total, ret);
}

static void asking_done(const struct rpc_reply *reply, void *arg)
{
    struct client_asking *a = arg;

    if (reply->status->code) {
        status_copy(&a->st, reply->status);
        a->st.worker_restarted =
            message_is_restarted(reply->details, reply->details_len);
    } else {
        a->answer.msg = reply->msg;
        a->answer.placed = reply->placed;
        if (reply->msg.owner)
            buffer_ref(reply->msg.owner);
    }
    client_wait_signal(a->ask.wait);
}

void client_link_begin(struct client_link *l, const struct client_ask *ask,
                       struct client_asking *a)
{
    struct rpc_request rq = { .path = ask->path,
                              .msg = ask->msg,
                              .deadline_ms = ask->timeout_ms,
                              .wait_for_ready = ask->wait_for_ready,
                              .place = ask->place ? asking_place : NULL,
                              .done = asking_done,
                              .arg = a };

    a->call = (struct client_call){ 0 };
    a->ask = *ask;
    a->answer = (struct client_answer){ 0 };
    status_clear(&a->st);
    if (!ask->wait) {
        client_wait_init(&a->own);
        a->ask.wait = &a->own;
    }
    client_wait_reset(a->ask.wait, NULL);
    if (l->server)
        a->call.local = rpc_local_call(server_rpc(l->server), &rq);
    else
        a->call.remote = rpc_channel_call(l->channel, &rq);
    client_link_enter(l, &a->call);
}

/* A channel keeps its deadlines; a handler in this process is told to stop. */
static void finish(struct client_asking *a, const struct client_link *l)
{
    uint64_t deadline_ns = l->server && a->ask.timeout_ms
                               ? clock_ns() + a->ask.timeout_ms * 1000000
                               : 0;

    if (client_wait_until(a->ask.wait, deadline_ns))
        return;
    rpc_local_cancel(a->call.local);
    (void)client_wait_until(a->ask.wait, 0);
    if (a->st.code)
        status_set(&a->st, MST_DEADLINE_EXCEEDED, "Deadline Exceeded");
}

enum mst_code client_link_end(struct client_link *l, struct client_asking *a,
                              struct client_answer *ret, struct status *st)
{
    bool cancelled;

    finish(a, l);
    cancelled = client_link_leave(l, &a->call);
    rpc_client_call_unref(a->call.remote);
    rpc_local_unref(a->call.local);
    if (a->ask.wait == &a->own)
        client_wait_done(&a->own);
    if (a->st.code && cancelled)
        status_set(&a->st, MST_CANCELLED, "The client has cancelled the call.");
    if (a->st.code)
        return status_copy(st, &a->st);
    *ret = a->answer;
    return MST_OK;
}

enum mst_code client_link_call(struct client_link *l,
                               const struct client_ask *ask,
                               struct client_answer *ret, struct status *st)
{
    struct client_asking a;

    client_link_begin(l, ask, &a);
    return client_link_end(l, &a, ret, st);
}
