/*
 * TensorFlow's MasterService: what a client asks of the task that its session
 * is on. Sessions and their graphs are master_session.h's, steps are
 * master_step.h's; here are the methods, and how a session begins and ends.
 */
#ifndef SERVER_MASTER_H
#define SERVER_MASTER_H

#include "cluster/spec.h"
#include "rpc/server.h"
#include "server/quick.h"
#include "server/worker.h"

struct master;

struct master_opts {
    const char *job;
    int task;
    const struct cluster_spec *cluster; /* copied */
    const void *config; /* a ConfigProto, under every session's; copied */
    size_t config_len;
    struct worker *worker; /* of the same task */
    struct quick *quick;
    struct loop_group *loops;
    struct pool *pool;
};

struct master *master_new(const struct master_opts *opts);
/* Ends all sessions; before the server that has its methods stops. */
void master_stop(struct master *m);
/* After it has stopped; before the worker ends. */
void master_free(struct master *m);
/* Adds the service to a server that does not listen yet. */
void master_add_methods(struct master *m, struct rpc_server *server);
size_t master_session_count(struct master *m);

/* ---- for a client in the same process ---- */

struct master_session;
struct compiled;

/* What a session's callable runs, and the session, with a reference of each:
 * for master_run_direct(). False when there is no such. */
bool master_find_callable(struct master *m, const char *handle,
                          int64_t callable, struct master_session **ret_session,
                          struct compiled **ret) MUST_USE;

#endif
