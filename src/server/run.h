/*
 * RunGraph: one partition of one step, from the request to the answer.
 *
 * An ordinary run puts what the request feeds into the step's exchange, runs
 * the plan, and answers with what the request fetches. A partial run is spread
 * over several requests under one step id: the first starts the plan, each
 * feeds and fetches its share, the last also waits for the plan's end.
 *
 * If the peer gives up (cancel, connection lost, deadline) the step is failed
 * at once; calls of other tasks that wait for values of it are let go a second
 * later, so that the root of the trouble can reach the master first.
 */
#ifndef SERVER_RUN_H
#define SERVER_RUN_H

#include "rpc/lane.h"
#include "rpc/server.h"
#include "server/message.h"
#include "server/session.h"
#include "server/steps.h"

struct run_table {
    pthread_mutex_t lock;
    pthread_cond_t idle; /* graces became 0 */
    int graces;          /* timers that will use the table, under lock */
    struct map partial;  /* step id -> run, under lock */
    struct steps *steps;
    struct sessions *sessions;
};

void run_table_init(struct run_table *t, struct steps *steps,
                    struct sessions *sessions);
/* Waits for the graces of peers that gave up just now: a second at most. The
 * loops still run. */
void run_table_done(struct run_table *t);

/* Answers the call in any case. Inside of its start(). */
void run_graph(struct run_table *t, struct rpc_call *call,
               const struct run_graph_request *request);
/* The same for a step that a master asked for over a lane: feeds and fetches
 * nothing, and pushes what it has for the master's task (relay: for others as
 * well). One reference for the caller; answered is called once, on any thread,
 * from start on. */
typedef void run_answered_fn(void *arg, int64_t step_id,
                             const struct status *st);
struct run_call *run_call_new(struct run_table *t, struct lane *lane,
                              bool relay,
                              const struct run_graph_request *request,
                              run_answered_fn *answered, void *arg);
void run_call_start(struct run_call *c,
                    const struct run_graph_request *request);
/* The master has given up. On the lane's loop; once, and not after answered. */
void run_call_cancel(struct run_call *c);
struct run_call *run_call_ref(struct run_call *c);
void run_call_unref(struct run_call *c);
/* CleanupGraph: a partial run that was left is ended. */
void run_cleanup(struct run_table *t, int64_t step_id);

#endif
