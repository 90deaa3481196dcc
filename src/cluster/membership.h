/*
 * How the parameter servers of a job agree on who is in it: the table
 * (members.h), the calls that change it, and what is told to the others. A
 * state machine without sockets, files, clocks or threads: what it wants done
 * it asks of its surroundings through membership_ops, and hears about the end
 * of it by a call. tests/sim drives it from seeds.
 *
 * A change on one ps:
 *
 *   call --> checked --> written --> merged, told to every ps --> answered
 *              |            |                                        |
 *              +-- error    +-- error, nothing changed               +-- error:
 *                                                            another was newer
 *
 * It is answered when every other ps has it on disk or could not be reached,
 * and says which. A ps that was not reached gets it by the comparison of
 * digests that every ps makes with every other at each tick.
 *
 * An index is given (join) by ps 0 only, after every ps has said what it knows,
 * and only when every ps has taken the entry: a ps that got a call for the same
 * index in between answers with its entry, which wins (members.h: versions of
 * joins are the smallest), and the next index is tried. Asking again from the
 * same address gives the same index.
 *
 * Invariants:
 *  1. An entry enters a table after it is on the disk of that ps, and is told
 *     to others after that: whatever anybody hears of is on some disk. (What
 *     flags say is on no disk, ours nor theirs.)
 *  2. A change is answered OK only while the table says what it wanted.
 *  3. An exchange is answered after what it brought is on disk, and after the
 *     own writes for the same tasks that were under way.
 *  4. At most one change a task is under way; others wait for it.
 *  5. A change whose own write failed leaves no trace.
 *  6. Between ticks and calls nothing happens: what is idle costs nothing.
 *
 * A ps that speaks TensorFlow only is foreign: it is neither waited for nor
 * missed.
 *
 * Threads: the owner's lock. All ops are called inside of the functions below;
 * they start things and must not call back.
 */
#ifndef CLUSTER_MEMBERSHIP_H
#define CLUSTER_MEMBERSHIP_H

#include "cluster/members.h"

#define MEMBERSHIP_PS_MAX 1024

struct membership;

/* What one ps tells another, and what it answers. */
struct membership_msg {
    bool sync; /* "here is my digest: tell me all if yours differs" */
    uint64_t digest;
    const struct member *members;
    size_t count;
};

struct membership_answer {
    struct status status;
    const struct member *member; /* as it stands now; NULL on failure */
    bool changed;                /* by this call */
    const int *reached, *missed; /* other ps by number; foreign in neither */
    int reached_count, missed_count;
};

struct membership_ops {
    /* Put them in the journal; membership_written(ticket) follows. What is
     * said to have failed must not be there at the next start. */
    void (*write)(void *arg, const struct member *m, size_t count,
                  uint64_t ticket);
    /* Ask the ps; membership_sent(ticket) follows, also when it is lost. */
    void (*send)(void *arg, int ps, const struct membership_msg *msg,
                 uint64_t ticket);
    /* The end of membership_add(), _remove() and _join(). */
    void (*answer)(void *arg, void *call, const struct membership_answer *a);
    /* The end of membership_exchange(). */
    void (*reply)(void *arg, void *call, const struct membership_msg *msg,
                  const struct status *st);
    /* The table has a new entry. */
    void (*changed)(void *arg, const struct member *m);
    /* Something that the operator should know, a line. */
    void (*say)(void *arg, const char *text);
};

struct membership_opts {
    int self;        /* which ps this is */
    uint64_t origin; /* no other start of any ps has it */
    const struct membership_ops *ops;
    void *arg;
};

struct membership *membership_new(const struct membership_opts *opts);
/* What is under way is forgotten: nothing is answered any more. */
void membership_free(struct membership *ms);
const struct members *membership_table(const struct membership *ms);

/* Before anything else: what the flags say, then what the journal had.
 * Conflicts between the two are said. */
void membership_flags(struct membership *ms, const struct cluster_spec *spec,
                      uint64_t now_ms);
void membership_restore(struct membership *ms, const struct members *journal);

/* replace: the index may be another's, as the caller insists. */
void membership_add(struct membership *ms, void *call, const char *job,
                    int task, const char *address, bool replace,
                    uint64_t now_ms);
/* An add to the index of somebody who is gone, which is for the owner to find
 * out. It takes its time; so he says of which entry he knows it, and whoever
 * moved it meanwhile is not replaced. */
void membership_take_over(struct membership *ms, void *call, const char *job,
                          int task, const char *address,
                          struct member_version gone, uint64_t now_ms);
/* address: only while the task has it; NULL: in any case. */
void membership_remove(struct membership *ms, void *call, const char *job,
                       int task, const char *address, uint64_t now_ms);
/* On ps 0; FAILED_PRECONDITION elsewhere. */
void membership_join(struct membership *ms, void *call, const char *job,
                     const char *address, uint64_t now_ms);
/* Another ps told something. */
void membership_exchange(struct membership *ms, void *call,
                         const struct membership_msg *msg);

/* What one that only follows was told: taken, and not written down. */
void membership_learn(struct membership *ms, const struct member *m,
                      size_t count);

void membership_written(struct membership *ms, uint64_t ticket,
                        const struct status *st);
/* reply is NULL when st is not OK; UNIMPLEMENTED means a foreign ps. */
void membership_sent(struct membership *ms, uint64_t ticket,
                     const struct membership_msg *reply,
                     const struct status *st);
/* Now and then, and first of all after the start: compares with every other
 * ps. */
void membership_tick(struct membership *ms);

#endif
