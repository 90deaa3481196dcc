/*
 * Values that go over lanes: to a task whose server is one of ours, and has
 * agreed with the step's master to do the same (server/quick.h).
 */
#include <string.h>

#include "base/mem.h"
#include "server/exchange_state.h"
#include "server/push.h"
#include "server/quick.h"

/* A push that need not wait for others to travel with; one that a loop's thread
 * leaves to the pool, since copying it takes longer than others should wait. */
#define PUSH_LARGE ((size_t)64 << 10)
#define PUSH_HUGE  ((size_t)2 << 20)

void exchange_push(struct exchange *x, const char *task, struct lane *lane)
{
    int n = x->pushed_count;

    if (n < EXCHANGE_LANES) {
        x->pushed = x->few;
    } else if (!(n & (n - 1))) { /* grows at powers of two */
        struct pushed *more = mem_take(2 * (size_t)n * sizeof(*more));

        memcpy(more, x->pushed, (size_t)n * sizeof(*more));
        if (x->pushed != x->few)
            mem_give(x->pushed);
        x->pushed = more;
    }
    x->pushed[x->pushed_count++] =
        (struct pushed){ task, strlen(task), lane_ref(lane) };
}

struct lane *exchange_lane(const struct exchange *x, const char *device,
                           size_t len)
{
    for (int i = 0; i < x->pushed_count; i++) {
        const struct pushed *p = &x->pushed[i];

        if (len > p->task_len && device[p->task_len] == '/' &&
            !memcmp(device, p->task, p->task_len))
            return p->lane;
    }
    return x->relay && !exchange_is_here(x, device, len) ? x->relay : NULL;
}

/* ---- sending ---- */

struct push_job {
    struct pool_job job;
    struct lane *lane;
    int64_t step_id;
    struct tensor value;
    struct rdv_key key; /* its text follows */
    char text[];
};

static void run_push(struct pool_job *job)
{
    struct push_job *j = CONTAINER(job, struct push_job, job);

    push_send(j->lane, QUICK_PUSH, j->step_id, &j->key, &j->value, false);
    lane_flush(j->lane);
    tensor_unref(&j->value);
    lane_unref(j->lane);
    mem_give(j);
}

static void push_later(struct exchange *x, struct lane *lane,
                       const struct rdv_key *key, struct tensor *value)
{
    struct push_job *j = mem_take(sizeof(*j) + key->len);

    j->job.run = run_push;
    j->lane = lane_ref(lane);
    j->step_id = x->step_id;
    tensor_move(&j->value, value);
    memcpy(j->text, key->text, key->len);
    j->key = *key;
    j->key.text = j->text;
    pool_post_near(x->pool, &j->job);
}

void exchange_send(struct exchange *x, struct lane *lane,
                   const struct rdv_key *key, struct tensor *value, bool dead)
{
    size_t bytes = dead ? 0 : tensor_bytes(value);
    bool inside = loop_inside(lane_loop(lane));

    if (bytes >= PUSH_HUGE && inside && lane_is_shared(lane)) {
        push_later(x, lane, key, value);
        return;
    }
    push_send(lane, QUICK_PUSH, x->step_id, key, value, dead);
    tensor_unref(value);
    if (bytes >= PUSH_LARGE && !inside)
        lane_flush(lane);
    else
        atomic_store_explicit(&x->unsent, true, memory_order_relaxed);
}

void exchange_flush(struct exchange *x)
{
    if (!atomic_load_explicit(&x->unsent, memory_order_relaxed) ||
        !atomic_exchange(&x->unsent, false))
        return;
    for (int i = 0; i < x->pushed_count; i++)
        lane_flush(x->pushed[i].lane);
}

/* Sent with whatever else there is when the thread is done. */
void exchange_send_pull(struct exchange *x, const struct rdv_key *key,
                        struct lane *lane)
{
    struct iovec control[] = { { &x->step_id, sizeof(x->step_id) },
                               { (void *)key->text, key->len } };

    lane_send(lane, &(struct lane_out){ .kind = QUICK_PULL,
                                        .control = control,
                                        .control_count = COUNT(control) });
    atomic_store_explicit(&x->unsent, true, memory_order_relaxed);
}

/* ---- passing on ---- */

void exchange_relay_by(struct exchange *x, struct lane *lane)
{
    x->relay = lane;
}

void exchange_relay_hold(struct exchange *x)
{
    pthread_mutex_lock(&x->lock);
    x->holding = true;
    pthread_mutex_unlock(&x->lock);
}

/* Under lock: takes all values for other tasks. */
static struct entry *take_held(struct exchange *x)
{
    struct entry *list = NULL;

    for (int i = 0; i < EXCHANGE_BUCKETS && x->count; i++)
        for (struct entry **at = &x->bucket[i]; *at;) {
            struct entry *e = *at;

            if (!e->held) {
                at = &e->next;
                continue;
            }
            *at = e->next;
            x->count--;
            e->next = list;
            list = e;
        }
    return list;
}

/* To the task that needs the value, or that shall give it. The value is taken.
 */
static void pass_on(struct exchange *x, const struct rdv_key *key,
                    struct tensor *value, bool dead, bool pull)
{
    struct lane *lane =
        pull ? exchange_lane(x, key->src_device, key->src_device_len)
             : exchange_lane(x, key->dst_device, key->dst_device_len);

    if (!lane)
        tensor_unref(value);
    else if (pull)
        exchange_send_pull(x, key, lane);
    else
        exchange_send(x, lane, key, value, dead);
    exchange_flush(x);
}

void exchange_relay_go(struct exchange *x)
{
    struct entry *list;

    pthread_mutex_lock(&x->lock);
    x->holding = false;
    list = take_held(x);
    pthread_mutex_unlock(&x->lock);
    while (list) {
        struct entry *e = list;
        struct rdv_key key;

        list = e->next;
        if (rdv_key_parse(e->key, e->key_len, &key))
            pass_on(x, &key, &e->value, e->dead, e->pull);
        exchange_entry_free(e);
    }
}

static bool is_for_another(const struct exchange *x, const char *device,
                           size_t len)
{
    return x->pushed_count && x->task && !exchange_is_here(x, device, len);
}

static void relay(struct exchange *x, const struct rdv_key *key,
                  struct tensor *value, bool dead, bool pull)
{
    bool held;

    pthread_mutex_lock(&x->lock);
    held = x->holding;
    if (held) {
        struct entry *e = exchange_entry_new(key);

        tensor_move(&e->value, value);
        e->dead = dead;
        e->held = true;
        e->pull = pull;
        exchange_put(x, e);
    }
    pthread_mutex_unlock(&x->lock);
    if (!held)
        pass_on(x, key, value, dead, pull);
}

/* ---- receiving ---- */

void exchange_pull(struct exchange *x, const struct rdv_key *key,
                   struct lane *lane)
{
    struct entry *e;

    if (is_for_another(x, key->src_device, key->src_device_len)) {
        relay(x, key, &(struct tensor){ 0 }, false, true);
        return;
    }
    pthread_mutex_lock(&x->lock);
    e = exchange_take(x, key, true);
    if (!e && !x->aborted) {
        struct entry *wait = exchange_entry_new(key);

        wait->lane = lane_ref(lane);
        exchange_put(x, wait);
    }
    pthread_mutex_unlock(&x->lock);
    if (!e)
        return; /* if it has failed, the answer of the part tells */
    push_send(lane, QUICK_PUSH, x->step_id, key, &e->value, e->dead);
    lane_flush(lane);
    exchange_entry_free(e);
}

void exchange_pushed(struct exchange *x, const struct rdv_key *key,
                     struct tensor *value, bool dead)
{
    struct status st = STATUS_INIT;

    if (is_for_another(x, key->dst_device, key->dst_device_len)) {
        relay(x, key, value, dead, false);
    } else if (!dead && !tensor_set(value)) {
        /* The step needs it, or it would not have been pushed. */
        status_set(&st, MST_INTERNAL, MESSAGE_UNPARSABLE);
        exchange_abort(x, &st, true);
    } else if (exchange_put_value(x, key, value, dead, &st)) {
        tensor_unref(value); /* the step has failed; nobody waits for it */
    }
}
