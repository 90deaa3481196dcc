/* Starting and crashing a ps, and what its state machine asks for. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim.h"

/* ---- common ---- */

void sim_say(const struct sim_world *w, const char *fmt, ...)
{
    va_list args;

    printf("%4d  ", w->steps);
    va_start(args, fmt);
    vprintf(fmt, args);
    va_end(args);
    putchar('\n');
}

void sim_fail(const struct sim_world *w, const char *fmt, ...)
{
    va_list args;

    fflush(stdout);
    fprintf(stderr, "membership_sim: seed %llu: ", (unsigned long long)w->seed);
    va_start(args, fmt);
    vfprintf(stderr, fmt, args);
    va_end(args);
    fprintf(stderr, "\nto see it: membership_sim --seed=%llu --trace\n",
            (unsigned long long)w->seed);
    exit(1);
}

static const char *const addresses[SIM_ADDRESSES] = {
    "a0:1", "a1:1", "a2:1", "a3:1", "a4:1",
    "a5:1", "a6:1", "a7:1", "a8:1", "a9:1",
};

const char *sim_address(int number)
{
    return number < 0 ? NULL : addresses[number];
}

struct sim_entry sim_entry_of(const struct sim_world *w, const struct member *m)
{
    if (m->task < 0 || m->task >= SIM_TASKS)
        sim_fail(w, "task %d is out of all bounds", m->task);
    return (struct sim_entry){ .task = m->task,
                               .address = m->address ? m->address[1] - '0' : -1,
                               .version = m->version,
                               .since_ms = m->since_ms };
}

struct member sim_member(const struct sim_entry *e)
{
    return (struct member){ .job = "worker",
                            .task = e->task,
                            .address = sim_address(e->address),
                            .version = e->version,
                            .since_ms = e->since_ms };
}

/* Leaves out the parameter servers. */
void sim_list_of(const struct sim_world *w, struct sim_list *list,
                 const struct member *m, size_t count)
{
    list->count = 0;
    for (size_t i = 0; i < count; i++) {
        if (m[i].job[0] != 'w')
            continue;
        if (list->count == SIM_TASKS)
            sim_fail(w, "a list of more than all tasks");
        list->e[list->count++] = sim_entry_of(w, &m[i]);
    }
}

const char *sim_text(const struct sim_entry *e)
{
    static char texts[4][64];
    static unsigned next;
    char *text = texts[next++ % 4];

    snprintf(text, sizeof(texts[0]), "%d=%s (%llu.%llx)", e->task,
             e->address < 0 ? "removed" : sim_address(e->address),
             (unsigned long long)e->version.epoch,
             (unsigned long long)e->version.origin);
    return text;
}

/* ---- the surroundings ---- */

static void on_write(void *arg, const struct member *m, size_t count,
                     uint64_t ticket)
{
    sim_disk_write(arg, m, count, ticket);
}

static void on_send(void *arg, int to, const struct membership_msg *msg,
                    uint64_t ticket)
{
    sim_check_told(arg, msg);
    sim_net_send(arg, to, msg, ticket);
}

static void on_answer(void *arg, void *call, const struct membership_answer *a)
{
    sim_client_answer(arg, call, a);
}

static void on_reply(void *arg, void *call, const struct membership_msg *msg,
                     const struct status *st)
{
    if (!st->code)
        sim_check_told(arg, msg);
    sim_net_reply(arg, call, msg, st);
}

static void on_changed(void *arg, const struct member *m)
{
    struct sim_ps *ps = arg;

    if (UNLIKELY(ps->world->trace)) {
        struct sim_entry e = sim_entry_of(ps->world, m);

        sim_say(ps->world, "ps %d has %s", ps->number, sim_text(&e));
    }
}

static void on_say(void *arg, const char *text)
{
    struct sim_ps *ps = arg;

    SIM_TRACE(ps->world, "ps %d says: %s", ps->number, text);
}

static const struct membership_ops ops = { on_write, on_send,    on_answer,
                                           on_reply, on_changed, on_say };

/* ---- life and death ---- */

static void flag(struct sim_ps *ps, struct cluster_spec *spec, const char *job,
                 int task, const char *address)
{
    struct status st;

    if (cluster_spec_add(spec, job, task, address, &st))
        sim_fail(ps->world, "flags: %s", st.msg);
    if (*job == 'w') {
        ps->flags[task] = address[1] - '0';
        ps->world->flagged[task] |= 1u << ps->flags[task];
    }
}

/* The old list, a longer one, or one that says something else. */
static void make_flags(struct sim_ps *ps, struct cluster_spec *spec)
{
    static const char *const hosts[SIM_PS] = { "p0:1", "p1:1", "p2:1", "p3:1",
                                               "p4:1" };
    struct sim_world *w = ps->world;
    int workers = 2, shift = 0;

    if (sim_chance(w, 25))
        workers = sim_rnd(w, 5);
    if (sim_chance(w, 10))
        shift = sim_rnd(w, SIM_ADDRESSES);
    cluster_spec_init(spec);
    memset(ps->flags, -1, sizeof(ps->flags));
    for (int i = 0; i < w->count; i++)
        flag(ps, spec, "ps", i, hosts[i]);
    for (int i = 0; i < workers; i++)
        flag(ps, spec, "worker", i, sim_address((i + shift) % SIM_ADDRESSES));
    SIM_TRACE(w, "ps %d starts, %d workers from a%d in its flags", ps->number,
              workers, shift);
}

void sim_ps_start(struct sim_ps *ps)
{
    struct sim_world *w = ps->world;
    struct membership_opts opts = { .self = ps->number,
                                    .ops = &ops,
                                    .arg = ps };
    struct members journal;
    struct cluster_spec spec;

    ps->life++;
    ps->revision = 0;
    /* Which of two starts has the larger one is chance. */
    opts.origin = ps->origin = rng_next(&w->rng) >> 48 << 16 |
                               (uint64_t)(ps->life * SIM_PS + ps->number);
    make_flags(ps, &spec);
    ps->ms = membership_new(&opts);
    membership_flags(ps->ms, &spec, rng_next(&w->rng) % 1000);
    cluster_spec_done(&spec);
    members_init(&journal);
    sim_disk_mount(ps, &journal);
    membership_restore(ps->ms, &journal);
    members_done(&journal);
    sim_check_started(ps);
}

void sim_ps_crash(struct sim_ps *ps)
{
    SIM_TRACE(ps->world, "ps %d crashes", ps->number);
    ps->world->stats.crashes++;
    membership_free(ps->ms);
    ps->ms = NULL;
    sim_net_crash(ps);
    sim_client_crash(ps);
    sim_disk_crash(ps);
}
