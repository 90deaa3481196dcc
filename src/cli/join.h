/*
 * A worker that knows one parameter server and nothing else: it asks for an
 * index and gets the cluster along with it, and says good-bye when it stops.
 */
#ifndef CLI_JOIN_H
#define CLI_JOIN_H

#include "cli/serve_options.h"

/* Fills in the cluster, the task and where to listen. Waits for the job's
 * parameter servers, and says so now and then. */
MUST_USE enum mst_code join_cluster(struct serve_options *o, struct status *st);
/* Gives the index back; what cannot be told in a moment is left. */
void join_leave(const struct serve_options *o);

#endif
