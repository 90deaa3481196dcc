/*
 * What the tests of the membership share: up to three of them, with a network
 * and disks that do what a test says. tests/sim does the same by chance.
 */
#ifndef CLUSTER_MEMBERSHIP_TEST_H
#define CLUSTER_MEMBERSHIP_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cluster/membership.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"

#define NODES 3
#define SLOTS 16

struct copy {
    struct member m[SLOTS];
    size_t count;
};

struct call {
    int answers;
    enum mst_code code;
    char msg[STATUS_MSG_MAX];
    int task;
    char address[64]; /* "" when there is none */
    bool changed;
    int reached, missed; /* a bit a ps */
};

/* A question on its way to another ps, or its answer on the way back. */
struct packet {
    bool used, arrived, answered;
    int from, to;
    uint64_t ticket;
    struct membership_msg msg;
    struct copy members;
    struct status st;
};

struct disk_write {
    bool used;
    uint64_t ticket;
    struct copy members;
};

static struct node {
    struct membership *ms;
    struct members disk;
    struct disk_write writes[SLOTS];
    bool down, foreign, full;
    int changes, says;
    char said[256];
} nodes[NODES];

static struct packet packets[SLOTS];
static struct call call, other;

/* ---- the surroundings ---- */

static inline void copy_in(struct copy *c, const struct member *m, size_t count)
{
    assert_true(count <= SLOTS);
    c->count = count;
    for (size_t i = 0; i < count; i++) {
        c->m[i] = m[i];
        c->m[i].job = mem_str(m[i].job);
        c->m[i].address = m[i].address ? mem_str(m[i].address) : NULL;
    }
}

static inline void copy_done(struct copy *c)
{
    for (size_t i = 0; i < c->count; i++) {
        mem_free((char *)c->m[i].job);
        mem_free((char *)c->m[i].address);
    }
    c->count = 0;
}

static inline void on_write(void *arg, const struct member *m, size_t count,
                            uint64_t ticket)
{
    struct disk_write *w = ((struct node *)arg)->writes;

    while (w->used)
        w++;
    *w = (struct disk_write){ .used = true, .ticket = ticket };
    copy_in(&w->members, m, count);
}

static inline void on_send(void *arg, int ps, const struct membership_msg *msg,
                           uint64_t ticket)
{
    struct packet *p = packets;

    while (p->used)
        p++;
    *p = (struct packet){ .used = true,
                          .from = (int)((struct node *)arg - nodes),
                          .to = ps,
                          .ticket = ticket,
                          .msg = *msg };
    copy_in(&p->members, msg->members, msg->count);
    p->msg.members = p->members.m;
}

static inline void on_answer(void *arg, void *data,
                             const struct membership_answer *a)
{
    struct call *c = data;

    c->answers++;
    c->code = a->status.code;
    snprintf(c->msg, sizeof(c->msg), "%s", a->status.msg);
    assert_int_equal(a->member != NULL, !c->code);
    c->task = a->member ? a->member->task : -1;
    snprintf(c->address, sizeof(c->address), "%s",
             a->member && a->member->address ? a->member->address : "");
    c->changed = a->changed;
    c->reached = c->missed = 0;
    for (int i = 0; i < a->reached_count; i++)
        c->reached |= 1 << a->reached[i];
    for (int i = 0; i < a->missed_count; i++)
        c->missed |= 1 << a->missed[i];
}

static inline void on_reply(void *arg, void *data,
                            const struct membership_msg *msg,
                            const struct status *st)
{
    struct packet *p = data;

    assert_false(p->answered);
    p->answered = true;
    copy_done(&p->members);
    copy_in(&p->members, msg->members, msg->count);
    p->msg = *msg;
    p->msg.members = p->members.m;
    status_copy(&p->st, st);
}

static inline void on_changed(void *arg, const struct member *m)
{
    ((struct node *)arg)->changes++;
}

static inline void on_say(void *arg, const char *text)
{
    struct node *n = arg;

    n->says++;
    snprintf(n->said, sizeof(n->said), "%s", text);
}

static const struct membership_ops ops = { on_write, on_send,    on_answer,
                                           on_reply, on_changed, on_say };

/* ---- what a test makes happen ---- */

static inline void write_end(struct node *n, struct disk_write *w)
{
    struct status st = STATUS_INIT;

    if (n->full)
        (void)!status_set(&st, MST_RESOURCE_EXHAUSTED, "no space left");
    for (size_t i = 0; i < w->members.count && !n->full; i++)
        members_merge(&n->disk, &w->members.m[i]);
    copy_done(&w->members);
    w->used = false;
    membership_written(n->ms, w->ticket, &st);
}

/* The oldest write of a node. */
static inline struct disk_write *write_of(struct node *n)
{
    struct disk_write *oldest = NULL;

    for (struct disk_write *w = n->writes; w < n->writes + SLOTS; w++)
        if (w->used && (!oldest || w->ticket < oldest->ticket))
            oldest = w;
    return oldest;
}

static inline struct packet *packet_of(int from, int to)
{
    for (struct packet *p = packets; p < packets + SLOTS; p++)
        if (p->used && p->from == from && p->to == to)
            return p;
    return NULL;
}

static inline void packet_arrive(struct packet *p)
{
    struct node *to = &nodes[p->to];

    p->arrived = true;
    if (to->down || to->foreign) {
        p->answered = true;
        (void)!status_set(
            &p->st, to->foreign ? MST_UNIMPLEMENTED : MST_UNAVAILABLE, "no");
        return;
    }
    membership_exchange(to->ms, p, &p->msg);
}

static inline void packet_return(struct packet *p)
{
    membership_sent(nodes[p->from].ms, p->ticket, p->st.code ? NULL : &p->msg,
                    &p->st);
    copy_done(&p->members);
    p->used = false;
}

static inline void packet_lose(struct packet *p)
{
    p->arrived = p->answered = true;
    (void)!status_set(&p->st, MST_UNAVAILABLE, "lost");
}

/* Until nothing happens any more. */
static inline void settle(void)
{
    bool busy = true;

    while (busy) {
        busy = false;
        for (int i = 0; i < NODES; i++) {
            struct disk_write *w = write_of(&nodes[i]);

            if (w) {
                write_end(&nodes[i], w);
                busy = true;
            }
        }
        for (struct packet *p = packets; p < packets + SLOTS; p++) {
            if (!p->used || (p->arrived && !p->answered))
                continue;
            if (p->arrived)
                packet_return(p);
            else
                packet_arrive(p);
            busy = true;
        }
    }
}

static inline void tick_all(void)
{
    for (int i = 0; i < NODES; i++)
        if (nodes[i].ms && !nodes[i].down && !nodes[i].foreign)
            membership_tick(nodes[i].ms);
    settle();
}

static inline void drop_writes(struct node *n)
{
    for (struct disk_write *w = n->writes; w < n->writes + SLOTS; w++) {
        copy_done(&w->members);
        w->used = false;
    }
}

/* Starts ps `i` of `count`, with workers 0 up to `workers` in the flags. */
static inline void boot(int i, int count, int workers)
{
    static uint64_t origin = 100;
    struct membership_opts opts = {
        .self = i, .origin = ++origin, .ops = &ops, .arg = &nodes[i]
    };
    struct status st = STATUS_INIT;
    struct cluster_spec spec;
    char address[16];

    cluster_spec_init(&spec);
    for (int k = 0; k < count; k++) {
        snprintf(address, sizeof(address), "p%d:1", k);
        assert_int_equal(cluster_spec_add(&spec, "ps", k, address, &st), 0);
    }
    for (int k = 0; k < workers; k++) {
        snprintf(address, sizeof(address), "w%d:1", k);
        assert_int_equal(cluster_spec_add(&spec, "worker", k, address, &st), 0);
    }
    membership_free(nodes[i].ms);
    drop_writes(&nodes[i]);
    nodes[i].ms = membership_new(&opts);
    membership_flags(nodes[i].ms, &spec, 1000);
    membership_restore(nodes[i].ms, &nodes[i].disk);
    cluster_spec_done(&spec);
}

static inline void boot_all(int count)
{
    for (int i = 0; i < count; i++)
        boot(i, count, 2);
}

static inline int setup(void **state)
{
    memset(nodes, 0, sizeof(nodes));
    memset(packets, 0, sizeof(packets));
    call = other = (struct call){ 0 };
    for (int i = 0; i < NODES; i++)
        members_init(&nodes[i].disk);
    return 0;
}

static inline int teardown(void **state)
{
    for (int i = 0; i < NODES; i++) {
        membership_free(nodes[i].ms);
        members_done(&nodes[i].disk);
        drop_writes(&nodes[i]);
    }
    for (int i = 0; i < SLOTS; i++)
        copy_done(&packets[i].members);
    return 0;
}

/* ---- what a test asks ---- */

static inline void add(int ps, int task, const char *address)
{
    membership_add(nodes[ps].ms, &call, "worker", task, address, false, 5000);
}

static inline void move(int ps, int task, const char *address)
{
    membership_add(nodes[ps].ms, &call, "worker", task, address, true, 5000);
}

static inline void drop(int ps, int task, const char *address)
{
    membership_remove(nodes[ps].ms, &call, "worker", task, address, 6000);
}

static inline void join(int ps, const char *address, struct call *c)
{
    membership_join(nodes[ps].ms, c, "worker", address, 7000);
}

static inline void assert_answer(const struct call *c, enum mst_code code,
                                 const char *part)
{
    assert_int_equal(c->answers, 1);
    if (c->code != code || !strstr(c->msg, part))
        fail_msg("%s: %s; not %s: %s", status_name(c->code), c->msg,
                 status_name(code), part);
}

static inline void assert_failed(enum mst_code code, const char *part)
{
    assert_answer(&call, code, part);
    assert_false(call.changed);
    call = (struct call){ 0 };
}

static inline void assert_ok(void)
{
    assert_answer(&call, MST_OK, "");
}

/* The task's address in a ps' table, "" if removed, NULL if unknown. */
static inline const char *at(int ps, int task)
{
    const struct member *m =
        members_get(membership_table(nodes[ps].ms), "worker", task);

    return !m ? NULL : m->address ? m->address : "";
}

static inline void assert_at(int ps, int task, const char *address)
{
    const char *is = at(ps, task);

    if (!is || strcmp(is, address))
        fail_msg("worker %d is at %s on ps %d, not at %s", task, is ? is : "?",
                 ps, address);
}

static inline uint64_t digest(int ps)
{
    return membership_table(nodes[ps].ms)->digest;
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

#endif
