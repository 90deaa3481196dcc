/*
 * A session on a master, remote or in the same process: one interface, two
 * ways (client/link.h). What TensorFlow's tf.Session is to a program, without
 * the graph building: the graph comes as a GraphDef.
 *
 * The errors are the master's. When the master is lost, calls give UNAVAILABLE;
 * when it has come back without the session, ABORTED. Either way the session
 * is of no more use: close it and make a new one.
 *
 * Threads: any. A runner (client/runner.h) belongs to one at a time.
 */
#ifndef CLIENT_SESSION_H
#define CLIENT_SESSION_H

#include "client/link.h"
#include "tensor/tensor.h"

struct client_session {
    struct client_link link;
    char *handle; /* NULL: not open */
    pthread_mutex_t lock;
    int64_t version; /* of the graph, under lock */
};

/* One that is not open yet; it can be cancelled from now on. target is
 * "grpc://host:port"; or server is the task in this process whose master is
 * meant, which outlives the session. */
enum mst_code client_session_new(const char *target, struct server *server,
                                 struct client_session **ret,
                                 struct status *st) MUST_USE;

struct client_session_opts {
    const void *graph; /* a GraphDef; TensorFlow's masters want some node */
    size_t graph_len;
    const void *config; /* a ConfigProto, or nothing */
    size_t config_len;
    uint64_t timeout_ms; /* 0: waits for the cluster for ever */
};

/* Waits until the master and all its tasks are up. */
enum mst_code client_session_open(struct client_session *s,
                                  const struct client_session_opts *opts,
                                  struct status *st) MUST_USE;
/* Tells the master, which stops what runs, and frees the session whatever it
 * says. NULL is taken. */
void client_session_close(struct client_session *s, uint64_t timeout_ms);

/* More nodes. */
enum mst_code client_session_extend(struct client_session *s, const void *graph,
                                    size_t len, uint64_t timeout_ms,
                                    struct status *st) MUST_USE;
/* Stops all that is under way. */
void client_session_cancel(struct client_session *s);

/* The names of what a step feeds ("x:0"), fetches and runs. */
struct client_want {
    const char *const *feeds, *const *fetches, *const *targets;
    int feed_count, fetch_count, target_count;
};

/* One step: feeds in, fetches out, in the order of the names. The results are
 * the caller's to unref, on success only. */
enum mst_code client_session_run(struct client_session *s,
                                 const struct client_want *want,
                                 const struct tensor *feeds,
                                 struct tensor *fetches, uint64_t timeout_ms,
                                 struct status *st) MUST_USE;

/* Calls fn with the name of each device that the session may use. */
enum mst_code client_session_devices(struct client_session *s,
                                     void (*fn)(void *arg, const char *name),
                                     void *arg, uint64_t timeout_ms,
                                     struct status *st) MUST_USE;

/* Drops the variables of the containers, of all if there are none named, on
 * all tasks of a master, and closes its sessions. */
enum mst_code client_session_reset(const char *target,
                                   const char *const *containers, int count,
                                   uint64_t timeout_ms,
                                   struct status *st) MUST_USE;

#endif
