/*
 * A thread that waits for one event. Waking a sleeping thread takes far longer
 * than a step over loopback, so it polls first, by the rule of io/spin.h, and
 * sleeps only when that did not help.
 *
 * client_wait_reset() -> client_wait_until() on one thread;
 * client_wait_signal() once, on another. After client_wait_until() has returned
 * true the memory may go: the signaller does not look at it again but for its
 * address.
 */
#ifndef CLIENT_WAIT_H
#define CLIENT_WAIT_H

#include <stdatomic.h>

#include "io/spin.h"

struct client_wait {
    atomic_int state;
    struct spin spin;
};

void client_wait_init(struct client_wait *w);
void client_wait_done(struct client_wait *w);
void client_wait_reset(struct client_wait *w);
/* deadline_ns on the monotonic clock, 0 for none. False when it passed. */
bool client_wait_until(struct client_wait *w, uint64_t deadline_ns);
void client_wait_signal(struct client_wait *w);

#endif
