/*
 * The quick path: how two servers of ours run a step together, beside
 * TensorFlow's protocol and unseen by it (docs/adr/0016-quick-path.md).
 *
 * A master that has a session with a task of ours opens a lane to it
 * (rpc/lane.h). From then on the part of a step that runs there is begun by a
 * frame instead of RunGraph, and the values that the two tasks need of each
 * other in this step are pushed when they are made instead of asked for:
 *
 *   master's task                     other task
 *        |  RUN, and what is there already  |
 *        |--------------------------------->|  the plan starts
 *        |  PUSH: its variables, together   |
 *        |<---------------------------------|
 *        |  PUSH: the gradients             |
 *        |--------------------------------->|
 *        |  RAN: how it went                |
 *        |<---------------------------------|
 *
 * A reference variable that is read after it was changed is not pushed but
 * asked for by a frame of its own (PULL).
 *
 * On one host the lane is a Unix socket and large values lie in shared memory;
 * else it is a TCP connection to the same port. If all tasks of a step have
 * lanes to its master, then what two of the others need of each other also goes
 * that way, and the master's task passes it on; else by RecvTensor as ever. So
 * does everything while there is no lane: it is agreed on step by step, by the
 * master alone, so a peer that is TensorFlow's, older, or was restarted costs
 * no pause.
 *
 * Lanes are for members of the job. A task that the other does not know (yet,
 * or any more) is refused one and goes the plain way, where it is waited for or
 * gets its error; when a member is removed or moves, its lanes take no new
 * steps.
 *
 * MUSTER_QUICK in the environment: "off" for none of it, "tcp" without shared
 * memory, "shm" (as is).
 */
#ifndef SERVER_QUICK_H
#define SERVER_QUICK_H

#include "rpc/channel.h"
#include "rpc/lane.h"
#include "rpc/server.h"

enum quick_kind {
    QUICK_HELLO = 1, /* the lane is open; back: the task that opened it */
    QUICK_RUN,
    QUICK_RAN,
    QUICK_PUSH,
    QUICK_PULL, /* of a value that is to be as it is then, not when it was made
                 */
    QUICK_CANCEL,
    QUICK_CLEANUP, /* of a step whose values a third task may still want */
};

struct quick;
struct quick_peer;
struct quick_side;
struct quick_call;
struct worker;

struct quick *quick_new(struct worker *worker, struct loop_group *loops);
/* fn is called on a loop whenever a lane is lost, after the calls on it have
 * ended. Before anything is added to a server. */
typedef void quick_lost_fn(void *arg, const struct quick_side *s,
                           const char *why);
void quick_on_lost(struct quick *q, quick_lost_fn *fn, void *arg);
/* Adds what others need to open lanes, before the server listens. */
void quick_add(struct quick *q, struct rpc_server *server);
/* No new steps; those of others may end for up to grace_ms. Waits until all
 * lanes are gone. */
void quick_stop(struct quick *q, uint64_t grace_ms);
/* After it has stopped, if anything was added to a server. Accepts NULL. */
void quick_free(struct quick *q);
/* The task is no member any more, or elsewhere: its lanes take no new steps,
 * and end with those under way. */
void quick_forget(struct quick *q, const char *job, int task);
/* What went over lanes so far. */
void quick_bytes(struct quick *q, uint64_t *ret_in, uint64_t *ret_out);

/* ---- for masters ---- */

/* The server at the other end of the channel, which is one of ours; a lane to
 * it is on its way from now on. NULL when there is no quick path. */
struct quick_peer *quick_peer_get(struct quick *q, struct rpc_channel *channel);
void quick_peer_unref(struct quick_peer *p); /* accepts NULL */

/* Our end of the lane that is open now, with a reference, or NULL: then one is
 * being opened, over the channel. p may be NULL. */
struct quick_side *quick_peer_side(struct quick_peer *p,
                                   struct rpc_channel *channel);
void quick_side_unref(struct quick_side *s); /* accepts NULL */
struct lane *quick_side_lane(const struct quick_side *s);

struct quick_run {
    const char *session, *graph; /* handles */
    int64_t step_id;
    bool relay; /* values for third tasks, too, go to this one and come from it
                 */
    bool keep;  /* until CLEANUP */
};

/* Begins a part of a step there, when the lane is flushed. done is called once,
 * on a loop, as that of a RunGraph would be; not inside of this. */
struct quick_call *
quick_run(struct quick_side *s, const struct quick_run *run,
          void (*done)(const struct rpc_reply *reply, void *arg), void *arg);
struct quick_call *quick_call_ref(struct quick_call *c);
void quick_call_unref(struct quick_call *c); /* accepts NULL */
/* It ends with CANCELLED, unless it has ended. */
void quick_call_cancel(struct quick_call *c);
void quick_cleanup(struct quick_side *s, int64_t step_id);

#endif
