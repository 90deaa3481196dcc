/*
 * The calls that change the table: add, remove and join.
 *
 *                    +------------- another took the index ----------+
 *                    v                                               |
 *   WAITING --> (ASKING, a join) --> WRITING --> TELLING --> answered
 *      |             |                  |           |
 *      +-------------+------------------+-----------+--> error
 *
 * A join first asks every ps what it knows, so that the index which it chooses
 * is one that nobody has heard of; then it tells every ps of it. Whoever got a
 * call for the same index in between has an entry with a larger version
 * (MEMBER_EPOCH_GIVEN is the smallest), answers with that, and the join goes on
 * to another index.
 */
#include <string.h>

#include "base/mem.h"
#include "cluster/membership_state.h"

static void start(struct membership *ms, struct change *c);

void change_free(struct change *c)
{
    mem_free(c->job);
    mem_free(c->address);
    mem_free(c->trouble);
    mem_free(c->reached.ps);
    mem_free(c->missed.ps);
    mem_free(c);
}

static const struct member *entry_of(const struct membership *ms,
                                     const struct change *c)
{
    return members_get(&ms->table, c->job, c->task);
}

static const struct member *find_joined(const struct membership *ms,
                                        const struct change *c)
{
    const struct member *m = members_at(&ms->table, c->address);

    return m && !strcmp(m->job, c->job) ? m : NULL;
}

/* ---- one after the other ---- */

/* Whether the change has to wait for one that is under way. */
static bool must_wait(const struct membership *ms, const struct change *c)
{
    const struct member *m;
    int task = c->task;

    if (c->kind == CHANGE_JOIN && c->address) {
        m = find_joined(ms, c);
        task = m ? m->task : -1;
    }
    for (const struct change *o = ms->changes; o; o = o->next) {
        if (o == c || o->state == CHANGE_WAITING)
            continue;
        if (task >= 0 && o->task == task && !strcmp(o->job, c->job))
            return true;
        if (c->address && o->address && !strcmp(o->address, c->address))
            return true;
    }
    return false;
}

/* Starts whatever has nothing to wait for any more. A start that ends at once
 * comes back here, and leaves the rest to the loop that is running. */
static void start_waiting(struct membership *ms)
{
    struct change *c;

    if (ms->starting)
        return;
    ms->starting = true;
    do {
        for (c = ms->changes; c; c = c->next)
            if (c->state == CHANGE_WAITING && !must_wait(ms, c))
                break;
        if (c)
            start(ms, c);
    } while (c);
    ms->starting = false;
}

static void answer(struct membership *ms, struct change *c,
                   const struct status *st)
{
    struct membership_answer a = { .changed = c->changed && !st->code,
                                   .reached = c->reached.ps,
                                   .reached_count = c->reached.count,
                                   .missed = c->missed.ps,
                                   .missed_count = c->missed.count };
    struct change **at = &ms->changes;

    status_copy(&a.status, st);
    if (!st->code)
        a.member = entry_of(ms, c);
    while (*at != c)
        at = &(*at)->next;
    *at = c->next;
    ms->opts.ops->answer(ms->opts.arg, c->call, &a);
    change_free(c);
    start_waiting(ms);
}

/* ---- what is asked for ---- */

static bool may_replace(const struct change *c, const struct member *m)
{
    return c->replace ||
           (c->takes_over && !member_version_compare(m->version, c->gone));
}

static enum mst_code check_add(struct membership *ms, const struct change *c,
                               struct status *st)
{
    const struct member *m = entry_of(ms, c);
    const struct member *other = members_at(&ms->table, c->address);

    if (m && m->address && !strcmp(m->address, c->address))
        return MST_OK;
    if (other)
        return status_set(st, MST_ALREADY_EXISTS,
                          "%s is the address of /job:%s/task:%d", c->address,
                          other->job, other->task);
    if (m && m->address && !may_replace(c, m))
        return status_set(st, MST_ALREADY_EXISTS,
                          "/job:%s/task:%d is at %s; to move it to %s while "
                          "it is alive takes `replace`",
                          m->job, m->task, m->address, c->address);
    return MST_OK;
}

static enum mst_code check_remove(struct membership *ms, const struct change *c,
                                  struct status *st)
{
    const struct member *m = entry_of(ms, c);

    if (!m)
        return status_set(st, MST_NOT_FOUND, "there is no /job:%s/task:%d",
                          c->job, c->task);
    if (c->address && m->address && strcmp(m->address, c->address))
        return status_set(st, MST_FAILED_PRECONDITION,
                          "/job:%s/task:%d is at %s, not at %s", c->job,
                          c->task, m->address, c->address);
    return MST_OK;
}

/* A number that nobody has, as far as is known here. */
static int new_task(const struct membership *ms, const struct change *c)
{
    int task = members_next_task(&ms->table, c->job);

    for (const struct change *o = ms->changes; o; o = o->next)
        if (o != c && o->state == CHANGE_WRITING && o->task >= task &&
            !strcmp(o->job, c->job))
            task = o->task + 1;
    return task;
}

/* Finds the number for whoever is at the address; leaves it at -1 when others
 * have to be asked first. */
static enum mst_code check_join(struct membership *ms, struct change *c,
                                struct status *st)
{
    const struct member *other = members_at(&ms->table, c->address);
    const struct member *m = find_joined(ms, c);

    c->task = -1;
    if (ms->opts.self != 0)
        return status_set(st, MST_FAILED_PRECONDITION,
                          "it is ps 0 that gives the indices, and this is "
                          "ps %d",
                          ms->opts.self);
    if (other && !m)
        return status_set(st, MST_ALREADY_EXISTS,
                          "%s is the address of /job:%s/task:%d", c->address,
                          other->job, other->task);
    if (m)
        c->task = m->task;
    else if (c->asked)
        c->task = new_task(ms, c);
    if (c->task > MEMBER_TASK_MAX)
        return status_set(st, MST_RESOURCE_EXHAUSTED,
                          "job \"%s\" has no number left", c->job);
    return MST_OK;
}

static enum mst_code check(struct membership *ms, struct change *c,
                           struct status *st)
{
    struct member m = { .job = c->job,
                        .task = c->kind == CHANGE_JOIN ? 0 : c->task,
                        .address = c->address };

    if (!c->address && c->kind != CHANGE_REMOVE)
        return status_set(st, MST_INVALID_ARGUMENT, "an address is needed");
    if (member_check(&m, st))
        return st->code;
    if (!strcmp(c->job, MEMBER_PS_JOB))
        return status_set(st, MST_INVALID_ARGUMENT,
                          "the parameter servers of a job do not change while "
                          "it runs");
    switch (c->kind) {
    case CHANGE_ADD:
        return check_add(ms, c, st);
    case CHANGE_REMOVE:
        return check_remove(ms, c, st);
    case CHANGE_JOIN:
        return check_join(ms, c, st);
    }
    return MST_OK;
}

/* Whether the table says what the change wants it to. */
static bool stands(const struct member *m, const struct change *c)
{
    if (!m || m->version.epoch == MEMBER_EPOCH_FLAGS)
        return false;
    if (c->kind == CHANGE_REMOVE)
        return !m->address;
    return m->address && !strcmp(m->address, c->address);
}

/* ---- the way of a change ---- */

static void missing(struct change *c, struct status *st)
{
    status_set(st, MST_UNAVAILABLE,
               "ps %d cannot be reached: an index is given when every "
               "parameter server has agreed to it",
               c->missed.ps[0]);
}

/* Every ps has said what it knows, or was not to be reached. */
static void was_asked(struct membership *ms, struct change *c)
{
    struct status st = STATUS_INIT;

    if (c->trouble) {
        answer(ms, c, c->trouble);
        return;
    }
    if (c->missed.count) {
        missing(c, &st);
        answer(ms, c, &st);
        return;
    }
    c->asked = true;
    start(ms, c);
}

static void ask(struct membership *ms, struct change *c)
{
    struct membership_msg msg = { .sync = true, .digest = ms->table.digest };

    c->state = CHANGE_ASKING;
    membership_send_all(ms, &msg, c, true);
    if (!c->outstanding)
        was_asked(ms, c);
}

/* Every ps has it, or was not to be reached. */
static void was_told(struct membership *ms, struct change *c)
{
    const struct member *m = entry_of(ms, c);
    bool holds = !member_version_compare(m->version, c->version);
    struct status st = STATUS_INIT;

    if (c->trouble) {
        answer(ms, c, c->trouble);
        return;
    }
    /* Another call may have had the same wish. */
    if (!holds && !stands(m, c)) {
        if (c->kind == CHANGE_JOIN) {
            c->changed = false;
            start(ms, c);
            return;
        }
        status_set(&st, MST_ABORTED,
                   "/job:%s/task:%d was %s%s by another call at the same time",
                   c->job, c->task, m->address ? "set to " : "",
                   m->address ? m->address : "removed");
    } else if (c->kind == CHANGE_JOIN && c->missed.count) {
        missing(c, &st);
    }
    answer(ms, c, &st);
}

/* A join is told also to those that were foreign when they were last asked. */
static void tell(struct membership *ms, struct change *c)
{
    struct membership_msg msg = { .members = entry_of(ms, c), .count = 1 };

    c->state = CHANGE_TELLING;
    membership_send_all(ms, &msg, c, c->kind == CHANGE_JOIN);
    if (!c->outstanding)
        was_told(ms, c);
}

void change_step(struct membership *ms, struct change *c)
{
    if (--c->outstanding)
        return;
    if (c->state == CHANGE_ASKING)
        was_asked(ms, c);
    else
        was_told(ms, c);
}

static struct member entry_for(const struct change *c)
{
    return (struct member){ .job = c->job,
                            .task = c->task,
                            .address =
                                c->kind == CHANGE_REMOVE ? NULL : c->address,
                            .version = c->version,
                            .since_ms = c->now_ms };
}

static void start(struct membership *ms, struct change *c)
{
    struct status st = STATUS_INIT;
    const struct member *m;
    struct member entry;

    c->state = CHANGE_WAITING;
    c->reached.count = c->missed.count = 0;
    if (must_wait(ms, c))
        return;
    if (check(ms, c, &st)) {
        answer(ms, c, &st);
        return;
    }
    if (c->task < 0) {
        ask(ms, c);
        return;
    }
    m = entry_of(ms, c);
    if (stands(m, c)) {
        c->version = m->version;
        tell(ms, c);
        return;
    }
    c->version.epoch =
        c->kind == CHANGE_JOIN ? MEMBER_EPOCH_GIVEN : ++ms->epoch;
    c->version.origin = ms->opts.origin;
    c->state = CHANGE_WRITING;
    c->ticket = ++ms->ticket;
    entry = entry_for(c);
    ms->opts.ops->write(ms->opts.arg, &entry, 1, c->ticket);
}

void change_written(struct membership *ms, struct change *c,
                    const struct status *st)
{
    struct member entry = entry_for(c);

    if (st->code) {
        answer(ms, c, st);
    } else {
        /* Not, if a newer one came from elsewhere in the meantime. */
        c->changed = membership_merge(ms, &entry);
        tell(ms, c);
    }
    exchange_answer_all(ms);
}

/* ---- the calls ---- */

static void change_new(struct membership *ms, const struct change *is)
{
    struct change *c = MEM_NEW(struct change), **at = &ms->changes;

    *c = *is;
    c->job = mem_str(is->job);
    c->address = is->address ? mem_str(is->address) : NULL;
    while (*at)
        at = &(*at)->next;
    *at = c;
    start(ms, c);
}

void membership_add(struct membership *ms, void *call, const char *job,
                    int task, const char *address, bool replace,
                    uint64_t now_ms)
{
    change_new(ms, &(struct change){ .kind = CHANGE_ADD,
                                     .call = call,
                                     .job = (char *)job,
                                     .task = task,
                                     .address = (char *)address,
                                     .replace = replace,
                                     .now_ms = now_ms });
}

void membership_take_over(struct membership *ms, void *call, const char *job,
                          int task, const char *address,
                          struct member_version gone, uint64_t now_ms)
{
    change_new(ms, &(struct change){ .kind = CHANGE_ADD,
                                     .call = call,
                                     .job = (char *)job,
                                     .task = task,
                                     .address = (char *)address,
                                     .takes_over = true,
                                     .gone = gone,
                                     .now_ms = now_ms });
}

void membership_remove(struct membership *ms, void *call, const char *job,
                       int task, const char *address, uint64_t now_ms)
{
    change_new(ms, &(struct change){ .kind = CHANGE_REMOVE,
                                     .call = call,
                                     .job = (char *)job,
                                     .task = task,
                                     .address = (char *)address,
                                     .now_ms = now_ms });
}

void membership_join(struct membership *ms, void *call, const char *job,
                     const char *address, uint64_t now_ms)
{
    change_new(ms, &(struct change){ .kind = CHANGE_JOIN,
                                     .call = call,
                                     .job = (char *)job,
                                     .task = -1,
                                     .address = (char *)address,
                                     .now_ms = now_ms });
}
