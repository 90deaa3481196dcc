/*
 * One step of a client's session: the parts of a compiled step run on their
 * tasks, all at once, under one step id.
 *
 *   feeds -> the part of this task runs here, as arguments of its plan
 *         -> RunGraph to every other task
 *   when all are back: the answer, then CleanupGraph to the others
 *
 * The first part that fails makes the master cancel all others; what comes
 * back from those is a consequence, and not reported.
 *
 * In a partial run feeds and fetches of this task go through the step's
 * exchange instead, in as many calls as the client likes.
 */
#ifndef SERVER_MASTER_STEP_H
#define SERVER_MASTER_STEP_H

#include "rpc/server.h"
#include "server/master_message.h"
#include "server/master_session.h"

/* Inside of the call's start(); answers it in any case. */
void master_run_step(struct master_session *ms, struct rpc_call *call,
                     struct run_step_request *q);
void master_run_callable(struct master_session *ms, struct compiled *c,
                         struct rpc_call *call,
                         const struct run_callable_request *q);

/* Partial runs. */
void master_partial_setup(struct master_session *ms, struct rpc_call *call,
                          const struct run_step_request *q);

/* A lane is lost: the runs that took it fail, also if their part there has
 * ended; what it still had to say is not coming. */
void master_runs_lost(struct master_session *ms, const struct quick_side *side,
                      const char *why);

/* Cancels what runs; idle is called, once, when nothing does any more, perhaps
 * before this returns. The session takes no further steps. False when it was
 * closed before. */
bool master_close_steps(struct master_session *ms, void (*idle)(void *arg),
                        void *arg);

#endif
