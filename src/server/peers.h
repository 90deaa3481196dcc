/*
 * Where the other tasks are: from a task's name to a channel. One per server,
 * and one of its own for a session whose master brought a cluster along.
 *
 * An address is looked up when a tensor is asked for, so what changes here
 * holds from the next transfer on, and those under way end where they began. A
 * channel is made when it is first needed; tasks with the same address share
 * it within one table.
 *
 * A task that is not known may be about to be: whoever needs it can wait a
 * moment for it (struct peers_wait), without a thread.
 */
#ifndef SERVER_PEERS_H
#define SERVER_PEERS_H

#include "cluster/spec.h"
#include "io/loop.h"
#include "rpc/channel.h"

#define PEERS_WAIT_MS 2000

struct peers;

/* One reference. The spec is copied. */
struct peers *peers_new(struct loop_group *loops,
                        const struct cluster_spec *spec);
struct peers *peers_ref(struct peers *p);
void peers_unref(struct peers *p); /* the last one closes the channels */

/* The task is at that address from now on; NULL: nowhere. Tasks of such a
 * table may come, so there is a point in waiting for them. True when it was
 * somewhere else before. */
bool peers_set(struct peers *p, const char *job, int task, const char *address);
/* Whether the task is known. */
bool peers_know(struct peers *p, const char *job, int task);
/* Says that peers_set() may be called, before it is. */
void peers_open(struct peers *p);

/* The channel to a task, with a reference; NULL when the task is unknown. */
struct rpc_channel *peers_channel(struct peers *p, const char *job, int task);

/* All tasks as they are now; a copy. */
void peers_cluster(struct peers *p, struct cluster_spec *ret);

/* What went over the channels so far, also those that are no more. */
void peers_bytes(struct peers *p, uint64_t *ret_in, uint64_t *ret_out);

/* Lies inside of whoever waits, who keeps the table. */
struct peers_wait {
    struct peers_wait *prev, *next;
    struct peers *peers;
    const char *job; /* stays */
    int task;
    /* On a loop thread, once, not inside of peers_wait(): the channel with a
     * reference, or NULL when the time is over or the wait was ended. */
    void (*over)(struct peers_wait *w, struct rpc_channel *channel);
    struct loop_timer timer;
    struct loop_task begin, end;
    bool ended; /* under the table's lock: over() is on its way */
};

/* False, and nothing happens, when the table never changes. */
bool peers_wait(struct peers *p, struct peers_wait *w);
/* Do not wait any longer. Harmless once it is over, while w is there. */
void peers_wait_end(struct peers_wait *w);

#endif
