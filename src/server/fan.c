#include "server/fan.h"

#include "base/mem.h"

struct fan_call {
    struct fan *f;
    int i;
};

void fan_init(struct fan *f, int count)
{
    f->count = count;
    atomic_init(&f->left, 1);
    pthread_mutex_init(&f->lock, NULL);
    f->calls = mem_array((size_t)count, sizeof(*f->calls));
}

void fan_done(struct fan *f)
{
    for (int i = 0; i < f->count; i++)
        rpc_client_call_unref(f->calls[i]);
    mem_free(f->calls);
    pthread_mutex_destroy(&f->lock);
}

void fan_end(struct fan *f)
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

void fan_call(struct fan *f, int i, struct rpc_channel *channel,
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

void fan_cancel(struct fan *f)
{
    pthread_mutex_lock(&f->lock);
    f->cancelled = true;
    for (int i = 0; i < f->count; i++)
        if (f->calls[i])
            rpc_client_call_cancel(f->calls[i]);
    pthread_mutex_unlock(&f->lock);
}
