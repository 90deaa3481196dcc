/*
 * Ops that wait at an object: at a queue for room or for elements, at an
 * accumulator for gradients, at a mutex for its turn.
 *
 * A kernel that cannot go on puts a wait into a line of the object, under the
 * object's lock, and returns OP_LATER. From then on exactly one party takes
 * it out of the line, again under that lock: whoever brought what it waited
 * for, or the canceller of its step. That party owns its end. It collects what
 * has ended in a second line and calls wait_end() on it once the lock is
 * released, because finishing an op may run other kernels, which may come back
 * to the same object.
 *
 * Lock order: the object's lock, then the step's cancel lock (inside of
 * wait_join() only). The cancel function is called without the latter.
 */
#ifndef KERNEL_WAIT_H
#define KERNEL_WAIT_H

#include "op/op.h"

struct wait_line;

/* Lies in the op's scratch memory. */
struct wait {
    struct wait *prev, *next;
    struct wait_line *line; /* under the object's lock; NULL: taken out */
    struct op_ctx *c;
    struct object *at;  /* one reference */
    enum mst_code code; /* how it ended; c->st has the text */
    /* What is left to do once the lock is released; may be NULL. */
    enum mst_code (*complete)(struct wait *w);
    struct cancel_item item;
};

struct wait_line {
    struct wait *first, *last;
};

/* To the end of the line, under the lock. False when the step is cancelled
 * already: nothing has happened then. */
bool wait_join(struct wait_line *line, struct wait *w,
               void (*cancelled)(struct cancel_item *)) MUST_USE;
/* Out of its line and into `ended`, under the lock. */
void wait_leave(struct wait *w, enum mst_code code, struct wait_line *ended);
/* For a canceller, without the lock: ends the wait as CANCELLED, with that
 * text, unless it has left its line already. */
void wait_give_up(struct wait *w, pthread_mutex_t *lock, const char *why);
/* Finishes the ops of a line of ended waits, without the lock. */
void wait_end(struct wait_line *ended);

#endif
