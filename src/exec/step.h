/*
 * One run of a plan.
 *
 * A step owns all that changes: pending counts and input slots of the root
 * frame, loop frames as they open, the first error. It runs on whatever thread
 * makes a node ready: cheap kernels follow one another on the same thread,
 * large ones move to the pool, asynchronous ones leave the step without any
 * thread until they finish. When nothing is outstanding any more, done() is
 * called, once.
 *
 * Steps are kept and used again: a steady step allocates nothing.
 *
 * On failure the first error is kept, failed() tells the owner at once (so
 * that it can abort the rendezvous and cancel what waits), nothing new is
 * started, and done() comes when what is under way has come back.
 */
#ifndef EXEC_STEP_H
#define EXEC_STEP_H

#include "exec/plan.h"

struct step;

struct step_stat {
    const struct plan_node *node;
    uint64_t scheduled_ns, start_ns, end_ns;
    uint32_t thread;
};

struct step_opts {
    struct op_step env; /* id, cancel, rendezvous */
    bool record;        /* keep times of every node */
    /* Arguments of a function, moved in. */
    struct op_value *args;
    int arg_count;
    void (*failed)(void *arg, const struct status *st); /* may be NULL */
    /* The step is over and, after this returns, gone. */
    void (*done)(void *arg, struct step *s, const struct status *st);
    void *arg;
};

/* A step to be run: nothing happens before step_run(), which begins on this
 * thread and may return after, or long before, done() is called. */
struct step *step_new(struct plan *p, const struct step_opts *opts);
void step_run(struct step *s);
/* Ends the step early with that error; what waits must be cancelled by the
 * owner, in failed(). Whoever calls it holds the step. */
void step_fail(struct step *s, const struct status *st);
/* Keeps done() from being called. Any thread that knows that it has not been
 * called yet. */
void step_hold(struct step *s);
void step_drop(struct step *s);

/* In done(): what the function returned, and the times. */
struct op_value *step_results(struct step *s);
const struct step_stat *step_stats(const struct step *s, int *ret_count);

/* The end of a plan: its steps that wait for reuse. */
void step_free_idle(struct plan *p);

#endif
