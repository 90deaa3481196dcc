#include <string.h>

#include "base/mem.h"
#include "server/exchange_state.h"
#include "server/push.h"
#include "server/quick.h"

/* A RecvTensor call that waits. The call's hooks hold one reference. */
struct waiter {
    atomic_int refs;
    struct rpc_call *call;
    struct exchange *x;
    uint64_t hash;
};

/* ---- entries ---- */

struct entry *exchange_entry_new(const struct rdv_key *key)
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

void exchange_entry_free(struct entry *e)
{
    tensor_unref(&e->value);
    lane_unref(e->lane);
    buffer_unref(e->memory);
}

static bool is_value(const struct entry *e)
{
    return !e->recv && !e->waiter && !e->lane;
}

static bool entry_is(const struct entry *e, uint64_t hash, const char *key,
                     size_t len)
{
    return e->hash == hash && e->key_len == len && !memcmp(e->key, key, len);
}

/* Under lock: takes the first entry of that key which is (or is not) a value.
 */
struct entry *exchange_take(struct exchange *x, const struct rdv_key *key,
                            bool value)
{
    struct entry **at = &x->bucket[key->hash % EXCHANGE_BUCKETS];

    for (; *at; at = &(*at)->next) {
        struct entry *e = *at;

        if (entry_is(e, key->hash, key->text, key->len) &&
            value == is_value(e)) {
            *at = e->next;
            x->count--;
            return e;
        }
    }
    return NULL;
}

void exchange_put(struct exchange *x, struct entry *e)
{
    struct entry **at = &x->bucket[e->hash % EXCHANGE_BUCKETS];

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
    struct entry **at = &x->bucket[w->hash % EXCHANGE_BUCKETS], *e = NULL;
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
    exchange_entry_free(e);
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
    e = exchange_take(x, key, true);
    if (e || (x->aborted && x->calls_aborted)) {
        if (!e)
            status_copy(&why, x->why);
        pthread_mutex_unlock(&x->lock);
        if (e) {
            reply(call, &e->value, e->dead);
            exchange_entry_free(e);
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
    wait = exchange_entry_new(key);
    wait->waiter = w;
    /* Before anyone can find it. */
    rpc_call_hooks(call, waiter_cancelled, waiter_over, w);
    exchange_put(x, wait);
    pthread_mutex_unlock(&x->lock);
}

/* ---- send ---- */

/* Puts the value under its key, or hands it to who waits. */
enum mst_code exchange_put_value(struct exchange *x, const struct rdv_key *key,
                                 struct tensor *value, bool dead,
                                 struct status *st)
{
    struct entry *e;

    pthread_mutex_lock(&x->lock);
    if (x->aborted) {
        status_copy(st, x->why);
        pthread_mutex_unlock(&x->lock);
        return st->code;
    }
    e = exchange_take(x, key, false);
    if (!e) {
        e = exchange_entry_new(key);
        tensor_move(&e->value, value);
        e->dead = dead;
        exchange_put(x, e);
        pthread_mutex_unlock(&x->lock);
        return MST_OK;
    }
    pthread_mutex_unlock(&x->lock);
    if (e->waiter) {
        answer_waiter(e->waiter, value, dead);
        tensor_unref(value);
    } else if (e->lane) {
        push_send(e->lane, QUICK_PUSH, x->step_id, key, value, dead);
        lane_flush(e->lane);
        tensor_unref(value);
    } else {
        tensor_move(&e->recv->value, value);
        e->recv->dead = dead;
        e->recv->done(e->recv, MST_OK);
    }
    exchange_entry_free(e);
    return MST_OK;
}

static enum mst_code send_value(struct rendezvous *r, const struct rdv_key *key,
                                struct tensor *value, bool dead,
                                struct status *st)
{
    struct exchange *x = CONTAINER(r, struct exchange, base);
    struct lane *lane = exchange_lane(x, key->dst_device, key->dst_device_len);

    if (!lane || key->late)
        return exchange_put_value(x, key, value, dead, st);
    exchange_send(x, lane, key, value, dead);
    return MST_OK;
}

static void flush(struct rendezvous *r)
{
    exchange_flush(CONTAINER(r, struct exchange, base));
}

/* ---- receive ---- */

enum mst_code exchange_recv_failed(struct rdv_recv *recv,
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
    e = exchange_take(x, key, true);
    if (!e && x->aborted) {
        status_copy(&why, x->why);
        pthread_mutex_unlock(&x->lock);
        exchange_recv_failed(recv, &why);
        return;
    }
    if (!e) {
        e = exchange_entry_new(key);
        e->recv = recv;
        exchange_put(x, e);
        pthread_mutex_unlock(&x->lock);
        return;
    }
    pthread_mutex_unlock(&x->lock);
    tensor_move(&recv->value, &e->value);
    recv->dead = e->dead;
    exchange_entry_free(e);
    recv->done(recv, MST_OK);
}

bool exchange_is_here(const struct exchange *x, const char *device, size_t len)
{
    size_t task_len = strlen(x->task);

    return len > task_len && device[task_len] == '/' &&
           !memcmp(device, x->task, task_len);
}

static void recv_value(struct rendezvous *r, const struct rdv_key *key,
                       struct rdv_recv *recv)
{
    struct exchange *x = CONTAINER(r, struct exchange, base);
    struct lane *lane = exchange_lane(x, key->src_device, key->src_device_len);

    if (lane && key->late)
        exchange_send_pull(x, key, lane);
    if (lane || exchange_is_here(x, key->src_device, key->src_device_len))
        recv_local(x, key, recv);
    else
        exchange_ask(x, key, recv);
}

/* ---- abort ---- */

/* Under lock: takes what waits, and asks for the end of what was asked. */
static struct entry *take_waiting(struct exchange *x, bool calls)
{
    struct entry *list = NULL;

    for (int i = 0; i < EXCHANGE_BUCKETS; i++) {
        struct entry **at = &x->bucket[i];

        while (*at) {
            struct entry *e = *at;

            if (!e->recv && !e->lane && !(e->waiter && calls)) {
                at = &e->next;
                continue;
            }
            *at = e->next;
            x->count--;
            e->next = list;
            list = e;
        }
    }
    exchange_ask_cancel(x);
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
        else if (e->recv)
            exchange_recv_failed(e->recv, &why);
        exchange_entry_free(e);
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

static const struct rendezvous_ops exchange_ops = { send_value, recv_value,
                                                    flush };

struct exchange *exchange_new(int64_t step_id, struct pool *pool,
                              void (*orphaned)(void *arg, struct exchange *x),
                              void *arg)
{
    struct exchange *x = MEM_TAKE(struct exchange);

    x->base.ops = &exchange_ops;
    atomic_init(&x->refs, 1);
    x->step_id = step_id;
    x->pool = pool;
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
    for (int i = 0; i < EXCHANGE_BUCKETS; i++)
        while (x->bucket[i]) {
            struct entry *e = x->bucket[i];

            x->bucket[i] = e->next;
            CHECK(!e->recv && !e->waiter);
            exchange_entry_free(e);
        }
    for (int i = 0; i < x->pushed_count; i++)
        lane_unref(x->pushed[i].lane);
    if (x->pushed != x->few)
        mem_give(x->pushed);
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
        x->peers = peers ? peers_ref(peers) : NULL;
        x->owner = owner;
    } else if (strcmp(x->task, task)) {
        rc = status_set(st, MST_INTERNAL, "Double init! Worker names %s vs. %s",
                        x->task, task);
    }
    pthread_mutex_unlock(&x->lock);
    return rc;
}
