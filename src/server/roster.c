#include "server/roster_state.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/rng.h"
#include "server/quick.h"
#include "server/reply.h"
#include "server/worker.h"

#define TICK_NS    1000000000ull
#define SYNC_TICKS 2

uint64_t roster_wall_ms(void)
{
    return clock_wall_us() / 1000;
}

/* ---- calls ---- */

struct roster_call *roster_call_new(struct roster *r, struct rpc_call *call)
{
    struct roster_call *c = MEM_NEW(struct roster_call);

    c->r = r;
    c->call = call;
    c->prev = r->calls.prev;
    c->next = &r->calls;
    c->prev->next = c->next->prev = c;
    return c;
}

void roster_call_end(struct roster_call *c)
{
    c->prev->next = c->next;
    c->next->prev = c->prev;
    mem_free(c);
}

/* ---- members as messages ---- */

void roster_put_member(Muster__Member *to, const struct member *m)
{
    muster__member__init(to);
    to->job = (char *)m->job;
    to->task = m->task;
    if (m->address)
        to->address = (char *)m->address;
    to->epoch = m->version.epoch;
    to->origin = m->version.origin;
    to->since_ms = m->since_ms;
}

struct member roster_member(const Muster__Member *from)
{
    return (struct member){ .job = from->job,
                            .task = from->task,
                            .address = *from->address ? from->address : NULL,
                            .version = { from->epoch, from->origin },
                            .since_ms = from->since_ms };
}

struct member *roster_members(Muster__Member **from, size_t count)
{
    struct member *to = mem_array(count + 1, sizeof(*to));

    for (size_t i = 0; i < count; i++)
        to[i] = roster_member(from[i]);
    return to;
}

static void list_init(struct roster_list *l, size_t room)
{
    l->at = mem_array(room + 1, sizeof(*l->at));
    l->ptr = mem_array(room + 1, sizeof(*l->ptr));
    l->count = 0;
}

static Muster__Member *list_add(struct roster_list *l, const struct member *m)
{
    Muster__Member *to = &l->at[l->count];

    roster_put_member(to, m);
    l->ptr[l->count++] = to;
    return to;
}

void roster_list(struct roster *r, uint64_t beyond, struct roster_list *ret)
{
    const struct members *t = membership_table(r->ms);
    struct members_walk at = { 0 };
    const struct member *m;
    size_t count = 0;

    while ((m = members_next(t, &at)))
        count += m->revision > beyond;
    list_init(ret, count);
    at = (struct members_walk){ 0 };
    while ((m = members_next(t, &at)))
        if (m->revision > beyond) {
            Muster__Member *to = list_add(ret, m);

            to->revision = m->revision;
            roster_health_put(r, m, to);
        }
}

void roster_list_done(struct roster_list *l)
{
    mem_free(l->at);
    mem_free(l->ptr);
}

/* ---- what the membership asks for ---- */

static void on_written(void *arg, uint64_t ticket, const struct status *st)
{
    struct roster *r = arg;

    pthread_mutex_lock(&r->lock);
    if (!r->stopped) {
        membership_written(r->ms, ticket, st);
        roster_changed(r);
    }
    pthread_mutex_unlock(&r->lock);
}

/* Without a journal a write is done at once, but not inside of the call. */
struct unwritten {
    struct loop_task task;
    struct roster *r;
    uint64_t ticket;
};

static void run_unwritten(struct loop_task *task)
{
    struct unwritten *u = CONTAINER(task, struct unwritten, task);
    struct status ok = STATUS_INIT;

    on_written(u->r, u->ticket, &ok);
    mem_free(u);
}

static void do_write(void *arg, const struct member *m, size_t count,
                     uint64_t ticket)
{
    struct roster *r = arg;
    struct unwritten *u;

    if (r->journal) {
        journal_write(r->journal, m, count, on_written, r, ticket);
        return;
    }
    u = MEM_NEW(struct unwritten);
    u->task.run = run_unwritten;
    u->r = r;
    u->ticket = ticket;
    loop_post(loop_group_at(r->loops, 0), &u->task);
}

struct sent {
    struct roster *r;
    uint64_t ticket;
};

static void on_sent(const struct rpc_reply *reply, void *arg)
{
    struct sent *s = arg;
    struct roster *r = s->r;
    Muster__ExchangeResponse *p = NULL;
    struct membership_msg msg = { 0 };
    struct status st;

    status_copy(&st, reply->status);
    if (!st.code) {
        p = CONTROL_UNPACK(muster__exchange_response, reply->msg.data,
                           reply->msg.len);
        if (!p)
            status_set(&st, MST_INTERNAL, "the answer cannot be read");
    }
    if (p) {
        msg.digest = p->digest;
        msg.members = roster_members(p->members, p->n_members);
        msg.count = p->n_members;
    }
    pthread_mutex_lock(&r->lock);
    if (!r->stopped) {
        membership_sent(r->ms, s->ticket, p ? &msg : NULL, &st);
        roster_changed(r);
    }
    pthread_mutex_unlock(&r->lock);
    mem_free((void *)msg.members);
    control_free(p);
    mem_free(s);
}

static void do_send(void *arg, int ps, const struct membership_msg *msg,
                    uint64_t ticket)
{
    struct roster *r = arg;
    Muster__ExchangeRequest q = MUSTER__EXCHANGE_REQUEST__INIT;
    struct rpc_channel *channel = peers_channel(r->peers, "ps", ps);
    struct sent *s = MEM_NEW(struct sent);
    struct roster_list l;
    struct rpc_msg m;

    list_init(&l, msg->count);
    for (size_t i = 0; i < msg->count; i++)
        list_add(&l, &msg->members[i]);
    q.sync = msg->sync;
    if (r->job_id)
        q.job_id = r->job_id;
    q.digest = msg->digest;
    q.members = l.ptr;
    q.n_members = l.count;
    message_pack(&m, &q.base);
    roster_list_done(&l);
    s->r = r;
    s->ticket = ticket;
    rpc_client_call_unref(rpc_channel_call(
        channel, &(struct rpc_request){ .path = ROSTER_PATH("Exchange"),
                                        .msg = &m,
                                        .deadline_ms = ROSTER_CALL_MS,
                                        .done = on_sent,
                                        .arg = s }));
    rpc_channel_unref(channel);
}

/* A join is told the whole list; other changes, who has them. */
static void do_answer(void *arg, void *call, const struct membership_answer *a)
{
    Muster__ChangeResponse p = MUSTER__CHANGE_RESPONSE__INIT;
    Muster__JoinResponse joined = MUSTER__JOIN_RESPONSE__INIT;
    struct roster *r = arg;
    struct roster_call *c = call;
    Muster__Member member;
    struct roster_list l;
    int32_t *reached;

    if (a->status.code) {
        reply_fail(c->call, &a->status);
        roster_call_end(c);
        return;
    }
    roster_put_member(&member, a->member);
    if (c->join) {
        roster_list(r, 0, &l);
        joined.member = &member;
        joined.members = l.ptr;
        joined.n_members = l.count;
        reply_message(c->call, &joined.base);
        roster_list_done(&l);
    } else {
        reached = mem_array((size_t)a->reached_count + 1, sizeof(*reached));
        reached[0] = r->task;
        if (a->reached_count) /* else there is no array */
            memcpy(reached + 1, a->reached,
                   (size_t)a->reached_count * sizeof(*reached));
        p.member = &member;
        p.changed = a->changed;
        p.reached = reached;
        p.n_reached = (size_t)a->reached_count + 1;
        p.missed = (int32_t *)a->missed;
        p.n_missed = (size_t)a->missed_count;
        reply_message(c->call, &p.base);
        mem_free(reached);
    }
    roster_call_end(c);
}

static void do_reply(void *arg, void *call, const struct membership_msg *msg,
                     const struct status *st)
{
    Muster__ExchangeResponse p = MUSTER__EXCHANGE_RESPONSE__INIT;
    struct roster_call *c = call;
    struct roster_list l;

    (void)arg;
    if (st->code) {
        reply_fail(c->call, st);
    } else {
        list_init(&l, msg->count);
        for (size_t i = 0; i < msg->count; i++)
            list_add(&l, &msg->members[i]);
        p.digest = msg->digest;
        p.members = l.ptr;
        p.n_members = l.count;
        reply_message(c->call, &p.base);
        roster_list_done(&l);
    }
    roster_call_end(c);
}

bool roster_is_self(const struct roster *r, const struct member *m)
{
    return m->task == r->task && !strcmp(m->job, r->job);
}

static void do_changed(void *arg, const struct member *m)
{
    struct roster *r = arg;

    if (peers_set(worker_peers(r->worker), m->job, m->task, m->address))
        quick_forget(r->quick, m->job, m->task);
    peers_set(r->peers, m->job, m->task, m->address);
    roster_health_forget(r, m);
    if (!m->version.epoch)
        return;
    if (m->address)
        log_line(LOG_INFO, "/job:%s/task:%d is at %s", m->job, m->task,
                 m->address);
    else
        log_line(roster_is_self(r, m) ? LOG_WARN : LOG_INFO,
                 "/job:%s/task:%d was removed from the job", m->job, m->task);
}

static void do_say(void *arg, const char *text)
{
    (void)arg;
    log_line(LOG_WARN, "%s", text);
}

static const struct membership_ops ops = {
    .write = do_write,
    .send = do_send,
    .answer = do_answer,
    .reply = do_reply,
    .changed = do_changed,
    .say = do_say,
};

/* ---- time ---- */

void roster_changed(struct roster *r)
{
    uint64_t revision = membership_table(r->ms)->revision;

    if (revision != r->told_revision)
        roster_watch_tell(r, clock_ns());
    r->told_revision = revision;
}

static void take_sample(struct roster *r, uint64_t now_ns)
{
    struct roster_sample *s = &r->samples[r->ticks % ROSTER_SAMPLES];
    struct rpc_server_stats stats;
    struct worker_status w;
    uint64_t in, out, quick_in, quick_out;

    rpc_server_stats(r->rpc, &stats);
    peers_bytes(worker_peers(r->worker), &in, &out);
    quick_bytes(r->quick, &quick_in, &quick_out);
    worker_status(r->worker, &w);
    *s = (struct roster_sample){ .at_ns = now_ns,
                                 .steps = w.steps_run,
                                 .bytes_in = stats.bytes_in + in + quick_in,
                                 .bytes_out =
                                     stats.bytes_out + out + quick_out };
}

static void on_tick(struct loop_timer *timer)
{
    struct roster *r = CONTAINER(timer, struct roster, timer);
    struct loop *loop = loop_group_at(r->loops, 0);
    uint64_t now = loop_now_ns(loop);

    pthread_mutex_lock(&r->lock);
    if (!r->stopped) {
        take_sample(r, now);
        roster_watch_tell(r, now);
        if (!r->keeps) {
            roster_follow_tick(r->follow);
        } else {
            if (r->ticks % SYNC_TICKS == 0)
                membership_tick(r->ms);
            roster_health_tick(r);
        }
        r->ticks++;
        loop_timer_set(loop, timer, now + TICK_NS);
    }
    pthread_mutex_unlock(&r->lock);
}

static void run_first(struct loop_task *task)
{
    on_tick(&CONTAINER(task, struct roster, first)->timer);
}

void roster_begin(struct roster *r)
{
    r->timer.fire = on_tick;
    r->first.run = run_first;
    loop_post(loop_group_at(r->loops, 0), &r->first);
}

/* ---- the whole ---- */

static enum mst_code read_journal(struct roster *r,
                                  const struct roster_opts *opts,
                                  struct status *st)
{
    char *dir =
        opts->state_dir ? mem_str(opts->state_dir) : journal_default_dir();
    char *path = NULL;
    struct members had;
    enum mst_code rc;

    members_init(&had);
    rc = journal_name(dir, opts->cluster, opts->task, r->job_id, &path, st);
    if (!rc)
        rc = journal_open(path, opts->pool, &had, &r->journal, st);
    if (!rc)
        membership_restore(r->ms, &had);
    if (!rc && had.present && !r->job_id)
        log_line(LOG_INFO, "another job on these hosts begins without them if "
                           "it is given a --job_id");
    members_done(&had);
    mem_free(path);
    mem_free(dir);
    return rc;
}

enum mst_code roster_new(const struct roster_opts *opts, struct roster **ret,
                         struct status *st)
{
    const struct cluster_job *ps = cluster_spec_job(opts->cluster, "ps");
    bool is_ps = !strcmp(opts->job, "ps");
    struct roster *r = MEM_NEW(struct roster);
    enum mst_code rc = MST_OK;
    const char *id;

    r->job = mem_str(opts->job);
    r->task = opts->task;
    r->keeps = is_ps || !ps || !ps->count;
    if ((id = opts->job_id ? opts->job_id : getenv("MUSTER_JOB_ID")) && *id)
        r->job_id = mem_str(id);
    r->lease_s = opts->lease_s;
    r->instance = rng_u64();
    r->started_ms = roster_wall_ms();
    r->worker = opts->worker;
    r->master = opts->master;
    r->quick = opts->quick;
    r->loops = opts->loops;
    r->pool = opts->pool;
    r->calls.prev = r->calls.next = &r->calls;
    map_init(&r->health);
    pthread_mutex_init(&r->lock, NULL);
    r->ms = membership_new(
        &(struct membership_opts){ .self = is_ps ? opts->task : -1,
                                   .origin = r->instance,
                                   .ops = &ops,
                                   .arg = r });
    peers_open(worker_peers(r->worker));
    r->peers = peers_new(opts->loops, opts->cluster);
    membership_flags(r->ms, opts->cluster, r->started_ms);
    if (!r->keeps)
        r->follow = roster_follow_new(r);
    if (is_ps && !(opts->state_dir && !strcmp(opts->state_dir, "none")))
        rc = read_journal(r, opts, st);
    if (rc) {
        roster_free(r);
        return rc;
    }
    r->told_revision = membership_table(r->ms)->revision;
    *ret = r;
    return MST_OK;
}

void roster_stop(struct roster *r)
{
    pthread_mutex_lock(&r->lock);
    r->stopped = true;
    while (r->calls.next != &r->calls) {
        reply_fail_with(r->calls.next->call, MST_UNAVAILABLE,
                        "The server is stopping");
        roster_call_end(r->calls.next);
    }
    roster_watch_end_all(r);
    peers_unref(r->peers);
    r->peers = NULL;
    pthread_mutex_unlock(&r->lock);
}

void roster_free(struct roster *r)
{
    if (!r)
        return;
    peers_unref(r->peers);
    roster_follow_free(r->follow);
    membership_free(r->ms);
    journal_close(r->journal);
    roster_health_done(r);
    pthread_mutex_destroy(&r->lock);
    mem_free(r->job_id);
    mem_free(r->job);
    mem_free(r);
}
