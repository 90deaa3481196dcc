/*
 * TensorFlow's WorkerService: what a master asks of a task, and what other
 * tasks ask of it.
 *
 * All handlers run on the loop thread of their connection and answer there,
 * except RegisterGraph, which compiles on the pool, and what has to wait.
 */
#ifndef SERVER_WORKER_H
#define SERVER_WORKER_H

#include "base/pool.h"
#include "cluster/spec.h"
#include "rpc/server.h"

struct worker;

struct worker_opts {
    const char *job;
    int task;
    const struct cluster_spec *cluster;
    struct loop_group *loops;
    struct pool *pool;
};

struct worker *worker_new(const struct worker_opts *opts);
/* After the server that has its methods has stopped. */
void worker_free(struct worker *w);
/* Adds the service to a server that does not listen yet. */
void worker_add_methods(struct worker *w, struct rpc_server *server);

struct worker_status {
    size_t sessions, steps;
    uint64_t steps_run;
};
void worker_status(struct worker *w, struct worker_status *ret);

#endif
