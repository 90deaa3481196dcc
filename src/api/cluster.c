/*
 * The membership of a running job by its public face. What is given is checked
 * here with the rules of the servers (cluster/members.h), so that a slip of a
 * user gives the same words with or without a server; blanks in addresses are
 * dropped, as people write "worker2: 2222".
 *
 * A list of members is one piece of memory with its texts.
 */
#include "muster/cluster.h"

#include <string.h>

#include "api/cluster_call.h"
#include "api/cluster_watch.h"
#include "api/error.h"
#include "base/arena.h"
#include "base/clock.h"
#include "base/mem.h"
#include "cluster/members.h"
#include "cluster/spec_parse.h"
#include "proto/membership.pb-c.h"

#define TIMEOUT_MS 10000

struct members_box {
    struct mst_members members;
    struct arena memory;
};

static uint64_t timeout_of(uint64_t timeout_ms)
{
    return timeout_ms ? timeout_ms : TIMEOUT_MS;
}

static enum mst_code change(const char *target, const char *path,
                            const ProtobufCMessage *request,
                            const struct mst_change_opts *opts,
                            struct mst_change *change, struct status *st)
{
    struct cluster_call call = { .target = target,
                                 .path = path,
                                 .request = request,
                                 .answers =
                                     &muster__change_response__descriptor };
    Muster__ChangeResponse *r;

    if (cluster_call_one(&call, timeout_of(opts ? opts->timeout_ms : 0)))
        return status_copy(st, &call.status);
    r = call.answer;
    if (change)
        *change = (struct mst_change){ .changed = r->changed,
                                       .reached = (unsigned)r->n_reached,
                                       .missed = (unsigned)r->n_missed };
    control_free(r);
    return MST_OK;
}

static const char *job_of(const struct mst_change_opts *opts)
{
    return opts && opts->job && *opts->job ? opts->job : "worker";
}

enum mst_code mst_cluster_add_worker(const char *target, int task,
                                     const char *address,
                                     const struct mst_change_opts *opts,
                                     struct mst_change *ret,
                                     struct mst_error *error)
{
    Muster__AddWorkerRequest rq = MUSTER__ADD_WORKER_REQUEST__INIT;
    char *squeezed = spec_parse_squeeze(address);
    struct member m = { .job = job_of(opts), .task = task };
    struct status st = STATUS_INIT;

    m.address = squeezed;
    rq.job = (char *)m.job;
    rq.task = task;
    rq.address = squeezed;
    rq.replace = opts && opts->replace;
    if (!member_check(&m, &st))
        (void)change(target, CLUSTER_CALL_PATH(AddWorker), &rq.base, opts, ret,
                     &st);
    mem_free(squeezed);
    return st.code ? error_tell(error, &st) : MST_OK;
}

enum mst_code mst_cluster_remove_worker(const char *target, int task,
                                        const struct mst_change_opts *opts,
                                        struct mst_change *ret,
                                        struct mst_error *error)
{
    Muster__RemoveWorkerRequest rq = MUSTER__REMOVE_WORKER_REQUEST__INIT;
    struct member m = { .job = job_of(opts), .task = task };
    struct status st = STATUS_INIT;

    rq.job = (char *)m.job;
    rq.task = task;
    if (opts && opts->only_at)
        rq.address = (char *)opts->only_at;
    if (!member_check(&m, &st))
        (void)change(target, CLUSTER_CALL_PATH(RemoveWorker), &rq.base, opts,
                     ret, &st);
    return st.code ? error_tell(error, &st) : MST_OK;
}

static struct mst_members *box(Muster__Member **from, size_t count,
                               uint64_t revision, uint64_t instance)
{
    struct members_box *b = MEM_NEW(struct members_box);

    arena_init(&b->memory);
    b->members =
        (struct mst_members){ .at = ARENA_ARRAY(&b->memory, struct mst_member,
                                                count),
                              .count = count,
                              .revision = revision,
                              .instance = instance };
    for (size_t i = 0; i < count; i++) {
        const Muster__Member *m = from[i];

        b->members.at[i] = (struct mst_member){
            .job = arena_str(&b->memory, m->job),
            .task = m->task,
            .address = *m->address ? arena_str(&b->memory, m->address) : NULL,
            .since_ms = m->since_ms,
            .state = (enum mst_member_state)m->state,
            .state_since_ms = m->state_since_ms,
            .heard_ms = m->heard_ms,
            .sessions = m->sessions,
        };
    }
    return &b->members;
}

void mst_members_free(struct mst_members *members)
{
    struct members_box *b;

    if (!members)
        return;
    b = CONTAINER(members, struct members_box, members);
    arena_done(&b->memory);
    mem_free(b);
}

/* Who was asked for, in the list that came with it. */
static enum mst_code find_self(const struct mst_members *all,
                               const Muster__Member *m,
                               const struct mst_member **ret, struct status *st)
{
    for (size_t i = 0; m && i < all->count; i++)
        if (all->at[i].task == m->task && !strcmp(all->at[i].job, m->job)) {
            *ret = &all->at[i];
            return MST_OK;
        }
    return status_set(st, MST_INTERNAL, "The answer has no index");
}

enum mst_code mst_cluster_join(const char *target, const char *address,
                               const struct mst_change_opts *opts,
                               struct mst_members **ret,
                               const struct mst_member **self,
                               struct mst_error *error)
{
    Muster__JoinRequest rq = MUSTER__JOIN_REQUEST__INIT;
    struct cluster_call call = { .target = target,
                                 .path = CLUSTER_CALL_PATH(Join),
                                 .request = &rq.base,
                                 .answers =
                                     &muster__join_response__descriptor };
    struct mst_members *all;
    Muster__JoinResponse *r;
    enum mst_code rc;

    rq.job = (char *)job_of(opts);
    rq.address = spec_parse_squeeze(address);
    rc = cluster_call_one(&call, timeout_of(opts ? opts->timeout_ms : 0));
    mem_free(rq.address);
    if (rc)
        return error_tell(error, &call.status);
    r = call.answer;
    all = box(r->members, r->n_members, 0, 0);
    rc = find_self(all, r->member, self, &call.status);
    control_free(r);
    if (rc) {
        mst_members_free(all);
        return error_tell(error, &call.status);
    }
    *ret = all;
    return MST_OK;
}

enum mst_code mst_cluster_list(const char *target, uint64_t timeout_ms,
                               struct mst_members **ret,
                               struct mst_error *error)
{
    Muster__ListRequest rq = MUSTER__LIST_REQUEST__INIT;
    struct cluster_call call = { .target = target,
                                 .path = CLUSTER_CALL_PATH(List),
                                 .request = &rq.base,
                                 .answers =
                                     &muster__list_response__descriptor };
    Muster__ListResponse *r;

    if (cluster_call_one(&call, timeout_of(timeout_ms)))
        return error_tell(error, &call.status);
    r = call.answer;
    *ret = box(r->members, r->n_members, r->revision, 0);
    control_free(r);
    return MST_OK;
}

/* Waits for a message with members; the last one that came, if none has. */
static enum mst_code wait_for_news(struct cluster_watch *w, const char *target,
                                   uint64_t timeout_ms,
                                   Muster__WatchResponse **ret,
                                   struct status *st)
{
    uint64_t end_ms = clock_ms() + timeout_ms;
    Muster__WatchResponse *next, *last = NULL;
    enum mst_code rc;

    do {
        rc = cluster_watch_next(w, end_ms, &next, st);
        if (rc || !next)
            break;
        control_free(last);
        last = next;
    } while (!last->n_members);
    if (!rc && !last) {
        rc = status_set(st, MST_DEADLINE_EXCEEDED, "Deadline Exceeded");
        cluster_call_explain(target, CLUSTER_CALL_PATH(Watch), timeout_ms, st);
    }
    if (rc)
        control_free(last);
    else
        *ret = last;
    return rc;
}

enum mst_code mst_cluster_watch(const char *target,
                                const struct mst_members *since,
                                uint64_t timeout_ms, struct mst_members **ret,
                                struct mst_error *error)
{
    struct cluster_watch *w = NULL;
    struct status st = STATUS_INIT;
    Muster__WatchResponse *r;
    enum mst_code rc;

    rc = cluster_watch_open(target, since ? since->revision : 0,
                            since ? since->instance : 0, &w, &st);
    if (!rc)
        rc = wait_for_news(w, target, timeout_of(timeout_ms), &r, &st);
    cluster_watch_close(w);
    if (rc)
        return error_tell(error, &st);
    *ret = box(r->members, r->n_members, r->revision, r->instance);
    control_free(r);
    return MST_OK;
}
