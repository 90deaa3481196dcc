/* Values of other tasks, asked for by RecvTensor. */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/device.h"
#include "base/mem.h"
#include "base/rng.h"
#include "server/exchange_state.h"

static pthread_mutex_t log_lock = PTHREAD_MUTEX_INITIALIZER;
static void (*log_fn)(void *, struct exchange_transfer *);
static void *log_arg;
static atomic_bool log_on;

void exchange_set_log(void (*fn)(void *arg, struct exchange_transfer *taken),
                      void *arg)
{
    pthread_mutex_lock(&log_lock);
    log_fn = fn;
    log_arg = arg;
    pthread_mutex_unlock(&log_lock);
    atomic_store(&log_on, fn != NULL);
}

/* ---- asking ---- */

static bool asking_place(void *arg, const uint8_t *head, size_t have,
                         size_t total, struct rpc_place *ret)
{
    struct asking *a = arg;

    return recv_tensor_place(&a->answer, head, have, total, ret);
}

static void log_transfer(struct asking *a)
{
    struct exchange_transfer *t = a->transfer;

    if (!t)
        return;
    t->end_us = clock_wall_us();
    if (tensor_set(&a->answer.tensor))
        t->bytes = tensor_bytes(&a->answer.tensor);
    pthread_mutex_lock(&log_lock);
    if (log_fn) {
        log_fn(log_arg, t);
        t = NULL;
    }
    pthread_mutex_unlock(&log_lock);
    mem_free(t);
}

static void asking_done(const struct rpc_reply *reply, void *arg)
{
    struct asking *a = arg;
    struct exchange *x = a->x;
    struct rdv_recv *recv = a->recv;
    struct rpc_client_call *call;
    enum mst_code code;

    pthread_mutex_lock(&x->lock);
    a->prev->next = a->next;
    a->next->prev = a->prev;
    call = a->call;
    a->call = NULL;
    if (a->cancelled && x->why)
        code = status_copy(recv->st, x->why);
    else
        code = status_copy(recv->st, reply->status);
    pthread_mutex_unlock(&x->lock);
    if (!code)
        code = recv_tensor_finish(&a->answer, &reply->msg, &reply->placed,
                                  recv->st);
    log_transfer(a);
    if (!code) {
        recv->dead = a->answer.dead;
        tensor_move(&recv->value, &a->answer.tensor);
    } else {
        tensor_unref(&a->answer.tensor);
    }
    rpc_client_call_unref(call);
    rpc_channel_unref(a->channel);
    mem_give(a);
    recv->done(recv, code);
    exchange_unref(x);
}

static struct exchange_transfer *start_transfer(struct exchange *x,
                                                const struct rdv_key *key)
{
    struct exchange_transfer *t;

    if (!atomic_load_explicit(&log_on, memory_order_relaxed))
        return NULL;
    t = mem_new(sizeof(*t) + key->len + 1);
    memcpy(t->key, key->text, key->len);
    t->step_id = x->step_id;
    t->start_us = clock_wall_us();
    return t;
}

/* Under x->lock, which done() takes: the call cannot be over before. */
static void asking_call(struct asking *a, const char *key, size_t len)
{
    struct rpc_msg m;

    rpc_msg_init(&m);
    recv_tensor_put_request(&m, a->x->step_id,
                            (struct message_text){ key, len },
                            (int64_t)rng_u64());
    a->call = rpc_channel_call(
        a->channel, &(struct rpc_request){ .path = "/tensorflow.WorkerService/"
                                                   "RecvTensor",
                                           .msg = &m,
                                           .place = asking_place,
                                           .done = asking_done,
                                           .arg = a });
}

/* With x->lock held; NULL, without it, when the step has been aborted. */
static struct asking *asking_new(struct exchange *x, const struct rdv_key *key,
                                 struct rdv_recv *recv)
{
    struct asking *a;

    pthread_mutex_lock(&x->lock);
    if (x->aborted) {
        struct status why;

        status_copy(&why, x->why);
        pthread_mutex_unlock(&x->lock);
        exchange_recv_failed(recv, &why);
        return NULL;
    }
    a = MEM_TAKE(struct asking);
    a->x = exchange_ref(x);
    a->recv = recv;
    a->transfer = start_transfer(x, key);
    a->prev = x->asked.prev;
    a->next = &x->asked;
    a->prev->next = a;
    x->asked.prev = a;
    return a;
}

static void ask(struct exchange *x, struct rpc_channel *channel,
                const struct rdv_key *key, struct rdv_recv *recv)
{
    struct asking *a = asking_new(x, key, recv);

    if (!a) {
        rpc_channel_unref(channel);
        return;
    }
    a->channel = channel;
    asking_call(a, key->text, key->len);
    pthread_mutex_unlock(&x->lock);
}

/* A receive from a task that nobody knows, but that may be about to join. */
struct awaiting {
    struct peers_wait wait;
    struct asking *a;
    struct device_name from;
    size_t key_len;
    char key[];
};

static void asking_unknown(struct asking *a, const struct device_name *from)
{
    struct status st;

    status_set(&st, MST_UNAVAILABLE,
               "No worker known as /job:%s/replica:0/task:%d", from->job,
               from->task);
    asking_done(&(struct rpc_reply){ .status = &st }, a);
}

static void await_over(struct peers_wait *wait, struct rpc_channel *channel)
{
    struct awaiting *w = CONTAINER(wait, struct awaiting, wait);
    struct asking *a = w->a;
    struct exchange *x = a->x;
    bool go;

    pthread_mutex_lock(&x->lock);
    a->wait = NULL;
    go = channel && !a->cancelled;
    a->channel = channel;
    if (go)
        asking_call(a, w->key, w->key_len);
    pthread_mutex_unlock(&x->lock);
    if (!go)
        asking_unknown(a, &w->from);
    mem_free(w);
}

static void await(struct exchange *x, const struct device_name *from,
                  const struct rdv_key *key, struct rdv_recv *recv)
{
    struct asking *a = asking_new(x, key, recv);
    struct awaiting *w;
    bool waits;

    if (!a)
        return;
    w = mem_new(sizeof(*w) + key->len);
    w->a = a;
    w->from = *from;
    w->key_len = key->len;
    memcpy(w->key, key->text, key->len);
    w->wait.job = w->from.job;
    w->wait.task = w->from.task;
    w->wait.over = await_over;
    a->wait = &w->wait;
    waits = peers_wait(x->peers, &w->wait);
    if (!waits)
        a->wait = NULL;
    pthread_mutex_unlock(&x->lock);
    if (!waits) {
        asking_unknown(a, from);
        mem_free(w);
    }
}

void exchange_ask(struct exchange *x, const struct rdv_key *key,
                  struct rdv_recv *recv)
{
    struct rpc_channel *channel;
    struct device_name d;

    if (!device_parse(key->src_device, key->src_device_len, &d)) {
        recv->done(recv, status_set(recv->st, MST_INVALID_ARGUMENT,
                                    "Invalid  rendezvous key: %.*s",
                                    (int)key->len, key->text));
        return;
    }
    channel = peers_channel(x->peers, d.job, d.task);
    if (channel)
        ask(x, channel, key, recv);
    else
        await(x, &d, key, recv);
}

void exchange_ask_cancel(struct exchange *x)
{
    for (struct asking *a = x->asked.next; a != &x->asked; a = a->next) {
        a->cancelled = true;
        if (a->wait)
            peers_wait_end(a->wait);
        else if (a->call)
            rpc_client_call_cancel(a->call);
    }
}
