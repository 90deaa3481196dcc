/*
 * Where the other tasks are: from a task's name to a channel. One per server,
 * and one of its own for a session whose master brought a cluster along.
 *
 * An address is looked up when a tensor is asked for, so what changes here
 * holds from the next transfer on. A channel is made when it is first needed;
 * tasks with the same address share it within one table.
 */
#ifndef SERVER_PEERS_H
#define SERVER_PEERS_H

#include "cluster/spec.h"
#include "rpc/channel.h"

struct peers;

/* One reference. The spec is copied. */
struct peers *peers_new(struct loop_group *loops,
                        const struct cluster_spec *spec);
struct peers *peers_ref(struct peers *p);
void peers_unref(struct peers *p); /* the last one closes the channels */

/* The channel to a task, with a reference; NULL when the task is unknown. */
struct rpc_channel *peers_channel(struct peers *p, const char *job, int task);

#endif
