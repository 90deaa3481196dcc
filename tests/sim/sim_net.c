/*
 * Messages between the parameter servers. A request may be lost, may come
 * twice or late (after its sender gave up, after its receiver was started
 * again), and its answer may be lost after it had its effect.
 */
#include <string.h>

#include "sim.h"

void sim_net_init(struct sim_world *w)
{
    w->packet_count = 0;
    w->free_count = SIM_PACKETS;
    for (int i = 0; i < SIM_PACKETS; i++)
        w->free[i] = i;
}

static struct sim_packet *packet_new(struct sim_world *w)
{
    int at;

    if (!w->free_count)
        sim_fail(w, "too many messages at once");
    at = w->free[--w->free_count];
    w->live[w->packet_count++] = at;
    return &w->packets[at];
}

static void packet_copy(struct sim_packet *to, const struct sim_packet *from)
{
    memcpy(to, from, offsetof(struct sim_packet, list));
    to->list.count = from->list.count;
    memcpy(to->list.e, from->list.e,
           (size_t)from->list.count * sizeof(from->list.e[0]));
}

void sim_net_send(struct sim_ps *from, int to, const struct membership_msg *msg,
                  uint64_t ticket)
{
    struct sim_world *w = from->world;
    struct sim_packet *p = packet_new(w);

    p->kind = SIM_REQUEST;
    p->from = from->number;
    p->life = from->life;
    p->to = to;
    p->ticket = ticket;
    p->ghost = false;
    p->code = MST_OK;
    p->sync = msg->sync;
    p->digest = msg->digest;
    sim_list_of(w, &p->list, msg->members, msg->count);
    w->stats.messages++;
    SIM_TRACE(w, "ps %d tells ps %d: %s, %d entries (%llu)", p->from, to,
              msg->sync ? "digest" : "news", p->list.count,
              (unsigned long long)ticket);
}

/* The asker hears that it did not work. */
static void answer_no(struct sim_world *w, const struct sim_packet *asked,
                      enum mst_code code)
{
    struct sim_packet *p = packet_new(w);

    memcpy(p, asked, offsetof(struct sim_packet, list));
    p->list.count = 0;
    p->kind = SIM_ANSWER;
    p->code = code;
}

void sim_net_reply(struct sim_ps *ps, struct sim_exchange *x,
                   const struct membership_msg *msg, const struct status *st)
{
    struct sim_world *w = ps->world;
    struct sim_packet *p;

    if (!x->used || x->to != ps->number)
        sim_fail(w, "ps %d answers what it was not asked", ps->number);
    x->used = false;
    if (x->ghost)
        return;
    p = packet_new(w);
    p->kind = SIM_ANSWER;
    p->from = x->from;
    p->life = x->life;
    p->to = x->to;
    p->ticket = x->ticket;
    p->ghost = false;
    p->code = st->code;
    p->sync = msg->sync;
    p->digest = msg->digest;
    p->list.count = 0;
    if (!st->code)
        sim_list_of(w, &p->list, msg->members, msg->count);
    SIM_TRACE(w, "ps %d answers ps %d (%llu): %s, %d entries", p->to, p->from,
              (unsigned long long)p->ticket, status_name(p->code),
              p->list.count);
}

static size_t unpack(const struct sim_packet *p, struct member *m,
                     struct membership_msg *msg)
{
    for (int i = 0; i < p->list.count; i++)
        m[i] = sim_member(&p->list.e[i]);
    *msg = (struct membership_msg){ .sync = p->sync,
                                    .digest = p->digest,
                                    .members = m,
                                    .count = (size_t)p->list.count };
    return msg->count;
}

static void deliver(struct sim_world *w, const struct sim_packet *p)
{
    struct sim_exchange *x = w->exchanges;
    struct sim_ps *to = &w->ps[p->to];
    struct member m[SIM_TASKS];
    struct membership_msg msg;

    while (x->used)
        if (++x == w->exchanges + SIM_EXCHANGES)
            sim_fail(w, "too many exchanges at once");
    *x = (struct sim_exchange){ .used = true,
                                .ghost = p->ghost,
                                .from = p->from,
                                .life = p->life,
                                .to = p->to,
                                .ticket = p->ticket };
    unpack(p, m, &msg);
    membership_exchange(to->ms, x, &msg);
}

static void request_step(struct sim_world *w, struct sim_packet *p)
{
    const struct sim_ps *to = &w->ps[p->to];
    enum mst_code code = MST_OK;

    if (!p->ghost && sim_chance(w, w->twice)) {
        struct sim_packet *twin = packet_new(w);

        packet_copy(twin, p);
        twin->ghost = true;
        w->stats.twice++;
    }
    if (!p->ghost && sim_chance(w, w->late)) {
        struct sim_packet *late = packet_new(w);

        packet_copy(late, p);
        late->ghost = true;
        answer_no(w, p, MST_DEADLINE_EXCEEDED);
        return;
    }
    if (sim_chance(w, w->loss) || w->cut[p->from][p->to] || !to->ms) {
        w->stats.lost++;
        code = MST_UNAVAILABLE;
    } else if (to->foreign) {
        code = MST_UNIMPLEMENTED;
    }
    if (!code)
        deliver(w, p);
    else if (!p->ghost)
        answer_no(w, p, code);
}

static void answer_step(struct sim_world *w, struct sim_packet *p)
{
    struct sim_ps *from = &w->ps[p->from];
    struct status st = STATUS_INIT;
    struct member m[SIM_TASKS];
    struct membership_msg msg;

    if (!from->ms || from->life != p->life)
        return;
    if (!p->code && (sim_chance(w, w->loss) || w->cut[p->to][p->from])) {
        w->stats.lost++;
        p->code = MST_UNAVAILABLE;
    }
    SIM_TRACE(w, "ps %d hears from ps %d (%llu): %s", p->from, p->to,
              (unsigned long long)p->ticket, status_name(p->code));
    unpack(p, m, &msg);
    if (p->code)
        (void)!status_set(&st, p->code, "network");
    membership_sent(from->ms, p->ticket, p->code ? NULL : &msg, &st);
}

void sim_net_step(struct sim_world *w)
{
    int at = sim_rnd(w, w->packet_count), slot = w->live[at];
    struct sim_packet p;

    packet_copy(&p, &w->packets[slot]);
    w->live[at] = w->live[--w->packet_count];
    w->free[w->free_count++] = slot;
    if (p.kind == SIM_REQUEST)
        request_step(w, &p);
    else
        answer_step(w, &p);
}

void sim_net_crash(struct sim_ps *ps)
{
    struct sim_world *w = ps->world;

    for (struct sim_exchange *x = w->exchanges;
         x < w->exchanges + SIM_EXCHANGES; x++) {
        if (!x->used || x->to != ps->number)
            continue;
        x->used = false;
        if (!x->ghost)
            answer_no(w,
                      &(struct sim_packet){ .from = x->from,
                                            .life = x->life,
                                            .to = x->to,
                                            .ticket = x->ticket },
                      MST_UNAVAILABLE);
    }
}
