/*
 * The event loop: one thread, one epoll, and everything that this thread owns.
 *
 * A turn of the loop is: wait, hand out the events of file descriptors, run
 * what other threads posted, run the timers that are due, and last run the
 * turn's end hooks. Connections flush in an end hook, so that all replies of
 * one turn leave in one system call.
 *
 * Before it sleeps a loop may poll for a short while, because waking a thread
 * costs more than a call over loopback does. It only does so while events have
 * been coming in quick succession and the machine has an idle core; see
 * io/spin.h. A process that nobody calls burns nothing.
 *
 * Threads: loop_post(), loop_inside(), loop_watch_add() and what is said of
 * guests from any thread; everything else on the loop's own thread only. Tasks,
 * timers, hooks and watchers lie inside of the objects that use them: the loop
 * only links them and allocates nothing.
 */
#ifndef IO_LOOP_H
#define IO_LOOP_H

#include "base/base.h"
#include "base/status.h"

struct loop;
struct loop_group;

/* Work from another thread. Runs once, in the order of posting. */
struct loop_task {
    struct loop_task *next;
    void (*run)(struct loop_task *);
};

/* Work at the end of the current turn. Zero it before its first use. Adding it
 * twice is adding it once; it may add itself again while it runs, which is for
 * the next turn, and then that one does not sleep. */
struct loop_hook {
    struct loop_hook *prev, *next; /* NULL when it is not added */
    void (*run)(struct loop_hook *);
};

/* Fires once. Zero it before its first use. */
struct loop_timer {
    size_t at; /* place in the heap plus one; 0 when it is not set */
    uint64_t when_ns;
    void (*fire)(struct loop_timer *);
};

/* A watched descriptor. `events` are those of epoll. */
struct loop_watch {
    int fd;
    void (*ready)(struct loop_watch *, uint32_t events);
};

struct loop_opts {
    int loops;       /* 0: one up to four cores, a quarter of them beyond */
    int spin_us_max; /* 0: 200, or what MUSTER_SPIN_US says; -1: never */
};

struct loop_group *
loop_group_new(const struct loop_opts *opts); /* NULL: as is */
/* Ends the threads. All servers and channels on the group are gone by then. */
void loop_group_free(struct loop_group *group);
int loop_group_size(const struct loop_group *group);
struct loop *loop_group_at(struct loop_group *group, int i);
/* The loops in turn; any thread. */
struct loop *loop_group_next(struct loop_group *group);

/* Any thread. The task stays untouched by others until it runs. */
void loop_post(struct loop *loop, struct loop_task *task);
/* True on the loop's own thread. */
bool loop_inside(const struct loop *loop);

/* The clock as it was when this turn began. */
uint64_t loop_now_ns(const struct loop *loop);

void loop_hook_add(struct loop *loop, struct loop_hook *hook);
void loop_hook_del(struct loop_hook *hook); /* if it is added */

/* Sets it, or sets it anew. */
void loop_timer_set(struct loop *loop, struct loop_timer *timer,
                    uint64_t when_ns);
void loop_timer_del(struct loop *loop, struct loop_timer *timer);

/* Adding is for any thread. Edge-triggered if `events` has EPOLLET. After
 * loop_watch_del() `ready` is not called any more, also not for events of the
 * turn under way. */
enum mst_code loop_watch_add(struct loop *loop, struct loop_watch *watch,
                             uint32_t events, struct status *st) MUST_USE;
void loop_watch_del(struct loop *loop, struct loop_watch *watch);

/* Someone waits for an answer from outside: while the sum is above zero the
 * loop is readier to poll before it sleeps. */
void loop_expect(struct loop *loop, int delta);

/*
 * A guest: a thread that waits for what a loop will bring, and runs the loop
 * itself meanwhile, so that nobody has to be woken for it. The loop's own
 * thread stays away while there are guests and until none has come for
 * GUEST_AWAY_NS, since they mostly come again and again.
 *
 *   loop_enter(); while (... && loop_turn()) ...; loop_leave();
 *
 * One guest runs the loop at a time: the one that came last, whose event is the
 * next to be expected. Inside it is as on the loop's thread.
 */
#define GUEST_AWAY_NS 2000000u
/* False on a loop's thread, or a guest's: it cannot wait for itself. */
bool loop_enter(struct loop *loop) MUST_USE;
/* One turn, which sleeps until deadline_ns of clock_ns() at most; 0: none.
 * False when another guest wants to have the loop. */
bool loop_turn(struct loop *loop, uint64_t deadline_ns);
void loop_leave(struct loop *loop);
/* Any thread: the turn under way, or else the next one, does not sleep. */
void loop_nudge(struct loop *loop);

/* Memory that whoever reads a socket on this loop may use until it returns. */
#define LOOP_SCRATCH ((size_t)64 << 10)
uint8_t *loop_scratch(struct loop *loop);

#endif
