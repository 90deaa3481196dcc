/*
 * The membership of a large job, without network: what one ps spends on adding
 * members, on looking them up, on listing them, on comparing itself with a ps
 * that has nothing, and on reading its journal at the start; and the memory.
 *
 * An add is the whole call: checked, a journal line made, merged, answered. The
 * disk is left out: how long a sync takes is the disk's matter.
 *
 *   bench_membership [members (10000)]
 */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/rng.h"
#include "cluster/membership.h"
#include "cluster/record.h"

static struct record_text journal;
static uint64_t written[2];
static int answers;

/* ---- the surroundings: a disk that is a text ---- */

static void on_write(void *arg, const struct member *m, size_t count,
                     uint64_t ticket)
{
    for (size_t i = 0; i < count; i++)
        record_put(&journal, &m[i]);
    *(uint64_t *)arg = ticket;
}

static void on_send(void *arg, int ps, const struct membership_msg *msg,
                    uint64_t ticket)
{
}

static void on_answer(void *arg, void *call, const struct membership_answer *a)
{
    CHECK(!a->status.code);
    answers++;
}

static void on_reply(void *arg, void *call, const struct membership_msg *msg,
                     const struct status *st)
{
    if (call)
        membership_exchange(call, NULL, msg);
}

static void on_changed(void *arg, const struct member *m)
{
}

static void on_say(void *arg, const char *text)
{
}

static const struct membership_ops ops = { on_write, on_send,    on_answer,
                                           on_reply, on_changed, on_say };

static struct membership *start(int self)
{
    struct membership *ms =
        membership_new(&(struct membership_opts){ .self = self,
                                                  .origin = rng_u64(),
                                                  .ops = &ops,
                                                  .arg = &written[self] });
    struct cluster_spec spec;
    struct status st;

    cluster_spec_init(&spec);
    CHECK(!cluster_spec_add(&spec, "ps", 0, "ps0:2222", &st));
    membership_flags(ms, &spec, 0);
    cluster_spec_done(&spec);
    return ms;
}

/* ---- what is measured ---- */

static void report(const char *what, uint64_t start_ns, int count)
{
    double ns = (double)(clock_ns() - start_ns);

    printf("%-34s %10.3f ms %10.0f ns each\n", what, ns / 1e6, ns / count);
}

static void add_all(struct membership *ms, int count)
{
    struct status ok = STATUS_INIT;
    uint64_t t0 = clock_ns();
    char address[40];

    for (int i = 0; i < count; i++) {
        snprintf(address, sizeof(address), "worker-%d.cluster.local:2222", i);
        membership_add(ms, NULL, "worker", i, address, false, 1);
        membership_written(ms, written[0], &ok);
    }
    CHECK(answers == count);
    report("add", t0, count);
}

static void look_up(const struct members *t, int count)
{
    uint64_t t0 = clock_ns(), seed = 1, found = 0;
    const int rounds = 1000000;

    for (int i = 0; i < rounds; i++)
        found += members_get(t, "worker",
                             (int)(rng_next(&seed) % (uint64_t)count)) != NULL;
    report("look up by number", t0, rounds);
    t0 = clock_ns();
    for (int i = 0; i < rounds; i++)
        found += members_at(t, "worker-77.cluster.local:2222") != NULL;
    report("look up by address", t0, rounds);
    CHECK(found);
}

static void list(const struct members *t, int count)
{
    uint64_t t0 = clock_ns(), sum = 0;
    const int rounds = 100;

    for (int i = 0; i < rounds; i++) {
        struct members_walk at = { 0 };
        const struct member *m;

        while ((m = members_next(t, &at)))
            sum += (uint64_t)m->task;
    }
    CHECK(sum || count < 2);
    report("list", t0, rounds * count);
}

/* A ps without anything asks one with everything. */
static void compare(struct membership *ms, int count)
{
    struct membership *empty = start(1);
    struct status ok = STATUS_INIT;
    uint64_t t0 = clock_ns();

    membership_exchange(ms, empty, &(struct membership_msg){ .sync = true });
    membership_written(empty, written[1], &ok);
    report("tell a ps that has nothing", t0, count);
    CHECK(membership_table(empty)->digest == membership_table(ms)->digest);
    t0 = clock_ns();
    for (int i = 0; i < 1000; i++)
        membership_exchange(
            ms, NULL,
            &(struct membership_msg){ .sync = true,
                                      .digest = membership_table(ms)->digest });
    report("compare with an equal ps", t0, 1000);
    membership_free(empty);
}

static void restart(int count)
{
    struct record_report r;
    struct record_text anew = { 0 };
    struct members t;
    struct status st;
    uint64_t t0 = clock_ns();
    size_t used = mallinfo2().uordblks;

    members_init(&t);
    CHECK(!record_scan(journal.text, journal.len, &t, &r, &st));
    CHECK(r.entries == count);
    report("read the journal", t0, count);
    used = mallinfo2().uordblks - used;
    t0 = clock_ns();
    record_put_all(&anew, &t);
    report("write it anew", t0, count);
    printf("%-34s %10.2f MB %10.0f bytes each\n", "journal",
           (double)journal.len / 1e6, (double)journal.len / count);
    printf("%-34s %10.2f MB %10.0f bytes each\n", "table in memory",
           (double)used / 1e6, (double)used / count);
    record_text_done(&anew);
    members_done(&t);
}

int main(int argc, char **argv)
{
    int count = argc > 1 ? atoi(argv[1]) : 10000;
    struct membership *ms = start(0);

    CHECK(count > 77 && count <= MEMBER_TASK_MAX);
    record_put_head(&journal);
    add_all(ms, count);
    look_up(membership_table(ms), count);
    list(membership_table(ms), count);
    restart(count);
    compare(ms, count);
    membership_free(ms);
    record_text_done(&journal);
    return 0;
}
