/*
 * The changes of a job's members as one server tells them, for callers that
 * wait: the C API and the program.
 *
 * It is one stream (Watch in proto/membership.proto), with a loop and a
 * connection of its own, as for the questions of cluster_call.h. One message is
 * kept for the caller. While it has members and was not taken, later ones are
 * dropped; so the caller either goes on from the revision of what it took, or
 * reads the whole list anyway.
 *
 * Threads: one caller.
 */
#ifndef API_CLUSTER_WATCH_H
#define API_CLUSTER_WATCH_H

#include "base/status.h"
#include "proto/membership.pb-c.h"

struct cluster_watch;

/* Goes on behind a revision of an instance of the server; 0, 0: from the
 * beginning. */
MUST_USE enum mst_code cluster_watch_open(const char *target, uint64_t revision,
                                          uint64_t instance,
                                          struct cluster_watch **ret,
                                          struct status *st);
void cluster_watch_close(struct cluster_watch *w); /* accepts NULL */

/* The next message, to be freed with control_free(); it has no members when
 * there is nothing new. *ret is NULL when none came before end_ms, on the clock
 * of clock_ms(). An error is the end of the stream, in words for a person. */
MUST_USE enum mst_code cluster_watch_next(struct cluster_watch *w,
                                          uint64_t end_ms,
                                          Muster__WatchResponse **ret,
                                          struct status *st);

#endif
