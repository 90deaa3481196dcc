/*
 * One task: its loops, its pool of threads, its services on one port.
 */
#ifndef SERVER_SERVER_H
#define SERVER_SERVER_H

#include "cluster/spec.h"

struct loop_group;
struct master;
struct rpc_server;
struct server;

struct server_opts {
    const char *job;
    int task;
    const struct cluster_spec *cluster;
    const char *bind;      /* "host:port" or ":port" */
    int threads;           /* that compute; 0: as many as there are CPUs */
    int loops;             /* 0: as the transport thinks best */
    const char *state_dir; /* see server/roster.h, as for the next two */
    const char *job_id;
    int lease_s;
    bool held; /* serves nobody before server_serve() */
    /* A ConfigProto: what sessions that do not say otherwise get. */
    const void *config;
    size_t config_len;
};

/* Listens when it returns. */
enum mst_code server_start(const struct server_opts *opts, struct server **ret,
                           struct status *st) MUST_USE;
/* Once, for a server that was held: connections have waited until now. */
enum mst_code server_serve(struct server *s, struct status *st) MUST_USE;
int server_port(const struct server *s);
/* For clients in the same process. */
struct loop_group *server_loops(const struct server *s);
/* The loop that all connections are on, or NULL when there are several. */
struct loop *server_only_loop(const struct server *s);
struct rpc_server *server_rpc(const struct server *s);
struct master *server_master(const struct server *s);
/* Takes no new calls, lets those under way finish for grace_ms, ends the rest,
 * and frees the server. Not from one of its own threads. */
void server_stop(struct server *s, uint64_t grace_ms);

#endif
