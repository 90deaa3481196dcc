/*
 * Between the parameter servers: what this one asks of the others and what it
 * does with their answers, what they ask of it, and the comparison at each
 * tick. The other end of every question here is membership_exchange() there.
 *
 * Two kinds of question. One tells entries, and is answered with those that are
 * newer there. The other (sync) tells a digest, and is answered with everything
 * if it differs; then the asker tells what was missing in the answer.
 *
 * What is told goes to the disk first and then to the table, so that nobody
 * hears of an entry that could still be lost. An exchange is answered after
 * that, and also not before the own writes for the same tasks have ended:
 * their entries may be newer, and then the answer has them. Otherwise two calls
 * on two ps for one task could both succeed.
 */
#include <string.h>

#include "base/mem.h"
#include "cluster/membership_state.h"

#define FOREIGN_TICKS 16 /* then a foreign ps is asked again what it is */

/* ---- asking ---- */

/* The next ps that is to be told things; -1 at the end. */
static int next_ps(const struct membership *ms, struct members_walk *at)
{
    const struct member *m;

    while ((m = members_next(&ms->table, at))) {
        if (strcmp(m->job, MEMBER_PS_JOB)) {
            at->job++; /* there may be ten thousand of them */
            at->task = 0;
        } else if (m->address && m->task != ms->opts.self &&
                   m->task < MEMBERSHIP_PS_MAX) {
            return m->task;
        }
    }
    return -1;
}

static void send(struct membership *ms, int ps, const struct membership_msg *m,
                 struct change *c)
{
    struct sending *s = MEM_NEW(struct sending);

    s->next = ms->sending;
    ms->sending = s;
    s->ticket = ++ms->ticket;
    s->ps = ps;
    s->sync = m->sync;
    s->digest = m->digest;
    s->change = c;
    if (c)
        c->outstanding++;
    ms->opts.ops->send(ms->opts.arg, ps, m, s->ticket);
}

void membership_send_all(struct membership *ms,
                         const struct membership_msg *msg, struct change *c,
                         bool foreign_too)
{
    struct members_walk at = { 0 };
    int ps;

    while ((ps = next_ps(ms, &at)) >= 0)
        if (foreign_too || !ms->foreign[ps])
            send(ms, ps, msg, c);
}

/* A comparison with that ps is under way, or what it brought is. */
static bool syncing(const struct membership *ms, int ps)
{
    for (const struct sending *s = ms->sending; s; s = s->next)
        if (s->ps == ps && s->sync)
            return true;
    for (const struct intake *in = ms->intakes; in; in = in->next)
        if (in->ps == ps)
            return true;
    return false;
}

void membership_tick(struct membership *ms)
{
    struct membership_msg msg = { .sync = true, .digest = ms->table.digest };
    bool again = ++ms->ticks % FOREIGN_TICKS == 0;
    struct members_walk at = { 0 };
    int ps;

    while ((ps = next_ps(ms, &at)) >= 0)
        if ((again || !ms->foreign[ps]) && !syncing(ms, ps))
            send(ms, ps, &msg, NULL);
}

/* ---- taking in ---- */

void intake_free(struct intake *in)
{
    batch_done(&in->entries);
    mem_free(in);
}

/* Whether a member can be taken from a peer at all. */
static bool acceptable(const struct member *m, struct status *st)
{
    if (!strcmp(m->job, MEMBER_PS_JOB)) {
        status_set(st, MST_INVALID_ARGUMENT,
                   "the parameter servers are what the flags say");
        return false;
    }
    return !member_check(m, st);
}

/* Takes what a peer told. NULL when nothing of it has to go to the disk. */
static struct intake *take_in(struct membership *ms,
                              const struct membership_msg *msg, int ps,
                              struct status *st)
{
    struct intake *in = NULL;

    for (size_t i = 0; i < msg->count; i++) {
        const struct member *m = &msg->members[i];

        if (!acceptable(m, st))
            continue;
        ms->epoch = MAX(ms->epoch, m->version.epoch);
        if (m->version.epoch == MEMBER_EPOCH_FLAGS) {
            membership_merge(ms, m);
        } else if (members_wants(&ms->table, m)) {
            if (!in)
                in = MEM_NEW(struct intake);
            batch_add(&in->entries, m);
        }
    }
    if (in) {
        in->ps = ps;
        in->ticket = ++ms->ticket;
        in->next = ms->intakes;
        ms->intakes = in;
    }
    return in;
}

void membership_learn(struct membership *ms, const struct member *m,
                      size_t count)
{
    struct status st = STATUS_INIT;

    for (size_t i = 0; i < count; i++)
        if (acceptable(&m[i], &st))
            membership_merge(ms, &m[i]);
}

/* Last of all, as its end may come at any time after it. */
static void intake_write(struct membership *ms, const struct intake *in)
{
    ms->opts.ops->write(ms->opts.arg, in->entries.m, in->entries.count,
                        in->ticket);
}

static struct status *trouble_new(const struct status *st)
{
    struct status *copy = MEM_NEW(struct status);

    status_set(copy, st->code,
               "what another ps told could not be written here: %s", st->msg);
    return copy;
}

void intake_written(struct membership *ms, struct intake *in,
                    const struct status *st)
{
    struct status *trouble = st->code ? trouble_new(st) : NULL;

    for (size_t i = 0; i < in->entries.count && !trouble; i++)
        membership_merge(ms, &in->entries.m[i]);
    if (in->exchange) {
        in->exchange->writing = false;
        if (trouble && !in->exchange->fault) {
            in->exchange->fault = trouble;
            trouble = NULL;
        }
        exchange_answer_all(ms);
    } else if (in->change) {
        if (trouble && !in->change->trouble) {
            in->change->trouble = trouble;
            trouble = NULL;
        }
        change_step(ms, in->change);
    } else if (trouble) {
        ms->opts.ops->say(ms->opts.arg, trouble->msg);
    }
    mem_free(trouble);
    intake_free(in);
}

/* ---- what others ask ---- */

void exchange_free(struct exchange *x)
{
    batch_done(&x->told);
    mem_free(x->fault);
    mem_free(x);
}

/* Everything, or what is newer than what was told. */
static void make_reply(const struct membership *ms, const struct exchange *x,
                       struct batch *reply)
{
    struct members_walk at = { 0 };
    const struct member *m;

    if (x->sync && x->digest != ms->table.digest)
        while ((m = members_next(&ms->table, &at)))
            if (strcmp(m->job, MEMBER_PS_JOB))
                batch_add(reply, m);
    for (size_t i = 0; i < x->told.count && !x->sync; i++) {
        const struct member *told = &x->told.m[i];

        m = members_get(&ms->table, told->job, told->task);
        if (m && member_version_compare(m->version, told->version) > 0)
            batch_add(reply, m);
    }
}

/* An own entry for a task of the exchange is being written. */
static bool own_write(const struct membership *ms, const struct exchange *x)
{
    for (const struct change *c = ms->changes; c; c = c->next)
        for (size_t i = 0; i < x->told.count; i++)
            if (c->state == CHANGE_WRITING && c->task == x->told.m[i].task &&
                !strcmp(c->job, x->told.m[i].job))
                return true;
    return false;
}

static void exchange_answer(struct membership *ms, struct exchange *x)
{
    struct batch reply = { 0 };
    struct membership_msg msg = { .digest = ms->table.digest };
    struct status ok = STATUS_INIT;

    if (!x->fault)
        make_reply(ms, x, &reply);
    msg.members = reply.m;
    msg.count = reply.count;
    ms->opts.ops->reply(ms->opts.arg, x->call, &msg, x->fault ? x->fault : &ok);
    batch_done(&reply);
    exchange_free(x);
}

void exchange_answer_all(struct membership *ms)
{
    struct exchange **at = &ms->exchanges, *x;

    while ((x = *at)) {
        if (x->writing || own_write(ms, x)) {
            at = &x->next;
            continue;
        }
        *at = x->next;
        exchange_answer(ms, x);
    }
}

void membership_exchange(struct membership *ms, void *call,
                         const struct membership_msg *msg)
{
    struct exchange *x = MEM_NEW(struct exchange);
    struct status st = STATUS_INIT;
    struct intake *in = take_in(ms, msg, -1, &st);

    x->call = call;
    x->sync = msg->sync;
    x->digest = msg->digest;
    for (size_t i = 0; i < msg->count; i++)
        batch_add(&x->told, &msg->members[i]);
    if (st.code)
        x->fault = mem_copy(&st, sizeof(st));
    x->next = ms->exchanges;
    ms->exchanges = x;
    if (in) {
        in->exchange = x;
        x->writing = true;
        intake_write(ms, in);
    } else {
        exchange_answer_all(ms);
    }
}

/* ---- their answers ---- */

/* The other ps told all that it knows: now tell it what it does not. */
static void tell_rest(struct membership *ms, int ps,
                      const struct membership_msg *reply)
{
    struct members_walk at = { 0 };
    const struct member *m;
    struct batch rest = { 0 };
    struct members theirs;

    members_init(&theirs);
    for (size_t i = 0; i < reply->count; i++)
        members_merge(&theirs, &reply->members[i]);
    while ((m = members_next(&ms->table, &at)))
        if (strcmp(m->job, MEMBER_PS_JOB) && members_wants(&theirs, m))
            batch_add(&rest, m);
    if (rest.count)
        send(ms, ps,
             &(struct membership_msg){ .members = rest.m, .count = rest.count },
             NULL);
    batch_done(&rest);
    members_done(&theirs);
}

static void take_reply(struct membership *ms, const struct sending *s,
                       const struct membership_msg *reply)
{
    struct status st = STATUS_INIT;
    struct intake *in = take_in(ms, reply, s->ps, &st);

    if (s->sync && reply->digest != s->digest)
        tell_rest(ms, s->ps, reply);
    if (!in)
        return;
    in->change = s->change;
    if (s->change)
        s->change->outstanding++;
    intake_write(ms, in);
}

void membership_sent(struct membership *ms, uint64_t ticket,
                     const struct membership_msg *reply,
                     const struct status *st)
{
    struct sending **at = &ms->sending, *s;

    while (*at && (*at)->ticket != ticket)
        at = &(*at)->next;
    s = *at;
    if (!s)
        return;
    *at = s->next;
    if (!st->code || st->code == MST_UNIMPLEMENTED)
        ms->foreign[s->ps] = st->code;
    if (!st->code)
        take_reply(ms, s, reply);
    if (s->change) {
        struct ps_list *l = st->code ? &s->change->missed : &s->change->reached;

        if (!ms->foreign[s->ps])
            *MEM_PUSH(l->ps, l->count, l->room) = s->ps;
        change_step(ms, s->change);
    }
    mem_free(s);
}
