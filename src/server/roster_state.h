/*
 * What the files of the roster share: roster.c (the membership and its
 * surroundings), roster_service.c (the methods), roster_watch.c (who is told of
 * changes), roster_health.c (who is alive), roster_follow.c (tasks that keep no
 * list).
 *
 * Lock: r->lock for all of it. Calls are answered and begun with it held, which
 * their layer allows; nothing calls back into the roster from inside of that.
 */
#ifndef SERVER_ROSTER_STATE_H
#define SERVER_ROSTER_STATE_H

#include <pthread.h>

#include "base/map.h"
#include "cluster/membership.h"
#include "proto/membership.pb-c.h"
#include "rpc/channel.h"
#include "server/journal.h"
#include "server/peers.h"
#include "server/roster.h"

#define ROSTER_PATH(name) "/muster.Membership/" name
#define ROSTER_CALL_MS    1000  /* what another ps or a probe may take */
#define ROSTER_BEAT_MS    10000 /* a watch hears from us that often */
#define ROSTER_SAMPLES    5     /* seconds over which rates are told */

/* A call that waits for its answer. */
struct roster_call {
    struct roster_call *prev, *next;
    struct roster *r;
    struct rpc_call *call;
    bool join; /* to be told the whole list */
};

struct roster_sample {
    uint64_t at_ns, steps, bytes_in, bytes_out;
};

struct roster {
    /* Constant. */
    char *job;
    int task;
    char *job_id; /* NULL: none */
    bool keeps;   /* the list; else it follows */
    int lease_s;
    uint64_t instance;
    uint64_t started_ms; /* wall clock */
    struct worker *worker;
    struct master *master;
    struct quick *quick;
    struct loop_group *loops;
    struct pool *pool;
    struct rpc_server *rpc;
    struct journal *journal; /* NULL: none */

    pthread_mutex_t lock;
    bool stopped, stranger; /* a ps of another job was told off */
    struct membership *ms;
    /* Its own connections: one to a task that is down is tried after a pause
     * only, and no transfer is to wait for that. NULL when stopped. */
    struct peers *peers;
    struct roster_call calls; /* head of a ring */
    struct roster_watch *watches;
    uint64_t told_revision; /* that watches were told of */
    struct map health;      /* "job/task" -> struct health */
    int probes;             /* under way */
    unsigned ticks;
    struct roster_sample samples[ROSTER_SAMPLES];
    struct follow *follow; /* NULL: it keeps the list */
    struct loop_timer timer;
    struct loop_task first;
};

/* ---- roster.c ---- */

uint64_t roster_wall_ms(void);
/* The entry of this very task, which is there for others. */
bool roster_is_self(const struct roster *r, const struct member *m);
/* A call that will be answered by roster_call_end(). */
struct roster_call *roster_call_new(struct roster *r, struct rpc_call *call);
/* The caller answers it, then this frees it. */
void roster_call_end(struct roster_call *c);
/* After anything that may have changed the list. */
void roster_changed(struct roster *r);

/* Members to and from their messages. The views borrow the texts. */
void roster_put_member(Muster__Member *to, const struct member *m);
struct member roster_member(const Muster__Member *from);
/* An array of views, to be freed. */
struct member *roster_members(Muster__Member **from, size_t count);
/* All members beyond a revision; with what is known of their health. */
struct roster_list {
    Muster__Member *at, **ptr;
    size_t count;
};
void roster_list(struct roster *r, uint64_t beyond, struct roster_list *ret);
void roster_list_done(struct roster_list *l);

/* ---- roster_service.c ---- */

/* With the lock held: List, from the own table. */
void roster_answer_list(struct roster *r, struct rpc_call *call);

/* ---- roster_watch.c; with the lock held ---- */

void roster_watch_add(struct roster *r, struct rpc_call *call,
                      const Muster__WatchRequest *q);
/* Tells the watches what is new, or, when it is time, that nothing is. */
void roster_watch_tell(struct roster *r, uint64_t now_ns);
void roster_watch_end_all(struct roster *r);

/* ---- roster_health.c ---- */

/* Who was heard of, who has to be asked, whose sessions are to go. */
void roster_health_tick(struct roster *r);
/* The member is at another place now, or gone. */
void roster_health_forget(struct roster *r, const struct member *m);
void roster_health_put(struct roster *r, const struct member *m,
                       Muster__Member *to);
/* Asks the task where it is now whether it is alive; done is called with the
 * lock held, on a loop thread. */
void roster_health_ask(struct roster *r, const struct member *m,
                       void (*done)(void *arg, bool alive), void *arg);
void roster_health_done(struct roster *r);

/* ---- roster_follow.c ---- */

struct follow *roster_follow_new(struct roster *r);
void roster_follow_tick(struct follow *f);
void roster_follow_free(struct follow *f);
/* Passes a call on to a ps that answers; a List that none of them answers is
 * answered from the own table. */
void roster_follow_pass(struct roster *r, struct rpc_call *call);
/* To the first ps, which gives the indices. */
void roster_follow_join(struct roster *r, struct rpc_call *call,
                        const char *job, const char *address);

#endif
