/*
 * What membership.c, membership_calls.c and membership_talk.c share: the state
 * behind membership.h. Nobody else includes it.
 *
 *   membership_calls.c   add, remove and join, from the call to its answer
 *   membership_talk.c    what this ps asks of the others, and they of it
 *   membership.c         the whole: flags, journal, what comes from the disk
 */
#ifndef CLUSTER_MEMBERSHIP_STATE_H
#define CLUSTER_MEMBERSHIP_STATE_H

#include "cluster/membership.h"

enum change_kind { CHANGE_ADD, CHANGE_REMOVE, CHANGE_JOIN };

enum change_state {
    CHANGE_WAITING, /* for another change of the task or the address */
    CHANGE_ASKING,  /* a join: every other ps for what it knows */
    CHANGE_WRITING, /* to the own disk */
    CHANGE_TELLING, /* the other ps */
};

struct ps_list {
    int *ps, count, room;
};

struct change {
    struct change *next;
    enum change_kind kind;
    enum change_state state;
    void *call;
    char *job, *address; /* of a removal: the address to be there, or NULL */
    int task;            /* -1: a join that has none yet */
    bool replace, takes_over, changed, asked;
    struct member_version gone; /* takes_over: the entry it may replace */
    uint64_t now_ms;
    struct member_version version; /* of the entry that it wrote or found */
    uint64_t ticket;
    int outstanding;        /* questions, and writes of what they brought */
    struct status *trouble; /* such a write failed */
    struct ps_list reached, missed;
};

/* Entries with texts of their own. */
struct batch {
    struct member *m;
    size_t count, room;
};

/* What another ps told, and has not been answered. */
struct exchange {
    struct exchange *next;
    void *call;
    bool sync;
    uint64_t digest;
    struct batch told;
    bool writing;         /* what it brought */
    struct status *fault; /* what is wrong with it; NULL: nothing */
};

/* What was told, on its way to the disk and only then to the table. */
struct intake {
    struct intake *next;
    uint64_t ticket;
    struct batch entries;
    int ps;                    /* whom it is from; -1: of an exchange */
    struct exchange *exchange; /* what waits for it: one of these, or none */
    struct change *change;
};

/* A question to another ps. */
struct sending {
    struct sending *next;
    uint64_t ticket;
    int ps;
    bool sync;
    uint64_t digest;       /* the one that was sent */
    struct change *change; /* NULL: none waits for it */
};

struct membership {
    struct membership_opts opts;
    struct members table;
    uint64_t epoch; /* the largest that was seen or given out */
    uint64_t ticket;
    unsigned ticks;
    bool starting;          /* change_start_waiting() is at work */
    struct change *changes; /* in the order in which they came */
    struct exchange *exchanges;
    struct intake *intakes;
    struct sending *sending;
    bool foreign[MEMBERSHIP_PS_MAX];
};

void batch_add(struct batch *b, const struct member *m);
void batch_done(struct batch *b);

/* Merges into the table and says so. */
bool membership_merge(struct membership *ms, const struct member *m);

/* ---- membership_calls.c ---- */

/* The write of its entry has ended. */
void change_written(struct membership *ms, struct change *c,
                    const struct status *st);
/* A question, or the write of what one brought, has ended. */
void change_step(struct membership *ms, struct change *c);
void change_free(struct change *c);

/* ---- membership_talk.c ---- */

/* Asks every other ps. Those that are foreign only if told so. */
void membership_send_all(struct membership *ms,
                         const struct membership_msg *msg, struct change *c,
                         bool foreign_too);
/* The write of what was told has ended. */
void intake_written(struct membership *ms, struct intake *in,
                    const struct status *st);
/* Answers the exchanges that have nothing to wait for any more. */
void exchange_answer_all(struct membership *ms);
void exchange_free(struct exchange *x);
void intake_free(struct intake *in);

#endif
