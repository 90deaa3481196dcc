/*
 * A step that is run again and again: its names are given once, the master
 * compiles it once, and a run costs neither names nor look-ups.
 *
 * In the process of the master a run is a function call: the feeds are the
 * arguments of the compiled step, the fetches its results, and the calling
 * thread does what the step has to do here until it must wait for others.
 * Over a channel it is RunCallable; tensors are sent from where they lie, and
 * a large first fetch is read from the socket into its place.
 *
 * Threads: one at a time; the session may be used by others meanwhile.
 */
#ifndef CLIENT_RUNNER_H
#define CLIENT_RUNNER_H

#include "client/session.h"

struct client_runner;

enum mst_code client_runner_new(struct client_session *s,
                                const struct client_want *want,
                                uint64_t timeout_ms, struct client_runner **ret,
                                struct status *st) MUST_USE;
/* Before its session is closed. NULL is taken. */
void client_runner_free(struct client_runner *r);

/* It runs beside another, which is the one to hurry: in the process of the
 * master its thread sleeps while it waits, and leaves the loop to the other's.
 */
void client_runner_aside(struct client_runner *r);

/* As client_session_run(). */
enum mst_code client_runner_run(struct client_runner *r,
                                const struct tensor *feeds,
                                struct tensor *fetches, uint64_t timeout_ms,
                                struct status *st) MUST_USE;

#endif
