/*
 * The methods of muster.Membership.
 *
 * Addresses come from people: blanks in them mean nothing (pages that explain
 * distributed TensorFlow put one behind every colon).
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "cluster/spec_parse.h"
#include "server/master.h"
#include "server/reply.h"
#include "server/roster_state.h"
#include "server/worker.h"

#define UNPACK(call, name) reply_unpack(call, &muster__##name##__descriptor)

static const char *job_of(const char *job)
{
    return *job ? job : "worker";
}

/* Locks; false, and the call is answered, when the server stops. */
static bool enter(struct roster *r, struct rpc_call *call)
{
    pthread_mutex_lock(&r->lock);
    if (!r->stopped)
        return true;
    pthread_mutex_unlock(&r->lock);
    reply_fail_with(call, MST_UNAVAILABLE, "The server is stopping");
    return false;
}

static void leave(struct roster *r)
{
    roster_changed(r);
    pthread_mutex_unlock(&r->lock);
}

/* ---- changes ---- */

/* An add to an index that another address has: is somebody there? */
struct moving {
    struct roster *r;
    struct roster_call *c; /* gone when the roster has stopped */
    char *job, *address;
    int task;
    struct member_version version; /* of the entry that was asked */
};

static void moving_known(void *arg, bool alive)
{
    struct moving *m = arg;

    if (m->r->stopped)
        ;
    else if (alive) /* the membership has the words for it */
        membership_add(m->r->ms, m->c, m->job, m->task, m->address, false,
                       roster_wall_ms());
    else
        membership_take_over(m->r->ms, m->c, m->job, m->task, m->address,
                             m->version, roster_wall_ms());
    mem_free(m->job);
    mem_free(m->address);
    mem_free(m);
}

static void add(struct roster *r, struct rpc_call *call,
                const Muster__AddWorkerRequest *q, const char *address)
{
    const char *job = job_of(q->job);
    const struct member *old =
        members_get(membership_table(r->ms), job, q->task);
    struct roster_call *c = roster_call_new(r, call);
    struct moving *m;

    if (q->replace || !old || !old->address || !strcmp(old->address, address)) {
        membership_add(r->ms, c, job, q->task, address, q->replace,
                       roster_wall_ms());
        return;
    }
    m = MEM_NEW(struct moving);
    m->r = r;
    m->c = c;
    m->job = mem_str(job);
    m->task = q->task;
    m->address = mem_str(address);
    m->version = old->version;
    roster_health_ask(r, old, moving_known, m);
}

static void add_worker(struct rpc_call *call, void *arg)
{
    struct roster *r = arg;
    Muster__AddWorkerRequest *q;
    char *address;

    if (!r->keeps) {
        roster_follow_pass(r, call);
        return;
    }
    q = UNPACK(call, add_worker_request);
    if (!q)
        return;
    address = spec_parse_squeeze(q->address);
    if (enter(r, call)) {
        add(r, call, q, address);
        leave(r);
    }
    mem_free(address);
    control_free(q);
}

static void remove_worker(struct rpc_call *call, void *arg)
{
    struct roster *r = arg;
    Muster__RemoveWorkerRequest *q;
    char *address;

    if (!r->keeps) {
        roster_follow_pass(r, call);
        return;
    }
    q = UNPACK(call, remove_worker_request);
    if (!q)
        return;
    address = spec_parse_squeeze(q->address);
    if (enter(r, call)) {
        membership_remove(r->ms, roster_call_new(r, call), job_of(q->job),
                          q->task, *address ? address : NULL, roster_wall_ms());
        leave(r);
    }
    mem_free(address);
    control_free(q);
}

/* ":2222" from "ipv4:10.0.0.7:40312" is "10.0.0.7:2222". */
static char *address_of(const struct rpc_call *call, const char *text)
{
    const char *peer = strchr(rpc_call_peer(call), ':') + 1;
    const char *end = strrchr(peer, ':');
    char *address = spec_parse_squeeze(text), *whole;

    if (*address != ':')
        return address;
    whole = mem_printf("%.*s%s", (int)(end - peer), peer, address);
    mem_free(address);
    return whole;
}

static void join(struct rpc_call *call, void *arg)
{
    struct roster *r = arg;
    Muster__JoinRequest *q;
    char *address;

    q = UNPACK(call, join_request);
    if (!q)
        return;
    address = address_of(call, q->address);
    if (!r->keeps || r->task != 0) {
        roster_follow_join(r, call, q->job, address);
    } else if (enter(r, call)) {
        struct roster_call *c = roster_call_new(r, call);

        c->join = true;
        membership_join(r->ms, c, job_of(q->job), address, roster_wall_ms());
        leave(r);
    }
    mem_free(address);
    control_free(q);
}

/* One of the last job that nobody has stopped, or started with the wrong name:
 * its list is not ours. One without a name may be either. */
static bool is_stranger(struct roster *r, const Muster__ExchangeRequest *q)
{
    if (!*q->job_id || !r->job_id || !strcmp(q->job_id, r->job_id))
        return false;
    if (!r->stranger)
        log_line(LOG_WARN,
                 "a parameter server of the job \"%s\" is among those of "
                 "\"%s\": it is not listened to",
                 q->job_id, r->job_id);
    r->stranger = true;
    return true;
}

static void exchange(struct rpc_call *call, void *arg)
{
    struct roster *r = arg;
    Muster__ExchangeRequest *q = UNPACK(call, exchange_request);
    struct membership_msg msg;

    if (!q)
        return;
    msg = (struct membership_msg){ .sync = q->sync,
                                   .digest = q->digest,
                                   .members =
                                       roster_members(q->members, q->n_members),
                                   .count = q->n_members };
    if (!r->keeps)
        reply_fail_with(call, MST_FAILED_PRECONDITION,
                        "This task keeps no list");
    else if (enter(r, call)) {
        if (is_stranger(r, q))
            reply_fail_with(call, MST_FAILED_PRECONDITION,
                            "This is a parameter server of another job");
        else
            membership_exchange(r->ms, roster_call_new(r, call), &msg);
        leave(r);
    }
    mem_free((void *)msg.members);
    control_free(q);
}

/* ---- questions ---- */

void roster_answer_list(struct roster *r, struct rpc_call *call)
{
    Muster__ListResponse p = MUSTER__LIST_RESPONSE__INIT;
    struct roster_list l;

    roster_list(r, 0, &l);
    p.members = l.ptr;
    p.n_members = l.count;
    p.revision = membership_table(r->ms)->revision;
    p.job = r->job;
    p.task = r->task;
    if (r->journal)
        p.state_dir = (char *)journal_path(r->journal);
    reply_message(call, &p.base);
    roster_list_done(&l);
}

/* One that follows asks a ps, who knows how everybody is. */
static void list(struct rpc_call *call, void *arg)
{
    struct roster *r = arg;

    if (!r->keeps) {
        roster_follow_pass(r, call);
    } else if (enter(r, call)) {
        roster_answer_list(r, call);
        leave(r);
    }
}

static void watch(struct rpc_call *call, void *arg)
{
    struct roster *r = arg;
    Muster__WatchRequest *q = UNPACK(call, watch_request);

    if (!q)
        return;
    if (enter(r, call)) {
        roster_watch_add(r, call, q);
        leave(r);
    }
    control_free(q);
}

static uint64_t resident_bytes(void)
{
    FILE *f = fopen("/proc/self/statm", "re");
    unsigned long all = 0, resident = 0;

    if (!f)
        return 0;
    if (fscanf(f, "%lu %lu", &all, &resident) != 2)
        resident = 0;
    fclose(f);
    return (uint64_t)resident * 4096;
}

/* From the oldest sample to the newest. */
static void put_rates(const struct roster *r, Muster__StatusResponse *p)
{
    const struct roster_sample *new, *old;
    double s;

    if (r->ticks < 2)
        return;
    new = &r->samples[(r->ticks - 1) % ROSTER_SAMPLES];
    old =
        &r->samples[r->ticks < ROSTER_SAMPLES ? 0 : r->ticks % ROSTER_SAMPLES];
    s = (double)(new->at_ns - old->at_ns) / 1e9;
    if (s <= 0)
        return;
    p->steps_per_s = (double)(new->steps - old->steps) / s;
    p->bytes_in_per_s = (double)(new->bytes_in - old->bytes_in) / s;
    p->bytes_out_per_s = (double)(new->bytes_out - old->bytes_out) / s;
}

static void status(struct rpc_call *call, void *arg)
{
    Muster__StatusResponse p = MUSTER__STATUS_RESPONSE__INIT;
    struct roster *r = arg;
    struct rpc_server_stats stats;
    struct worker_status w;
    uint64_t in, out;

    rpc_server_stats(r->rpc, &stats);
    worker_status(r->worker, &w);
    if (!enter(r, call))
        return;
    peers_bytes(worker_peers(r->worker), &in, &out);
    put_rates(r, &p);
    p.job = r->job;
    p.task = r->task;
    p.version = (char *)MUSTER_VERSION;
    p.started_ms = r->started_ms;
    p.sessions = (uint32_t)w.sessions;
    p.master_sessions = (uint32_t)master_session_count(r->master);
    p.steps = w.steps_run;
    p.bytes_in = stats.bytes_in + in;
    p.bytes_out = stats.bytes_out + out;
    p.memory = resident_bytes();
    p.connections = (uint32_t)stats.conns;
    reply_message(call, &p.base);
    leave(r);
}

static const struct rpc_method methods[] = {
    { .path = ROSTER_PATH("AddWorker"), .start = add_worker },
    { .path = ROSTER_PATH("RemoveWorker"), .start = remove_worker },
    { .path = ROSTER_PATH("Join"), .start = join },
    { .path = ROSTER_PATH("Leave"), .start = remove_worker },
    { .path = ROSTER_PATH("List"), .start = list },
    { .path = ROSTER_PATH("Watch"), .start = watch, .streams = true },
    { .path = ROSTER_PATH("Exchange"), .start = exchange },
    { .path = ROSTER_PATH("Status"), .start = status },
};

void roster_add_methods(struct roster *r, struct rpc_server *server)
{
    r->rpc = server;
    rpc_server_add(server, methods, COUNT(methods), r);
}
