/* Whoever calls: operators, workers that join, scripts that call every ps. */
#include <string.h>

#include "sim.h"

static const char *const wishes[] = { "add",    "move",      "take",
                                      "remove", "remove-at", "join" };

static void issue(struct sim_world *w, struct sim_call *c)
{
    struct sim_ps *ps = &w->ps[c->ps];
    /* Clocks differ, and nothing may depend on them. */
    uint64_t now_ms = rng_next(&w->rng) % 1000;
    const char *address = sim_address(c->address);

    SIM_TRACE(w, "call %d on ps %d: %s %d %s", (int)(c - w->calls), c->ps,
              wishes[c->wish], c->task, address ? address : "");
    w->stats.calls++;
    switch (c->wish) {
    case SIM_ADD:
    case SIM_MOVE:
        membership_add(ps->ms, c, "worker", c->task, address,
                       c->wish == SIM_MOVE, now_ms);
        break;
    case SIM_TAKE:
        membership_take_over(ps->ms, c, "worker", c->task, address, c->gone,
                             now_ms);
        break;
    case SIM_REMOVE:
    case SIM_REMOVE_AT:
        membership_remove(ps->ms, c, "worker", c->task,
                          c->wish == SIM_REMOVE ? NULL : address, now_ms);
        break;
    case SIM_JOIN:
        membership_join(ps->ms, c, "worker", address, now_ms);
        break;
    }
}

/* Which indices belong to others, for sim_check_join(). */
static void note_taken(struct sim_world *w, struct sim_call *c)
{
    for (int i = 0; i < w->count; i++) {
        const struct sim_ps *ps = &w->ps[i];

        c->lives[i] = ps->ms && !ps->foreign ? ps->life : -1;
        for (int t = 0; t < SIM_TASKS && !ps->foreign; t++) {
            if (ps->disk.has[t].epoch && ps->disk.address[t] != c->address)
                c->taken |= 1ull << t;
            if (ps->flags[t] >= 0 && ps->flags[t] != c->address)
                c->flagged[i] |= 1ull << t;
        }
    }
}

struct sim_call *sim_client_call(struct sim_world *w, enum sim_wish wish,
                                 int ps, int task, int address)
{
    const struct member *m;
    struct sim_call *c;

    if (w->call_count == SIM_CALLS || !w->ps[ps].ms || w->ps[ps].foreign)
        return NULL;
    c = &w->calls[w->call_count++];
    memset(c, 0, sizeof(*c));
    c->wish = wish;
    c->ps = ps;
    c->life = w->ps[ps].life;
    c->task = task;
    c->address = address;
    m = members_get(membership_table(w->ps[ps].ms), "worker", task);
    if (m)
        c->gone = m->version;
    if (wish == SIM_JOIN)
        note_taken(w, c);
    else if (wish != SIM_ADD && task >= 0)
        w->tampered |= 1ull << task;
    issue(w, c);
    return c;
}

static enum sim_wish choose(struct sim_world *w)
{
    int n = sim_rnd(w, 100);

    if (n < 40 || (w->gentle && n < 70))
        return SIM_ADD;
    if (n < 70 || w->gentle)
        return SIM_JOIN;
    if (n < 84)
        return n < 77 ? SIM_MOVE : SIM_TAKE;
    return n < 95 ? SIM_REMOVE : SIM_REMOVE_AT;
}

void sim_client_step(struct sim_world *w)
{
    enum sim_wish wish = choose(w);
    int task = sim_rnd(w, 7), address = sim_rnd(w, SIM_ADDRESSES);
    int ps = wish == SIM_JOIN && sim_rnd(w, 30) ? 0 : sim_rnd(w, w->count);

    if (w->call_count > SIM_CALLS / 2)
        return;
    if (w->call_count && sim_rnd(w, 100) < 25) {
        const struct sim_call *old = &w->calls[sim_rnd(w, w->call_count)];

        wish = old->wish;
        task = old->task;
        address = old->address;
        ps = wish == SIM_JOIN ? 0 : ps;
    } else if (wish != SIM_JOIN && sim_rnd(w, 100) < 4) {
        task = -1;
    }
    if (wish != SIM_JOIN && sim_rnd(w, 100) < 15) {
        for (int i = 0; i < w->count; i++)
            sim_client_call(w, wish, i, task, address);
        return;
    }
    sim_client_call(w, wish, ps, task, address);
    /* Whoever sees that one is gone may not be alone. */
    if (wish == SIM_TAKE && sim_rnd(w, 2))
        sim_client_call(w, wish, ps, task, sim_rnd(w, SIM_ADDRESSES));
}

/* ---- answers ---- */

/* An answer of success says what the table says. */
static void check_ok(struct sim_ps *ps, struct sim_call *c,
                     const struct membership_answer *a)
{
    struct sim_world *w = ps->world;
    const struct member *m;
    bool present = c->wish != SIM_REMOVE && c->wish != SIM_REMOVE_AT;

    c->got = a->member->task;
    c->version = a->member->version;
    m = members_get(membership_table(ps->ms), "worker", c->got);
    if (m != a->member || (c->wish != SIM_JOIN && c->got != c->task) ||
        !m->version.epoch || present != !!m->address ||
        (present && strcmp(m->address, sim_address(c->address))))
        sim_fail(w, "call %d was answered with another entry",
                 (int)(c - w->calls));
    if (sim_newer(m->version, ps->disk.has[c->got]))
        sim_fail(w, "call %d was acknowledged before its entry was on disk",
                 (int)(c - w->calls));
    w->stats.acknowledged++;
    if (c->wish == SIM_JOIN)
        sim_check_join(ps, c);
}

/* Which errors there may be. */
static void check_error(struct sim_ps *ps, const struct sim_call *c)
{
    struct sim_world *w = ps->world;
    bool expected = false;

    switch (c->code) {
    case MST_INVALID_ARGUMENT:
        expected = c->task < 0 && c->wish != SIM_JOIN;
        break;
    case MST_ALREADY_EXISTS:
        expected = c->wish <= SIM_TAKE;
        break;
    case MST_NOT_FOUND:
        expected = c->wish == SIM_REMOVE || c->wish == SIM_REMOVE_AT;
        break;
    case MST_FAILED_PRECONDITION:
        expected = c->wish == SIM_REMOVE_AT || (c->wish == SIM_JOIN && c->ps);
        break;
    case MST_ABORTED:
        expected = c->wish != SIM_JOIN;
        w->stats.aborted++;
        break;
    case MST_UNAVAILABLE:
        expected = c->wish == SIM_JOIN;
        break;
    case MST_RESOURCE_EXHAUSTED:
        expected = ps->disk.was_full;
        break;
    default:
        break;
    }
    if (!expected)
        sim_fail(w, "call %d was answered %s", (int)(c - w->calls),
                 status_name(c->code));
}

void sim_client_answer(struct sim_ps *ps, struct sim_call *c,
                       const struct membership_answer *a)
{
    struct sim_world *w = ps->world;

    SIM_TRACE(w, "call %d: %s%s%s, task %d, %s; %d reached, %d missed",
              (int)(c - w->calls), status_name(a->status.code),
              a->status.code ? ": " : "", a->status.msg,
              a->member ? a->member->task : -1,
              a->changed ? "changed" : "as it was", a->reached_count,
              a->missed_count);
    if (c->answers++ || c->ps != ps->number || c->life != ps->life)
        sim_fail(w, "call %d was answered twice", (int)(c - w->calls));
    c->code = a->status.code;
    c->changed = a->changed;
    if (c->code) {
        if (a->member || a->changed)
            sim_fail(w, "call %d failed with an entry", (int)(c - w->calls));
        check_error(ps, c);
    } else {
        check_ok(ps, c, a);
    }
}

void sim_client_crash(struct sim_ps *ps)
{
    struct sim_world *w = ps->world;

    for (struct sim_call *c = w->calls; c < w->calls + w->call_count; c++)
        if (c->ps == ps->number && c->life == ps->life && !c->answers)
            c->crashed = true;
}
