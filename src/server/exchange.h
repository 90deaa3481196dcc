/*
 * The rendezvous of one step on this task: where its partition's sends, its
 * receives and the RecvTensor calls of other tasks meet.
 *
 *   send      puts a value under its key, or hands it to who waits for it
 *   receive   of a value made here: takes it or waits;
 *             of another task's: asks that task (RecvTensor)
 *   call      a RecvTensor from another task: takes the value or waits
 *
 * Between servers of ours values are not asked for but pushed (server/quick.h):
 * a send goes out over a lane, and what comes in by one is put as if it had
 * been sent here.
 *
 * It is there from the first word about the step (a RecvTensor may come before
 * RunGraph) until CleanupGraph, and counted for those who still use it.
 *
 * Lock: exchange->lock. Nothing is called with it held that may come back.
 */
#ifndef SERVER_EXCHANGE_H
#define SERVER_EXCHANGE_H

#include "base/pool.h"
#include "op/rendezvous.h"
#include "rpc/lane.h"
#include "rpc/server.h"
#include "server/peers.h"

struct exchange;

/* orphaned: a call that waited here gave up; perhaps nobody is left. */
struct exchange *exchange_new(int64_t step_id, struct pool *pool,
                              void (*orphaned)(void *arg, struct exchange *x),
                              void *arg);
struct exchange *exchange_ref(struct exchange *x);
void exchange_unref(struct exchange *x);
struct rendezvous *exchange_rendezvous(struct exchange *x);
int64_t exchange_step_id(const struct exchange *x);

/* Before the first receive: whose task this is ("/job:ps/replica:0/task:0"),
 * and where the others are. A second session under the same step is refused. */
enum mst_code exchange_bind(struct exchange *x, const char *task,
                            struct peers *peers, const void *owner,
                            struct status *st) MUST_USE;
bool exchange_owned_by(struct exchange *x, const void *owner);

/* Values of this step that another task needs are pushed to it over the lane,
 * and what it has to send is waited for, not asked for: the other side has
 * agreed to do the same. Before anything of the step runs here. The task's
 * name stays until then. */
void exchange_push(struct exchange *x, const char *task, struct lane *lane);
/* Third tasks are reached by this lane as well, which is one of those: its
 * other end passes on what is not for itself. */
void exchange_relay_by(struct exchange *x, struct lane *lane);
/* This is the other end. What others push before all of them have been told of
 * the step is held until then. */
void exchange_relay_hold(struct exchange *x);
void exchange_relay_go(struct exchange *x);
/* The other end of the lane wants a value as it is now, or will be. */
void exchange_pull(struct exchange *x, const struct rdv_key *key,
                   struct lane *lane);
/* A value came that way. It is taken. One that is neither set nor dead could
 * not be read, and fails the step. */
void exchange_pushed(struct exchange *x, const struct rdv_key *key,
                     struct tensor *value, bool dead);

/* A call of another task waits here; it is answered in any case. */
void exchange_serve(struct exchange *x, const struct rdv_key *key,
                    struct rpc_call *call);

/* Everything that waits gets this error, and all that comes later. With
 * calls = false those of other tasks go on waiting. */
void exchange_abort(struct exchange *x, const struct status *st, bool calls);

/* Nothing was ever run here and nobody waits: an orphan. */
bool exchange_is_empty(struct exchange *x);

/* Times of transfers, for Logging: one record a RecvTensor that was asked. */
struct exchange_transfer {
    struct exchange_transfer *next;
    int64_t step_id;
    uint64_t start_us, end_us;
    size_t bytes;
    char key[];
};
/* While it is on, transfers are handed to fn. NULL: off. Process-wide. */
void exchange_set_log(void (*fn)(void *arg, struct exchange_transfer *taken),
                      void *arg);

#endif
