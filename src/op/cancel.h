/*
 * Cancellation of a step. What waits (a receive, a dequeue) adds an item; when
 * the step is cancelled every item's fn is called once, on the canceller's
 * thread, without the lock held.
 *
 * An item that was added is removed by its owner before its memory ends.
 * cancel_remove() waits for an fn that is just running on another thread, so
 * it must not be called with a lock held that fn takes; called from within the
 * fn itself it returns at once.
 */
#ifndef OP_CANCEL_H
#define OP_CANCEL_H

#include <pthread.h>

#include "base/base.h"

struct cancel_item {
    struct cancel_item *prev, *next;
    void (*fn)(struct cancel_item *);
};

struct cancel {
    pthread_mutex_t lock;
    pthread_cond_t idle;
    struct cancel_item head;     /* under lock */
    struct cancel_item *running; /* under lock */
    pthread_t runner;            /* under lock */
    bool cancelled;              /* under lock */
};

void cancel_init(struct cancel *c);
void cancel_done(struct cancel *c); /* nothing is added any more */
/* False, and nothing added, when the step is cancelled already. */
bool cancel_add(struct cancel *c, struct cancel_item *item,
                void (*fn)(struct cancel_item *)) MUST_USE;
/* After it fn is not running and will not be called. False when fn was. */
bool cancel_remove(struct cancel *c, struct cancel_item *item);
void cancel_all(struct cancel *c);
bool cancel_is_set(struct cancel *c);

#endif
