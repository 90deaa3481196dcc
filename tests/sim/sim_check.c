/*
 * The oracle: what has to hold after every step, at every start, for every
 * answer, and when all has come to rest.
 */
#include <string.h>

#include "base/mem.h"
#include "sim.h"

/* ---- all the time ---- */

static void check_failed(const struct sim_ps *ps, const struct sim_entry *e)
{
    const struct sim_world *w = ps->world;

    for (int i = 0; i < w->failed_count; i++)
        if (w->failed[i].task == e->task &&
            !member_version_compare(w->failed[i].version, e->version))
            sim_fail(w, "ps %d has %s, the write of which failed", ps->number,
                     sim_text(e));
}

/* One version of a task has one content, wherever it is. */
static void check_content(const struct sim_ps *ps, const struct sim_entry *e)
{
    struct sim_world *w = ps->world;

    for (int i = 0; i < w->count; i++) {
        const struct member *m =
            w->ps[i].ms
                ? members_get(membership_table(w->ps[i].ms), "worker", e->task)
                : NULL;

        if (m && !member_version_compare(m->version, e->version) &&
            sim_entry_of(w, m).address != e->address)
            sim_fail(w, "ps %d and ps %d have %s with different contents",
                     ps->number, i, sim_text(e));
    }
}

void sim_check_table(struct sim_ps *ps)
{
    const struct members *t = membership_table(ps->ms);
    struct sim_world *w = ps->world;
    struct members_walk at = { 0 };
    const struct member *m;
    int present = 0;
    uint64_t there = 0;

    if (t->revision == ps->revision)
        return;
    ps->revision = t->revision;
    while ((m = members_next(t, &at))) {
        struct sim_entry e;

        present += m->address != NULL;
        if (m->version.epoch > t->epoch)
            sim_fail(w, "ps %d: an entry is newer than its epoch", ps->number);
        if (m->job[0] != 'w')
            continue;
        e = sim_entry_of(w, m);
        there |= 1ull << e.task;
        if (sim_newer(ps->seen[e.task], e.version))
            sim_fail(w, "ps %d went back to %s", ps->number, sim_text(&e));
        if (!sim_newer(e.version, ps->seen[e.task]))
            continue;
        ps->seen[e.task] = e.version;
        w->used |= 1ull << e.task;
        check_failed(ps, &e);
        check_content(ps, &e);
    }
    for (int i = 0; i < SIM_TASKS; i++)
        if (ps->seen[i].epoch && !(there >> i & 1))
            sim_fail(w, "ps %d has forgotten task %d", ps->number, i);
    if (present != t->present)
        sim_fail(w, "ps %d counts %d present, there are %d", ps->number,
                 t->present, present);
}

void sim_check_told(struct sim_ps *ps, const struct membership_msg *msg)
{
    for (size_t i = 0; i < msg->count; i++) {
        const struct member *m = &msg->members[i];

        if (m->job[0] == 'w' && m->version.epoch &&
            sim_newer(m->version, ps->disk.has[m->task]))
            sim_fail(ps->world, "ps %d tells of task %d before it is on disk",
                     ps->number, m->task);
    }
}

/* What was in the table, and what was on disk for certain, is there again. */
void sim_check_started(struct sim_ps *ps)
{
    const struct members *t = membership_table(ps->ms);

    for (int i = 0; i < SIM_TASKS; i++) {
        const struct member *m = members_get(t, "worker", i);
        struct member_version none = { 0, 0 };
        struct member_version is = m ? m->version : none;

        if (sim_newer(ps->disk.has[i], is))
            sim_fail(ps->world, "ps %d has lost task %d of its disk",
                     ps->number, i);
        /* What came through a crash stays from now on. */
        ps->disk.has[i] = is.epoch ? is : none;
        ps->disk.address[i] = m ? sim_entry_of(ps->world, m).address : -1;
    }
    sim_check_table(ps);
}

/* ---- joins ---- */

/* Whether it was the join that chose the index: nobody ever named both. */
static bool was_given(const struct sim_world *w, const struct sim_call *join)
{
    for (const struct sim_call *c = w->calls; c < w->calls + w->call_count; c++)
        if (c->task == join->got && c->address == join->address &&
            c->wish <= SIM_TAKE)
            return false;
    return !(w->flagged[join->got] >> join->address & 1);
}

void sim_check_join(struct sim_ps *ps, struct sim_call *c)
{
    struct sim_world *w = ps->world;

    w->stats.joins++;
    if (ps->number)
        sim_fail(w, "ps %d gave an index", ps->number);
    if (!was_given(w, c) || w->strangers)
        return;
    for (int i = 0; i < w->count; i++) {
        const struct sim_ps *o = &w->ps[i];

        if (!o->foreign && sim_newer(c->version, o->disk.has[c->got]))
            sim_fail(w, "index %d was given, but ps %d has it not on disk",
                     c->got, i);
        if (o->ms && o->life == c->lives[i] && c->changed &&
            c->flagged[i] >> c->got & 1)
            sim_fail(w,
                     "index %d was given, but is another's in the flags of "
                     "ps %d",
                     c->got, i);
    }
    if (c->taken >> c->got & 1)
        sim_fail(w, "index %d was given, but was somebody's", c->got);
}

/* Nobody else ever got the index of a join, unless somebody wished so. */
static void check_exclusive(struct sim_world *w, const struct sim_call *join)
{
    for (const struct sim_call *c = w->calls; c < w->calls + w->call_count; c++)
        if (c->answers && !c->code && c->got == join->got &&
            c->address != join->address)
            sim_fail(w, "call %d and call %d both got index %d",
                     (int)(join - w->calls), (int)(c - w->calls), c->got);
}

/* One that is gone is replaced by one, unless the index was free between. */
static void check_taken(struct sim_world *w, const struct sim_call *take)
{
    const struct sim_call *c, *twice = NULL;

    for (c = w->calls; c < w->calls + w->call_count; c++) {
        if (c->task != take->task)
            continue;
        if (c->wish == SIM_REMOVE || c->wish == SIM_REMOVE_AT)
            return;
        if (c != take && c->wish == SIM_TAKE && c->ps == take->ps &&
            c->life == take->life && c->answers && !c->code && c->changed &&
            !member_version_compare(c->gone, take->gone))
            twice = c;
    }
    if (twice)
        sim_fail(w, "call %d and call %d both took over task %d",
                 (int)(take - w->calls), (int)(twice - w->calls), take->task);
}

void sim_check_calls(struct sim_world *w)
{
    const struct members *t = membership_table(w->ps[0].ms);

    for (struct sim_call *c = w->calls; c < w->calls + w->call_count; c++) {
        const struct member *m;

        if (!c->answers && !c->crashed)
            sim_fail(w, "call %d was never answered", (int)(c - w->calls));
        if (!c->answers || c->code)
            continue;
        m = members_get(t, "worker", c->got);
        if (!m || sim_newer(c->version, m->version))
            sim_fail(w, "call %d was acknowledged, and its entry is lost",
                     (int)(c - w->calls));
        if (c->wish == SIM_TAKE && c->changed)
            check_taken(w, c);
        if (c->wish == SIM_JOIN && !w->strangers && was_given(w, c) &&
            !(w->tampered >> c->got & 1))
            check_exclusive(w, c);
    }
}

/* ---- at the end ---- */

/* The digest, made from the entries in another order. */
static uint64_t digest_of(const struct members *t)
{
    struct members_walk at = { 0 };
    const struct member *m, *all[SIM_TASKS + SIM_PS];
    struct members copy;
    uint64_t digest;
    int n = 0;

    while ((m = members_next(t, &at)))
        all[n++] = m;
    members_init(&copy);
    while (n)
        members_merge(&copy, all[--n]);
    digest = copy.digest;
    members_done(&copy);
    return digest;
}

void sim_check_equal(struct sim_world *w)
{
    const struct members *first = membership_table(w->ps[0].ms);

    if (digest_of(first) != first->digest)
        sim_fail(w, "the digest is not of the entries");
    for (int i = 1; i < w->count; i++) {
        const struct members *t = membership_table(w->ps[i].ms);

        if (w->ps[i].foreign)
            continue;
        for (int k = 0; k < SIM_TASKS; k++) {
            const struct member *a = members_get(first, "worker", k);
            const struct member *b = members_get(t, "worker", k);

            if (!a != !b ||
                (a && member_version_compare(a->version, b->version)))
                sim_fail(w, "ps 0 and ps %d differ in task %d", i, k);
        }
        if (t->digest != first->digest)
            sim_fail(w, "ps 0 and ps %d have different digests", i);
    }
}
