/*
 * A step under way, for those who run it: master_step.c runs whole steps,
 * master_partial.c those that are fed and fetched piece by piece; what runs on
 * other tasks is master_part.c's.
 */
#ifndef SERVER_MASTER_RUN_H
#define SERVER_MASTER_RUN_H

#include "exec/step.h"
#include "server/master_step.h"
#include "server/root_error.h"

#define MASTER_CLOSED_TEXT "Session is closed."

/* A part that runs on another task: by RunGraph, or by the quick path. */
struct part_call {
    struct rpc_client_call *rpc;
    struct quick_side *side;
    struct quick_call *quick;
};

/* Counted: by the call's hooks, by the step, by what is asked of others, and
 * while it is being started. */
struct master_run {
    atomic_int refs;
    struct master_run *prev, *next; /* in ms->runs, under ms->lock */
    struct compile_wait wait;
    struct master_session *ms;
    struct compiled *c;
    struct rpc_call *call; /* NULL: a partial run, whose calls come and go,
                              or one of a client in this process */
    void (*over)(
        struct master_run *r); /* the latter's: st and rets are final */
    void *over_arg;
    struct run_step_request q;
    bool callable, store_errors, trace, graphs;
    int64_t step_id;
    struct exchange *exchange; /* when something crosses tasks */
    struct cancel cancel;
    atomic_int left; /* parts that have not ended */
    pthread_mutex_t lock;
    struct step *step;        /* under lock; NULL when it is over */
    bool cancelled;           /* under lock: by us, or because of a failure */
    bool ended;               /* under lock: all parts have; st is final */
    struct status st;         /* under lock: the first error */
    struct root_errors roots; /* under lock: all that are no consequence */
    struct status *derived;   /* under lock: the first consequence of another */
    struct pb_out stats;      /* under lock: StepStats as fields 1 */
    struct op_value *rets;    /* what was fetched */
    struct part_call *calls;  /* by part, under lock */
    bool relays; /* what third tasks need of each other goes over their lanes
                    to this one */
    struct master_partial *partial;
    struct loop_timer timer; /* its time is up; the call's loop's */
};

/* What a partial run still waits for. It is in ms->partials until its last
 * call, or its failure. */
struct master_partial {
    struct master_run *r;
    char handle[40];
    bool started;                 /* under r->lock, as all of it */
    bool over;                    /* all parts have ended */
    bool released;                /* no further call is waited for */
    bool *fed, *fetched;          /* by feed and fetch */
    struct partial_call *waiting; /* the last call waits for the end */
};

struct master_run *master_run_new(struct master_session *ms,
                                  struct rpc_call *call);
struct master_run *master_run_ref(struct master_run *r);
void master_run_unref(struct master_run *r);

/* Gives it an exchange, if anything of it needs one. */
enum mst_code master_run_bind(struct master_run *r, struct status *st) MUST_USE;
/* Into the session's list; false when the session is closed. */
bool master_run_enter(struct master_run *r) MUST_USE;
/* The parts begin; args, the feeds, are taken. It leaves the list by itself
 * when all of it has ended. */
void master_run_start(struct master_run *r, struct op_value *args);
/* One thing less that its end waits for. */
void master_run_settle(struct master_run *r);
/* Everything of it is told to stop, because of this. */
void master_run_cancel(struct master_run *r, enum mst_code code,
                       const char *text);
/* A tensor that the client feeds as number i. */
enum mst_code master_run_feed(struct master_run *r, int i,
                              const struct message_named *n,
                              struct buffer *owner, struct tensor *ret,
                              struct status *st) MUST_USE;
/* A step of a client in this process: no message, the feeds as they lie. Not
 * taken; in the compiled step's order. over() is called once, on any thread,
 * perhaps before this returns. The reference that is returned is for
 * master_run_cancel(), and for what came of it. */
struct master_run *master_run_direct(struct master_session *ms,
                                     struct compiled *c,
                                     const struct tensor *feeds,
                                     void (*over)(struct master_run *r),
                                     void *arg);
/* compiled_get() of what a request names. */
struct compiled *master_compile(struct master_session *ms,
                                const struct run_step_request *q, bool partial,
                                struct compile_wait *w);

/* A part has failed, on that task; see there for what follows. */
void master_run_part_failed(struct master_run *r, int task,
                            const struct status *st);

/* ---- parts of other tasks: master_part.c ---- */

/* Which of them take the quick path: those of servers with a lane. Before any
 * of them begins. */
void master_part_choose(struct master_run *r);
void master_part_start(struct master_run *r, int part);
/* All have been: their frames are on their lanes. */
void master_part_started(struct master_run *r);
/* What was begun over lanes is sent. */
void master_part_flush(struct master_run *r);
/* The step is over: what the task still keeps of it may go. */
void master_part_cleanup(struct master_run *r, int part);
/* Of the calls, with references of its own. */
void master_part_copy(struct part_call *to, const struct part_call *from);
void master_part_cancel(const struct part_call *c);
void master_part_done(struct part_call *c);

/* ---- partial runs ---- */

/* Takes the request's memory. */
void master_partial_step(struct master_session *ms, struct rpc_call *call,
                         struct run_step_request *q);
/* No further call is waited for: the last was made, or the run has failed. */
void master_partial_release(struct master_run *r);
/* A run that never began has nothing that could end: it begins, and fails. */
void master_partial_abandon(struct master_run *r);
/* All parts have ended. */
void master_partial_over(struct master_run *r);
void master_partial_free(struct master_partial *p); /* accepts NULL */

#endif
