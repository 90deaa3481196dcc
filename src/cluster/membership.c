#include "cluster/membership.h"

#include <string.h>

#include "base/mem.h"
#include "cluster/membership_state.h"

void batch_add(struct batch *b, const struct member *m)
{
    struct member *copy = MEM_PUSH(b->m, b->count, b->room);

    *copy = *m;
    copy->job = mem_str(m->job);
    copy->address = m->address ? mem_str(m->address) : NULL;
}

void batch_done(struct batch *b)
{
    for (size_t i = 0; i < b->count; i++) {
        mem_free((char *)b->m[i].job);
        mem_free((char *)b->m[i].address);
    }
    mem_free(b->m);
    *b = (struct batch){ 0 };
}

struct membership *membership_new(const struct membership_opts *opts)
{
    struct membership *ms = MEM_NEW(struct membership);

    ms->opts = *opts;
    ms->epoch = MEMBER_EPOCH_GIVEN;
    members_init(&ms->table);
    return ms;
}

void membership_free(struct membership *ms)
{
    struct change *c, *next_c;
    struct exchange *x, *next_x;
    struct intake *in, *next_in;
    struct sending *s, *next_s;

    if (!ms)
        return;
    for (c = ms->changes; c; c = next_c) {
        next_c = c->next;
        change_free(c);
    }
    for (x = ms->exchanges; x; x = next_x) {
        next_x = x->next;
        exchange_free(x);
    }
    for (in = ms->intakes; in; in = next_in) {
        next_in = in->next;
        intake_free(in);
    }
    for (s = ms->sending; s; s = next_s) {
        next_s = s->next;
        mem_free(s);
    }
    members_done(&ms->table);
    mem_free(ms);
}

const struct members *membership_table(const struct membership *ms)
{
    return &ms->table;
}

bool membership_merge(struct membership *ms, const struct member *m)
{
    if (!members_merge(&ms->table, m))
        return false;
    ms->epoch = MAX(ms->epoch, ms->table.epoch);
    ms->opts.ops->changed(ms->opts.arg,
                          members_get(&ms->table, m->job, m->task));
    return true;
}

void membership_flags(struct membership *ms, const struct cluster_spec *spec,
                      uint64_t now_ms)
{
    for (int j = 0; j < spec->count; j++)
        for (int i = 0; i < spec->jobs[j].count; i++)
            members_merge(
                &ms->table,
                &(struct member){ .job = spec->jobs[j].name,
                                  .task = spec->jobs[j].tasks[i].index,
                                  .address = spec->jobs[j].tasks[i].address,
                                  .since_ms = now_ms });
}

/* The flags and the journal differ: whoever started this should know. */
static void say_conflict(struct membership *ms, const struct member *flag,
                         const struct member *m)
{
    char *text =
        mem_printf("/job:%s/task:%d is %s in the flags, but the "
                   "journal has it %s%s, which is newer and holds",
                   m->job, m->task, flag->address, m->address ? "at " : "",
                   m->address ? m->address : "removed");

    ms->opts.ops->say(ms->opts.arg, text);
    mem_free(text);
}

void membership_restore(struct membership *ms, const struct members *journal)
{
    struct members_walk at = { 0 };
    const struct member *m, *flag;

    while ((m = members_next(journal, &at))) {
        if (!strcmp(m->job, MEMBER_PS_JOB))
            continue; /* they are what the flags say */
        flag = members_get(&ms->table, m->job, m->task);
        if (flag && flag->address &&
            (!m->address || strcmp(m->address, flag->address)))
            say_conflict(ms, flag, m);
        membership_merge(ms, m);
    }
}

void membership_written(struct membership *ms, uint64_t ticket,
                        const struct status *st)
{
    for (struct change *c = ms->changes; c; c = c->next)
        if (c->state == CHANGE_WRITING && c->ticket == ticket) {
            change_written(ms, c, st);
            return;
        }
    for (struct intake **at = &ms->intakes, *in; (in = *at); at = &in->next)
        if (in->ticket == ticket) {
            *at = in->next;
            intake_written(ms, in, st);
            return;
        }
}
