/*
 * A thread that waits for one event. Waking a sleeping thread takes far longer
 * than a step over loopback, so it polls first, by the rule of io/spin.h, and
 * sleeps only when that did not help. Better still is to run the loop that
 * will bring the event, and the work that it brings: then nothing has to be
 * handed from thread to thread.
 *
 * client_wait_reset() -> client_wait_until() on one thread;
 * client_wait_signal() once, on another. After client_wait_until() has returned
 * true the memory may go: the signaller does not look at it again but for its
 * address.
 */
#ifndef CLIENT_WAIT_H
#define CLIENT_WAIT_H

#include <stdatomic.h>

#include "base/pool.h"
#include "io/loop.h"
#include "io/spin.h"

struct client_wait {
    atomic_int state;
    struct spin spin;
    struct loop *loop; /* that the waiting thread runs meanwhile, or NULL */
};

void client_wait_init(struct client_wait *w);
void client_wait_done(struct client_wait *w);
/* loop: for client_wait_inside(), or NULL. */
void client_wait_reset(struct client_wait *w, struct loop *loop);
/* deadline_ns on the monotonic clock, 0 for none. False when it passed. */
bool client_wait_until(struct client_wait *w, uint64_t deadline_ns);
void client_wait_signal(struct client_wait *w);

/* The same as client_wait_until(), but as a guest of the loop (io/loop.h) where
 * that can be. Jobs in `kept` are run first. */
bool client_wait_inside(struct client_wait *w, struct pool_kept *kept,
                        uint64_t deadline_ns);

#endif
