/*
 * A session on the master of a task: what tf.compat.v1.Session is in Python,
 * for a graph that is there already as a GraphDef message.
 *
 *   const char *feeds[] = { "x:0" }, *fetches[] = { "loss:0" },
 *              *targets[] = { "train" };
 *   mst_session *session;
 *   mst_runner *step;
 *   mst_tensor *loss;
 *
 *   if (mst_session_open("grpc://localhost:2222", graph, graph_len, NULL, 0,
 *                        0, &session, &error) ||
 *       mst_runner_new(session, feeds, 1, fetches, 1, targets, 1, &step,
 *                      &error))
 *       complain(error.message);
 *   while (!mst_runner_run(step, &batch, &loss, 0, &error))
 *       ...
 *   mst_runner_free(step);
 *   mst_session_close(session);
 *
 * The master is any task of the cluster, of muster or of TensorFlow, at the
 * other end of a connection; or that of a server in the same process, and then
 * a step is a function call and no message. Variables belong to the tasks that
 * they are placed on, not to the session.
 *
 * Every call waits for its answer, for timeout_ms at most (DEADLINE_EXCEEDED);
 * 0 is for ever. Errors have the codes and texts of TensorFlow. UNAVAILABLE and
 * ABORTED say that a task was lost or has restarted: such a session is to be
 * closed, and a new one may succeed.
 *
 * Threads: all functions may be called from any; a runner from one at a time.
 */
#ifndef MUSTER_SESSION_H
#define MUSTER_SESSION_H

#include "muster/server.h"
#include "muster/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mst_session mst_session;
typedef struct mst_runner mst_runner;

/* Waits until the master and all tasks of its cluster are up. graph is a
 * tensorflow.GraphDef, config a tensorflow.ConfigProto or nothing; both may go
 * when it returns. */
MST_API enum mst_code mst_session_open(const char *target, const void *graph,
                                       size_t graph_len, const void *config,
                                       size_t config_len, int timeout_ms,
                                       mst_session **ret,
                                       struct mst_error *error);
/* On a server of this process, which has been started and is stopped after the
 * session was closed. */
MST_API enum mst_code mst_session_open_in(mst_server *server, const void *graph,
                                          size_t graph_len, const void *config,
                                          size_t config_len, int timeout_ms,
                                          mst_session **ret,
                                          struct mst_error *error);
/* Stops what runs, and frees it. After its runners. NULL is taken. */
MST_API void mst_session_close(mst_session *session);

/* Adds the nodes of another GraphDef. */
MST_API enum mst_code mst_session_extend(mst_session *session,
                                         const void *graph, size_t graph_len,
                                         int timeout_ms,
                                         struct mst_error *error);
/* Ends all calls of the session that are under way, with CANCELLED. */
MST_API void mst_session_cancel(mst_session *session);

/* One step: feeds are values for tensors by name ("x:0"), targets are ops that
 * run, and fetches[i] becomes a tensor that is the caller's to free. */
MST_API enum mst_code
mst_session_run(mst_session *session, const char *const *feed_names,
                const mst_tensor *const *feeds, int feed_count,
                const char *const *fetch_names, mst_tensor **fetches,
                int fetch_count, const char *const *targets, int target_count,
                int timeout_ms, struct mst_error *error);

/* A step that is run often: the names are given once, and a run costs no more
 * than its work. */
MST_API enum mst_code
mst_runner_new(mst_session *session, const char *const *feed_names,
               int feed_count, const char *const *fetch_names, int fetch_count,
               const char *const *targets, int target_count, mst_runner **ret,
               struct mst_error *error);
/* Feeds and fetches in the order of the names. */
MST_API enum mst_code mst_runner_run(mst_runner *runner,
                                     const mst_tensor *const *feeds,
                                     mst_tensor **fetches, int timeout_ms,
                                     struct mst_error *error);
MST_API void mst_runner_free(mst_runner *runner); /* accepts NULL */

/* The devices of the session: the i-th name is written to name, as much of it
 * as len allows. Returns how many there are, -1 on an error. */
MST_API int mst_session_device(mst_session *session, int i, char *name,
                               size_t len, struct mst_error *error);

/* Closes all sessions of a master and drops the variables of the named
 * containers on all its tasks; of the default one when count is 0. */
MST_API enum mst_code mst_session_reset(const char *target,
                                        const char *const *containers,
                                        int count, int timeout_ms,
                                        struct mst_error *error);

#ifdef __cplusplus
}
#endif
#endif
