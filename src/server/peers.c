#include "server/peers.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "base/map.h"
#include "base/mem.h"

struct peers {
    atomic_int refs;
    struct loop_group *loops;
    pthread_mutex_t lock;
    struct cluster_spec spec;     /* under lock, as is the rest */
    struct map channels;          /* address -> channel */
    struct rpc_channel **former;  /* of addresses that no task has any more, */
    int former_count;             /* while others hold them */
    bool open;                    /* tasks may come and go */
    struct peers_wait waiting;    /* head of a ring */
    uint64_t bytes_in, bytes_out; /* of channels that were let go of */
};

struct peers *peers_new(struct loop_group *loops,
                        const struct cluster_spec *spec)
{
    struct peers *p = MEM_NEW(struct peers);

    atomic_init(&p->refs, 1);
    p->loops = loops;
    cluster_spec_copy(&p->spec, spec);
    pthread_mutex_init(&p->lock, NULL);
    map_init(&p->channels);
    p->waiting.prev = p->waiting.next = &p->waiting;
    return p;
}

struct peers *peers_ref(struct peers *p)
{
    atomic_fetch_add(&p->refs, 1);
    return p;
}

static void close_channel(struct rpc_channel *c)
{
    rpc_channel_close(c, NULL, NULL);
    rpc_channel_unref(c);
}

void peers_unref(struct peers *p)
{
    struct map_slot *s;
    size_t at = 0;

    if (!p || atomic_fetch_sub(&p->refs, 1) != 1)
        return;
    while ((s = map_next(&p->channels, &at)))
        close_channel(s->value);
    map_done(&p->channels);
    for (int i = 0; i < p->former_count; i++)
        close_channel(p->former[i]);
    mem_free(p->former);
    cluster_spec_done(&p->spec);
    pthread_mutex_destroy(&p->lock);
    mem_free(p);
}

/* Under lock. */
static struct rpc_channel *channel_of(struct peers *p, const char *job,
                                      int task)
{
    const char *address = cluster_spec_address(&p->spec, job, task);
    struct rpc_channel *c;

    if (!address)
        return NULL;
    c = map_get_str(&p->channels, address);
    if (!c) {
        c = rpc_channel_new(p->loops, address, NULL);
        map_put_str(&p->channels, address, c);
    }
    return rpc_channel_ref(c);
}

struct rpc_channel *peers_channel(struct peers *p, const char *job, int task)
{
    struct rpc_channel *c;

    pthread_mutex_lock(&p->lock);
    c = channel_of(p, job, task);
    pthread_mutex_unlock(&p->lock);
    return c;
}

void peers_cluster(struct peers *p, struct cluster_spec *ret)
{
    pthread_mutex_lock(&p->lock);
    cluster_spec_copy(ret, &p->spec);
    pthread_mutex_unlock(&p->lock);
}

/* ---- waiting ---- */

static void run_begin(struct loop_task *task)
{
    struct peers_wait *w = CONTAINER(task, struct peers_wait, begin);
    struct loop *loop = loop_group_at(w->peers->loops, 0);

    loop_timer_set(loop, &w->timer,
                   loop_now_ns(loop) + PEERS_WAIT_MS * 1000000ull);
}

static void run_end(struct loop_task *task)
{
    struct peers_wait *w = CONTAINER(task, struct peers_wait, end);

    loop_timer_del(loop_group_at(w->peers->loops, 0), &w->timer);
    w->over(w, peers_channel(w->peers, w->job, w->task));
}

/* Under lock; the first that ends it. */
static void end(struct peers_wait *w)
{
    w->ended = true;
    w->prev->next = w->next;
    w->next->prev = w->prev;
    loop_post(loop_group_at(w->peers->loops, 0), &w->end);
}

static void on_late(struct loop_timer *timer)
{
    peers_wait_end(CONTAINER(timer, struct peers_wait, timer));
}

bool peers_wait(struct peers *p, struct peers_wait *w)
{
    bool open;

    w->peers = p;
    w->ended = false;
    w->timer = (struct loop_timer){ .fire = on_late };
    w->begin.run = run_begin;
    w->end.run = run_end;
    pthread_mutex_lock(&p->lock);
    open = p->open;
    if (open) {
        w->prev = p->waiting.prev;
        w->next = &p->waiting;
        w->prev->next = w->next->prev = w;
        /* Posted before anyone can find it: the end comes behind. */
        loop_post(loop_group_at(p->loops, 0), &w->begin);
        if (cluster_spec_address(&p->spec, w->job, w->task))
            end(w);
    }
    pthread_mutex_unlock(&p->lock);
    return open;
}

void peers_wait_end(struct peers_wait *w)
{
    struct peers *p = w->peers;

    pthread_mutex_lock(&p->lock);
    if (!w->ended)
        end(w);
    pthread_mutex_unlock(&p->lock);
}

/* ---- changing ---- */

void peers_open(struct peers *p)
{
    pthread_mutex_lock(&p->lock);
    p->open = true;
    pthread_mutex_unlock(&p->lock);
}

static bool in_use(const struct cluster_spec *spec, const char *address)
{
    for (int j = 0; j < spec->count; j++)
        for (int i = 0; i < spec->jobs[j].count; i++)
            if (!strcmp(spec->jobs[j].tasks[i].address, address))
                return true;
    return false;
}

/* Under lock: lets go of former channels that nobody else holds. */
static void sweep_former(struct peers *p)
{
    int kept = 0;

    for (int i = 0; i < p->former_count; i++) {
        struct rpc_channel *c = p->former[i];

        if (rpc_channel_is_shared(c)) {
            p->former[kept++] = c;
        } else {
            rpc_channel_bytes(c, &p->bytes_in, &p->bytes_out);
            rpc_channel_unref(c);
        }
    }
    p->former_count = kept;
}

/* Under lock: an address that a task had. If no other task has it, its channel
 * goes; calls under way hold it, and finish, or end when the peers do. */
static void retire(struct peers *p, const char *address)
{
    struct rpc_channel *c;

    if (in_use(&p->spec, address))
        return;
    c = map_take_str(&p->channels, address);
    if (c) {
        p->former = mem_grow(p->former, (size_t)p->former_count + 1,
                             sizeof(struct rpc_channel *));
        p->former[p->former_count++] = c;
    }
    sweep_former(p);
}

bool peers_know(struct peers *p, const char *job, int task)
{
    bool known;

    pthread_mutex_lock(&p->lock);
    known = cluster_spec_address(&p->spec, job, task) != NULL;
    pthread_mutex_unlock(&p->lock);
    return known;
}

bool peers_set(struct peers *p, const char *job, int task, const char *address)
{
    struct peers_wait *w, *next;
    struct status st = STATUS_INIT;
    const char *old;
    bool moved;
    char *was;

    pthread_mutex_lock(&p->lock);
    old = cluster_spec_address(&p->spec, job, task);
    was = old ? mem_str(old) : NULL;
    moved = old && (!address || strcmp(old, address));
    cluster_spec_remove(&p->spec, job, task);
    if (address)
        CHECK(!cluster_spec_add(&p->spec, job, task, address, &st));
    if (was)
        retire(p, was);
    mem_free(was);
    for (w = p->waiting.next; address && w != &p->waiting; w = next) {
        next = w->next;
        if (w->task == task && !strcmp(w->job, job))
            end(w);
    }
    pthread_mutex_unlock(&p->lock);
    return moved;
}

void peers_bytes(struct peers *p, uint64_t *ret_in, uint64_t *ret_out)
{
    struct map_slot *s;
    size_t at = 0;

    pthread_mutex_lock(&p->lock);
    *ret_in = p->bytes_in;
    *ret_out = p->bytes_out;
    while ((s = map_next(&p->channels, &at)))
        rpc_channel_bytes(s->value, ret_in, ret_out);
    for (int i = 0; i < p->former_count; i++)
        rpc_channel_bytes(p->former[i], ret_in, ret_out);
    pthread_mutex_unlock(&p->lock);
}
