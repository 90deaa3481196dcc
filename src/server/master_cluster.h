/*
 * Sessions that bring their cluster along (ConfigProto.cluster_def), which
 * TensorFlow calls ClusterSpec propagation: the tasks, their names and their
 * addresses are the session's own, on every task that takes part. The master
 * is the task whose address is the session's target.
 *
 * Such a session has its own state (isolated) unless it asks to share
 * (experimental.share_session_state_in_clusterspec_propagation).
 *
 * The same is of use without the client knowing: a task of TensorFlow's learns
 * of other tasks only from its own flags, or so. A master that has such tasks
 * in a session tells them, in CreateWorkerSession, where the session's tasks
 * are; so they can fetch from a task that joined after they were started.
 */
#ifndef SERVER_MASTER_CLUSTER_H
#define SERVER_MASTER_CLUSTER_H

#include "server/master_message.h"
#include "server/master_state.h"

/* Fills in the session's tasks, out of config->cluster. */
enum mst_code master_cluster_choose(struct master *m, struct master_session *ms,
                                    const struct session_config *config,
                                    struct message_text target,
                                    struct status *st) MUST_USE;

/* Whether a session may use the task, by its filters. */
bool master_cluster_filter(const struct session_config *config, const char *job,
                           int task);

/* Appends the cluster, field 1 of a ServerDef, that this task is to be told;
 * nothing if it is to use its own. */
void master_cluster_put(const struct master *m, const struct master_session *ms,
                        const struct session_config *config, int task,
                        struct pb_out *server_def);

#endif
