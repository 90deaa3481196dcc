/*
 * A job's parameter servers in one thread: the real state machine
 * (cluster/membership.h) and the real journal format (cluster/record.h), with
 * a disk, a network, clients and an oracle made up from one 64-bit seed. The
 * same seed is the same run, on every machine.
 *
 *   membership_sim.c   options, and what happens in a run
 *   sim_ps.c           starting, crashing, and the surroundings of one ps
 *   sim_disk.c         its journal, on a disk that forgets
 *   sim_net.c          messages: lost, late, twice, out of order
 *   sim_client.c       calls, and what may be answered to them
 *   sim_check.c        what has to hold all the time, and at the end
 *
 * There is no clock. All that is under way lies in lists, and chance says what
 * comes next: so any delay and any order can happen.
 *
 * One job, "worker", few tasks and few addresses, so that everything meets.
 */
#ifndef SIM_SIM_H
#define SIM_SIM_H

#include "base/rng.h"
#include "cluster/membership.h"

#define SIM_PS        5
#define SIM_TASKS     48
#define SIM_ADDRESSES 10
#define SIM_PACKETS   512
#define SIM_EXCHANGES 256
#define SIM_CALLS     48
#define SIM_QUEUE     64
#define SIM_FAILED    64

/* A member, small enough to be copied about. */
struct sim_entry {
    int task;
    int address; /* -1: removed */
    struct member_version version;
    uint64_t since_ms;
};

struct sim_list {
    int count;
    struct sim_entry e[SIM_TASKS];
};

/* ---- disk ---- */

enum sim_phase {
    SIM_IDLE,
    SIM_APPENDED, /* not synced */
    SIM_TORN,     /* an append that failed, to be cut off again */
    SIM_ANEW,     /* a whole new file beside the old one */
    SIM_RENAMED,  /* it is in its place, but not for certain */
    SIM_UNSURE,   /* nor will it be: what is new in it is to be cut off */
    SIM_REPORT,   /* tell those who wanted the writes */
};

struct sim_write {
    uint64_t ticket;
    bool own; /* a call's, not what another ps told */
    struct sim_list list;
};

struct sim_text {
    char *data;
    size_t len, room;
};

struct sim_disk {
    bool exists, anew;
    bool bad;                   /* writes fail */
    bool was_full;              /* one has failed */
    struct sim_text file, next; /* next: while it is written anew */
    size_t durable;             /* of the file */
    size_t kept;                /* of next: what was there before */
    enum sim_phase phase;
    enum mst_code failed;
    int queued, group, reported; /* the first `group` are being written */
    struct sim_write queue[SIM_QUEUE];
    /* For certain. */
    struct member_version has[SIM_TASKS];
    int address[SIM_TASKS];
};

/* ---- a parameter server ---- */

struct sim_world;

struct sim_ps {
    struct sim_world *world;
    int number;
    int life;              /* how often it was started */
    struct membership *ms; /* NULL: down */
    bool foreign;
    uint64_t origin;
    struct sim_disk disk;
    uint64_t revision;                     /* that was checked */
    struct member_version seen[SIM_TASKS]; /* in its table, in any life */
    int flags[SIM_TASKS]; /* the addresses in its flags, or -1 */
};

/* ---- network ---- */

enum sim_kind { SIM_REQUEST, SIM_ANSWER };

struct sim_packet {
    enum sim_kind kind;
    int from, life; /* who asked, and in which life */
    int to;
    uint64_t ticket;
    bool ghost; /* nobody waits for the answer */
    enum mst_code code;
    bool sync;
    uint64_t digest;
    struct sim_list list;
};

/* A request that a ps has not answered yet. */
struct sim_exchange {
    bool used, ghost;
    int from, life, to;
    uint64_t ticket;
};

/* ---- clients ---- */

enum sim_wish {
    SIM_ADD,
    SIM_MOVE,
    SIM_TAKE, /* over from one that is gone */
    SIM_REMOVE,
    SIM_REMOVE_AT,
    SIM_JOIN
};

struct sim_call {
    enum sim_wish wish;
    int ps, life, task, address;
    int answers;
    bool crashed, changed;
    enum mst_code code;
    int got; /* the task that a join got */
    struct member_version version;
    struct member_version gone; /* a take-over: the entry that it has seen */
    /* A join: which indices were others' when it was asked for, by an entry or
     * by the flags of a ps in that life. */
    uint64_t taken, flagged[SIM_PS];
    int lives[SIM_PS];
};

struct sim_stats {
    uint64_t runs, steps, crashes, torn, writes, failed_writes, rewrites,
        messages, lost, twice, calls, acknowledged, joins, aborted;
};

struct sim_world {
    uint64_t seed, rng;
    bool trace, quiet; /* quiet: nothing goes wrong any more */
    int count;
    struct sim_ps ps[SIM_PS];
    bool cut[SIM_PS][SIM_PS];
    /* In percent. */
    int loss, twice, late, crash, bad_disk;
    bool strangers; /* a ps may become foreign, or cease to be */
    bool gentle;    /* no removals, no moves */
    int packet_count, call_count, failed_count, free_count;
    int live[SIM_PACKETS], free[SIM_PACKETS];
    struct sim_packet packets[SIM_PACKETS];
    struct sim_exchange exchanges[SIM_EXCHANGES];
    struct sim_call calls[SIM_CALLS];
    struct sim_entry failed[SIM_FAILED]; /* must never be seen */
    uint64_t tampered; /* tasks that somebody wanted removed or moved */
    uint64_t used;     /* tasks that were ever in a table */
    unsigned flagged[SIM_TASKS]; /* addresses that flags ever gave them */
    int steps;
    struct sim_stats stats;
};

/* ---- common ---- */

/* Says what is wrong, of which seed, and ends the program. */
NORETURN void sim_fail(const struct sim_world *w, const char *fmt, ...)
    PRINTF(2, 3);
void sim_say(const struct sim_world *w, const char *fmt, ...) PRINTF(2, 3);
#define SIM_TRACE(w, ...)                                                      \
    do {                                                                       \
        if (UNLIKELY((w)->trace))                                              \
            sim_say(w, __VA_ARGS__);                                           \
    } while (0)

static inline int sim_rnd(struct sim_world *w, int below)
{
    return (int)((rng_next(&w->rng) >> 33) % (uint64_t)below);
}

static inline bool sim_chance(struct sim_world *w, int percent)
{
    return percent && !w->quiet && sim_rnd(w, 100) < percent;
}

static inline bool sim_newer(struct member_version a, struct member_version b)
{
    return member_version_compare(a, b) > 0;
}

const char *sim_address(int number); /* NULL for -1 */
struct sim_entry sim_entry_of(const struct sim_world *w,
                              const struct member *m);
struct member sim_member(const struct sim_entry *e);
void sim_list_of(const struct sim_world *w, struct sim_list *list,
                 const struct member *m, size_t count);
const char *sim_text(const struct sim_entry *e);

/* ---- sim_ps.c ---- */

void sim_ps_start(struct sim_ps *ps);
void sim_ps_crash(struct sim_ps *ps);

/* ---- sim_disk.c ---- */

bool sim_disk_busy(const struct sim_disk *d);
void sim_disk_write(struct sim_ps *ps, const struct member *m, size_t count,
                    uint64_t ticket);
/* The next thing that happens to it. */
void sim_disk_step(struct sim_ps *ps);
void sim_disk_crash(struct sim_ps *ps);
/* Reads the journal. */
void sim_disk_mount(struct sim_ps *ps, struct members *into);

/* ---- sim_net.c ---- */

void sim_net_send(struct sim_ps *from, int to, const struct membership_msg *msg,
                  uint64_t ticket);
void sim_net_reply(struct sim_ps *ps, struct sim_exchange *x,
                   const struct membership_msg *msg, const struct status *st);
/* One of the packets goes on. */
void sim_net_step(struct sim_world *w);
/* What the ps was asked is never answered. */
void sim_net_crash(struct sim_ps *ps);
void sim_net_init(struct sim_world *w);

/* ---- sim_client.c ---- */

/* A call, or the same on every ps, or one of before once more. */
void sim_client_step(struct sim_world *w);
struct sim_call *sim_client_call(struct sim_world *w, enum sim_wish wish,
                                 int ps, int task, int address);
void sim_client_answer(struct sim_ps *ps, struct sim_call *c,
                       const struct membership_answer *a);
void sim_client_crash(struct sim_ps *ps);

/* ---- sim_check.c ---- */

void sim_check_table(struct sim_ps *ps);
/* What a ps tells must be on its disk. */
void sim_check_told(struct sim_ps *ps, const struct membership_msg *msg);
void sim_check_started(struct sim_ps *ps);
/* All ps are up and have had time. */
void sim_check_equal(struct sim_world *w);
void sim_check_calls(struct sim_world *w);
void sim_check_join(struct sim_ps *ps, struct sim_call *c);

#endif
