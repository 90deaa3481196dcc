/*
 * One task of a TensorFlow cluster inside a program: what `muster serve` is as
 * a process of its own, and what tf.train.Server is in Python.
 *
 *   mst_server *server;
 *   struct mst_error error;
 *
 *   if (mst_server_new(def, def_len, &server, &error) ||
 *       mst_server_start(server, &error))
 *       complain(error.message);
 *   printf("sessions go to %s\n", mst_server_target(server));
 *   mst_server_wait(server, -1);
 *   mst_server_free(server);
 *
 * Any number of servers live in one process, each with threads of its own,
 * which take no signals. All functions may be called from any thread but one
 * of the server's own. A child of fork() has the server's memory, but not its
 * threads: there every call returns at once and does nothing.
 */
#ifndef MUSTER_SERVER_H
#define MUSTER_SERVER_H

#include <stddef.h>

#include "muster/api.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mst_server mst_server;

/* Binds the port of its task, so that the target is known, and lets those who
 * connect wait until it is started. `def` is a tensorflow.ServerDef message,
 * and errors have the codes and texts that TensorFlow gives for it.
 *
 * A task that the cluster calls localhost, 127.0.0.1 or ::1 is bound to
 * loopback, any other to all addresses; port 0 lets the kernel choose. The
 * default_session_config holds for sessions that do not say otherwise; it
 * bounds the threads that compute if it sets both intra_op_ and
 * inter_op_parallelism_threads. */
MST_API enum mst_code mst_server_new(const void *def, size_t def_len,
                                     mst_server **ret, struct mst_error *error);
/* The same, with what a ServerDef has no field for. */
struct mst_server_opts {
    /* Of a parameter server: the folder of its journal of who joined and left.
     * NULL: where state is kept on this system; "none": in memory only. */
    const char *state_dir;
    /* Likewise: the name of the job, if it is not to know who joined and left
     * other jobs on the same hosts. NULL: $MUSTER_JOB_ID, or none. */
    const char *job_id;
    /* Seconds after which the sessions of a worker that is gone are dropped.
     * 0: a minute for workers of muster, never for TensorFlow's; -1: never. */
    int lease_s;
};
MST_API enum mst_code mst_server_new_opts(const void *def, size_t def_len,
                                          const struct mst_server_opts *opts,
                                          mst_server **ret,
                                          struct mst_error *error);
/* A server that runs already stays as it is; one that has been stopped cannot
 * be started again: FAILED_PRECONDITION. */
MST_API enum mst_code mst_server_start(mst_server *server,
                                       struct mst_error *error);
/* Takes no new calls, lets those under way finish for grace_ms, ends the rest.
 * When it returns the port is free. Again, it does nothing. */
MST_API void mst_server_stop(mst_server *server, int grace_ms);
/* Stops it, if nobody did, without grace. NULL is taken. */
MST_API void mst_server_free(mst_server *server);

/* Waits until the server has been stopped, for timeout_ms at most; -1 is for
 * ever. Returns 1 if it has, or was never started, and 0 if not yet. */
MST_API int mst_server_wait(mst_server *server, int timeout_ms);

MST_API int mst_server_port(const mst_server *server);
/* "grpc://localhost:2222", for a session: the host as the cluster calls it, the
 * port that was bound. It lives as long as the server. */
MST_API const char *mst_server_target(const mst_server *server);

#ifdef __cplusplus
}
#endif
#endif
