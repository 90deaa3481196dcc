/*
 * Who is alive, on a server that keeps the list.
 *
 * A worker that trains is heard all the time: its master's calls carry its
 * session, and the session remembers when. Only who has not been heard of for
 * a while is asked, by a Status call, which costs less than a null step and
 * also tells a server of ours from TensorFlow's, which does not know it.
 *
 *             heard                       two questions without an answer
 *   unknown --------> alive  <----------------------------------> gone
 *      |                              heard                        ^
 *      +-----------------------------------------------------------+
 *
 * Nothing follows from being gone but what is shown, that the index may be
 * taken over, and that the sessions are dropped when a lease is over: they
 * hold graphs that nobody will run. The index stays.
 */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/device.h"
#include "base/log.h"
#include "base/mem.h"
#include "server/reply.h"
#include "server/roster_state.h"
#include "server/worker.h"

#define SILENCE_MS   5000 /* after which one is asked */
#define AGAIN_MS     1000 /* when it did not answer */
#define MISSES       2    /* and is gone */
#define PROBES_MAX   64   /* at a time */
#define OUR_LEASE_MS 60000
#define KEY_MAX      (MEMBER_JOB_MAX + 16)

struct health {
    Muster__Member__State state;
    uint64_t since_ms; /* wall clock */
    uint64_t heard_ms; /* clock_ms(); 0: never */
    uint64_t next_ms;  /* of the next question, clock_ms() */
    uint64_t gone_ms;  /* clock_ms() */
    int misses;
    unsigned sessions; /* as of the last tick */
    bool asking, ours, dropped;
};

static struct health *need(struct roster *r, const char *job, int task)
{
    char key[KEY_MAX];
    struct health *h;

    snprintf(key, sizeof(key), "%s/%d", job, task);
    h = map_get_str(&r->health, key);
    if (!h) {
        h = MEM_NEW(struct health);
        h->since_ms = roster_wall_ms();
        map_put_str(&r->health, key, h);
    }
    return h;
}

static void set_state(struct health *h, Muster__Member__State state)
{
    if (h->state == state)
        return;
    h->state = state;
    h->since_ms = roster_wall_ms();
    h->gone_ms = clock_ms();
    h->dropped = false;
}

static void heard(struct health *h, uint64_t at_ms)
{
    if (at_ms > h->heard_ms)
        h->heard_ms = at_ms;
    h->misses = 0;
    h->next_ms = h->heard_ms + SILENCE_MS;
    set_state(h, MUSTER__MEMBER__STATE__ALIVE);
}

static void missed(struct health *h)
{
    h->next_ms = clock_ms() + (h->misses < MISSES ? AGAIN_MS : SILENCE_MS);
    if (++h->misses >= MISSES)
        set_state(h, MUSTER__MEMBER__STATE__GONE);
}

/* ---- asking ---- */

struct asking {
    struct roster *r;
    char *job;
    int task;
    uint64_t epoch; /* of the entry that is asked about */
    void (*done)(void *arg, bool alive);
    void *arg;
};

/* Whether the answer comes from the task that was meant. */
static bool is_alive(const struct asking *a, const struct rpc_reply *reply,
                     bool *ret_ours)
{
    Muster__StatusResponse *p;
    bool same;

    *ret_ours = false;
    if (reply->status->code == MST_UNIMPLEMENTED)
        return true;
    if (reply->status->code)
        return false;
    p = CONTROL_UNPACK(muster__status_response, reply->msg.data,
                       reply->msg.len);
    same = p && p->task == a->task && !strcmp(p->job, a->job);
    control_free(p);
    *ret_ours = same;
    return same;
}

static void on_asked(const struct rpc_reply *reply, void *arg)
{
    struct asking *a = arg;
    struct roster *r = a->r;
    bool ours, alive = is_alive(a, reply, &ours);
    const struct member *m;
    struct health *h;

    pthread_mutex_lock(&r->lock);
    r->probes--;
    m = r->stopped ? NULL
                   : members_get(membership_table(r->ms), a->job, a->task);
    if (m && m->version.epoch == a->epoch) {
        h = need(r, a->job, a->task);
        h->asking = false;
        h->ours = alive ? ours : h->ours;
        if (alive)
            heard(h, clock_ms());
        else
            missed(h);
    }
    if (a->done)
        a->done(a->arg, alive);
    if (!r->stopped)
        roster_changed(r);
    pthread_mutex_unlock(&r->lock);
    mem_free(a->job);
    mem_free(a);
}

void roster_health_ask(struct roster *r, const struct member *m,
                       void (*done)(void *arg, bool alive), void *arg)
{
    struct rpc_channel *channel = peers_channel(r->peers, m->job, m->task);
    struct asking *a = MEM_NEW(struct asking);
    struct rpc_msg msg;

    a->r = r;
    a->job = mem_str(m->job);
    a->task = m->task;
    a->epoch = m->version.epoch;
    a->done = done;
    a->arg = arg;
    r->probes++;
    rpc_msg_init(&msg);
    rpc_client_call_unref(rpc_channel_call(
        channel, &(struct rpc_request){ .path = ROSTER_PATH("Status"),
                                        .msg = &msg,
                                        .deadline_ms = ROSTER_CALL_MS,
                                        /* Also if it was down a moment ago. */
                                        .wait_for_ready = true,
                                        .done = on_asked,
                                        .arg = a }));
    rpc_channel_unref(channel);
}

/* ---- every second ---- */

static void count_session(void *arg, const struct session *session)
{
    struct roster *r = arg;
    struct device_name d;
    struct health *h;

    if (!device_parse(session->master_task, strlen(session->master_task), &d) ||
        d.task < 0 || !members_get(membership_table(r->ms), d.job, d.task))
        return;
    h = need(r, d.job, d.task);
    h->sessions++;
    if (session->heard_ms > h->heard_ms)
        heard(h, session->heard_ms);
}

/* Whether the time of a worker's sessions is over. */
static bool lease_is_over(const struct roster *r, const struct member *m,
                          const struct health *h, uint64_t now)
{
    uint64_t lease = r->lease_s > 0               ? (uint64_t)r->lease_s * 1000
                     : r->lease_s == 0 && h->ours ? OUR_LEASE_MS
                                                  : 0;

    if (!h->sessions || h->dropped)
        return false;
    if (!m->address) /* removed: what it began may still end */
        return now > h->heard_ms + SILENCE_MS;
    return lease && h->state == MUSTER__MEMBER__STATE__GONE &&
           now > h->gone_ms + lease;
}

static void drop_sessions(struct roster *r, const struct member *m,
                          struct health *h)
{
    char *task = mem_printf("/job:%s/replica:0/task:%d", m->job, m->task);

    log_line(LOG_INFO, "%u sessions of %s are dropped: it is %s", h->sessions,
             task, m->address ? "gone" : "removed");
    h->dropped = true;
    /* Ends steps, which calls into layers that know nothing of the roster. */
    sessions_delete_of(worker_sessions(r->worker), task);
    mem_free(task);
}

void roster_health_tick(struct roster *r)
{
    struct members_walk at = { 0 };
    uint64_t now = clock_ms();
    const struct member *m;
    struct map_slot *slot;
    size_t i = 0;

    while ((slot = map_next(&r->health, &i)))
        ((struct health *)slot->value)->sessions = 0;
    sessions_each(worker_sessions(r->worker), count_session, r);
    while ((m = members_next(membership_table(r->ms), &at))) {
        struct health *h;

        if (roster_is_self(r, m))
            continue;
        h = need(r, m->job, m->task);
        if (lease_is_over(r, m, h, now))
            drop_sessions(r, m, h);
        if (!m->address || h->asking || now < h->next_ms ||
            r->probes >= PROBES_MAX)
            continue;
        h->asking = true;
        roster_health_ask(r, m, NULL, NULL);
    }
}

void roster_health_forget(struct roster *r, const struct member *m)
{
    char key[KEY_MAX];

    snprintf(key, sizeof(key), "%s/%d", m->job, m->task);
    mem_free(map_take_str(&r->health, key));
}

void roster_health_put(struct roster *r, const struct member *m,
                       Muster__Member *to)
{
    uint64_t now = clock_ms();
    const struct health *h;

    if (roster_is_self(r, m)) {
        to->state = MUSTER__MEMBER__STATE__ALIVE;
        to->state_since_ms = r->started_ms;
        to->heard_ms = roster_wall_ms();
        return;
    }
    h = need(r, m->job, m->task);
    to->state = h->state;
    to->state_since_ms = h->since_ms;
    to->sessions = h->sessions;
    if (h->heard_ms)
        to->heard_ms = roster_wall_ms() - (now - h->heard_ms);
}

void roster_health_done(struct roster *r)
{
    struct map_slot *slot;
    size_t at = 0;

    while ((slot = map_next(&r->health, &at)))
        mem_free(slot->value);
    map_done(&r->health);
}
