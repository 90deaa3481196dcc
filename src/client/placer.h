/*
 * Devices for a graph that was exported without, over a cluster with ps tasks:
 * as tf.compat.v1.train.replica_device_setter() gives them while a graph is
 * built. Variables and tables go to the ps tasks in turn, in the order of the
 * graph, which is that of their making; what was made beside another op (a
 * `_class` attribute) goes where that one is and does not count; all else is
 * the worker's. Without ps tasks everything is.
 *
 * A graph in which any node names a job was placed by its author and is kept;
 * only "/job:worker" without a task is completed with the worker's own, so one
 * file serves all workers.
 */
#ifndef CLIENT_PLACER_H
#define CLIENT_PLACER_H

#include "client/meta_graph.h"
#include "wire/pb.h"

struct placer_opts {
    const char *job; /* of this worker */
    int task;
    const char *ps_job; /* "ps" */
    int ps_tasks;
    int workers; /* in this worker's job */
};

/* Appends the whole GraphDef. FAILED_PRECONDITION when the graph has gradients
 * that workers gather (SyncReplicasOptimizer) and no devices: where these
 * meet cannot be told. */
enum mst_code placer_place(const struct meta_graph *g,
                           const struct placer_opts *opts, struct pb_out *ret,
                           struct status *st) MUST_USE;

#endif
