#include "server/exchange.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/device.h"
#include "base/mem.h"
#include "base/rng.h"
#include "server/message.h"

#define BUCKETS 64

/* A value that nobody asked for yet, or someone who waits for one. */
struct entry {
    struct entry *next;
    struct buffer *memory; /* this very piece */
    uint64_t hash;
    struct tensor value;
    bool dead;
    struct rdv_recv *recv; /* a local receive waits */
    struct waiter *waiter; /* a call waits */
    size_t key_len;
    char key[];
};

/* A RecvTensor call that waits. The call's hooks hold one reference. */
struct waiter {
    atomic_int refs;
    struct rpc_call *call;
    struct exchange *x;
    uint64_t hash;
};

/* A RecvTensor that this task asks of another. */
struct asking {
    struct asking *prev, *next; /* in x->asked, under x->lock */
    struct exchange *x;
    struct rdv_recv *recv;
    struct rpc_client_call *call; /* under x->lock; NULL until it is known */
    struct peers_wait *wait;      /* under x->lock: for the task to be known */
    struct rpc_channel *channel;
    struct recv_tensor_answer answer;
    struct exchange_transfer *transfer;
    bool cancelled; /* under x->lock */
};

struct exchange {
    struct rendezvous base;
    atomic_int refs;
    int64_t step_id;
    pthread_mutex_t lock;
    char *task; /* NULL until bound */
    struct peers *peers;
    const void *owner; /* which session's; only compared */
    bool aborted, calls_aborted;
    struct status *why; /* of aborted */
    int count;
    struct entry *bucket[BUCKETS];
    struct asking asked; /* head of a ring */
    void (*orphaned)(void *arg, struct exchange *x);
    void *arg;
};

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

/* ---- entries ---- */

static struct entry *entry_new(const struct rdv_key *key)
{
    struct buffer *memory = buffer_new(sizeof(struct entry) + key->len);
    struct entry *e;

    CHECK(memory);
    e = (struct entry *)memory->data;
    *e = (struct entry){ .memory = memory,
                         .hash = key->hash,
                         .key_len = key->len };
    memcpy(e->key, key->text, key->len);
    return e;
}

static void entry_free(struct entry *e)
{
    tensor_unref(&e->value);
    buffer_unref(e->memory);
}

static bool entry_is(const struct entry *e, uint64_t hash, const char *key,
                     size_t len)
{
    return e->hash == hash && e->key_len == len && !memcmp(e->key, key, len);
}

/* Under lock: takes the first entry of that key which is (or is not) a value.
 */
static struct entry *take(struct exchange *x, const struct rdv_key *key,
                          bool value)
{
    struct entry **at = &x->bucket[key->hash % BUCKETS];

    for (; *at; at = &(*at)->next) {
        struct entry *e = *at;

        if (entry_is(e, key->hash, key->text, key->len) &&
            value == (!e->recv && !e->waiter)) {
            *at = e->next;
            x->count--;
            return e;
        }
    }
    return NULL;
}

static void put(struct exchange *x, struct entry *e)
{
    struct entry **at = &x->bucket[e->hash % BUCKETS];

    while (*at)
        at = &(*at)->next;
    *at = e;
    x->count++;
}

/* ---- calls of others ---- */

static void waiter_unref(struct waiter *w)
{
    if (atomic_fetch_sub(&w->refs, 1) != 1)
        return;
    exchange_unref(w->x);
    mem_give(w);
}

static void reply(struct rpc_call *call, const struct tensor *t, bool dead)
{
    struct rpc_msg m;

    rpc_msg_init(&m);
    recv_tensor_put_response(&m, t, dead);
    rpc_call_reply(call, &m);
}

static void answer_waiter(struct waiter *w, const struct tensor *t, bool dead)
{
    reply(w->call, t, dead);
    waiter_unref(w);
}

static void fail_waiter(struct waiter *w, const struct status *st)
{
    rpc_call_fail(w->call, st, st->worker_restarted ? message_restarted : NULL,
                  st->worker_restarted ? message_restarted_len : 0);
    waiter_unref(w);
}

/* The peer no longer wants it. */
static void waiter_cancelled(void *arg)
{
    struct waiter *w = arg;
    struct exchange *x = w->x;
    struct entry **at = &x->bucket[w->hash % BUCKETS], *e = NULL;
    struct status st = STATUS_INIT;

    pthread_mutex_lock(&x->lock);
    for (; *at; at = &(*at)->next)
        if ((*at)->waiter == w) {
            e = *at;
            *at = e->next;
            x->count--;
            break;
        }
    pthread_mutex_unlock(&x->lock);
    if (!e)
        return; /* an answer is on its way */
    entry_free(e);
    if (x->orphaned)
        x->orphaned(x->arg, x);
    status_set(&st, MST_CANCELLED, "RecvTensor was cancelled");
    fail_waiter(w, &st);
}

static void waiter_over(void *arg)
{
    waiter_unref(arg);
}

void exchange_serve(struct exchange *x, const struct rdv_key *key,
                    struct rpc_call *call)
{
    struct status why = STATUS_INIT;
    struct entry *e, *wait;
    struct waiter *w;

    pthread_mutex_lock(&x->lock);
    e = take(x, key, true);
    if (e || (x->aborted && x->calls_aborted)) {
        if (!e)
            status_copy(&why, x->why);
        pthread_mutex_unlock(&x->lock);
        if (e) {
            reply(call, &e->value, e->dead);
            entry_free(e);
        } else {
            rpc_call_fail(call, &why, NULL, 0);
        }
        return;
    }
    w = MEM_TAKE(struct waiter);
    atomic_init(&w->refs, 2);
    w->call = call;
    w->x = exchange_ref(x);
    w->hash = key->hash;
    wait = entry_new(key);
    wait->waiter = w;
    /* Before anyone can find it. */
    rpc_call_hooks(call, waiter_cancelled, waiter_over, w);
    put(x, wait);
    pthread_mutex_unlock(&x->lock);
}

/* ---- send ---- */

static enum mst_code send_value(struct rendezvous *r, const struct rdv_key *key,
                                struct tensor *value, bool dead,
                                struct status *st)
{
    struct exchange *x = CONTAINER(r, struct exchange, base);
    struct entry *e;

    pthread_mutex_lock(&x->lock);
    if (x->aborted) {
        status_copy(st, x->why);
        pthread_mutex_unlock(&x->lock);
        return st->code;
    }
    e = take(x, key, false);
    if (!e) {
        e = entry_new(key);
        tensor_move(&e->value, value);
        e->dead = dead;
        put(x, e);
        pthread_mutex_unlock(&x->lock);
        return MST_OK;
    }
    pthread_mutex_unlock(&x->lock);
    if (e->waiter) {
        answer_waiter(e->waiter, value, dead);
        tensor_unref(value);
    } else {
        tensor_move(&e->recv->value, value);
        e->recv->dead = dead;
        e->recv->done(e->recv, MST_OK);
    }
    entry_free(e);
    return MST_OK;
}

/* ---- receive ---- */

static enum mst_code recv_failed(struct rdv_recv *recv,
                                 const struct status *why)
{
    enum mst_code code = status_copy(recv->st, why);

    recv->done(recv, code);
    return code;
}

static void recv_local(struct exchange *x, const struct rdv_key *key,
                       struct rdv_recv *recv)
{
    struct status why;
    struct entry *e;

    pthread_mutex_lock(&x->lock);
    e = take(x, key, true);
    if (!e && x->aborted) {
        status_copy(&why, x->why);
        pthread_mutex_unlock(&x->lock);
        recv_failed(recv, &why);
        return;
    }
    if (!e) {
        e = entry_new(key);
        e->recv = recv;
        put(x, e);
        pthread_mutex_unlock(&x->lock);
        return;
    }
    pthread_mutex_unlock(&x->lock);
    tensor_move(&recv->value, &e->value);
    recv->dead = e->dead;
    entry_free(e);
    recv->done(recv, MST_OK);
}

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
        recv_failed(recv, &why);
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

static void recv_value(struct rendezvous *r, const struct rdv_key *key,
                       struct rdv_recv *recv)
{
    struct exchange *x = CONTAINER(r, struct exchange, base);
    size_t task_len = strlen(x->task);
    struct rpc_channel *channel;
    struct device_name d;

    if (key->src_device_len > task_len &&
        !memcmp(key->src_device, x->task, task_len) &&
        key->src_device[task_len] == '/') {
        recv_local(x, key, recv);
        return;
    }
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

/* ---- abort ---- */

/* Under lock: takes what waits, and asks for the end of what was asked. */
static struct entry *take_waiting(struct exchange *x, bool calls)
{
    struct entry *list = NULL;

    for (int i = 0; i < BUCKETS; i++) {
        struct entry **at = &x->bucket[i];

        while (*at) {
            struct entry *e = *at;

            if (!e->recv && !(e->waiter && calls)) {
                at = &e->next;
                continue;
            }
            *at = e->next;
            x->count--;
            e->next = list;
            list = e;
        }
    }
    for (struct asking *a = x->asked.next; a != &x->asked; a = a->next) {
        a->cancelled = true;
        if (a->wait)
            peers_wait_end(a->wait);
        else if (a->call)
            rpc_client_call_cancel(a->call);
    }
    return list;
}

void exchange_abort(struct exchange *x, const struct status *st, bool calls)
{
    struct entry *list;
    struct status why;

    pthread_mutex_lock(&x->lock);
    if (!x->aborted) {
        x->aborted = true;
        x->why = MEM_TAKE(struct status);
        status_copy(x->why, st);
    }
    x->calls_aborted = x->calls_aborted || calls;
    status_copy(&why, x->why);
    list = take_waiting(x, calls);
    pthread_mutex_unlock(&x->lock);
    while (list) {
        struct entry *e = list;

        list = e->next;
        if (e->waiter)
            fail_waiter(e->waiter, &why);
        else
            recv_failed(e->recv, &why);
        entry_free(e);
    }
}

bool exchange_is_empty(struct exchange *x)
{
    bool empty;

    pthread_mutex_lock(&x->lock);
    empty = !x->task && !x->count;
    pthread_mutex_unlock(&x->lock);
    return empty;
}

/* ---- the whole ---- */

static const struct rendezvous_ops exchange_ops = { send_value, recv_value };

struct exchange *exchange_new(int64_t step_id,
                              void (*orphaned)(void *arg, struct exchange *x),
                              void *arg)
{
    struct exchange *x = MEM_TAKE(struct exchange);

    x->base.ops = &exchange_ops;
    atomic_init(&x->refs, 1);
    x->step_id = step_id;
    x->orphaned = orphaned;
    x->arg = arg;
    pthread_mutex_init(&x->lock, NULL);
    x->asked.prev = x->asked.next = &x->asked;
    return x;
}

struct exchange *exchange_ref(struct exchange *x)
{
    atomic_fetch_add(&x->refs, 1);
    return x;
}

void exchange_unref(struct exchange *x)
{
    if (!x || atomic_fetch_sub(&x->refs, 1) != 1)
        return;
    for (int i = 0; i < BUCKETS; i++)
        while (x->bucket[i]) {
            struct entry *e = x->bucket[i];

            x->bucket[i] = e->next;
            CHECK(!e->recv && !e->waiter);
            entry_free(e);
        }
    peers_unref(x->peers);
    pthread_mutex_destroy(&x->lock);
    mem_give(x->task);
    mem_give(x->why);
    mem_give(x);
}

struct rendezvous *exchange_rendezvous(struct exchange *x)
{
    return &x->base;
}

bool exchange_owned_by(struct exchange *x, const void *owner)
{
    bool yes;

    pthread_mutex_lock(&x->lock);
    yes = x->owner == owner;
    pthread_mutex_unlock(&x->lock);
    return yes;
}

int64_t exchange_step_id(const struct exchange *x)
{
    return x->step_id;
}

enum mst_code exchange_bind(struct exchange *x, const char *task,
                            struct peers *peers, const void *owner,
                            struct status *st)
{
    enum mst_code rc = MST_OK;

    pthread_mutex_lock(&x->lock);
    if (!x->task) {
        x->task = memcpy(mem_take(strlen(task) + 1), task, strlen(task));
        x->peers = peers_ref(peers);
        x->owner = owner;
    } else if (strcmp(x->task, task)) {
        rc = status_set(st, MST_INTERNAL, "Double init! Worker names %s vs. %s",
                        x->task, task);
    }
    pthread_mutex_unlock(&x->lock);
    return rc;
}
